/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The sample says which objects clients asked for in a window, how often, and
 * how large they are.
 *
 * It has the objects whose digest is below a bound, and all requests for them
 * (spatial sampling; Waldspurger and others, "SHARDS", FAST 2015).  Of small
 * objects these are 1 in 2^shift.  If the table of objects is full, shift grows
 * by one.  Then the bound is halved, and the objects above it leave.
 *
 * A few large objects may have most of the bytes.  So from 2 x SAMPLE_LARGE on,
 * the bound doubles with each doubling of the size.
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

#include "chain.h"
#include "model.h"

#define SAMPLE_UNIT	64		/* bytes */
#define SAMPLE_LARGE	65536		/* bytes */
#define SAMPLE_LEAST	.1f		/* requests in a window */
#define SAMPLE_CELLS	16384		/* of one window, at most */

struct sample_object {
	struct chained		chained;
	uint32_t		size;		/* SAMPLE_UNITs, rounded up */
	uint32_t		requests;	/* in this window */
	uint64_t		last;		/* clock at its last request */
	float			rate;		/* requests in a window; 0: its
						 * first one has not ended */
};

struct sample {
	unsigned		magic;
#define SAMPLE_MAGIC		0x5a3b1e00
	unsigned		shift;		/* of small objects, now */
	unsigned		least_shift;
	struct chain		table[1];	/* of struct sample_object */
	uint16_t		*cell;		/* only for SAMPLE_End() */
	uint64_t		clock;		/* requests so far for all
						 * objects, an estimate */
};

/* What the sample knows of an object, with the last request */
struct sample_seen {
	float			f;		/* as in model.h */
	double			reuse;		/* requests for all since its
						 * last request; or INFINITY:
						 * it was not in the sample */
};

/*
 * shift: of small objects, at first.  objects: entries of the table, a power of
 * 2.  Returns 0, or -1 if there is no memory.
 */
int SAMPLE_Init(struct sample *, unsigned shift, uint32_t objects);
void SAMPLE_Fini(struct sample *);

/* Return the shift of objects of this size.  shift: of small objects. */
static inline unsigned
SAMPLE_Shift(unsigned shift, uint64_t bytes)
{
	unsigned octaves = bytes < 2 * SAMPLE_LARGE ? 0 :
	    63U - (unsigned)__builtin_clzll(bytes / SAMPLE_LARGE);

	return (shift > octaves ? shift - octaves : 0);
}

/* Does a sample with this shift have the object?  The digest must be uniform.
 */
static inline int
SAMPLE_Has(unsigned shift, uint64_t digest, uint64_t bytes)
{
	shift = SAMPLE_Shift(shift, bytes);
	return (shift == 0 || digest >> (64 - shift) == 0);
}

/* Count a request for an object of so many bytes.  If the sample does not have
 * the object, nothing is counted, f is 1, and reuse is INFINITY. */
struct sample_seen SAMPLE_Add(struct sample *, uint64_t digest,
    uint64_t bytes);

/*
 * End the window.  Writes at most SAMPLE_CELLS cells.  They are scaled up: they
 * stand for all objects.  Returns how many cells there are.
 */
size_t SAMPLE_End(struct sample *, struct adm_cell *);

#endif
