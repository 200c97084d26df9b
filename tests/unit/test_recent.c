/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * What grew in the last seconds, next to sums over a list of all seconds.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "splitmix.h"
#include "tenants/recent.h"

#define SECOND		INT64_C(1000000000)
#define ALL		500U		/* seconds */

#define same(is, wanted) assert_float_equal(is, wanted, 1e-9)

/*--------------------------------------------------------------------
 * Waits
 */

static void
bounds_of_waits(void **state)
{
	unsigned i;

	(void)state;
	assert_int_equal(WAIT_Count(0), 0);
	assert_int_equal(WAIT_Count(WAIT_LEAST), 0);
	for (i = 0; i < WAITS - 2; i++) {
		assert_int_equal(WAIT_Count(WAIT_Bound(i)), i);
		assert_int_equal(WAIT_Count(WAIT_Bound(i) + 1), i + 1);
	}
	assert_int_equal(WAIT_Count(WAIT_Bound(WAITS - 2)), WAITS - 2);
	assert_int_equal(WAIT_Count(WAIT_Bound(WAITS - 2) + 1), WAITS - 1);
	assert_int_equal(WAIT_Count(INT64_MAX), WAITS - 1);
	assert_int_equal(WAIT_Bound(WAITS - 1), WAIT_Bound(WAITS - 2));
}

static void
quantiles(void **state)
{
	double count[WAITS] = { 0 };

	(void)state;
	same(WAIT_Quantile(count, .5), 0);
	count[0] = 100;
	same(WAIT_Quantile(count, .5), .5 * WAIT_LEAST * 1e-9);
	same(WAIT_Quantile(count, 1), WAIT_LEAST * 1e-9);
	count[2] = 100;			/* from 500 to 1000 us */
	same(WAIT_Quantile(count, .5), WAIT_LEAST * 1e-9);
	same(WAIT_Quantile(count, .75), .00075);
	same(WAIT_Quantile(count, 1), .001);
	count[0] = count[2] = 0;
	count[WAITS - 1] = 1;
	same(WAIT_Quantile(count, .5), (double)WAIT_Bound(WAITS - 1) * 1e-9);
}

/*--------------------------------------------------------------------
 * Growth
 */

struct world {
	struct rec_clock	clock;
	struct recent		recent;
	uint64_t		counter[REC__COUNTERS];
	uint64_t		grown[ALL];	/* REC_COMPLETED, each second */
};

static void
second(struct world *w, uint64_t grown)
{

	w->grown[w->clock.n] = grown;
	w->counter[REC_COMPLETED] += grown;
	w->counter[REC__COUNTERS - 1] += 2 * grown;
	REC_Second(&w->clock, (w->clock.n + 1) * SECOND);
	REC_Add(&w->recent, &w->clock, w->counter);
}

/* The sum of the last n seconds */
static uint64_t
sum(const struct world *w, unsigned n)
{
	uint64_t all = 0;
	unsigned i;

	for (i = 1; i <= n && i <= w->clock.n; i++)
		all += w->grown[w->clock.n - i];
	return (all);
}

static void
check(const struct world *w)
{
	unsigned n = w->clock.n, sixty;
	double grown[REC__COUNTERS];

	/* The present ten, and the five before it */
	sixty = 50 + (n - 1) % 10 + 1;
	assert_int_equal(REC_Last(&w->recent, &w->clock, 1, grown), SECOND);
	same(grown[REC_COMPLETED], (double)sum(w, 1));
	assert_int_equal(REC_Last(&w->recent, &w->clock, 10, grown),
	    (n < 10 ? n : 10) * SECOND);
	same(grown[REC_COMPLETED], (double)sum(w, 10));
	assert_int_equal(REC_Last(&w->recent, &w->clock, 60, grown),
	    (n < sixty ? n : sixty) * SECOND);
	same(grown[REC_COMPLETED], (double)sum(w, sixty));
	same(grown[REC__COUNTERS - 1], 2 * (double)sum(w, sixty));
	same(grown[REC_CPU], 0);
}

static void
as_a_list(void **state)
{
	struct world w = { .clock = { 0 } };
	uint64_t rnd = 1;
	unsigned i;

	(void)state;
	REC_Begin(&w.clock, 0);
	for (i = 0; i < ALL; i++) {
		/* With long times of rest */
		second(&w, i / 70 % 2 ? 0 : splitmix_next(&rnd) % 1000);
		check(&w);
	}
}

