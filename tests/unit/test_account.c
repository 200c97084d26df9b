/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * A tenant's cost account, against values worked out by hand.  All times are
 * ns, except where the host's unit is bytes.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "perfctr/account.h"

#define HALF		32768		/* alpha, Q16 */
#define DRAWN		(5 * REL_SCALE_ONE)

static void
assert_next(const struct account *a, int64_t cpu, int64_t net,
    int64_t want_cpu, int64_t want_net)
{
	int64_t ns[REL__RESOURCES] = { [REL_CPU] = cpu, [REL_NET] = net };

	ACC_Next(a, ns);
	assert_int_equal(ns[REL_CPU], want_cpu);
	assert_int_equal(ns[REL_NET], want_net);
}

/* A request costs what it adds to the larger sum */
static void
test_settle(void **priv)
{
	struct account a = { 0 };

	(void)priv;
	assert_int_equal(ACC_Settle(&a, 10, 30), 30);
	assert_int_equal(a.net_minus_cpu, 20);
	assert_int_equal(ACC_Settle(&a, 15, 0), 0);
	assert_int_equal(ACC_Settle(&a, 15, 1), 10);
	assert_int_equal(a.net_minus_cpu, -9);
}

/* CPU time that is no request's adds to the sums, too, and settles nothing */
static void
test_charge(void **priv)
{
	struct account a = { 0 };

	(void)priv;
	assert_int_equal(ACC_Settle(&a, 10, 30), 30);
	assert_int_equal(ACC_Charge(&a, 5, 0), 0);
	assert_int_equal(a.net_minus_cpu, 15);
	assert_int_equal(ACC_Charge(&a, 20, 0), 5);
	assert_int_equal(a.net_minus_cpu, -5);
	a = (struct account){ 0 };
	assert_int_equal(ACC_Charge(&a, 20, 0), 20);
	assert_next(&a, 1, 2, 1, 2);
}

/* A look at a running request changes no sum */
static void
test_so_far(void **priv)
{
	struct account a = { 0 };

	(void)priv;
	assert_int_equal(ACC_SoFar(&a, 7), 7);
	(void)ACC_Settle(&a, 10, 30);
	assert_int_equal(ACC_SoFar(&a, 20), 0);
	assert_int_equal(ACC_SoFar(&a, 25), 5);
	assert_int_equal(ACC_SoFar(&a, 25), 5);
	assert_int_equal(a.net_minus_cpu, 20);
}

static void
test_leading(void **priv)
{
	struct account a = { 0 };

	(void)priv;
	assert_int_equal(ACC_Leading(&a), REL_CPU);
	(void)ACC_Settle(&a, 10, 10);
	assert_int_equal(ACC_Leading(&a), REL_CPU);
	(void)ACC_Settle(&a, 10, 11);
	assert_int_equal(ACC_Leading(&a), REL_NET);
	(void)ACC_Settle(&a, 10, 9);
	assert_int_equal(ACC_Leading(&a), REL_CPU);
	(void)ACC_Settle(&a, 10, 9);
	assert_int_equal(ACC_Leading(&a), REL_CPU);
}

/* A draw measures CPU time, so that of net-dominant tenants is not scaled */
static void
test_scale(void **priv)
{
	struct account a = { 0 };

	(void)priv;
	assert_int_equal(ACC_Scale(&a, DRAWN), DRAWN);
	(void)ACC_Settle(&a, 10, 11);
	assert_int_equal(ACC_Scale(&a, DRAWN), REL_SCALE_ONE);
	(void)ACC_Settle(&a, 10, 9);
	assert_int_equal(ACC_Scale(&a, DRAWN), DRAWN);
	assert_int_equal(ACC_Scale(&a, REL_SCALE_ONE), REL_SCALE_ONE);
}

/* A tenant without a completed request has no leading resource: no cap */
static void
test_first(void **priv)
{
	struct account a = { 0 };

	(void)priv;
	assert_next(&a, 100, 150, 100, 150);
	assert_next(&a, 150, 100, 150, 100);
	(void)ACC_Settle(&a, 0, 0);
	assert_next(&a, 100, 150, 100, 100);
}

