/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Long random runs through all of releaser.h, and what each policy answers.
 * The same calls give the same answers everywhere and at any time: a line of
 * tests/trace/runs.txt has a policy, a kind of run, and the hash of all
 * answers and accounts.  The test prints the lines that differ.  If a change of
 * decisions is meant, put them there.
 *
 * Costs and times of a run are small multiples of one unit, so that ties and
 * equal tags are frequent.
 */

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rel_world.h"

#define TENANTS		10
#define GROUPS		2		/* of the tenants, the first ones */
#define SLOTS		4
#define REQUESTS	48
#define STEPS		10000
#define FNV_PRIME	UINT64_C(0x100000001b3)

struct kind {
	const char		*name;
	int64_t			unit;		/* ns */
	unsigned		options;
	int			odd;		/* weights, scales, costs */
	int			groups, limits, closed, extremes, settings;
};

struct request {
	struct rel_node		node;
	unsigned		tenant;
	int64_t			cost;
};

struct run {
	const struct kind	*kind;
	struct rel		*rel;
	struct rel_tenant	*tenant[TENANTS];
	struct request		request[REQUESTS];
	unsigned		held[TENANTS];	/* requests, wait or run */
	uint64_t		rng, hash;
	int64_t			now;
};

static unsigned
below(struct run *r, unsigned n)
{
	return ((unsigned)rng_below(&r->rng, n));
}

static void
hash(struct run *r, uint64_t x)
{
	r->hash = (r->hash ^ x) * FNV_PRIME;
	r->hash ^= r->hash >> 29;
}

static int64_t
a_cost(struct run *r)
{
	int64_t ns = (1 + below(r, 4)) * r->kind->unit;

	if (r->kind->odd)
		ns += below(r, 1000) * r->kind->unit / 997;
	if (r->kind->extremes && below(r, 40) == 0)
		return (below(r, 2) ? REL_COST_MAX : REL_COST_MAX * 3);
	return (ns);
}

static uint32_t
a_weight(struct run *r)
{
	static const uint32_t even[] = { REL_WEIGHT_ONE / 2, REL_WEIGHT_ONE,
	    REL_WEIGHT_ONE, 2 * REL_WEIGHT_ONE };

	if (r->kind->extremes && below(r, 8) == 0)
		return (below(r, 2) ? 1 : REL_WEIGHT_MAX);
	return (r->kind->odd ? 300 + below(r, 3000) : even[below(r, 4)]);
}

static uint32_t
a_scale(struct run *r)
{
	if (r->kind->odd)
		return (REL_SCALE_ONE + below(r, 5 * REL_SCALE_ONE));
	return (below(r, 3) ? REL_SCALE_ONE : 2 * REL_SCALE_ONE);
}

/* One that waits, or runs, or with 0, 0 is idle: the first from a random one
 * on, or NULL */
static struct request *
find(struct run *r, int waits, int runs)
{
	unsigned from = below(r, REQUESTS), i;
	struct request *q;

	for (i = 0; i < REQUESTS; i++) {
		q = &r->request[(from + i) % REQUESTS];
		if (waits && REL_IsBacklogged(&q->node))
			return (q);
		if (runs && q->node.state == REL_RUNNING)
			return (q);
		if (!waits && !runs && q->node.state == REL_IDLE)
			return (q);
	}
	return (NULL);
}

static void
estimate(struct run *r, unsigned t)
{
	int64_t ns[REL__RESOURCES];

	ns[REL_CPU] = a_cost(r);
	ns[REL_NET] = below(r, 3) == 0 ? a_cost(r) : a_cost(r) / 4;
	if (r->kind->extremes && below(r, 10) == 0)
		ns[below(r, 2)] = -5;
	REL_SetEstimate(r->rel, r->tenant[t], ns);
}

static void
enqueue(struct run *r)
{
	unsigned t = GROUPS + below(r, TENANTS - GROUPS);
	struct request *q = find(r, 0, 0);

	/* Now all of them, now only a few have requests */
	if (r->now / r->kind->unit / 64 % 3 == 0)
		t = GROUPS + t % 3;
	if (q == NULL)
		return;
	if (below(r, 4) == 0)
		estimate(r, t);
	memset(q, 0, sizeof *q);
	q->tenant = t;
	q->cost = a_cost(r);
	r->held[t]++;
	REL_Enqueue(r->rel, r->tenant[t], &q->node, r->now);
}

static void
dequeue(struct run *r)
{
	unsigned closed = 0;
	struct rel_node *n;
	enum rel_answer a;
	int64_t when;

	if (r->kind->closed && r->now / r->kind->unit / 16 % 2)
		closed = below(r, 4) ? REL_MASK(REL_NET) : below(r, 4);
	a = REL_Dequeue(r->rel, r->now, below(r, SLOTS + (below(r, 32) == 0)),
	    closed, &n, &when);
	hash(r, a);
	if (a == REL_NOT_YET)
		hash(r, (uint64_t)when);
	if (a != REL_RELEASED)
		return;
	hash(r, (uint64_t)(LIST_OF(n, struct request, node) - r->request));
	hash(r, (uint64_t)n->charge);
	hash(r, rel_top(n)->weight);
	if (REL_Synchronised(r->rel) && below(r, 4))
		REL_Progress(r->rel, n, REL_CPU, r->now);
}

