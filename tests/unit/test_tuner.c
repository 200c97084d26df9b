/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The tuner: the length of its windows, the c that it finds for a mix in which
 * the best one is plain, and what it does with windows that cannot be used and
 * with a c that is worse than none.
 */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "admission/tuner.h"
#include "splitmix.h"

#define ROOM		262144
#define DELTA		32768
#define CAPACITY	20e6		/* bytes */
#define HOT		3000		/* objects of 2 to 8 KB */
#define SMALL		5000.
#define HUGE		10000000	/* bytes, asked for once */

static uint64_t seed;

static uint64_t
draw(uint64_t n)
{

	return (splitmix(seed++) % n);
}

static void
begin(struct tuner *t)
{

	seed = 1;
	assert_int_equal(TUNER_Init(t, 0, ROOM, DELTA, 3), 0);
	assert_true(isinf(t->c));
}

/* Ask for a hot object, or for a huge one that is new. */
static int
ask_mixed(struct tuner *t)
{
	uint64_t n = draw(HOT);

	if (draw(20) == 0)
		return (TUNER_Ask(t, splitmix(1000000 + seed), HUGE,
		    CAPACITY, NULL));
	return (TUNER_Ask(t, splitmix(n), 2000 + n * 6000 / HOT, CAPACITY,
	    NULL));
}

static void
window(struct tuner *t, int (*ask)(struct tuner *), uint64_t requests)
{
	uint64_t u;

	for (u = 1; u < requests; u++)
		assert_false(ask(t));
	assert_true(ask(t));
	TUNER_Tune(t, CAPACITY);
}

static void
test_windows_double(void **state)
{
	struct tuner t;

	(void)state;
	begin(&t);
	window(&t, ask_mixed, TUNER_FIRST);
	window(&t, ask_mixed, 2 * TUNER_FIRST);
	window(&t, ask_mixed, DELTA);
	window(&t, ask_mixed, DELTA);
	assert_int_equal(t.tunes, 4);
	TUNER_Fini(&t);
}

static void
test_finds_c(void **state)
{
	struct tuner t;

	(void)state;
	begin(&t);
	window(&t, ask_mixed, TUNER_FIRST);
	/* Hot objects enter, huge ones do not */
	assert_true(exp(-SMALL / t.c) > .8);
	assert_true(exp(-HUGE / t.c) < .1);
	window(&t, ask_mixed, 2 * TUNER_FIRST);
	window(&t, ask_mixed, DELTA);
	window(&t, ask_mixed, DELTA);
	assert_true(t.measured > 2 * t.measured_all);
	/* All hot objects fit */
	assert_true(t.measured > .9);
	assert_int_equal(t.fallbacks, 0);
	TUNER_Fini(&t);
}

static int
ask_few(struct tuner *t)
{

	return (TUNER_Ask(t, splitmix(draw(TUNER_LEAST - 1)), 5000,
	    CAPACITY, NULL));
}

static void
test_window_that_cannot_be_used(void **state)
{
	struct tuner t;
	unsigned u;

	(void)state;
	begin(&t);
	t.c = 1e6;
	/* Too few objects */
	window(&t, ask_few, TUNER_FIRST);
	assert_true(t.c == 1e6);
	/* Too many requests were lost */
	TUNER_Lost(&t, 2 * TUNER_FIRST / 8);
	window(&t, ask_mixed, 2 * TUNER_FIRST);
	assert_true(t.c == 1e6);
	/* The capacity is not known */
	for (u = 1; u < DELTA; u++)
		assert_false(ask_mixed(&t));
	assert_true(ask_mixed(&t));
	assert_int_equal(t.fallbacks, 0);
	TUNER_Tune(&t, 0);
	assert_true(isinf(t.c));
	assert_int_equal(t.fallbacks, 0);
	/* A few lost requests do not matter */
	TUNER_Lost(&t, DELTA / 10);
	window(&t, ask_mixed, DELTA);
	assert_true(isfinite(t.c));
	TUNER_Fini(&t);
}

/* All objects are asked for once, then once more, soon.  So an object that is
 * not admitted is a miss the second time, too. */
static int
ask_twice(struct tuner *t)
{
	uint64_t n = seed++;

	return (TUNER_Ask(t, splitmix(n / 200 * 100 + n % 100), 100000,
	    CAPACITY, NULL));
}

static void
test_guard(void **state)
{
	struct tuner t;
	unsigned u;

	(void)state;
	begin(&t);
	window(&t, ask_twice, TUNER_FIRST);
	window(&t, ask_twice, 2 * TUNER_FIRST);
	t.bad = 0;
	for (u = 0; u < 4 && t.fallbacks == 0; u++) {
		/* What a model that is wrong would choose */
		t.c = 10000;
		window(&t, ask_twice, DELTA);
	}
	assert_int_equal(u, TUNER_BAD);
	assert_int_equal(t.fallbacks, 1);
	for (u = 0; u < TUNER_REST; u++) {
		assert_true(isinf(t.c));
		window(&t, ask_twice, DELTA);
	}
	assert_int_equal(t.rest, 0);
	assert_true(isfinite(t.c));
	TUNER_Fini(&t);
}

/* With one in 16 objects the answer is about the same */
static void
test_sampled(void **state)
{
	struct tuner all, few;
	unsigned u;

	(void)state;
	assert_int_equal(TUNER_Init(&all, 0, ROOM, DELTA, 3), 0);
	assert_int_equal(TUNER_Init(&few, 2, ROOM, DELTA, 3), 0);
	for (u = 0; u < 3; u++) {
		seed = u * DELTA;
		while (!ask_mixed(&all))
			continue;
		seed = u * DELTA;
		while (!ask_mixed(&few))
			continue;
		TUNER_Tune(&all, CAPACITY);
		TUNER_Tune(&few, CAPACITY);
	}
	assert_true(fabs(all.measured - few.measured) < .05);
	assert_true(exp(-SMALL / few.c) > .8);
	assert_true(exp(-HUGE / few.c) < .1);
	TUNER_Fini(&all);
	TUNER_Fini(&few);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_windows_double),
		cmocka_unit_test(test_finds_c),
		cmocka_unit_test(test_window_that_cannot_be_used),
		cmocka_unit_test(test_guard),
		cmocka_unit_test(test_sampled),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
