/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Which tenant pays for a worker's CPU time.
 *
 * A request pays from its parsing to its answer.  For other work on a
 * connection, such as closing it, its tenant pays: the worker's payer.  No
 * tenant pays for a connection that never had a request, or for looks at the
 * epoll set.  The counter cpu_unowned_ns has that time.
 *
 * A lap is the CPU time since the meter was last read.  A turn is the parsing
 * of one connection.  If reading the meter needs a system call, only a sample
 * of turns is drawn.  Their time is divided by sandpaper_sample.
 * A worker's fields are its own.  All other state is under spd_lock().
 */

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "spd.h"

static struct acc_costs costs;		/* locked */
SPD_STATIC int64_t lap_sum;		/* ns, laps of all threads; locked */
static uint64_t nrequests;		/* and fetches that are done; locked */
static struct residual residual_of;	/* locked */
static _Atomic int64_t residual;	/* ns of CPU, a request */
static int64_t nobody;			/* ns of CPU, a token bucket:
					 * spd_nobody_may(); locked */
static int64_t nobody_at;		/* ns, its last change */

#define SPD_TICK	1000		/* ns: less could add 0 */
#ifndef SPD_BURST			/* less in a fuzz target */
#define SPD_BURST	10000000	/* ns of CPU: size of the bucket */
#endif

/*
 * Add a cost that belongs to no request, or to a request that goes on.  cpu:
 * ns of CPU time; net: ns of net.  A tenant with waiting requests pays when
 * its next request is done.  If it paid now, its waiting requests could fall
 * behind those of other tenants.  Caller holds spd_lock().
 */
void
spd_charge(struct spd_tenant *t, int64_t cpu, int64_t net, int64_t now)
{

	SPD_LOCKED();
	SPD_COUNT(t, cpu_ns, cpu);
	SPD_COUNT(t, net_ns, net);
	t->owed[REL_CPU] += cpu;
	t->owed[REL_NET] += net;
	if (REL_TenantWaiting(t->rel) == 0)
		spd_pay_debt(t, now);
}

/*
 * Add a cost that no lap has, ns of CPU time: of a tenant, or of none (NULL).
 * Caller holds spd_lock().
 */
void
spd_charge_apart(struct spd_tenant *t, int64_t cpu, int64_t now)
{

	SPD_LOCKED();
	lap_sum += cpu;
	if (t != NULL)
		spd_charge(t, cpu, 0, now);
	else
		spd_vsc->cpu_unowned_ns += (uint64_t)cpu;
}

/*
 * Charge what the tenant owes.  Call it when one of the tenant's requests is
 * done, or when none waits.  With debug.sandpaper.cost only requests cost
 * something.  Caller holds spd_lock().
 */
void
spd_pay_debt(struct spd_tenant *t, int64_t now)
{

	SPD_LOCKED();
	if (t->owed[REL_CPU] + t->owed[REL_NET] == 0)
		return;
	if (t->fixed[REL_CPU] + t->fixed[REL_NET] == 0)
		REL_Charge(spd_rel, t->rel, ACC_Charge(&t->account,
		    t->owed[REL_CPU] / spd_set.cores, t->owed[REL_NET]), now);
	memset(t->owed, 0, sizeof t->owed);
}

/*
 * Take CPU time, ns, of work for no tenant from a token bucket.  Such work is
 * to accept, to parse and to close connections without a tenant.  Caller holds
 * spd_lock().
 */
static void
spd_spend(int64_t ns)
{

	SPD_LOCKED();
	spd_vsc->cpu_unowned_ns += (uint64_t)ns;
	nobody = vmax_t(int64_t, nobody - ns, -SPD_BURST);
}

/*
 * Fill the bucket up to now (ns).  Return 1 if a worker may turn to a
 * connection without a tenant.  The bucket lets such work have a quarter of
 * the cores' time, if Sandpaper is on, and either a request waits that no limit
 * holds back, or many parts of requests wait.  Else the bucket is full.  Caller
 * holds spd_lock().
 */
int
spd_nobody_may(int64_t now)
{
	int64_t more = now - nobody_at;

	SPD_LOCKED();
	if (spd_set.mode != SPD_ON || (!spd_many_parts() &&
	    REL_Waiting(spd_rel) == REL_Throttled(spd_rel)))
		nobody = SPD_BURST;
	else if (more >= SPD_TICK)
		nobody = vmin_t(int64_t, SPD_BURST,
		    nobody + more * spd_set.cores / 4);
	else
		return (nobody > 0);
	nobody_at = now;
	return (nobody > 0);
}

/*
 * Add what this worker has measured to the sums of all workers.
 * Caller holds spd_lock().
 */
void
spd_sum_laps(struct spd_worker *me)
{

	SPD_LOCKED();
	lap_sum += me->laps;
	me->laps = 0;
	spd_vsc->cpu_unowned_ns += (uint64_t)me->unowned;
	me->unowned = 0;
}

/*
 * End the lap, if that needs no system call: no tenant pays for it.  The
 * bucket stays as it is, since looks at the epoll set serve all connections.
 */
void
spd_unowned(struct spd_worker *me)
{
	int64_t lap;

	lap = spd_lap(me, 0);
	if (lap > 0)
		me->unowned += lap;
}

/*
 * The same for the keeper, which also serves all connections.  The meter is
 * read whatever that costs, and the sums get the lap at once.
 */
void
spd_unowned_now(struct spd_worker *me)
{

	me->unowned += vmax_t(int64_t, 0, spd_lap(me, 1));
	spd_lock();
	spd_sum_laps(me);
	spd_unlock();
}

/*
 * End the lap, if that needs no system call, or if the turn was drawn.  The
 * payer or its next request pays for it.
 */
