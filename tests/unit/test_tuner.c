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
#include "no_memory.h"
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
	/* The last one but one is shorter than delta */
	assert_int_equal(TUNER_Init(&t, 0, ROOM, 20000, 3), 0);
	window(&t, ask_mixed, TUNER_FIRST);
	window(&t, ask_mixed, 2 * TUNER_FIRST);
	window(&t, ask_mixed, 20000);
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

/* Is a window used in which each of so many objects is asked for once, and so
 * many requests are lost? */
static int
is_used(uint64_t objects, uint64_t lost, double capacity)
{
	struct tuner t;
	uint64_t u;
	int used;

	begin(&t);
	t.cell[1].objects = TUNER_LEAST;	/* of an earlier window */
	for (u = 0; u < objects; u++)
		(void)TUNER_Ask(&t, splitmix(u), 5000, CAPACITY, NULL);
	TUNER_Lost(&t, lost);
	TUNER_Tune(&t, capacity);
	used = t.blind == 0;
	/* No hits of both shadows are no bad window */
	assert_int_equal(t.bad, 0);
	TUNER_Fini(&t);
	return (used);
}

static void
test_which_windows_are_used(void **state)
{

	(void)state;
	assert_false(is_used(TUNER_LEAST - 1, 0, CAPACITY));
	assert_true(is_used(TUNER_LEAST, 0, CAPACITY));
	assert_true(is_used(9000, 1000, CAPACITY));
	assert_false(is_used(9000, 1001, CAPACITY));
	assert_true(is_used(TUNER_LEAST, 0, 1));
	assert_false(is_used(TUNER_LEAST, 0, 0));
}

/* End so many windows that cannot be used. */
static void
blind(struct tuner *t, unsigned windows)
{

	while (windows-- > 0)
		TUNER_Tune(t, 0);
}

/* Only windows in a row count.  When all objects are admitted the count begins
 * anew. */
static void
test_blind_windows(void **state)
{
	struct tuner t;
	uint64_t u;

	(void)state;
	begin(&t);
	blind(&t, TUNER_BLIND - 1);
	for (u = 0; u < TUNER_LEAST; u++)
		(void)TUNER_Ask(&t, splitmix(u), 5000, CAPACITY, NULL);
	TUNER_Tune(&t, CAPACITY);
	for (u = 0; u < 2; u++) {
		t.c = 1e6;
		blind(&t, TUNER_BLIND - 1);
		assert_true(t.c == 1e6);
		blind(&t, 1);
		assert_true(isinf(t.c));
	}
	TUNER_Fini(&t);
}

/* A request counts for all that the sample leaves out, also in a curve. */
static void
test_requests_of_a_sample(void **state)
{
	struct curve curve = { .ever = 0 };
	struct tuner t;

	(void)state;
	assert_int_equal(TUNER_Init(&t, 2, ROOM, 8, 3), 0);
	assert_int_equal(TUNER_Ask(&t, UINT64_MAX, 100, CAPACITY, &curve), 0);
	assert_int_equal(TUNER_Ask(&t, 7, 100, CAPACITY, &curve), 0);
	assert_int_equal(t.asked, 4);
	assert_true(curve.ever == 4 && curve.new_requests == 4);
	assert_int_equal(TUNER_Ask(&t, 7, 100, CAPACITY, &curve), 1);
	assert_true(curve.ever == 8 && curve.new_requests == 4);
	TUNER_Fini(&t);
}

/* The hit ratios are those of one window. */
static void
test_hit_ratios(void **state)
{
	struct tuner t;
	unsigned u;

	(void)state;
	begin(&t);
	TUNER_Tune(&t, CAPACITY);
	assert_true(t.measured == 0 && t.measured_all == 0);
	for (u = 0; u < 2; u++)
		(void)TUNER_Ask(&t, 7, 100, CAPACITY, NULL);
	TUNER_Tune(&t, CAPACITY);
	assert_true(t.measured == .5 && t.measured_all == .5);
	TUNER_Fini(&t);
}

/* Ask often for an object that is ten times as large as c.  Return how many
 * hits `chosen` has. */
static uint64_t
hits(int frequency)
{
	struct tuner t;
	uint64_t n;
	unsigned u;

	begin(&t);
	t.c = 10000;
	t.frequency = frequency;
	for (u = 0; u < 200; u++)
		(void)TUNER_Ask(&t, 7, 100000, CAPACITY, NULL);
	n = t.chosen->hits;
	TUNER_Fini(&t);
	return (n);
}

/* What `chosen` admits: by chance, small ones always, and with `frequency` the
 * objects of many requests. */
static void
test_chosen_admits(void **state)
{
	struct tuner t, other;
	unsigned u;

	(void)state;
	begin(&t);
	t.c = 1;
	(void)TUNER_Ask(&t, 1, ADM_SMALL, CAPACITY, NULL);
	assert_int_equal(t.chosen->table->used, 1);
	(void)TUNER_Ask(&t, 2, ADM_SMALL + 1, CAPACITY, NULL);
	assert_int_equal(t.chosen->table->used, 1);
	TUNER_Fini(&t);
	assert_int_equal(hits(0), 0);
	assert_in_range(hits(1), 100, 199);
	/* Another seed, other objects */
	begin(&t);
	assert_int_equal(TUNER_Init(&other, 0, ROOM, DELTA, 4), 0);
	t.c = other.c = 10000;
	for (u = 0; u < 100; u++) {
		(void)TUNER_Ask(&t, u, 10000 + u, CAPACITY, NULL);
		(void)TUNER_Ask(&other, u, 10000 + u, CAPACITY, NULL);
	}
	assert_true(t.chosen->bytes != other.chosen->bytes);
	TUNER_Fini(&t);
	TUNER_Fini(&other);
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
	assert_int_equal(t.bad, 0);
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

static struct tuner ended;

static int
begin_tuner(void)
{

	return (TUNER_Init(&ended, 0, 1024, DELTA, 3));
}

static void
end_tuner(void)
{

	TUNER_Fini(&ended);
	assert_int_equal(ended.magic, 0);
}

static void
test_no_memory(void **state)
{

	(void)state;
	assert_no_leak(begin_tuner, end_tuner, 8);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_windows_double),
		cmocka_unit_test(test_finds_c),
		cmocka_unit_test(test_window_that_cannot_be_used),
		cmocka_unit_test(test_which_windows_are_used),
		cmocka_unit_test(test_blind_windows),
		cmocka_unit_test(test_requests_of_a_sample),
		cmocka_unit_test(test_hit_ratios),
		cmocka_unit_test(test_chosen_admits),
		cmocka_unit_test(test_guard),
		cmocka_unit_test(test_sampled),
		cmocka_unit_test(test_no_memory),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
