/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * For which objects did clients ask in a window, how often, and how large are
 * these?
 *
 * The sample has 1 in 2^shift objects, and all requests for these: the objects
 * whose digest is below a bound (spatial sampling; Waldspurger and others,
 * "SHARDS", FAST 2015).  When the table is full, the bound is halved, and half
 * of the objects leave.
 *
 * A few large objects may have most of the bytes.  So from SAMPLE_LARGE on the
 * bound doubles with the size: of objects of 16 x SAMPLE_LARGE, say, it is 16
 * times as high.
 *
 * At the end of a window the rate of an object becomes
 *
 *	0.7 x its requests in the window + 0.3 x its rate before
 *
 * An object whose rate is below SAMPLE_LEAST leaves the sample.
 *
 * The memory is allocated once.  No clock, no lock.  The caller serialises.
 */

#ifndef ADMISSION_SAMPLE_H_INCLUDED
#define ADMISSION_SAMPLE_H_INCLUDED

#include <stddef.h>
#include <stdint.h>

#include "model.h"

#define SAMPLE_UNIT	64		/* bytes */
#define SAMPLE_LARGE	65536		/* bytes */
#define SAMPLE_LEAST	.1f		/* requests in a window */
#define SAMPLE_CELLS	16384		/* of one window, at most */

struct sample_object {
	uint64_t		digest;
	uint32_t		size;		/* SAMPLE_UNITs, rounded up */
	uint32_t		requests;	/* in this window */
	uint32_t		next;		/* index + 1, or 0 */
	uint64_t		last;		/* `now` at its last request */
	float			rate;		/* requests in a window */
	float			before;		/* requests before this window,
						 * smoothed as the rate */
};

struct sample {
	unsigned		magic;
#define SAMPLE_MAGIC		0x5a3b1e00
	unsigned		shift, least_shift;
	uint32_t		room, used;	/* objects; room: 2^n */
	uint32_t		free;		/* index + 1, or 0 */
	uint32_t		*bucket;	/* index + 1, or 0 */
	struct sample_object	*object;
	uint16_t		*cell;		/* of sample.c */
	uint64_t		now;		/* requests for all objects, not
						 * only for those in the sample:
						 * an estimate */
};

/* What the sample knows of an object, with the request just now */
struct sample_seen {
	float			f;		/* of model.h */
	double			reuse;		/* requests for all objects since
						 * its last one, or INFINITY */
};

/*
 * Allocate a sample of 1 in 2^shift objects, or fewer.  objects: for how many
 * there is room, a power of 2.  Returns 0, or -1 if there is no memory.
 */
int SAMPLE_Init(struct sample *, unsigned shift, uint32_t objects);
void SAMPLE_Fini(struct sample *);

/* The sample has 1 in 2^shift objects.  Return the shift for objects of this
 * size. */
static inline unsigned
SAMPLE_Shift(unsigned shift, uint64_t bytes)
{
	unsigned octaves = bytes < 2 * SAMPLE_LARGE ? 0 :
	    63U - (unsigned)__builtin_clzll(bytes / SAMPLE_LARGE);

	return (shift > octaves ? shift - octaves : 0);
}

/* Is this object in a sample of this shift?  The digest is uniform. */
static inline int
SAMPLE_Has(unsigned shift, uint64_t digest, uint64_t bytes)
{
	shift = SAMPLE_Shift(shift, bytes);
	return (shift == 0 || digest >> (64 - shift) == 0);
}

/* Count a request for an object of so many bytes, if the sample has it. */
struct sample_seen SAMPLE_Add(struct sample *, uint64_t digest,
    uint64_t bytes);

/*
 * End the window.  Writes at most SAMPLE_CELLS cells, of all objects, not only
 * of those in the sample.  Returns how many.
 */
size_t SAMPLE_End(struct sample *, struct adm_cell *);

#endif
