/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The shadow of shadow.h: a table of objects, and a list in the order of their
 * last requests.
 */

#include <assert.h>
#include <string.h>

#include "shadow.h"

struct shadow_object {
	struct chained		chained;
	float			bytes;
	uint32_t		newer, older;	/* numbers in the table, or 0 */
};

static void
shadow_assert(const struct shadow *s)
{

	assert(s != NULL && s->magic == SHADOW_MAGIC);
}

int
SHADOW_Init(struct shadow *s, uint32_t objects)
{

	memset(s, 0, sizeof *s);
	if (CHAIN_Init(s->table, objects, sizeof(struct shadow_object)) != 0)
		return (-1);
	s->magic = SHADOW_MAGIC;
	return (0);
}

void
SHADOW_Fini(struct shadow *s)
{

	shadow_assert(s);
	CHAIN_Fini(s->table);
	memset(s, 0, sizeof *s);
}

static struct shadow_object *
object(const struct shadow *s, uint32_t number)
{

	return (CHAIN_At(s->table, number));
}

static void
unlist(struct shadow *s, const struct shadow_object *o)
{

	if (o->newer != 0)
		object(s, o->newer)->older = o->older;
	else
		s->newest = o->older;
	if (o->older != 0)
		object(s, o->older)->newer = o->newer;
	else
		s->oldest = o->newer;
}

static void
list_newest(struct shadow *s, struct shadow_object *o)
{
	uint32_t number = CHAIN_Number(s->table, o);

	o->newer = 0;
	o->older = s->newest;
	if (s->newest != 0)
		object(s, s->newest)->newer = number;
	else
		s->oldest = number;
	s->newest = number;
}

static void
evict_oldest(struct shadow *s)
{
	struct shadow_object *o = object(s, s->oldest);

	unlist(s, o);
	s->bytes -= (double)o->bytes;
	CHAIN_Remove(s->table, o);
	if (s->table->used == 0)
		s->bytes = 0;
}

int
SHADOW_Ask(struct shadow *s, uint64_t digest, double bytes, int admit,
    double capacity)
{
	struct shadow_object *o;

	shadow_assert(s);
	s->requests++;
	o = CHAIN_Find(s->table, digest);
	if (o != NULL) {
		unlist(s, o);
		list_newest(s, o);
		s->hits++;
		return (1);
	}
	if (!admit)
		return (0);
	while (s->table->used > 0 && s->bytes > capacity - bytes)
		evict_oldest(s);
	if (bytes > capacity)
		return (0);
	if (s->table->used == s->table->room)
		evict_oldest(s);
	o = CHAIN_Add(s->table, digest);
	o->bytes = (float)bytes;
	s->bytes += (double)o->bytes;
	list_newest(s, o);
	return (0);
}
