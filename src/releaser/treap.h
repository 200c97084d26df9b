/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The trees of vtime.h.
 *
 * Each tree is a treap (Seidel and Aragon, 1996): ordered by tag, then arrival,
 * then number, and a heap by a pseudo-random rank.  So the expected depth is
 * O(log n) in any order of arrivals.  Each node knows the least S and the least
 * S - (F - S) of its subtree.  From these two follows whether a tenant in the
 * subtree can be eligible, in any slot.
 */

#ifndef TREAP_H_INCLUDED
#define TREAP_H_INCLUDED

#include <assert.h>
#include <stddef.h>

#include "vtime.h"

static inline int64_t
tag(enum vt_order order, const struct vt_tenant *n)
{
	return (order == VT_BY_START ? n->s : n->s + n->d);
}

static inline int
earlier(const struct vt_tenant *a, int64_t ta, const struct vt_tenant *b,
    int64_t tb)
{
	if (ta != tb)
		return (ta < tb);
	if (a->arrival != b->arrival)
		return (a->arrival < b->arrival);
	return (a->number < b->number);
}

static inline int
precedes(enum vt_order order, const struct vt_tenant *a,
    const struct vt_tenant *b)
{
	return (earlier(a, tag(order, a), b, tag(order, b)));
}

static inline struct vt_tenant *
summed(struct vt_tenant *n)
{
	const struct vt_tenant *below[] = { n->left, n->right };
	unsigned i;

	n->least_s = n->s;
	n->least_e = n->s - n->d;
	for (i = 0; i < 2; i++) {
		if (below[i] == NULL)
			continue;
		n->least_s = least(n->least_s, below[i]->least_s);
		n->least_e = least(n->least_e, below[i]->least_e);
	}
	return (n);
}

static inline struct vt_tenant *
merge(struct vt_tenant *a, struct vt_tenant *b)
{
	if (a == NULL || b == NULL)
		return (a == NULL ? b : a);
	if (a->rank > b->rank) {
		a->right = merge(a->right, b);
		return (summed(a));
	}
	b->left = merge(a, b->left);
	return (summed(b));
}

/* Split the tree n into the nodes before `at`, *a, and the rest, *b */
static inline void
split(enum vt_order order, struct vt_tenant *n,
    const struct vt_tenant *at, struct vt_tenant **a, struct vt_tenant **b)
{
	if (n == NULL) {
		*a = *b = NULL;
	} else if (precedes(order, n, at)) {
		split(order, n->right, at, &n->right, b);
		*a = summed(n);
	} else {
		split(order, n->left, at, a, &n->left);
		*b = summed(n);
	}
}

static inline struct vt_tenant *
with(enum vt_order order, struct vt_tenant *n, struct vt_tenant *m)
{
	if (n == NULL || m->rank > n->rank) {
		split(order, n, m, &m->left, &m->right);
		return (summed(m));
	}
	if (precedes(order, m, n))
		n->left = with(order, n->left, m);
	else
		n->right = with(order, n->right, m);
	return (summed(n));
}

static inline struct vt_tenant *
without(enum vt_order order, struct vt_tenant *n,
    const struct vt_tenant *m)
{
	assert(n != NULL);
	if (n == m)
		return (merge(n->left, n->right));
	if (precedes(order, m, n))
		n->left = without(order, n->left, m);
	else
		n->right = without(order, n->right, m);
	return (summed(n));
}

static inline struct vt_tenant *
leftmost(struct vt_tenant *n)
{
	while (n != NULL && n->left != NULL)
		n = n->left;
	return (n);
}

static inline void
move_all(struct vt_tenant *n, int64_t by)
{
	if (n == NULL)
		return;
	move_all(n->left, by);
	move_all(n->right, by);
	n->least_s += by;
	n->least_e += by;
}

#endif
