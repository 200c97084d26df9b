/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Events in order of time: a binary heap.  At equal times, the one that was
 * set first.  A queue, and a path, have a fixed number of events, so the heap
 * is as large as their number when the network runs, and never grows.
 */

#include "internal.h"

void
event_init(struct event *e, event_f *fire, void *owner)
{
	e->when = NEVER;
	e->turn = 0;
	e->at = -1;
	e->fire = fire;
	e->owner = owner;
}

static int
before(const struct event *a, const struct event *b)
{
	return (a->when < b->when || (a->when == b->when && a->turn < b->turn));
}

static void
place(struct events *es, struct event *e, int32_t at)
{
	es->heap[at] = e;
	e->at = at;
}

static void
up(struct events *es, struct event *e)
{
	int32_t at = e->at, parent;

	while (at > 0) {
		parent = (at - 1) / 2;
		if (!before(e, es->heap[parent]))
			break;
		place(es, es->heap[parent], at);
		at = parent;
	}
	place(es, e, at);
}

static void
down(struct events *es, struct event *e)
{
	int32_t at = e->at, child;

	for (;;) {
		child = 2 * at + 1;
		if (child >= es->n)
			break;
		if (child + 1 < es->n &&
		    before(es->heap[child + 1], es->heap[child]))
			child++;
		if (!before(es->heap[child], e))
			break;
		place(es, es->heap[child], at);
		at = child;
	}
	place(es, e, at);
}

/* The event is at this time, and no longer at the one before */
void
event_set(struct events *es, struct event *e, int64_t when)
{
	e->when = when;
	e->turn = es->turns++;
	if (e->at < 0) {
		assert(es->n < es->room);
		place(es, e, es->n++);
		up(es, e);
	} else {
		up(es, e);
		down(es, e);
	}
}

void
event_clear(struct events *es, struct event *e)
{
	struct event *last;
	int32_t at = e->at;

	if (at < 0)
		return;
	e->at = -1;
	e->when = NEVER;
	last = es->heap[--es->n];
	if (last == e)
		return;
	place(es, last, at);
	up(es, last);
	down(es, last);
}
