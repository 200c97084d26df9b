/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * By how much a tenant's counters grew in the last second, in the last 10, and
 * in the last 60.
 *
 * The caller ends a second with REC_Second(), and then calls REC_Add() for
 * each tenant that has used something so far.  A tenant has the growth of each
 * of the last ten seconds, and the sums of the five full tens before the running
 * ten.  So the last 60 seconds are 51 to 60 of them: REC_Last() says how many ns.
 *
 * Waits are a histogram: a count of waits for each range of times.
 *
 * No clock, lock or allocation.  The caller serialises.
 */

#ifndef TENANTS_RECENT_H_INCLUDED
#define TENANTS_RECENT_H_INCLUDED

#include <stdint.h>

/*--------------------------------------------------------------------
 * Waits
 */

#define WAITS		17U		/* counts */
#define WAIT_LEAST	250000		/* ns, the first bound; each next one
					 * is twice as long */

/* Return the upper bound of count i, ns.  The last count has no upper bound:
 * this is its lower one then. */
static inline int64_t
WAIT_Bound(unsigned i)
{

	return ((int64_t)WAIT_LEAST << (i < WAITS - 1 ? i : WAITS - 2));
}

/* Return the number of the count for a wait, ns. */
static inline unsigned
WAIT_Count(int64_t wait)
{
	uint64_t times;
	unsigned i;

	if (wait <= WAIT_LEAST)
		return (0);
	times = (uint64_t)(wait - 1) / WAIT_LEAST;	/* 1 or more */
	i = 64 - (unsigned)__builtin_clzll(times);
	return (i < WAITS ? i : WAITS - 1);
}

/*
 * Return the wait, s, that the part q (0 to 1) of waits did not exceed: linear
 * between the bounds of a count, and the last bound if it was longer.  0: there
 * was none.
 */
double WAIT_Quantile(const double count[WAITS], double q);

/*--------------------------------------------------------------------
 * Growth
 */

enum rec_counter {
	REC_COMPLETED,
	REC_REFUSED_FULL,
	REC_REFUSED_TARGET,
	REC_REFUSED_LATE,
	REC_REFUSED_FETCH,
	REC_CPU,			/* ns */
	REC_NET,			/* ns */
	REC_BYTES,
	REC_WAITS,			/* the first of WAITS */
	REC__COUNTERS = REC_WAITS + WAITS
};

#define REC_SECONDS	10U
#define REC_TENS	5U

struct rec_clock {			/* at first 0 */
	unsigned		n;		/* seconds that have ended */
	int64_t			end[(REC_TENS + 1) * REC_SECONDS + 2];
						/* ns, of the last ones */
};

struct recent {				/* at first 0 */
	struct recent		*next;		/* the caller's */
	uint64_t		counter[REC__COUNTERS];	/* at the last end */
	unsigned		n;		/* seconds that it knows */
	unsigned		still;		/* of these, the last ones in a
						 * row without growth */
	float			second[REC_SECONDS][REC__COUNTERS];
	float			ten[REC_TENS][REC__COUNTERS];
};

/* Begin the first second at `now`, ns. */
void REC_Begin(struct rec_clock *, int64_t now);

/* A second ends at `now`, ns.  It was longer if the caller is late. */
void REC_Second(struct rec_clock *, int64_t now);

/* The tenant's counters at that end.  They do not fall. */
void REC_Add(struct recent *, const struct rec_clock *,
    const uint64_t counter[REC__COUNTERS]);

/* Copy the growth in the last 1, 10 or 60 seconds.  Without a struct recent
 * (NULL) all is 0.  Return how long these are, ns, at least 1. */
int64_t REC_Last(const struct recent *, const struct rec_clock *,
    unsigned seconds, double grown[REC__COUNTERS]);

#endif
