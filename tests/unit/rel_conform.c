/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Conformance: nothing lost or served twice, order kept within a tenant,
 * no slot idle while a request is eligible, closed resources heeded,
 * bounded lag behind the max-min fluid.
 */

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "rel_conform.h"
#include "splitmix.h"
#include "rel_oracle.h"

#define MS		1000000
#define MAX_TENANTS	12
#define QUANTUM_MAX	(4 * MS)

static void
fault(struct world *w, const char *what)
{
	if (w->fault == NULL)
		w->fault = what;
}

/* Rows that are excused from something; all others from nothing */
static const struct {
	const char	*name;
	unsigned	flags;
} excuses[] = {
	{ "fifo",	CONFORM_IGNORES_CLOSED | CONFORM_UNFAIR },
	{ "mr3",	CONFORM_SYNCHRONISED },
	{ "mr3-vf",	CONFORM_SYNCHRONISED },
	{ "round-robin", CONFORM_UNFAIR },
};

unsigned
conform_flags(unsigned policy)
{
	unsigned i;

	for (i = 0; i < sizeof excuses / sizeof excuses[0]; i++)
		if (strcmp(excuses[i].name, REL_PolicyName(policy)) == 0)
			return (excuses[i].flags);
	return (0);
}

/*--------------------------------------------------------------------*/

static int
dominant(const struct world *w, unsigned t)
{
	return (w->estimate[t][REL_NET] > w->estimate[t][REL_CPU] ?
	    REL_NET : REL_CPU);
}

static int
uses(const struct world *w, unsigned t, unsigned closed)
{
	int64_t max = w->estimate[t][dominant(w, t)];
	int r;

	if (REL_MASK(dominant(w, t)) & closed)
		return (1);
	for (r = 0; r < REL__RESOURCES; r++)
		if ((REL_MASK(r) & closed) &&
		    w->estimate[t][r] > max / REL_USES)
			return (1);
	return (0);
}

/* Had it to release?  Who stays away from what is closed always passes */
static int
must_release(const struct world *w, unsigned closed)
{
	unsigned t, held = 0, free = 0;

	for (t = 0; t < w->ntenants; t++) {
		if (w->waiting[t] == 0)
			continue;
		held += (REL_MASK(dominant(w, t)) & closed) != 0;
		free += !uses(w, t, closed);
	}
	return (free > 0 || (held == 0 && w->nwaiting > 0));
}

struct req *
conform_dequeue(struct world *w, unsigned flags, unsigned slot,
    unsigned closed)
{
	enum rel_answer a;
	struct req *r;
	int must;

	must = must_release(w, (flags & CONFORM_IGNORES_CLOSED) ? 0 : closed);
	if ((flags & CONFORM_SYNCHRONISED) && w->nrunning > 0)
		must = 0;
	if (flags & CONFORM_LIMITED)
		must = 0;
	r = world_dequeue(w, slot, closed, &a);
	if (a == REL_NOT_YET && w->when <= w->now)
		fault(w, "to wait for a time that has come");
	if (slot >= w->nslots) {
		if (a != REL_NO_SLOT && a != REL_EMPTY)
			fault(w, "a slot that is not there");
	} else if (must && r == NULL)
		fault(w, "idle while a request is eligible");
	if (r != NULL && !(flags & CONFORM_IGNORES_CLOSED) &&
	    (REL_MASK(dominant(w, r->tenant)) & closed))
		fault(w, "released to a closed resource");
	return (r);
}

static void
step_dequeue(struct world *w, unsigned flags)
{
	unsigned closed = 0, slot;

	slot = (unsigned)rng_below(&w->rng, w->nslots);
	if (rng_below(&w->rng, 40) == 0)
		slot = w->nslots;
	if (((w->now / 64) & 1) != 0)		/* phases */
		closed = (unsigned)((w->now / 128) & 3);
	if (slot >= w->nslots || w->nrunning < w->nslots)
		(void)conform_dequeue(w, flags, slot, closed);
}

