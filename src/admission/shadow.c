/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The miniature cache of shadow.h: a hash table of objects, chained by index,
 * and a list in the order of their last requests.
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "shadow.h"

struct shadow_object {
	uint64_t		digest;
	float			bytes;
	uint32_t		next;		/* in its bucket or the free
						 * list: index + 1, or 0 */
	uint32_t		newer, older;	/* index + 1, or 0 */
};

static void
shadow_assert(const struct shadow *s)
{

	assert(s != NULL && s->magic == SHADOW_MAGIC);
}

int
SHADOW_Init(struct shadow *s, uint32_t objects)
{
	uint32_t u;

	assert(objects > 0 && (objects & (objects - 1)) == 0);
	memset(s, 0, sizeof *s);
	s->magic = SHADOW_MAGIC;
	s->room = objects;
	s->bucket = calloc(objects, sizeof *s->bucket);
	s->object = calloc(objects, sizeof *s->object);
	if (s->bucket == NULL || s->object == NULL) {
		SHADOW_Fini(s);
		return (-1);
	}
	for (u = 0; u < objects; u++)
		s->object[u].next = u + 1 < objects ? u + 2 : 0;
	s->free = 1;
	return (0);
}

void
SHADOW_Fini(struct shadow *s)
{

	shadow_assert(s);
	free(s->bucket);
	free(s->object);
	memset(s, 0, sizeof *s);
}

static struct shadow_object *
object(const struct shadow *s, uint32_t at)
{

	assert(at > 0 && at <= s->room);
	return (&s->object[at - 1]);
}

/* Return the link to an object in its bucket, or to 0. */
static uint32_t *
find(const struct shadow *s, uint64_t digest)
{
	uint32_t *link = &s->bucket[digest & (s->room - 1)];

	while (*link != 0 && object(s, *link)->digest != digest)
		link = &object(s, *link)->next;
	return (link);
}

static void
unlist(struct shadow *s, uint32_t at)
{
	const struct shadow_object *o = object(s, at);

	if (o->newer != 0)
		object(s, o->newer)->older = o->older;
	else
		s->head = o->older;
	if (o->older != 0)
		object(s, o->older)->newer = o->newer;
	else
		s->tail = o->newer;
}

static void
list_newest(struct shadow *s, uint32_t at)
{
	struct shadow_object *o = object(s, at);

	o->newer = 0;
	o->older = s->head;
	if (s->head != 0)
		object(s, s->head)->newer = at;
	else
		s->tail = at;
	s->head = at;
}

static void
evict_oldest(struct shadow *s)
{
	uint32_t at = s->tail, *link;
	struct shadow_object *o = object(s, at);

	link = find(s, o->digest);
	assert(*link == at);
	*link = o->next;
	unlist(s, at);
	o->next = s->free;
	s->free = at;
	s->used--;
	s->bytes = s->used == 0 ? 0 : s->bytes - (double)o->bytes;
}

static void
make_room(struct shadow *s, double bytes)
{

	while (s->used > 0 && s->bytes > bytes)
		evict_oldest(s);
}

int
SHADOW_Ask(struct shadow *s, uint64_t digest, double bytes, int admit,
    double capacity)
{
	struct shadow_object *o;
	uint32_t at;

	shadow_assert(s);
	s->requests++;
	at = *find(s, digest);
	if (at != 0) {
		unlist(s, at);
		list_newest(s, at);
		s->hits++;
		return (1);
	}
	if (!admit)
		return (0);
	make_room(s, capacity - bytes);
	if (bytes > capacity)
		return (0);
	if (s->used == s->room)
		evict_oldest(s);
	at = s->free;
	o = object(s, at);
	s->free = o->next;
	s->used++;
	o->digest = digest;
	o->bytes = (float)bytes;
	s->bytes += (double)o->bytes;
	o->next = 0;
	*find(s, digest) = at;
	list_newest(s, at);
	return (0);
}
