/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The leader and the deputy: workers that wait for events of the epoll set.
 *
 * While slots are free, one worker, the leader, sleeps in epoll_wait.  On an
 * event the leader becomes a normal worker.  If slots are still free, another
 * worker is called to lead.  Between two requests, at most every SPD_HARVEST
 * ns, a worker looks at the set without waiting.
 * If every core runs a request, a leader would take CPU time from these workers
 * at each event.  So one worker, the deputy, sleeps SPD_NAP ns instead.  The
 * deputy then looks at the set only if no other worker did.
 *
 * The lock guards `leading` and `deputy`.
 */

#include "config.h"

#include <stdlib.h>

#include "spd.h"

#include "vtim.h"

static const struct pool *leading;	/* the leader's pool, locked */
SPD_STATIC int deputy;			/* a worker naps; locked */
/* ns, the last look at the set, written by the worker that looks */
static _Atomic int64_t harvested;

/* Return 1 if there is a deputy.  Caller holds spd_lock(). */
int
spd_has_deputy(void)
{

	SPD_LOCKED();
	return (deputy);
}

/* Return when a worker last looked at the set, ns. */
int64_t
spd_harvested(void)
{

	return (harvested);
}

/*
 * Return 1 if a worker must be called: no leader or deputy will see the next
 * event soon, or a connection may be parsed.  A ready connection has no event
 * left that could wake the leader.  Caller holds spd_lock().
 */
int
spd_unwatched(void)
{

	SPD_LOCKED();
	if (deputy && spd_running() >= spd_set.cores)
		return (0);
	return (!spd_has_leader() || spd_may_parse());
}

/*
 * Return 1 if spd_unwatched() and no call is on its way.  If Sandpaper is off,
 * only ready connections count.  Caller does not hold the lock.
 */
int
spd_leaderless(void)
{
	int leaderless;

	spd_lock();
	leaderless = !spd_summoned() && spd_unwatched() &&
	    (spd_set.mode != SPD_OFF || spd_nready() > 0);
	spd_unlock();
	return (leaderless);
}

/* Look at the epoll set without waiting.  No tenant pays for the CPU time. */
void
spd_look_now(struct spd_worker *me, int64_t now)
{

	harvested = now;
	spd_harvest(0);
	spd_unowned(me);
}

/*
 * Be the leader: sleep in epoll_wait until an event.  Caller holds spd_lock();
 * the function returns without it.
 */
void
spd_sleep(struct worker *wrk)
{

	SPD_LOCKED();
	spd_set_leader(1);
	leading = wrk->pool;
	/* A call may still wait in the queues of the pools.  Forget this call,
	 * so that the next spd_summon() wakes this leader. */
	spd_summon_done();
	spd_unlock();
	if (SPD_WORKER_VCL(wrk) != NULL)
		VCL_Rel(&SPD_WORKER_VCL(wrk));
	Pool_Sumstat(wrk);
	spd_me.turns = 0;
	spd_harvest(-1);
	spd_me.unlooked = 0;
	spd_me.slice_start = METER_Now();
	harvested = spd_me.slice_start;
	spd_lock();
	spd_set_leader(0);
	spd_unlock();
}

/*
 * Be the deputy for SPD_NAP ns.  Caller holds spd_lock(); the function returns
 * without it.  me->unlooked then says that no worker looked at the set
 * meanwhile.
 */
void
spd_nap(struct worker *wrk, struct spd_worker *me, int64_t now)
{

	SPD_LOCKED();
	AZ(deputy);
	deputy = 1;
	spd_summon_done();
	me->nap_released = spd_vsc->released;
	spd_unlock();
	/* Under load one worker can be the deputy for long.  So do now what the
	 * pool does between two tasks. */
	if (SPD_WORKER_VCL(wrk) != NULL) {
		VCL_Rel(&SPD_WORKER_VCL(wrk));
		Pool_Sumstat(wrk);
		me->turns = 0;
	}
	VTIM_sleep(SPD_NAP * 1e-9);
	me->slice_start = METER_Now();
	me->napped = 1;
	me->unlooked = harvested <= now;
	spd_lock();
	AN(deputy);
	deputy = 0;
	spd_unlock();
}

/*
 * Wake the leader if a task waits in the queue of its pool.  Varnish counts the
 * leader as busy, and may have no other thread for the task.  Only the keeper
 * calls this.
 */
void
spd_wake_leader(void)
{

	spd_lock();
	if (spd_has_leader() && spd_pool_has_task(leading))
		spd_timer(METER_Now());
	spd_unlock();
}
