/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The ring of ring.h.  A place is free for writer number n if its sequence
 * number is n.  It has a request for the reader if its sequence number is n +
 * 1.
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "ring.h"

int
RING_Init(struct ring *r, uint64_t room)
{
	uint64_t n;

	assert(room > 1 && (room & (room - 1)) == 0);
	memset(r, 0, sizeof *r);
	r->place = calloc(room, sizeof *r->place);
	if (r->place == NULL)
		return (-1);
	r->magic = RING_MAGIC;
	r->room = room;
	for (n = 0; n < room; n++)
		atomic_init(&r->place[n].sequence, n);
	return (0);
}

void
RING_Fini(struct ring *r)
{

	assert(r != NULL && r->magic == RING_MAGIC);
	free(r->place);
	memset(r, 0, sizeof *r);
}

int
RING_Put(struct ring *r, const struct ring_request *q)
{
	struct ring_place *p;
	uint64_t n, sequence;

	n = atomic_load_explicit(&r->put, memory_order_relaxed);
	while (1) {
		p = &r->place[n & (r->room - 1)];
		sequence = atomic_load_explicit(&p->sequence,
		    memory_order_acquire);
		if (sequence == n) {
			if (atomic_compare_exchange_weak_explicit(&r->put, &n,
			    n + 1, memory_order_relaxed, memory_order_relaxed))
				break;
		} else if (sequence < n) {
			atomic_fetch_add_explicit(&r->dropped, 1,
			    memory_order_relaxed);
			return (-1);
		} else
			n = atomic_load_explicit(&r->put,
			    memory_order_relaxed);
	}
	p->request = *q;
	atomic_store_explicit(&p->sequence, n + 1, memory_order_release);
	return (0);
}

int
RING_Get(struct ring *r, struct ring_request *q)
{
	struct ring_place *p = &r->place[r->got & (r->room - 1)];

	if (atomic_load_explicit(&p->sequence, memory_order_acquire) !=
	    r->got + 1)
		return (0);
	*q = p->request;
	atomic_store_explicit(&p->sequence, r->got + r->room,
	    memory_order_release);
	r->got++;
	return (1);
}

uint64_t
RING_Dropped(struct ring *r)
{

	return (atomic_exchange_explicit(&r->dropped, 0,
	    memory_order_relaxed));
}
