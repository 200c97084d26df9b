/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The division of memory: on cases, and with random owners.
 */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "memory/fair.h"
#include "splitmix.h"

#define OWNERS		40
#define RUNS		500

static uint64_t seed;

static struct fair
owner(double weight, double want)
{
	struct fair f = { .set = { .weight = weight, .group = OWN_NONE },
	    .want = want };

	return (f);
}

static void
check(const struct fair *f, double share)
{

	assert_true(fabs(f->share - share) < 1e-6);
}

static void
test_level(void **state)
{
	struct fair f[] = { owner(1, 10), owner(1, 500), owner(3, 500) };

	(void)state;
	/* The first needs less than its share: the others divide the rest */
	FAIR_Divide(f, 3, 410);
	check(&f[0], 10);
	check(&f[1], 100);
	check(&f[2], 300);
	/* There is enough for all */
	FAIR_Divide(f, 3, 5000);
	check(&f[0], 10);
	check(&f[1], 500);
	check(&f[2], 500);
	FAIR_Divide(f, 3, 0);
	check(&f[2], 0);
	FAIR_Divide(f, 0, 100);
}

/* Who wants nothing gets nothing, who wants a byte gets it. */
static void
test_little_is_wanted(void **state)
{
	struct fair f[] = { owner(1, 0), owner(1, 1), owner(1, 0),
	    owner(1, 1) };

	(void)state;
	f[0].share = 5;
	f[0].set.reservation = 10;
	f[3].set.group = 2;
	FAIR_Divide(f, 4, 100);
	check(&f[0], 0);
	check(&f[1], 1);
	check(&f[2], 1);
	check(&f[3], 1);
}

/* What is behind the array has no part in it. */
static void
test_only_the_array(void **state)
{
	struct fair f[] = { owner(1, 500), owner(1, 500), owner(1, 500) };

	(void)state;
	f[2].members = &f[0];
	f[2].share = 5;
	FAIR_Divide(f, 2, 300);
	check(&f[0], 150);
	check(&f[1], 150);
	check(&f[2], 5);
	assert_true(f[2].want == 500);
}

static void
test_reservation_and_limit(void **state)
{
	struct fair f[] = { owner(1, 500), owner(1, 500), owner(1, 500) };

	(void)state;
	f[0].set.reservation = 200;
	f[1].set.limit = 20;
	FAIR_Divide(f, 3, 300);
	check(&f[0], 200);
	check(&f[1], 20);
	check(&f[2], 80);
	/* Unused reservations are for all */
	f[0].want = 100;
	FAIR_Divide(f, 3, 300);
	check(&f[0], 100);
	check(&f[2], 180);
	/* More reservations than memory */
	f[0].want = 500;
	f[2].set.reservation = 400;
	FAIR_Divide(f, 3, 300);
	check(&f[0], 100);
	check(&f[1], 0);
	check(&f[2], 200);
}

static void
test_group(void **state)
{
	struct fair f[] = { owner(1, 500), owner(2, 0), owner(1, 500),
	    owner(3, 500) };

	(void)state;
	f[2].set.group = f[3].set.group = 1;
	FAIR_Divide(f, 4, 300);
	check(&f[0], 100);
	check(&f[1], 200);
	check(&f[2], 50);
	check(&f[3], 150);
	/* The group takes no more than its members can use */
	f[1].want = 0;
	f[3].set.limit = 10;
	f[2].want = 50;
	FAIR_Divide(f, 4, 300);
	check(&f[0], 240);
	check(&f[1], 60);
	check(&f[2], 50);
	check(&f[3], 10);
}

static double
most(const struct fair *f)
{

	return (f->set.limit == 0 ? f->want :
	    fmin(f->want, (double)f->set.limit));
}

/* All memory is divided, or all that is wanted within limits.  Who has less
 * than that has no less per weight than any other, except those with no more
 * than their reservation. */
static void
check_random(void)
{
	struct fair f[OWNERS];
	double bytes = 1e6 * splitmix_draw(&seed), sum = 0, wanted = 0;
	unsigned u, v;

	for (u = 0; u < OWNERS; u++) {
		f[u] = owner(.001 + 10 * splitmix_draw(&seed),
		    1e5 * splitmix_draw(&seed));
		f[u].set.limit = splitmix_next(&seed) % 4 == 0 ?
		    1 + splitmix_next(&seed) % 50000 : 0;
		f[u].set.reservation = splitmix_next(&seed) % 4 == 0 ?
		    splitmix_next(&seed) % 2000 : 0;
		wanted += most(&f[u]);
	}
	bytes += 2000. * OWNERS;	/* enough for all reservations */
	FAIR_Divide(f, OWNERS, bytes);
	for (u = 0; u < OWNERS; u++) {
		sum += f[u].share;
		assert_true(f[u].share <= most(&f[u]));
		assert_true(f[u].share >= fmin(most(&f[u]),
		    (double)f[u].set.reservation) * (1 - 1e-9));
		for (v = 0; v < OWNERS && f[u].share < most(&f[u]); v++)
			assert_true(f[u].share / f[u].set.weight >=
			    f[v].share / f[v].set.weight * (1 - 1e-9) ||
			    f[v].share <= (double)f[v].set.reservation);
	}
	assert_true(fabs(sum - fmin(bytes, wanted)) < 1e-3);
}

static void
test_random(void **state)
{
	unsigned run;

	(void)state;
	seed = 1;
	for (run = 0; run < RUNS; run++)
		check_random();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_level),
		cmocka_unit_test(test_little_is_wanted),
		cmocka_unit_test(test_only_the_array),
		cmocka_unit_test(test_reservation_and_limit),
		cmocka_unit_test(test_group),
		cmocka_unit_test(test_random),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
