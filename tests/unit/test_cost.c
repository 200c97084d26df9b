/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The NIC formula, the estimators and the residual against values worked
 * out by hand and against the same formulas in long double.
 */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "perfctr/cost.h"

#define G	1000000000ULL
#define Q(x)	((uint32_t)((x) * 65536 + 0.5))

static uint64_t seed = 1;

static uint64_t
rnd(void)
{

	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return ((seed >> 33) | (seed << 31));
}

static void
test_net_by_hand(void **state)
{

	(void)state;
	assert_int_equal(COST_Net(0, 10 * G, 1500, 64), 0);
	/* 1436 bytes are one packet of 1500: 12000 bits at 10 Gbit/s */
	assert_int_equal(COST_Net(1436, 10 * G, 1500, 64), 1200);
	/* one byte more is a second header: 1437 + 128 bytes */
	assert_int_equal(COST_Net(1437, 10 * G, 1500, 64), 1252);
	/* 115 KB at 1.25 Gbit/s: 80.08 -> 81 packets */
	assert_int_equal(COST_Wire(115000, 1500, 64), 115000 + 81 * 64);
	assert_int_equal(COST_Net(115000, 1250000000, 1500, 64),
	    769178);			/* 120184 x 8 / 1.25 = 769177.6 */
	/* rounded up: never free */
	assert_int_equal(COST_Net(1, 400 * G, 1500, 0), 1);
	assert_int_equal(COST_Net(125000000, G, 1500, 0), 1000000000);
}

static void
test_dominant_by_hand(void **state)
{
	int64_t net_minus_cpu = 0;

	(void)state;
	assert_int_equal(COST_Dominant(&net_minus_cpu, 10, 30), 30);
	assert_int_equal(net_minus_cpu, 20);
	assert_int_equal(COST_Dominant(&net_minus_cpu, 15, 0), 0);
	assert_int_equal(COST_Dominant(&net_minus_cpu, 15, 1), 10);
	assert_int_equal(net_minus_cpu, -9);
	assert_int_equal(COST_Dominant(&net_minus_cpu, 0, 0), 0);
	/* As much of both as before is as much of the larger */
	assert_int_equal(COST_Dominant(&net_minus_cpu, 7, 7), 7);
	assert_int_equal(COST_Dominant(&net_minus_cpu, INT64_MAX, INT64_MAX),
	    INT64_MAX / 2);
	assert_int_equal(COST_Dominant(&net_minus_cpu, 0, INT64_MAX),
	    INT64_MAX / 2 - 9);
	assert_int_equal(net_minus_cpu, COST_HYSTERESIS);
	/* What was used before is not charged again, be it 1 ns */
	net_minus_cpu = 1;
	assert_int_equal(COST_Dominant(&net_minus_cpu, 0, 0), 0);
	assert_int_equal(net_minus_cpu, 1);
}

/* Who turns from one resource to the other has COST_HYSTERESIS for nothing */
static void
test_dominant_turns(void **state)
{
	int64_t net_minus_cpu = 0, sum = 0;
	int i;

	(void)state;
	for (i = 0; i < 1000; i++)
		sum += COST_Dominant(&net_minus_cpu, 60000, 1500000);
	assert_int_equal(sum, 1500000000);
	for (i = 0, sum = 0; i < 1000; i++)
		sum += COST_Dominant(&net_minus_cpu, 760000, 8000);
	assert_int_equal(sum, 760000000 - COST_HYSTERESIS);
	for (i = 0, sum = 0; i < 1000; i++)
		sum += COST_Dominant(&net_minus_cpu, 60000, 1500000);
	assert_int_equal(sum, 1500000000 - COST_HYSTERESIS);
	/* in turns it is only the larger sum that counts */
	for (i = 0, sum = 0; i < 1000; i++) {
		sum += COST_Dominant(&net_minus_cpu, 760000, 8000);
		sum += COST_Dominant(&net_minus_cpu, 60000, 1500000);
	}
	assert_int_equal(sum, 1508000000);
}

/* Never less than the larger sum; noise in two that are close costs little */
static void
test_dominant_is_the_larger_sum(void **state)
{
	int64_t net_minus_cpu = 0, sum = 0, used[2] = { 0, 0 }, c, n, d;
	int i;

	(void)state;
	for (i = 0; i < 1000000; i++) {
		c = (int64_t)(rnd() % 1000000);
		n = (int64_t)(rnd() % 1000000);
		d = COST_Dominant(&net_minus_cpu, c, n);
		assert_true(d >= (c < n ? c : n) && d <= (c > n ? c : n));
		assert_in_range(net_minus_cpu + COST_HYSTERESIS, 0,
		    2 * COST_HYSTERESIS);
		sum += d;
		used[0] += c;
		used[1] += n;
	}
	if (used[1] > used[0])
		used[0] = used[1];
	assert_true(sum >= used[0]);
	/* The mean of the larger is 4/3 of the mean */
	assert_true((double)sum < 1.02 * (double)used[0]);
}

