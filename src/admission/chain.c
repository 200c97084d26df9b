/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The table of chain.h: chains of numbers.  A free entry has the bit FREE in
 * `next`, and its other bits are the number of the next free one.
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "chain.h"

#define FREE		(UINT32_C(1) << 31)

static void
chain_assert(const struct chain *c)
{

	assert(c != NULL && c->magic == CHAIN_MAGIC);
}

int
CHAIN_Init(struct chain *c, uint32_t room, size_t size)
{

	assert(room > 0 && (room & (room - 1)) == 0 && room <= FREE / 2);
	assert(size >= sizeof(struct chained));
	memset(c, 0, sizeof *c);
	c->bucket = calloc(room, sizeof *c->bucket);
	c->entry = calloc(room, size);
	if (c->bucket == NULL || c->entry == NULL) {
		free(c->bucket);
		free(c->entry);
		return (-1);
	}
	c->magic = CHAIN_MAGIC;
	c->room = room;
	c->size = size;
	return (0);
}

void
CHAIN_Fini(struct chain *c)
{

	chain_assert(c);
	free(c->bucket);
	free(c->entry);
	memset(c, 0, sizeof *c);
}

static struct chained *
at(const struct chain *c, uint32_t number)
{

	assert(number > 0 && number <= c->top);
	return ((void *)(c->entry + (number - 1) * c->size));
}

void *
CHAIN_At(const struct chain *c, uint32_t number)
{

	chain_assert(c);
	return (at(c, number));
}

uint32_t
CHAIN_Number(const struct chain *c, const void *entry)
{

	chain_assert(c);
	return ((uint32_t)((size_t)((const char *)entry - c->entry) /
	    c->size) + 1);
}

/* Return the link to the entry of a digest, or the last link of its chain. */
static uint32_t *
link_of(const struct chain *c, uint64_t digest)
{
	uint32_t *link = &c->bucket[digest & (c->room - 1)];

	while (*link != 0 && at(c, *link)->digest != digest)
		link = &at(c, *link)->next;
	return (link);
}

void *
CHAIN_Find(const struct chain *c, uint64_t digest)
{
	uint32_t number;

	chain_assert(c);
	number = *link_of(c, digest);
	return (number == 0 ? NULL : at(c, number));
}

void *
CHAIN_Add(struct chain *c, uint64_t digest)
{
	uint32_t *link, number;
	struct chained *e;

	chain_assert(c);
	link = link_of(c, digest);
	number = c->free;
	assert(c->used < c->room && *link == 0);
	if (number == 0)
		number = ++c->top;
	else
		c->free = at(c, number)->next & ~FREE;
	e = at(c, number);
	memset(e, 0, c->size);
	e->digest = digest;
	*link = number;
	c->used++;
	return (e);
}

void
CHAIN_Remove(struct chain *c, void *entry)
{
	struct chained *e = entry;
	uint32_t number = CHAIN_Number(c, e), *link;

	link = link_of(c, e->digest);
	assert(*link == number);
	*link = e->next;
	e->next = FREE | c->free;
	c->free = number;
	c->used--;
}

void *
CHAIN_Next(const struct chain *c, const void *entry)
{
	uint32_t number;

	chain_assert(c);
	number = entry == NULL ? 0 : CHAIN_Number(c, entry);
	while (++number <= c->top)
		if (!(at(c, number)->next & FREE))
			return (at(c, number));
	return (NULL);
}