static void
complete(struct run *r)
{
	struct request *q = find(r, 0, 1);

	if (q == NULL)
		return;
	r->held[q->tenant]--;
	REL_Complete(r->rel, &q->node, below(r, 8) ? q->cost : -1, a_scale(r),
	    r->now);
}

static void
of_a_request(struct run *r)
{
	struct request *q;

	switch (below(r, 6)) {
	case 0:
		q = find(r, 1, 0);
		if (q == NULL)
			return;
		r->held[q->tenant]--;
		REL_Cancel(r->rel, &q->node, r->now);
		return;
	case 1:
	case 2:
		q = find(r, 0, 1);
		if (q != NULL)
			REL_Progress(r->rel, &q->node, below(r, 2) ? REL_CPU :
			    REL_NET, r->now);
		return;
	default:
		q = find(r, 0, 1);
		if (q != NULL)
			REL_Refresh(r->rel, &q->node, a_cost(r), r->now);
	}
}

/* The tenant goes, if it may, and another one comes */
static void
renew(struct run *r, unsigned t)
{
	if (r->held[t] > 0 || t < GROUPS)
		return;
	REL_SetGroup(r->rel, r->tenant[t], NULL, r->now);
	REL_SetLimits(r->rel, r->tenant[t], 0, 0, r->now);
	REL_TenantFini(r->rel, r->tenant[t]);
	memset(r->tenant[t], 0xa5, REL_TenantSize());
	r->tenant[t] = REL_TenantInit(r->rel, r->tenant[t], a_weight(r));
	estimate(r, t);
}

static void
of_a_tenant(struct run *r)
{
	const struct kind *k = r->kind;
	unsigned t = below(r, TENANTS), what = below(r, 8), g;

	if (what < 2)
		REL_Charge(r->rel, r->tenant[t], a_cost(r), r->now);
	else if (what == 2)
		REL_SetWeight(r->rel, r->tenant[t], a_weight(r));
	else if (what == 3)
		renew(r, t);
	else if (what == 4 && k->groups && t >= GROUPS) {
		g = below(r, GROUPS + 1);
		REL_SetGroup(r->rel, r->tenant[t],
		    g < GROUPS ? r->tenant[g] : NULL, r->now);
	} else if (what >= 5 && k->limits)
		REL_SetLimits(r->rel, r->tenant[t],
		    below(r, 2) ? below(r, REL_PART_ONE / 3) : 0,
		    below(r, 2) ? REL_PART_ONE / (1 + below(r, 8)) : 0,
		    r->now);
	else
		estimate(r, t);
}

static void
of_all(struct run *r)
{
	if (!r->kind->settings)
		return;
	switch (below(r, 6)) {
	case 0:
		REL_SetOptions(r->rel, r->kind->options ^ (below(r, 2) ?
		    1U << below(r, 6) : 0));
		break;
	case 1:
		REL_SetFlows(r->rel, 1 + below(r, REL_FLOWS_MAX));
		break;
	case 2:
		REL_SetSlots(r->rel, 1 + below(r, SLOTS));
		break;
	default:
		REL_SetRound(r->rel, below(r, 20) * r->kind->unit);
	}
}

static void
look(struct run *r)
{
	const struct rel_node *first;
	struct rel_tenant_stat st;
	unsigned t;

	hash(r, REL_Waiting(r->rel));
	hash(r, REL_Throttled(r->rel));
	hash(r, REL_Running(r->rel));
	hash(r, REL_Backlogged(r->rel));
	hash(r, REL_BackloggedWeight(r->rel));
	hash(r, (uint64_t)REL_Oldest(r->rel));
	for (t = 0; t < TENANTS; t++) {
		REL_TenantStat(r->rel, r->tenant[t], &st);
		hash(r, st.waiting * 1000 + st.running);
		hash(r, st.dominant);
		first = REL_TenantFirst(r->tenant[t]);
		hash(r, first == NULL ? UINT64_MAX : (uint64_t)first->arrival);
		hash(r, (uint64_t)st.account);
		hash(r, (uint64_t)st.charged);
		hash(r, st.enqueued + st.released + st.cancelled +
		    st.completed);
		hash(r, (uint64_t)REL_TenantIdle(r->rel, r->tenant[t]));
		hash(r, REL_GroupWaiting(r->tenant[t]));
		hash(r, REL_GroupPart(r->tenant[t], 100));
		hash(r, (uint64_t)(REL_Share(r->rel, r->tenant[t]) * 1e6));
		hash(r, first == NULL ? 0 : (uint64_t)first->arrival);
	}
}