static struct req *
some_waiting(struct world *w)
{
	unsigned i, from = (unsigned)rng_below(&w->rng, WORLD_REQS);
	struct req *r;

	for (i = 0; i < WORLD_REQS; i++) {
		r = &w->reqs[(from + i) % WORLD_REQS];
		if (r->state == REL_WAITING)
			return (r);
	}
	return (NULL);
}

static void
step_estimate(struct world *w)
{
	unsigned t = (unsigned)rng_below(&w->rng, w->ntenants);
	int64_t cpu = (int64_t)rng_below(&w->rng, 5 * MS);
	int64_t net = (int64_t)rng_below(&w->rng, 5 * MS);

	switch (rng_below(&w->rng, 4)) {
	case 0:
		net = 0;
		break;
	case 1:
		cpu /= 100;
		break;
	case 2:
		cpu *= rng_below(&w->rng, 100) == 0 ? 1000000 : 1;
		break;
	default:
		break;
	}
	world_estimate(w, t, cpu, net);
}

static void
step_change(struct world *w)
{
	unsigned t = (unsigned)rng_below(&w->rng, w->ntenants);
	struct req *r;

	switch (rng_below(&w->rng, 8)) {
	case 0:
		w->weight[t] = 1 + (uint32_t)rng_below(&w->rng, 4096);
		REL_SetWeight(w->rel, w->tenant[t], w->weight[t]);
		break;
	case 1:
		w->nslots = 1 + (unsigned)rng_below(&w->rng, 40);
		REL_SetSlots(w->rel, w->nslots);
		break;
	case 2:
		REL_SetRound(w->rel, (int64_t)rng_below(&w->rng, 5) * MS);
		if (rng_below(&w->rng, 20) == 0)
			REL_SetOptions(w->rel,
			    (w->rel->options & REL_OPT_CLOSED) |
			    ((unsigned)splitmix_next(&w->rng) & REL_OPT_ALL &
			    ~REL_OPT_CLOSED));
		break;
	case 3:
		REL_Charge(w->rel, w->tenant[t],
		    (int64_t)rng_below(&w->rng, 20 * MS), w->now);
		break;
	case 4:
		if (w->nrunning == 0)
			break;
		r = w->running[rng_below(&w->rng, w->nrunning)];
		REL_Refresh(w->rel, &r->node,
		    (int64_t)rng_below(&w->rng, 9 * MS), w->now);
		REL_Progress(w->rel, &r->node, REL_NET, w->now);
		break;
	case 5:
		r = some_waiting(w);
		if (r != NULL)
			world_cancel(w, r);
		break;
	default:
		step_estimate(w);
		break;
	}
}

/* By the world's books; what is a member's is its group's, too */
static void
count(const struct world *w, unsigned *waiting, unsigned *running)
{
	unsigned i, t;

	memset(running, 0, WORLD_TENANTS * sizeof *running);
	memcpy(waiting, w->waiting, WORLD_TENANTS * sizeof *waiting);
	for (i = 0; i < w->nrunning; i++)
		running[w->running[i]->tenant]++;
	for (t = 0; t < w->ntenants; t++)
		if (w->group[t] > 0) {
			waiting[w->group[t] - 1] += waiting[t];
			running[w->group[t] - 1] += running[t];
		}
}

