/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Every row of the policy table conforms; policies that are made to be bad
 * are found out.
 */

#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "rel_conform.h"

#ifdef FEWER_RUNS		/* tools/mutate runs them for each fault */
#define RANDOM_RUNS	10
#else
#define RANDOM_RUNS	40
#endif
#define RANDOM_STEPS	4000
#define LAG_RUNS	60

static struct rel *
new_row(const void *priv, unsigned nslots)
{
	return (REL_New(*(const unsigned *)priv, nslots, REL_OPT_ALL, NULL,
	    NULL));
}

static struct rel *
new_paper(const void *priv, unsigned nslots)
{
	return (REL_New(*(const unsigned *)priv, nslots, REL_OPT_PAPER, NULL,
	    NULL));
}

static struct rel *
new_of(const void *priv, unsigned nslots)
{
	return (rel_new(priv, nslots, REL_OPT_ALL, NULL, NULL));
}

static void
judge(const char *name, uint64_t seed, const char *what)
{
	if (what != NULL)
		fail_msg("%s, seed %ju: %s", name, (uintmax_t)seed, what);
}

static void
test_table(void **priv)
{
	unsigned u;

	(void)priv;
	assert_true(REL_Policies() >= 2);
	for (u = 0; u < REL_Policies(); u++) {
		assert_int_equal(REL_PolicyByName(REL_PolicyName(u)), u);
		assert_true(strlen(REL_PolicySummary(u)) > 0);
	}
	assert_null(REL_PolicyName(u));
	assert_null(REL_PolicySummary(u));
	assert_int_equal(REL_PolicyByName("mr3-rs"), 0);
	assert_int_equal(REL_PolicyByName("mr3-"), -1);
}

static void
test_random(void **priv)
{
	uint64_t seed, a, b;
	unsigned u;

	(void)priv;
	for (u = 0; u < REL_Policies(); u++)
		for (seed = 0; seed < RANDOM_RUNS; seed++) {
			judge(REL_PolicyName(u), seed, conform_random(new_row,
			    &u, conform_flags(u), seed, RANDOM_STEPS, &a));
			if (seed % 8 != 0)
				continue;
			judge("replay", seed, conform_random(new_row, &u,
			    conform_flags(u), seed, RANDOM_STEPS, &b));
			assert_true(a == b);
		}
}

/* The paper's own algorithm heeds no closed resource */
static void
test_random_paper(void **priv)
{
	uint64_t seed, hash;
	unsigned u = 0;

	(void)priv;
	for (seed = 0; seed < 10; seed++)
		judge("paper", seed, conform_random(new_paper, &u,
		    CONFORM_IGNORES_CLOSED, seed, RANDOM_STEPS, &hash));
}

static void
test_lag(void **priv)
{
	double worst, most;
	uint64_t seed;
	unsigned u;

	(void)priv;
	for (u = 0; u < REL_Policies(); u++) {
		most = 0;
		for (seed = 0; seed < LAG_RUNS; seed++) {
			judge(REL_PolicyName(u), seed, conform_lag(new_row,
			    &u, conform_flags(u), seed, &worst));
			if (worst > most)
				most = worst;
		}
		print_message("%s: largest lag %.2f of its bound\n",
		    REL_PolicyName(u), most);
		/* The check can tell: who is excused needs it */
		assert_true((most > 1) == !!(conform_flags(u) & CONFORM_UNFAIR));
	}
}

/*--------------------------------------------------------------------
 * Bad policies
 */

static struct rel_node *
first_of_all(struct rel *rel)
{
	return (LIST_OF(rel->order.next, struct rel_node, order));
}

/* The newest first: breaks the order and starves */
static enum rel_answer
lifo_dequeue(struct rel *rel, int64_t now, unsigned slot, unsigned closed,
    struct rel_node **node, int64_t *when)
{
	(void)now, (void)closed, (void)when;
	*node = LIST_OF(rel->order.prev, struct rel_node, order);
	rel_release(rel, *node, slot);
	return (REL_RELEASED);
}

static const struct rel_policy lifo = {
	.name = "lifo", .summary = "newest first", .dequeue = lifo_dequeue,
};

