/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The timing wheel of the tenants that owe U or more, for policy_mr3rs.c.
 *
 * The wheel is hierarchical, in powers of two.  Its hand is at base = G / U, so
 * it moves when the level rises.  Bucket b has the tenants whose A / U differs
 * from base in bit b and in no higher bit.  When the hand reaches the start of
 * a bucket, its tenants go to the next round or to a lower bucket: at most one
 * move for each bit of the debt.
 */

#ifndef WHEEL_H_INCLUDED
#define WHEEL_H_INCLUDED

#include <assert.h>

#include "mr3.h"

static inline void
wheel_add(struct level *lv, struct mr3_tenant *mt)
{
	int64_t n = mt->a / QUANTUM_MAX;

	assert(n > lv->base);
	mt->bucket = (uint8_t)(63 - __builtin_clzll((uint64_t)(n ^ lv->base)));
	mt->indebted = 1;
	list_append(&lv->wheel[mt->bucket], &mt->link);
	lv->map |= UINT64_C(1) << mt->bucket;
	lv->indebted++;
}

static inline void
wheel_remove(struct level *lv, struct mr3_tenant *mt)
{
	list_remove(&mt->link);
	mt->indebted = 0;
	lv->indebted--;
	if (list_empty(&lv->wheel[mt->bucket]))
		lv->map &= ~(UINT64_C(1) << mt->bucket);
}

/* Return the lowest bucket.  *start: where it begins, in units of U. */
static inline struct rel_link *
wheel_lowest(struct level *lv, int64_t *start)
{
	unsigned b;

	assert(lv->map != 0);
	b = (unsigned)__builtin_ctzll(lv->map);
	*start = ((lv->base >> b) | 1) << b;
	return (&lv->wheel[b]);
}

/* Move all tenants of buckets that start at `base` or below to `due` */
static inline void
wheel_due(struct level *lv, int64_t base, struct rel_link *due)
{
	struct mr3_tenant *mt;
	struct rel_link *l;
	int64_t start;

	while (lv->map != 0) {
		l = wheel_lowest(lv, &start);
		if (start > base)
			break;
		mt = LIST_OF(l->next, struct mr3_tenant, link);
		wheel_remove(lv, mt);
		list_append(due, &mt->link);
	}
}

/* Put a backlogged tenant without a turn in this round where it has to wait */
static inline void
place(struct rel *rel, struct mr3_tenant *mt)
{
	struct mr3 *p = state(rel);

	if ((rel->options & REL_OPT_CAP) && excess(p, mt) >= QUANTUM_MAX)
		wheel_add(level_of(p, mt), mt);
	else
		list_append(&p->next, &mt->link);
}

/* Put a tenant of the wheel in its new place, after a change of its account */
static inline void
replace(struct rel *rel, struct mr3_tenant *mt)
{
	if (!mt->indebted)
		return;
	wheel_remove(level_of(state(rel), mt), mt);
	place(rel, mt);
}

/* Subtract G from all accounts of the level, long before they could overflow */
static inline void
rebase(struct rel *rel, struct level *lv)
{
	struct mr3 *p = state(rel);
	struct mr3_tenant *mt;
	struct rel_link *l;

	for (l = rel->tenants.next; l != &rel->tenants; l = l->next) {
		mt = account_of(LIST_OF(l, struct rel_tenant, all));
		if (level_of(p, mt) == lv)
			mt->a = within(excess(p, mt), EXCESS_MAX);
	}
	lv->began = within((__int128)lv->began - lv->g, EXCESS_MAX);
	lv->g = 0;
}

/* Raise the level.  Tenants that owe less than U now join the next round. */
static inline void
raise_level(struct rel *rel, struct level *lv, int64_t ns)
{
	struct mr3_tenant *mt;
	struct rel_link due;

	assert(ns >= 0);
	list_init(&due);
	lv->g += ns;
	if (lv->g > LEVEL_MAX) {
		wheel_due(lv, INT64_MAX, &due);
		rebase(rel, lv);
	} else
		wheel_due(lv, lv->g / QUANTUM_MAX, &due);
	lv->base = lv->g / QUANTUM_MAX;
	while (!list_empty(&due)) {
		mt = LIST_OF(due.next, struct mr3_tenant, link);
		list_remove(&mt->link);
		place(rel, mt);
	}
}

#endif
