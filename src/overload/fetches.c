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

void
OVL_FetchAnswered(struct ovl_fetches *f, int64_t target, int64_t took,
    int64_t now)
{
	double used = f->waiting;

	assert(f->waiting > 0);
	f->waiting--;
	f->quiet = now;
	if (target <= 0) {
		f->limit = f->mean = 0;
		return;
	}
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

void
OVL_FetchUndone(struct ovl_fetches *f)
{

	assert(f->waiting > 0);
	f->waiting--;
}
