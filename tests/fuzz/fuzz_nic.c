/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The NIC model: an input is a sequence of releases, corrections, looks,
 * epochs and rates, with a clock that also jumps, forwards and back.
 *
 * After each call:
 *  - B >= 0, and 0 while T is not known;
 *  - who looks when does not matter: B drained in two steps is B drained in
 *    one, to the byte;
 *  - closed: `when` is after now, and the first ns at which it is open (but
 *    for the longest hold, an hour); the time closed grows, and by no more
 *    than what went by;
 *  - what is counted is what was said, up to a share;
 *  - T is within the bound, and NIC_Learn() says when it changed.
 */

#include "fuzz.h"

#include "perfctr/nic.h"

#define COUNTED		64
#define NOW_MAX		(INT64_C(1) << 61)	/* ns, 73 years */
#define HOUR		3600000000000LL		/* ns */
#define RATE_LEAST	1000			/* bits/s: no host says less */

struct fuzz {
	struct fuzz_in		in;
	struct nic		nic;
	int64_t			now;
	uint64_t		tx;
	uint32_t		counted[COUNTED];
	unsigned		n;
};

static uint64_t
some_rate(struct fuzz *f)
{
	uint64_t rate = (uint64_t)fuzz_number(&f->in);

	return (rate < RATE_LEAST ? 0 : rate);
}

static void
judge_when(const struct fuzz *f, int closed, int64_t when)
{
	struct nic c;
	int64_t since;

	if (!closed) {
		assert(when == f->now);
		return;
	}
	assert(when > f->now);
	c = f->nic;
	since = f->now > c.drained ? f->now : c.drained;
	if (when - since >= HOUR)
		return;
	assert(NIC_Closed(&c, when - 1, NULL) || when - 1 < c.drained);
	assert(!NIC_Closed(&c, when, NULL));
}

static void
judge(struct fuzz *f)
{
	int64_t when;
	int closed;

	closed = NIC_Closed(&f->nic, f->now, &when);
	judge_when(f, closed, when);
	assert(NIC_Closed(&f->nic, f->now, NULL) == closed);
	assert(NIC_Backlog(&f->nic, f->now) >= 0);
	if (f->nic.rate == 0)
		assert(!closed && NIC_Backlog(&f->nic, f->now) == 0);
	if (f->nic.bound != 0) {
		assert(f->nic.rate <= f->nic.bound && f->nic.rate > 0);
		assert(NIC_Rate(&f->nic) <= f->nic.bound);
	}
}

/* Time goes on, and somebody else looks on the way */
static void
call_time(struct fuzz *f)
{
	int64_t dt, before, was = f->now;
	struct nic c;

	dt = fuzz_number_to(&f->in, NOW_MAX - f->now);
	before = NIC_ClosedTime(&f->nic, f->now);
	f->now += dt;
	c = f->nic;
	(void)NIC_Backlog(&c, was + dt / (1 + fuzz_byte(&f->in)));
	assert(NIC_Backlog(&c, f->now) == NIC_Backlog(&f->nic, f->now));
	assert(c.remainder == f->nic.remainder);
	assert(c.epoch_drained == f->nic.epoch_drained);
	assert(NIC_ClosedTime(&f->nic, f->now) >= before);
	assert(NIC_ClosedTime(&f->nic, f->now) <= before + dt);
}

static void
call_back(struct fuzz *f)
{
	int64_t before = NIC_Backlog(&f->nic, f->now);

	f->now -= fuzz_number_to(&f->in, f->now - 1);
	assert(NIC_Backlog(&f->nic, f->now) == before);
}

static uint32_t
share(uint64_t bytes)
{
	return (bytes > NIC_SHARE ? NIC_SHARE : (uint32_t)bytes);
}

static void
call_release(struct fuzz *f)
{
	uint32_t bytes, got;
	int64_t before = NIC_Backlog(&f->nic, f->now);

	bytes = (uint32_t)fuzz_number_to(&f->in, UINT32_MAX);
	got = NIC_Release(&f->nic, bytes, f->now);
	assert(got == share(bytes));
	if (f->nic.rate != 0)
		assert(NIC_Backlog(&f->nic, f->now) == before + got);
	if (f->n < COUNTED)
		f->counted[f->n++] = got;
}

static void
call_correct(struct fuzz *f)
{
	uint64_t actual = (uint64_t)fuzz_number(&f->in);
	int64_t before = NIC_Backlog(&f->nic, f->now), want;
	uint32_t *counted;

	if (f->n == 0)
		return;
	counted = &f->counted[fuzz_below(&f->in, f->n)];
	want = before + share(actual) - *counted;
	if (want < 0)
		want = 0;
	*counted = NIC_Correct(&f->nic, *counted, actual, f->now);
	assert(*counted == share(actual));
	if (f->nic.rate != 0)
		assert(NIC_Backlog(&f->nic, f->now) == want);
	if (actual == 0)
		*counted = f->counted[--f->n];
}

static void
call_learn(struct fuzz *f, int64_t dt)
{
	unsigned how = fuzz_byte(&f->in);
	uint64_t rate = f->nic.rate, sent = rate, learned = f->nic.learned;
	int64_t left = NOW_MAX - f->now;
	uint64_t queued = UINT64_C(1) << 40;
	int changed;

	f->now += dt < left ? dt : left;
	if (how & 16)
		queued = (uint64_t)fuzz_number(&f->in);
	if (how & 2)			/* near T, or anything */
		sent = rate / 128 * (how >> 2) * 4;
	else if (how & 4)
		sent = (uint64_t)fuzz_number(&f->in);
	if ((how & 12) == 12)
		f->tx -= sent;
	else
		f->tx += sent / 160;
	changed = NIC_Learn(&f->nic, f->tx, how & 1 ? queued : 0, f->now);
	assert(changed == (f->nic.rate != rate));
	assert(f->nic.learned == learned + (unsigned)changed);
	if (changed && f->nic.bound == 0)
		assert(f->nic.rate >= NIC_RATE_MIN ||
		    f->nic.rate == f->nic.before_probe);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fuzz fuzz;
	struct fuzz *f = &fuzz;
	uint64_t rate;
	unsigned i;

	memset(f, 0, sizeof *f);
	f->in = (struct fuzz_in){ .p = data, .left = size };
	f->now = 1 + fuzz_number_to(&f->in, NOW_MAX / 2);
	rate = some_rate(f);
	NIC_Init(&f->nic, rate, some_rate(f), f->now);
	judge(f);
	while (f->in.left > 0) {
		switch (fuzz_below(&f->in, 16)) {
		case 0:
			NIC_SetBound(&f->nic, some_rate(f));
			break;
		case 1:
			NIC_SetRate(&f->nic, some_rate(f));
			break;
		case 2:
			call_back(f);
			break;
		case 3:
		case 4:
			call_time(f);
			break;
		case 5:
		case 6:
			call_correct(f);
			break;
		case 7:			/* so much that it is closed */
			for (i = fuzz_byte(&f->in); i > 0; i--)
				(void)NIC_Release(&f->nic, NIC_SHARE, f->now);
			break;
		case 8:
			call_learn(f, fuzz_number(&f->in));
			break;
		case 9:
		case 10:
		case 11:
			call_learn(f, NIC_EPOCH);
			break;
		default:
			call_release(f);
			break;
		}
		judge(f);
	}
	return (0);
}
