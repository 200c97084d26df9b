/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The policies by virtual time: the very schedules of 2DFQ's figures, and
 * what each of them is for.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "rel_conform.h"

#define UNIT		INT64_C(1000000)	/* ns */
#define REQUESTS	9U			/* a tenant */

static struct world *
world_of(const char *policy, unsigned slots)
{
	int u = REL_PolicyByName(policy);

	assert_true(u >= 0);
	return (world_new(REL_New((unsigned)u, slots, REL_OPT_ALL, NULL,
	    NULL), slots, 1));
}

/*
 * 2DFQ, section 4: two workers; A and B have requests of size 1, C and D of
 * size 4, all there from the start.  A worker's line has one sign a unit of
 * time, the tenant's letter where a request begins.
 */
static void
schedule(const char *policy, unsigned units, char line[2][32])
{
	static const int64_t size[] = { 1, 1, 4, 4 };
	struct req *on[2] = { NULL, NULL };
	struct world *w = world_of(policy, 2);
	unsigned i, t;

	for (t = 0; t < 4; t++) {
		(void)world_tenant(w, REL_WEIGHT_ONE);
		world_estimate(w, t, size[t] * UNIT, 0);
		for (i = 0; i < REQUESTS; i++)
			(void)world_enqueue(w, t, size[t] * UNIT);
	}
	memset(line, 0, 2 * sizeof line[0]);
	for (t = 0; t < units; t++) {
		w->now = t * UNIT;
		for (i = 0; i < 2; i++) {
			if (on[i] == NULL || (on[i]->left -= UNIT) > 0)
				continue;
			world_complete(w, on[i], on[i]->cost, REL_SCALE_ONE);
			on[i] = NULL;
		}
		for (i = 0; i < 2; i++) {
			line[i][t] = '.';
			if (on[i] != NULL)
				continue;
			on[i] = world_dequeue(w, i, 0, NULL);
			assert_non_null(on[i]);
			line[i][t] = (char)('a' + on[i]->tenant);
		}
	}
	assert_null(w->fault);
	world_free(&w);
}

static void
is_schedule(const char *policy, const char *w1, const char *w0)
{
	char line[2][32];

	schedule(policy, (unsigned)strlen(w0), line);
	assert_string_equal(line[0], w0);
	assert_string_equal(line[1], w1);
}

/* 2DFQ, Figure 5c */
static void
test_wfq(void **priv)
{
	(void)priv;
	is_schedule("wfq",
	    "bbbbd...bbbbd...b",
	    "aaaac...aaaac...a");
}

/* 2DFQ, Figure 5d */
static void
test_wf2q(void **priv)
{
	(void)priv;
	is_schedule("wf2q",
	    "bd...bbbbd...bbbb",
	    "ac...aaaac...aaaa");
}

/* 2DFQ, Figure 6b */
static void
test_2dfq(void **priv)
{
	(void)priv;
	is_schedule("2dfq",
	    "babababababababab",
	    "ac...d...c...d...");
}

/*--------------------------------------------------------------------*/

static const char * const fair[] = { "wfq", "sfq", "wf2q", "2dfq", "2dfqe",
    "drfq", "drr" };
#define FAIR	(sizeof fair / sizeof fair[0])

/* The tenant of the next release, which is done at once: one worker */
static unsigned
serve(struct world *w, unsigned closed)
{
	struct req *r = world_dequeue(w, 0, closed, NULL);
	unsigned t;

	assert_non_null(r);
	t = r->tenant;
	w->now += r->cost;
	world_complete(w, r, r->cost, REL_SCALE_ONE);
	(void)world_enqueue(w, t, UNIT);
	return (t);
}

/* Who was held for a second makes up for VT_MISSED of it, not for all */
static void
test_held(void **priv)
{
	unsigned i, u, n;
	struct world *w;

	(void)priv;
	for (u = 0; u < FAIR; u++) {
		w = world_of(fair[u], 1);
		for (i = 0; i < 2; i++) {
			(void)world_tenant(w, REL_WEIGHT_ONE);
			(void)world_enqueue(w, i, UNIT);
		}
		world_estimate(w, 0, 0, UNIT);
		world_estimate(w, 1, UNIT, 0);
		for (i = 0; i < 1000; i++)
			assert_int_equal(serve(w, REL_MASK(REL_NET)), 1);
		for (n = 0, i = 0; i < 100; i++)
			n += serve(w, 0) == 0;
		assert_in_range(n, 49, 60);
		assert_null(w->fault);
		world_free(&w);
	}
}

/* Who was held and has gone owes what it took, not the time it was held */
static void
test_gone(void **priv)
{
	struct rel_tenant_stat st;
	struct world *w = world_of("wfq", 2);
	struct req *r;
	unsigned i;

	(void)priv;
	for (i = 0; i < 2; i++)
		(void)world_tenant(w, REL_WEIGHT_ONE);
	world_estimate(w, 0, 0, UNIT);
	world_estimate(w, 1, UNIT, 0);
	(void)world_enqueue(w, 0, UNIT);
	(void)world_enqueue(w, 1, UNIT);
	for (i = 0; i < 1000; i++)
		assert_int_equal(serve(w, REL_MASK(REL_NET)), 1);
	do
		r = world_dequeue(w, 0, 0, NULL);
	while (r != NULL && r->tenant != 0);
	assert_non_null(r);
	world_complete(w, r, 100 * UNIT, REL_SCALE_ONE);
	REL_TenantStat(w->rel, w->tenant[0], &st);
	assert_in_range(st.account, 1, 100 * UNIT);
	conform_drain(w);
	world_free(&w);
}

