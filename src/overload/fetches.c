/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * See fetches.h.
 */

#include <assert.h>
#include <math.h>

#include "fetches.h"

#define NEW		(1. / 16)	/* weight of an answer in the mean */
#define FALL		.7
#define TOOK_MOST	2		/* targets, that one answer counts */

int
OVL_FetchBegins(struct ovl_fetches *f, int64_t target, int background,
    int64_t now)
{
	unsigned waiting = f->waiting << (background != 0);

	if (target > 0 && f->limit > 0 && waiting >= f->limit)
		return (0);
	if (target > 0 && f->waiting >= FETCHES_LEAST &&
	    now - f->quiet > target) {
		if (now - f->probe <= target)
			return (0);
		f->probe = now;
	}
	if (++f->waiting == FETCHES_LEAST)
		f->quiet = now;
	return (1);
}

/* A fetch has ended; `used` waited until now.  Let the mean and the limit
 * follow its time. */
static void
follow(struct ovl_fetches *f, int64_t target, int64_t took, double used,
    int64_t now)
{

	took = took < TOOK_MOST * target ? took : TOOK_MOST * target;
	f->mean += NEW * (fmax(0, (double)took) - f->mean);
	if (f->mean <= (double)target / 2) {
		if (f->limit > 0)
			f->limit += 1 / f->limit;
	} else if (now - f->cut >= target / 2) {
		f->cut = now;
		if (f->limit > 0)
			used = fmin(used, f->limit);
		f->limit = fmax(FETCHES_LEAST, FALL * used);
	}
}

/* A fetch no longer waits.  Return how many waited, with it. */
static unsigned
ended(struct ovl_fetches *f, int64_t target)
{

	assert(f->waiting > 0);
	if (target <= 0)
		f->limit = f->mean = 0;
	return (f->waiting--);
}

void
OVL_FetchAnswered(struct ovl_fetches *f, int64_t target, int64_t took,
    int64_t now)
{
	unsigned used = ended(f, target);

	f->quiet = now;
	if (target > 0)
		follow(f, target, took, used, now);
}

void
OVL_FetchFailed(struct ovl_fetches *f, int64_t target, int64_t took,
    int64_t now)
{
	unsigned used = ended(f, target);

	if (target > 0 && took > target / 2)
		follow(f, target, took, used, now);
}

void
OVL_FetchUndone(struct ovl_fetches *f)
{

	assert(f->waiting > 0);
	f->waiting--;
}
