/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The client-side NIC: what is released but not yet sent, and how fast it
 * really is.
 *
 * A response that fits into a socket buffer never blocks its worker, so
 * without this the NIC would be a FIFO behind the releaser (facts: "The
 * NIC's backlog").  B counts the wire bytes that were released: an estimate
 * at release, corrected at completion, taken back on reset or for a reader
 * that does not read; one request's share is capped at NIC_SHARE.  B drains
 * at 0.98 T.  While B is more than NIC_BACKLOG of link time, the NIC is
 * closed, unless one tenant has it alone: to hold that one would help nobody.
 *
 * T is learned, every NIC_EPOCH, from the bytes that left behind the qdisc.
 * The qdisc's backlog is long if it takes NIC_STANDS at the rate of what was
 * sent.  It stands if it is also more than 5/4 of B.
 *  - a standing backlog: if it stood at the epoch's start too, T moves halfway
 *    to what was sent, and after two such epochs all of the way, to the better
 *    of them.  If twice T was sent, T moves halfway up.  What B lost in
 *    excess of that is put back, and B is NIC_STANDS of it at least, so
 *    that the queue is waited for;
 *  - a standing backlog that B does not explain though T is what was sent:
 *    bytes leave that B does not count (another program's, or headers of
 *    another size), and T is lowered by a 16th every fourth epoch, to half
 *    of what was sent; if that does not help it is no queue of ours, T goes
 *    back and both rules are off for 30 s;
 *  - closed for a quarter of the epoch and no long backlog: every fourth epoch T is
 *    probed at 1.125 for two (twice the distance after a probe that failed,
 *    at once after one that did not); T is then scaled by what left in the
 *    second one over what left before the probe.  Costs go by the T before;
 *  - else T stays.
 * It never exceeds the bound.  While T is 0 nothing is ever closed; a
 * backlog that stands for four epochs then gives the first T.
 *
 * The caller serialises.  No clock, no I/O, integers.
 */

#ifndef NIC_H_INCLUDED
#define NIC_H_INCLUDED

#include <stdint.h>

#define NIC_BACKLOG	2000000		/* ns of T */
#define NIC_ALONE	12000000	/* ns of T: most of B when one tenant
					 * has it alone */
#define NIC_SHARE	(256 * 1024)	/* bytes, one request in B */
#define NIC_EPOCH	50000000	/* ns */
#define NIC_STANDS	6000000		/* ns of T: a standing queue */
#define NIC_RATE_MIN	1000000		/* bits/s: T is not learned below it */

struct nic {
	unsigned		magic;
#define NIC_MAGIC		0x21c0ffee
	uint64_t		rate;		/* T, bits/s, 0: not known */
	uint64_t		bound;		/* bits/s, 0: none */
	int64_t			backlog;	/* B, bytes, not yet drained */
	uint64_t		remainder;	/* of B's drain, < NIC_UNIT */
	int64_t			drained;	/* ns, last drain of B */
	int			alone;		/* never closed */
	int64_t			closed_ns;	/* total, closed */
	/* of the running epoch */
	int64_t			epoch;		/* ns, its start, 0: none */
	uint64_t		tx_bytes;	/* at its start */
	int64_t			epoch_closed;	/* closed_ns at its start */
	uint64_t		epoch_drained;	/* bytes that B lost in it */
	/* learning */
	uint64_t		sent;		/* bits/s, of the last standing
						 * epoch */
	unsigned		stood;		/* one did at the last looks,
						 * so many, at most 2 */
	unsigned		standing;	/* epochs that one stood and B
						 * does not explain it */
	unsigned		held;		/* held epochs since a probe */
	int64_t			held_sent;	/* bits/s, their mean */
	unsigned		wait;		/* held epochs to the next */
	unsigned		probing;	/* which epoch of a probe, 0: none */
	uint64_t		before_probe;	/* T, bits/s */
	int64_t			not_ours;	/* ns, until then T is not
						 * lowered below sent */
	uint64_t		learned;	/* times T changed */
};

/* rate, bound: bits/s.  A rate of 0 is taken from the bound, if any. */
void NIC_Init(struct nic *, uint64_t rate, uint64_t bound, int64_t now);
/* A new upper bound (param), or a rate remembered from before a restart */
void NIC_SetBound(struct nic *, uint64_t bound);
void NIC_SetRate(struct nic *, uint64_t rate);

/* Nothing can be learned now: T stays, and a probe ends */
void NIC_Stop(struct nic *);

/* T, bits/s, 0: not known.  For costs: that at which B drains, 0.98 T rounded
 * up, since nobody can have more */
uint64_t NIC_Rate(const struct nic *);
uint64_t NIC_DrainRate(const struct nic *);

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

/* One tenant has it alone from now on, or no longer */
void NIC_SetAlone(struct nic *, int alone, int64_t now);
/* Is B above its limit? */
int NIC_Busy(struct nic *, int64_t now);
/* And does nobody have it alone?  *when (if not NULL): the time it opens, ns;
 * now if open */
int NIC_Closed(struct nic *, int64_t now, int64_t *when);
int64_t NIC_Backlog(struct nic *, int64_t now);		/* B, bytes */
int64_t NIC_ClosedTime(struct nic *, int64_t now);	/* ns, total */

/*
 * What the host saw: bytes sent by the interface behind the qdisc, since the
 * start, and bytes that are queued before it now.
 * Call it every NIC_EPOCH; sooner calls are ignored, an epoch of more than
 * four starts anew.  1: T changed.
 */
int NIC_Learn(struct nic *, uint64_t tx_bytes, uint64_t queued, int64_t now);

#endif
