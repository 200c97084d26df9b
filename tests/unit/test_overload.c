/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The controllers of overload: each by what its source says, and `time` before
 * a server with a known load.  fuzz_overload.c has absurd input.
 */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "overload/overload.h"

#define MS		INT64_C(1000000)	/* ns */
#define SECOND		(1000 * MS)
#define TARGET		(500 * MS)
#define STANDING	(20 * MS)
#define LEAST		4U

static struct ovl_queue
queue(int64_t now, unsigned waiting)
{

	return ((struct ovl_queue){ .now = now, .target = TARGET,
	    .standing = STANDING, .waiting = waiting, .least = LEAST });
}

static unsigned
named(const char *name)
{
	int n = OVL_ByName(name);

	assert_true(n >= 0);
	return ((unsigned)n);
}

static int
admit(unsigned c, struct ovl *o, int64_t now, unsigned waiting)
{
	struct ovl_queue q = queue(now, waiting);

	return (OVL_Admit(c, o, &q));
}

static void
released(unsigned c, struct ovl *o, int64_t now, unsigned waiting,
    int64_t wait)
{
	struct ovl_queue q = queue(now, waiting);

	OVL_Released(c, o, &q, wait);
}

/*--------------------------------------------------------------------
 * All of them
 */

static void
test_table(void **state)
{
	unsigned c;

	(void)state;
	for (c = 0; c < OVL_Controllers(); c++) {
		assert_int_equal(OVL_ByName(OVL_Name(c)), c);
		assert_true(strlen(OVL_Summary(c)) > 0);
	}
	assert_int_equal(OVL_ByName("nothing"), -1);
}

/* Two hours of very long waits in a queue that is never empty */
static void
drown(unsigned c, struct ovl *o)
{
	int64_t now;

	for (now = SECOND; now < 7200 * SECOND; now += 10 * MS) {
		(void)admit(c, o, now, 1000);
		released(c, o, now, 1000, 10 * SECOND);
	}
}

static void
test_least_can_always_wait(void **state)
{
	struct ovl o;
	unsigned c, u;

	(void)state;
	for (c = 0; c < OVL_Controllers(); c++) {
		memset(&o, 0, sizeof o);
		drown(c, &o);
		for (u = 0; u < 100; u++)
			assert_int_equal(admit(c, &o, 7200 * SECOND,
			    LEAST - 1), 1);
		if (c != named("limit"))
			assert_int_equal(admit(c, &o, 7200 * SECOND, 1000), 0);
	}
}

/* What was parsed too late gets no answer in time, also with an empty queue. */
static void
test_late_requests_are_refused(void **state)
{
	struct ovl_queue q = queue(SECOND, 0);
	struct ovl o;
	unsigned c;

	(void)state;
	for (c = 0; c < OVL_Controllers(); c++) {
		memset(&o, 0, sizeof o);
		q.age = TARGET / 2;
		assert_int_equal(OVL_Admit(c, &o, &q), 1);
		q.age++;
		assert_int_equal(OVL_Admit(c, &o, &q), c == named("limit"));
		q.target = 0;
		assert_int_equal(OVL_Admit(c, &o, &q), 1);
		/* A busy machine may need 20 ms */
		q.target = MS;
		q.age = 20 * MS;
		assert_int_equal(OVL_Admit(c, &o, &q), 1);
		q.age++;
		assert_int_equal(OVL_Admit(c, &o, &q), c == named("limit"));
		q.target = TARGET;
	}
}

static void
test_without_a_target_all_are_admitted(void **state)
{
	struct ovl o;
	struct ovl_queue q = queue(7200 * SECOND, 100000);
	unsigned c;

	(void)state;
	q.target = 0;
	for (c = 0; c < OVL_Controllers(); c++) {
		memset(&o, 0, sizeof o);
		drown(c, &o);
		assert_int_equal(OVL_Admit(c, &o, &q), 1);
		OVL_Released(c, &o, &q, SECOND);
		/* With a target again, it begins anew */
		assert_int_equal(admit(c, &o, 7200 * SECOND, 50), 1);
	}
}

static void
test_another_controller_begins_anew(void **state)
{
	struct ovl o;
	unsigned c, d;

	(void)state;
	for (c = 0; c < OVL_Controllers(); c++)
		for (d = 0; d < OVL_Controllers(); d++) {
			memset(&o, 0, sizeof o);
			drown(c, &o);
			assert_int_equal(admit(d, &o, 7200 * SECOND, 50),
			    d != c || c == named("limit"));
		}
}

