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
 * The lock guards spd.leader, spd.deputy and `leading`.
 */

#include "config.h"

#include <stdlib.h>

#include "spd.h"

#include "vtim.h"

static const struct pool *leading;	/* the leader's pool, locked */

/*
 * Return 1 if a worker must be called: no leader or deputy will see the next
 * event soon, or a connection may be parsed.  A ready connection has no event
 * left that could wake the leader.  Caller holds spd_lock().
 */
int
spd_unwatched(void)
{

	SPD_LOCKED();
	if (spd.deputy && spd.running >= spd.cores)
		return (0);
	return (!spd.leader || spd_may_parse());
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
	leaderless = !spd.summoned && spd_unwatched() &&
	    (spd.mode != SPD_OFF || spd.nready > 0);
	spd_unlock();
	return (leaderless);
}

/* Look at the epoll set without waiting.  No tenant pays for the CPU time. */
void
spd_look_now(struct spd_worker *me, int64_t now)
{

	spd.harvested = now;
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
	AZ(spd.leader);
	spd.leader = 1;
	leading = wrk->pool;
	/* A call may still wait in the queues of the pools.  Forget this call,
	 * so that the next spd_summon() wakes this leader. */
	spd.summoned = 0;
	spd_unlock();
	if (SPD_WORKER_VCL(wrk) != NULL)
		VCL_Rel(&SPD_WORKER_VCL(wrk));
	Pool_Sumstat(wrk);
	spd_me.turns = 0;
	spd_harvest(-1);
	spd_me.late = 0;
	spd_me.fresh = METER_Now();
	spd.harvested = spd_me.fresh;
	spd_lock();
	AN(spd.leader);
	spd.leader = 0;
	spd_unlock();
}

/*
 * Be the deputy for SPD_NAP ns.  Caller holds spd_lock(); the function returns
 * without it.  me->late then says that no worker looked at the set meanwhile.
 */
void
spd_nap(struct worker *wrk, struct spd_worker *me, int64_t now)
{

	SPD_LOCKED();
	AZ(spd.deputy);
	spd.deputy = 1;
	spd.summoned = 0;
	me->nap_released = spd.vsc->released;
	spd_unlock();
	/* Under load one worker can be the deputy for long.  So do now what the
	 * pool does between two tasks. */
	if (SPD_WORKER_VCL(wrk) != NULL) {
		VCL_Rel(&SPD_WORKER_VCL(wrk));
		Pool_Sumstat(wrk);
		me->turns = 0;
	}
	VTIM_sleep(SPD_NAP * 1e-9);
	me->fresh = METER_Now();
	me->napped = 1;
	me->late = spd.harvested <= now;
	spd_lock();
	AN(spd.deputy);
	spd.deputy = 0;
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
	if (spd.leader && spd_pool_has_task(leading))
		spd_timer(METER_Now());
	spd_unlock();
}