static void
test_net_extremes(void **state)
{

	(void)state;
	assert_int_equal(COST_Wire(UINT64_MAX, 1500, 64), UINT64_MAX);
	assert_int_equal(COST_Wire(UINT64_MAX, 1500, 0), UINT64_MAX);
	assert_int_equal(COST_Net(UINT64_MAX, 1, 2, 1), INT64_MAX);
	assert_int_equal(COST_Net(UINT64_MAX, UINT64_MAX, UINT32_MAX,
	    UINT32_MAX - 1), INT64_MAX);
	/* 2^64 - 1 bytes at 2^64 - 1 bits/s: eight seconds */
	assert_int_equal(COST_Net(UINT64_MAX, UINT64_MAX, 1500, 0),
	    8000000000LL);
}

/* Large numbers are rounded up as well, and only if there is a fraction */
static void
test_net_large(void **state)
{

	(void)state;
	assert_int_equal(COST_Net(4 * G, 8 * G, 1500, 0), 4000000000LL);
	assert_int_equal(COST_Net(4 * G + 1, 16 * G, 1500, 0), 2000000001LL);
	assert_int_equal(COST_Net(4 * G + 2, 16 * G, 1500, 0), 2000000001LL);
	/* 2^128 bits x ns and a few more, which is no small number */
	assert_int_equal(COST_Net(9903520316588885209ULL, UINT64_MAX,
	    UINT32_MAX, UINT32_MAX - 1), INT64_MAX);
}

/* The two ways of computing it agree with the formula, to one ns */
static void
test_net_random(void **state)
{
	long double want;
	uint64_t b, rate;
	unsigned mtu, h;
	int64_t got;
	int i;

	(void)state;
	for (i = 0; i < 100000; i++) {
		b = rnd() >> (16 + rnd() % 48);
		rate = 1 + (rnd() >> (20 + rnd() % 40));
		h = (unsigned)(rnd() % 200);
		mtu = h + 1 + (unsigned)(rnd() % 9000);
		want = ceill((long double)b / (mtu - h));
		want = ((long double)b + h * want) * 8e9L / rate;
		got = COST_Net(b, rate, mtu, h);
		if (want >= 9e18L)
			continue;
		assert_true((long double)got >= want * (1 - 1e-17L));
		assert_true((long double)got < want * (1 + 1e-17L) + 1);
	}
}

/*--------------------------------------------------------------------*/

static void
test_est_table(void **state)
{
	unsigned u;

	(void)state;
	assert_true(EST_Kinds() >= 4);
	for (u = 0; u < EST_Kinds(); u++)
		assert_int_equal(EST_ByName(EST_Name(u)), u);
	assert_int_equal(EST_ByName("ewma"), 0);
	assert_int_equal(EST_ByName("mean"), -1);
	assert_int_equal(EST_ByName(""), -1);
}

static int64_t
feed(const char *kind, uint32_t alpha, const int64_t *s, size_t n)
{
	struct est e;
	size_t i;

	memset(&e, 0, sizeof e);
	assert_int_not_equal(EST_ByName(kind), -1);
	for (i = 0; i < n; i++)
		EST_Sample((unsigned)EST_ByName(kind), &e, s[i], alpha);
	assert_int_equal(e.samples, n);
	return (EST_Value(&e, NULL));
}

static void
test_est_by_hand(void **state)
{
	static const int64_t s[] = { 1000, 2000, 400 };

	(void)state;
	/* alpha weighs the newest: 0.5 x 2000 + 0.5 x 1000, ... */
	assert_int_equal(feed("ewma", Q(0.5), s, 2), 1500);
	assert_int_equal(feed("ewma", Q(0.5), s, 3), 950);
	assert_int_equal(feed("ewma", Q(0.75), s, 3), 737);	/* 737.5 */
	assert_int_equal(feed("ewma", Q(1), s, 3), 400);
	assert_int_equal(feed("ewma", 0, s, 3), 1000);
	/* alpha weighs the old maximum */
	assert_int_equal(feed("decaying-max", Q(0.75), s, 1), 1000);
	assert_int_equal(feed("decaying-max", Q(0.75), s, 2), 2000);
	assert_int_equal(feed("decaying-max", Q(0.75), s, 3), 1500);
	assert_int_equal(feed("decaying-max", Q(1), s, 3), 2000);
	assert_int_equal(feed("last", Q(0.5), s, 3), 400);
	assert_int_equal(feed("oracle", Q(0.5), s, 2), 2000);
}

