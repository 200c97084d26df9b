/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The hash table of objects: against an array, with few digests, so that many
 * entries share a chain.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "admission/chain.h"
#include "no_memory.h"
#include "splitmix.h"

#define ROOM		64
#define DIGESTS		100
#define STEPS		100000

struct entry {
	struct chained		chained;
	unsigned		value;
};

/* Digests that differ in their upper bits only have one chain. */
static uint64_t
digest(unsigned n)
{

	return ((uint64_t)n << 32 | n % 3);
}

static void
test_numbers(void **state)
{
	struct entry *a, *b;
	struct chain c;

	(void)state;
	assert_int_equal(CHAIN_Init(&c, 2, sizeof(struct entry)), 0);
	assert_null(CHAIN_Find(&c, 7));
	assert_null(CHAIN_Next(&c, NULL));
	a = CHAIN_Add(&c, 7);
	b = CHAIN_Add(&c, 8);
	a->value = 5;
	assert_ptr_equal(CHAIN_At(&c, CHAIN_Number(&c, a)), a);
	assert_ptr_equal(CHAIN_At(&c, CHAIN_Number(&c, b)), b);
	CHAIN_Remove(&c, a);
	assert_null(CHAIN_Find(&c, 7));
	assert_ptr_equal(CHAIN_Find(&c, 8), b);
	/* A new entry is zeroed */
	a = CHAIN_Add(&c, 9);
	assert_int_equal(a->value, 0);
	assert_int_equal(c.used, 2);
	CHAIN_Fini(&c);
}

static void
judge(const struct chain *c, const unsigned *value)
{
	const struct entry *e = NULL;
	unsigned n, seen = 0, expected = 0;

	while ((e = CHAIN_Next(c, e)) != NULL) {
		n = (unsigned)(e->chained.digest >> 32);
		assert_int_equal(e->value, value[n]);
		assert_int_not_equal(e->value, 0);
		seen++;
	}
	for (n = 0; n < DIGESTS; n++)
		expected += value[n] != 0;
	assert_int_equal(seen, expected);
	assert_int_equal(c->used, expected);
}

static void
test_random(void **state)
{
	unsigned value[DIGESTS] = { 0 }, step, n;
	uint64_t seed = 1;
	struct entry *e;
	struct chain c;

	(void)state;
	assert_int_equal(CHAIN_Init(&c, ROOM, sizeof(struct entry)), 0);
	for (step = 1; step <= STEPS; step++) {
		n = (unsigned)(splitmix_next(&seed) % DIGESTS);
		e = CHAIN_Find(&c, digest(n));
		assert_int_equal(e == NULL ? 0 : e->value, value[n]);
		if (e != NULL) {
			CHAIN_Remove(&c, e);
			value[n] = 0;
		} else if (c.used < ROOM) {
			e = CHAIN_Add(&c, digest(n));
			e->value = value[n] = step;
		}
		if (step % 100 == 0)
			judge(&c, value);
	}
	CHAIN_Fini(&c);
}

/* The last one that was returned may be removed */
static void
test_remove_all(void **state)
{
	struct entry *e = NULL;
	struct chain c;
	unsigned n;

	(void)state;
	assert_int_equal(CHAIN_Init(&c, ROOM, sizeof(struct entry)), 0);
	for (n = 0; n < ROOM; n++)
		(void)CHAIN_Add(&c, digest(n));
	while ((e = CHAIN_Next(&c, e)) != NULL)
		CHAIN_Remove(&c, e);
	assert_int_equal(c.used, 0);
	CHAIN_Fini(&c);
}

static struct chain ended;

static int
begin_table(void)
{

	return (CHAIN_Init(&ended, ROOM, sizeof(struct entry)));
}

static void
end_table(void)
{

	CHAIN_Fini(&ended);
	assert_int_equal(ended.magic, 0);
}

static void
test_no_memory(void **state)
{

	(void)state;
	assert_no_leak(begin_table, end_table, 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_remove_all),
		cmocka_unit_test(test_no_memory),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
