/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The pace of refusals, as pace.h says; and one core that has more to refuse
 * than it can, with a fake clock.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "overload/pace.h"

#define MS		INT64_C(1000000)	/* ns */
#define SECOND		(1000 * MS)

static void
refuse(struct pace *p, unsigned times)
{

	while (times-- > 0)
		PACE_Refused(p);
}

static void
test_time_pays(void **state)
{
	struct pace p = { 0 };

	(void)state;
	assert_int_equal(PACE_Spent(&p, 0), 0);
	PACE_Refused(&p);
	assert_int_equal(PACE_Spent(&p, 0), 1);
	assert_int_equal(PACE_Spent(&p, PACE_TIME * PACE_COST - PACE_TIME), 1);
	assert_int_equal(PACE_Spent(&p, PACE_TIME * PACE_COST), 0);
	PACE_Refused(&p);
	/* A time before is paid back */
	assert_int_equal(PACE_Spent(&p, 0), 1);
	assert_int_equal(PACE_Spent(&p, PACE_TIME * PACE_COST), 1);
}

static void
test_requests_pay(void **state)
{
	struct pace p = { 0 };

	(void)state;
	PACE_Refused(&p);
	PACE_Ran(&p, PACE_RAN * PACE_COST - PACE_RAN);
	assert_int_equal(PACE_Spent(&p, 0), 1);
	PACE_Ran(&p, -SECOND);
	PACE_Ran(&p, PACE_RAN);
	assert_int_equal(PACE_Spent(&p, 0), 0);
}

/* A quiet second does not pay for more than a burst of PACE_MOST, and a burst
 * does not stop refusals for longer than it takes to pay that. */
static void
test_bounds(void **state)
{
	struct pace p = { 0 };

	(void)state;
	assert_int_equal(PACE_Spent(&p, SECOND), 0);
	PACE_Ran(&p, SECOND);
	refuse(&p, PACE_MOST / PACE_COST);
	assert_int_equal(PACE_Spent(&p, SECOND), 0);
	PACE_Refused(&p);
	assert_int_equal(PACE_Spent(&p, SECOND), 1);
	refuse(&p, 1000000);
	assert_int_equal(PACE_Spent(&p, SECOND + PACE_TIME * PACE_MOST - 1), 1);
	assert_int_equal(PACE_Spent(&p, SECOND + PACE_TIME * PACE_MOST), 0);
}

/* Let a core refuse whenever it may, and else run requests of so much CPU time
 * for a second.  Return the part of the time that requests have. */
static double
part_of_requests(int64_t cost)
{
	struct pace p = { 0 };
	int64_t now = SECOND, ran = 0;

	(void)PACE_Spent(&p, now);
	while (now < 2 * SECOND)
		if (PACE_Spent(&p, now)) {
			PACE_Ran(&p, cost);
			ran += cost;
			now += cost;
		} else {
			PACE_Refused(&p);
			now += PACE_COST;
		}
	return ((double)ran / SECOND);
}

static void
test_a_storm(void **state)
{

	(void)state;
	/* x of requests, x / 4 + 1 / 16 of refusals: x is 0.75 */
	assert_float_equal(part_of_requests(130000), .75, .01);
	assert_float_equal(part_of_requests(5000), .75, .01);
	assert_float_equal(part_of_requests(MS), .75, .01);
	/* Longer ones pay for no more than PACE_MOST each */
	assert_float_equal(part_of_requests(20 * MS), .95, .01);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_time_pays),
		cmocka_unit_test(test_requests_pay),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_a_storm),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