/* By weight, also when what is charged at first is wrong */
static void
test_weights(void **priv)
{
	unsigned i, j, u, n[3];
	struct world *w;

	(void)priv;
	for (u = 0; u < FAIR; u++) {
		w = world_of(fair[u], 1);
		memset(n, 0, sizeof n);
		for (i = 0; i < 3; i++) {
			(void)world_tenant(w, (i + 1) * REL_WEIGHT_ONE);
			world_estimate(w, i, (3 - i) * UNIT / 2, 0);
			for (j = 0; j < 10; j++)
				(void)world_enqueue(w, i, UNIT);
		}
		for (i = 0; i < 6000; i++)
			n[serve(w, 0)]++;
		for (i = 0; i < 3; i++)
			assert_in_range(n[i], 1000 * (i + 1) - 20,
			    1000 * (i + 1) + 20);
		world_free(&w);
	}
}

/*
 * For years: v and the tags start at zero again now and then, while some wait
 * and one is held.  Shares stay what they are.
 */
static void
test_years(void **priv)
{
	const int64_t year = INT64_C(31536000) * 1000 * UNIT;
	unsigned i, j, u, n[2];
	struct world *w;

	(void)priv;
	for (u = 0; u < FAIR; u++) {
		w = world_of(fair[u], 1);
		memset(n, 0, sizeof n);
		for (i = 0; i < 3; i++) {
			/* The least weights, so that virtual time flies */
			(void)world_tenant(w, 1 + i % 2);
			world_estimate(w, i, i == 2 ? 0 : UNIT, UNIT / 2);
			for (j = 0; j < 4; j++)
				(void)world_enqueue(w, i, UNIT);
		}
		for (i = 0; i < 30000; i++) {
			j = serve(w, i % 3 ? REL_MASK(REL_NET) : 0);
			if (j < 2)
				n[j]++;
			/* A request's worth, an hour of both's */
			REL_Charge(w->rel, w->tenant[0], REL_COST_MAX, w->now);
			REL_Charge(w->rel, w->tenant[1], REL_COST_MAX, w->now);
			REL_Charge(w->rel, w->tenant[1], REL_COST_MAX, w->now);
			if (w->now < 20 * year)
				w->now += year / 1000;
		}
		if (u < FAIR - 1)
			assert_in_range(n[1], n[0] * 2 * 95 / 100,
			    n[0] * 2 * 105 / 100);
		assert_null(w->fault);
		world_free(&w);
	}
}

/* Round robin: a request each, whatever it costs */
static void
test_round_robin(void **priv)
{
	struct world *w = world_of("round-robin", 1);
	unsigned i;

	(void)priv;
	for (i = 0; i < 3; i++) {
		(void)world_tenant(w, (i + 1) * REL_WEIGHT_ONE);
		world_estimate(w, i, (i + 1) * UNIT, i == 1 ? 9 * UNIT : 0);
		(void)world_enqueue(w, i, UNIT);
	}
	for (i = 0; i < 30; i++)
		assert_int_equal(serve(w, 0), i % 3);
	for (i = 0; i < 30; i++)
		assert_int_equal(serve(w, REL_MASK(REL_NET)), 2 * (i % 2));
	world_free(&w);
}

/*
 * What 2dfq is for (2DFQ, section 6.1.1, in small): 4 workers, 4 tenants with
 * requests of 1 and 4 with requests of 50, all wait all the time.  How long is
 * a small tenant at most without service?
 */
static int64_t
longest_gap(const char *policy)
{
	struct world *w = world_of(policy, 4);
	struct req *on[4] = { NULL };
	int64_t last[4] = { 0 }, gap = 0, size;
	unsigned i, t;

	for (t = 0; t < 8; t++) {
		size = t < 4 ? UNIT : 50 * UNIT;
		(void)world_tenant(w, REL_WEIGHT_ONE);
		world_estimate(w, t, size, 0);
		for (i = 0; i < 4; i++)
			(void)world_enqueue(w, t, size);
	}
	for (; w->now < 5000 * UNIT; w->now += UNIT)
		for (i = 0; i < 4; i++) {
			if (on[i] != NULL && (on[i]->left -= UNIT) > 0)
				continue;
			if (on[i] != NULL) {
				t = on[i]->tenant;
				world_complete(w, on[i], on[i]->cost,
				    REL_SCALE_ONE);
				(void)world_enqueue(w, t, t < 4 ? UNIT :
				    50 * UNIT);
			}
			on[i] = world_dequeue(w, i, 0, NULL);
			assert_non_null(on[i]);
			t = on[i]->tenant;
			if (t >= 4)
				continue;
			if (w->now > 500 * UNIT && w->now - last[t] > gap)
				gap = w->now - last[t];
			last[t] = w->now;
		}
	assert_null(w->fault);
	world_free(&w);
	return (gap / UNIT);
}

static void
test_bursts(void **priv)
{
	(void)priv;
	assert_true(longest_gap("wfq") >= 50);
	assert_true(longest_gap("wf2q") >= 50);
	assert_true(longest_gap("2dfq") <= 10);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wfq),
		cmocka_unit_test(test_wf2q),
		cmocka_unit_test(test_2dfq),
		cmocka_unit_test(test_held),
		cmocka_unit_test(test_gone),
		cmocka_unit_test(test_weights),
		cmocka_unit_test(test_years),
		cmocka_unit_test(test_round_robin),
		cmocka_unit_test(test_bursts),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
