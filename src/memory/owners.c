/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The owners of owners.h: an array of entries.  An entry whose tenant has gone
 * waits in a queue.  It is used again when it has no objects.
 */

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "owners.h"

#define STEPS		8	/* of the queue, for one new owner */

struct owner {
	_Atomic uint32_t	serial, begun, objects, group;
	_Atomic uint64_t	bytes, transit, reservation, limit;
	_Atomic double		weight;
	_Atomic uint64_t	evicted_own, evicted_others;
	_Atomic uint64_t	vote;		/* see voted() */
	uint32_t		next;		/* in the queue; 0: the last */
};

struct owners {
	uint32_t		room, used;	/* entries; with OWN_OTHER */
	uint32_t		first, last;	/* of the queue; 0: empty */
	_Atomic uint64_t	transit;	/* bytes of all owners */
	struct owner		owner[];
};

static struct owner *
owner(struct owners *os, uint32_t n)
{

	assert(os != NULL && n < os->room);
	return (&os->owner[n]);
}

static const struct owner *
owner_of(const struct owners *os, uint32_t n)
{

	assert(os != NULL && n < os->room);
	return (&os->owner[n]);
}

static void
owner_begin(struct owner *o)
{

	atomic_store(&o->weight, 1);
	atomic_store(&o->reservation, 0);
	atomic_store(&o->limit, 0);
	atomic_store(&o->group, OWN_NONE);
	atomic_store(&o->evicted_own, 0);
	atomic_store(&o->evicted_others, 0);
	atomic_store(&o->vote, 0);
	atomic_fetch_add(&o->begun, 1);
	atomic_fetch_add(&o->serial, 1);
}

struct owners *
OWN_New(uint32_t max)
{
	struct owners *os;

	assert(max < UINT32_MAX - 1);
	os = calloc(1, sizeof *os + (max + (size_t)1) * sizeof *os->owner);
	if (os == NULL)
		return (NULL);
	os->room = max + 1;
	os->used = 1;
	owner_begin(&os->owner[OWN_OTHER]);
	return (os);
}

void
OWN_Destroy(struct owners **osp)
{

	free(*osp);
	*osp = NULL;
}

uint32_t
OWN_Room(const struct owners *os)
{

	return (os->room);
}

static void
queue(struct owners *os, uint32_t n)
{

	os->owner[n].next = 0;
	if (os->first == 0)
		os->first = n;
	else
		os->owner[os->last].next = n;
	os->last = n;
}

/* Take an entry without objects from the queue.  Returns 0 if it found none. */
static uint32_t
take(struct owners *os)
{
	uint32_t n;
	unsigned step;

	for (step = 0; step < STEPS && os->first != 0; step++) {
		n = os->first;
		os->first = os->owner[n].next;
		if (atomic_load(&os->owner[n].objects) == 0)
			return (n);
		queue(os, n);
	}
	return (0);
}

uint32_t
OWN_Begin(struct owners *os)
{
	uint32_t n;

	n = take(os);
	if (n == 0 && os->used < os->room)
		n = os->used++;
	if (n == 0)
		return (OWN_OTHER);
	owner_begin(&os->owner[n]);
	return (n);
}

void
OWN_End(struct owners *os, uint32_t n)
{

	if (n == OWN_OTHER)
		return;
	/* The entry of its group may be given to another owner before its last
	 * object is freed */
	atomic_store(&owner(os, n)->group, OWN_NONE);
	atomic_fetch_add(&owner(os, n)->serial, 1);
	queue(os, n);
}

void
OWN_Set(struct owners *os, uint32_t n, double weight, uint64_t reservation,
    uint64_t limit, uint32_t group)
{
	struct owner *o = owner(os, n);

	assert(weight >= .001 && weight <= 1024);
	if (n == OWN_OTHER)
		return;
	if (group == OWN_OTHER)		/* there was no entry for the group */
		group = OWN_NONE;
	assert(group == OWN_NONE || (group < os->room && group != n));
	atomic_store(&o->weight, weight);
	atomic_store(&o->reservation, reservation);
	atomic_store(&o->limit, limit);
	atomic_store(&o->group, group);
	atomic_fetch_add(&o->serial, 1);
}

