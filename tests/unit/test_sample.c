/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The sample of objects: on cases, and against a plain list of all objects.
 */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "admission/sample.h"
#include "no_memory.h"
#include "splitmix.h"

#define ROOM		1024
#define OBJECTS		500
#define WINDOWS		20

static struct adm_cell cell[SAMPLE_CELLS + 1];	/* the last is not written */

struct sums {
	double			objects, bytes, rate, requests, before;
};

static struct sums
sums_of(size_t n)
{
	struct sums s = { 0, 0, 0, 0, 0 };
	size_t i;

	for (i = 0; i < n; i++) {
		s.objects += cell[i].objects;
		s.bytes += cell[i].objects * cell[i].size;
		s.rate += cell[i].objects * cell[i].rate;
		s.requests += cell[i].objects * cell[i].requests;
		s.before += cell[i].objects * cell[i].before;
	}
	return (s);
}

static void
assert_near(double is, double expected)
{

	if (!(fabs(is - expected) <= 1e-5 * (1 + fabs(expected))))
		fail_msg("%.6f, not %.6f", is, expected);
}

static void
test_empty(void **state)
{
	struct sample s;

	(void)state;
	assert_int_equal(SAMPLE_Init(&s, 0, ROOM), 0);
	assert_int_equal(SAMPLE_End(&s, cell), 0);
	SAMPLE_Fini(&s);
}

static void
test_one_object(void **state)
{
	struct sample s;

	(void)state;
	assert_int_equal(SAMPLE_Init(&s, 0, ROOM), 0);
	SAMPLE_Add(&s, 7, 100);
	SAMPLE_Add(&s, 7, 129);
	assert_int_equal(s.clock, 2);
	assert_int_equal(SAMPLE_End(&s, cell), 1);
	assert_near(cell[0].objects, 1);
	assert_near(cell[0].size, 3 * SAMPLE_UNIT);
	assert_near(cell[0].rate, 2);
	assert_near(cell[0].requests, 2);
	assert_near(cell[0].before, 0);
	SAMPLE_Add(&s, 7, 129);
	assert_int_equal(SAMPLE_End(&s, cell), 1);
	assert_near(cell[0].rate, .7 + .3 * 2);
	assert_near(cell[0].before, 2);
	/* .39, .117, and then it leaves */
	assert_int_equal(SAMPLE_End(&s, cell), 1);
	assert_near(cell[0].requests, 0);
	assert_int_equal(SAMPLE_End(&s, cell), 1);
	assert_int_equal(SAMPLE_End(&s, cell), 0);
	assert_int_equal(s.table->used, 0);
	SAMPLE_Fini(&s);
}

static void
test_sizes(void **state)
{
	const uint64_t size[] = { 0, 1, 63, 64, 65, UINT32_MAX,
	    (uint64_t)UINT32_MAX * SAMPLE_UNIT, UINT64_MAX };
	struct sample s;
	unsigned u;

	(void)state;
	assert_int_equal(SAMPLE_Init(&s, 0, ROOM), 0);
	for (u = 0; u < sizeof size / sizeof *size; u++) {
		SAMPLE_Add(&s, 1, size[u]);
		assert_int_equal(SAMPLE_End(&s, cell), 1);
		assert_true(cell[0].size >= fmin((double)size[u],
		    (double)UINT32_MAX * SAMPLE_UNIT));
	}
	SAMPLE_Fini(&s);
}

/* A sample of 1 in 8 counts for all */
static void
test_scale(void **state)
{
	struct sample s;
	struct sums sums;
	uint64_t u;

	(void)state;
	assert_int_equal(SAMPLE_Init(&s, 3, 1 << 16), 0);
	for (u = 0; u < 200000; u++)
		SAMPLE_Add(&s, splitmix(u % 100000), 1000);
	sums = sums_of(SAMPLE_End(&s, cell));
	assert_true(fabs(sums.objects - 100000) < 3000);
	assert_near(sums.requests, 2 * sums.objects);
	SAMPLE_Fini(&s);
}

