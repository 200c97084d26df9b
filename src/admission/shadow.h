/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * A miniature LRU cache, which has the names and sizes of objects and no bodies:
 * which requests would be hits if another c were in force?
 *
 * It sees 1 in 2^shift objects and all requests for these (sample.h), and has
 * 2^-shift of the bytes of the real cache.  An object that is larger than the
 * miniature empties it, and does not enter: in the real cache, too, it pushes
 * many objects out.
 *
 * The memory is allocated once.  No clock, no lock.  The caller serialises.
 */

#ifndef ADMISSION_SHADOW_H_INCLUDED
#define ADMISSION_SHADOW_H_INCLUDED

#include <stdint.h>

struct shadow_object;

struct shadow {
	unsigned		magic;
#define SHADOW_MAGIC		0x5bad0000
	uint32_t		room, used;	/* objects; room: 2^n */
	uint32_t		free;		/* index + 1, or 0 */
	uint32_t		head, tail;	/* index + 1, or 0; head: newest */
	uint32_t		*bucket;	/* index + 1, or 0 */
	struct shadow_object	*object;
	double			bytes;		/* of the objects in it */
	uint64_t		requests, hits;
};

/* Allocate a shadow.  objects: for how many there is room, a power of 2; more
 * push the oldest one out.  Returns 0, or -1 if there is no memory. */
int SHADOW_Init(struct shadow *, uint32_t objects);
void SHADOW_Fini(struct shadow *);

/*
 * A client asks for an object of so many bytes.  A miss enters if admit is not
 * 0.  capacity: bytes; it may change.  Returns 1 if it is a hit.
 */
int SHADOW_Ask(struct shadow *, uint64_t digest, double bytes, int admit,
    double capacity);

#endif
