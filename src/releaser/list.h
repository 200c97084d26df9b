/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Circular doubly linked lists with a sentinel.  Every operation is O(1).  An
 * element leaves its list without a pointer to that list.
 */

#ifndef LIST_H_INCLUDED
#define LIST_H_INCLUDED

#include <stddef.h>

#include "releaser.h"

/* Return the struct of this type that has the link in this field */
#define LIST_OF(link, type, field)					\
	((type *)(void *)((char *)(link) - offsetof(type, field)))

static inline void
list_init(struct rel_link *l)
{
	l->next = l->prev = l;
}

static inline int
list_empty(const struct rel_link *l)
{
	return (l->next == l);
}

static inline void
list_append(struct rel_link *l, struct rel_link *m)
{
	m->next = l;
	m->prev = l->prev;
	l->prev->next = m;
	l->prev = m;
}

static inline void
list_remove(struct rel_link *m)
{
	m->next->prev = m->prev;
	m->prev->next = m->next;
	list_init(m);
}

/* Move all of `from` to the place before `at`, an element or the sentinel */
static inline void
list_splice(struct rel_link *at, struct rel_link *from)
{
	if (list_empty(from))
		return;
	from->next->prev = at->prev;
	at->prev->next = from->next;
	from->prev->next = at;
	at->prev = from->prev;
	list_init(from);
}

#endif
