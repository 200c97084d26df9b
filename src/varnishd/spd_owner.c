/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The owner and the size of an object in the cache.
 *
 * Owners outlive their tenants (memory/owners.h).  So the table of owners has
 * twice sandpaper_tenants_max entries.  It never grows, also if that parameter
 * is raised.
 *
 * oc->sandpaper[0] is the number of the owner.  It is written once, when
 * the fetch begins, before the object can be found.
 *
 * oc->sandpaper[1] is the size in memory, in UNITs, with flags.  The thread
 * that fetches writes it until the object is on an LRU list.  Later the holder
 * of that list's lock does.  Others read it at any time.
 */

#include "config.h"

#include <stdlib.h>

#include "spd.h"

#define UNIT		64U		/* bytes */
#define OBJECT		1024U		/* bytes of an object without its
					 * headers and body */
#define LISTED		(1U << 31)	/* on its owner's list */
#define TRANSIT		(1U << 30)	/* in transit, see hook_cache.c */
#define PASSED		(1U << 29)	/* passed by admission, see there */
#define UNITS_MAX	(PASSED - 1)	/* 32 GiB: a larger object counts as so
					 * large */

static struct owners *owners;

/* Return the owners.  The first call makes them, before there are other
 * threads. */
struct owners *
spd_owners(void)
{

	if (owners == NULL)
		owners = OWN_New(2 * cache_param->sandpaper_tenants_max);
	AN(owners);
	return (owners);
}

uint32_t
spd_oc_owner(const struct objcore *oc)
{

	return (oc->sandpaper[0]);
}

/* Set the owner, once. */
void
spd_oc_set_owner(struct objcore *oc, uint32_t owner)
{

	AZ(oc->sandpaper[0]);		/* OWN_OTHER */
	if (owner != OWN_OTHER)
		OWN_Ref(owners, owner);
	oc->sandpaper[0] = owner;
}

static uint32_t
size_of(const struct objcore *oc)
{

	return (__atomic_load_n(&oc->sandpaper[1], __ATOMIC_RELAXED));
}

static void
set_size(struct objcore *oc, uint32_t size)
{

	__atomic_store_n(&oc->sandpaper[1], size, __ATOMIC_RELAXED);
}

/* Return the size in memory, bytes.  0: it is not known yet, or the object was
 * evicted. */
uint64_t
spd_oc_bytes(const struct objcore *oc)
{

	return ((size_of(oc) & UNITS_MAX) * (uint64_t)UNIT);
}

/* Return the size in memory of an object with so many bytes of headers and
 * body. */
uint64_t
spd_oc_size(uint64_t bytes)
{

	return (bytes + OBJECT);
}

static uint32_t
units(uint64_t bytes)
{
	uint64_t u = bytes / UNIT + (bytes % UNIT > 0);

	return (u < UNITS_MAX ? (uint32_t)u : UNITS_MAX);
}

/* Set the size in memory, bytes.  While an object is in transit, its size does
 * not change. */
void
spd_oc_set_bytes(struct objcore *oc, uint64_t bytes)
{
	uint32_t size = size_of(oc);

	if (!(size & TRANSIT))
		set_size(oc, (size & (LISTED | PASSED)) | units(bytes));
}

/* Set the flag: admission passes the object. */
void
spd_oc_pass(struct objcore *oc)
{

	set_size(oc, size_of(oc) | PASSED);
}

int
spd_oc_passed(const struct objcore *oc)
{

	return ((size_of(oc) & PASSED) != 0);
}

int
spd_oc_listed(const struct objcore *oc)
{

	return ((size_of(oc) & LISTED) != 0);
}

void
spd_oc_set_listed(struct objcore *oc, int listed)
{

	set_size(oc, (size_of(oc) & ~LISTED) | (listed ? LISTED : 0));
}

/* An object of so many bytes of memory begins to be in transit.  limit: bytes
 * in transit of all objects.  Returns 0 if there is no room. */
int
spd_oc_transit(struct objcore *oc, uint64_t bytes, uint64_t limit)
{
	uint32_t u = units(bytes);

	AZ(size_of(oc) & TRANSIT);
	if (u == UNITS_MAX)
		return (0);
	if (!OWN_Transit(owners, oc->sandpaper[0], u * (uint64_t)UNIT, limit))
		return (0);
	set_size(oc, u | TRANSIT);
	return (1);
}

int
spd_oc_in_transit(const struct objcore *oc)
{

	return ((size_of(oc) & TRANSIT) != 0);
}

/* Forget what admission has decided for an object. */
void
spd_oc_forget(struct objcore *oc)
{

	if (spd_oc_in_transit(oc))
		OWN_Transited(owners, oc->sandpaper[0], spd_oc_bytes(oc));
	set_size(oc, 0);
}

/* The objcore is freed. */
void
spd_oc_free(struct objcore *oc)
{

	spd_oc_forget(oc);
	if (oc->sandpaper[0] != OWN_OTHER)
		OWN_Unref(owners, oc->sandpaper[0]);
}
