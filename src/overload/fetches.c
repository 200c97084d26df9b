/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * See fetches.h.
 */

#include <assert.h>
#include <math.h>

#include "fetches.h"

#define NEW		(1. / 16)	/* weight of an answer in the mean */
#define TOOK_MOST	2		/* targets, that one answer counts */
#define WINDOW_MOST	2		/* targets; then half is forgotten */

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
	if (f->waiting == 0) {
		f->began = now;
		f->answers = -1;
	}
	if (++f->waiting == FETCHES_LEAST)
		f->quiet = now;
	return (1);
}

/* A fetch has ended.  Let the mean and the limit follow its time. */
static void
follow(struct ovl_fetches *f, int64_t target, int64_t took, int64_t now)
{
	double half = (double)target / 2, window = (double)(now - f->began);
	double served;

	took = took < TOOK_MOST * target ? took : TOOK_MOST * target;
	f->mean += NEW * (fmax(0, (double)took) - f->mean);
	if (f->mean <= half) {
		if (f->limit > 0)
			f->limit += 1 / f->limit;
	} else if (window >= half / 2) {
		served = fmax(0, f->answers) * half / window;
		if (f->limit <= 0 || served < f->limit)
			f->limit = fmax(FETCHES_LEAST, served);
	}
	if (window >= WINDOW_MOST * (double)target && f->answers > 0) {
		f->began = now - (now - f->began) / 2;
		f->answers /= 2;
	}
}

/* A fetch no longer waits.  Without a target what was learned is forgotten. */
static void
ended(struct ovl_fetches *f, int64_t target)
{

	assert(f->waiting > 0);
	f->waiting--;
	if (target <= 0)
		f->limit = f->mean = 0;
}

void
OVL_FetchAnswered(struct ovl_fetches *f, int64_t target, int64_t took,
    int64_t now)
{

	ended(f, target);
	f->quiet = now;
	if (f->answers < 0)
		f->began = now;
	f->answers++;
	if (target > 0)
		follow(f, target, took, now);
}

void
OVL_FetchFailed(struct ovl_fetches *f, int64_t target, int64_t took,
    int64_t now)
{

	ended(f, target);
	if (target > 0 && took > target / 2)
		follow(f, target, took, now);
}

void
OVL_FetchUndone(struct ovl_fetches *f)
{

	assert(f->waiting > 0);
	f->waiting--;
}
