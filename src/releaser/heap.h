/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * A pairing heap (Fredman, Sedgewick, Sleator and Tarjan, 1986) of nodes in the
 * caller's memory.  The root has the least key.  Insert is O(1), and remove is
 * O(log n) amortised.  The order of equal keys is deterministic, no more.
 */

#ifndef HEAP_H_INCLUDED
#define HEAP_H_INCLUDED

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

struct heap_node {
	int64_t			key;
	struct heap_node	*child;		/* the first child */
	struct heap_node	*next;		/* the next sibling */
	struct heap_node	**link;		/* the pointer to this node;
						 * NULL: in no heap */
};

/* Is the node in a heap? */
static inline int
heap_has(const struct heap_node *n)
{
	return (n->link != NULL);
}

static inline struct heap_node *
heap_meld(struct heap_node *a, struct heap_node *b)
{
	struct heap_node *t;

	if (a == NULL || b == NULL)
		return (a == NULL ? b : a);
	if (b->key < a->key) {
		t = a;
		a = b;
		b = t;
	}
	b->next = a->child;
	if (b->next != NULL)
		b->next->link = &b->next;
	b->link = &a->child;
	a->child = b;
	return (a);
}

static inline void
heap_set_root(struct heap_node **heap, struct heap_node *n)
{
	*heap = n;
	if (n != NULL) {
		n->next = NULL;
		n->link = heap;
	}
}

static inline void
heap_insert(struct heap_node **heap, struct heap_node *n, int64_t key)
{
	assert(n->link == NULL);
	n->key = key;
	n->child = n->next = NULL;
	heap_set_root(heap, heap_meld(*heap, n));
}

/* Meld a list of siblings: first in pairs, then all pairs into one heap */
static inline struct heap_node *
heap_pairs(struct heap_node *n)
{
	struct heap_node *a, *b, *pairs = NULL, *all = NULL;

	while (n != NULL) {
		a = n;
		b = a->next;
		n = b == NULL ? NULL : b->next;
		a->next = NULL;
		if (b != NULL)
			b->next = NULL;
		a = heap_meld(a, b);
		a->next = pairs;
		pairs = a;
	}
	while (pairs != NULL) {
		a = pairs;
		pairs = a->next;
		a->next = NULL;
		all = heap_meld(all, a);
	}
	return (all);
}

static inline void
heap_remove(struct heap_node **heap, struct heap_node *n)
{
	struct heap_node *below = heap_pairs(n->child);

	assert(n->link != NULL);
	if (n == *heap) {
		heap_set_root(heap, below);
	} else {
		*n->link = n->next;
		if (n->next != NULL)
			n->next->link = n->link;
		heap_set_root(heap, heap_meld(*heap, below));
	}
	n->child = n->next = NULL;
	n->link = NULL;
}

#endif
