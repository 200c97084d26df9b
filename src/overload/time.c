/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * A request is refused if it would wait for too long:
 *
 *	its wait = (waiting requests + 1) x the time from release to release
 *
 * The time from release to release is a mean of the last 25 to 50 ms in which
 * requests waited.  A release that is overdue counts, too.
 *
 * A burst may wait for 0.6 of the target, with the wait to be parsed.  The rest
 * is for the time that it runs, and for the error of the mean.  A queue that has
 * not been empty for 100 ms is no burst, but more load than the tenant's share.
 * Its requests may only wait for the standing limit (B. Maurer, "Fail at Scale",
 * ACM Queue 2015, has two such limits).
 */

#include <math.h>

#include "controller.h"

#define STANDING_AFTER	(100 * OVL_MS)
#define RATE_MEMORY	(50. * OVL_MS)
#define BURST_PART	.6

/* Begin to wait for the first release.  It says nothing about the time between
 * two of them. */
static void
time_wait(struct ovl_time *t, int64_t now)
{

	t->since = now;
	t->first = 1;
}

static void
time_begin(struct ovl *o, const struct ovl_queue *q)
{

	o->time.empty = q->now;
	time_wait(&o->time, q->now);
}

/* Return how long one more request would wait, ns. */
static double
time_expected(const struct ovl_time *t, const struct ovl_queue *q)
{
	double overdue = t->busy + fmax(0, (double)(q->now - t->since)), each;

	each = overdue / (t->released + 1);
	if (t->released > 0)
		each = fmax(each, t->busy / t->released);
	return ((q->waiting + 1.) * each);
}

static int
time_admit(struct ovl *o, const struct ovl_queue *q)
{
	struct ovl_time *t = &o->time;
	double most = BURST_PART * (double)q->target - (double)q->age;

	if (q->waiting == 0) {
		t->empty = q->now;
		time_wait(t, q->now);
		return (1);
	}
	if (q->now - t->empty >= STANDING_AFTER)
		most = fmin(most, (double)q->standing);
	return (time_expected(t, q) <= most);
}

static void
time_released(struct ovl *o, const struct ovl_queue *q, int64_t wait)
{
	struct ovl_time *t = &o->time;

	(void)wait;
	if (!t->first) {
		t->busy += fmax(0, (double)(q->now - t->since));
		t->released++;
	}
	t->since = q->now;
	t->first = 0;
	if (q->waiting == 0)
		t->empty = q->now;
	if (t->busy > RATE_MEMORY) {
		t->busy /= 2;
		t->released /= 2;
	}
}

const struct ovl_controller ovl_time = {
	.name = "time",
	.summary = "refuses what would wait for longer than it may",
	.begin = time_begin,
	.admit = time_admit,
	.released = time_released,
};
