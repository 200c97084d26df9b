/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The oracles, on cases worked out by hand.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "rel_oracle.h"

static void
assert_near(double a, double b, double within)
{
	assert_true(a > b - within && a < b + within);
}

static void
test_fluid(void **priv)
{
	struct fluid f = {
		.n = 3, .weight = { 1, 1, 2 }, .work = { 100, 10, 1000 },
	};

	(void)priv;
	/* 40 ns: 10, 10 (done), 20; then 60 ns at 1:2 */
	fluid_advance(&f, 40);
	assert_near(f.served[0], 10, 1e-6);
	assert_near(f.served[1], 10, 1e-6);
	assert_near(f.served[2], 20, 1e-6);
	fluid_advance(&f, 60);
	assert_near(f.served[0], 30, 1e-6);
	assert_near(f.served[1], 10, 1e-6);
	assert_near(f.served[2], 60, 1e-6);
	/* All done after 1110 ns of work; idle time serves nobody */
	fluid_advance(&f, 5000);
	assert_near(f.served[0], 100, 1e-3);
	assert_near(f.served[2], 1000, 1e-3);
}

/* Section 3.2's customers: c1 and c3 of the facts, and three with an idle CPU */
static void
test_drf(void **priv)
{
	const double c1c3[][ORACLE_RES] = { { 1, 180. / 440 },
	    { 250. / 750, 1 } };
	const double nnf[][ORACLE_RES] = { { .3, 1 }, { .3, 1 }, { 1, 0 } };
	double rate[3];

	(void)priv;
	/* s (180/440 + 1) = 1 on the NIC */
	drf_rates(2, c1c3, rate);
	assert_near(rate[0], 440. / 620, 1e-9);
	assert_near(rate[1], 440. / 620, 1e-9);
	/* The NIC is full at 0.5 each, the CPU has 1 - 0.3 left */
	drf_rates(3, nnf, rate);
	assert_near(rate[0], .5, 1e-9);
	assert_near(rate[1], .5, 1e-9);
	assert_near(rate[2], .7, 1e-9);
}

/*
 * Two tenants, k = 3 and 1, five requests each.  Round 1: u = 0, one each:
 * s = 2, 0.  Round 2: u = 2, both get 3: s = -1 -> 2; s = -3 -> 0, three
 * requests.  Round 3: the same, and the second one runs dry.
 */
static void
test_fig8(void **priv)
{
	static const int trace[] = { 0, 1, 0, 1, 1, 1, 0, 1, 0, 0, -1 };
	struct fig8 f;
	unsigned i;

	(void)priv;
	fig8_init(&f);
	f.k[0] = 3;
	f.k[1] = 1;
	for (i = 0; i < 5; i++)
		fig8_enqueue(&f, 0);
	for (i = 0; i < 5; i++)
		fig8_enqueue(&f, 1);
	for (i = 0; i < sizeof trace / sizeof trace[0]; i++)
		assert_int_equal(fig8_dequeue(&f), trace[i]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fluid),
		cmocka_unit_test(test_drf),
		cmocka_unit_test(test_fig8),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
