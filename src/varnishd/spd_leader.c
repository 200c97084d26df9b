/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The leader and the deputy: who looks at the epoll set while others run.
 *
 * While all slots are taken nobody goes to sleep on the set: workers look
 * between two requests, at most every SPD_HARVEST ns.  When slots are free,
 * one worker, the leader, sleeps on the set; on an event it becomes a
 * worker again, and another is summoned if slots are still free.
 *
 * If every core runs a request, a leader would take CPU time from these workers
 * at each event.  So one worker, the deputy, sleeps SPD_NAP ns at a time
 * instead.  It looks at the set only if nobody else did meanwhile.  Whoever
 * turns to something else while connections are ready summons one, too:
 * the leader has no event left for these.
 */

#include "config.h"

#include <stdlib.h>

#include "spd.h"

#include "vtim.h"

static const struct pool *leading;	/* the leader's, locked */

/* Locked.  Nobody will see the next event soon, or the connections that are
 * ready: these have no event left for a leader */
int
spd_unwatched(void)
{

	SPD_LOCKED();
	if (spd.deputy && spd.running >= spd.cores)
		return (0);
	return (!spd.leader || spd_may_parse());
}

/* The same, and nobody has been called to see to it */
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

/* Look without waiting; the time is nobody's */
void
spd_look_now(struct spd_worker *me, int64_t now)
{

	spd.harvested = now;
	spd_harvest(0);
	spd_unowned(me);
}

/* Sleep on the epoll set.  Locked, returns unlocked. */
void
spd_sleep(struct worker *wrk)
{

	SPD_LOCKED();
	AZ(spd.leader);
	spd.leader = 1;
	leading = wrk->pool;
	/* It came without the call, which may wait in the pools for long: the
	 * next call must reach it */
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

/* Be the deputy for SPD_NAP ns.  Locked, returns unlocked. */
void
spd_nap(struct worker *wrk, struct spd_worker *me, int64_t now)
{

	SPD_LOCKED();
	AZ(spd.deputy);
	spd.deputy = 1;
	spd.summoned = 0;
	me->nap_released = spd.vsc->released;
	spd_unlock();
	/* It may be the deputy for as long as there is load */
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

/* For the keeper: the leader sleeps, but its pool does not know that it has a
 * thread, and may not have another one */
void
spd_wake_leader(void)
{

	spd_lock();
	if (spd.leader && spd_pool_waits(leading))
		spd_timer(METER_Now());
	spd_unlock();
}
