/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The releaser, all policies: an input is a sequence of calls of everything
 * that releaser.h has, in any order that it allows, with any arguments.
 *
 * After each call, by the books of rel_world.c, the checks of rel_conform.c
 * and those here:
 *  - enqueued = waiting + released + cancelled, released = running +
 *    completed, for each tenant; all sums agree; what was charged is what the
 *    costs say;
 *  - what is released waited, and was its tenant's first; for fifo, of all;
 *  - a dequeue releases if it has to (closed resources, synchronisation,
 *    limits);
 *    NOT_YET names a time to come; no slot, no release; nothing goes to a
 *    closed resource;
 *  - a node is not touched while it is the caller's (with ASan);
 *  - nobody owes anything when nothing waits or runs;
 *  - at the end all that waits comes out.
 *
 * The first bytes say policy, options, slots and mode.  FAIR: only calls
 * after which the service bound of doc/internals/algorithms.md holds, and the bound is
 * checked for each pair while both wait.  TWICE: the same again has to give
 * the same trace.  LONG: rounds of 4 ms.
 */

#include "fuzz.h"

#include "rel_conform.h"

#define TENANTS		12
#define REQS		200
#define SLOTS		40
#define QUANTUM_MAX	4000000.	/* ns, U */
#define FAIR_COST	(INT64_C(1) << 36)	/* ns: exact in doubles */
#define SWITCHES	((1U << REL_EPOCH_BITS) - 1)
#define NOW_MAX		(INT64_C(1) << 62)

#define FAIR		(1U << 5)
#define TWICE		(1U << 6)
#define LONG		(1U << 7)

struct running {			/* what we know of a released request */
	int64_t		charge;		/* ns */
	unsigned	epoch;
	int		sent;		/* REL_Progress() said so */
};

struct fuzz {
	struct fuzz_in	in;
	struct world	*w;
	unsigned	options;
	unsigned	fair;
	unsigned	flows;
	unsigned	limited;	/* there is, or was, a limit or a group */
	unsigned	epoch;		/* times that accounts began anew, */
	unsigned	moves[TENANTS];	/* or a tenant's did */
	struct req	*waiting[REQS];	/* by arrival */
	struct running	running[WORLD_REQS];
	uint64_t	released[TENANTS], cancelled[TENANTS];
	uint64_t	completed[TENANTS];
	__int128	charged[TENANTS];	/* ns x REL_SCALE_ONE */
	unsigned	settled[TENANTS];	/* times: may be rounded */
	/* The bound: T_i/w_i - T_j/w_j since both wait, its extremes, ns */
	double		t[TENANTS], m;
	double		lo[TENANTS][TENANTS], hi[TENANTS][TENANTS];
};

/*--------------------------------------------------------------------
 * Expectations
 */

static int64_t
clamped(int64_t ns, int64_t lo)
{
	if (ns < lo)
		return (lo);
	return (ns > REL_COST_MAX ? REL_COST_MAX : ns);
}

/* k */
static int64_t
estimate(const struct world *w, unsigned t)
{
	const int64_t *e = w->estimate[t];

	return (clamped(e[REL_NET] > e[REL_CPU] ? e[REL_NET] : e[REL_CPU], 1));
}

static void
charge(struct fuzz *f, unsigned t, int64_t ns, uint32_t scale)
{
	f->charged[t] += (__int128)ns * scale;
	f->settled[t]++;
}

static unsigned
flags(const struct fuzz *f)
{
	unsigned fl = conform_flags(REL_GetPolicy(f->w->rel)), i;

	if (!(f->options & REL_OPT_CLOSED))
		fl |= CONFORM_IGNORES_CLOSED;
	if (f->limited)
		fl |= CONFORM_LIMITED;
	/* All that run are on the link: nothing to wait for */
	for (i = 0; i < f->w->nrunning; i++)
		if (!f->running[f->w->running[i] - f->w->reqs].sent)
			return (fl);
	return (fl & ~CONFORM_SYNCHRONISED);
}

static void
dequeued(struct fuzz *f, struct req *r)
{
	struct world *w = f->w;
	unsigned i, j;

	for (i = 0; f->waiting[i]->tenant != r->tenant; i++)
		continue;
	assert(f->waiting[i] == r);
	if (REL_GetPolicy(w->rel) == (unsigned)REL_PolicyByName("fifo"))
		assert(i == 0 || f->limited);
	for (j = i; j < w->nwaiting; j++)
		f->waiting[j] = f->waiting[j + 1];
	f->released[r->tenant]++;
	f->running[r - w->reqs] = (struct running){
	    .charge = estimate(w, r->tenant),
	    .epoch = f->epoch + f->moves[r->tenant] };
	charge(f, r->tenant, estimate(w, r->tenant), REL_SCALE_ONE);
}