/* The tenant that came last, in its order: keeps the order, starves */
static enum rel_answer
favour_dequeue(struct rel *rel, int64_t now, unsigned slot, unsigned closed,
    struct rel_node **node, int64_t *when)
{
	(void)now, (void)closed, (void)when;
	*node = rel_first(LIST_OF(rel->order.prev, struct rel_node,
	    order)->tenant);
	rel_release(rel, *node, slot);
	return (REL_RELEASED);
}

static const struct rel_policy favour = {
	.name = "favour", .summary = "newest tenant", .dequeue = favour_dequeue,
};

/* Leaves slots idle: one call in eight */
static enum rel_answer
lazy_dequeue(struct rel *rel, int64_t now, unsigned slot, unsigned closed,
    struct rel_node **node, int64_t *when)
{
	(void)now, (void)closed;
	if (++*(uint64_t *)(void *)rel->state % 8 == 0) {
		*when = INT64_MAX;
		return (REL_NOT_YET);
	}
	*node = first_of_all(rel);
	rel_release(rel, *node, slot);
	return (REL_RELEASED);
}

static const struct rel_policy lazy = {
	.name = "lazy", .summary = "idles", .dequeue = lazy_dequeue,
	.state_size = sizeof(uint64_t),
};

/* Says that nothing waits when one request does */
static enum rel_answer
lossy_dequeue(struct rel *rel, int64_t now, unsigned slot, unsigned closed,
    struct rel_node **node, int64_t *when)
{
	(void)now, (void)closed, (void)when;
	if (rel->waiting == 1)
		return (REL_EMPTY);
	*node = first_of_all(rel);
	rel_release(rel, *node, slot);
	return (REL_RELEASED);
}

static const struct rel_policy lossy = {
	.name = "lossy", .summary = "forgets one", .dequeue = lossy_dequeue,
};

/* Hands the same request out again */
static enum rel_answer
twice_dequeue(struct rel *rel, int64_t now, unsigned slot, unsigned closed,
    struct rel_node **node, int64_t *when)
{
	struct rel_node **last = (struct rel_node **)(void *)rel->state;

	(void)now, (void)closed, (void)when;
	if (*last != NULL && (*last)->state == REL_RUNNING) {
		*node = *last;
		*last = NULL;
		return (REL_RELEASED);
	}
	*last = *node = first_of_all(rel);
	rel_release(rel, *node, slot);
	return (REL_RELEASED);
}

static const struct rel_policy twice = {
	.name = "twice", .summary = "serves again", .dequeue = twice_dequeue,
	.state_size = sizeof(struct rel_node *),
};

static void
fails_random(const struct rel_policy *p, unsigned flags, const char *how)
{
	const char *what = NULL;
	uint64_t seed, hash;

	for (seed = 0; seed < RANDOM_RUNS && what == NULL; seed++)
		what = conform_random(new_of, p, flags, seed, RANDOM_STEPS,
		    &hash);
	assert_non_null(what);
	assert_string_equal(what, how);
}

static void
test_bad(void **priv)
{
	double worst;

	(void)priv;
	fails_random(&lifo, CONFORM_IGNORES_CLOSED, "order within a tenant");
	fails_random(&lazy, CONFORM_IGNORES_CLOSED,
	    "idle while a request is eligible");
	fails_random(&lossy, CONFORM_IGNORES_CLOSED, "lost");
	fails_random(&twice, CONFORM_IGNORES_CLOSED, "served twice");
	fails_random(&rel_policy_fifo, 0, "released to a closed resource");
	assert_string_equal(conform_lag(new_of, &favour, 0, 1, &worst),
	    "lag behind the max-min fluid");
}

/*--------------------------------------------------------------------
 * Another policy on the way, at any moment
 */

