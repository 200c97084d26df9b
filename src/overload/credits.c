/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Credits: I. Cho and others, "Overload Control for us-scale RPCs with
 * Breakwater", OSDI 2020, section 4.  There a client sends a request only with
 * a credit from the server.  Clients of HTTP have none, so here a request is
 * refused if all credits are in the queue.
 *
 * While the wait is below the aim there is one credit more each time.  Above it
 * there are fewer, by BETA x the error, at most half of them.  Above twice the
 * aim all requests are refused.  The aim is the standing limit.  Breakwater
 * knows the wait of the queue now.  Here it is that of the last release, so the
 * signal is late by this wait.
 */

#include <math.h>

#include "controller.h"

#define EVERY		OVL_MS		/* between two changes */
#define BETA		.02
#define CREDITS_MAX	1000.		/* also at the start */

static void
credits_begin(struct ovl *o, const struct ovl_queue *q)
{

	o->credits.updated = q->now;
	o->credits.credits = (float)CREDITS_MAX;
}

static int
credits_admit(struct ovl *o, const struct ovl_queue *q)
{

	return ((float)q->waiting < o->credits.credits &&
	    (q->waiting == 0 || o->credits.wait - q->standing <= q->standing));
}

static void
credits_released(struct ovl *o, const struct ovl_queue *q, int64_t wait)
{
	struct ovl_credits *c = &o->credits;
	double error, credits = (double)c->credits;

	c->wait = wait;
	if (q->now - c->updated < EVERY)
		return;
	error = (double)(wait - q->standing) / fmax((double)q->standing, 1);
	if (error < 0)
		credits++;
	else
		credits *= fmax(1 - BETA * error, .5);
	c->credits = (float)fmin(fmax(credits, 1), CREDITS_MAX);
	c->updated = q->now;
}

const struct ovl_controller ovl_credits = {
	.name = "credits",
	.summary = "credits that follow the last wait (Breakwater)",
	.begin = credits_begin,
	.admit = credits_admit,
	.released = credits_released,
};
