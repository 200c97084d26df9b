/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Pressure and quality, as pressure.h says.
 */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "overload/pressure.h"

#define MS		INT64_C(1000000)	/* ns */
#define SECOND		(1000 * MS)

/* n requests, 1 ms apart.  Return the time after them. */
static int64_t
requests(struct ovl_pressure *p, int64_t now, unsigned n, double part)
{
	unsigned u;

	for (u = 0; u < n; u++, now += MS)
		OVL_Pressed(p, now, part);
	return (now);
}

static void
near(double a, double b)
{

	assert_true(fabs(a - b) < .001);
}

static void
test_nothing_was_seen(void **state)
{
	struct ovl_pressure p = { 0 };

	(void)state;
	near(OVL_Pressure(&p, SECOND), 0);
	near(OVL_Quality(&p, SECOND), 1);
}

static void
test_pressure_is_a_mean(void **state)
{
	struct ovl_pressure p = { 0 };
	int64_t now;

	(void)state;
	OVL_Pressed(&p, SECOND, .8);
	/* The first request comes after a second of silence */
	near(OVL_Pressure(&p, SECOND), .8 * (1 - 15. / 32));
	now = requests(&p, SECOND, 200, .5);
	near(OVL_Pressure(&p, now - MS), .5);
	(void)requests(&p, now, 16, OVL_REFUSED);
	assert_true(OVL_Pressure(&p, now + 15 * MS) > .8);
	assert_true(OVL_Pressure(&p, now + 15 * MS) < 1);
	(void)requests(&p, now + 16 * MS, 200, OVL_REFUSED);
	near(OVL_Pressure(&p, now + 215 * MS), 1);
	(void)requests(&p, now + 216 * MS, 200, -1);
	near(OVL_Pressure(&p, now + 415 * MS), 0);
}

static void
test_pressure_fades(void **state)
{
	struct ovl_pressure p = { 0 };
	int64_t now;

	(void)state;
	now = requests(&p, SECOND, 200, 1) - MS;
	near(OVL_Pressure(&p, now + SECOND), .5);
	near(OVL_Pressure(&p, now + 9 * SECOND), .1);
	near(OVL_Pressure(&p, now - SECOND), 1);	/* a clock may go back */
}

/* Requests of a window, 1 ms apart: it ends with the 101st, 0.1 s after the
 * first.  Return when the next window begins. */
static int64_t
window(struct ovl_pressure *p, int64_t now, unsigned slow, unsigned at_target,
    unsigned fast)
{

	now = requests(p, now, fast, 0);
	now = requests(p, now, at_target, .8);
	return (requests(p, now, slow, 1.11) + MS);
}

static void
test_quality_is_halved_and_rises(void **state)
{
	struct ovl_pressure p = { 0 };
	int64_t now = SECOND;
	unsigned u;

	(void)state;
	/* A tenth of 101 is too much to rise, and too little to be halved */
	now = window(&p, now, 10, 1, 90);
	near(OVL_Quality(&p, now), 1);
	now = window(&p, now, 11, 0, 90);
	near(OVL_Quality(&p, now), .5);
	now = window(&p, now, 101, 0, 0);
	near(OVL_Quality(&p, now), .25);
	now = window(&p, now, 0, 11, 90);
	near(OVL_Quality(&p, now), .25);
	now = window(&p, now, 0, 10, 91);
	near(OVL_Quality(&p, now), .26);
	for (u = 0; u < 80; u++)
		now = window(&p, now, 0, 0, 101);
	near(OVL_Quality(&p, now), 1);
}

static void
test_window(void **state)
{
	struct ovl_pressure p = { 0 };
	int64_t now;

	(void)state;
	/* 100 requests in less than 100 ms are no window yet */
	now = requests(&p, SECOND, 100, OVL_REFUSED);
	near(OVL_Quality(&p, now), 1);
	now = requests(&p, now, 1, OVL_REFUSED);
	near(OVL_Quality(&p, now), .5);
	/* Fewer than 100 are one after a second */
	now = requests(&p, now, 10, OVL_REFUSED) - 10 * MS;
	OVL_Pressed(&p, now + SECOND - 1, OVL_REFUSED);
	near(OVL_Quality(&p, now + SECOND - 1), .5);
	OVL_Pressed(&p, now + SECOND, OVL_REFUSED);
	near(OVL_Quality(&p, now + SECOND), .25);
}

/* What is older than a second does not count */
static void
test_old_window(void **state)
{
	struct ovl_pressure p = { 0 };
	int64_t now;

	(void)state;
	now = requests(&p, SECOND, 10, OVL_REFUSED) - MS;
	OVL_Pressed(&p, now + SECOND, 0);
	near(OVL_Quality(&p, now + SECOND), 1);
	OVL_Pressed(&p, now + 2 * SECOND - 1, 0);
	near(OVL_Quality(&p, now + 2 * SECOND), 1);
}

static void
test_quality_rises_without_requests(void **state)
{
	struct ovl_pressure p = { 0 };
	int64_t now;

	(void)state;
	now = requests(&p, SECOND, 101, OVL_REFUSED) - MS;
	near(OVL_Quality(&p, now), .5);
	near(OVL_Quality(&p, now + SECOND - 1), .5);
	near(OVL_Quality(&p, now + 7 * SECOND), .57);
	near(OVL_Quality(&p, now + 70 * SECOND), 1);
	/* The first request after that keeps it */
	OVL_Pressed(&p, now + 7 * SECOND, 0);
	near(OVL_Quality(&p, now + 7 * SECOND), .57);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_was_seen),
		cmocka_unit_test(test_pressure_is_a_mean),
		cmocka_unit_test(test_pressure_fades),
		cmocka_unit_test(test_quality_is_halved_and_rises),
		cmocka_unit_test(test_window),
		cmocka_unit_test(test_old_window),
		cmocka_unit_test(test_quality_rises_without_requests),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
