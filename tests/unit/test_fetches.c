/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The limit of fetches, as fetches.h says, and in front of origins: one that is
 * well, one that cannot serve all, one that is dead for a while.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "overload/fetches.h"

#define MS		INT64_C(1000000)	/* ns */
#define SECOND		(1000 * MS)
#define TARGET		SECOND

static unsigned
begin(struct ovl_fetches *f, unsigned n, int background, int64_t now)
{
	unsigned begun = 0;

	while (n-- > 0)
		begun += (unsigned)OVL_FetchBegins(f, TARGET, background, now);
	return (begun);
}

static void
answer(struct ovl_fetches *f, unsigned n, int64_t took, int64_t now)
{

	while (n-- > 0)
		OVL_FetchAnswered(f, TARGET, took, now);
}

/* Each one begins, and has failed `took` later, before the next one begins */
static void
fail_each(struct ovl_fetches *f, unsigned n, int64_t took, int64_t now)
{

	while (n-- > 0) {
		assert_int_equal(begin(f, 1, 0, now), 1);
		OVL_FetchFailed(f, TARGET, took, now + took);
	}
}

static void
test_no_bound_at_first(void **state)
{
	struct ovl_fetches f = { .waiting = 0 };

	(void)state;
	assert_int_equal(begin(&f, 1000, 0, SECOND), 1000);
	assert_int_equal(begin(&f, 1000, 1, SECOND), 1000);
	assert_int_equal(f.waiting, 2000);
	OVL_FetchUndone(&f);
	assert_int_equal(f.waiting, 1999);
}

/* Slow answers: the limit falls to the answers in half of the target, and does
 * not rise.  Fast ones let it rise by one per limit */
static void
test_limit(void **state)
{
	struct ovl_fetches f = { .waiting = 0 };

	(void)state;
	assert_int_equal(begin(&f, 100, 0, SECOND), 100);
	answer(&f, 20, 0, SECOND + 500 * MS);	/* the window begins */
	assert_true(f.limit <= 0);
	f.mean = 9. * SECOND;
	answer(&f, 1, 2 * SECOND, 2 * SECOND);	/* 20 in 0.5 s */
	assert_int_equal((unsigned)(f.limit * 10), 200);
	answer(&f, 1, 2 * SECOND, 2 * SECOND);
	assert_int_equal((unsigned)(f.limit * 10), 200);
	assert_int_equal(begin(&f, 1, 0, 2 * SECOND), 0);
	answer(&f, 1, 2 * SECOND, 3 * SECOND);	/* 22 in 1.5 s */
	assert_int_equal((unsigned)(f.limit * 100), 733);
	answer(&f, 1, 2 * SECOND, 4 * SECOND);	/* 23 in 2.5 s */
	assert_int_equal((unsigned)(f.limit * 100 + .5), 460);
	f.mean = 0;
	answer(&f, 4, 0, 4 * SECOND);
	assert_int_equal((unsigned)(f.limit * 100), 541);
	assert_int_equal(begin(&f, 1, 0, 4 * SECOND), 0);
	answer(&f, 69, 0, 4 * SECOND);
	assert_int_equal(f.waiting, 3);
	f.limit = 4.9;
	assert_int_equal(begin(&f, 9, 0, 4 * SECOND), 2);
}

/* A window that is too short says nothing.  It begins at the first answer: of a
 * burst, the time until then has no answers, whatever the origin serves */
static void
test_window(void **state)
{
	struct ovl_fetches f = { .mean = 9. * SECOND };

	(void)state;
	assert_int_equal(begin(&f, 9, 0, SECOND), 9);
	answer(&f, 1, 9 * SECOND, SECOND + 400 * MS);
	answer(&f, 7, 9 * SECOND, SECOND + 649 * MS);
	assert_true(f.limit <= 0);
	answer(&f, 1, 9 * SECOND, SECOND + 650 * MS);	/* 8 in 0.25 s */
	assert_int_equal((unsigned)f.limit, 16);
	f.limit = 99;
	assert_int_equal(begin(&f, 50, 0, 9 * SECOND), 50);
	answer(&f, 1, 9 * SECOND, 9 * SECOND + 400 * MS);
	answer(&f, 48, 9 * SECOND, 9 * SECOND + 649 * MS);
	assert_int_equal((unsigned)f.limit, 99);
	answer(&f, 1, 9 * SECOND, 10 * SECOND + 400 * MS);	/* 49 in 1 s */
	assert_int_equal((unsigned)(f.limit * 10), 245);
}

