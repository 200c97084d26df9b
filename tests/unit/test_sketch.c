/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The sketch of misses: it never counts too few, seldom too many, and forgets.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "admission/sketch.h"
#include "no_memory.h"
#include "splitmix.h"

#define ROOM		4096

static void
test_counts(void **state)
{
	struct sketch s;
	unsigned u;

	(void)state;
	assert_int_equal(SKETCH_Init(&s, ROOM), 0);
	for (u = 1; u < 1000; u++)
		assert_int_equal(SKETCH_Count(&s, splitmix(1)),
		    u < SKETCH_MOST ? u : SKETCH_MOST);
	assert_int_equal(SKETCH_Count(&s, splitmix(2)), 1);
	SKETCH_Fini(&s);
}

static void
test_size(void **state)
{
	struct sketch s;

	(void)state;
	assert_int_equal(SKETCH_Init(&s, ROOM), 0);
	assert_in_range(malloc_usable_size((void *)s.counter), 2 * ROOM,
	    2 * ROOM + 100);
	SKETCH_Fini(&s);
}

static void
test_forgets(void **state)
{
	struct sketch s;
	unsigned u;

	(void)state;
	assert_int_equal(SKETCH_Init(&s, ROOM), 0);
	for (u = 0; u < 9; u++)
		(void)SKETCH_Count(&s, splitmix(1));
	SKETCH_Age(&s);
	assert_int_equal(SKETCH_Count(&s, splitmix(1)), 5);
	for (u = 0; u < 3; u++)
		SKETCH_Age(&s);
	assert_int_equal(SKETCH_Count(&s, splitmix(1)), 1);
	SKETCH_Fini(&s);
}

/* Each counter is halved, the first one too. */
static void
test_all_forget(void **state)
{
	const uint64_t bit = UINT64_C(1) << 32;
	struct sketch s;
	unsigned u;

	(void)state;
	assert_int_equal(SKETCH_Init(&s, ROOM), 0);
	for (u = 0; u < 8; u++)
		(void)SKETCH_Count(&s, 0);
	SKETCH_Age(&s);
	for (u = 0; u < 8; u++)
		(void)SKETCH_Count(&s, bit | 1);
	/* It has a counter of each of them */
	assert_int_equal(SKETCH_Count(&s, bit), 5);
	SKETCH_Fini(&s);
}

/* Objects share counters: the count is at least what it should be, and more for
 * a few. */
static void
test_objects_that_collide(void **state)
{
	unsigned more = 0, n, turn, count;
	struct sketch s;
	uint64_t o;

	(void)state;
	assert_int_equal(SKETCH_Init(&s, ROOM), 0);
	for (turn = 1; turn <= 3; turn++)
		for (o = 0; o < ROOM; o++) {
			n = o % 2 == 0 ? 1 : turn;
			if (o % 2 == 0 && turn > 1)
				continue;
			count = SKETCH_Count(&s, splitmix(o));
			assert_true(count >= n);
			more += count > n;
		}
	/* Of 8192 counts.  With one row, 37 % of the objects share a counter */
	assert_in_range(more, 1, 8192 / 4);
	SKETCH_Fini(&s);
}

static struct sketch ended;

static int
begin_sketch(void)
{

	return (SKETCH_Init(&ended, ROOM));
}

static void
end_sketch(void)
{

	SKETCH_Fini(&ended);
	assert_int_equal(ended.magic, 0);
}

static void
test_no_memory(void **state)
{

	(void)state;
	assert_no_leak(begin_sketch, end_sketch, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_size),
		cmocka_unit_test(test_forgets),
		cmocka_unit_test(test_all_forget),
		cmocka_unit_test(test_objects_that_collide),
		cmocka_unit_test(test_no_memory),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
