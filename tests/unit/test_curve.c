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
	CURVE_End(&c, 1000);
	assert_true(isnan(CURVE_Hits(&c, 1e6)));
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
		CURVE_Add(&c, INFINITY, 1000, 1);
	CURVE_End(&c, 1000);
	assert_true(CURVE_Hits(&c, 0) == 0);
	assert_true(CURVE_Hits(&c, 1e15) == 0);
}

/* 100 objects of 1000 bytes in turn: all hits if they fit, or none */
static void
test_a_cycle(void **state)
{
	struct curve c;
	unsigned u;

	(void)state;
	memset(&c, 0, sizeof c);
	for (u = 0; u < 10000; u++)
		CURVE_Add(&c, 100, 1000, 1);
	CURVE_End(&c, 10000);
	assert_true(CURVE_Hits(&c, 85000) == 0);
	assert_true(CURVE_Hits(&c, 130000) == 1);
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
		    1e5 * splitmix_draw(&seed), 1);
	CURVE_End(&c, 1000);
	for (bytes = 1; bytes < 1e15; bytes *= 1.3) {
		hits = CURVE_Hits(&c, bytes);
		assert_true(hits >= last && hits <= 1);
		last = hits;
	}
	assert_true(last == 1);
	for (u = 0; u < 1000; u++)
		CURVE_Add(&c, INFINITY, 1000, 1);
	CURVE_End(&c, 1000);
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
		    size(object), 1);
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_a_scan),
		cmocka_unit_test(test_a_cycle),
		cmocka_unit_test(test_it_rises_and_forgets),
		cmocka_unit_test(test_it_predicts_lru),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