/* Of a window of two targets or more half is forgotten */
static void
test_forgets(void **state)
{
	struct ovl_fetches f = { .waiting = 0 };

	(void)state;
	assert_int_equal(begin(&f, 1, 0, SECOND), 1);
	assert_int_equal(begin(&f, 199, 0, SECOND + 1), 199);
	assert_int_equal(f.began, SECOND);
	answer(&f, 100, 0, 3 * SECOND);
	assert_int_equal(f.began, 3 * SECOND);
	f.mean = 9. * SECOND;
	answer(&f, 1, 2 * SECOND, 5 * SECOND);	/* 100 in 2 s, then 50 in 1 s */
	assert_int_equal((unsigned)(f.limit * 100), 2500);
	answer(&f, 1, 2 * SECOND, 6 * SECOND);	/* 51 in 2 s */
	assert_int_equal((unsigned)(f.limit * 100), 1275);
}

/* An answer has a sixteenth of the mean, and counts two targets at most */
static void
test_mean(void **state)
{
	struct ovl_fetches f = { .waiting = 0 };

	(void)state;
	assert_int_equal(begin(&f, 4, 0, SECOND), 4);
	answer(&f, 1, -SECOND, SECOND);
	assert_int_equal(f.mean, 0);
	answer(&f, 1, 160 * MS, SECOND);
	assert_int_equal(f.mean, 10 * MS);
	f.mean = 0;
	answer(&f, 1, 9 * SECOND, SECOND);
	assert_int_equal(f.mean, 125 * MS);
	f.mean = TARGET / 2;			/* half is not above half */
	f.limit = 10;
	answer(&f, 1, TARGET / 2, 2 * SECOND);
	assert_int_equal((unsigned)(f.limit * 10), 101);
}

/* A fetch in the background stands for two.  Four of others always begin */
static void
test_background(void **state)
{
	struct ovl_fetches f = { .waiting = 0, .limit = 10 };

	(void)state;
	assert_int_equal(begin(&f, 9, 1, SECOND), 5);
	assert_int_equal(begin(&f, 9, 0, SECOND), 5);
	f.limit = FETCHES_LEAST;
	f.waiting = 0;
	assert_int_equal(begin(&f, 9, 1, SECOND), 2);
	assert_int_equal(begin(&f, 9, 0, SECOND), 2);
}

/* No answer for the target: only four may wait, and one more per target, until
 * one comes */
static void
test_quiet(void **state)
{
	struct ovl_fetches f = { .waiting = 0 };

	(void)state;
	assert_int_equal(begin(&f, 3, 0, SECOND), 3);
	assert_int_equal(begin(&f, 1, 0, 10 * SECOND), 1);
	assert_int_equal(begin(&f, 9, 0, 11 * SECOND), 9);
	assert_int_equal(begin(&f, 9, 0, 11 * SECOND + 1), 1);
	assert_int_equal(begin(&f, 9, 0, 12 * SECOND + 1), 0);
	answer(&f, 1, MS, 12 * SECOND);
	assert_int_equal(begin(&f, 9, 0, 13 * SECOND), 9);
	assert_int_equal(begin(&f, 9, 0, 13 * SECOND + 1), 1);
}

/* An origin that refuses at once is not fast: neither the limit nor the mean
 * changes */
static void
test_quick_failures(void **state)
{
	struct ovl_fetches f = { .limit = 10, .mean = SECOND };

	(void)state;
	fail_each(&f, 1000, MS, SECOND);
	fail_each(&f, 1000, TARGET / 2, 2 * SECOND);
	assert_int_equal(f.waiting, 0);
	assert_true(f.limit >= 10 && f.limit <= 10);
	assert_true(f.mean >= SECOND && f.mean <= SECOND);
}

/* A fetch that failed late was too slow.  Also when it is the first one */
static void
test_slow_failures(void **state)
{
	struct ovl_fetches f = { .waiting = 0 };
	unsigned n;

	(void)state;
	assert_int_equal(begin(&f, 100, 0, SECOND), 100);
	for (n = 0; n < 20; n++)
		OVL_FetchFailed(&f, TARGET, TARGET * 3 / 4, 10 * SECOND);
	assert_int_equal(f.waiting, 80);
	assert_true(f.mean > TARGET * .5);
	assert_int_equal((unsigned)f.limit, FETCHES_LEAST);
	assert_true(f.answers < 0);
}