void
conform_counts(struct world *w)
{
	unsigned waiting[WORLD_TENANTS], running[WORLD_TENANTS];
	unsigned t, backlogged = 0;
	struct rel_tenant_stat st;
	uint64_t busy = 0;

	count(w, waiting, running);
	for (t = 0; t < w->ntenants; t++) {
		REL_TenantStat(w->rel, w->tenant[t], &st);
		backlogged += w->group[t] == 0 && waiting[t] > 0;
		if (st.waiting != waiting[t] || st.running != running[t] ||
		    (REL_TenantFirst(w->tenant[t]) != NULL) !=
		    (waiting[t] > 0))
			fault(w, "counts of a tenant");
		if (!w->tenant[t]->is_group &&
		    (st.enqueued != w->enqueued[t] || st.enqueued !=
		    st.waiting + st.released + st.cancelled ||
		    st.released != st.running + st.completed))
			fault(w, "books of a tenant");
		if (st.waiting + st.running == 0)
			continue;
		/* Who only waits behind a limit is not for the policy */
		if (w->group[t] == 0 && w->tenant[t]->waiting + running[t] > 0)
			busy += w->weight[t];
		if (REL_TenantIdle(w->rel, w->tenant[t]))
			fault(w, "idle with work");
	}
	if (REL_Waiting(w->rel) != w->nwaiting ||
	    REL_Running(w->rel) != w->nrunning ||
	    REL_Backlogged(w->rel) != backlogged ||
	    w->rel->busy_weight != busy ||
	    (REL_Oldest(w->rel) >= 0) != (w->nwaiting > 0))
		fault(w, "counts");
}

static void
step(struct world *w, unsigned flags)
{
	uint64_t dice = rng_below(&w->rng, 100);
	unsigned i;

	w->now++;
	if (dice < 2) {
		if (w->nrunning < WORLD_REQS / 4)
			(void)world_run(w, (unsigned)rng_below(&w->rng,
			    w->ntenants), 1);
	} else if (dice < 35) {
		/* From mostly empty to always backlogged */
		i = (unsigned)rng_below(&w->rng, 2 + w->ntenants % 3);
		for (; i > 0; i--)
			if (w->nwaiting < WORLD_REQS / 4)
				(void)world_enqueue(w, (unsigned)rng_below(
				    &w->rng, w->ntenants), 1);
	} else if (dice < 70) {
		step_dequeue(w, flags);
	} else if (dice < 92) {
		if (w->nrunning > 0)
			world_complete(w, w->running[rng_below(&w->rng,
			    w->nrunning)], (int64_t)rng_below(&w->rng,
			    8 * MS) - MS, rng_below(&w->rng, 3) == 0 ?
			    5 * REL_SCALE_ONE : REL_SCALE_ONE);
	} else
		step_change(w);
}

void
conform_drain(struct world *w)
{
	while (w->fault == NULL && w->nwaiting > 0) {
		while (w->nrunning > 0)
			world_complete(w, w->running[0], MS, REL_SCALE_ONE);
		if (world_dequeue(w, 0, 0, NULL) == NULL)
			fault(w, "idle while a request is eligible");
	}
	while (w->nrunning > 0)
		world_complete(w, w->running[0], MS, REL_SCALE_ONE);
}

const char *
conform_random(conform_new_f *new, const void *priv, unsigned flags,
    uint64_t seed, unsigned steps, uint64_t *hash)
{
	unsigned i, n;
	struct world *w;
	const char *what;

	w = world_new(new(priv, 10), 10, seed);
	n = 1 + (unsigned)rng_below(&w->rng, MAX_TENANTS);
	for (i = 0; i < n; i++) {
		(void)world_tenant(w, REL_WEIGHT_ONE);
		step_estimate(w);
	}
	for (i = 0; i < steps && w->fault == NULL; i++) {
		step(w, flags);
		if (i % 32 == 0)
			conform_counts(w);
	}
	conform_drain(w);
	conform_counts(w);
	if (w->nwaiting + w->nrunning + REL_Waiting(w->rel) +
	    REL_Running(w->rel) > 0 && w->fault == NULL)
		fault(w, "lost");
	what = w->fault;
	*hash = w->hash;
	world_free(&w);
	return (what);
}

/*--------------------------------------------------------------------
 * Lag.  Both the releaser's CPU and the fluid do all the work there is, at
 * rate 1; who gets more than the fluid gives takes it from others' lag.
 */

struct lag {
	struct world	*w;
	struct fluid	f;
	double		done[WORLD_TENANTS];	/* ns, completed */
	double		bound, worst;
};

