/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * How long is one count of the time stamp counter (TSC)?  The TSC is compared
 * with the kernel's raw clock for 10 ms.
 */

#include <stdint.h>
#include <time.h>

#include "clock.h"
#include "tsc.h"

#ifdef __x86_64__

#include <cpuid.h>

#define METER_CALIBRATE	10000000	/* ns */

/* Is the TSC invariant?  CPUID's bit is Linux's constant_tsc and
 * nonstop_tsc. */
static int
meter_tsc_invariant(void)
{
	unsigned a, b, c, d;

	return (__get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1U << 8)));
}

/* Read both clocks at one time: the closest of 16 pairs, so that an interrupt
 * between the two reads does not count */
static void
meter_pair(uint64_t *tsc, int64_t *ns)
{
	uint64_t t0, t1, best = UINT64_MAX;
	int64_t c;
	int i;

	*tsc = 0;
	*ns = 0;
	for (i = 0; i < 16; i++) {
		t0 = meter_tsc();
		c = meter_clock(CLOCK_MONOTONIC_RAW);
		t1 = meter_tsc();
		if (t1 - t0 < best) {
			best = t1 - t0;
			*tsc = t0 + best / 2;
			*ns = c;
		}
	}
}

double
meter_ns_per_tsc(void)
{
	uint64_t t0, t1;
	int64_t n0, n1;

	if (!meter_tsc_invariant())
		return (0);
	meter_pair(&t0, &n0);
	do
		meter_pair(&t1, &n1);
	while (n1 - n0 < METER_CALIBRATE);
	return ((double)(n1 - n0) / (double)(t1 - t0));
}

#else

double
meter_ns_per_tsc(void)
{

	return (0);
}

#endif
