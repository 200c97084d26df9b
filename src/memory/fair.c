/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The division of fair.h.  The sum of the shares rises with the level, so the
 * level is found by bisection.
 */

#include <assert.h>
#include <math.h>

#include "fair.h"

#define STEPS		64	/* of the bisection: a double has 53 bits */
#define LEAST_WEIGHT	.001

static double
most(const struct fair *f)
{

	return (f->set.limit == 0 ? f->want :
	    fmin(f->want, (double)f->set.limit));
}

static double
least(const struct fair *f)
{

	return (fmin((double)f->set.reservation, most(f)));
}

/* Set the shares in this list for a level.  Return their sum. */
static double
at_level(struct fair *list, double level)
{
	struct fair *f;
	double sum = 0;

	for (f = list; f != NULL; f = f->next) {
		f->share = fmin(most(f), fmax(least(f), level * f->set.weight));
		sum += f->share;
	}
	return (sum);
}

/* Divide so many bytes between all in this list. */
static void
divide(struct fair *list, double bytes)
{
	double low = 0, high = bytes / LEAST_WEIGHT, level, sum;
	struct fair *f;
	unsigned step;

	if (at_level(list, high) <= bytes)	/* enough for all */
		return;
	for (step = 0; step < STEPS; step++) {
		level = (low + high) / 2;
		if (at_level(list, level) > bytes)
			high = level;
		else
			low = level;
	}
	sum = at_level(list, low);
	/* There may be more reservations than memory */
	for (f = list; f != NULL && sum > bytes; f = f->next)
		f->share *= bytes / sum;
}

void
FAIR_Divide(struct fair *fair, size_t n, double bytes)
{
	struct fair *f, *m, *all = NULL;

	for (f = fair; f < fair + n; f++) {
		assert(f->want >= 0);
		f->members = NULL;
		f->share = 0;
	}
	/* Owners that want nothing are in no list: there may be very many */
	for (f = fair; f < fair + n; f++)
		if (f->want > 0 && f->set.group != OWN_NONE) {
			assert(f->set.group < n);
			f->next = fair[f->set.group].members;
			fair[f->set.group].members = f;
		}
	for (f = fair; f < fair + n; f++)
		for (m = f->members; m != NULL; m = m->next)
			f->want += most(m);
	for (f = fair; f < fair + n; f++)
		if (f->want > 0 && f->set.group == OWN_NONE) {
			f->next = all;
			all = f;
		}
	divide(all, bytes);
	for (f = fair; f < fair + n; f++)
		if (f->members != NULL)
			divide(f->members, f->share);
}
