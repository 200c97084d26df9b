/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The largest costs and the smallest weights, for so long that every account
 * would overflow if it only grew: shares stay what they are.
 */

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policy.h"

#define TENANTS		3
#define DEPTH		4		/* requests of each, always */
#define WINDOW		600		/* releases, in which shares must hold */
#define SLACK		(2 * REL_FLOWS)	/* mr3-vf: a request of each flow */
#define WINDOWS		40		/* of 2^52 virtual ns a release: 2^64 */

struct request {
	struct rel_node		node;
	unsigned		tenant;
};

static struct rel *rel;
static struct rel_tenant *tenant[TENANTS], *group;
static struct request request[TENANTS][DEPTH];
static int64_t now;

static struct rel_tenant *
new_tenant(uint32_t weight)
{
	static const int64_t most[REL__RESOURCES] = {
		[REL_CPU] = REL_COST_MAX };
	struct rel_tenant *t;

	t = REL_TenantInit(rel, aligned_alloc(64, (REL_TenantSize() + 63) &
	    ~(size_t)63), weight);
	REL_SetEstimate(rel, t, most);
	return (t);
}

static void
begin(unsigned policy, const uint32_t weight[TENANTS])
{
	unsigned t, i;

	now = 1;
	rel = REL_New(policy, 1, REL_OPT_ALL, NULL, NULL);
	group = new_tenant(1);
	memset(request, 0, sizeof request);
	for (t = 0; t < TENANTS; t++) {
		tenant[t] = new_tenant(weight[t]);
		for (i = 0; i < DEPTH; i++) {
			request[t][i].tenant = t;
			REL_Enqueue(rel, tenant[t], &request[t][i].node, now);
		}
	}
}

static void
end(void)
{
	unsigned t, i;

	for (t = 0; t < TENANTS; t++) {
		for (i = 0; i < DEPTH; i++)
			REL_Cancel(rel, &request[t][i].node, now);
		REL_SetGroup(rel, tenant[t], NULL, now);
		REL_TenantFini(rel, tenant[t]);
		assert_int_not_equal(tenant[t]->magic, REL_TENANT_MAGIC);
		free(tenant[t]);
	}
	REL_TenantFini(rel, group);
	free(group);
	REL_Destroy(&rel);
}

/* One request is served, and comes again; whose */
static unsigned
serve(void)
{
	struct rel_node *n;
	struct request *q;
	int64_t when;

	now += 1000;
	assert_int_equal(REL_Dequeue(rel, now, 0, 0, &n, &when), REL_RELEASED);
	q = LIST_OF(n, struct request, node);
	REL_Progress(rel, n, REL_CPU, now);
	REL_Complete(rel, n, REL_COST_MAX, REL_SCALE_ONE, now);
	REL_Enqueue(rel, tenant[q->tenant], n, now);
	return (q->tenant);
}

static void
shares(const char *name, const uint32_t weight[TENANTS])
{
	unsigned served[TENANTS], w, i, t, all = 0, want;

	for (t = 0; t < TENANTS; t++)
		all += weight[t];
	for (w = 0; w < WINDOWS; w++) {
		memset(served, 0, sizeof served);
		for (i = 0; i < WINDOW; i++)
			served[serve()]++;
		for (t = 0; t < TENANTS; t++) {
			want = WINDOW * weight[t] / all;
			if (served[t] + SLACK < want ||
			    served[t] > want + SLACK)
				fail_msg("%s: tenant %u has %u of %u in "
				    "window %u", name, t, served[t], want, w);
		}
	}
}

static void
test_equal(void **state)
{
	static const uint32_t weight[TENANTS] = { 1, 1, 1 };
	unsigned u;

	(void)state;
	for (u = 0; u < REL_Policies(); u++) {
		begin(u, weight);
		shares(REL_PolicyName(u), weight);
		end();
	}
}

/* All but two policies know weights */
static void
test_weights(void **state)
{
	static const uint32_t weight[TENANTS] = { 1, 2, 3 };
	const char *name;
	unsigned u;

	(void)state;
	for (u = 0; u < REL_Policies(); u++) {
		name = REL_PolicyName(u);
		if (!strcmp(name, "fifo") || !strcmp(name, "round-robin"))
			continue;
		begin(u, weight);
		shares(name, weight);
		end();
	}
}

/* Members of a group have its service by their weights */
static void
test_group(void **state)
{
	static const uint32_t weight[TENANTS] = { 1, 2, 3 };
	unsigned t;

	(void)state;
	begin((unsigned)REL_PolicyByName("wfq"), weight);
	for (t = 0; t < TENANTS; t++)
		REL_SetGroup(rel, tenant[t], group, now);
	shares("group", weight);
	end();
}

/* A releaser leaves no memory behind */
static void
test_destroy(void **state)
{
	struct mallinfo2 before, after;
	struct rel *r;
	int i;

	(void)state;
	r = REL_New(0, 1, REL_OPT_ALL, NULL, NULL);
	REL_Destroy(&r);
	before = mallinfo2();
	for (i = 0; i < 100; i++) {
		r = REL_New(0, 1, REL_OPT_ALL, NULL, NULL);
		REL_Destroy(&r);
		assert_null(r);
	}
	after = mallinfo2();
	assert_true(after.uordblks < before.uordblks + 100);
}

static void
count(void *priv)
{

	++*(unsigned *)priv;
}

