/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * A limit of the queue that follows the gradient of the waits, as Envoy's
 * adaptive concurrency and Netflix' concurrency-limits do:
 *
 *	limit = limit x (wanted / measured) + sqrt(limit)
 *
 * Both compare a response time with the least one that they saw.  The least
 * wait in a queue is 0.  So here the standing limit is what is wanted.
 */

#include <math.h>

#include "controller.h"

#define WINDOW		(100 * OVL_MS)
#define LEAST		.5		/* of the gradient; Envoy's bounds */
#define MOST		2.
#define FIRST		1000.		/* limit at the start, requests */

static void
gradient_begin(struct ovl *o, const struct ovl_queue *q)
{

	o->gradient.began = q->now;
	o->gradient.limit = (float)FIRST;
}

static int
gradient_admit(struct ovl *o, const struct ovl_queue *q)
{

	return ((float)q->waiting < o->gradient.limit);
}

static void
gradient_released(struct ovl *o, const struct ovl_queue *q, int64_t wait)
{
	struct ovl_gradient *g = &o->gradient;
	double change, limit = (double)g->limit;

	g->sum += (double)wait;
	g->n++;
	if (q->now - g->began < WINDOW)
		return;
	change = (double)q->standing / fmax(g->sum / g->n, 1);
	limit = limit * fmin(fmax(change, LEAST), MOST) + sqrt(limit);
	g->limit = (float)fmin(fmax(limit, 1), FIRST);
	g->began = q->now;
	g->sum = 0;
	g->n = 0;
}

const struct ovl_controller ovl_gradient = {
	.name = "gradient",
	.summary = "a limit of the queue that follows its mean wait (Envoy)",
	.begin = gradient_begin,
	.admit = gradient_admit,
	.released = gradient_released,
};