static void
judge_tenant(const struct fuzz *f, unsigned t)
{
	struct rel_tenant_stat st;
	const struct world *w = f->w;
	__int128 d;

	REL_TenantStat(w->rel, w->tenant[t], &st);
	assert(st.weight == w->weight[t]);
	assert(st.waiting == REL_TenantWaiting(w->tenant[t]));
	if (w->tenant[t]->is_group)
		return;
	assert(st.released == f->released[t]);
	assert(st.cancelled == f->cancelled[t]);
	assert(st.completed == f->completed[t]);
	assert(memcmp(st.estimate, w->estimate[t], sizeof st.estimate) == 0);
	assert(st.dominant == (st.estimate[REL_NET] > st.estimate[REL_CPU] ?
	    REL_NET : REL_CPU));
	d = (__int128)st.charged * REL_SCALE_ONE - f->charged[t];
	assert(d <= (__int128)f->settled[t] * REL_SCALE_ONE);
	assert(-d <= (__int128)f->settled[t] * REL_SCALE_ONE);
	if (w->nwaiting + w->nrunning == 0)
		assert(REL_TenantIdle(w->rel, w->tenant[t]));
}

static void
judge(const struct fuzz *f)
{
	const struct world *w = f->w;
	uint64_t weights = 0;
	unsigned t;

	conform_counts(f->w);
	if (w->fault != NULL) {
		(void)fprintf(stderr, "%s: %s\n",
		    REL_PolicyName(REL_GetPolicy(w->rel)), w->fault);
		abort();
	}
	for (t = 0; t < w->ntenants; t++) {
		judge_tenant(f, t);
		if (w->group[t] == 0 && REL_TenantWaiting(w->tenant[t]) > 0)
			weights += w->weight[t];
	}
	assert(REL_BackloggedWeight(w->rel) == weights);
	assert(REL_Throttled(w->rel) == 0 || f->limited);
	assert(REL_Oldest(w->rel) ==
	    (w->nwaiting > 0 ? f->waiting[0]->node.arrival : -1));
}

/*--------------------------------------------------------------------
 * The bound.  An input that comes nearer to it is worth keeping: libFuzzer
 * looks at these counters as at those of the code.
 */

#define FARTHER		128
static uint8_t farther[FARTHER]
    __attribute__((used, section("__libfuzzer_extra_counters")));

static void
bound_cost(struct fuzz *f, unsigned t, int64_t ns)
{
	double m = (double)ns * REL_WEIGHT_ONE / f->w->weight[t];

	if (m > f->m)
		f->m = m;
}

static void
bound(struct fuzz *f)
{
	double d, most = 2. * (f->w->nslots + 1) * f->m + 2 * QUANTUM_MAX + 2;
	unsigned i, j;

	for (i = 0; i < f->w->ntenants; i++)
		for (j = 0; j < i; j++) {
			d = f->t[i] - f->t[j];
			if (f->w->waiting[i] == 0 || f->w->waiting[j] == 0)
				f->lo[i][j] = f->hi[i][j] = d;
			if (d < f->lo[i][j])
				f->lo[i][j] = d;
			if (d > f->hi[i][j])
				f->hi[i][j] = d;
			d = f->hi[i][j] - f->lo[i][j];
			assert(d <= most);
			farther[(unsigned)(d / most * (FARTHER - 1))] = 1;
		}
}

/*--------------------------------------------------------------------
 * Calls
 */

static unsigned
some_tenant(struct fuzz *f)
{
	return (fuzz_below(&f->in, f->w->ntenants));
}

static uint32_t
some_weight(struct fuzz *f)
{
	return ((uint32_t)fuzz_number_to(&f->in, REL_WEIGHT_MAX - 1) + 1);
}

static void
call_estimate(struct fuzz *f, unsigned t)
{
	int64_t most = f->fair ? FAIR_COST : INT64_MAX, cpu, *e;

	e = f->w->estimate[t];
	cpu = fuzz_number_to(&f->in, most);
	world_estimate(f->w, t, cpu, fuzz_number_to(&f->in, most));
	e[REL_CPU] = clamped(e[REL_CPU], 0);
	e[REL_NET] = clamped(e[REL_NET], 0);
	bound_cost(f, t, estimate(f->w, t));
}

