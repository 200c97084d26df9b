/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Costs: the NIC formula, estimators, the residual and the dominant cost, with
 * numbers of any size.
 *
 *  - the formula is within its rounding of long double's, never free, and
 *    does not fall when bytes grow;
 *  - an estimate is within the least and the largest sample; "last" is the
 *    last one; a decaying maximum is not above the largest, and not below
 *    alpha of the one before; the mean over all is within their samples;
 *  - the residual is 0 to RESIDUAL_MAX, and moves once a second at most;
 *  - the dominant cost is between the lesser and the larger one, and all of
 *    them are no less than the larger sum.
 */

#include <math.h>

#include "fuzz.h"

#include "perfctr/cost.h"

#define KINDS		16
#define CPU_MAX		(INT64_C(1) << 58)	/* ns, 9 years */

struct range {
	int64_t			lo, hi;
};

static void
widen(struct range *r, int64_t n)
{
	if (n < r->lo)
		r->lo = n;
	if (n > r->hi)
		r->hi = n;
}

static void
formula(struct fuzz_in *in)
{
	uint64_t bytes = (uint64_t)fuzz_number(in) * 2, rate, wire;
	unsigned header, mtu;
	long double want;
	int64_t ns;

	rate = 1 + (uint64_t)fuzz_number(in) * 2;
	header = (unsigned)fuzz_number_to(in, UINT32_MAX - 1);
	mtu = header + 1 +
	    (unsigned)fuzz_number_to(in, UINT32_MAX - header - 1);
	wire = COST_Wire(bytes, mtu, header);
	ns = COST_Net(bytes, rate, mtu, header);
	want = bytes + (long double)header *
	    ceill((long double)bytes / (mtu - header));
	assert(wire >= bytes && (wire > 0) == (bytes > 0));
	if (want < 0x1p63L)
		assert(fabsl((long double)wire - want) <= 1 + want * 1e-18L);
	want = want * 8e9L / rate;
	assert(ns >= 0 && (ns > 0) == (bytes > 0));
	if (want < 0x1p62L)
		assert(ns >= want * (1 - 1e-17L) &&
		    ns <= want * (1 + 1e-17L) + 1);
	else
		assert(ns >= 0x1p61L);
	if (bytes > 0)
		assert(COST_Net(bytes - 1, rate, mtu, header) <= ns);
}

static void
estimators(struct fuzz_in *in)
{
	struct range seen = { INT64_MAX, 0 };
	struct est est[KINDS] = { { 0 } };
	struct est_mean mean = { 0 };
	unsigned kind, n = 1 + fuzz_byte(in);
	int64_t sample, was, v;
	uint32_t alpha;

	assert(EST_Kinds() <= KINDS);
	alpha = (uint32_t)fuzz_number_to(in, 65536);
	for (; n > 0 && in->left > 0; n--) {
		sample = fuzz_number(in);
		widen(&seen, sample);
		EST_MeanSample(&mean, sample);
		assert(mean.value >= seen.lo && mean.value <= seen.hi);
		for (kind = 0; kind < EST_Kinds(); kind++) {
			assert(EST_Value(&est[kind], &mean) >= 0);
			was = EST_Value(&est[kind], NULL);
			EST_Sample(kind, &est[kind], sample, alpha);
			v = EST_Value(&est[kind], &mean);
			assert(v >= 0 && v <= seen.hi);
			if (!strcmp(EST_Name(kind), "decaying-max"))
				assert(v >= (long double)was * alpha /
				    65536 * (1 - 1e-15L) - 1);
			else
				assert(v >= seen.lo);
			if (!strcmp(EST_Name(kind), "last"))
				assert(v == sample);
		}
	}
}

static void
residual(struct fuzz_in *in)
{
	int64_t now = 1, cpu = 0, laps = 0, before, r;
	struct residual res = { 0 };
	unsigned n = 1 + fuzz_byte(in);
	uint64_t requests = 0;
	struct residual was;

	for (; n > 0 && in->left > 0; n--) {
		now += fuzz_number_to(in, CPU_MAX - now);
		cpu += fuzz_number_to(in, CPU_MAX - cpu);
		laps += fuzz_number_to(in, CPU_MAX - laps);
		requests += (uint64_t)fuzz_number(in);
		was = res;
		before = res.r;
		r = RESIDUAL_Update(&res, now, cpu, laps, requests);
		assert(r == res.r && r >= 0 && r <= RESIDUAL_MAX);
		assert(llabs(r - before) <= RESIDUAL_MAX / 8 + 1);
		if (was.t != 0 && now - was.t < 1000000000)
			assert(memcmp(&was, &res, sizeof res) == 0);
	}
}

static void
dominant(struct fuzz_in *in)
{
	long double sum = 0, cpu = 0, net = 0;
	int64_t net_minus_cpu = 0, c, n, d;

	while (in->left > 0) {
		c = fuzz_number_to(in, INT64_MAX / 2);
		n = fuzz_number_to(in, INT64_MAX / 2);
		d = COST_Dominant(&net_minus_cpu, c, n);
		assert(net_minus_cpu >= -COST_HYSTERESIS &&
		    net_minus_cpu <= COST_HYSTERESIS);
		assert(d >= (c < n ? c : n) && d <= (c > n ? c : n));
		sum += d;
		cpu += c;
		net += n;
	}
	assert(sum >= cpu * (1 - 1e-15L) && sum >= net * (1 - 1e-15L));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { .p = data, .left = size }, again = in;

	while (in.left > 0)
		switch (fuzz_below(&in, 3)) {
		case 0:
			formula(&in);
			break;
		case 1:
			estimators(&in);
			break;
		default:
			residual(&in);
			break;
		}
	dominant(&again);		/* every input is costs, too */
	return (0);
}