static void
lag_judge(struct lag *l)
{
	double behind, partial[WORLD_TENANTS] = { 0 };
	const struct req *r;
	unsigned i;

	for (i = 0; i < l->w->nrunning; i++) {
		r = l->w->running[i];
		partial[r->tenant] += (double)(r->cost - r->left);
	}
	for (i = 0; i < l->f.n; i++) {
		behind = l->f.served[i] - l->done[i] - partial[i];
		behind /= l->f.weight[i] * l->bound;
		if (behind > l->worst)
			l->worst = behind;
	}
}

static void
lag_fill(struct lag *l)
{
	struct world *w = l->w;

	while (w->nrunning < w->nslots && w->nwaiting > 0 &&
	    w->fault == NULL)
		if (world_dequeue(w, w->nrunning, 0, NULL) == NULL) {
			if (REL_Synchronised(w->rel) && w->nrunning > 0)
				break;
			fault(w, "idle while a request is eligible");
		}
}

static void
lag_run(struct lag *l, int64_t until)
{
	struct world *w = l->w;
	struct req *r;
	int64_t before;

	while (w->now < until && w->fault == NULL) {
		before = w->now;
		r = world_share(w, until);
		fluid_advance(&l->f, (double)(w->now - before));
		lag_judge(l);
		if (r == NULL)
			continue;
		l->done[r->tenant] += (double)r->cost;
		world_complete(w, r, r->cost, REL_SCALE_ONE);
		lag_fill(l);
	}
}

static void
lag_arrive(struct lag *l, unsigned t, unsigned burst, int64_t cost)
{
	int64_t c;

	for (; burst > 0 && l->w->nfree > 0; burst--) {
		c = cost / 2 + 1 + (int64_t)rng_below(&l->w->rng,
		    (uint64_t)cost / 2);
		(void)world_enqueue(l->w, t, c);
		l->f.work[t] += (double)c;
	}
	lag_fill(l);
}

static double
lag_setup(struct lag *l, int64_t cost[])
{
	double m = 0, most = 0;
	unsigned t, n = 2 + (unsigned)rng_below(&l->w->rng, 6);

	l->f.n = n;
	for (t = 0; t < n; t++) {
		(void)world_tenant(l->w, REL_WEIGHT_ONE *
		    (1 + (uint32_t)rng_below(&l->w->rng, 4)));
		l->f.weight[t] = (double)l->w->weight[t] / REL_WEIGHT_ONE;
		cost[t] = 10000 + (int64_t)rng_below(&l->w->rng, 2 * MS);
		world_estimate(l->w, t, cost[t], 0);
		m = (double)cost[t] / l->f.weight[t];
		if (m > most)
			most = m;
	}
	return (most);
}

const char *
conform_lag(conform_new_f *new, const void *priv, unsigned flags,
    uint64_t seed, double *worst)
{
	unsigned i, t, slots = 1 + (unsigned)(seed % 10);
	int64_t cost[WORLD_TENANTS];
	struct lag l = { 0 };
	const char *what;

	l.w = world_new(new(priv, slots), slots, seed);
	REL_SetRound(l.w->rel, (int64_t)(seed / 10 % 5) * MS);
	l.bound = 2 * (slots + 1) * lag_setup(&l, cost) + 2 * QUANTUM_MAX;
	for (i = 0; i < 300 && l.w->fault == NULL; i++) {
		t = (unsigned)rng_below(&l.w->rng, l.f.n);
		/* tenant 0 comes in floods */
		lag_arrive(&l, t, t == 0 ? 200 : 10, cost[t]);
		lag_run(&l, l.w->now + 1 +
		    (int64_t)rng_below(&l.w->rng, 20 * MS));
	}
	if (l.worst > 1 && !(flags & CONFORM_UNFAIR))
		fault(l.w, "lag behind the max-min fluid");
	*worst = l.worst;
	what = l.w->fault;
	world_free(&l.w);
	return (what);
}