void
spd_owe(struct spd_worker *me)
{
	int64_t lap;

	lap = spd_lap(me, me->turn_drawn);
	if (lap <= 0)
		return;
	if (me->turn_drawn && spd_set.sample > 0)
		lap = (int64_t)((double)lap / spd_set.sample);
	me->owed += lap;
}

/*
 * Return what this worker's payer owes, ns, so that its request pays.  Return
 * 0 if the turn was drawn: its time stands for many turns, and the payer
 * settles that apart.
 */
int64_t
spd_take_owed(struct spd_worker *me)
{
	int64_t owed = me->owed;

	if (me->turn_drawn)
		return (0);
	me->owed = 0;
	return (owed);
}

/* Make a tenant the payer, or no tenant (NULL).  Caller holds spd_lock(). */
void
spd_set_payer(struct spd_worker *me, struct spd_tenant *t)
{

	SPD_LOCKED();
	me->payer = t;
	me->payer_generation = t == NULL ? 0 : TEN_OfData(t)->generation;
}

/*
 * Charge the payer.  If there is none, or if its record now belongs to another
 * tenant, take the time from the bucket.  Caller holds spd_lock().
 */
static void
spd_settle(struct spd_worker *me, int64_t now)
{
	struct spd_tenant *t = me->payer;

	spd_sum_laps(me);
	me->turn_drawn = 0;
	if (me->owed == 0)
		return;
	if (t != NULL && TEN_OfData(t)->generation == me->payer_generation)
		spd_charge(t, me->owed, 0, now);
	else
		spd_spend(me->owed);
	me->owed = 0;
}

/*
 * Make a tenant the payer, or no tenant (NULL).  The last payer settles
 * first, if it is another tenant, or if the turn was drawn.  Caller holds
 * spd_lock().
 */
void
spd_turn_to(struct spd_worker *me, struct spd_tenant *t, int64_t now)
{

	if (me->payer != t || me->turn_drawn || t == NULL)
		spd_settle(me, now);
	spd_set_payer(me, t);
}

/*--------------------------------------------------------------------
 * Estimates: what the next request of a tenant will cost.  CPU time is
 * divided by the cores, and bytes by the present rate of net.  account.c says
 * which of the two is dominant.
 */

/* Give the releaser a tenant's estimate.  Caller holds spd_lock(). */
void
spd_estimate(struct spd_tenant *t)
{
	int64_t e[REL__RESOURCES], cpu;

	SPD_LOCKED();
	cpu = ACC_Value(&costs, &t->key, REL_CPU);
	atomic_store_explicit(&t->cpu_next, cpu, memory_order_relaxed);
	e[REL_CPU] = cpu / spd_set.cores;
	e[REL_NET] = spd_net(ACC_Value(&costs, &t->key, REL_NET));
	ACC_Next(&t->account, e);
	if (t->fixed[REL_CPU] + t->fixed[REL_NET] > 0)
		memcpy(e, t->fixed, sizeof e);
	memcpy(t->estimate, e, sizeof e);
	REL_SetEstimate(spd_rel, t->rel, e);
}

/*
 * Use the parameters of costs, and the estimator of a policy (its number).
 * Caller holds spd_lock().
 */
void
spd_costs(unsigned policy)
{
	const char *estimator;
	uint32_t alpha;

	estimator = REL_PolicyEstimator(policy, &alpha);
	if (estimator == NULL) {
		estimator = "ewma";
		alpha = (uint32_t)(cache_param->sandpaper_alpha * 65536 + .5);
	}
	costs.estimator = (unsigned)EST_ByName(estimator);
	costs.alpha = alpha;
	spd_set.sample = cache_param->sandpaper_sample;
	spd_link_bound(cache_param->sandpaper_nic_rate);
}

/*
 * Charge a long request for its CPU time since the keeper's first look at it.
 * This is refresh charging (2DFQ, section 5).  Otherwise a tenant with requests
 * that became expensive has all slots before the first one completes.
 * w: the request's worker; cpu: the CPU clock of that worker, ns, or -1.
 * Caller holds spd_lock().
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
	    (cpu - w->first_cpu) / spd_set.cores);
	before = n->charge;
	REL_Refresh(spd_rel, n, cost, now);
	spd_vsc->refreshed += n->charge != before;
}

/*--------------------------------------------------------------------
 * What requests cost
 */

/* Return the bytes on net that the tenant's next request is expected to cost.
 * Caller holds spd_lock(). */
int64_t
spd_wire(const struct spd_tenant *t)
{

	SPD_LOCKED();
	return (ACC_Value(&costs, &t->key, REL_NET));
}

/* A request cost ns of CPU (-1: not measured) and bytes on net.  Caller holds
 * spd_lock(). */
void
spd_sample(struct spd_tenant *t, int64_t cpu, int64_t wire)
{

	SPD_LOCKED();
	if (cpu >= 0)
		ACC_Sample(&costs, &t->key, REL_CPU, cpu);
	ACC_Sample(&costs, &t->key, REL_NET, wire);
}

/*--------------------------------------------------------------------
 * The residual: CPU time of the process outside of laps, for each request
 */

/* Count a request or a fetch that is done.  Caller holds spd_lock(). */
void
spd_residual_count(void)
{

	SPD_LOCKED();
	nrequests++;
}

/* Return the residual, ns. */
int64_t
spd_residual(void)
{

	return (residual);
}

/* Measure the residual, every second.  Caller holds spd_lock(). */
void
spd_residual_measure(int64_t cpu, int64_t now)
{

	SPD_LOCKED();
	residual = RESIDUAL_Update(&residual_of, now, cpu, lap_sum, nrequests);
	spd_vsc->residual_ns = (uint64_t)residual;
}
