/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The owners of the objects in a cache.  Each tenant is an owner, and each
 * group of tenants.  A group has no objects.
 *
 * An object may outlive its tenant.  So it has the number of its owner, and no
 * pointer.  The owner's entry is free when its tenant has gone and its last
 * object is freed.  If no entry is free, the objects of a new tenant belong to
 * OWN_OTHER, whose settings never change.
 *
 * OWN_Begin(), OWN_End() and OWN_Set() must be serialised by the caller.  All
 * other functions need no lock.
 */

#ifndef MEMORY_OWNERS_H_INCLUDED
#define MEMORY_OWNERS_H_INCLUDED

#include <stdint.h>

#define OWN_OTHER	0U		/* always there */
#define OWN_NONE	UINT32_MAX	/* no owner: it is in no group */

struct owners;

struct own_settings {
	double			weight;		/* 0.001 to 1024 */
	uint64_t		reservation, limit;	/* bytes; 0: none */
	uint32_t		group;		/* an owner, or OWN_NONE */
};

/* Allocate so many owners, and OWN_OTHER.  NULL: no memory. */
struct owners *OWN_New(uint32_t max);
void OWN_Destroy(struct owners **);
uint32_t OWN_Room(const struct owners *);	/* all numbers are less */

/* Begin an owner, of weight 1.  Return its number, or OWN_OTHER if no entry is
 * free. */
uint32_t OWN_Begin(struct owners *);
/* The tenant of this owner has gone. */
void OWN_End(struct owners *, uint32_t);
void OWN_Set(struct owners *, uint32_t, double weight, uint64_t reservation,
    uint64_t limit, uint32_t group);

/* Return a number that changes when the settings change. */
uint32_t OWN_Serial(const struct owners *, uint32_t);
/* Get the settings.  Call OWN_Serial() before: if the settings change during
 * this call, the serial changes after it. */
void OWN_Settings(const struct owners *, uint32_t, struct own_settings *);
/* Return how often this entry was given to a new owner. */
uint32_t OWN_Begun(const struct owners *, uint32_t);

/* An object of this owner begins, with its fetch; or it is freed. */
void OWN_Ref(struct owners *, uint32_t);
void OWN_Unref(struct owners *, uint32_t);
/* An object of so many bytes comes to a list of the cache, or leaves it. */
void OWN_Add(struct owners *, uint32_t, uint64_t bytes);
void OWN_Remove(struct owners *, uint32_t, uint64_t bytes);
uint64_t OWN_Bytes(const struct owners *, uint32_t);

/* The evicted objects of an owner */
struct own_evictions {
	uint64_t		own;		/* for its own fetches */
	uint64_t		others;		/* for those of others */
	uint32_t		mostly;		/* the other owner with more
						 * than half of `others`; if
						 * there is none, any of them */
};
/* An object of this owner is evicted for a fetch of the taker. */
void OWN_Evicted(struct owners *, uint32_t, uint32_t taker);
void OWN_Evictions(const struct owners *, uint32_t, struct own_evictions *);

/*
 * An object of so many bytes is in transit: it is not admitted, and its memory
 * is freed when its last reader is done.  limit: bytes in transit of all
 * owners.  Returns 1, or 0 if there is no room.
 *
 * There is room if the owner's bytes in transit are at most the unused bytes
 * of the limit.  So one owner alone can have half of the limit, and two can
 * have a third each (A. K. Choudhury and E. L. Hahne, "Dynamic Queue Length
 * Thresholds", IEEE/ACM ToN 6, 1998).
 */
int OWN_Transit(struct owners *, uint32_t, uint64_t bytes, uint64_t limit);
/* Such an object is freed. */
void OWN_Transited(struct owners *, uint32_t, uint64_t bytes);
/* Return the bytes in transit of an owner, or of all. */
uint64_t OWN_InTransit(const struct owners *, uint32_t);
uint64_t OWN_AllInTransit(const struct owners *);

#endif