static void
call_tenant(struct fuzz *f)
{
	struct world *w = f->w;
	unsigned t = some_tenant(f);

	if (w->ntenants < TENANTS && (fuzz_byte(&f->in) & 1)) {
		t = world_tenant(w, some_weight(f));
	} else if (REL_TenantIdle(w->rel, w->tenant[t])) {
		world_group(w, t, 0);
		world_renew(w, t, some_weight(f));
		f->released[t] = f->cancelled[t] = f->completed[t] = 0;
		f->charged[t] = 0;
		f->moves[t] = 0;
		f->settled[t] = 0;
	}
	bound_cost(f, t, 1);
}

static int
is_used(const struct world *w, unsigned t)
{
	return (w->tenant[t]->waits + w->tenant[t]->running > 0);
}

/* Two levels, and a group has no requests of its own */
static void
call_group(struct fuzz *f)
{
	struct world *w = f->w;
	unsigned t = some_tenant(f), g = fuzz_below(&f->in, w->ntenants + 1);

	if (f->fair || f->moves[t] >= SWITCHES || w->tenant[t]->is_group ||
	    g == t + 1 || w->group[t] == g)
		return;
	if (g > 0 && (w->group[g - 1] > 0 || (is_used(w, g - 1) &&
	    !w->tenant[g - 1]->is_group)))
		return;
	f->limited = 1;
	f->moves[t] += w->tenant[t]->running > 0;
	world_group(w, t, g);
}

static void
call_enqueue(struct fuzz *f, unsigned t, unsigned n)
{
	struct world *w = f->w;
	struct req *r;

	if (w->tenant[t]->is_group)
		return;
	for (; n > 0 && w->nwaiting + w->nrunning < REQS; n--) {
		FUZZ_OPEN(&w->free[w->nfree - 1]->node, sizeof r->node);
		r = world_enqueue(w, t, 1);
		f->waiting[w->nwaiting - 1] = r;
	}
}

static struct req *
release(struct fuzz *f, unsigned how)
{
	struct world *w = f->w;
	struct req *r;

	if (w->nrunning >= (f->fair ? w->nslots : 2 * SLOTS))
		return (NULL);
	/* A synchronised policy starts anew after a move */
	f->epoch += w->rel->restart && w->nwaiting > 0 &&
	    (how >> 2) % (w->nslots + 1) < w->nslots;
	r = conform_dequeue(w, flags(f), (how >> 2) % (w->nslots + 1),
	    f->fair ? 0 : how & 3);
	if (r == NULL)
		return (NULL);
	dequeued(f, r);
	FUZZ_FENCE(&r->node, sizeof r->node);
	if (f->fair && (how & 1))	/* who waits goes on waiting */
		call_enqueue(f, r->tenant, 1);
	return (r);
}

static struct req *
some_running(struct fuzz *f)
{
	struct req *r;

	if (f->w->nrunning == 0)
		return (NULL);
	r = f->w->running[fuzz_below(&f->in, f->w->nrunning)];
	FUZZ_OPEN(&r->node, sizeof r->node);
	return (r);
}

static uint32_t
some_scale(struct fuzz *f)
{
	switch (fuzz_below(&f->in, 4)) {
	case 0:
		return (5 * REL_SCALE_ONE);
	case 1:			/* sandpaper_sample is 0.001 at least */
		return ((uint32_t)fuzz_number_to(&f->in,
		    1000 * REL_SCALE_ONE));
	default:
		return (REL_SCALE_ONE);
	}
}

static void
complete(struct fuzz *f, struct req *r, int64_t cost, uint32_t scale)
{
	const struct running *run = &f->running[r - f->w->reqs];
	unsigned t = r->tenant;

	FUZZ_OPEN(&r->node, sizeof r->node);
	world_complete(f->w, r, cost, scale);
	FUZZ_FENCE(&r->node, sizeof r->node);
	f->completed[t]++;
	if (cost >= 0 && run->epoch == f->epoch + f->moves[t] &&
	    (f->options & REL_OPT_SETTLE))
		charge(f, t, clamped(cost, 0) - run->charge, scale);
	bound_cost(f, t, cost);
	f->t[t] += (double)cost * REL_WEIGHT_ONE / f->w->weight[t];
}

