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
    "msf2q", "drfq", "drr" };
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

/*--------------------------------------------------------------------
 * MSF2Q
 */

#define N		3U			/* workers */

/* Always some waiting, of `size` units each */
struct load {
	struct world	*w;
	struct req	*on[N];
	int64_t		size[4];
	double		served[4];		/* units */
};

static void
load_tenant(struct load *l, uint32_t weight, int64_t size)
{
	unsigned i, t = world_tenant(l->w, weight * REL_WEIGHT_ONE);

	l->size[t] = size;
	world_estimate(l->w, t, size * UNIT, 0);
	for (i = 0; i < N; i++)
		(void)world_enqueue(l->w, t, size * UNIT);
}

/* A unit of time; line: who begins on each worker, NULL */
static void
load_tick(struct load *l, char *line)
{
	unsigned i, t;

	for (i = 0; i < N; i++) {
		if (l->on[i] != NULL && l->on[i]->left > 0)
			continue;
		if (l->on[i] != NULL)
			world_complete(l->w, l->on[i], l->on[i]->cost,
			    REL_SCALE_ONE);
		l->on[i] = NULL;
	}
	for (i = 0; i < N; i++) {
		if (l->on[i] == NULL) {
			l->on[i] = world_dequeue(l->w, i, 0, NULL);
			assert_non_null(l->on[i]);
			t = l->on[i]->tenant;
			(void)world_enqueue(l->w, t, l->size[t] * UNIT);
			if (line != NULL)
				*line++ = (char)('a' + t);
		}
		l->on[i]->left -= UNIT;
		l->served[l->on[i]->tenant]++;
	}
	l->w->now += UNIT;
}

/*
 * Requests of one unit, A's weight is 3 of 6: v grows by half a unit at a time.
 * msf2q: at 0 A's finish tags are 1/3, 2/3, 1, and nothing of it has been
 * served; at 1 it has had 3, twice as much as under GPS.  wf2q: after its first
 * A is due at 1/3; at 1 nobody is due when A and D have gone, and v goes on to
 * 2/3.
 */
static void
test_msf2q(void **priv)
{
	struct load m = { .w = world_of("msf2q", N) };
	struct load f = { .w = world_of("wf2q", N) };
	char line[2][6 * N + 1] = { "", "" };
	unsigned i;

	(void)priv;
	for (i = 0; i < 4; i++) {
		load_tenant(&m, i == 0 ? 3 : 1, 1);
		load_tenant(&f, i == 0 ? 3 : 1, 1);
	}
	for (i = 0; i < 6; i++) {
		load_tick(&m, line[0] + i * N);
		load_tick(&f, line[1] + i * N);
	}
	assert_string_equal(line[0], "aaabcdaaabcdaaabcd");
	assert_string_equal(line[1], "abcadaabcaadabcaad");
	assert_null(m.w->fault);
	world_free(&m.w);
	world_free(&f.w);
}

/* At most behind GPS, over N times the largest request; ahead, N of its own */
static void
far_from_gps(const char *policy, uint64_t seed, double *behind, double *ahead)
{
	struct load l = { .w = world_of(policy, N) };
	uint64_t rng = seed;
	double gps, weights = 0, largest = 0;
	unsigned i, t;

	for (t = 0; t < 4; t++) {
		load_tenant(&l, 1 + (uint32_t)rng_below(&rng, 8),
		    1 + (int64_t)rng_below(&rng, 30));
		weights += l.w->weight[t];
		if ((double)l.size[t] > largest)
			largest = (double)l.size[t];
	}
	for (i = 1; i <= 2000; i++) {
		load_tick(&l, NULL);
		for (t = 0; t < 4; t++) {
			gps = N * i * l.w->weight[t] / weights - l.served[t];
			if (gps / (N * largest) > *behind)
				*behind = gps / (N * largest);
			if (-gps / (N * (double)l.size[t]) > *ahead)
				*ahead = -gps / (N * (double)l.size[t]);
		}
	}
	assert_null(l.w->fault);
	world_free(&l.w);
}

