/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Reads the time stamp counter (TSC) and the performance counters of this core,
 * by one instruction each.  Both need x86.
 */

#ifndef TSC_H_INCLUDED
#define TSC_H_INCLUDED

#include <stdint.h>

/* Return the ns of one count of the TSC; 0: there is no invariant TSC.  Takes
 * 10 ms. */
double meter_ns_per_tsc(void);

#ifdef __x86_64__

static inline uint64_t
meter_tsc(void)
{

	return (__builtin_ia32_rdtsc());
}

static inline uint64_t
meter_rdpmc(uint32_t idx)
{

	return (__builtin_ia32_rdpmc((int)idx));
}

#else

static inline uint64_t
meter_tsc(void)
{

	return (0);
}

#endif

#endif
