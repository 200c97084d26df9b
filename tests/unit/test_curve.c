/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The hit ratio with more memory: on cases, and against LRU caches.
 */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "admission/curve.h"
#include "admission/shadow.h"
#include "splitmix.h"

#define OBJECTS		5000
#define REQUESTS	400000

static uint64_t seed;

static void
test_nothing(void **state)
{
	struct curve c;

	(void)state;
	memset(&c, 0, sizeof c);
	assert_true(isnan(CURVE_Hits(&c, 1e6)));
	assert_true(CURVE_Fills(&c) == 0);
	CURVE_End(&c, 1000);
	assert_true(isnan(CURVE_Hits(&c, 1e6)));
	assert_true(c.time == 0);
}

static void
assert_near(double is, double expected)
{

	if (!(fabs(is - expected) <= 1e-6 * (1 + fabs(expected))))
		fail_msg("%.9f, not %.9f", is, expected);
}

/* Objects of 1000 bytes come again after 100 requests: in a bin from 90.5 to
 * 128 requests.  In it, half of the bytes are still to be asked for. */
static void
test_between_the_ends_of_a_bin(void **state)
{
	const double begin = 1000 * exp2(6.5), end = begin + 500 * (128 -
	    exp2(6.5));
	struct curve c;
	unsigned u;

	(void)state;
	memset(&c, 0, sizeof c);
	for (u = 0; u < 1000; u++)
		CURVE_Add(&c, 100, 1000, 1, 1 + u);
	assert_true(c.time == 1000);
	assert_near(CURVE_Hits(&c, begin), 0);
	assert_near(CURVE_Hits(&c, begin + (end - begin) / 4), .25);
	assert_near(CURVE_Hits(&c, end), 1);
	assert_near(CURVE_Fills(&c), end);
}

/* Where bins begin, and the last one, which has all longer times */
static void
test_bins(void **state)
{
	struct curve c;

	(void)state;
	memset(&c, 0, sizeof c);
	CURVE_Add(&c, exp2(4.5), 10, 1, 1);
	assert_true(c.time == 1);
	CURVE_Add(&c, exp2(36), 10, 1, 2);
	CURVE_Add(&c, exp2(40), 10, 1, 3);
	assert_true(c.time == 3);
	assert_true(c.requests[0] == 0 && c.requests[1] == 1);
	assert_true(c.requests[CURVE_BINS - 1] == 2);
	assert_true(c.bytes[0] == 0 && c.bytes[CURVE_BINS - 1] == 20);
}

/* One request for an object of one byte, or of none */
static void
test_one_request(void **state)
{
	struct curve c;

	(void)state;
	memset(&c, 0, sizeof c);
	CURVE_Add(&c, 1, 1, 1, 1);
	assert_true(CURVE_Hits(&c, 1e6) == 1);
	CURVE_End(&c, 1);
	assert_true(c.requests[0] == .5F && c.bytes[0] == .5F);
	assert_true(CURVE_Hits(&c, 1e6) == 1);
	assert_true(CURVE_Hits(&c, 0) == 0);
	/* Much less than a byte comes into the cache at a time */
	CURVE_Add(&c, INFINITY, 0, .5, 1e6);
	assert_near(CURVE_Hits(&c, 1e6), .5);
	assert_true(CURVE_Hits(&c, 0) == 0);
	/* Objects without bytes fill nothing */
	memset(&c, 0, sizeof c);
	CURVE_Add(&c, INFINITY, 0, 1, 1);
	assert_true(CURVE_Fills(&c) == 0);
}

/* Times count up to the end of the last bin. */
static void
test_very_long(void **state)
{
	struct curve c;

	(void)state;
	memset(&c, 0, sizeof c);
	CURVE_Add(&c, INFINITY, 1000, 1, 1);
	CURVE_Add(&c, INFINITY, 1000, 1, exp2(40));
	assert_near(CURVE_Fills(&c), 2000 * exp2(36 - 40));
}

