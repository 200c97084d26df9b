/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Congestion, prices and the lean, as price.h says.
 */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "price/price.h"

#define MS		INT64_C(1000000)	/* ns */
#define SECOND		(1000 * MS)
#define BUFFER		(20 * MS)
#define LONG		(100 * SECOND)		/* a mean is the sum by then */

static void
set(struct price *p, struct price_part *t, unsigned waiting, int64_t cpu,
    int64_t net, int64_t now)
{
	const int64_t cost[REL__RESOURCES] = {
		[REL_CPU] = cpu, [REL_NET] = net
	};
	const int64_t queue[REL__RESOURCES] = {
		[REL_CPU] = waiting * cpu, [REL_NET] = waiting * net
	};

	PRICE_Set(p, t, queue, cost, now);
}

static void
near(double a, double b)
{

	assert_true(fabs(a - b) <= .001 * fmax(1, fabs(b)));
}

static void
test_nothing_waits(void **state)
{
	struct price p = { .set = 0 };

	(void)state;
	assert_true(PRICE_Congestion(&p, REL_CPU, BUFFER, 0) == 0);
	assert_true(PRICE_Congestion(&p, REL_NET, BUFFER, LONG) == 0);
	assert_true(PRICE_Of(&p, REL_CPU, MS, BUFFER, 0) == 0);
}

/* As RED: 0 up to a quarter of the buffer, 0.1 at three quarters.  Then it rises
 * without a limit */
static void
test_congestion(void **state)
{
	static const struct {
		unsigned	waiting;	/* of 1 ms each */
		double		congestion;
	} rows[] = {
		{ 0, 0 }, { 4, 0 }, { 5, 0 }, { 10, .05 }, { 15, .1 },
		{ 30, 1 }, { 45, 1.9 }, { 15000, 899.2 },
	};
	unsigned u;

	(void)state;
	for (u = 0; u < sizeof rows / sizeof rows[0]; u++) {
		struct price p = { .set = 0 };
		struct price_part t = { { 0, 0 } };

		set(&p, &t, rows[u].waiting, MS, 0, 0);
		near(PRICE_Congestion(&p, REL_CPU, BUFFER, 10000 * LONG),
		    rows[u].congestion);
		assert_true(PRICE_Congestion(&p, REL_NET, BUFFER,
		    10000 * LONG) == 0);
	}
}

/* The sum of all tenants counts, each tenant as it is now */
static void
test_sum(void **state)
{
	struct price p = { .set = 0 };
	struct price_part a = { { 0, 0 } }, b = { { 0, 0 } };

	(void)state;
	set(&p, &a, 3, MS, 5 * MS, 0);
	set(&p, &b, 1, 8 * MS, 0, 0);
	assert_true(p.queue[REL_CPU] == 11 * MS);
	assert_true(p.queue[REL_NET] == 15 * MS);
	set(&p, &a, 3, 2 * MS, MS, MS);
	assert_true(p.queue[REL_CPU] == 14 * MS);
	assert_true(p.queue[REL_NET] == 3 * MS);
	set(&p, &b, 0, 8 * MS, 9 * MS, MS);
	assert_true(p.queue[REL_CPU] == 6 * MS);
	set(&p, &a, 0, MS, MS, MS);
	assert_true(p.queue[REL_CPU] == 0 && p.queue[REL_NET] == 0);
}

/* A mean is half way after 50 ms.  A clock that goes back changes nothing */
static void
test_mean(void **state)
{
	struct price p = { .set = 0 };
	struct price_part t = { { 0, 0 } };

	(void)state;
	set(&p, &t, 60, MS, 0, SECOND);
	near(PRICE_Congestion(&p, REL_CPU, BUFFER, SECOND), 0);
	near(PRICE_Congestion(&p, REL_CPU, BUFFER, SECOND + 50 * MS), 1);
	near(PRICE_Congestion(&p, REL_CPU, BUFFER, 0), 0);
	set(&p, &t, 0, MS, 0, SECOND + 50 * MS);
	near(PRICE_Congestion(&p, REL_CPU, BUFFER, SECOND + 50 * MS), 1);
	near(PRICE_Congestion(&p, REL_CPU, BUFFER, SECOND + 100 * MS), .1);
	set(&p, &t, 0, MS, 0, SECOND);
	near(PRICE_Congestion(&p, REL_CPU, BUFFER, SECOND + 100 * MS), .1);
}

/* The cheapest request that waited in this second or the last one has the price
 * of the congestion */
