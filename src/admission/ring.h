/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The ring takes requests from the workers to the tuner.  Many threads write
 * it, and one thread reads it, without a lock.  If it is full, the new request
 * is dropped and counted.
 *
 * Each place has a sequence number, which says whether the place is to be
 * written or read next (D. Vyukov, "Bounded MPMC queue", 2010).  A writer
 * takes the next place with one atomic operation.
 */

#ifndef ADMISSION_RING_H_INCLUDED
#define ADMISSION_RING_H_INCLUDED

#include <stdatomic.h>
#include <stdint.h>

struct ring_request {
	uint64_t		digest;
	uint64_t		bytes;
	uint32_t		owner;		/* of the object, see
						 * memory/owners.h */
};

struct ring_place {
	_Atomic uint64_t	sequence;
	struct ring_request	request;
};

struct ring {
	unsigned		magic;
#define RING_MAGIC		0x51a6e000
	uint64_t		room;		/* places, 2^n */
	struct ring_place	*place;
	_Alignas(64) _Atomic uint64_t	dropped;
	_Alignas(64) _Atomic uint64_t	put;	/* next to write */
	_Alignas(64) uint64_t	got;		/* next to read */
};

/* room: places, a power of 2.  Returns 0, or -1 if there is no memory. */
int RING_Init(struct ring *, uint64_t room);
void RING_Fini(struct ring *);

/* Add a request.  Returns -1 if the ring is full.  Any thread may call this. */
int RING_Put(struct ring *, const struct ring_request *);
/* Take the oldest request.  Returns 0 if there is none.  Only one thread may
 * call this. */
int RING_Get(struct ring *, struct ring_request *);
/* Return how many requests were dropped since the last call. */
uint64_t RING_Dropped(struct ring *);

#endif
