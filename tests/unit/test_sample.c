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
#include "splitmix.h"

#define ROOM		1024
#define OBJECTS		500
#define WINDOWS		20

static struct adm_cell cell[SAMPLE_CELLS];

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
		cmocka_unit_test(test_sums_of_random_windows),
		cmocka_unit_test(test_cells_are_narrow),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
