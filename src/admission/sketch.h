/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The sketch counts how often each object was a miss lately.  It is a count-min
 * sketch (Cormode and Muthukrishnan, J. Algorithms 55, 2005) of two rows.
 *
 * A count is too high if other objects have the same counters.  If n threads
 * count one object at the same time, up to n - 1 misses are lost.  A count
 * stops at SKETCH_MOST.
 *
 * SKETCH_Age() halves all counters, so old misses count less (as in Einziger
 * and others, "TinyLFU", ACM TOS 13, 2017).
 *
 * Any thread may call SKETCH_Count() and SKETCH_Age().  There is no lock.
 */

#ifndef ADMISSION_SKETCH_H_INCLUDED
#define ADMISSION_SKETCH_H_INCLUDED

#include <stdatomic.h>
#include <stdint.h>

#define SKETCH_MOST	255U

struct sketch {
	unsigned		magic;
#define SKETCH_MAGIC		0x5ce7c400
	uint64_t		room;		/* counters of a row, 2^n */
	_Atomic uint8_t		*counter;	/* 2 x room */
};

/* room: counters of a row, a power of 2.  It should be at least the number of
 * objects that are missed between two calls of SKETCH_Age().  Returns 0, or -1
 * if there is no memory. */
int SKETCH_Init(struct sketch *, uint64_t room);
void SKETCH_Fini(struct sketch *);

/* Count a miss.  Returns the count with this miss: 1 to SKETCH_MOST.  The
 * digest must be uniform. */
unsigned SKETCH_Count(struct sketch *, uint64_t digest);
void SKETCH_Age(struct sketch *);

#endif