/* Objects that nobody asks for again are no hits, with any memory */
static void
test_a_scan(void **state)
{
	struct curve c;
	unsigned u;

	(void)state;
	memset(&c, 0, sizeof c);
	for (u = 0; u < 1000; u++)
		CURVE_Add(&c, INFINITY, 1000, 1, 1 + u);
	CURVE_End(&c, 1000);
	assert_true(CURVE_Hits(&c, 0) == 0);
	assert_true(CURVE_Hits(&c, 1e15) == 0);
	/* The first window counts as half of one */
	assert_true(fabs(CURVE_Fills(&c) - CURVE_LONG * 1e6 / 2) < 1);
}

static void
check_cycle(const struct curve *c)
{

	assert_true(CURVE_Hits(c, 85000) == 0);
	assert_true(CURVE_Hits(c, 130000) == 1);
	assert_true(CURVE_Fills(c) > 85000 && CURVE_Fills(c) < 130000);
}

/* 100 objects of 1000 bytes in turn: all hits if they fit, or none.  begin: the
 * requests for others before. */
static void
ask_in_turn(double begin)
{
	struct curve c;
	unsigned u;

	memset(&c, 0, sizeof c);
	for (u = 0; u < 10000; u++)
		CURVE_Add(&c, 100, 1000, 1, begin + 1 + u);
	check_cycle(&c);
	CURVE_End(&c, begin + 10000);
	check_cycle(&c);
	/* In the middle of a window, too */
	for (u = 10000; u < 13000; u++)
		CURVE_Add(&c, 100, 1000, 1, begin + 1 + u);
	check_cycle(&c);
	CURVE_End(&c, begin + 13000);
	check_cycle(&c);
}

static void
test_a_cycle(void **state)
{

	(void)state;
	ask_in_turn(0);
	ask_in_turn(5e6);
}

/* More memory is never worse, and new requests count for more */
static void
test_it_rises_and_forgets(void **state)
{
	double bytes, last = 0, hits;
	struct curve c;
	unsigned u;

	(void)state;
	memset(&c, 0, sizeof c);
	for (u = 0; u < 1000; u++)
		CURVE_Add(&c, exp2(36 * splitmix_draw(&seed)),
		    1e5 * splitmix_draw(&seed), 1, 1 + u);
	CURVE_End(&c, 1000);
	for (bytes = 1; bytes < 1e15; bytes *= 1.3) {
		hits = CURVE_Hits(&c, bytes);
		assert_true(hits >= last && hits <= 1);
		last = hits;
	}
	assert_true(last == 1);
	for (u = 0; u < 1000; u++)
		CURVE_Add(&c, INFINITY, 1000, 1, 1001 + u);
	CURVE_End(&c, 2000);
	assert_true(fabs(CURVE_Hits(&c, 1e15) - 1 / 3.) < 1e-6);
}

/* Popular objects are small or large: the LRU caches agree */
static void
check_zipf(double size(unsigned))
{
	static double last[OBJECTS];
	struct shadow lru[4];
	unsigned u, k, object;
	struct curve c;
	double bytes;

	memset(&c, 0, sizeof c);
	memset(last, 0, sizeof last);
	seed = 1;
	for (k = 0; k < 4; k++)
		assert_int_equal(SHADOW_Init(&lru[k], 8192), 0);
	for (u = 1; u <= REQUESTS; u++) {
		object = (unsigned)(OBJECTS * pow(splitmix_draw(&seed), 3));
		CURVE_Add(&c, last[object] > 0 ? u - last[object] : INFINITY,
		    size(object), 1, u);
		last[object] = u;
		for (k = 0, bytes = 1e6; k < 4; k++, bytes *= 4)
			(void)SHADOW_Ask(&lru[k], object, size(object), 1,
			    bytes);
	}
	CURVE_End(&c, REQUESTS);
	for (k = 0, bytes = 1e6; k < 4; k++, bytes *= 4) {
		assert_true(fabs(CURVE_Hits(&c, bytes) -
		    (double)lru[k].hits / REQUESTS) < .02);
		SHADOW_Fini(&lru[k]);
	}
}

