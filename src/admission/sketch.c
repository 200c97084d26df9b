/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The sketch of sketch.h.  An object has one counter in each row, and its count
 * is the lower one of these.  Only the counters that have this value grow.
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "sketch.h"

int
SKETCH_Init(struct sketch *s, uint64_t room)
{

	assert(room > 0 && (room & (room - 1)) == 0);
	memset(s, 0, sizeof *s);
	s->counter = calloc(2 * room, sizeof *s->counter);
	if (s->counter == NULL)
		return (-1);
	s->room = room;
	s->magic = SKETCH_MAGIC;
	return (0);
}

void
SKETCH_Fini(struct sketch *s)
{

	assert(s != NULL && s->magic == SKETCH_MAGIC);
	free(s->counter);
	memset(s, 0, sizeof *s);
}

unsigned
SKETCH_Count(struct sketch *s, uint64_t digest)
{
	_Atomic uint8_t *a, *b;
	unsigned at_a, at_b, count;

	assert(s->magic == SKETCH_MAGIC);
	a = &s->counter[digest & (s->room - 1)];
	b = &s->counter[s->room + ((digest >> 32) & (s->room - 1))];
	at_a = atomic_load_explicit(a, memory_order_relaxed);
	at_b = atomic_load_explicit(b, memory_order_relaxed);
	count = at_a < at_b ? at_a : at_b;
	if (count == SKETCH_MOST)
		return (count);
	count++;
	if (at_a < count)
		atomic_store_explicit(a, (uint8_t)count, memory_order_relaxed);
	if (at_b < count)
		atomic_store_explicit(b, (uint8_t)count, memory_order_relaxed);
	return (count);
}

void
SKETCH_Age(struct sketch *s)
{
	uint64_t u;

	assert(s->magic == SKETCH_MAGIC);
	for (u = 0; u < 2 * s->room; u++)
		atomic_store_explicit(&s->counter[u], atomic_load_explicit(
		    &s->counter[u], memory_order_relaxed) / 2,
		    memory_order_relaxed);
}
