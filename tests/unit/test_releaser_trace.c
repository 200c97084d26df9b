/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * A trace and what each policy decides on it: the simulator runs the same
 * (sim/tests/test_trace.py), and both have to come to tests/trace/decisions.txt,
 * a line a policy: its name and the hash of its decisions.
 *
 * Four threads; a request occupies one for its cpu ns.  Weights are 1/2, 1 and
 * 2 in turn.  Costs and estimates are account.c's, by the policy's own
 * estimator or the paper's; rounds are varnishd's.  Costs are refreshed every
 * 10 ms.  What happens at one instant happens before the idle threads, in
 * order, ask for their next request.  A decision is (time, thread, tenant).
 */

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "perfctr/account.h"
#include "policy.h"

#define REQUESTS	4000
#define TENANTS		12
#define THREADS		4
#define REFRESH		INT64_C(10000000)	/* ns */
#define ROUND		4000000		/* ns, sandpaper_round's default */
#define FNV_PRIME	UINT64_C(0x100000001b3)
#define FNV_BASIS	UINT64_C(0xcbf29ce484222325)

struct request {
	struct rel_node		node;
	int64_t			arrival;
	unsigned		tenant;
	int64_t			cost[REL__RESOURCES];
};

struct run {
	struct rel		*rel;
	struct acc_costs	costs;
	struct rel_tenant	*tenant[TENANTS];
	struct acc_key		key[TENANTS];
	struct account		account[TENANTS];
	int			begun[TENANTS];
	struct request		*on[THREADS];
	int64_t			began[THREADS];
	uint64_t		hash;
};

static struct request requests[REQUESTS];
static unsigned nrequests;

static FILE *
trace_file(const char *name)
{
	const char *top = getenv("srcdir");
	char path[1024];
	FILE *f;

	(void)snprintf(path, sizeof path, "%s/tests/trace/%s",
	    top == NULL ? "." : top, name);
	f = fopen(path, "r");
	assert_non_null(f);
	return (f);
}

static void
read_arrivals(void)
{
	FILE *f = trace_file("arrivals.csv");
	struct request *q;
	char line[256];

	while (fgets(line, sizeof line, f) != NULL) {
		if (line[0] < '0' || line[0] > '9')
			continue;
		assert_true(nrequests < REQUESTS);
		q = &requests[nrequests++];
		assert_int_equal(sscanf(line, "%" SCNd64 ",%u,%" SCNd64
		    ",%" SCNd64, &q->arrival, &q->tenant, &q->cost[REL_CPU],
		    &q->cost[REL_NET]), 4);
		assert_true(q->tenant < TENANTS);
	}
	(void)fclose(f);
}

static void
estimate(struct run *r, unsigned t)
{
	int64_t ns[REL__RESOURCES];
	unsigned i;

	for (i = 0; i < REL__RESOURCES; i++)
		ns[i] = ACC_Value(&r->costs, &r->key[t], i);
	ACC_Next(&r->account[t], ns);
	REL_SetEstimate(r->rel, r->tenant[t], ns);
}

static void
arrive(struct run *r, struct request *q, int64_t now)
{
	memset(&q->node, 0, sizeof q->node);
	if (!r->begun[q->tenant])
		estimate(r, q->tenant);
	r->begun[q->tenant] = 1;
	REL_Enqueue(r->rel, r->tenant[q->tenant], &q->node, now);
}

static void
end(struct run *r, unsigned thread, int64_t now)
{
	struct request *q = r->on[thread];
	struct account *a = &r->account[q->tenant];
	int64_t cost;
	unsigned i;

	r->on[thread] = NULL;
	cost = ACC_Settle(a, q->cost[REL_CPU], q->cost[REL_NET]);
	REL_Complete(r->rel, &q->node, cost, ACC_Scale(a, REL_SCALE_ONE), now);
	for (i = 0; i < REL__RESOURCES; i++)
		ACC_Sample(&r->costs, &r->key[q->tenant], i, q->cost[i]);
	estimate(r, q->tenant);
}

/* Bytes, the least significant first (FNV-1a) */
static void
hash(struct run *r, uint64_t x)
{
	unsigned i;

	for (i = 0; i < 8; i++, x >>= 8)
		r->hash = (r->hash ^ (x & 0xff)) * FNV_PRIME;
}

