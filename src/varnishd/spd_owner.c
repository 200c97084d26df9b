/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Whose is an object in the cache, and how large is it?
 *
 * There is one owner for each tenant (memory/owners.h).  An owner that has
 * objects outlives its tenant, so there is room for twice as many owners as
 * tenants.  If that is not enough, also after sandpaper_tenants_max has been
 * raised, a new tenant's objects belong to (other).
 *
 * oc->sandpaper[0] is the owner.  oc->sandpaper[1] is the size in memory, in
 * UNITs, with three flags.  The thread that fetches the object writes both before
 * others use them.  After that, who has the lock of its LRU list writes [1].
 */

#include "config.h"

#include <stdlib.h>

#include "spd.h"

#define UNIT		64U		/* bytes */
#define OBJECT		1024U		/* bytes: of what an object needs beside
					 * its headers and body */
#define LISTED		(1U << 31)	/* it is on its owner's list */
#define TRANSIT		(1U << 30)	/* it is in transit (hook_cache.c) */
#define PASSED		(1U << 29)	/* it was not admitted, and is passed */
#define UNITS_MAX	(PASSED - 1)	/* 32 GiB */

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

/* Return the size in memory, bytes, or 0 if it is not known. */
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

/* Set the size in memory, bytes.  That of an object in transit stays. */
void
spd_oc_set_bytes(struct objcore *oc, uint64_t bytes)
{
	uint32_t size = size_of(oc);

	if (!(size & TRANSIT))
		set_size(oc, (size & (LISTED | PASSED)) | units(bytes));
}

/* Note that admission passes the object. */
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

/* An object of so many bytes of memory is in transit from now on.  limit: bytes
 * of all such objects.  Returns 0 if there is no room. */
int
spd_oc_transit(struct objcore *oc, uint64_t bytes, uint64_t limit)
{
	uint32_t u = units(bytes);

	AZ(size_of(oc) & TRANSIT);
	if (!OWN_Transit(owners, oc->sandpaper[0], u * (uint64_t)UNIT, limit))
		return (0);
	set_size(oc, u | TRANSIT);
	return (1);
}

/* If the object is in transit, its memory is free now, or was not needed. */
void
spd_oc_leave_transit(struct objcore *oc)
{

	if (!(size_of(oc) & TRANSIT))
		return;
	OWN_Transited(owners, oc->sandpaper[0], spd_oc_bytes(oc));
	set_size(oc, 0);
}

/* The object ends. */
void
spd_oc_free(struct objcore *oc)
{

	spd_oc_leave_transit(oc);
	if (oc->sandpaper[0] != OWN_OTHER)
		OWN_Unref(owners, oc->sandpaper[0]);
}
