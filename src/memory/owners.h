/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Whose are the objects in a cache?  An owner is a tenant or a group of tenants.
 *
 * An object may stay in the cache for longer than its tenant stays in the table
 * of tenants.  So an owner has an entry of its own, with a number that fits into
 * an object.  The entry stays until its tenant has gone and its last object has,
 * too.  If there is no free entry, a new tenant's objects belong to OWN_OTHER,
 * whose settings never change.
 *
 * OWN_Begin(), OWN_End() and OWN_Set() must be serialised by the caller.  All
 * other functions need no lock.
 */

#ifndef MEMORY_OWNERS_H_INCLUDED
#define MEMORY_OWNERS_H_INCLUDED

#include <stdint.h>

#define OWN_OTHER	0U		/* always there */
#define OWN_NONE	UINT32_MAX	/* no group */

struct owners;

struct own_settings {
	double			weight;		/* 0.001 to 1024 */
	uint64_t		reservation, limit;	/* bytes; 0: none */
	uint32_t		group;		/* an owner, or OWN_NONE */
};

/* Make room for so many owners, without OWN_OTHER.  NULL: no memory. */
struct owners *OWN_New(uint32_t max);
void OWN_Destroy(struct owners **);
uint32_t OWN_Room(const struct owners *);	/* numbers are less than this */

/* Begin an owner, of weight 1.  Return its number, or OWN_OTHER. */
uint32_t OWN_Begin(struct owners *);
/* Its tenant has gone. */
void OWN_End(struct owners *, uint32_t);
void OWN_Set(struct owners *, uint32_t, double weight, uint64_t reservation,
    uint64_t limit, uint32_t group);

/* Return a number that changes when the settings change. */
uint32_t OWN_Serial(const struct owners *, uint32_t);
/* Get the settings.  If they change meanwhile, the serial does after that. */
void OWN_Settings(const struct owners *, uint32_t, struct own_settings *);

/* How many owners have begun in this entry? */
uint32_t OWN_Begun(const struct owners *, uint32_t);

/* An owner has an object more, which may be on its way, or one fewer. */
void OWN_Ref(struct owners *, uint32_t);
void OWN_Unref(struct owners *, uint32_t);
/* An object of so many bytes comes into a cache, or leaves it. */
void OWN_Add(struct owners *, uint32_t, uint64_t bytes);
void OWN_Remove(struct owners *, uint32_t, uint64_t bytes);
uint64_t OWN_Bytes(const struct owners *, uint32_t);

/* Objects of an owner that made room */
struct own_evictions {
	uint64_t		own, others;	/* objects: for its own fetches;
						 * for those of others */
	uint32_t		mostly;		/* one of these others: if one
						 * was more than half of them,
						 * that one */
};
void OWN_Evicted(struct owners *, uint32_t, uint32_t taker);
void OWN_Evictions(const struct owners *, uint32_t, struct own_evictions *);

/*
 * An object of so many bytes is only in transit: it is not admitted, and leaves
 * when its readers have it.  limit: bytes of all such objects.  Returns 1, or 0
 * if there is no room.
 *
 * An owner has room while it has no more bytes in transit than are free.  So one
 * owner leaves half of the limit to others, two leave a third (A. K. Choudhury
 * and E. L. Hahne, "Dynamic Queue Length Thresholds", IEEE/ACM ToN 6, 1998).
 */
int OWN_Transit(struct owners *, uint32_t, uint64_t bytes, uint64_t limit);
void OWN_Transited(struct owners *, uint32_t, uint64_t bytes);
uint64_t OWN_InTransit(const struct owners *, uint32_t);
uint64_t OWN_AllInTransit(const struct owners *);

#endif