/* Of large objects more are in the sample, and each counts for fewer */
static void
test_large_objects(void **state)
{
	struct sample s;
	struct sums sums;
	uint64_t u;

	(void)state;
	assert_int_equal(SAMPLE_Init(&s, 4, 1 << 16), 0);
	assert_int_equal(SAMPLE_Shift(4, 0), 4);
	assert_int_equal(SAMPLE_Shift(4, 2 * SAMPLE_LARGE - 1), 4);
	assert_int_equal(SAMPLE_Shift(4, 2 * SAMPLE_LARGE), 3);
	assert_int_equal(SAMPLE_Shift(4, 16 * SAMPLE_LARGE - 1), 1);
	assert_int_equal(SAMPLE_Shift(4, 16 * SAMPLE_LARGE), 0);
	assert_int_equal(SAMPLE_Shift(4, UINT64_MAX), 0);
	for (u = 0; u < 40000; u++)
		SAMPLE_Add(&s, splitmix(u), 4 * SAMPLE_LARGE);
	assert_true(fabs(s.table->used - 10000.) < 300);
	for (; u < 40010; u++)
		SAMPLE_Add(&s, splitmix(u), 16 * SAMPLE_LARGE);
	sums = sums_of(SAMPLE_End(&s, cell));
	assert_true(fabs(sums.objects - 40010) < 1200);
	assert_near(sums.bytes, (sums.objects - 10) * 4 * SAMPLE_LARGE +
	    10 * 16. * SAMPLE_LARGE);
	SAMPLE_Fini(&s);
}

/* f is what the sample knows of the object, with this request */
static void
test_frequency(void **state)
{
	struct sample s;

	(void)state;
	assert_int_equal(SAMPLE_Init(&s, 1, ROOM), 0);
	assert_near((double)SAMPLE_Add(&s, 7, 100).f, 1);
	assert_near((double)SAMPLE_Add(&s, 7, 100).f, 2);
	(void)SAMPLE_End(&s, cell);
	assert_near((double)SAMPLE_Add(&s, 7, 100).f, 3);
	(void)SAMPLE_End(&s, cell);
	assert_near((double)SAMPLE_Add(&s, 7, 100).f, 1 + .7 + .6);
	/* It is not in the sample */
	assert_near((double)SAMPLE_Add(&s, UINT64_MAX, 100).f, 1);
	assert_near((double)SAMPLE_Add(&s, UINT64_MAX, 100).f, 1);
	SAMPLE_Fini(&s);
}

/* The reuse time is in requests for all objects */
static void
test_reuse(void **state)
{
	struct sample s;
	uint64_t u;

	(void)state;
	assert_int_equal(SAMPLE_Init(&s, 3, ROOM), 0);
	assert_true(isinf(SAMPLE_Add(&s, 7, 100).reuse));
	assert_near(SAMPLE_Add(&s, 7, 100).reuse, 8);
	for (u = 0; u < 1000; u++)
		(void)SAMPLE_Add(&s, splitmix(u), 100);
	assert_true(fabs(SAMPLE_Add(&s, 7, 100).reuse - 1000) < 200);
	/* It stands for one request only */
	assert_true(isinf(SAMPLE_Add(&s, 8, 8 * SAMPLE_LARGE).reuse));
	assert_near(SAMPLE_Add(&s, 8, 8 * SAMPLE_LARGE).reuse, 1);
	SAMPLE_Fini(&s);
	/* The first request of all has a reuse, too */
	assert_int_equal(SAMPLE_Init(&s, 0, ROOM), 0);
	assert_true(isinf(SAMPLE_Add(&s, 7, 100).reuse));
	assert_near(SAMPLE_Add(&s, 7, 100).reuse, 1);
	SAMPLE_Fini(&s);
}

/* A full sample is halved, and grows again when it has room */
static void
test_full(void **state)
{
	struct sample s;
	struct sums sums;
	uint64_t u;

	(void)state;
	assert_int_equal(SAMPLE_Init(&s, 0, ROOM), 0);
	for (u = 0; u < 100 * ROOM; u++) {
		SAMPLE_Add(&s, splitmix(u), 1000);
		assert_true(s.table->used <= ROOM);
	}
	assert_in_range(s.shift, 7, 8);
	sums = sums_of(SAMPLE_End(&s, cell));
	assert_true(fabs(sums.objects - 100 * ROOM) < 15 * ROOM);
	for (u = 0; u < 20; u++)
		(void)SAMPLE_End(&s, cell);
	assert_int_equal(s.shift, 0);
	SAMPLE_Fini(&s);
}