static void
ask(struct run *r, unsigned thread, int64_t now)
{
	struct rel_node *n;
	struct request *q;
	int64_t when;

	if (REL_Dequeue(r->rel, now, thread, 0, &n, &when) != REL_RELEASED)
		return;
	q = LIST_OF(n, struct request, node);
	r->on[thread] = q;
	r->began[thread] = now;
	hash(r, (uint64_t)now);
	hash(r, thread);
	hash(r, q->tenant);
}

/* The next instant at which something happens */
static int64_t
next(const struct run *r, unsigned arrived, int64_t tick)
{
	int64_t t = tick, e;
	unsigned i;

	if (arrived < nrequests && requests[arrived].arrival < t)
		t = requests[arrived].arrival;
	for (i = 0; i < THREADS; i++) {
		if (r->on[i] == NULL)
			continue;
		e = r->began[i] + r->on[i]->cost[REL_CPU];
		if (e < t)
			t = e;
	}
	return (t);
}

static void
go(struct run *r)
{
	int64_t now, tick = REFRESH;
	unsigned arrived = 0, i, things;

	while (arrived < nrequests || REL_Waiting(r->rel) > 0 ||
	    REL_Running(r->rel) > 0) {
		now = next(r, arrived, tick);
		things = 0;
		for (i = 0; i < THREADS; i++)
			if (r->on[i] != NULL && now == r->began[i] +
			    r->on[i]->cost[REL_CPU]) {
				end(r, i, now);
				things++;
			}
		if (arrived < nrequests && now == requests[arrived].arrival)
			things++;
		while (arrived < nrequests && now == requests[arrived].arrival)
			arrive(r, &requests[arrived++], now);
		if (now == tick) {
			for (i = 0; i < THREADS; i++)
				if (r->on[i] != NULL)
					REL_Refresh(r->rel, &r->on[i]->node,
					    ACC_SoFar(&r->account[
					    r->on[i]->tenant],
					    now - r->began[i]), now);
			tick += REFRESH;
			things++;
		}
		assert_int_equal(things, 1);
		for (i = 0; i < THREADS; i++)
			if (r->on[i] == NULL)
				ask(r, i, now);
	}
}

static void
begin(struct run *r, unsigned policy)
{
	static const uint32_t weight[] = { REL_WEIGHT_ONE / 2, REL_WEIGHT_ONE,
	    REL_WEIGHT_ONE * 2 };
	const char *own;
	unsigned t;

	memset(r, 0, sizeof *r);
	r->hash = FNV_BASIS;
	own = REL_PolicyEstimator(policy, &r->costs.alpha);
	if (own == NULL) {
		own = "ewma";
		r->costs.alpha = 58982;		/* 0.9 */
	}
	r->costs.estimator = (unsigned)EST_ByName(own);
	r->rel = REL_New(policy, THREADS, REL_OPT_ALL, NULL, NULL);
	assert_non_null(r->rel);
	REL_SetRound(r->rel, ROUND);
	for (t = 0; t < TENANTS; t++)
		r->tenant[t] = REL_TenantInit(r->rel, aligned_alloc(64,
		    (REL_TenantSize() + 63) & ~(size_t)63), weight[t % 3]);
}

static uint64_t
decide(unsigned policy)
{
	struct run r;
	unsigned t;

	begin(&r, policy);
	go(&r);
	for (t = 0; t < TENANTS; t++) {
		REL_TenantFini(r.rel, r.tenant[t]);
		free(r.tenant[t]);
	}
	REL_Destroy(&r.rel);
	return (r.hash);
}

/* What decisions.txt says; 0: nothing */
static uint64_t
expected(const char *policy)
{
	FILE *f = trace_file("decisions.txt");
	uint64_t h = 0, x;
	char line[256], name[64];

	while (fgets(line, sizeof line, f) != NULL)
		if (sscanf(line, "%63s %" SCNx64, name, &x) == 2 &&
		    !strcmp(name, policy))
			h = x;
	(void)fclose(f);
	return (h);
}

static void
test_decisions(void **priv)
{
	unsigned u, differ = 0;
	uint64_t h;

	(void)priv;
	read_arrivals();
	for (u = 0; u < REL_Policies(); u++) {
		h = decide(u);
		print_message("%s %016" PRIx64 "\n", REL_PolicyName(u), h);
		differ += h != expected(REL_PolicyName(u));
	}
	assert_int_equal(differ, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_decisions),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
