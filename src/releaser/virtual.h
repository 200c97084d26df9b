/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Virtual ns: ns over weight, in integers.  Each division keeps its remainder
 * for the next one, so that small costs are not lost by rounding.
 */

#ifndef VIRTUAL_H_INCLUDED
#define VIRTUAL_H_INCLUDED

#include "releaser.h"

#define VIRTUAL_NS_MAX	(INT64_C(1) << 52)	/* bound of one cost, ns */

struct remainder {				/* one for each tenant */
	uint32_t		fraction;	/* 1/weight virtual ns */
	uint16_t		settled;	/* 1/REL_SCALE_ONE ns */
};

static inline int64_t
least(int64_t a, int64_t b)
{
	return (a < b ? a : b);
}

static inline int64_t
most(int64_t a, int64_t b)
{
	return (a > b ? a : b);
}

/* Limit n to the range from -max to max */
static inline int64_t
within(__int128 n, int64_t max)
{
	if (n > max)
		return (max);
	return ((int64_t)(n < -max ? -max : n));
}

/* Return ns / w in virtual ns, rounded down, at most 2^62 from zero */
static inline int64_t
virtual_ns(struct remainder *r, int64_t ns, uint32_t weight)
{
	int64_t n, q;

	n = within(ns, VIRTUAL_NS_MAX) * REL_WEIGHT_ONE + r->fraction;
	q = n / weight;
	if (n % weight < 0)
		q--;
	r->fraction = (uint32_t)(n - q * weight);
	return (q);
}

/* Return ns x scale / REL_SCALE_ONE, rounded down: the part to settle */
static inline int64_t
settled_ns(struct remainder *r, int64_t ns, uint32_t scale)
{
	__int128 n = (__int128)ns * scale + r->settled;

	r->settled = (uint16_t)(n & (REL_SCALE_ONE - 1));
	return (within((n - r->settled) / REL_SCALE_ONE, VIRTUAL_NS_MAX));
}

static inline void
rescale_remainder(struct remainder *r, uint32_t before, uint32_t weight)
{
	r->fraction = (uint32_t)((uint64_t)r->fraction * weight / before);
}

#endif