/* The estimate that does not lead is at most the one that does */
static void
test_cap(void **priv)
{
	struct account a = { 0 };

	(void)priv;
	(void)ACC_Settle(&a, 10, 9);
	assert_next(&a, 100, 101, 100, 100);
	assert_next(&a, 100, 100, 100, 100);
	assert_next(&a, 100, 99, 100, 99);
	assert_next(&a, 99, 0, 99, 0);
	(void)ACC_Settle(&a, 9, 11);
	assert_next(&a, 101, 100, 100, 100);
	assert_next(&a, 99, 100, 99, 100);
	assert_next(&a, 0, 99, 0, 99);
}

/* Above twice as much of the other resource, the tenant has turned to it */
static void
test_turned(void **priv)
{
	struct account a = { 0 };

	(void)priv;
	(void)ACC_Settle(&a, 10, 9);
	assert_next(&a, 100, 200, 100, 100);
	assert_next(&a, 100, 201, 100, 100);	/* whole ns: 201 / 2 */
	assert_next(&a, 100, 202, 100, 202);
	(void)ACC_Settle(&a, 9, 11);
	assert_next(&a, 200, 100, 100, 100);
	assert_next(&a, 202, 100, 202, 100);
}

/* Each resource and kind of request has its estimate, each resource one mean */
static void
test_samples(void **priv)
{
	struct acc_costs c = { .alpha = HALF };
	struct acc_key k[2] = { 0 };

	(void)priv;
	c.estimator = (unsigned)EST_ByName("ewma");
	assert_int_equal(ACC_Value(&c, &k[0], REL_CPU), 0);
	ACC_Sample(&c, &k[0], REL_CPU, 100);
	ACC_Sample(&c, &k[0], REL_NET, 3000);
	assert_int_equal(ACC_Value(&c, &k[0], REL_CPU), 100);
	assert_int_equal(ACC_Value(&c, &k[0], REL_NET), 3000);
	ACC_Sample(&c, &k[0], REL_CPU, 200);
	assert_int_equal(ACC_Value(&c, &k[0], REL_CPU), 150);
	assert_int_equal(ACC_Value(&c, &k[0], REL_NET), 3000);
	/* Without samples of its own: the mean of all, which goes on */
	assert_int_equal(ACC_Value(&c, &k[1], REL_CPU), 150);
	ACC_Sample(&c, &k[0], REL_CPU, 600);
	assert_int_equal(ACC_Value(&c, &k[1], REL_CPU), 300);
	assert_int_equal(ACC_Value(&c, &k[1], REL_NET), 3000);
	ACC_Sample(&c, &k[1], REL_CPU, 8);
	assert_int_equal(ACC_Value(&c, &k[1], REL_CPU), 8);
	assert_int_equal(ACC_Value(&c, &k[0], REL_CPU), 375);
}

/* The estimator and its alpha are those of the moment */
static void
test_estimator(void **priv)
{
	struct acc_costs c = { .alpha = HALF };
	struct acc_key k = { 0 };

	(void)priv;
	c.estimator = (unsigned)EST_ByName("ewma");
	ACC_Sample(&c, &k, REL_CPU, 100);
	c.estimator = (unsigned)EST_ByName("decaying-max");
	ACC_Sample(&c, &k, REL_CPU, 0);
	assert_int_equal(ACC_Value(&c, &k, REL_CPU), 50);
	ACC_Sample(&c, &k, REL_CPU, 90);
	assert_int_equal(ACC_Value(&c, &k, REL_CPU), 90);
	c.estimator = (unsigned)EST_ByName("ewma");
	c.alpha = 65536;
	ACC_Sample(&c, &k, REL_CPU, 10);
	assert_int_equal(ACC_Value(&c, &k, REL_CPU), 10);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_settle),
		cmocka_unit_test(test_charge),
		cmocka_unit_test(test_so_far),
		cmocka_unit_test(test_leading),
		cmocka_unit_test(test_scale),
		cmocka_unit_test(test_first),
		cmocka_unit_test(test_cap),
		cmocka_unit_test(test_turned),
		cmocka_unit_test(test_samples),
		cmocka_unit_test(test_estimator),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
