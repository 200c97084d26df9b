/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Requests on their way from the workers to the tuner: a ring that many threads
 * write and one reads.  It needs no lock.  If it is full, a request is dropped,
 * and counted.
 *
 * Each place has a turn, which says whose it is (D. Vyukov, "Bounded MPMC queue",
 * 2010).  A writer takes the next place with one atomic operation.
 */

#ifndef ADMISSION_RING_H_INCLUDED
#define ADMISSION_RING_H_INCLUDED

#include <stdatomic.h>
#include <stdint.h>

struct ring_request {
	uint64_t		digest;
	uint64_t		bytes;
	uint32_t		tenant;
};

struct ring_place {
	_Atomic uint64_t	turn;
	struct ring_request	request;
};

struct ring {
	unsigned		magic;
#define RING_MAGIC		0x51a6e000
	uint64_t		room;		/* 2^n */
	struct ring_place	*place;
	_Atomic uint64_t	dropped;
	_Alignas(64) _Atomic uint64_t	put;	/* of the writers */
	_Alignas(64) uint64_t	got;		/* the reader's */
};

/* room: requests, a power of 2.  Returns 0, or -1 if there is no memory. */
int RING_Init(struct ring *, uint64_t room);
void RING_Fini(struct ring *);

/* Add a request.  Returns -1 if the ring is full.  Any thread may call this. */
int RING_Put(struct ring *, const struct ring_request *);
/* Take the oldest request.  Returns 0 if there is none.  One thread at a time. */
int RING_Get(struct ring *, struct ring_request *);
/* Return how many requests were dropped since the last call. */
uint64_t RING_Dropped(struct ring *);

#endif
