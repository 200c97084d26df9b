/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The backlog and the rate of net: what was released and is not sent yet (B),
 * and how fast the link is (T).  See doc/internals/algorithms.md.
 *
 * A response that fits into a socket buffer never blocks its worker.  So
 * without B, net would be a FIFO queue behind the releaser.  B counts wire
 * bytes:
 *  - a release adds the estimate, at most NIC_SHARE for one request;
 *  - the completion corrects it;
 *  - a reset, or a reader that does not read, takes the bytes back;
 *  - B drains at 0.98 T.
 * While B is more than NIC_BACKLOG of T, net is closed.  It is never closed for
 * a tenant that is alone on net: to hold that tenant helps no other tenant.
 *
 * T is at most the bound.  While T is 0, net is never closed.  NIC_Learn()
 * learns T from the bytes that the interface sent, behind the qdisc.
 *
 * The caller serialises.  No clock, no I/O, integers.
 */

#ifndef NIC_H_INCLUDED
#define NIC_H_INCLUDED

#include <stdint.h>

#define NIC_PERCENT	98		/* of T, at which B drains */
#define NIC_BACKLOG	2000000		/* ns of T */
#define NIC_ALONE	12000000	/* ns of T: most of B while one
					 * tenant is alone on net */
#define NIC_SHARE	(256 * 1024)	/* bytes of one request in B */
#define NIC_EPOCH	50000000	/* ns */
#define NIC_STANDS	6000000		/* ns of T: a long queue */
#define NIC_RATE_MIN	1000000		/* bits/s: least T that is learned */

struct nic {
	unsigned		magic;
#define NIC_MAGIC		0x21c0ffee
	uint64_t		rate;		/* T, bits/s, 0: not known */
	uint64_t		bound;		/* bits/s; 0: none */
	int64_t			backlog;	/* B, bytes */
	uint64_t		remainder;	/* of the drain, < NIC_UNIT */
	int64_t			drained;	/* ns, last drain of B */
	int			alone;		/* one tenant: never closed */
	int64_t			closed_ns;	/* ns, closed in all */
	/* Of this epoch */
	int64_t			epoch;		/* ns, its start; 0: none */
	uint64_t		tx_bytes;	/* at its start */
	int64_t			epoch_closed;	/* closed_ns at its start */
	uint64_t		epoch_drained;	/* bytes that B lost in it */
	/* Learning */
	uint64_t		sent;		/* bits/s, in the last epoch
						 * with a standing queue */
	unsigned		backlogged_epochs; /* last epochs in a row with
						 * a standing queue, <= 2 */
	unsigned		standing;	/* epochs with a queue that B
						 * does not explain */
	unsigned		held;		/* closed epochs since probe */
	int64_t			held_sent;	/* bits/s, mean of these */
	unsigned		wait;		/* closed epochs to the next */
	unsigned		probing;	/* epoch of a probe; 0: none */
	uint64_t		before_probe;	/* T, bits/s */
	int64_t			foreign_until;	/* ns; until then T is not
						 * lowered below sent */
	uint64_t		learned;	/* times T changed */
};

/* rate, bound: bits/s.  rate 0: unknown, so T is the bound, if there is one. */
void NIC_Init(struct nic *, uint64_t rate, uint64_t bound, int64_t now);
/* Set an upper bound (param; 0: none), or a rate known from before a restart */
void NIC_SetBound(struct nic *, uint64_t bound);
void NIC_SetRate(struct nic *, uint64_t rate);

/* Stop learning for now: T stays, and a probe ends */
void NIC_Stop(struct nic *);

/* Return T, bits/s; 0: not known.  NIC_DrainRate(), for costs: the rate at
 * which B drains, 0.98 T, rounded up. */
uint64_t NIC_Rate(const struct nic *);
uint64_t NIC_DrainRate(const struct nic *);

/*
 * Count a released request that should send `bytes` on the wire.  Returns what
 * was counted, at most NIC_SHARE.  The caller keeps that for NIC_Correct().
 */
uint32_t NIC_Release(struct nic *, uint32_t bytes, int64_t now);
/* Replace `counted` by `actual`, at most NIC_SHARE, 0: taken back.  Returns the
 * new count. */
uint32_t NIC_Correct(struct nic *, uint32_t counted, uint64_t actual,
    int64_t now);

/* Note whether one tenant is alone on net from now on */
void NIC_SetAlone(struct nic *, int alone, int64_t now);
/* Is B above NIC_BACKLOG of T? */
int NIC_Busy(struct nic *, int64_t now);
/* Is net busy, and no tenant alone on it?  *when, if not NULL: the time at
 * which net opens, ns; now if it is open. */
int NIC_Closed(struct nic *, int64_t now, int64_t *when);
int64_t NIC_Backlog(struct nic *, int64_t now);		/* B, bytes */
int64_t NIC_ClosedTime(struct nic *, int64_t now);	/* ns, total */

/*
 * Learn T.  tx_bytes: bytes that the interface sent behind the qdisc, since its
 * start.  queued: bytes in the qdisc now.
 *
 * Call it every NIC_EPOCH.  A sooner call does nothing.  After more than four
 * NIC_EPOCHs a new epoch starts.  Returns 1 if T changed.
 *
 * The backlog of the qdisc is long if it takes more than NIC_STANDS at the rate
 * that was sent.  It stands if it is also more than 5/4 of B.
 *  - It stands, and stood at the start of the epoch: if T is more than what was
 *    sent, T moves halfway down to that.  After two such epochs T moves all the
 *    way, to the better epoch.
 *  - It stands, and more than twice T was sent: T moves halfway up.
 *  - It stands: the bytes that B lost and the interface did not send return to
 *    B.  Then B is set to NIC_STANDS at least, so that the queue is waited for.
 *  - It stands, T is what was sent, and B does not explain the queue: bytes
 *    leave that B does not count (another program's, or larger headers).
 *    Every fourth such epoch T is lowered by a 16th, down to half of what was
 *    sent.  If that does not help, the queue is not ours.  T goes back to what
 *    was sent.  For 30 s this rule and the least B of the rule above are off.
 *  - It is not long, and net was closed for a quarter of the epoch: every
 *    fourth such epoch starts a probe of 9/8 T for two epochs.  Then T is
 *    scaled by what left in the second epoch over what left before the probe.
 *    During the probe, costs are by the T before.  The next probe comes at once
 *    after a success, and after twice the distance after a failure.
 *  - Else T stays.
 * While T is 0, a backlog that is long for four epochs gives the first T.
 */
int NIC_Learn(struct nic *, uint64_t tx_bytes, uint64_t queued, int64_t now);

#endif
