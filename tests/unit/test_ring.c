/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The ring between workers and tuner: its order, a full ring, and threads that
 * write while one reads.
 */

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "admission/ring.h"
#include "no_memory.h"

#define ROOM		8
#define WRITERS		4
#define REQUESTS	100000		/* of each writer */

static struct ring ring;

static int
put(uint64_t digest)
{
	struct ring_request q = { digest, 2 * digest, (uint32_t)digest + 1 };

	return (RING_Put(&ring, &q));
}

static void
assert_get(uint64_t digest)
{
	struct ring_request q;

	assert_int_equal(RING_Get(&ring, &q), 1);
	assert_int_equal(q.digest, digest);
	assert_int_equal(q.bytes, 2 * digest);
	assert_int_equal(q.owner, digest + 1);
}

static void
test_order(void **state)
{
	struct ring_request q;
	uint64_t n;

	(void)state;
	assert_int_equal(RING_Init(&ring, ROOM), 0);
	assert_int_equal(RING_Get(&ring, &q), 0);
	for (n = 0; n < 10 * ROOM; n += 3) {
		assert_int_equal(put(n), 0);
		assert_int_equal(put(n + 1), 0);
		assert_int_equal(put(n + 2), 0);
		assert_get(n);
		assert_get(n + 1);
		assert_get(n + 2);
		assert_int_equal(RING_Get(&ring, &q), 0);
	}
	RING_Fini(&ring);
}

static void
test_full(void **state)
{
	uint64_t n;

	(void)state;
	memset(&ring, 1, sizeof ring);	/* of no meaning */
	assert_int_equal(RING_Init(&ring, ROOM), 0);
	for (n = 0; n < ROOM; n++)
		assert_int_equal(put(n), 0);
	assert_int_equal(put(100), -1);
	assert_int_equal(put(101), -1);
	assert_int_equal(RING_Dropped(&ring), 2);
	assert_int_equal(RING_Dropped(&ring), 0);
	assert_get(0);
	assert_int_equal(put(ROOM), 0);
	assert_int_equal(put(102), -1);
	for (n = 1; n <= ROOM; n++)
		assert_get(n);
	RING_Fini(&ring);
}

static void *
writer(void *priv)
{
	uint64_t first = (uint64_t)(uintptr_t)priv << 32, n;

	for (n = 0; n < REQUESTS; n++)
		while (put(first + n) != 0)
			continue;
	return (NULL);
}

/* Each writer's requests come in order, and whole */
static void
test_threads(void **state)
{
	pthread_t thread[WRITERS];
	struct ring_request q;
	uint64_t next[WRITERS] = { 0 }, got, w;
	uintptr_t i;

	(void)state;
	assert_int_equal(RING_Init(&ring, ROOM), 0);
	for (i = 0; i < WRITERS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, writer,
		    (void *)i), 0);
	for (got = 0; got < WRITERS * REQUESTS;) {
		if (!RING_Get(&ring, &q))
			continue;
		w = q.digest >> 32;
		assert_true(w < WRITERS);
		assert_int_equal(q.digest & UINT32_MAX, next[w]);
		assert_int_equal(q.bytes, 2 * q.digest);
		next[w]++;
		got++;
	}
	for (i = 0; i < WRITERS; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	assert_int_equal(RING_Get(&ring, &q), 0);
	RING_Fini(&ring);
}

static int
begin_ring(void)
{

	return (RING_Init(&ring, ROOM));
}

static void
end_ring(void)
{

	RING_Fini(&ring);
	assert_int_equal(ring.magic, 0);
}

static void
test_no_memory(void **state)
{

	(void)state;
	assert_no_leak(begin_ring, end_ring, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_no_memory),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
