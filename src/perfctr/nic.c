/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The arithmetic of nic.h.  B is a fluid queue that drains when a call looks at
 * it.  A byte is NIC_UNIT of (bit/s x ns x percent).  So the drain of any time
 * at any rate is a whole number of these, and the remainder is kept.
 *
 * Learning prefers a measurement (what was sent while a queue stood) to a
 * guess, and undoes each guess that made a queue stand.
 */

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "nic.h"

#define NIC_PERCENT	98		/* of T, at which B drains */
#define NIC_UNIT	(8 * 1000000000ULL * 100)
#define NIC_RATE_MAX	(UINT64_MAX / NIC_PERCENT)	/* 188 Pbit/s */
#define NIC_REFILL	200000000	/* ns of T: most that returns to B */
#define NIC_PATIENCE	4		/* epochs */
#define NIC_STEP	3		/* a probe adds 1/8 */
#define NIC_PROBE	2		/* epochs of a probe */
#define NIC_WAIT_MAX	16		/* epochs */
#define NIC_NOT_OURS	30000000000LL	/* ns */

typedef unsigned __int128 nic_u128;

static void
nic_assert(const struct nic *nic)
{

	assert(nic != NULL && nic->magic == NIC_MAGIC);
}

/* Return the bytes that leave in ns at that rate, in bits/s */
static int64_t
nic_bytes(uint64_t rate, int64_t ns)
{

	return ((int64_t)((nic_u128)rate * (uint64_t)ns / 8000000000ULL));
}

/* Return the B above which net is closed, bytes */
static int64_t
nic_limit(const struct nic *nic)
{

	return ((int64_t)(nic->rate / (8000000000ULL / NIC_BACKLOG)));
}

/* Return the ns until B has lost these bytes, rounded up; at most 1 h */
static int64_t
nic_time(const struct nic *nic, int64_t bytes)
{
	const uint64_t per_ns = nic->rate * NIC_PERCENT;
	const int64_t most = 3600000000000LL;
	nic_u128 need;

	need = (nic_u128)(uint64_t)bytes * NIC_UNIT - nic->remainder;
	need = (need + (per_ns - 1)) / per_ns;
	return (need > (nic_u128)most ? most : (int64_t)need);
}

static void
nic_drain(struct nic *nic, int64_t now)
{
	int64_t dt, over, open;
	nic_u128 units;

	nic_assert(nic);
	dt = now - nic->drained;
	if (dt <= 0)
		return;
	nic->drained = now;
	if (nic->backlog == 0 || nic->rate == 0)
		return;
	over = nic->backlog - nic_limit(nic);
	if (over > 0 && !nic->alone) {
		open = nic_time(nic, over);
		nic->closed_ns += open < dt ? open : dt;
	}
	units = (nic_u128)(nic->rate * NIC_PERCENT) * (uint64_t)dt +
	    nic->remainder;
	if (units / NIC_UNIT >= (uint64_t)nic->backlog) {
		nic->epoch_drained += (uint64_t)nic->backlog;
		nic->backlog = 0;
		nic->remainder = 0;
	} else {
		nic->epoch_drained += (uint64_t)(units / NIC_UNIT);
		nic->backlog -= (int64_t)(units / NIC_UNIT);
		nic->remainder = (uint64_t)(units % NIC_UNIT);
	}
}

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
nic_forget(struct nic *nic)
{

	nic->standing = 0;
	nic->stood = 0;
	nic->held = 0;
	nic->wait = NIC_PATIENCE;
	nic->probing = 0;
}

void
NIC_Init(struct nic *nic, uint64_t rate, uint64_t bound, int64_t now)
{

	assert(nic != NULL);
	memset(nic, 0, sizeof *nic);
	nic->magic = NIC_MAGIC;
	nic->bound = bound;
	nic->drained = now;
	NIC_SetRate(nic, rate);
}

void
NIC_SetRate(struct nic *nic, uint64_t rate)
{

	nic_assert(nic);
	nic_forget(nic);
	if (nic->bound != 0 && (rate == 0 || rate > nic->bound))
		rate = nic->bound;
	if (rate > NIC_RATE_MAX)
		rate = NIC_RATE_MAX;
	nic->rate = rate;
	if (rate == 0)
		nic->backlog = 0;
}

void
NIC_Stop(struct nic *nic)
{

	NIC_SetRate(nic, NIC_Rate(nic));
	nic->epoch = 0;
}

uint64_t
NIC_Rate(const struct nic *nic)
{

	nic_assert(nic);
	return (nic->probing ? nic->before_probe : nic->rate);
}