static void
call_complete(struct fuzz *f)
{
	struct req *r = some_running(f);
	uint32_t scale = REL_SCALE_ONE;
	int64_t cost;

	if (r == NULL)
		return;
	cost = fuzz_number_to(&f->in, f->fair ? FAIR_COST : INT64_MAX);
	if (!f->fair) {
		scale = some_scale(f);
		if (fuzz_below(&f->in, 8) == 7)
			cost = -cost;
	}
	complete(f, r, cost, scale);
}

/* Many requests at once, for sequences that are long though inputs are not */
static void
call_serve(struct fuzz *f)
{
	unsigned n = 1 + fuzz_below(&f->in, 64), how = fuzz_byte(&f->in);
	int64_t cost = fuzz_number_to(&f->in, FAIR_COST);
	struct req *r;

	for (; n > 0 && (r = release(f, how)) != NULL; n--) {
		bound(f);
		complete(f, r, cost, REL_SCALE_ONE);
		bound(f);
	}
}

static void
call_progress(struct fuzz *f)
{
	struct req *r = some_running(f);
	struct running *run;
	int64_t cost;

	if (r == NULL)
		return;
	run = &f->running[r - f->w->reqs];
	if (f->fair || (fuzz_byte(&f->in) & 1)) {
		REL_Progress(f->w->rel, &r->node, REL_CPU, f->w->now);
		REL_Progress(f->w->rel, &r->node, REL_NET, f->w->now);
		run->sent = 1;
	} else {
		cost = fuzz_number(&f->in);
		REL_Refresh(f->w->rel, &r->node, cost, f->w->now);
		cost = clamped(cost, 0);
		if (cost > run->charge &&
		    run->epoch == f->epoch + f->moves[r->tenant] &&
		    (f->options & REL_OPT_SETTLE)) {
			charge(f, r->tenant, cost - run->charge,
			    REL_SCALE_ONE);
			run->charge = cost;
		}
	}
	FUZZ_FENCE(&r->node, sizeof r->node);
}

static void
call_cancel(struct fuzz *f)
{
	struct world *w = f->w;
	struct req *r;
	unsigned i;

	if (w->nwaiting == 0)
		return;
	i = fuzz_below(&f->in, w->nwaiting);
	r = f->waiting[i];
	f->cancelled[r->tenant]++;
	world_cancel(w, r);
	FUZZ_FENCE(&r->node, sizeof r->node);
	for (; i < w->nwaiting; i++)
		f->waiting[i] = f->waiting[i + 1];
}

/* A request that does not wait: it has no charge before its completion */
static void
call_run(struct fuzz *f, unsigned t)
{
	struct world *w = f->w;
	struct req *r;

	if (w->tenant[t]->is_group || w->nrunning >= 2 * SLOTS ||
	    w->nwaiting + w->nrunning >= REQS)
		return;
	FUZZ_OPEN(&w->free[w->nfree - 1]->node, sizeof r->node);
	r = world_run(w, t, 1);
	f->released[t]++;
	f->running[r - w->reqs] = (struct running){
	    .epoch = f->epoch + f->moves[t], .sent = 1 };
	FUZZ_FENCE(&r->node, sizeof r->node);
}

static void
call_charge(struct fuzz *f)
{
	unsigned t = some_tenant(f);
	int64_t cost = fuzz_number(&f->in);

	if (f->fair)
		return;
	if (cost % 4 == 3) {
		call_run(f, t);
		return;
	}
	REL_Charge(f->w->rel, f->w->tenant[t], cost, f->w->now);
	charge(f, t, clamped(cost, 0), REL_SCALE_ONE);
}

static void
call_weight(struct fuzz *f)
{
	unsigned t = some_tenant(f);
	uint32_t weight = some_weight(f);

	if (f->fair)
		return;
	if (fuzz_byte(&f->in) & 1) {
		f->limited = 1;
		REL_SetLimits(f->w->rel, f->w->tenant[t], weight >> 10 &
		    (REL_PART_ONE - 1), weight & (REL_PART_ONE - 1),
		    f->w->now);
		return;
	}
	f->w->weight[t] = weight;
	REL_SetWeight(f->w->rel, f->w->tenant[t], weight);
}

