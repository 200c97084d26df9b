/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The client-side NIC: what is released but not yet sent, and how fast it
 * really is.
 *
 * A response that fits into a socket buffer never blocks its worker, so
 * without this the NIC would be a FIFO behind the releaser (facts: "The
 * NIC's backlog").  B counts the wire bytes that were released: an estimate
 * at release, corrected at write and at completion, taken back on reset or
 * for a reader that does not read; one request's share is capped at
 * NIC_SHARE.  B drains at 0.98 T.  While B is more than NIC_BACKLOG of
 * link time, the NIC is closed.
 *
 * T is learned, every NIC_EPOCH, from the bytes that left behind the qdisc:
 *  - a standing backlog: T moves halfway to what was sent;
 *  - closed for half of the epoch and no backlog: every fourth epoch T is
 *    probed at 1.125;
 *  - else T stays.
 * It never exceeds the bound.  While T is 0 nothing is ever closed.
 *
 * The caller serialises.  No clock, no I/O, integers.
 */

#ifndef NIC_H_INCLUDED
#define NIC_H_INCLUDED

#include <stdint.h>

#define NIC_BACKLOG	2000000		/* ns of T */
#define NIC_SHARE	(256 * 1024)	/* bytes, one request in B */
#define NIC_EPOCH	50000000	/* ns */
#define NIC_RTT_EXCESS	6000000		/* ns over the minimum: a standing queue */

struct nic {
	unsigned		magic;
#define NIC_MAGIC		0x21c0ffee
	uint64_t		rate;		/* T, bits/s, 0: not known */
	uint64_t		bound;		/* bits/s, 0: none */
	int64_t			backlog;	/* B, bytes x 8 x 1e9 fixed point is
						 * up to the implementation: use
						 * the functions */
	int64_t			drained;	/* ns, when B was last drained */
	int64_t			closed_since;	/* ns, or 0 */
	int64_t			closed_ns;	/* total, closed */
	uint64_t		remainder;
	/* of the running epoch */
	int64_t			epoch;		/* ns, its start, 0: none */
	uint64_t		tx_bytes;
	int64_t			epoch_closed;	/* closed_ns at its start */
	unsigned		held_epochs;
	uint64_t		learned;	/* times T changed */
	int			probing;
	uint64_t		before_probe;
};

void NIC_Init(struct nic *, uint64_t rate, uint64_t bound, int64_t now);
/* A new upper bound (param), or a rate remembered from before a restart */
void NIC_SetBound(struct nic *, uint64_t bound);
void NIC_SetRate(struct nic *, uint64_t rate);

/*
 * A request is released that is expected to send `bytes` on the wire.
 * Returns what was counted (<= NIC_SHARE): the caller keeps it, and hands
 * it to NIC_Correct() with what became of it.
 */
uint32_t NIC_Release(struct nic *, uint32_t bytes, int64_t now);
/* counted was not right, it is `actual` (capped the same way); returns the
 * new count.  actual 0: taken back. */
uint32_t NIC_Correct(struct nic *, uint32_t counted, uint64_t actual,
    int64_t now);

/* Is it closed?  *when: the time it opens, ns */
int NIC_Closed(struct nic *, int64_t now, int64_t *when);
int64_t NIC_Backlog(struct nic *, int64_t now);		/* B, bytes */
int64_t NIC_ClosedTime(struct nic *, int64_t now);	/* ns, total */

/*
 * What the host saw since the start: bytes sent by the interface behind
 * the qdisc, whether a queue stands now (qdisc backlog, or smoothed RTT
 * over its minimum by NIC_RTT_EXCESS).  Call it every NIC_EPOCH; sooner
 * calls are ignored.  1: T changed.
 */
int NIC_Learn(struct nic *, uint64_t tx_bytes, int standing, int64_t now);

#endif
