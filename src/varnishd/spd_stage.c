/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The profile of the stages: how long requests wait for each stage, and how
 * long they are in it.  The profiler of SEDA shows the same (Welsh's thesis,
 * chapter 5).
 *
 *	stage	waits for			is in it
 *	parse	a worker that parses		until it is enqueued or refused
 *	run	its release			until its first byte is sent,
 *						without the time of a lent slot
 *	fetch	a thread			until the fetch ends
 *	deliver	the client, or more of the	the rest of its time until it is
 *		body that is fetched		done
 *
 * If a request goes to Varnish's waiting list, the time there and its run
 * before that are in no stage.
 *
 * spd_lock() guards the sums.  A request is added when it leaves the stage.
 * Each second the keeper saves a copy, for the means of the last seconds.
 */

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "spd.h"

static struct spd_profile sum;
static struct spd_profile past[SPD_PROFILE_S];	/* one each second */
static unsigned oldest;				/* of past[] */

/* Add one that has left a stage.  wait, in_it: ns.  Caller holds spd_lock(). */
void
spd_stage(enum spd_stage s, int64_t wait, int64_t in_it)
{

	SPD_LOCKED();
	sum.stage[s].done++;
	sum.stage[s].wait += vmax_t(int64_t, 0, wait);
	sum.stage[s].in_it += vmax_t(int64_t, 0, in_it);
}

/* The request that runs on this worker sends its first byte. */
void
spd_stage_sends(struct spd_worker *me)
{

	me->sends_at = METER_Now();
	me->ran = me->sends_at - me->began - me->loaned;
	me->loaned = 0;
}

/* Add the request that is done on this worker.  Caller holds spd_lock(). */
void
spd_stage_done(const struct spd_worker *me, int64_t waited, int64_t now)
{
	int64_t wait = me->loaned + me->blocked;

	if (me->sends_at == 0) {
		spd_stage(SPD_RUNS, waited, now - me->began - me->loaned);
		return;
	}
	spd_stage(SPD_RUNS, waited, me->ran);
	spd_stage(SPD_DELIVERS, wait, now - me->sends_at - wait);
}

/* Keep the sums of this second.  Caller holds spd_lock(). */
void
spd_stage_second(int64_t now)
{

	SPD_LOCKED();
	past[oldest] = sum;
	past[oldest].at = now;
	oldest = (oldest + 1) % SPD_PROFILE_S;
}

/* Copy the sums since the start.  Caller holds spd_lock(). */
void
spd_stage_all(struct spd_profile *p)
{

	SPD_LOCKED();
	*p = sum;
}

/* Copy the sums of the last seconds, and how long these are to p->at, ns.
 * Caller holds spd_lock(). */
void
spd_stage_last(struct spd_profile *p, int64_t now)
{
	const struct spd_profile *then = &past[oldest];
	unsigned s;

	SPD_LOCKED();
	*p = sum;
	p->at = now - then->at;
	for (s = 0; s < SPD_STAGES; s++) {
		p->stage[s].done -= then->stage[s].done;
		p->stage[s].wait -= then->stage[s].wait;
		p->stage[s].in_it -= then->stage[s].in_it;
	}
}

/* Begin the profile now. */
void
spd_stage_init(void)
{
	int64_t now = METER_Now();
	unsigned u;

	for (u = 0; u < SPD_PROFILE_S; u++)
		past[u].at = now;
}