static void
call_slots(struct fuzz *f)
{
	unsigned n = 1 + fuzz_below(&f->in, SLOTS);

	if (f->fair)
		return;
	f->w->nslots = n;
	REL_SetSlots(f->w->rel, n);
	/* Accounts start anew, so where it matters only */
	n = 1 + n % REL_FLOWS_MAX;
	if (REL_GetPolicy(f->w->rel) != (unsigned)REL_PolicyByName("mr3-vf") ||
	    f->epoch >= SWITCHES)
		return;
	f->epoch += n != f->flows;
	REL_SetFlows(f->w->rel, f->flows = n);
}

static void
call_switch(struct fuzz *f)
{
	unsigned how = fuzz_byte(&f->in), before, o;
	struct rel *rel = f->w->rel;

	if (f->epoch >= SWITCHES)
		return;
	if (how & 1) {
		o = (how >> 1) & REL_OPT_ALL;
		f->epoch += o != f->options;
		REL_SetOptions(rel, f->options = o);
		return;
	}
	how = (how >> 1) % (REL_Policies() + 1);
	before = REL_GetPolicy(rel);
	if (REL_SetPolicy(rel, how, f->w->now) == 0) {
		assert(REL_GetPolicy(rel) == how);
		f->epoch += how != before;
	} else
		assert(how == REL_Policies() && REL_GetPolicy(rel) == before);
}

static void
call(struct fuzz *f)
{
	unsigned t;

	f->w->now++;
	switch (fuzz_below(&f->in, 17)) {
	case 0:
	case 1:
		call_enqueue(f, some_tenant(f), 1);
		break;
	case 2:
		t = some_tenant(f);
		call_enqueue(f, t, 1 + fuzz_below(&f->in, 16));
		break;
	case 3:
		call_estimate(f, some_tenant(f));
		break;
	case 4:
		call_charge(f);
		break;
	case 5:
		call_weight(f);
		break;
	case 6:
		call_tenant(f);
		break;
	case 7:
		call_cancel(f);
		break;
	case 8:
		if (f->fair)
			call_serve(f);
		else
			call_switch(f);
		break;
	case 9:
		call_slots(f);
		break;
	case 10:
		call_progress(f);
		break;
	case 11:
	case 12:
		call_complete(f);
		break;
	case 13:
		f->w->now += fuzz_number_to(&f->in, NOW_MAX - f->w->now);
		break;
	case 14:
		call_group(f);
		break;
	default:
		(void)release(f, fuzz_byte(&f->in));
		break;
	}
}

/*--------------------------------------------------------------------*/

static void
open_all(struct fuzz *f)
{
	unsigned i;

	for (i = 0; i < WORLD_REQS; i++)
		FUZZ_OPEN(&f->w->reqs[i].node, sizeof f->w->reqs[i].node);
}

static uint64_t
run(const uint8_t *data, size_t size)
{
	static struct fuzz fuzz;
	struct fuzz *f = &fuzz;
	unsigned how, policy, slots, t;
	uint64_t hash;

	memset(f, 0, sizeof *f);
	f->in = (struct fuzz_in){ .p = data, .left = size };
	how = fuzz_byte(&f->in);
	policy = fuzz_below(&f->in, REL_Policies());
	slots = 1 + fuzz_below(&f->in, SLOTS);
	f->fair = how & FAIR;
	f->options = ~how & REL_OPT_ALL;
	if (f->fair) {
		f->options = REL_OPT_ALL;
		policy = (unsigned)REL_PolicyByName("mr3-rs");
	}
	f->flows = REL_FLOWS;
	f->w = world_new(REL_New(policy, slots, f->options, NULL, NULL),
	    slots, 0);
	if (how & LONG)
		REL_SetRound(f->w->rel, (int64_t)QUANTUM_MAX);
	(void)world_tenant(f->w, some_weight(f));
	bound_cost(f, 0, 1);
	while (f->in.left > 0) {
		call(f);
		judge(f);
		if (f->fair)
			bound(f);
	}
	open_all(f);
	for (t = 0; f->limited && t < f->w->ntenants; t++)
		REL_SetLimits(f->w->rel, f->w->tenant[t], 0, 0, f->w->now);
	conform_drain(f->w);
	if (f->w->fault == NULL && REL_Waiting(f->w->rel) +
	    REL_Running(f->w->rel) > 0)
		f->w->fault = "lost";
	if (f->w->fault != NULL) {
		(void)fprintf(stderr, "at the end: %s\n", f->w->fault);
		abort();
	}
	hash = f->w->hash;
	world_free(&f->w);
	return (hash);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t hash = run(data, size);

	if (size > 0 && (data[0] & TWICE))
		assert(run(data, size) == hash);
	return (0);
}