uint64_t
NIC_DrainRate(const struct nic *nic)
{

	return (NIC_Rate(nic) - NIC_Rate(nic) * (100 - NIC_PERCENT) / 100);
}

void
NIC_SetBound(struct nic *nic, uint64_t bound)
{

	nic_assert(nic);
	nic->bound = bound;
	NIC_SetRate(nic, NIC_Rate(nic));
}

/*--------------------------------------------------------------------
 * B
 */

/* A tenant that is alone fills every queue that there is, so B says no more */
static void
nic_cap(struct nic *nic)
{
	int64_t most = nic_bytes(nic->rate, NIC_ALONE);

	if (nic->alone && nic->backlog > most)
		nic->backlog = most;
}

uint32_t
NIC_Release(struct nic *nic, uint32_t bytes, int64_t now)
{

	nic_drain(nic, now);
	if (bytes > NIC_SHARE)
		bytes = NIC_SHARE;
	if (nic->rate != 0)
		nic->backlog += bytes;
	nic_cap(nic);
	return (bytes);
}

/* Take bytes back from B.  If B has drained them, the link did not send them:
 * then the epoch's count is corrected. */
static void
nic_take_back(struct nic *nic, uint64_t bytes)
{

	if (bytes < (uint64_t)nic->backlog) {
		nic->backlog -= (int64_t)bytes;
		return;
	}
	bytes -= (uint64_t)nic->backlog;
	nic->backlog = 0;
	nic->remainder = 0;
	nic->epoch_drained -= bytes < nic->epoch_drained ? bytes :
	    nic->epoch_drained;
}

uint32_t
NIC_Correct(struct nic *nic, uint32_t counted, uint64_t actual, int64_t now)
{

	nic_drain(nic, now);
	assert(counted <= NIC_SHARE);
	if (actual > NIC_SHARE)
		actual = NIC_SHARE;
	if (nic->rate == 0)
		return ((uint32_t)actual);
	if (actual >= counted) {
		nic->backlog += (int64_t)actual - counted;
		nic_cap(nic);
	} else
		nic_take_back(nic, counted - actual);
	return ((uint32_t)actual);
}

void
NIC_SetAlone(struct nic *nic, int alone, int64_t now)
{

	nic_assert(nic);
	if (alone == nic->alone)
		return;
	nic_drain(nic, now);
	nic->alone = alone;
}

int
NIC_Busy(struct nic *nic, int64_t now)
{

	nic_drain(nic, now);
	return (nic->rate != 0 && nic->backlog > nic_limit(nic));
}

int
NIC_Closed(struct nic *nic, int64_t now, int64_t *when)
{
	int64_t over = 0;

	if (NIC_Busy(nic, now) && !nic->alone)
		over = nic->backlog - nic_limit(nic);
	if (when != NULL)
		*when = over > 0 ? nic->drained + nic_time(nic, over) : now;
	return (over > 0);
}

int64_t
NIC_Backlog(struct nic *nic, int64_t now)
{

	nic_drain(nic, now);
	return (nic->backlog);
}

int64_t
NIC_ClosedTime(struct nic *nic, int64_t now)
{

	nic_drain(nic, now);
	return (nic->closed_ns);
}

/*--------------------------------------------------------------------
 * T
 */

struct nic_epoch {
	int64_t			dt;		/* ns */
	uint64_t		bytes;		/* sent by the interface */
	uint64_t		sent;		/* bits/s */
	uint64_t		drained;	/* bytes that B lost */
	int64_t			closed;		/* ns, net closed */
	int64_t			now;
};

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
nic_first(struct nic *nic, const struct nic_epoch *e, int standing)
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
		nic->not_ours = e->now + NIC_NOT_OURS;
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

	if (nic->stood && nic->sent > sent)
		sent = nic->sent;
	nic->sent = e->sent;
	if (nic->rate > sent + sent / 128) {
		nic->standing = 0;
		if (nic->stood == 0)
			return (0);
		return (nic_set(nic, nic->stood > 1 ? sent :
		    nic->rate - (nic->rate - sent) / 2));
	}
	if (nic->rate < e->sent / 2)
		return (nic_set(nic, nic->rate + (e->sent - nic->rate) / 2));
	if (known || e->now < nic->not_ours)
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
	if (!known && e->now >= nic->not_ours)
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
		nic->stood = 0;
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
			nic->standing = nic->stood = 0;
			return (0);
		}
	}
	if (nic->rate == 0)
		changed = nic_first(nic, &e, standing);
	else if (standing)
		changed = nic_stands(nic, &e);
	else
		changed = nic_quiet(nic, &e);
	nic->stood = standing ? nic->stood + (nic->stood < 2) : 0;
	return (changed);
}