/*--------------------------------------------------------------------
 * The histogram
 */

static void
test_percentile(void **state)
{
	struct histogram h;
	int64_t wait, from;
	double found;
	unsigned n;

	(void)state;
	/* Bins are at most a quarter as wide as where they begin */
	for (from = MS; from < SECOND; from *= 3) {
		memset(&h, 0, sizeof h);
		for (n = 1; n <= 100; n++)
			histogram_add(&h, from * n / 100);
		found = histogram_part(&h, .9);
		assert_true(found > .75 * (double)from);
		assert_true(found < 1.15 * (double)from);
	}
	/* Equal waits count as spread over their bin */
	memset(&h, 0, sizeof h);
	for (n = 0; n < 100; n++)
		histogram_add(&h, 1 << 20);
	assert_true(fabs(histogram_part(&h, .9) / ((1 << 20) * 1.225) - 1)
	    < 1e-9);
	memset(&h, 0, sizeof h);
	assert_true(histogram_part(&h, .9) == 0);
	/* The ends */
	for (wait = 0; wait < 100; wait++)
		histogram_add(&h, wait);
	assert_true(histogram_part(&h, .9) < 100e3);
	for (n = 0; n < 155; n++)
		histogram_add(&h, INT64_MAX);
	assert_true(histogram_part(&h, .9) > 10e9);
}

/*--------------------------------------------------------------------
 * SEDA: the rule of section 2.1, with the constants of its Figure 50
 */

/* Release 100 requests that waited for so long. */
static void
hundred(unsigned c, struct ovl *o, int64_t now, int64_t wait)
{
	unsigned n;

	for (n = 0; n < 100; n++)
		released(c, o, now, 0, wait);
}

static void
test_seda_falls_and_rises(void **state)
{
	unsigned c = named("seda"), n;
	struct ovl o = { .controller = 0 };
	double rate, p90;

	(void)state;
	released(c, &o, SECOND, 0, 0);
	assert_true(o.seda.rate == 5000);
	/* 0.7 of 0 and 0.3 of 3 s: above the target of 0.5 s */
	hundred(c, &o, SECOND, 3 * SECOND);
	assert_true(fabs((double)o.seda.p90 / .9e9 - 1) < .15);
	assert_true(fabs((double)o.seda.rate - 5000 / 1.2) < .01);
	/* Between half of the target and all of it: nothing */
	o.seda.p90 = (float)(.4 * 1e9);
	hundred(c, &o, SECOND, 400 * MS);
	assert_true(fabs((double)o.seda.rate - 5000 / 1.2) < .01);
	/* Below half of it: 2 x -(err + 0.1) more */
	o.seda.p90 = 0;
	o.seda.rate = 100;
	hundred(c, &o, SECOND, 0);
	p90 = (double)o.seda.p90;
	rate = 100 + 2 * (1 - p90 / (double)TARGET - .1);
	assert_true(fabs((double)o.seda.rate - rate) < .01);
	/* Never above 5000, never below 0.05 */
	for (n = 0; n < 5000; n++)
		hundred(c, &o, SECOND, 0);
	assert_true(o.seda.rate == 5000);
	for (n = 0; n < 5000; n++)
		hundred(c, &o, SECOND, 10 * SECOND);
	assert_true(fabs((double)o.seda.rate - .05) < 1e-6);
}

static void
test_seda_after_a_second(void **state)
{
	unsigned c = named("seda");
	struct ovl o = { .controller = 0 };

	(void)state;
	released(c, &o, SECOND, 10, 10 * SECOND);
	(void)admit(c, &o, 2 * SECOND - 1, 10);
	assert_true(o.seda.rate == 5000);
	(void)admit(c, &o, 2 * SECOND, 10);
	assert_true(o.seda.rate < 5000);
}

/* Nothing is released: this says nothing of the rate. */
static void
test_seda_when_nothing_moves(void **state)
{
	unsigned c = named("seda"), n;
	struct ovl o = { .controller = 0 };

	(void)state;
	hundred(c, &o, SECOND, SECOND);
	hundred(c, &o, SECOND, 0);
	o.seda.rate = 100;
	o.seda.p90 = (float)1e9;
	for (n = 0; n < 100; n++)
		(void)admit(c, &o, (n + 2) * SECOND, 500);
	assert_true(o.seda.rate == 100);
	assert_true(o.seda.p90 == (float)1e9);
}