uint32_t
OWN_Serial(const struct owners *os, uint32_t n)
{

	return (atomic_load(&owner_of(os, n)->serial));
}

void
OWN_Settings(const struct owners *os, uint32_t n, struct own_settings *s)
{
	const struct owner *o = owner_of(os, n);

	s->weight = atomic_load(&o->weight);
	s->reservation = atomic_load(&o->reservation);
	s->limit = atomic_load(&o->limit);
	s->group = atomic_load(&o->group);
}

uint32_t
OWN_Begun(const struct owners *os, uint32_t n)
{

	return (atomic_load(&owner_of(os, n)->begun));
}

void
OWN_Ref(struct owners *os, uint32_t n)
{

	atomic_fetch_add(&owner(os, n)->objects, 1);
}

void
OWN_Unref(struct owners *os, uint32_t n)
{

	atomic_fetch_sub(&owner(os, n)->objects, 1);
}

void
OWN_Add(struct owners *os, uint32_t n, uint64_t bytes)
{

	atomic_fetch_add(&owner(os, n)->bytes, bytes);
}

void
OWN_Remove(struct owners *os, uint32_t n, uint64_t bytes)
{

	atomic_fetch_sub(&owner(os, n)->bytes, bytes);
}

uint64_t
OWN_Bytes(const struct owners *os, uint32_t n)
{

	return (atomic_load(&owner_of(os, n)->bytes));
}

/*
 * Return a vote after one more eviction for this taker.  The upper half of a
 * vote is `mostly`, the lower half its lead.  The same taker adds 1 to the
 * lead, another one subtracts 1.  At lead 0 the taker becomes `mostly` (R.
 * Boyer and J. S. Moore, "MJRTY", 1991).
 */
static uint64_t
voted(uint64_t vote, uint32_t taker)
{
	uint32_t lead = (uint32_t)vote;

	if (lead == 0)
		return ((uint64_t)taker << 32 | 1);
	if (vote >> 32 != taker)
		return (vote - 1);
	return (lead < UINT32_MAX ? vote + 1 : vote);
}

void
OWN_Evicted(struct owners *os, uint32_t n, uint32_t taker)
{
	struct owner *o = owner(os, n);
	uint64_t vote;

	if (taker == n) {
		atomic_fetch_add(&o->evicted_own, 1);
		return;
	}
	atomic_fetch_add(&o->evicted_others, 1);
	vote = atomic_load(&o->vote);
	while (!atomic_compare_exchange_weak(&o->vote, &vote, voted(vote,
	    taker)))
		continue;
}

void
OWN_Evictions(const struct owners *os, uint32_t n, struct own_evictions *e)
{
	const struct owner *o = owner_of(os, n);

	e->own = atomic_load(&o->evicted_own);
	e->others = atomic_load(&o->evicted_others);
	e->mostly = (uint32_t)(atomic_load(&o->vote) >> 32);
}

int
OWN_Transit(struct owners *os, uint32_t n, uint64_t bytes, uint64_t limit)
{
	struct owner *o = owner(os, n);
	uint64_t all;

	if (bytes > limit)
		return (0);
	all = atomic_fetch_add(&os->transit, bytes);
	if (all + bytes > limit || atomic_load(&o->transit) > limit - all) {
		atomic_fetch_sub(&os->transit, bytes);
		return (0);
	}
	atomic_fetch_add(&o->transit, bytes);
	return (1);
}

void
OWN_Transited(struct owners *os, uint32_t n, uint64_t bytes)
{

	atomic_fetch_sub(&owner(os, n)->transit, bytes);
	atomic_fetch_sub(&os->transit, bytes);
}

uint64_t
OWN_InTransit(const struct owners *os, uint32_t n)
{

	return (atomic_load(&owner_of(os, n)->transit));
}

uint64_t
OWN_AllInTransit(const struct owners *os)
{

	return (atomic_load(&os->transit));
}
