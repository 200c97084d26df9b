/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * How many workers there should be (paper, section 5.2 and appendix B).
 *
 * W = workers_per_core x cores slots; a thread for each, one more for each
 * slot that is lent while its worker waits (a backend fetch, a slow reader,
 * a pipe), and those that hold no slot at all: parsing tasks, acceptors,
 * backend fetches, h2 sessions, Varnish's own reserve.  The answer is a
 * pure function of a snapshot, the last answer and the time: it grows at
 * once, and shrinks by an eighth of the excess at most every
 * POOLMGR_SHRINK, so that a pool that breathes does not churn threads.
 */

#ifndef POOLMGR_H_INCLUDED
#define POOLMGR_H_INCLUDED

#include <stdint.h>

#define POOLMGR_SHRINK	1000000000	/* ns */

/*
 * Counts are the process's, except those marked "a pool".  A host that knows
 * them pool by pool passes that pool's and pools = 1.
 */
struct poolmgr_snapshot {
	unsigned	workers_per_core;
	unsigned	cores;
	unsigned	parsers;	/* P, parsing tasks */
	unsigned	acceptors;
	unsigned	lent;		/* slots of workers that wait */
	unsigned	fetches;	/* backend tasks that run */
	unsigned	h2_sessions;
	unsigned	writers;	/* workers blocked by a slow reader */
	unsigned	pools;		/* >= 1 */
	unsigned	reserve;	/* Varnish's, a pool */
	unsigned	min, max;	/* thread_pool_min, _max: a pool */
};

struct poolmgr {
	unsigned	threads;	/* the last answer, a pool */
	int64_t		needed;		/* ns, when all were last needed, or
					 * some retired */
};

/* W: slots */
unsigned POOLMGR_Slots(unsigned workers_per_core, unsigned cores);
/* Threads that a pool should have now; min <= answer <= max.  A struct of
 * zeros is a pool that has none yet. */
unsigned POOLMGR_Threads(struct poolmgr *, const struct poolmgr_snapshot *,
    int64_t now);
/* Appendix B: expected number of extra workers, lambda x p_miss / mu */
double POOLMGR_Expected(double lambda, double p_miss, double fetch_seconds);

/*
 * Cores this process may use: the affinity mask and the cgroup's CPU
 * quota (v2 cpu.max, v1 cfs_quota), rounded up, at least 1.  root: "" or,
 * for tests, a folder that stands for "/".
 */
unsigned POOLMGR_Cores(const char *root);
/* The quota's part of that; 0: no limit */
unsigned POOLMGR_Quota(const char *root);

#endif
