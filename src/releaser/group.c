/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The arithmetic of the tags of group.h.  A charge keeps S within AHEAD_MAX of
 * v, so that no sum of charges overflows.  v only grows to the tag of a member.
 */

#include <assert.h>

#include "group.h"
#include "list.h"

#define AHEAD_MAX	(INT64_C(1) << 58)	/* virtual ns, of S from v */

static int64_t
start_of(const struct group *g, const struct member *m)
{
	return (m->start + g->heap[m->resource].offset);
}

static void
set_start(const struct group *g, struct member *m, int64_t s)
{
	m->start = s - g->heap[m->resource].offset;
}

void
group_join(const struct group *g, struct member *m)
{
	set_start(g, m, g->v);
}

int64_t
group_ahead(const struct group *g, const struct member *m)
{
	return (start_of(g, m) - g->v);
}

void
group_place(struct group *g, struct member *m, enum rel_resource dominant)
{
	int wanted = !list_empty(&m->pool);
	int64_t s = start_of(g, m);

	if (heap_has(&m->heap)) {
		if (wanted && m->resource == dominant &&
		    m->heap.key == m->start)
			return;
		heap_remove(&g->heap[m->resource].root, &m->heap);
	}
	m->resource = dominant;
	set_start(g, m, s);
	if (wanted)
		heap_insert(&g->heap[dominant].root, &m->heap, m->start);
}

void
group_begin(const struct group *g, struct member *m, int64_t ns)
{
	if (start_of(g, m) < g->v + ns)
		set_start(g, m, g->v + ns);
}

void
group_charge(const struct group *g, struct member *m, int64_t ns)
{
	set_start(g, m, g->v + within((__int128)group_ahead(g, m) + ns,
	    AHEAD_MAX));
}

void
group_turn(struct group *g, const struct member *m, unsigned closed)
{
	int64_t grown = most(group_ahead(g, m), 0), behind;
	struct group_heap *h;
	unsigned r;

	g->v += grown;
	for (r = 0; r < REL__RESOURCES; r++) {
		h = &g->heap[r];
		if (!(closed & REL_MASK(r)) || r == m->resource ||
		    h->root == NULL)
			continue;
		behind = g->v - (h->root->key + h->offset);
		h->offset += least(grown, most(behind - GROUP_MISSED, 0));
	}
}

int
group_before(const struct group *g, const struct member *a,
    const struct member *b)
{
	return (start_of(g, a) < start_of(g, b));
}

struct member *
group_next(const struct group *g, unsigned closed)
{
	const struct group_heap *h, *first = NULL;
	unsigned r;

	for (r = 0; r < REL__RESOURCES; r++) {
		h = &g->heap[r];
		if (h->root != NULL && !(closed & REL_MASK(r)) &&
		    (first == NULL || h->root->key + h->offset <
		    first->root->key + first->offset))
			first = h;
	}
	if (first == NULL)
		return (NULL);
	return (LIST_OF(first->root, struct member, heap));
}