/* A small value decays all the same: no rounding holds it up */
static void
test_est_fraction(void **state)
{
	struct est e;
	long double want = 50;
	int i;

	(void)state;
	memset(&e, 0, sizeof e);
	EST_Sample(1, &e, 50, Q(0.99));
	for (i = 0; i < 400; i++) {
		EST_Sample(1, &e, 0, Q(0.99));
		want *= Q(0.99) / 65536.L;
		assert_true(fabsl(e.value + e.aux / 65536.L - want) < 0.01L);
	}
	assert_int_equal(EST_Value(&e, NULL), 0);	/* 50 x 0.99^400 < 1 */
}

/* A new maximum is the sample: the old value's fraction goes with it */
static void
test_est_new_maximum(void **state)
{
	struct est e;

	(void)state;
	memset(&e, 0, sizeof e);
	EST_Sample(1, &e, 1, Q(0.75));
	assert_int_equal(e.aux, 0);
	EST_Sample(1, &e, 0, Q(0.75));
	assert_int_equal(EST_Value(&e, NULL), 0);	/* 0.75 */
	EST_Sample(1, &e, 1, Q(0.75));
	assert_int_equal(EST_Value(&e, NULL), 1);
	EST_Sample(1, &e, 0, Q(0.75));
	assert_int_equal(EST_Value(&e, NULL), 0);
}

/* ewma against the same in long double, large values too */
static void
test_est_random(void **state)
{
	struct est e;
	long double want = 0, a = Q(0.9) / 65536.L;
	int64_t s;
	int i;

	(void)state;
	memset(&e, 0, sizeof e);
	for (i = 0; i < 10000; i++) {
		s = (int64_t)(rnd() >> (2 + rnd() % 60));
		EST_Sample(0, &e, s, Q(0.9));
		want = i == 0 ? s : a * s + (1 - a) * want;
		assert_true(fabsl((long double)e.value - want) <=
		    1 + want * 1e-15L);
	}
}

static void
test_est_unseen(void **state)
{
	struct est_mean mean;
	struct est e;
	int i;

	(void)state;
	memset(&mean, 0, sizeof mean);
	memset(&e, 0, sizeof e);
	assert_int_equal(EST_Value(&e, NULL), 0);
	assert_int_equal(EST_Value(&e, &mean), 0);
	EST_MeanSample(&mean, 100);
	EST_MeanSample(&mean, 200);
	EST_MeanSample(&mean, 600);
	assert_int_equal(EST_Value(&e, &mean), 300);
	EST_Sample(0, &e, 7000, Q(0.9));
	assert_int_equal(EST_Value(&e, &mean), 7000);
	/* The 65th sample has a 64th, no less */
	memset(&mean, 0, sizeof mean);
	memset(&e, 0, sizeof e);
	for (i = 0; i < 64; i++)
		EST_MeanSample(&mean, 6400);
	EST_MeanSample(&mean, 12800);
	assert_int_equal(EST_Value(&e, &mean), 6500);
	EST_MeanSample(&mean, 12900);
	assert_int_equal(EST_Value(&e, &mean), 6600);
	for (i = 0; i < 1000; i++)
		EST_MeanSample(&mean, 10000);
	memset(&e, 0, sizeof e);
	assert_in_range(EST_Value(&e, &mean), 9990, 10000);
}

/*--------------------------------------------------------------------*/

#define S	1000000000LL

static void
test_residual_by_hand(void **state)
{
	struct residual r;

	(void)state;
	memset(&r, 0, sizeof r);
	/* The first call only notes where it starts */
	assert_int_equal(RESIDUAL_Update(&r, 5 * S, 70 * S, 60 * S, 1000), 0);
	/* Too early: nothing moves */
	assert_int_equal(RESIDUAL_Update(&r, 5 * S + S / 2, 71 * S, 60 * S,
	    2000), 0);
	/* 1 s, P = 1 s, S = 0.8 s, N = 10000: 20 us each, an eighth of it */
	assert_int_equal(RESIDUAL_Update(&r, 6 * S, 71 * S,
	    60 * S + S * 8 / 10, 11000), 2500);
	/* the same again: 2500 + (20000 - 2500) / 8 */
	assert_int_equal(RESIDUAL_Update(&r, 7 * S, 72 * S,
	    60 * S + S * 16 / 10, 21000), 4687);
	/* Idle: 0.5 s of a core. r stays, the base moves */
	assert_int_equal(RESIDUAL_Update(&r, 8 * S, 72 * S + S / 2,
	    62 * S, 31000), 4687);
	/* Busy, but no requests */
	assert_int_equal(RESIDUAL_Update(&r, 9 * S, 74 * S, 62 * S, 31000),
	    4687);
	/* Laps above the process's clock: clamped at 0 */
	assert_int_equal(RESIDUAL_Update(&r, 10 * S, 75 * S, 65 * S, 41000),
	    4687 - 4687 / 8);
}