static void
test_seda_bucket(void **state)
{
	unsigned c = named("seda"), n, admitted = 0;
	struct ovl o = { .controller = 0 };

	(void)state;
	released(c, &o, 0, 10, 0);
	o.seda.rate = 100;
	for (n = 0; n < 1000; n++)	/* 1000 requests in 500 ms */
		admitted += (unsigned)admit(c, &o, n * MS / 2, 10);
	assert_in_range(admitted, 58, 60);
}

static void
test_scaled_seda_rises_by_parts(void **state)
{
	unsigned c = named("seda-scaled");
	struct ovl o = { .controller = 0 };

	(void)state;
	released(c, &o, SECOND, 0, 0);
	o.seda.rate = 50000;
	hundred(c, &o, SECOND, 0);
	assert_true(fabs((double)o.seda.rate / 50000 - 1.018) < .0005);
}

/*--------------------------------------------------------------------
 * CoDel: RFC 8289
 */

static void
test_codel_refuses_more_and_more(void **state)
{
	unsigned c = named("codel"), n, refused = 0;
	struct ovl o = { .controller = 0 };
	int64_t at[4], now;

	(void)state;
	for (now = MS; refused < 4; now += MS) {
		released(c, &o, now, 10, 6 * MS);
		for (n = 0; n < 10 && refused < 4; n++)
			if (!admit(c, &o, now, 10))
				at[refused++] = now;
	}
	assert_int_equal(at[0], 101 * MS);
	/* 100 ms, 100 ms / sqrt(2), 100 ms / sqrt(3) later */
	assert_in_range(at[1] - at[0], 100 * MS, 101 * MS);
	assert_in_range(at[2] - at[1], 70 * MS, 72 * MS);
	assert_in_range(at[3] - at[2], 57 * MS, 59 * MS);
	/* One short wait, or an empty queue, ends it */
	released(c, &o, now, 10, 4 * MS);
	assert_int_equal(admit(c, &o, now + SECOND, 10), 1);
	assert_int_equal(admit(c, &o, now + SECOND, 10), 1);
}

static void
test_codel_remembers_for_a_while(void **state)
{
	unsigned c = named("codel");
	struct ovl o = { .controller = 0 };
	int64_t now;

	(void)state;
	for (now = MS; now < 2 * SECOND; now += MS) {
		released(c, &o, now, 10, 6 * MS);
		(void)admit(c, &o, now, 10);
	}
	assert_true(o.codel.count > 10);
	released(c, &o, now, 0, 6 * MS);
	for (; now < 2200 * MS; now += MS)
		released(c, &o, now, 10, 6 * MS);
	assert_true(o.codel.count > 8);
	assert_int_equal(o.codel.refuses, 1);
	released(c, &o, now, 0, 6 * MS);
	for (now += 5 * SECOND; now < 8 * SECOND; now += MS)
		released(c, &o, now, 10, 6 * MS);
	assert_true(o.codel.count == 0);
	assert_int_equal(o.codel.refuses, 1);
}

/* It counts no refusal where the queue is too short for one. */
static void
test_codel_with_a_short_queue(void **state)
{
	unsigned c = named("codel");
	struct ovl o = { .controller = 0 };
	int64_t now;

	(void)state;
	for (now = MS; now < SECOND; now += MS) {
		released(c, &o, now, 10, 6 * MS);
		assert_int_equal(admit(c, &o, now, LEAST - 1), 1);
	}
	assert_true(o.codel.count == 0);
}

/*--------------------------------------------------------------------
 * Limits of the queue that follow the waits
 */

static void
test_gradient(void **state)
{
	unsigned c = named("gradient");
	struct ovl o = { .controller = 0 };

	(void)state;
	released(c, &o, SECOND, 10, STANDING);
	o.gradient.limit = 100;
	/* Each wait is as wanted: sqrt(100) more */
	released(c, &o, SECOND + 100 * MS, 10, STANDING);
	assert_true(fabs((double)o.gradient.limit - 110) < .01);
	/* The mean is 4/3 of what is wanted: 3/4 and the root */
	o.gradient.limit = 100;
	released(c, &o, SECOND + 150 * MS, 10, STANDING);
	released(c, &o, SECOND + 200 * MS, 10, STANDING * 5 / 3);
	assert_true(fabs((double)o.gradient.limit - 83.66) < .01);
	/* At most half, at most twice */
	o.gradient.limit = 100;
	released(c, &o, SECOND + 300 * MS, 10, SECOND);
	assert_true(fabs((double)o.gradient.limit - 57.07) < .01);
	o.gradient.limit = 100;
	released(c, &o, SECOND + 400 * MS, 10, 0);
	assert_true(fabs((double)o.gradient.limit - 214.14) < .01);
	assert_int_equal(admit(c, &o, SECOND + 400 * MS, 214), 1);
	assert_int_equal(admit(c, &o, SECOND + 400 * MS, 215), 0);
}

