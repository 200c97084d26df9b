/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Tags are kept as distances from v wherever they are bounded, so that no sum
 * of charges overflows; v itself only follows tags.
 */

#include <assert.h>

#include "group.h"
#include "list.h"

#define AHEAD_MAX	(INT64_C(1) << 58)	/* virtual ns, from v */

void
group_place(struct group *g, struct member *m, enum rel_resource dominant)
{
	int wanted = !list_empty(&m->pool);

	if (heap_has(&m->heap)) {
		if (wanted && m->resource == dominant &&
		    m->heap.key == m->start)
			return;
		heap_remove(&g->heap[m->resource], &m->heap);
	}
	m->resource = dominant;
	if (wanted)
		heap_insert(&g->heap[dominant], &m->heap, m->start);
}

void
group_begin(const struct group *g, struct member *m, int64_t ns)
{
	if (m->start < g->v + ns)
		m->start = g->v + ns;
}

void
group_charge(const struct group *g, struct member *m, int64_t ns)
{
	m->start = g->v + within((__int128)m->start - g->v + ns, AHEAD_MAX);
}

void
group_turn(struct group *g, struct member *m)
{
	if (g->v < m->start)
		g->v = m->start;
}

struct member *
group_next(const struct group *g, unsigned closed)
{
	const struct heap_node *h, *first = NULL;
	unsigned r;

	for (r = 0; r < REL__RESOURCES; r++) {
		h = g->heap[r];
		if (h != NULL && !(closed & REL_MASK(r)) &&
		    (first == NULL || h->key < first->key))
			first = h;
	}
	if (first == NULL)
		return (NULL);
	return (LIST_OF(first, struct member, heap));
}
