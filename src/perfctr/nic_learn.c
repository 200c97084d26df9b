/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * How NIC_Learn() learns T: see the rules in nic.h.
 *
 * Learning prefers a measurement (what was sent while a queue stood) to a
 * guess, and undoes each guess that made a queue stand.
 */

#include <stdint.h>

#include "nic.h"
#include "nic_internal.h"

#define NIC_REFILL	200000000	/* ns of T: most that returns to B */
#define NIC_STEP	3		/* a probe adds 1/8 */
#define NIC_PROBE	2		/* epochs of a probe */
#define NIC_WAIT_MAX	16		/* epochs */
#define NIC_FOREIGN	30000000000LL	/* ns */

struct nic_epoch {
	int64_t			dt;		/* ns */
	uint64_t		bytes;		/* sent by the interface */
	uint64_t		sent;		/* bits/s */
	uint64_t		drained;	/* bytes that B lost */
	int64_t			closed;		/* ns, net closed */
	int64_t			now;
};

/* Set T, within its limits.  Returns 1 if T changed. */
static int
nic_set(struct nic *nic, uint64_t rate)
{

	if (rate < NIC_RATE_MIN)
		rate = NIC_RATE_MIN;
	if (rate > NIC_RATE_MAX)
		rate = NIC_RATE_MAX;
	if (nic->bound != 0 && rate > nic->bound)
		rate = nic->bound;
	if (rate == nic->rate)
		return (0);
	nic->rate = rate;
	nic->learned++;
	return (1);
}

static void
nic_epoch_start(struct nic *nic, uint64_t tx_bytes, int64_t now)
{

	nic->epoch = now;
	nic->tx_bytes = tx_bytes;
	nic->epoch_closed = nic->closed_ns;
	nic->epoch_drained = 0;
}

/* Return bytes to B.  A queue stood, so the link was busy, and B lost what the
 * link sent, no more.  Returns 1 if B explains the queue now. */
static int
nic_refill(struct nic *nic, const struct nic_epoch *e)
{
	int64_t most = nic_bytes(e->sent, NIC_REFILL), lost;

	if (e->drained > e->bytes && nic->backlog < most) {
		lost = (int64_t)(e->drained - e->bytes);
		if (lost > most - nic->backlog)
			lost = most - nic->backlog;
		nic->backlog += lost;
	}
	return (nic->backlog >= nic_bytes(e->sent, NIC_STANDS));
}

/* Learn the first T.  After four epochs with a long queue, what was sent is
 * near the link's rate. */
static int
nic_first_estimate(struct nic *nic, const struct nic_epoch *e, int standing)
{

	if (!standing) {
		nic->standing = 0;
		nic->sent = 0;
		return (0);
	}
	if (e->sent > nic->sent)
		nic->sent = e->sent;
	if (++nic->standing < NIC_PATIENCE)
		return (0);
	return (nic_set(nic, nic->sent));
}

/* Lower T.  The queue stands, T is not above what was sent, and B does not
 * explain the queue: so a part of what was sent is not in B. */
static int
nic_lower(struct nic *nic, const struct nic_epoch *e)
{
	uint64_t floor = e->sent / 2;

	if (++nic->standing % NIC_PATIENCE != 0)
		return (0);
	if (nic->rate <= floor) {
		nic->foreign_until = e->now + NIC_FOREIGN;
		return (nic_set(nic, e->sent));
	}
	if (nic->rate - nic->rate / 16 < floor)
		return (nic_set(nic, floor));
	return (nic_set(nic, nic->rate - nic->rate / 16));
}

/*
 * Set T by what was sent while a queue stands.  If the queue stood at both ends
 * of the epoch, the link was busy.  The better of two such epochs is the link's
 * rate: in the other one the machine itself may have stood still.
 */
static int
nic_measured(struct nic *nic, const struct nic_epoch *e, int known)
{
	uint64_t sent = e->sent;

	if (nic->backlogged_epochs && nic->sent > sent)
		sent = nic->sent;
	nic->sent = e->sent;
	if (nic->rate > sent + sent / 128) {
		nic->standing = 0;
		if (nic->backlogged_epochs == 0)
			return (0);
		return (nic_set(nic, nic->backlogged_epochs > 1 ? sent :
		    nic->rate - (nic->rate - sent) / 2));
	}
	if (nic->rate < e->sent / 2)
		return (nic_set(nic, nic->rate + (e->sent - nic->rate) / 2));
	if (known || e->now < nic->foreign_until)
		return (0);
	return (nic_lower(nic, e));
}

/*
 * End a probe.  What left in its last epoch over what left before it says what
 * T should be, in any unit.  A token bucket has spent its savings by then.
 *
 * If not all that the probe released has left, the link was full: then B should
 * drain at NIC_PERCENT of what left.  A result below T counts only if a queue
 * stands.  Without one, B may have lost bytes that were never sent.
 */
