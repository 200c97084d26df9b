/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * A limit of the queue that follows the gradient of the waits, by the rule of
 * Envoy's adaptive concurrency:
 *
 *	limit = limit x (wanted / measured)
 *	limit = limit + sqrt(limit)
 *
 * Envoy compares the response time with the shortest one that it measured.
 * The shortest wait in a queue is 0.  So here the standing limit is wanted, and
 * the mean wait of a window is measured.
 */

#include <math.h>

#include "controller.h"

#define WINDOW		(100 * OVL_MS)
#define GRADIENT_MIN	.5		/* Envoy's */
#define GRADIENT_MAX	2.
#define LIMIT_MAX	1000.		/* requests; also at the start */

static void
gradient_begin(struct ovl *o, const struct ovl_queue *q)
{

	o->gradient.began = q->now;
	o->gradient.limit = (float)LIMIT_MAX;
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
	limit *= fmin(fmax(change, GRADIENT_MIN), GRADIENT_MAX);
	limit += sqrt(limit);
	g->limit = (float)fmin(fmax(limit, 1), LIMIT_MAX);
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
