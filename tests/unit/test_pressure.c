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

static void
test_quality_is_halved_and_rises(void **state)
{
	struct ovl_pressure p = { 0 };
	int64_t now;

	(void)state;
	/* A tenth of 100 is not enough, and is too much to rise */
	now = requests(&p, SECOND, 90, 0);
	now = requests(&p, now, 10, 1.11);
	near(OVL_Quality(&p, now), 1);
	now = requests(&p, now, 89, 0);
	now = requests(&p, now, 10, 1.11);
	near(OVL_Quality(&p, now), 1);
	now = requests(&p, now, 1, 1.11);
	near(OVL_Quality(&p, now), .5);
	now = requests(&p, now, 100, OVL_REFUSED);
	near(OVL_Quality(&p, now), .25);
	/* At the target it stays, below it rises */
	now = requests(&p, now, 100, 1);
	near(OVL_Quality(&p, now), .25);
	now = requests(&p, now, 11, .8);
	now = requests(&p, now, 89, .79);
	near(OVL_Quality(&p, now), .25);
	now = requests(&p, now, 10, .8);
	now = requests(&p, now, 90, .79);
	near(OVL_Quality(&p, now), .26);
	now = requests(&p, now, 100 * 80, .1);
	near(OVL_Quality(&p, now), 1);
}

static void
test_quality_rises_in_a_second(void **state)
{
	struct ovl_pressure p = { 0 };
	int64_t now;

	(void)state;
	now = requests(&p, SECOND, 100, OVL_REFUSED) - MS;
	near(OVL_Quality(&p, now), .5);
	/* Without requests, too */
	near(OVL_Quality(&p, now + SECOND - 1), .5);
	near(OVL_Quality(&p, now + 7 * SECOND), .57);
	near(OVL_Quality(&p, now + 70 * SECOND), 1);
	/* Two requests are a window, if the second one is 1 s later */
	OVL_Pressed(&p, now + MS, 0);
	near(OVL_Quality(&p, now + MS), .5);
	OVL_Pressed(&p, now + MS + SECOND, 0);
	near(OVL_Quality(&p, now + MS + SECOND), .52);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_was_seen),
		cmocka_unit_test(test_pressure_is_a_mean),
		cmocka_unit_test(test_pressure_fades),
		cmocka_unit_test(test_quality_is_halved_and_rises),
		cmocka_unit_test(test_quality_rises_in_a_second),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
