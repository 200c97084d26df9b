/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Rules of requests that never wait, as exempt.h says, with a fake clock.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tenants/exempt.h"

#define SECOND		INT64_C(1000000000)	/* ns */

static enum exempt_answer
use(struct exempt *e, const char *url, const char *host, int64_t now)
{

	return (EXEMPT_Use(e, url, host, strlen(host), now));
}

/* Return how many of n requests at this time run at once */
static unsigned
run(struct exempt *e, unsigned n, int64_t now)
{
	unsigned ran = 0;

	for (; n > 0; n--)
		ran += use(e, "/a", "x", now) == EXEMPT_NOW;
	return (ran);
}

static void
test_which(void **state)
{
	struct exempt *e = NULL;

	(void)state;
	assert_int_equal(use(e, "/a", "x", 0), EXEMPT_NO);
	assert_null(EXEMPT_Add(&e, "/a", "", 1000));
	assert_null(EXEMPT_Add(&e, "/b/c", "Own.Example", 1000));
	assert_int_equal(use(e, "/a", "x", 0), EXEMPT_NOW);
	assert_int_equal(use(e, "/a", "(none)", 0), EXEMPT_NOW);
	assert_int_equal(use(e, "/a?", "x", 0), EXEMPT_NOW);
	assert_int_equal(use(e, "/a?b=/a", "x", 0), EXEMPT_NOW);
	assert_int_equal(use(e, "/", "x", 0), EXEMPT_NO);
	assert_int_equal(use(e, "", "x", 0), EXEMPT_NO);
	assert_int_equal(use(e, "/A", "x", 0), EXEMPT_NO);
	assert_int_equal(use(e, "/a/", "x", 0), EXEMPT_NO);
	assert_int_equal(use(e, "/b/c", "own.example", 0), EXEMPT_NOW);
	assert_int_equal(use(e, "/b/c", "own.exampl", 0), EXEMPT_NO);
	assert_int_equal(use(e, "/b/c", "an.own.example", 0), EXEMPT_NO);
	EXEMPT_Free(&e);
	assert_null(e);
}

/* As many a second as the rule says, and as many at once after a pause */
static void
test_rate(void **state)
{
	struct exempt *e = NULL;
	unsigned ran = 0, i;

	(void)state;
	assert_null(EXEMPT_Add(&e, "/a", NULL, 10));
	assert_int_equal(run(e, 100, 0), 10);
	assert_int_equal(use(e, "/a", "x", 0), EXEMPT_OVER);
	assert_int_equal(run(e, 100, SECOND / 10 - 1), 0);
	assert_int_equal(run(e, 100, SECOND / 10), 1);
	for (i = 0; i < 1000; i++)
		ran += run(e, 1, SECOND / 10 + i * SECOND / 100);
	assert_in_range(ran, 99, 100);
	assert_int_equal(run(e, 100, 1000 * SECOND), 10);
	/* The clock of another thread may be behind */
	assert_int_equal(run(e, 100, 999 * SECOND), 0);
	EXEMPT_Free(&e);
	assert_null(EXEMPT_Add(&e, "/a", NULL, 1));
	assert_int_equal(run(e, 100, SECOND), 1);
	assert_int_equal(run(e, 100, 2 * SECOND - 1), 0);
	assert_int_equal(run(e, 100, 2 * SECOND), 1);
	EXEMPT_Free(&e);
}

/* A rule for a Host helps when the one for all is used up */
static void
test_two_rules(void **state)
{
	struct exempt *e = NULL;

	(void)state;
	assert_null(EXEMPT_Add(&e, "/a", "", 1));
	assert_null(EXEMPT_Add(&e, "/a", "lb", 1));
	assert_int_equal(use(e, "/a", "x", 0), EXEMPT_NOW);
	assert_int_equal(use(e, "/a", "x", 0), EXEMPT_OVER);
	assert_int_equal(use(e, "/a", "lb", 0), EXEMPT_NOW);
	assert_int_equal(use(e, "/a", "lb", 0), EXEMPT_OVER);
	EXEMPT_Free(&e);
}

/* One rule that is used up does not use another one */
static void
test_rules(void **state)
{
	struct exempt *e = NULL;
	char url[300];
	unsigned i;

	(void)state;
	for (i = 0; i < EXEMPT_RULES; i++) {
		(void)snprintf(url, sizeof url, "/%u", i);
		assert_null(EXEMPT_Add(&e, url, "x", 1));
	}
	assert_non_null(strstr(EXEMPT_Add(&e, "/x", "x", 1), "at most 16"));
	assert_int_equal(use(e, "/3", "x", 0), EXEMPT_NOW);
	assert_int_equal(use(e, "/3", "x", 0), EXEMPT_OVER);
	assert_int_equal(use(e, "/15", "x", 0), EXEMPT_NOW);
	EXEMPT_Free(&e);
	memset(url, 'u', sizeof url);
	url[0] = '/';
	url[255] = '\0';
	assert_null(EXEMPT_Add(&e, url, "", 1));
	assert_int_equal(use(e, url, "x", 0), EXEMPT_NOW);
	url[255] = 'u';
	url[256] = '\0';
	assert_non_null(strstr(EXEMPT_Add(&e, url, "", 1), "too long"));
	assert_non_null(EXEMPT_Add(&e, NULL, "", 1));
	assert_non_null(EXEMPT_Add(&e, "/b", "", INT64_MIN));
	assert_non_null(EXEMPT_Add(&e, "/b", "", INT64_MAX));
	EXEMPT_Free(&e);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_which),
		cmocka_unit_test(test_rate),
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_two_rules),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
