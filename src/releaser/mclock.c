/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The arithmetic and the heaps of mclock.h.
 *
 * A tag is in a heap only while it matters.  The tag of a limit matters while
 * all waiting requests of the tenant are throttled.  The tag of a reservation
 * matters while the reservation could release a request.
 */

#include <assert.h>

#include "mclock.h"
#include "list.h"

#define TAG_MAX		(INT64_C(1) << 58)	/* ns: bound of |tag - now| */

static void
set(struct limit *l, uint32_t part, int64_t now)
{
	if (part == l->part)
		return;
	l->part = part;
	l->tag = now;
}

void
mclock_set(struct mclock *lim, uint32_t reservation, uint32_t limit,
    int64_t now)
{
	assert(reservation <= REL_PART_ONE && limit <= REL_PART_ONE);
	set(&lim->reservation, reservation, now);
	set(&lim->limit, limit, now);
}

static void
not_before(struct limit *l, int64_t when)
{
	if (l->tag < when)
		l->tag = when;
}

void
mclock_begin(struct mclock *lim, int64_t now)
{
	not_before(&lim->reservation, now);
	not_before(&lim->limit, now - MCLOCK_BURST);
}

void
mclock_charge(struct mclock *lim, int64_t ns, int reserved, int64_t now)
{
	struct limit *l = reserved ? &lim->reservation : &lim->limit;
	__int128 tag;

	if (l->part == 0)
		return;
	if (ns > 0)
		not_before(l, now - MCLOCK_BURST);
	tag = l->tag + (__int128)ns * REL_PART_ONE / l->part;
	if (tag > now + TAG_MAX)
		tag = now + TAG_MAX;
	l->tag = (int64_t)(tag < now - TAG_MAX ? now - TAG_MAX : tag);
}

static void
place(struct heap_node **from, struct heap_node **to, struct limit *l,
    int wanted)
{
	if (heap_has(&l->heap)) {
		if (wanted && from == to && l->heap.key == l->tag)
			return;
		heap_remove(from, &l->heap);
	}
	if (wanted)
		heap_insert(to, &l->heap, l->tag);
}

void
mclock_place(struct mclock_index *ix, struct mclock *lim,
    enum rel_resource dominant, int owed, int shut)
{
	place(&ix->limit, &ix->limit, &lim->limit, shut);
	place(&ix->reservation[lim->resource], &ix->reservation[dominant],
	    &lim->reservation, owed && lim->reservation.part > 0);
	lim->resource = dominant;
}

struct mclock *
mclock_due(const struct mclock_index *ix, int64_t now)
{
	if (ix->limit == NULL || ix->limit->key > now)
		return (NULL);
	return (LIST_OF(ix->limit, struct mclock, limit.heap));
}

struct mclock *
mclock_owed(const struct mclock_index *ix, unsigned closed, int64_t now)
{
	const struct heap_node *h, *best = NULL;
	unsigned r;

	for (r = 0; r < REL__RESOURCES; r++) {
		h = ix->reservation[r];
		if (h == NULL || h->key > now || (closed & REL_MASK(r)))
			continue;
		if (best == NULL || h->key < best->key)
			best = h;
	}
	if (best == NULL)
		return (NULL);
	return (LIST_OF(best, struct mclock, reservation.heap));
}

int64_t
mclock_next(const struct mclock_index *ix, int64_t when)
{
	if (ix->limit != NULL && ix->limit->key < when)
		return (ix->limit->key);
	return (when);
}