static void
before_the_first(void **state)
{
	struct rec_clock clock = { 0 };
	double grown[REC__COUNTERS];

	(void)state;
	REC_Begin(&clock, 5);
	assert_int_equal(REC_Last(NULL, &clock, 60, grown), 1);
	same(grown[REC_COMPLETED], 0);
}

/* It begins after 123 seconds, and misses some. */
static void
late_and_missed(void **state)
{
	struct world w = { .clock = { 0 } };
	double grown[REC__COUNTERS];
	unsigned i;

	(void)state;
	REC_Begin(&w.clock, 0);
	for (i = 0; i < 123; i++)
		REC_Second(&w.clock, (w.clock.n + 1) * SECOND);
	second(&w, 7);
	check(&w);
	for (i = 0; i < 12; i++)	/* these are missed */
		REC_Second(&w.clock, (w.clock.n + 1) * SECOND);
	second(&w, 5);
	check(&w);
	/* Two seconds have ended that it does not know: those 10 s ago are not
	 * taken for them */
	for (i = 0; i < 8; i++)
		second(&w, 0);
	REC_Second(&w.clock, (w.clock.n + 1) * SECOND);
	REC_Second(&w.clock, (w.clock.n + 1) * SECOND);
	(void)REC_Last(&w.recent, &w.clock, 1, grown);
	same(grown[REC_COMPLETED], 0);
	(void)REC_Last(&w.recent, &w.clock, 10, grown);
	same(grown[REC_COMPLETED], 0);
}

/* It begins late, is used in one second, and then rests. */
static void
one_second_and_rest(void **state)
{
	struct world w = { .clock = { 0 } };
	unsigned i, begin;

	(void)state;
	for (begin = 1; begin < 200; begin += 7) {
		memset(&w, 0, sizeof w);
		REC_Begin(&w.clock, 0);
		for (i = 0; i < begin; i++)
			REC_Second(&w.clock, (w.clock.n + 1) * SECOND);
		second(&w, 100);
		check(&w);
		for (i = 0; i < 200; i++) {
			second(&w, 0);
			check(&w);
		}
	}
}

/* While a second has ended for others, but not for it, it has those before. */
static void
between_second_and_add(void **state)
{
	struct world w = { .clock = { 0 } };
	double before[REC__COUNTERS], grown[REC__COUNTERS];
	static const unsigned seconds[] = { 1, 10, 60 };
	unsigned i, u;
	int64_t span[3];

	(void)state;
	REC_Begin(&w.clock, 0);
	for (i = 0; i < 150; i++) {
		second(&w, i);
		for (u = 0; u < 3; u++) {
			struct rec_clock later = w.clock;

			span[u] = REC_Last(&w.recent, &w.clock, seconds[u],
			    before);
			REC_Second(&later, (later.n + 1) * SECOND);
			assert_int_equal(REC_Last(&w.recent, &later,
			    seconds[u], grown), span[u]);
			assert_memory_equal(grown, before, sizeof grown);
		}
	}
}

static void
time_does_not_go_back(void **state)
{
	struct rec_clock clock = { 0 };
	double grown[REC__COUNTERS];

	(void)state;
	REC_Begin(&clock, 10);
	REC_Second(&clock, 20);
	REC_Second(&clock, 15);
	assert_int_equal(REC_Last(NULL, &clock, 10, grown), 11);
}

/* Two calls for a second add up. */
static void
twice_in_a_second(void **state)
{
	struct world w = { .clock = { 0 } };
	double grown[REC__COUNTERS];

	(void)state;
	REC_Begin(&w.clock, 0);
	second(&w, 7);
	w.counter[REC_COMPLETED] += 3;
	REC_Add(&w.recent, &w.clock, w.counter);
	(void)REC_Last(&w.recent, &w.clock, 1, grown);
	same(grown[REC_COMPLETED], 10);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bounds_of_waits),
		cmocka_unit_test(quantiles),
		cmocka_unit_test(as_a_list),
		cmocka_unit_test(before_the_first),
		cmocka_unit_test(late_and_missed),
		cmocka_unit_test(one_second_and_rest),
		cmocka_unit_test(between_second_and_add),
		cmocka_unit_test(time_does_not_go_back),
		cmocka_unit_test(twice_in_a_second),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