static void
step(struct run *r)
{
	unsigned what = below(r, 100);

	if (below(r, 2))
		r->now += below(r, 3) * r->kind->unit;
	if (r->kind->extremes && below(r, 500) == 0)
		r->now += INT64_C(1) << 45;
	if (what < 32)
		enqueue(r);
	else if (what < 62)
		dequeue(r);
	else if (what < 86)
		complete(r);
	else if (what < 92)
		of_a_request(r);
	else if (what < 97)
		of_a_tenant(r);
	else if (what < 98)
		of_all(r);
	else
		look(r);
}

static void
begin(struct run *r, const struct kind *k, unsigned policy)
{
	unsigned t;

	memset(r, 0, sizeof *r);
	r->kind = k;
	r->now = 1000 * k->unit;
	r->rng = 1;
	r->rel = REL_New(policy, SLOTS, k->options, NULL, NULL);
	assert_non_null(r->rel);
	for (t = 0; t < TENANTS; t++) {
		r->tenant[t] = REL_TenantInit(r->rel, aligned_alloc(64,
		    (REL_TenantSize() + 63) & ~(size_t)63), a_weight(r));
		estimate(r, t);
	}
	for (t = GROUPS; k->groups && t < TENANTS; t += 2)
		REL_SetGroup(r->rel, r->tenant[t], r->tenant[t / 2 % GROUPS],
		    r->now);
}

static void
end(struct run *r)
{
	struct request *q;
	unsigned t;

	while ((q = find(r, 1, 0)) != NULL)
		REL_Cancel(r->rel, &q->node, r->now);
	while ((q = find(r, 0, 1)) != NULL)
		REL_Complete(r->rel, &q->node, -1, REL_SCALE_ONE, r->now);
	look(r);
	for (t = 0; t < TENANTS; t++)
		REL_SetGroup(r->rel, r->tenant[t], NULL, r->now);
	for (t = 0; t < TENANTS; t++) {
		REL_TenantFini(r->rel, r->tenant[t]);
		free(r->tenant[t]);
	}
	REL_Destroy(&r->rel);
}

static uint64_t
answers(const struct kind *k, unsigned policy)
{
	static struct run r;
	unsigned i;

	begin(&r, k, policy);
	for (i = 0; i < STEPS; i++)
		step(&r);
	end(&r);
	return (r.hash);
}

/* What runs.txt says; 0: nothing */
static uint64_t
expected(const char *policy, const char *kind)
{
	const char *top = getenv("srcdir");
	char line[256], p[64], k[64];
	uint64_t h = 0, x;
	FILE *f;

	(void)snprintf(line, sizeof line, "%s/tests/trace/runs.txt",
	    top == NULL ? "." : top);
	f = fopen(line, "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f) != NULL)
		if (sscanf(line, "%63s %63s %" SCNx64, p, k, &x) == 3 &&
		    !strcmp(p, policy) && !strcmp(k, kind))
			h = x;
	(void)fclose(f);
	return (h);
}

#define MS	INT64_C(1000000)
#define ALL	REL_OPT_ALL

static const struct kind kinds[] = {
	{ "plain", 1, ALL, .settings = 1 },
	{ "ties", 1024, ALL, .closed = 1 },
	{ "odd", MS / 7, ALL, .odd = 1, .closed = 1, .settings = 1 },
	{ "groups", 1024, ALL, .groups = 1, .closed = 1 },
	{ "limits", 2 * MS, ALL, .limits = 1, .closed = 1 },
	{ "both", MS, ALL, .odd = 1, .groups = 1, .limits = 1, .closed = 1,
	  .settings = 1 },
	{ "extremes", MS, ALL, .odd = 1, .groups = 1, .limits = 1,
	  .extremes = 1, .settings = 1 },
	{ "paper", 1024, REL_OPT_PAPER, .closed = 1, .settings = 1 },
};

static void
test_run(void **state)
{
	const struct kind *k = *state;
	unsigned u, differ = 0;
	uint64_t h;

	for (u = 0; u < REL_Policies(); u++) {
		h = answers(k, u);
		if (h == expected(REL_PolicyName(u), k->name))
			continue;
		print_message("%s %s %016" PRIx64 "\n", REL_PolicyName(u),
		    k->name, h);
		differ++;
	}
	assert_int_equal(differ, 0);
}

int
main(void)
{
	struct CMUnitTest tests[sizeof kinds / sizeof kinds[0]];
	size_t i;

	for (i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		tests[i] = (struct CMUnitTest){ kinds[i].name, test_run, NULL,
		    NULL, (void *)(uintptr_t)&kinds[i] };
	return (_cmocka_run_group_tests("runs", tests,
	    sizeof tests / sizeof tests[0], NULL, NULL));
}
