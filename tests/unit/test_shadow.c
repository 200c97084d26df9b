/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The miniature cache: on cases, and against a plain list in the order of the
 * last requests.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "admission/shadow.h"
#include "no_memory.h"

#define ROOM		64
#define OBJECTS		200
#define REQUESTS	200000

static void
ask(struct shadow *s, uint64_t digest, double bytes, double capacity, int hit)
{

	assert_int_equal(SHADOW_Ask(s, digest, bytes, 1, capacity), hit);
}

static void
test_oldest_leaves(void **state)
{
	struct shadow s;

	(void)state;
	assert_int_equal(SHADOW_Init(&s, ROOM), 0);
	ask(&s, 1, 40, 100, 0);
	ask(&s, 2, 40, 100, 0);
	ask(&s, 1, 40, 100, 1);
	ask(&s, 3, 40, 100, 0);		/* 2 leaves, not 1 */
	ask(&s, 1, 40, 100, 1);
	ask(&s, 3, 40, 100, 1);
	ask(&s, 2, 40, 100, 0);
	assert_int_equal(s.requests, 7);
	assert_int_equal(s.hits, 3);
	SHADOW_Fini(&s);
}

static void
test_not_admitted(void **state)
{
	struct shadow s;

	(void)state;
	assert_int_equal(SHADOW_Init(&s, ROOM), 0);
	assert_int_equal(SHADOW_Ask(&s, 1, 10, 0, 100), 0);
	assert_int_equal(SHADOW_Ask(&s, 1, 10, 0, 100), 0);
	ask(&s, 1, 10, 100, 0);
	/* What is in stays in */
	assert_int_equal(SHADOW_Ask(&s, 1, 10, 0, 100), 1);
	SHADOW_Fini(&s);
}

static void
test_larger_than_the_cache(void **state)
{
	struct shadow s;

	(void)state;
	assert_int_equal(SHADOW_Init(&s, ROOM), 0);
	ask(&s, 1, 50, 100, 0);
	ask(&s, 2, 101, 100, 0);
	ask(&s, 2, 101, 100, 0);
	ask(&s, 1, 50, 100, 0);
	/* An object as large as the cache enters */
	ask(&s, 3, 100, 100, 0);
	ask(&s, 3, 100, 100, 1);
	ask(&s, 1, 50, 100, 0);
	SHADOW_Fini(&s);
}

static void
test_capacity_falls(void **state)
{
	struct shadow s;
	uint64_t u;

	(void)state;
	assert_int_equal(SHADOW_Init(&s, ROOM), 0);
	for (u = 0; u < 10; u++)
		ask(&s, u, 10, 100, 0);
	ask(&s, 100, 10, 30, 0);	/* 0 to 7 leave */
	for (u = 8; u < 10; u++)
		ask(&s, u, 10, 30, 1);
	ask(&s, 7, 10, 30, 0);
	SHADOW_Fini(&s);
}

static void
test_full_table(void **state)
{
	struct shadow s;
	uint64_t u;

	(void)state;
	assert_int_equal(SHADOW_Init(&s, ROOM), 0);
	for (u = 0; u < ROOM; u++)
		ask(&s, u, 0, 100, 0);
	ask(&s, 0, 0, 100, 1);
	ask(&s, ROOM, 0, 100, 0);	/* 1 leaves */
	ask(&s, 0, 0, 100, 1);
	ask(&s, 1, 0, 100, 0);
	SHADOW_Fini(&s);
}

/* Sums of sizes are rounded, but an empty shadow has no bytes. */
static void
test_empty_again(void **state)
{
	struct shadow s;

	(void)state;
	assert_int_equal(SHADOW_Init(&s, ROOM), 0);
	ask(&s, 1, 1e17, 1e18, 0);
	ask(&s, 2, 1, 1e18, 0);
	ask(&s, 3, 2e18, 1e18, 0);
	assert_int_equal(s.table->used, 0);
	assert_true(s.bytes == 0);
	SHADOW_Fini(&s);
}

static struct shadow ended;

static int
begin_shadow(void)
{

	return (SHADOW_Init(&ended, ROOM));
}

static void
end_shadow(void)
{

	SHADOW_Fini(&ended);
	assert_int_equal(ended.magic, 0);
}

static void
test_no_memory(void **state)
{

	(void)state;
	assert_no_leak(begin_shadow, end_shadow, 2);
}

/*--------------------------------------------------------------------
 * Against a plain list
 */

struct plain {
	unsigned		n;
	uint64_t		digest[ROOM];	/* the newest first */
	double			bytes[ROOM];
};

static double
plain_bytes(const struct plain *p)
{
	double sum = 0;
	unsigned u;

	for (u = 0; u < p->n; u++)
		sum += p->bytes[u];
	return (sum);
}

/* Make the object at u, which may be the first free place, the newest one. */
static void
plain_first(struct plain *p, unsigned u, uint64_t digest, double bytes)
{

	memmove(p->digest + 1, p->digest, u * sizeof *p->digest);
	memmove(p->bytes + 1, p->bytes, u * sizeof *p->bytes);
	p->digest[0] = digest;
	p->bytes[0] = bytes;
}

static int
plain_ask(struct plain *p, uint64_t digest, double bytes, int admit,
    double capacity)
{
	unsigned u;

	for (u = 0; u < p->n; u++)
		if (p->digest[u] == digest) {
			plain_first(p, u, digest, p->bytes[u]);
			return (1);
		}
	if (!admit)
		return (0);
	while (p->n > 0 && plain_bytes(p) + bytes > capacity)
		p->n--;
	if (bytes > capacity)
		return (0);
	if (p->n == ROOM)
		p->n--;
	plain_first(p, p->n, digest, bytes);
	p->n++;
	return (0);
}

static uint64_t
rnd(uint64_t *x)
{

	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return (*x >> 8);
}

static void
test_against_list(void **state)
{
	struct shadow s;
	struct plain p = { .n = 0 };
	uint64_t x = 42, digest;
	double capacity = 3000, bytes;
	unsigned u, hits = 0;
	int admit, hit;

	(void)state;
	assert_int_equal(SHADOW_Init(&s, ROOM), 0);
	for (u = 0; u < REQUESTS; u++) {
		if (u % 1000 == 0)
			capacity = (double)(rnd(&x) % 10000);
		/* Many in one bucket, since the digest has few values there */
		digest = (rnd(&x) % OBJECTS) << (rnd(&x) % 2 ? 0 : 4);
		bytes = (double)(digest * 37 % 400);
		admit = rnd(&x) % 4 > 0;
		hit = plain_ask(&p, digest, bytes, admit, capacity);
		assert_int_equal(SHADOW_Ask(&s, digest, bytes, admit,
		    capacity), hit);
		assert_int_equal(s.table->used, p.n);
		assert_true(s.bytes == plain_bytes(&p));
		hits += (unsigned)hit;
	}
	assert_int_equal(s.hits, hits);
	assert_int_equal(s.requests, REQUESTS);
	/* Hits and misses were both tried */
	assert_in_range(hits, REQUESTS / 20, REQUESTS - REQUESTS / 20);
	SHADOW_Fini(&s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_oldest_leaves),
		cmocka_unit_test(test_not_admitted),
		cmocka_unit_test(test_larger_than_the_cache),
		cmocka_unit_test(test_capacity_falls),
		cmocka_unit_test(test_full_table),
		cmocka_unit_test(test_empty_again),
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_against_list),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