static void
switch_run(uint64_t seed)
{
	struct world *w;
	unsigned i, t, u = 0;

	w = world_new(REL_New(0, 10, REL_OPT_ALL, NULL, NULL), 10, seed);
	for (i = 0; i < 6; i++) {
		t = world_tenant(w, REL_WEIGHT_ONE);
		world_estimate(w, t, 1000 * (i + 1), 100);
	}
	for (i = 0; i < 3000 && w->fault == NULL; i++) {
		w->now++;
		switch (rng_below(&w->rng, 8)) {
		case 0:
			u = (u + 1) % REL_Policies();
			assert_int_equal(REL_SetPolicy(w->rel, u, w->now), 0);
			assert_int_equal(REL_GetPolicy(w->rel), u);
			break;
		case 1:
			if (w->nrunning > 0)
				world_complete(w, w->running[0], 5000,
				    REL_SCALE_ONE);
			break;
		case 2:
		case 3:
			if (w->nrunning < w->nslots)
				(void)world_dequeue(w, 0, 0, NULL);
			break;
		default:
			if (w->nwaiting < 500)
				(void)world_enqueue(w, (unsigned)rng_below(
				    &w->rng, 6), 1);
			break;
		}
	}
	assert_int_equal(REL_SetPolicy(w->rel, REL_Policies(), w->now), -1);
	assert_int_equal(REL_GetPolicy(w->rel), u);
	judge("switch", seed, w->fault);
	world_free(&w);
}

static void
test_switch(void **priv)
{
	uint64_t seed;

	(void)priv;
	for (seed = 0; seed < 40; seed++)
		switch_run(seed);
}

/* To fifo: order of arrival, over tenants and for equal times too */
static void
test_switch_order(void **priv)
{
	struct req *r[40];
	struct world *w;
	unsigned i;

	(void)priv;
	w = world_new(REL_New(0, 1, REL_OPT_ALL, NULL, NULL), 1, 7);
	for (i = 0; i < 4; i++)
		(void)world_tenant(w, REL_WEIGHT_ONE);
	for (i = 0; i < 40; i++)
		r[i] = world_enqueue(w, (unsigned)rng_below(&w->rng, 4), 1);
	assert_ptr_not_equal(world_dequeue(w, 0, 0, NULL), NULL);
	world_cancel(w, r[20]);
	assert_int_equal(REL_SetPolicy(w->rel, 1, 0), 0);
	for (i = 1; i < 40; i++)
		if (i != 20)
			assert_ptr_equal(world_dequeue(w, 0, 0, NULL), r[i]);
	assert_null(w->fault);
	world_free(&w);
}

/*
 * Who ran under the old policy does not touch the new one's accounts: two
 * requests run, the policy changes so many times, one of them is done
 */
static void
switch_epochs(unsigned changes)
{
	struct rel_tenant_stat st;
	struct world *w;
	struct req *r;
	unsigned i;

	w = world_new(REL_New(0, 4, REL_OPT_ALL, NULL, NULL), 4, 7);
	(void)world_tenant(w, REL_WEIGHT_ONE);
	(void)world_enqueue(w, 0, 1);
	(void)world_enqueue(w, 0, 1);
	r = world_dequeue(w, 0, 0, NULL);
	(void)world_dequeue(w, 0, 0, NULL);
	for (i = 1; i <= changes; i++)
		assert_int_equal(REL_SetPolicy(w->rel, i % 2, 0), 0);
	world_complete(w, r, 50000000, REL_SCALE_ONE);
	REL_TenantStat(w->rel, w->tenant[0], &st);
	assert_int_equal(st.account, 0);
	assert_int_equal(st.running, 1);
	world_free(&w);
}

static void
test_switch_epoch(void **priv)
{
	(void)priv;
	switch_epochs(2);
}

/* However often: a node's epoch had eight bits once, and 256 came round */
static void
test_switch_epochs(void **priv)
{
	(void)priv;
	switch_epochs(256);
}

/* The caller's "the lock is held" is asked by all that change something */
static void
count(void *priv)
{
	++*(unsigned *)priv;
}

