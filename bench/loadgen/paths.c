/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * URLs with weights.  They are drawn: one of twice the weight comes twice as
 * often.  To fill a cache they are taken in order.
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen.h"

void
paths_add(struct paths *p, const char *url, double weight)
{
	double before = p->n > 0 ? p->all[p->n - 1].upto : 0;

	p->all = realloc(p->all, (p->n + 1) * sizeof *p->all);
	assert(p->all != NULL);
	p->all[p->n].url = strdup(url);
	assert(p->all[p->n].url != NULL);
	p->all[p->n++].upto = before + weight;
}

/* Return the next URL in order; there is at least one. */
const char *
paths_next(struct paths *p)
{

	assert(p->n > 0);
	return (p->all[p->taken++ % p->n].url);
}

/* Return a URL by weight; there is at least one. */
const char *
paths_draw(const struct paths *p)
{
	size_t low = 0, high = p->n - 1, middle;
	double at;

	assert(p->n > 0);
	at = fraction() * p->all[high].upto;
	while (low < high) {	/* to the first one that is above */
		middle = low + (high - low) / 2;
		if (p->all[middle].upto > at)
			high = middle;
		else
			low = middle + 1;
	}
	return (p->all[low].url);
}
