/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * DRFQ: schedules worked out by hand, which tag pays for what, and the bound
 * that policy_drfq.c states.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "rel_world.h"

#define UNIT		INT64_C(1000000)	/* ns */
#define DELTA		(4 * UNIT)		/* D of policy_drfq.c */
#define QUEUE		20U

static struct world *
world_of(const char *policy, unsigned slots, uint64_t seed)
{
	int u = REL_PolicyByName(policy);

	assert_true(u >= 0);
	return (world_new(REL_New((unsigned)u, slots, REL_OPT_ALL, NULL,
	    NULL), slots, seed));
}

/* A tenant with requests of so many units, always some of them waiting */
static unsigned
tenant(struct world *w, int64_t cpu, int64_t net)
{
	unsigned i, t = world_tenant(w, REL_WEIGHT_ONE);

	world_estimate(w, t, cpu * UNIT, net * UNIT);
	for (i = 0; i < QUEUE; i++)
		(void)world_enqueue(w, t, UNIT);
	return (t);
}

/* The tenant of the next release, which is done at once: as it was estimated */
static unsigned
serve(struct world *w)
{
	struct req *r = world_dequeue(w, 0, 0, NULL);
	unsigned t;

	assert_non_null(r);
	t = r->tenant;
	world_complete(w, r, r->node.charge, REL_SCALE_ONE);
	return (t);
}

static void
serves(struct world *w, const char *order)
{
	for (; *order != '\0'; order++)
		assert_int_equal(serve(w) + 'a', *order);
}

/*
 * A needs 4 of the CPU and 1 of the link, then 1 and 4, and so on: 5 of each
 * in two requests.  B needs 3 of the CPU.  The largest tags:
 *
 *	A	0   4 5   9   10   14   15 19     20 24
 *	B	 0 3    6   9    12       15 18      21
 */
static void
dovetail(const char *policy, const char *order)
{
	struct world *w = world_of(policy, 1, 1);
	unsigned i, n = 0;

	(void)tenant(w, 4, 1);
	(void)tenant(w, 3, 0);
	for (i = 0; order[i] != '\0'; i++) {
		assert_int_equal(serve(w) + 'a', order[i]);
		if (order[i] == 'b')
			continue;
		if (++n % 2 == 1)
			world_estimate(w, 0, UNIT, 4 * UNIT);
		else
			world_estimate(w, 0, 4 * UNIT, UNIT);
	}
	assert_null(w->fault);
	world_free(&w);
}

static void
test_dovetail(void **priv)
{
	(void)priv;
	dovetail("drfq", "abbaabababaabbaab");
	/* 4 for each of A's: 0 4 8 12 16 20, and 0 3 6 9 12 15 18 */
	dovetail("sfq", "abbabababbab");
}

/* What was not used is remembered as far back as D: one request */
static void
test_delta(void **priv)
{
	struct world *w = world_of("drfq", 1, 1);

	(void)priv;
	(void)tenant(w, 0, 4);
	(void)tenant(w, 4, 4);
	serves(w, "abababababab");
	world_estimate(w, 0, 4 * UNIT, 0);
	serves(w, "aababab");
	assert_null(w->fault);
	world_free(&w);
}

/*
 * Each resource has its time.  A and B have had 8 of the CPU each, and their
 * last ones began at 4; nobody has used the link.  So C begins at (4, 0).
 */
static void
newcomer(int64_t cpu, int64_t net, const char *order)
{
	struct world *w = world_of("drfq", 1, 1);

	(void)tenant(w, 4, 0);
	(void)tenant(w, 4, 0);
	serves(w, "abab");
	w->now++;
	(void)tenant(w, cpu, net);
	serves(w, order);
	assert_null(w->fault);
	world_free(&w);
}

static void
test_newcomer(void **priv)
{
	(void)priv;
	newcomer(0, 4, "ccabcabc");	/* (4, 4) (4, 8) (4, 12) */
	newcomer(4, 4, "cabcabc");	/* (8, 4) (12, 8) */
}

/* It cost half, or double: all tags move by the difference */
static void
test_settled(void **priv)
{
	struct rel_tenant_stat st;
	struct world *w = world_of("drfq", 4, 1);
	struct req *r;

	(void)priv;
	(void)tenant(w, 4, 3);
	r = world_dequeue(w, 0, 0, NULL);
	world_complete(w, r, 2 * UNIT, REL_SCALE_ONE);
	REL_TenantStat(w->rel, w->tenant[0], &st);
	assert_int_equal(st.account, 2 * UNIT);		/* (2, 1) */
	r = world_dequeue(w, 0, 0, NULL);		/* (6, 4), v = 2 */
	world_complete(w, r, 8 * UNIT, REL_SCALE_ONE);
	REL_TenantStat(w->rel, w->tenant[0], &st);
	assert_int_equal(st.account, 8 * UNIT);		/* (10, 8) */
	world_estimate(w, 0, 0, 3 * UNIT);
	(void)world_dequeue(w, 0, 0, NULL);		/* (10, 11), v = 10 */
	REL_TenantStat(w->rel, w->tenant[0], &st);
	assert_int_equal(st.account, UNIT);
	assert_null(w->fault);
	world_free(&w);
}

/*--------------------------------------------------------------------
 * Who uses one resource only: every decision is sfq's
 */

