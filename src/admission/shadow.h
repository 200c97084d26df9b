/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * A shadow is an LRU cache that has digests and sizes, and no bodies.  It says
 * how many hits a rule of admission would bring.
 *
 * A shadow sees 1 in 2^shift objects, and all requests for them (sample.h).
 * It has 2^-shift of the bytes of the real cache.  An object that is larger
 * than the shadow empties it, and is not added: in the real cache, too, such
 * an object evicts many others.
 *
 * The memory is allocated once.  No clock, no lock.  The caller serialises.
 */

#ifndef ADMISSION_SHADOW_H_INCLUDED
#define ADMISSION_SHADOW_H_INCLUDED

#include <stdint.h>

#include "chain.h"

struct shadow {
	unsigned		magic;
#define SHADOW_MAGIC		0x5bad0000
	struct chain		table[1];
	uint32_t		newest, oldest;	/* by last request: numbers in
						 * the table, or 0 */
	double			bytes;		/* of its objects */
	uint64_t		requests, hits;
};

/* objects: entries of the table, a power of 2.  If it is full, the object that
 * was not asked for longest is evicted.  Returns 0, or -1 if there is no
 * memory. */
int SHADOW_Init(struct shadow *, uint32_t objects);
void SHADOW_Fini(struct shadow *);

/*
 * A client asks for an object.  If it is a miss and admit is not 0, the object
 * is added.  bytes: its size, not scaled.  capacity: bytes of the shadow; it
 * may change.  Returns 1 if it is a hit.
 */
int SHADOW_Ask(struct shadow *, uint64_t digest, double bytes, int admit,
    double capacity);

#endif