static void
test_price(void **state)
{
	struct price p = { .set = 0 };
	struct price_part a = { { 0, 0 } }, b = { { 0, 0 } };

	(void)state;
	set(&p, &a, 1, MS, 0, 10 * SECOND);
	set(&p, &b, 29, 10 * MS, 0, 10 * SECOND);
	near(PRICE_Of(&p, REL_CPU, MS, BUFFER, LONG) /
	    PRICE_Congestion(&p, REL_CPU, BUFFER, LONG), 1);
	near(PRICE_Of(&p, REL_CPU, 10 * MS, BUFFER, LONG) /
	    PRICE_Congestion(&p, REL_CPU, BUFFER, LONG), 10);
	assert_true(PRICE_Of(&p, REL_NET, 10 * MS, BUFFER, LONG) == 0);

	/* A queue that is empty names no least cost */
	set(&p, &a, 0, 1, 0, 10 * SECOND);
	near(PRICE_Of(&p, REL_CPU, MS, BUFFER, LONG) /
	    PRICE_Congestion(&p, REL_CPU, BUFFER, LONG), 1);

	/* It is forgotten after 1 to 2 s */
	set(&p, &b, 29, 10 * MS, 0, 11 * SECOND);
	near(PRICE_Of(&p, REL_CPU, 10 * MS, BUFFER, LONG) /
	    PRICE_Congestion(&p, REL_CPU, BUFFER, LONG), 10);
	set(&p, &b, 29, 10 * MS, 0, 12 * SECOND);
	near(PRICE_Of(&p, REL_CPU, 10 * MS, BUFFER, LONG) /
	    PRICE_Congestion(&p, REL_CPU, BUFFER, LONG), 1);
}

/* Call it every 10 ms for so long, while these parts are used */
static double
lean(struct price *p, double net, double cpu, int64_t *now, int64_t time)
{
	int64_t end = *now + time;

	for (; *now < end; *now += 10 * MS)
		(void)PRICE_Lean(p, net, cpu, *now);
	return (PRICE_Lean(p, net, cpu, *now));
}

/* It rises by at most 1 in a second while net is used more, falls while cpu is,
 * and goes back to 0 if nothing is scarce */
static void
test_lean(void **state)
{
	struct price p = { .set = 0 };
	int64_t now = LONG;

	(void)state;
	p.leaned = now;
	near(PRICE_Lean(&p, 0, 0, now), 0);
	near(lean(&p, .9, 0, &now, SECOND / 2), .5);
	near(lean(&p, .9, 0, &now, SECOND), 1);
	near(lean(&p, 0, .9, &now, SECOND / 2), .5);
	near(lean(&p, 0, .9, &now, 3 * SECOND), -1);
	near(lean(&p, 0, 0, &now, SECOND / 2), -.5);
	near(lean(&p, 0, 0, &now, 2 * SECOND), 0);
	/* By how much one is used more */
	near(lean(&p, 1, .9, &now, SECOND), .1);
	near(lean(&p, .4, .5, &now, SECOND), -.1);
	/* Both alike: it stays */
	p.lean = .5;
	near(lean(&p, .9, .9, &now, SECOND), .5);
}

/* Between two calls at most 0.1 s count, and a time before none */
static void
test_lean_seldom(void **state)
{
	struct price p = { .set = 0 };
	int64_t now = LONG;

	(void)state;
	near(PRICE_Lean(&p, 1, 0, now), .1);
	now += SECOND;
	near(PRICE_Lean(&p, 1, 0, now), .2);
	near(PRICE_Lean(&p, 1, 0, now), .2);
	near(PRICE_Lean(&p, 1, 0, now - SECOND), .2);
	near(PRICE_Lean(&p, 1, 0, now + SECOND / 20), .25);
}

/* It settles where both are used in full: costs in ms as in the record of
 * `compress` at 1 Gbit/s, plain and compressed */
static void
test_lean_settles(void **state)
{
	static const double cpu[] = { .22, 2.2 }, net[] = { .84, .37 };
	struct price p = { .set = 0 };
	int64_t now = LONG, end = now + 10 * SECOND;
	double each[2], most, part;

	(void)state;
	for (; now < end; now += 10 * MS) {
		part = fmax(0, p.lean);
		each[0] = net[0] + part * (net[1] - net[0]);
		each[1] = cpu[0] + part * (cpu[1] - cpu[0]);
		most = fmax(each[0], each[1]);
		(void)PRICE_Lean(&p, each[0] / most, each[1] / most, now);
	}
	near(p.lean, (net[0] - cpu[0]) / (net[0] - net[1] + cpu[1] - cpu[0]));
}

/* Absurd costs and numbers overflow nothing */
static void
test_bounds(void **state)
{
	struct price p = { .set = 0 };
	struct price_part t[9000] = { { { 0, 0 } } };
	unsigned u;

	(void)state;
	for (u = 0; u < 9000; u++)
		set(&p, &t[u], 1, INT64_MAX, INT64_MIN, 0);
	assert_true(p.queue[REL_CPU] > 0);
	assert_true(p.queue[REL_NET] == 0);
	assert_true(isfinite(PRICE_Of(&p, REL_CPU, INT64_MAX, 1, LONG)));
	for (u = 0; u < 9000; u++)
		set(&p, &t[u], 0, INT64_MAX, INT64_MAX, 0);
	assert_true(p.queue[REL_CPU] == 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_waits),
		cmocka_unit_test(test_congestion),
		cmocka_unit_test(test_sum),
		cmocka_unit_test(test_mean),
		cmocka_unit_test(test_price),
		cmocka_unit_test(test_lean),
		cmocka_unit_test(test_lean_seldom),
		cmocka_unit_test(test_lean_settles),
		cmocka_unit_test(test_bounds),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