static void
test_credits(void **state)
{
	unsigned c = named("credits");
	struct ovl o = { .controller = 0 };

	(void)state;
	released(c, &o, SECOND, 10, 0);
	o.credits.credits = 100;
	released(c, &o, SECOND + MS, 10, STANDING / 2);
	assert_true(fabs((double)o.credits.credits - 101) < .01);
	/* Once in a ms */
	released(c, &o, SECOND + MS + MS / 2, 10, STANDING / 2);
	assert_true(fabs((double)o.credits.credits - 101) < .01);
	/* 0.02 x the error, (30 - 20) / 20 */
	o.credits.credits = 100;
	released(c, &o, SECOND + 2 * MS, 10, STANDING * 3 / 2);
	assert_true(fabs((double)o.credits.credits - 99) < .01);
	assert_int_equal(admit(c, &o, SECOND + 2 * MS, 98), 1);
	assert_int_equal(admit(c, &o, SECOND + 2 * MS, 99), 0);
	/* Twice the aim: all are refused, unless the queue is empty */
	released(c, &o, SECOND + 2 * MS, 10, 2 * STANDING + 1);
	assert_int_equal(admit(c, &o, SECOND + 2 * MS, LEAST), 0);
	released(c, &o, SECOND + 3 * MS, 10, 1000 * SECOND);
	assert_true(fabs((double)o.credits.credits - 49.5) < .01);
}

/*--------------------------------------------------------------------
 * By the time that a request would wait
 */

/* Begin at `now` with a queue that is not empty, and a release each ms. */
static int64_t
each_ms(unsigned c, struct ovl *o, int64_t now, unsigned ms)
{
	unsigned n;

	assert_int_equal(admit(c, o, now, 0), 1);
	for (n = 0; n < ms; n++) {
		now += MS;
		released(c, o, now, 100, 0);
	}
	return (now);
}

static void
test_time_lets_a_burst_wait_for_longer(void **state)
{
	unsigned c = named("time");
	struct ovl o = { .controller = 0 };
	int64_t now = each_ms(c, &o, SECOND, 99);

	(void)state;
	assert_int_equal(admit(c, &o, now, 298), 1);
	assert_int_equal(admit(c, &o, now, 301), 0);
	/* After 100 ms without an empty queue: the standing limit */
	now += MS;
	released(c, &o, now, 100, 0);
	assert_int_equal(admit(c, &o, now, 19), 1);
	assert_int_equal(admit(c, &o, now, 20), 0);
	/* It was empty: a burst may come */
	assert_int_equal(admit(c, &o, now, 0), 1);
	assert_int_equal(admit(c, &o, now, 200), 1);
}

/* 0.6 of the target, less the 0.1 s that the request has waited already */
static void
test_time_counts_the_wait_before_parsing(void **state)
{
	unsigned c = named("time");
	struct ovl o = { .controller = 0 };
	int64_t now = each_ms(c, &o, SECOND, 90);
	struct ovl_queue q = queue(now, 198);

	(void)state;
	q.age = 100 * MS;
	assert_int_equal(OVL_Admit(c, &o, &q), 1);
	q.waiting = 202;
	assert_int_equal(OVL_Admit(c, &o, &q), 0);
	q.age = 0;
	assert_int_equal(OVL_Admit(c, &o, &q), 1);
}

static void
test_time_sees_an_empty_queue_at_a_release(void **state)
{
	unsigned c = named("time");
	struct ovl o = { .controller = 0 };
	int64_t now = each_ms(c, &o, SECOND, 200);

	(void)state;
	assert_int_equal(admit(c, &o, now, 300), 0);
	released(c, &o, now + MS, 0, 0);
	assert_int_equal(admit(c, &o, now + MS, 200), 1);
}

static void
test_time_counts_a_release_that_is_overdue(void **state)
{
	unsigned c = named("time");
	struct ovl o = { .controller = 0 };
	int64_t now = each_ms(c, &o, SECOND, 40);

	(void)state;
	assert_int_equal(admit(c, &o, now, 200), 1);
	assert_int_equal(admit(c, &o, now + 50 * MS, 200), 0);
}