/* Four tenants on three workers: wf2q is often without one that is due */
static void
test_gps(void **priv)
{
	static const char * const policy[] = { "msf2q", "wf2q" };
	double behind[2] = { 0 }, ahead[2] = { 0 };
	uint64_t seed;
	unsigned u;

	(void)priv;
	for (u = 0; u < 2; u++) {
		for (seed = 0; seed < 200; seed++)
			far_from_gps(policy[u], seed, &behind[u], &ahead[u]);
		print_message("%s: behind GPS by %.2f N L, ahead by %.2f\n",
		    policy[u], behind[u], ahead[u]);
	}
	assert_true(behind[0] <= 1);
	assert_true(ahead[0] <= 1);
	/* The check can tell */
	assert_true(ahead[1] > 1);
}

/* On one worker it is wf2q, whatever happens */
static uint64_t
one_worker(const char *policy, uint64_t seed)
{
	struct world *w = world_of(policy, 1);
	unsigned i, t;
	uint64_t hash;

	w->rng = seed;
	for (t = 0; t < 5; t++) {
		(void)world_tenant(w, 1 + (uint32_t)rng_below(&w->rng, 4096));
		world_estimate(w, t, UNIT, 0);
	}
	for (i = 0; i < 2000; i++) {
		w->now += (int64_t)rng_below(&w->rng, UNIT);
		t = (unsigned)rng_below(&w->rng, 5);
		if (rng_below(&w->rng, 3) == 0)
			(void)world_enqueue(w, t, 1);
		else if (w->nrunning == 0)
			(void)world_dequeue(w, 0, 0, NULL);
		else
			world_complete(w, w->running[0], (int64_t)rng_below(
			    &w->rng, 4 * UNIT) - UNIT, REL_SCALE_ONE);
		if (i % 16 == 0)
			world_estimate(w, t, (int64_t)rng_below(&w->rng,
			    4 * UNIT), (int64_t)rng_below(&w->rng, UNIT));
	}
	assert_null(w->fault);
	hash = w->hash;
	world_free(&w);
	return (hash);
}

static void
test_one_worker(void **priv)
{
	uint64_t seed;

	(void)priv;
	for (seed = 0; seed < 40; seed++)
		assert_true(one_worker("msf2q", seed) ==
		    one_worker("wf2q", seed));
	assert_false(one_worker("msf2q", 1) == one_worker("wfq", 1));
}

/* A group was idle when a busy period began, and a member that joins it brings a
 * request that runs: its tag is of this period, too */
static void
test_group_of_an_earlier_period(void **state)
{
	struct req *r[2];
	struct world *w;
	unsigned u, i;

	(void)state;
	for (u = 0; u < REL_Policies(); u++) {
		w = world_of(REL_PolicyName(u), 2);
		for (i = 0; i < 4; i++) {	/* g, m, x, y */
			(void)world_tenant(w, REL_WEIGHT_ONE);
			world_estimate(w, i, 10 * UNIT, 0);
		}
		world_group(w, 1, 1);
		(void)world_enqueue(w, 1, 10 * UNIT);
		r[0] = world_dequeue(w, 0, 0, NULL);
		assert_non_null(r[0]);
		w->now = 10 * UNIT;
		world_complete(w, r[0], 10 * UNIT, REL_SCALE_ONE);
		w->now = 20 * UNIT;
		(void)world_enqueue(w, 2, 10 * UNIT);
		(void)world_enqueue(w, 3, 10 * UNIT);
		for (i = 0; i < 2; i++) {
			r[i] = world_dequeue(w, i, 0, NULL);
			if (r[i] == NULL)	/* it synchronises */
				continue;
			if (r[i]->tenant == 2)
				r[0] = r[i];
		}
		world_group(w, 2, 1);
		world_complete(w, r[0], 10 * UNIT, REL_SCALE_ONE);
		(void)world_enqueue(w, 1, 10 * UNIT);
		w->now = 21 * UNIT;
		assert_non_null(world_dequeue(w, 0, 0, NULL));
		assert_null(w->fault);
		world_free(&w);
	}
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
		cmocka_unit_test(test_msf2q),
		cmocka_unit_test(test_gps),
		cmocka_unit_test(test_one_worker),
		cmocka_unit_test(test_group_of_an_earlier_period),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