static void
test_residual_clamp(void **state)
{
	struct residual r;
	int64_t t, v = 0;

	(void)state;
	memset(&r, 0, sizeof r);
	for (t = 1; t < 200; t++) {
		v = RESIDUAL_Update(&r, t * S, t * S, 0, (uint64_t)t);
		assert_in_range(v, 0, RESIDUAL_MAX);
	}
	assert_in_range(v, RESIDUAL_MAX - 8, RESIDUAL_MAX);
}

/* Busy is 0.9 of a core, in an interval of a second at least */
static void
test_residual_busy(void **state)
{
	struct residual r;

	(void)state;
	memset(&r, 0, sizeof r);
	(void)RESIDUAL_Update(&r, S, 0, 0, 0);
	assert_int_equal(RESIDUAL_Update(&r, 2 * S, S * 89 / 100, 0, 10000),
	    0);
	assert_int_equal(RESIDUAL_Update(&r, 3 * S, S * 179 / 100, 0, 20000),
	    11250);			/* 90 us, an eighth */
	memset(&r, 0, sizeof r);
	(void)RESIDUAL_Update(&r, S, 0, 0, 0);
	assert_int_equal(RESIDUAL_Update(&r, 2 * S, S * 85 / 100, 0, 10000),
	    0);
	assert_int_equal(RESIDUAL_Update(&r, 3 * S, S * 180 / 100, 0, 20000),
	    11875);
	/* Two seconds at that rate are as busy */
	assert_int_equal(RESIDUAL_Update(&r, 5 * S, S * 360 / 100, 0, 38000),
	    11875 + (100000 - 11875) / 8);
}

/* The first call is a beginning, however young the process is */
static void
test_residual_young(void **state)
{
	struct residual r;

	(void)state;
	memset(&r, 0, sizeof r);
	assert_int_equal(RESIDUAL_Update(&r, S / 2, 0, 0, 0), 0);
	assert_int_equal(RESIDUAL_Update(&r, S * 3 / 2, S, 0, 10000), 12500);
}

static void
test_residual_odd(void **state)
{
	struct residual r;
	int64_t t, v = 0;

	(void)state;
	memset(&r, 0, sizeof r);
	/* More requests than an int64_t has, and laps above the clock */
	(void)RESIDUAL_Update(&r, S, 0, 0, 0);
	assert_int_equal(RESIDUAL_Update(&r, 2 * S, S, 9 * S, UINT64_MAX), 0);
	/* With nothing to add it falls to 0, up to the rounding: 7 ns */
	memset(&r, 0, sizeof r);
	(void)RESIDUAL_Update(&r, S, S, S, 1);
	v = RESIDUAL_Update(&r, 2 * S, 2 * S, S, 2);
	assert_int_equal(v, 12500);
	for (t = 3; t < 200; t++)
		v = RESIDUAL_Update(&r, t * S, t * S, t * 2 * S, (uint64_t)t);
	assert_int_equal(v, 7);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_net_by_hand),
		cmocka_unit_test(test_dominant_by_hand),
		cmocka_unit_test(test_dominant_turns),
		cmocka_unit_test(test_dominant_is_the_larger_sum),
		cmocka_unit_test(test_net_extremes),
		cmocka_unit_test(test_net_large),
		cmocka_unit_test(test_net_random),
		cmocka_unit_test(test_est_table),
		cmocka_unit_test(test_est_by_hand),
		cmocka_unit_test(test_est_fraction),
		cmocka_unit_test(test_est_new_maximum),
		cmocka_unit_test(test_est_random),
		cmocka_unit_test(test_est_unseen),
		cmocka_unit_test(test_residual_by_hand),
		cmocka_unit_test(test_residual_clamp),
		cmocka_unit_test(test_residual_busy),
		cmocka_unit_test(test_residual_young),
		cmocka_unit_test(test_residual_odd),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
