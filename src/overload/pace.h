/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The pace of refusals.  Parsing comes before running requests, and a refused
 * request is only parsed.  So if clients ask faster than they can be refused,
 * refusals take all CPU time from the requests that wait (J. Mogul and K.
 * Ramakrishnan, "Eliminating receive livelock", USENIX 1996).
 *
 * So refusals have a credit of CPU time:
 *
 *  - a part of what requests take that run, PACE_RAN;
 *  - a part of all time, PACE_TIME.  If requests take long, others are still
 *    refused soon.
 *
 * A refusal takes PACE_COST of it.  When the credit is spent, waiting requests
 * run first, and connections wait to be parsed.
 *
 * Times are ns.  No clock, lock or allocation.  The caller serialises.
 */

#ifndef OVERLOAD_PACE_H_INCLUDED
#define OVERLOAD_PACE_H_INCLUDED

#include <stdint.h>

#define PACE_COST	20000		/* of a refusal, with its parsing */
#define PACE_RAN	4		/* 1/4 */
#define PACE_TIME	16		/* 1/16 */
#define PACE_MOST	1000000		/* credit or debt, at most */

struct pace {				/* all 0: begins at time 0 */
	int64_t			credit;
	int64_t			at;		/* PACE_TIME is paid until */
};

/* A request has taken so much CPU time. */
void PACE_Ran(struct pace *, int64_t cpu);
/* A request was refused. */
void PACE_Refused(struct pace *);
/* Pay PACE_TIME until now.  Return 1 if the credit is spent. */
int PACE_Spent(struct pace *, int64_t now);

#endif
