/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The number of threads of a pool (paper, section 5.2 and appendix B), and the
 * number of open slots.
 *
 * There are W = workers_per_core x cores slots.  Each slot needs a thread. 
 * Each slot that is lent needs one more: its worker waits (an origin, a slow
 * reader, a pipe).  So does everything that holds no slot: parsing tasks,
 * acceptors, fetches, HTTP/2 sessions, Varnish's reserve.
 *
 * POOLMGR_Threads() is a pure function of a snapshot, the last answer and the
 * time.  A pool grows at once.  It shrinks by an eighth of the excess every
 * POOLMGR_SHRINK, so that a load that varies does not start and end threads.
 *
 * An open slot may be taken now.  The kernel shares the cores evenly among the
 * requests that run, whatever the policy decides.  So while W requests run, a
 * tenant that has n of them gets n / W of the cores.  Two running requests per
 * core are enough to use the cores.  If all open slots are taken but the process
 * uses less than its cores, workers are blocked, or other programs use the
 * cores.  Then more slots open.
 */

#ifndef POOLMGR_H_INCLUDED
#define POOLMGR_H_INCLUDED

#include <stdint.h>

#define POOLMGR_SHRINK	1000000000	/* ns */
#define POOLMGR_OPEN	2		/* slots per core that never close */
#define POOLMGR_KEEP	1000000000	/* ns, see POOLMGR_Open() */

/*
 * Counts are those of the process, except where "per pool" is said.  A host
 * that knows the counts of one pool passes those, and pools = 1.
 */
struct poolmgr_snapshot {
	unsigned	workers_per_core;
	unsigned	cores;
	unsigned	parsers;	/* P, parsing tasks */
	unsigned	acceptors;
	unsigned	lent;		/* slots lent by workers that wait,
					 * also for slow readers */
	unsigned	fetches;	/* backend tasks that run */
	unsigned	h2_sessions;
	unsigned	pools;		/* >= 1 */
	unsigned	reserve;	/* Varnish's, per pool */
	unsigned	min, max;	/* thread_pool_min, _max, per pool */
};

struct poolmgr {
	unsigned	threads;	/* the last answer, per pool */
	int64_t		needed;		/* ns, when all were last needed, or
					 * the pool last shrank */
};

#define POOLMGR_EVERY	100000000	/* ns between calls of POOLMGR_Open() */

/* What POOLMGR_Open() decides by */
struct poolmgr_load {
	unsigned	slots;		/* W */
	unsigned	cores;
	unsigned	open;		/* slots that are open now */
	int		full;		/* all of these are taken */
	unsigned	busy;		/* %, what the process has used of its
					 * cores since the last call */
};

/* Return W, the number of slots, at least 1 */
unsigned POOLMGR_Slots(unsigned workers_per_core, unsigned cores);
/* Return the number of threads that a pool should have now, from min to max.  A
 * struct of zeros is a pool without threads.  now: ns. */
unsigned POOLMGR_Threads(struct poolmgr *, const struct poolmgr_snapshot *,
    int64_t now);
/*
 * Return how many slots should be open from now on.
 *
 * The number doubles, up to W, if all open slots are taken and `busy` is below
 * 90.  It halves if `busy` is 95 or more, down to POOLMGR_OPEN per core, or to W
 * if that is less.  It does not halve for POOLMGR_KEEP after the last time that
 * the first rule applied.
 *
 * doubled: that time, ns.  This function sets it; 0 at first.  now: ns.
 */
unsigned POOLMGR_Open(const struct poolmgr_load *, int64_t *doubled,
    int64_t now);
/* Return the expected number of extra workers, lambda x p_miss / mu (appendix
 * B). lambda: requests/s; fetch_seconds: 1/mu, s. */
double POOLMGR_Expected(double lambda, double p_miss, double fetch_seconds);

/*
 * Return the number of cores that this process may use: the affinity mask and
 * the CPU quota of the cgroup (v2: cpu.max, v1: cfs_quota), rounded up, at
 * least 1.  root: "", or in tests a folder that stands for "/".
 */
unsigned POOLMGR_Cores(const char *root);
/* Return the quota's part of that; 0: no limit */
unsigned POOLMGR_Quota(const char *root);

#endif