static void
test_time_follows_the_rate(void **state)
{
	unsigned c = named("time"), n;
	struct ovl o = { .controller = 0 };
	int64_t now = each_ms(c, &o, SECOND, 500);

	(void)state;
	/* Requests become four times as expensive */
	for (n = 0; n < 50; n++) {
		now += 4 * MS;
		released(c, &o, now, 100, 0);
	}
	assert_int_equal(admit(c, &o, now, 6), 0);
	assert_int_equal(admit(c, &o, now, 4), 1);
}

static void
test_time_with_a_target_below_the_standing_limit(void **state)
{
	unsigned c = named("time");
	struct ovl o = { .controller = 0 };
	struct ovl_queue q;

	(void)state;
	q = queue(each_ms(c, &o, SECOND, 500), 8);
	q.target = 10 * MS / .6;
	assert_int_equal(OVL_Admit(c, &o, &q), 1);
	q.waiting = 10;
	assert_int_equal(OVL_Admit(c, &o, &q), 0);
	/* 0 is no standing limit */
	q.target = TARGET;
	q.standing = 0;
	q.waiting = 200;
	assert_int_equal(OVL_Admit(c, &o, &q), 1);
}

/*--------------------------------------------------------------------
 * A server that releases a request each ms, and a load of 0.8 to 10
 */

#define ROOM		4096U

struct served {
	unsigned		good, late, refused, came;
};

static struct served
serve(unsigned c, unsigned per_10ms)
{
	struct ovl o = { .controller = 0 };
	struct served s = { .good = 0 };
	int64_t came[ROOM], now, wait;
	unsigned first = 0, last = 0, n;

	for (now = SECOND; now < 11 * SECOND; now += MS) {
		for (n = 0; n < per_10ms; n++) {
			if (((unsigned)(now / MS) * per_10ms + n) % 10)
				continue;
			s.came++;
			if (last - first < 1000 &&
			    admit(c, &o, now, last - first))
				came[last++ % ROOM] = now;
			else
				s.refused++;
		}
		if (first == last)
			continue;
		wait = now - came[first++ % ROOM];
		released(c, &o, now, last - first, wait);
		if (wait <= TARGET)
			s.good++;
		else
			s.late++;
	}
	return (s);
}

static void
test_time_serves_what_it_can(void **state)
{
	static const unsigned load[] = { 11, 15, 20, 30, 50, 100 };
	struct served s = serve(named("time"), 8);
	unsigned n;

	(void)state;
	assert_int_equal(s.refused + s.late, 0);
	for (n = 0; n < sizeof load / sizeof *load; n++) {
		s = serve(named("time"), load[n]);
		assert_int_equal(s.late, 0);
		assert_true(s.good > 9900);
		/* What is left waits for no longer than it may */
		assert_true(s.came - s.good - s.refused <= 21);
	}
	/* The limit of the queue alone lets all wait for too long */
	s = serve(named("limit"), 30);
	assert_true(s.good < 2000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_least_can_always_wait),
		cmocka_unit_test(test_late_requests_are_refused),
		cmocka_unit_test(test_without_a_target_all_are_admitted),
		cmocka_unit_test(test_another_controller_begins_anew),
		cmocka_unit_test(test_percentile),
		cmocka_unit_test(test_seda_falls_and_rises),
		cmocka_unit_test(test_seda_after_a_second),
		cmocka_unit_test(test_seda_when_nothing_moves),
		cmocka_unit_test(test_seda_bucket),
		cmocka_unit_test(test_scaled_seda_rises_by_parts),
		cmocka_unit_test(test_codel_refuses_more_and_more),
		cmocka_unit_test(test_codel_remembers_for_a_while),
		cmocka_unit_test(test_codel_with_a_short_queue),
		cmocka_unit_test(test_gradient),
		cmocka_unit_test(test_credits),
		cmocka_unit_test(
		    test_time_lets_a_burst_wait_for_longer),
		cmocka_unit_test(test_time_counts_the_wait_before_parsing),
		cmocka_unit_test(
		    test_time_sees_an_empty_queue_at_a_release),
		cmocka_unit_test(
		    test_time_counts_a_release_that_is_overdue),
		cmocka_unit_test(test_time_follows_the_rate),
		cmocka_unit_test(
		    test_time_with_a_target_below_the_standing_limit),
		cmocka_unit_test(test_time_serves_what_it_can),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
