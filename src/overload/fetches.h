/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * How many fetches may wait for a tenant's origins, so that they answer within
 * its fetch target?
 *
 * The limit follows the time from a fetch's begin to the head of its answer.
 * While the mean of these times is above half of the target, the origin is full.
 * Then the limit falls to the number of answers that came in half of a target: by
 * Little's law, so many fetches wait for half of a target.  Else the limit rises
 * by one for as many answers as it allows fetches, as the window of TCP does
 * (V. Jacobson, "Congestion avoidance and control", 1988).  It begins without a
 * bound.  Half of the target is a reserve: an answer that is too slow is seen
 * only when it comes.
 *
 * TCP would take a fixed part of the limit.  Here that would be wrong: times vary
 * although nothing waits in the origin.  Each time the mean is above half by
 * chance, the limit would fall, and the times would not.
 *
 * If no answer has come for the whole target, one fetch per target may begin.  So
 * a few slow URLs do not stop all others, and an origin that is fast again is
 * noticed.  FETCHES_LEAST fetches may always wait.  A fetch in the background may
 * begin only below half of the limit, so these are refused first.
 *
 * A fetch that failed quickly says nothing: an origin that refuses is not fast.
 * One that failed after more than half of the target, as by a time-out, was too
 * slow.
 *
 * All times are ns.  No clock, lock or allocation.  The caller serialises.
 */

#ifndef OVERLOAD_FETCHES_H_INCLUDED
#define OVERLOAD_FETCHES_H_INCLUDED

#include <stdint.h>

#define FETCHES_LEAST	4U

struct ovl_fetches {			/* of a tenant; all 0 at first */
	unsigned		waiting;	/* for the head of an answer */
	int64_t			quiet;		/* time of the last answer, or
						 * when FETCHES_LEAST began to
						 * wait, if that is later */
	int64_t			probe;		/* the last fetch that began
						 * without an answer for the
						 * target */
	int64_t			began;		/* the window: the first answer
						 * since no fetch waited; or
						 * before it, the first fetch */
	double			answers;	/* in the window, after that
						 * first one; -1: none yet */
	double			mean;		/* of the times of answers */
	double			limit;		/* 0: none yet */
};

_Static_assert(sizeof(struct ovl_fetches) <= 128, "every tenant has one");

/* Return 1, and count the fetch, if it may begin.  target: 0: none. */
int OVL_FetchBegins(struct ovl_fetches *, int64_t target, int background,
    int64_t now);

/* A fetch that was counted has an answer, `took` after it began. */
void OVL_FetchAnswered(struct ovl_fetches *, int64_t target, int64_t took,
    int64_t now);

/* A fetch that was counted has failed, `took` after it began. */
void OVL_FetchFailed(struct ovl_fetches *, int64_t target, int64_t took,
    int64_t now);

/* A fetch that was counted did not begin. */
void OVL_FetchUndone(struct ovl_fetches *);

#endif
