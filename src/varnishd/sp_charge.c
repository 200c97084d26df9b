/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Who pays for a worker's CPU time.
 *
 * A request pays for what it takes from its parsing to its answer.  The rest
 * of a worker's time is for parts of requests, for junk, for clients that are
 * gone, and for closing and parking connections.  The tenant of the
 * connection pays for it: the worker's payer.  It is charged before the worker
 * turns to another tenant.  Nobody pays for a connection that never had a
 * request, nor for the looks at the epoll set: cpu_unowned_ns counts that.
 *
 * Where a lap costs a system call, only a sample of these turns is measured,
 * with the chance that requests have, and stands for the others.
 */

#include "config.h"

#include <stdlib.h>

#include "sp.h"

/* CPU since the last lap, ns; -1: not measured, the lap goes on */
int64_t
spd_lap(struct spd_worker *me, int wanted)
{
	int64_t lap;

	lap = METER_LapIf(me->meter, wanted);
	if (lap > 0)
		me->laps += lap;
	return (lap);
}

/* xorshift64*: 1 with the chance of sandpaper_sample.  Nobody can foresee it
 * without our memory. */
int
spd_drawn(struct spd_worker *me)
{

	me->rnd ^= me->rnd >> 12;
	me->rnd ^= me->rnd << 25;
	me->rnd ^= me->rnd >> 27;
	return ((double)((me->rnd * 2685821657736338717ULL) >> 11) * 0x1p-53 <
	    spd.sample);
}

/*
 * CPU time, ns, that is no request's.  A tenant with waiting requests pays
 * when the next one is done: else its first request could wait for others since
 * it was parsed.  With debug.sandpaper.cost only requests cost something.
 */
void
spd_charge(struct spd_tenant *t, int64_t cpu, int64_t now)
{

	SPD_LOCKED();
	SPD_COUNT(t, cpu_ns, cpu);
	t->owed += cpu;
	if (REL_TenantWaiting(t->rel) == 0)
		spd_pay(t, now);
}

/* One of its requests has been served, or none waits */
void
spd_pay(struct spd_tenant *t, int64_t now)
{

	SPD_LOCKED();
	if (t->owed > 0 && t->fixed[REL_CPU] + t->fixed[REL_NET] == 0)
		REL_Charge(spd.rel, t->rel,
		    ACC_Charge(&t->account, t->owed / spd.cores, 0), now);
	t->owed = 0;
}

/* What has been measured of this worker belongs to the sum of all */
void
spd_sum_laps(struct spd_worker *me)
{

	SPD_LOCKED();
	spd.lap_sum += me->laps;
	me->laps = 0;
	spd.vsc->cpu_unowned_ns += (uint64_t)me->unowned;
	me->unowned = 0;
}

/* The lap up to now is nobody's */
void
spd_unowned(struct spd_worker *me)
{
	int64_t lap;

	lap = spd_lap(me, 0);
	if (lap > 0)
		me->unowned += lap;
}

/* The lap up to now is the payer's, or its next request's */
void
spd_owe(struct spd_worker *me)
{
	int64_t lap;

	lap = spd_lap(me, me->turn_drawn);
	if (lap <= 0)
		return;
	if (me->turn_drawn && spd.sample > 0)
		lap = (int64_t)((double)lap / spd.sample);
	me->owed += lap;
}

/* A request takes over what its tenant owes here, ns.  A drawn turn stands for
 * others than this request. */
int64_t
spd_take_owed(struct spd_worker *me)
{
	int64_t owed = me->owed;

	if (me->turn_drawn)
		return (0);
	me->owed = 0;
	return (owed);
}

/* Locked.  From now on this tenant pays, or nobody (NULL) */
void
spd_pays(struct spd_worker *me, struct spd_tenant *t)
{

	SPD_LOCKED();
	me->payer = t;
	me->payer_generation = t == NULL ? 0 : TEN_OfHost(t)->generation;
}

/* Locked.  The payer pays what it owes.  If it is forgotten, nobody pays. */
static void
spd_settle(struct spd_worker *me, int64_t now)
{
	struct spd_tenant *t = me->payer;

	spd_sum_laps(me);
	me->turn_drawn = 0;
	if (me->owed == 0)
		return;
	if (t != NULL && TEN_OfHost(t)->generation == me->payer_generation)
		spd_charge(t, me->owed, now);
	else
		spd.vsc->cpu_unowned_ns += (uint64_t)me->owed;
	me->owed = 0;
}

/* Locked.  The worker turns to another tenant, or to none (NULL) */
void
spd_turn_to(struct spd_worker *me, struct spd_tenant *t, int64_t now)
{

	if (me->payer != t || me->turn_drawn || t == NULL)
		spd_settle(me, now);
	spd_pays(me, t);
}