static int
nic_probe_ends(struct nic *nic, const struct nic_epoch *e, int standing)
{
	const uint64_t was = nic->before_probe, probed = nic->rate;
	uint64_t rate = was;
	nic_u128 t;

	if (nic->probing == NIC_PROBE && e->sent >= was / 2) {
		t = (nic_u128)was * e->sent / (uint64_t)nic->held_sent;
		if (t < probed - probed / 64)
			t = t * NIC_PERCENT / 100;
		if (t > was || standing)
			rate = t < probed ? (uint64_t)t : probed;
	}
	nic->probing = 0;
	if (rate > was + (probed - was) / 2)
		nic->wait = 1;
	else if (nic->wait < NIC_PATIENCE)
		nic->wait = NIC_PATIENCE;
	else if (nic->wait < NIC_WAIT_MAX)
		nic->wait *= 2;
	return (nic_set(nic, rate));
}

static int
nic_stands(struct nic *nic, const struct nic_epoch *e)
{
	int changed, known;

	nic->held = 0;
	known = nic_refill(nic, e);
	if (nic->probing)
		changed = nic_probe_ends(nic, e, 1);
	else
		changed = nic_measured(nic, e, known);
	/* At least this much stands: wait for it */
	if (!known && e->now >= nic->foreign_until)
		nic->backlog = nic_bytes(e->sent, NIC_STANDS);
	return (changed);
}

static int
nic_quiet(struct nic *nic, const struct nic_epoch *e)
{

	nic->standing = 0;
	if (nic->probing && nic->probing < NIC_PROBE) {
		nic->probing++;
		return (0);
	}
	if (nic->probing)
		return (nic_probe_ends(nic, e, 0));
	/* If less than half of T left, B is wrong, not T */
	if (e->closed < e->dt / 4 || e->sent == 0 || e->sent < nic->rate / 2)
		return (0);
	nic->held++;
	nic->held_sent += ((int64_t)e->sent - nic->held_sent) /
	    (int64_t)nic->held;
	if (nic->held < nic->wait)
		return (0);
	nic->held = 0;
	nic->before_probe = nic->rate;
	nic->probing = nic_set(nic, nic->rate + (nic->rate >> NIC_STEP));
	return ((int)nic->probing);
}

/* Does the queue take more than NIC_STANDS at the rate of what was sent? */
static int
nic_long(const struct nic_epoch *e, uint64_t queued)
{

	return (e->bytes > 0 && (nic_u128)queued * (uint64_t)e->dt >
	    (nic_u128)e->bytes * NIC_STANDS);
}

/* Does B expect the queue?  Then B and T are right, and nothing is learned.  On
 * a link that is mostly idle, the last release is a long queue for the little
 * that was sent. */
static int
nic_expected(const struct nic *nic, uint64_t queued)
{
	uint64_t b = (uint64_t)nic->backlog;

	return (nic->rate != 0 && queued <= b + b / 4);
}

int
NIC_Learn(struct nic *nic, uint64_t tx_bytes, uint64_t queued, int64_t now)
{
	struct nic_epoch e;
	nic_u128 sent;
	int changed, standing;

	nic_drain(nic, now);
	e.now = now;
	e.dt = now - nic->epoch;
	if (nic->epoch != 0 && e.dt >= 0 && e.dt < NIC_EPOCH)
		return (0);
	e.bytes = tx_bytes - nic->tx_bytes;
	e.drained = nic->epoch_drained;
	e.closed = nic->closed_ns - nic->epoch_closed;
	if (nic->epoch == 0 || e.dt < 0 || e.dt > 4 * NIC_EPOCH ||
	    tx_bytes < nic->tx_bytes) {
		/* Nothing to compare with, so a probe has no result */
		nic->backlogged_epochs = 0;
		nic_epoch_start(nic, tx_bytes, now);
		if (!nic->probing)
			return (0);
		nic->probing = 0;
		return (nic_set(nic, nic->before_probe));
	}
	nic_epoch_start(nic, tx_bytes, now);
	sent = (nic_u128)e.bytes * 8000000000ULL / (uint64_t)e.dt;
	e.sent = sent > NIC_RATE_MAX ? NIC_RATE_MAX : (uint64_t)sent;
	standing = nic_long(&e, queued);
	if (standing && nic_expected(nic, queued)) {
		standing = 0;
		if (!nic->probing) {
			nic->standing = nic->backlogged_epochs = 0;
			return (0);
		}
	}
	if (nic->rate == 0)
		changed = nic_first_estimate(nic, &e, standing);
	else if (standing)
		changed = nic_stands(nic, &e);
	else
		changed = nic_quiet(nic, &e);
	if (!standing)
		nic->backlogged_epochs = 0;
	else if (nic->backlogged_epochs < 2)
		nic->backlogged_epochs++;
	return (changed);
}