/* These functions ask whether the lock is held */
static void
test_held(void **state)
{
	_Alignas(64) static char mem[2][4096];
	struct rel_tenant *t, *g;
	unsigned calls = 0;
	struct rel *r;

	(void)state;
	assert_true(REL_TenantSize() <= sizeof mem[0]);
	r = REL_New(0, 1, REL_OPT_ALL, count, &calls);
	t = REL_TenantInit(r, mem[0], REL_WEIGHT_ONE);
	g = REL_TenantInit(r, mem[1], REL_WEIGHT_ONE);
	calls = 0;
	REL_SetRound(r, 5);
	assert_int_equal(calls, 1);
	REL_SetFlows(r, 3);
	assert_int_equal(calls, 2);
	REL_SetLimits(r, t, 5, 6, 0);
	assert_int_equal(calls, 3);
	REL_SetGroup(r, t, g, 0);
	assert_int_equal(calls, 4);
	REL_SetGroup(r, t, NULL, 0);
	REL_TenantFini(r, t);
	REL_TenantFini(r, g);
	REL_Destroy(&r);
}

/* The policy is the one that was chosen, or none of the table */
static void
test_policy(void **state)
{
	static struct rel_policy other;
	struct rel *r;
	unsigned u;

	(void)state;
	for (u = 0; u < REL_Policies(); u++) {
		r = REL_New(u, 1, REL_OPT_ALL, NULL, NULL);
		assert_int_equal(REL_GetPolicy(r), u);
		assert_int_equal(REL_SetPolicy(r, REL_Policies() - 1 - u, 0),
		    0);
		assert_int_equal(REL_GetPolicy(r), REL_Policies() - 1 - u);
		REL_Destroy(&r);
	}
	other = rel_policy_fifo;
	r = rel_new(&other, 1, REL_OPT_ALL, NULL, NULL);
	assert_int_equal(REL_GetPolicy(r), REL_Policies());
	REL_Destroy(&r);
}

/* A request is charged 1 ns at least, and settled to what it cost */
static void
test_no_cost(void **state)
{
	static const uint32_t weight[TENANTS] = { 1, 1, 1 };
	static const int64_t none[REL__RESOURCES];
	struct rel_tenant_stat st;
	struct rel_node *n;
	int64_t when;

	(void)state;
	begin((unsigned)REL_PolicyByName("fifo"), weight);
	REL_SetEstimate(rel, tenant[0], none);
	request[0][0].node.reserved = REL_BY_TENANT;	/* of an earlier use */
	assert_int_equal(REL_Dequeue(rel, now, 0, 0, &n, &when), REL_RELEASED);
	assert_ptr_equal(n, &request[0][0].node);
	assert_int_equal(n->charge, 1);
	assert_int_equal(n->reserved, REL_NOT_RESERVED);
	REL_TenantStat(rel, tenant[0], &st);
	assert_int_equal(st.charged, 1);
	REL_Complete(rel, n, 0, REL_SCALE_ONE, now);
	REL_Charge(rel, tenant[0], 0, now);
	REL_TenantStat(rel, tenant[0], &st);
	assert_int_equal(st.charged, 0);
	REL_Enqueue(rel, tenant[0], n, now);
	end();
}

/* The smallest part is a limit, and a reservation */
static void
test_smallest_part(void **state)
{
	static const uint32_t weight[TENANTS] = { 1, 1, 1 };
	struct rel_tenant_stat st;
	struct rel_node *n;
	int64_t when;
	unsigned i;

	(void)state;
	begin((unsigned)REL_PolicyByName("fifo"), weight);
	REL_SetLimits(rel, tenant[2], 1, 0, now);
	REL_TenantStat(rel, tenant[2], &st);
	assert_int_equal(st.reservation, 1);
	assert_int_equal(st.limit, 0);
	assert_int_equal(serve(), 2);		/* owed from now on, once */
	assert_int_equal(serve(), 0);
	end();

	begin((unsigned)REL_PolicyByName("fifo"), weight);
	for (i = 0; i < DEPTH; i++)
		REL_Cancel(rel, &request[0][i].node, now);
	REL_SetLimits(rel, tenant[0], 0, 1, now);
	REL_TenantStat(rel, tenant[0], &st);
	assert_int_equal(st.reservation, 0);
	assert_int_equal(st.limit, 1);
	for (i = 0; i < DEPTH; i++)
		REL_Enqueue(rel, tenant[0], &request[0][i].node, now);
	assert_int_equal(REL_Throttled(rel), DEPTH - 1);
	for (i = 0; i < 2 * DEPTH; i++)
		assert_int_not_equal(serve(), 0);
	assert_int_equal(serve(), 0);
	assert_int_equal(REL_Throttled(rel), DEPTH);
	for (i = 0; i < 2 * DEPTH; i++)
		assert_int_not_equal(serve(), 0);
	assert_int_equal(REL_Dequeue(rel, now, 0, 0, &n, &when), REL_RELEASED);
	REL_Complete(rel, n, 0, REL_SCALE_ONE, now);
	i = LIST_OF(n, struct request, node)->tenant;
	REL_Enqueue(rel, tenant[i], n, now);
	end();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equal),
		cmocka_unit_test(test_weights),
		cmocka_unit_test(test_group),
		cmocka_unit_test(test_destroy),
		cmocka_unit_test(test_held),
		cmocka_unit_test(test_policy),
		cmocka_unit_test(test_no_cost),
		cmocka_unit_test(test_smallest_part),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
