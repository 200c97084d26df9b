/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Requests that are due later: a binary heap.  Among those that are due at the
 * same time the order is not defined.
 */

#include <assert.h>
#include <stdlib.h>

#include "loadgen.h"

#define ROOM	1024	/* requests; doubled when they are full */

void
later_add(struct later *l, struct asking a)
{
	size_t i, up;

	if (l->n == l->room) {
		l->room = l->room > 0 ? l->room * 2 : ROOM;
		l->heap = realloc(l->heap, l->room * sizeof *l->heap);
		assert(l->heap != NULL);
	}
	for (i = l->n++; i > 0; i = up) {
		up = (i - 1) / 2;
		if (l->heap[up].due <= a.due)
			break;
		l->heap[i] = l->heap[up];
	}
	l->heap[i] = a;
}

/* Take the one that is due first; there has to be one. */
struct asking
later_take(struct later *l)
{
	struct asking first, last;
	size_t i, down;

	assert(l->n > 0);
	first = l->heap[0];
	last = l->heap[--l->n];
	for (i = 0; (down = 2 * i + 1) < l->n; i = down) {
		if (down + 1 < l->n &&
		    l->heap[down + 1].due < l->heap[down].due)
			down++;
		if (last.due <= l->heap[down].due)
			break;
		l->heap[i] = l->heap[down];
	}
	l->heap[i] = last;
	return (first);
}

/* Return when the first one is due, or never. */
uint64_t
later_first(const struct later *l)
{

	return (l->n > 0 ? l->heap[0].due : UINT64_MAX);
}
