/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The backlog of nic.h.  B is a fluid queue that drains when a call looks at
 * it.  A byte is NIC_UNIT of (bit/s x ns x percent).  So the drain of any time
 * at any rate is a whole number of these, and the remainder is kept.
 * nic_learn.c learns T.
 */

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "nic.h"
#include "nic_internal.h"

#define NIC_UNIT	(8 * 1000000000ULL * 100)

static void
nic_assert(const struct nic *nic)
{

	assert(nic != NULL && nic->magic == NIC_MAGIC);
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

void
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

static void
nic_forget(struct nic *nic)
{

	nic->standing = 0;
	nic->backlogged_epochs = 0;
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