static uint64_t
one_resource(const char *policy, uint64_t seed)
{
	struct world *w = world_of(policy, 4, seed);
	unsigned i, t;
	uint64_t hash;

	for (t = 0; t < 6; t++) {
		(void)world_tenant(w, 1 + (uint32_t)rng_below(&w->rng, 4096));
		world_estimate(w, t, UNIT, 0);
	}
	for (i = 0; i < 3000; i++) {
		w->now += (int64_t)rng_below(&w->rng, UNIT);
		t = (unsigned)rng_below(&w->rng, 6);
		switch (rng_below(&w->rng, 4)) {
		case 0:
			(void)world_enqueue(w, t, 1);
			break;
		case 1:
			world_estimate(w, t, (int64_t)rng_below(&w->rng,
			    5 * UNIT), 0);
			break;
		case 2:
			if (w->nrunning < 4)
				(void)world_dequeue(w, 0, 0, NULL);
			break;
		default:
			if (w->nrunning > 0)
				world_complete(w, w->running[0], (int64_t)
				    rng_below(&w->rng, 9 * UNIT),
				    REL_SCALE_ONE);
			break;
		}
	}
	assert_null(w->fault);
	hash = w->hash;
	world_free(&w);
	return (hash);
}

static void
test_one_resource(void **priv)
{
	uint64_t seed;

	(void)priv;
	for (seed = 0; seed < 40; seed++)
		assert_true(one_resource("drfq", seed) ==
		    one_resource("sfq", seed));
	assert_false(one_resource("drfq", 1) == one_resource("wfq", 1));
}

/*--------------------------------------------------------------------
 * The bound: service released to two that wait all the time, of the resource
 * that each needs most, from when that was last another one
 */

#define TENANTS		5

struct apart {
	struct world	*w;
	double		had[TENANTS];		/* ns over weight */
	double		lo[TENANTS][TENANTS], hi[TENANTS][TENANTS];
	double		m[TENANTS];		/* its largest request */
	double		worst;			/* of the bound */
};

static double
weight(const struct apart *a, unsigned t)
{
	return ((double)a->w->weight[t] / REL_WEIGHT_ONE);
}

static void
new_profile(struct apart *a, unsigned t)
{
	int64_t cpu = 1 + (int64_t)rng_below(&a->w->rng, 4 * UNIT);
	int64_t net = 1 + (int64_t)rng_below(&a->w->rng, 4 * UNIT);
	double most = (double)(cpu > net ? cpu : net) / weight(a, t);
	unsigned i;

	world_estimate(a->w, t, cpu, net);
	if (most > a->m[t])
		a->m[t] = most;
	for (i = 0; i < TENANTS; i++) {
		a->lo[t][i] = a->hi[t][i] = a->had[t] - a->had[i];
		a->lo[i][t] = a->hi[i][t] = a->had[i] - a->had[t];
	}
}

static void
judge(struct apart *a)
{
	double d, most;
	unsigned i, j;

	for (i = 0; i < TENANTS; i++)
		for (j = 0; j < i; j++) {
			d = a->had[i] - a->had[j];
			if (d < a->lo[i][j])
				a->lo[i][j] = d;
			if (d > a->hi[i][j])
				a->hi[i][j] = d;
			most = (double)DELTA / (weight(a, i) < weight(a, j) ?
			    weight(a, i) : weight(a, j));
			d = (a->hi[i][j] - a->lo[i][j]) /
			    (a->m[i] + a->m[j] + most);
			if (d > a->worst)
				a->worst = d;
		}
}

static double
farthest(const char *policy, uint64_t seed)
{
	struct apart a = { .w = world_of(policy, 8, seed) };
	struct req *r;
	unsigned i, t;

	for (t = 0; t < TENANTS; t++) {
		(void)world_tenant(a.w, REL_WEIGHT_ONE / 2 + (uint32_t)
		    rng_below(&a.w->rng, 4 * REL_WEIGHT_ONE));
		new_profile(&a, t);
		for (i = 0; i < 3; i++)
			(void)world_enqueue(a.w, t, 1);
	}
	for (i = 0; i < 2000; i++) {
		r = world_dequeue(a.w, 0, 0, NULL);
		t = r->tenant;
		a.had[t] += (double)r->node.charge / weight(&a, t);
		judge(&a);
		(void)world_enqueue(a.w, t, 1);
		if (a.w->nrunning == 8)
			world_complete(a.w, a.w->running[rng_below(&a.w->rng,
			    8)], -1, REL_SCALE_ONE);
		if (rng_below(&a.w->rng, 100) == 0)
			new_profile(&a, (unsigned)rng_below(&a.w->rng,
			    TENANTS));
	}
	assert_null(a.w->fault);
	world_free(&a.w);
	return (a.worst);
}

static void
test_bound(void **priv)
{
	double worst = 0, d;
	uint64_t seed;

	(void)priv;
	for (seed = 0; seed < 100; seed++) {
		d = farthest("drfq", seed);
		if (d > worst)
			worst = d;
	}
	print_message("farthest apart: %.3f of the bound\n", worst);
	assert_true(worst <= 1);
	/* The check can tell */
	assert_true(farthest("round-robin", 1) > 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dovetail),
		cmocka_unit_test(test_delta),
		cmocka_unit_test(test_newcomer),
		cmocka_unit_test(test_settled),
		cmocka_unit_test(test_one_resource),
		cmocka_unit_test(test_bound),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