static double
small_first(unsigned object)
{

	return (1000 + 10. * object);
}

static double
large_first(unsigned object)
{

	return (1000 + 10. * (OBJECTS - object));
}

static void
test_it_predicts_lru(void **state)
{

	(void)state;
	check_zipf(small_first);
	check_zipf(large_first);
}

/* The most popular object is missing in the sample, or alone in it */
static void
test_adjust(void **state)
{
	struct curve c, a;
	unsigned u;

	(void)state;
	memset(&c, 0, sizeof c);
	CURVE_Adjust(&c, 100);
	assert_true(isnan(CURVE_Hits(&c, 1e6)));
	for (u = 0; u < 1000; u++)
		CURVE_Add(&c, u % 2 ? 20 : 1000, 1000, 16, 16 * (1 + u));
	CURVE_End(&c, 16000);
	assert_true(fabs(CURVE_Hits(&c, 1e5) - .5) < .01);
	a = c;
	CURVE_Adjust(&a, 16000);
	assert_memory_equal(&a, &c, sizeof a);
	/* 4000 of 20000 were for that object: hits with little memory */
	CURVE_Adjust(&a, 20000);
	assert_true(fabs(CURVE_Hits(&a, 1e5) - .6) < .01);
	/* 4000 too many of 16000 */
	a = c;
	CURVE_Adjust(&a, 12000);
	assert_true(fabs(CURVE_Hits(&a, 1e5) - 1 / 3.) < .01);
	/* Not more than twice or half */
	a = c;
	CURVE_Adjust(&a, 1e9);
	assert_true(fabs(CURVE_Hits(&a, 1e5) - .75) < .01);
	a = c;
	CURVE_Adjust(&a, 1);
	assert_true(CURVE_Hits(&a, 1e5) >= 0 && CURVE_Hits(&a, 1e4) < .01);
}

/* Little is added, or much taken away, from several bins. */
static void
test_adjust_to_the_request(void **state)
{
	struct curve c, a;

	(void)state;
	memset(&c, 0, sizeof c);
	CURVE_Add(&c, 20, 1000, 1, 1);
	a = c;
	CURVE_Adjust(&a, 0);
	assert_memory_equal(&a, &c, sizeof a);
	CURVE_Adjust(&a, 1.5);
	assert_true(a.requests[0] == 1.5F);
	/* 400 each, after 50, 500 and 5000 requests, and 300 new ones */
	memset(&c, 0, sizeof c);
	CURVE_Add(&c, 50, 1000, 400, 400);
	CURVE_Add(&c, 500, 1000, 400, 800);
	CURVE_Add(&c, 5000, 1000, 400, 1200);
	CURVE_Add(&c, INFINITY, 1000, 300, 1500);
	a = c;
	CURVE_Adjust(&a, 900);
	assert_near(CURVE_Hits(&a, 1e15), 600 / 900.);
	/* Half of them is the most: 50 of 5000 are left */
	a = c;
	CURVE_Adjust(&a, 1);
	assert_near(CURVE_Hits(&a, 1e15), 450 / 750.);
	/* Only new ones are left, and the bytes stay */
	memset(&c, 0, sizeof c);
	CURVE_Add(&c, 1, 1000, 100, 100);
	CURVE_Add(&c, INFINITY, 1000, 900, 1000);
	CURVE_Adjust(&c, 1);
	assert_true(CURVE_Hits(&c, 1e15) == 0);
	assert_true(c.bytes[0] == 1e5F);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_between_the_ends_of_a_bin),
		cmocka_unit_test(test_bins),
		cmocka_unit_test(test_one_request),
		cmocka_unit_test(test_very_long),
		cmocka_unit_test(test_a_scan),
		cmocka_unit_test(test_a_cycle),
		cmocka_unit_test(test_it_rises_and_forgets),
		cmocka_unit_test(test_it_predicts_lru),
		cmocka_unit_test(test_adjust),
		cmocka_unit_test(test_adjust_to_the_request),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