/* A failure is no answer: of an origin that gives none, four are asked, and one
 * more per target */
static void
test_failures_are_no_answers(void **state)
{
	struct ovl_fetches f = { .waiting = 0 };

	(void)state;
	assert_int_equal(begin(&f, 5, 0, SECOND), 5);
	OVL_FetchFailed(&f, TARGET, MS, 9 * SECOND);
	assert_int_equal(begin(&f, 9, 0, 9 * SECOND), 1);
	OVL_FetchFailed(&f, TARGET, 9 * SECOND, 11 * SECOND);
	assert_int_equal(begin(&f, 9, 0, 11 * SECOND), 1);
}

/* Without a target the limit is forgotten */
static void
test_no_target(void **state)
{
	struct ovl_fetches f = { .waiting = 0, .limit = 4, .mean = SECOND };

	(void)state;
	assert_int_equal(begin(&f, 9, 0, SECOND), 4);
	assert_true(OVL_FetchBegins(&f, 0, 1, 100 * SECOND));
	OVL_FetchAnswered(&f, 0, SECOND, 100 * SECOND);
	assert_int_equal(f.mean, 0);
	assert_int_equal(begin(&f, 100, 0, 100 * SECOND), 100);
	f.limit = 4;
	OVL_FetchFailed(&f, 0, MS, 100 * SECOND);
	assert_int_equal(begin(&f, 100, 0, 100 * SECOND), 100);
}

/*
 * An origin: `servers` at a time, each request takes `service`.  `load`
 * requests/s come, at even times, for `seconds`.  Returns how many were answered
 * within the target; *refused: how many were not let in.
 */
static unsigned
origin(struct ovl_fetches *f, unsigned servers, int64_t service,
    unsigned load, unsigned seconds, unsigned *refused)
{
	static int64_t begun[100000], ends[100000];
	unsigned head = 0, tail = 0, good = 0, n, u;
	int64_t now;

	*refused = 0;
	for (n = 0; n < load * seconds; n++) {
		now = SECOND + n * (SECOND / load);
		for (; head < tail && ends[head] <= now; head++) {
			good += ends[head] - begun[head] <= TARGET;
			OVL_FetchAnswered(f, TARGET, ends[head] - begun[head],
			    ends[head]);
		}
		if (!OVL_FetchBegins(f, TARGET, 0, now)) {
			++*refused;
			continue;
		}
		u = tail++;
		begun[u] = now;
		ends[u] = now + service;
		if (u >= servers && ends[u - servers] > now)
			ends[u] = ends[u - servers] + service;
	}
	return (good);
}

/* No request is refused by an origin that has enough servers, also if each
 * answer takes almost half of the target */
static void
test_healthy(void **state)
{
	struct ovl_fetches f = { .waiting = 0 };
	unsigned refused;

	(void)state;
	(void)origin(&f, 10000, 490 * MS, 1000, 20, &refused);
	assert_int_equal(refused, 0);
}

/* At 2 and 10 times what it can serve, nearly all that it can serve is in time.
 * Without a limit it is 0.1 or less */
static void
test_overloaded(void **state)
{
	static const unsigned loads[] = { 200, 1000 };
	unsigned u, good, refused;

	(void)state;
	for (u = 0; u < 2; u++) {
		struct ovl_fetches f = { .waiting = 0 };

		good = origin(&f, 2, 20 * MS, loads[u], 60, &refused);
		assert_in_range(good, u == 0 ? 95 * 60 : 80 * 60, 100 * 60);
		assert_true(refused > 0);
	}
}

/* When an origin is fast again, the limit rises */
static void
test_recovers(void **state)
{
	struct ovl_fetches f = { .limit = FETCHES_LEAST,
	    .mean = 10. * SECOND };
	unsigned refused;

	(void)state;
	(void)origin(&f, 100, 20 * MS, 1000, 30, &refused);
	assert_in_range(refused, 1, 3000);
	assert_true(f.limit > 20);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_bound_at_first),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_window),
		cmocka_unit_test(test_forgets),
		cmocka_unit_test(test_mean),
		cmocka_unit_test(test_background),
		cmocka_unit_test(test_quiet),
		cmocka_unit_test(test_quick_failures),
		cmocka_unit_test(test_slow_failures),
		cmocka_unit_test(test_failures_are_no_answers),
		cmocka_unit_test(test_no_target),
		cmocka_unit_test(test_healthy),
		cmocka_unit_test(test_overloaded),
		cmocka_unit_test(test_recovers),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