/* It takes more objects when less than a quarter of the table is used. */
static void
test_room(void **state)
{
	struct sample s;
	uint64_t n;

	(void)state;
	for (n = ROOM / 4 - 1; n <= ROOM / 4; n++) {
		assert_int_equal(SAMPLE_Init(&s, 0, ROOM), 0);
		s.shift = 1;
		while (s.table->used < n)
			(void)SAMPLE_Add(&s, s.table->used, 1000);
		(void)SAMPLE_End(&s, cell);
		assert_int_equal(s.shift, n < ROOM / 4 ? 0 : 1);
		SAMPLE_Fini(&s);
	}
}

static void
test_sums_of_random_windows(void **state)
{
	double rate[OBJECTS] = { 0 }, requests[OBJECTS], bytes;
	struct sums sums, expected;
	struct sample s;
	unsigned w, u, o;

	(void)state;
	assert_int_equal(SAMPLE_Init(&s, 0, ROOM), 0);
	for (w = 0; w < WINDOWS; w++) {
		memset(requests, 0, sizeof requests);
		for (u = 0; u < 2000; u++) {
			o = (unsigned)(splitmix(w * 2000 + u) % OBJECTS);
			o = o * o / OBJECTS;
			if ((o + w / 4) % 3 == 0)
				continue;
			requests[o]++;
			SAMPLE_Add(&s, splitmix(o), 64 * o);
		}
		memset(&expected, 0, sizeof expected);
		for (o = 0; o < OBJECTS; o++) {
			double before = rate[o];

			rate[o] = before > 0 ? .7 * requests[o] + .3 * before :
			    requests[o];
			if (rate[o] < (double)SAMPLE_LEAST) {
				rate[o] = 0;
				continue;
			}
			bytes = 64. * o;
			expected.objects++;
			expected.bytes += bytes;
			expected.rate += rate[o];
			expected.requests += requests[o];
			expected.before += before;
		}
		sums = sums_of(SAMPLE_End(&s, cell));
		assert_near(sums.objects, expected.objects);
		assert_near(sums.bytes, expected.bytes);
		assert_near(sums.rate, expected.rate);
		assert_near(sums.requests, expected.requests);
		assert_near(sums.before, expected.before);
	}
	SAMPLE_Fini(&s);
}

/* Objects of a cell are alike: their rate and size are near its means */
static void
test_cells_are_narrow(void **state)
{
	struct sample s;
	uint64_t o, u;
	size_t n, i;

	(void)state;
	assert_int_equal(SAMPLE_Init(&s, 0, ROOM), 0);
	for (o = 0; o < 400; o++)
		for (u = 0; u <= o; u++)
			SAMPLE_Add(&s, splitmix(o), 64 << o % 20);
	n = SAMPLE_End(&s, cell);
	assert_in_range(n, 200, 400);
	for (i = 0; i < n; i++)
		assert_near(exp2(round(log2(cell[i].size))), cell[i].size);
	SAMPLE_Fini(&s);
}

/* Add an object to the sample that had so many requests in this window, and a
 * rate before. */
static void
add(struct sample *s, uint64_t digest, uint64_t bytes, uint32_t requests,
    float before)
{
	struct sample_object *o;

	(void)SAMPLE_Add(s, digest, bytes);
	o = CHAIN_Find(s->table, digest);
	o->requests = requests;
	o->rate = before;
}

/* Of how many cells are two objects? */
static size_t
cells(uint64_t bytes_a, uint32_t requests_a, float before_a, uint64_t bytes_b,
    uint32_t requests_b, float before_b)
{
	struct sample s;
	size_t n;

	assert_int_equal(SAMPLE_Init(&s, 0, ROOM), 0);
	add(&s, 1, bytes_a, requests_a, before_a);
	add(&s, 2, bytes_b, requests_b, before_b);
	n = SAMPLE_End(&s, cell);
	SAMPLE_Fini(&s);
	return (n);
}

