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
between(double least, double found, double most)
{

	assert_true(found >= least && found <= most);
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

static double
lean_now(struct price *p, int64_t now)
{

	return (PRICE_Lean(p, PRICE_Congestion(p, REL_NET, BUFFER, now),
	    PRICE_Congestion(p, REL_CPU, BUFFER, now), now));
}

/* Call it every 10 ms for so long, with these costs of 30 requests */
static double
lean(struct price *p, struct price_part *t, int64_t cpu, int64_t net,
    int64_t *now, int64_t time)
{
	int64_t end = *now + time;

	set(p, t, 30, cpu, net, *now);
	for (; *now < end; *now += 10 * MS)
		(void)lean_now(p, *now);
	return (lean_now(p, *now));
}

/* It rises by at most 1 in a second while net is scarce, falls while cpu is, and
 * goes back to 0 if both are free */
static void
test_lean(void **state)
{
	struct price p = { .set = 0 };
	struct price_part t = { { 0, 0 } };
	int64_t now = LONG;

	(void)state;
	assert_true(lean_now(&p, now) == 0);
	/* The mean of the queue needs some ms */
	between(.4, lean(&p, &t, 0, MS, &now, SECOND / 2), .5);
	between(1, lean(&p, &t, 0, MS, &now, SECOND), 1);
	between(.5, lean(&p, &t, MS, 0, &now, SECOND / 2), .9);
	between(-1, lean(&p, &t, MS, 0, &now, 3 * SECOND), -1);
	between(-.9, lean(&p, &t, 0, 0, &now, SECOND / 2), -.5);
	between(0, lean(&p, &t, 0, 0, &now, 2 * SECOND), 0);
	/* Both are scarce alike, or nearly so */
	between(-.02, lean(&p, &t, MS, MS, &now, SECOND), 0);
	between(.02, lean(&p, &t, MS, MS + MS / 10, &now, SECOND), .1);
	/* So it stays */
	p.lean = .5;
	between(.48, lean(&p, &t, MS, MS, &now, SECOND), .52);
}

/* Between two calls at most 0.1 s count, and a time before none */
static void
test_lean_seldom(void **state)
{
	struct price p = { .set = 0 };
	struct price_part t = { { 0, 0 } };
	int64_t now = LONG;

	(void)state;
	set(&p, &t, 30, 0, MS, 0);
	(void)lean_now(&p, now);
	near(p.lean, .1);
	now += SECOND;
	near(lean_now(&p, now), .2);
	near(lean_now(&p, now), .2);
	near(lean_now(&p, now - SECOND), .2);
	near(lean_now(&p, now + SECOND / 20), .25);
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
		cmocka_unit_test(test_bounds),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