static void
test_held(void **priv)
{
	struct rel_node *n, node = { 0 };
	int64_t when, est[REL__RESOURCES] = { 5, 6 };
	_Alignas(64) char mem[4096];
	struct rel_tenant *t;
	unsigned calls = 0;
	struct rel *rel;

	(void)priv;
	assert_true(REL_TenantSize() <= sizeof mem);
	rel = REL_New(0, 1, REL_OPT_ALL, count, &calls);
	t = REL_TenantInit(rel, mem, REL_WEIGHT_ONE);
	REL_SetEstimate(rel, t, est);
	REL_SetWeight(rel, t, 2 * REL_WEIGHT_ONE);
	REL_SetSlots(rel, 2);
	REL_SetOptions(rel, REL_OPT_ALL);
	REL_Enqueue(rel, t, &node, 0);
	REL_Cancel(rel, &node, 0);
	REL_Enqueue(rel, t, &node, 0);
	assert_int_equal(REL_Dequeue(rel, 0, 2, 0, &n, &when), REL_NO_SLOT);
	assert_int_equal(REL_Dequeue(rel, 0, 1, 0, &n, &when), REL_RELEASED);
	assert_int_equal(n->charge, 6);
	assert_int_equal(n->slot, 1);
	REL_Progress(rel, n, REL_CPU, 0);
	REL_Refresh(rel, n, 9, 0);
	REL_Complete(rel, n, 10, REL_SCALE_ONE, 0);
	REL_Charge(rel, t, 3, 0);
	REL_Run(rel, t, &node, 0, 0);
	REL_Complete(rel, &node, 1, REL_SCALE_ONE, 0);
	assert_int_equal(REL_SetPolicy(rel, 0, 0), 0);
	REL_TenantFini(rel, t);
	assert_int_equal(calls, 18);
	REL_Destroy(&rel);
	assert_null(rel);
}

/* A request that runs at once passes its limit, all slots and those that wait,
 * and its tenant pays */
static void
test_run(void **priv)
{
	struct rel_node node[3], *n;
	struct rel_tenant_stat st;
	struct rel_tenant *t;
	struct rel *rel;
	int64_t when;
	unsigned u;

	(void)priv;
	for (u = 0; u < REL_Policies(); u++) {
		char mem[1][4096] __attribute__((aligned(64)));

		assert_true(REL_TenantSize() <= sizeof mem);
		memset(node, 0, sizeof node);
		rel = REL_New(u, 1, REL_OPT_ALL, NULL, NULL);
		t = REL_TenantInit(rel, mem, REL_WEIGHT_ONE);
		REL_SetLimits(rel, t, 0, 1, 0);
		REL_Enqueue(rel, t, &node[0], 0);
		assert_int_equal(REL_Dequeue(rel, 0, 0, 0, &n, &when),
		    REL_RELEASED);
		REL_Enqueue(rel, t, &node[1], 0);
		REL_Run(rel, t, &node[2], 9, 1);
		assert_int_equal(node[2].state, REL_RUNNING);
		assert_int_equal(node[2].slot, 9);
		assert_true(REL_IsUnqueued(&node[2]));
		assert_false(REL_IsUnqueued(&node[0]));
		assert_int_equal(node[2].charge, 0);
		assert_int_equal(node[2].arrival, 1);
		assert_true(REL_First(rel) == &node[1]);
		REL_TenantStat(rel, t, &st);
		assert_int_equal(st.waiting, 1);
		assert_int_equal(st.running, 2);
		assert_int_equal(st.enqueued, 3);
		assert_int_equal(st.released, 2);
		assert_int_equal(st.charged, 1);
		REL_Complete(rel, &node[2], 500, REL_SCALE_ONE, 1);
		REL_Complete(rel, &node[0], 1, REL_SCALE_ONE, 1);
		REL_TenantStat(rel, t, &st);
		assert_int_equal(st.running, 0);
		assert_int_equal(st.completed, 2);
		assert_int_equal(st.charged, 501);
		REL_Cancel(rel, &node[1], 1);
		REL_SetLimits(rel, t, 0, 0, 1);
		REL_TenantFini(rel, t);
		REL_Destroy(&rel);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_random_paper),
		cmocka_unit_test(test_lag),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_switch),
		cmocka_unit_test(test_switch_order),
		cmocka_unit_test(test_switch_epoch),
		cmocka_unit_test(test_switch_epochs),
		cmocka_unit_test(test_held),
		cmocka_unit_test(test_run),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