/* Steps of sizes are 1/4 octave, those of rates 1/8. */
static void
test_steps(void **state)
{

	(void)state;
	assert_int_equal(cells(65536, 9, 0, 77000, 9, 0), 1);
	assert_int_equal(cells(65536, 9, 0, 78000, 9, 0), 2);
	assert_int_equal(cells(640, 256, 0, 640, 278, 0), 1);
	assert_int_equal(cells(640, 256, 0, 640, 280, 0), 2);
	assert_int_equal(cells(640, 1, 0, 640, 2, 0), 2);
	/* All rates from 2^27.875 on are in the last one */
	assert_int_equal(cells(640, 1 << 28, 0, 640, 255 << 20, 0), 1);
	assert_int_equal(cells(640, 1U << 31, 0, 640, 255 << 20, 0), 1);
}

static size_t
cells_of_histories(float a, float b)
{

	/* Their rates are about 700 */
	return (cells(640, a > 0 ? 1000 : 700, a, 640, b > 0 ? 1000 : 700, b));
}

/* There are four classes: a rate before of 0, of less than 1, of less than 4,
 * and of more. */
static void
test_histories(void **state)
{

	(void)state;
	assert_int_equal(cells_of_histories(0, .5f), 2);
	assert_int_equal(cells_of_histories(.5f, .9f), 1);
	assert_int_equal(cells_of_histories(.9f, 1), 2);
	assert_int_equal(cells_of_histories(1, 3.9f), 1);
	assert_int_equal(cells_of_histories(3.9f, 4), 2);
	assert_int_equal(cells_of_histories(4, 9), 1);
	/* The last class is not the first one of the next step of rates */
	assert_int_equal(cells(640, 1000, 4, 640, 730, 0), 2);
}

/* If there are too many cells, the last one has the other objects. */
static void
test_all_cells(void **state)
{
	const unsigned sizes = 80, rates = 220, n = sizes * rates;
	struct adm_cell *last = &cell[SAMPLE_CELLS];
	struct sample s;
	unsigned u, v;

	(void)state;
	assert_int_equal(SAMPLE_Init(&s, 0, 32768), 0);
	for (u = 0; u < sizes; u++)
		for (v = 0; v < rates; v++)
			add(&s, u * rates + v,
			    (uint64_t)exp2(16 + (u + .5) / 4), 0,
			    exp2f(((float)v + .5f) / 8) / .3f);
	last->objects = 2;
	last->size = 10;
	assert_int_equal(SAMPLE_End(&s, cell), SAMPLE_CELLS);
	assert_near(sums_of(SAMPLE_CELLS).objects, n);
	assert_near(cell[SAMPLE_CELLS - 1].objects, n - SAMPLE_CELLS + 1);
	assert_true(last->objects == 2 && last->size == 10);
	SAMPLE_Fini(&s);
}

/* An object has no more requests than its counter, and stays at the least
 * rate. */
static void
test_least_and_most(void **state)
{
	const struct sample_object *o;
	struct sample s;

	(void)state;
	assert_int_equal(SAMPLE_Init(&s, 0, ROOM), 0);
	add(&s, 7, 640, UINT32_MAX, 0);
	(void)SAMPLE_Add(&s, 7, 640);
	o = CHAIN_Find(s.table, 7);
	assert_int_equal(o->requests, UINT32_MAX);
	add(&s, 7, 640, 0, SAMPLE_LEAST / .3f);
	assert_int_equal(SAMPLE_End(&s, cell), 1);
	assert_true(o->rate == SAMPLE_LEAST);
	SAMPLE_Fini(&s);
}

static struct sample ended;

static int
begin_sample(void)
{

	return (SAMPLE_Init(&ended, 0, ROOM));
}

static void
end_sample(void)
{

	SAMPLE_Fini(&ended);
	assert_int_equal(ended.magic, 0);
}

static void
test_no_memory(void **state)
{

	(void)state;
	assert_no_leak(begin_sample, end_sample, 3);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_one_object),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_scale),
		cmocka_unit_test(test_large_objects),
		cmocka_unit_test(test_frequency),
		cmocka_unit_test(test_reuse),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_sums_of_random_windows),
		cmocka_unit_test(test_cells_are_narrow),
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_histories),
		cmocka_unit_test(test_all_cells),
		cmocka_unit_test(test_least_and_most),
		cmocka_unit_test(test_no_memory),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
