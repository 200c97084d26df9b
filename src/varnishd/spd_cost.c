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
 * A lap is the CPU time since the clock was last read.  A turn is the time that
 * a worker spends on parsing one connection.  Where reading the clock needs a
 * system call, a turn is measured with the probability sandpaper_sample, as
 * requests are, and what it took is divided by that.
 */

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "spd.h"

#define SPD_TICK	1000		/* ns, or it would be 0 */
#ifndef SPD_BURST			/* less in a fuzz target */
#define SPD_BURST	10000000	/* ns of CPU, of nobody's work */
#endif

/*
 * Adds costs, ns, that belong to no request, or to a request that goes on.  A
 * tenant with waiting requests pays when the next one is done: if it paid now,
 * its waiting request could fall behind those of others.
 */
void
spd_charge(struct spd_tenant *t, int64_t cpu, int64_t net, int64_t now)
{

	SPD_LOCKED();
	SPD_COUNT(t, cpu_ns, cpu);
	t->owed[REL_CPU] += cpu;
	t->owed[REL_NET] += net;
	if (REL_TenantWaiting(t->rel) == 0)
		spd_pay(t, now);
}

/*
 * Charges what the tenant owes.  Called when one of its requests is done, or
 * when none waits.  With debug.sandpaper.cost only requests cost something.
 */
void
spd_pay(struct spd_tenant *t, int64_t now)
{

	SPD_LOCKED();
	if (t->owed[REL_CPU] + t->owed[REL_NET] == 0)
		return;
	if (t->fixed[REL_CPU] + t->fixed[REL_NET] == 0)
		REL_Charge(spd.rel, t->rel, ACC_Charge(&t->account,
		    t->owed[REL_CPU] / spd.cores, t->owed[REL_NET]), now);
	memset(t->owed, 0, sizeof t->owed);
}

/*
 * To accept, to parse and to close connections without a tenant takes a quarter
 * of the cores' time at most, while a request waits that its tenant's limit does
 * not hold back, or parts of requests are many.  It is a token bucket.
 */
static void
spd_spend(int64_t ns)
{

	SPD_LOCKED();
	spd.vsc->cpu_unowned_ns += (uint64_t)ns;
	spd.nobody = vmax_t(int64_t, spd.nobody - ns, -SPD_BURST);
}

/* Locked.  May a worker turn to a connection without a tenant? */
int
spd_nobody_may(int64_t now)
{
	int64_t more = now - spd.nobody_at;

	SPD_LOCKED();
	if (spd.mode != SPD_ON || (REL_Waiting(spd.rel) == REL_Shut(spd.rel) &&
	    !spd_many_parts()))
		spd.nobody = SPD_BURST;
	else if (more >= SPD_TICK)
		spd.nobody = vmin_t(int64_t, SPD_BURST,
		    spd.nobody + more * spd.cores / 4);
	else
		return (spd.nobody > 0);
	spd.nobody_at = now;
	return (spd.nobody > 0);
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

/* The lap up to now is nobody's.  It is not taken from the bucket: looks and the
 * keeper work for all connections. */
void
spd_unowned(struct spd_worker *me)
{
	int64_t lap;

	lap = spd_lap(me, 0);
	if (lap > 0)
		me->unowned += lap;
}

/* The same, of a thread that is no worker, now */
void
spd_unowned_now(struct spd_worker *me)
{

	me->unowned += vmax_t(int64_t, 0, spd_lap(me, 1));
	spd_lock();
	spd_sum_laps(me);
	spd_unlock();
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

/* Returns what this worker's payer owes, ns, for its request to pay.  Not of a
 * turn that was drawn: that is scaled, for many turns, and paid apart. */
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
		spd_charge(t, me->owed, 0, now);
	else
		spd_spend(me->owed);
	me->owed = 0;
}

/* Locked.  Says who pays from now on, or nobody (NULL).  The last payer settles
 * first, if it is another one, or if the turn was drawn. */
void
spd_turn_to(struct spd_worker *me, struct spd_tenant *t, int64_t now)
{

	if (me->payer != t || me->turn_drawn || t == NULL)
		spd_settle(me, now);
	spd_pays(me, t);
}

/*--------------------------------------------------------------------
 * What its next request will cost: the releaser wants to know.  The CPU is
 * divided by the cores, bytes by the rate that the link has now.  Which of the
 * two counts is account.c's.
 */

void
spd_estimate(struct spd_tenant *t)
{
	int64_t e[REL__RESOURCES], cpu;

	SPD_LOCKED();
	cpu = ACC_Value(&spd.costs, &t->key, REL_CPU);
	atomic_store_explicit(&t->cpu_next, cpu, memory_order_relaxed);
	e[REL_CPU] = cpu / spd.cores;
	e[REL_NET] = spd_net(ACC_Value(&spd.costs, &t->key, REL_NET));
	ACC_Next(&t->account, e);
	if (t->fixed[REL_CPU] + t->fixed[REL_NET] > 0)
		memcpy(e, t->fixed, sizeof e);
	REL_SetEstimate(spd.rel, t->rel, e);
}

void
spd_costs(unsigned policy)
{
	static uint64_t bound;		/* SPD_Init() has set the first */
	const char *estimator;
	uint32_t alpha;

	estimator = REL_PolicyEstimator(policy, &alpha);
	if (estimator == NULL) {
		estimator = "ewma";
		alpha = (uint32_t)(cache_param->sandpaper_alpha * 65536 + .5);
	}
	spd.costs.estimator = (unsigned)EST_ByName(estimator);
	spd.costs.alpha = alpha;
	spd.sample = cache_param->sandpaper_sample;
	if (bound != cache_param->sandpaper_nic_rate) {
		bound = cache_param->sandpaper_nic_rate;
		NIC_SetBound(spd.nic, bound);
	}
	spd_set_rate();
}

/*
 * Locked.  A request that runs for long is charged what it has cost so far,
 * from the first look on (2DFQ's refresh charging, its section 5): else a
 * tenant whose requests have become dear has all slots before the first of
 * them completes.
 */
void
spd_refresh(const struct spd_worker *w, int64_t cpu, int64_t now)
{
	struct rel_node *n = w->node;
	int64_t before, cost;

	SPD_LOCKED();
	if (n == NULL || cpu < 0 || w->looked_began != w->began)
		return;
	cost = ACC_SoFar(&spd_tenant_rel(n->tenant)->account,
	    (cpu - w->first_cpu) / spd.cores);
	before = n->charge;
	REL_Refresh(spd.rel, n, cost, now);
	spd.vsc->refreshed += n->charge != before;
}
