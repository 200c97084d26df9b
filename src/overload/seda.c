/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * SEDA's controller: M. Welsh, "An Architecture for Highly Concurrent,
 * Well-Conditioned Internet Services", 2002, chapter 7, section 2.1.
 *
 * A token bucket admits.  After NREQ releases or TIMEOUT, the 90th percentile
 * of the waits is smoothed and compared with the target.  Above it, the rate of
 * the bucket is divided by ADJ_D.  Below half of it, the rate rises in
 * proportion to the error.  The constants are those of the thesis' Figure 50.
 *
 * `seda-scaled` differs in one thing: the rate rises by parts of itself.  In
 * the thesis it rises by at most 1.8 requests/s each time, and ends at 5000.
 *
 * The thesis does not say how many tokens the bucket holds, nor the rate at the
 * start.  Here it holds DEPTH, and begins with the largest rate.
 */

#include <math.h>

#include "controller.h"

#define NREQ		100		/* releases */
#define TIMEOUT		(1000 * OVL_MS)
#define ALPHA		.7		/* weight of the old value */
#define ERR_I		(-.5)		/* rise below, and */
#define ERR_D		0.		/* fall above this error */
#define ADJ_I		2.		/* requests/s */
#define ADJ_D		1.2
#define C_I		(-.1)
#define RATE_MIN	.05		/* requests/s */
#define RATE_MAX	5000.
#define DEPTH		10.		/* tokens */

#define SCALED_PART	.01		/* a step is this part of the rate, for
						 * one request/s in the thesis */
#define SCALED_MAX	1e6		/* requests/s */

static void
seda_fill(struct ovl_seda *s, int64_t now)
{
	double more = (double)(now - s->filled) / OVL_SECOND * (double)s->rate;

	s->tokens = (float)fmin(DEPTH, (double)s->tokens + fmax(0, more));
	s->filled = now;
}

/* If it is time, set the rate. */
static void
seda_control(struct ovl_seda *s, const struct ovl_queue *q)
{
	double err, rate = (double)s->rate;
	double unit = s->scaled ? SCALED_PART * rate : 1;

	if (s->waits.n < NREQ && q->now - s->began < TIMEOUT)
		return;
	s->began = q->now;
	if (s->waits.n == 0 && q->waiting > 0)	/* nothing moves */
		return;
	s->p90 = (float)(ALPHA * (double)s->p90 +
	    (1 - ALPHA) * histogram_part(&s->waits, .9));
	err = ((double)s->p90 - (double)q->target) / (double)q->target;
	if (err > ERR_D)
		rate /= ADJ_D;
	else if (err < ERR_I)
		rate += unit * ADJ_I * -(err - C_I);
	s->rate = (float)fmin(fmax(rate, RATE_MIN),
	    s->scaled ? SCALED_MAX : RATE_MAX);
	s->waits = (struct histogram){ .n = 0 };
}

static void
seda_start(struct ovl_seda *s, const struct ovl_queue *q, int scaled)
{

	s->scaled = scaled;
	s->began = s->filled = q->now;
	s->rate = (float)(scaled ? SCALED_MAX : RATE_MAX);
	s->tokens = (float)DEPTH;
}

static void
seda_begin(struct ovl *o, const struct ovl_queue *q)
{

	seda_start(&o->seda, q, 0);
}

static void
scaled_begin(struct ovl *o, const struct ovl_queue *q)
{

	seda_start(&o->seda, q, 1);
}

static int
seda_admit(struct ovl *o, const struct ovl_queue *q)
{
	struct ovl_seda *s = &o->seda;

	seda_control(s, q);
	seda_fill(s, q->now);
	if (s->tokens < 1)
		return (0);
	s->tokens--;
	return (1);
}

static void
seda_released(struct ovl *o, const struct ovl_queue *q, int64_t wait)
{

	histogram_add(&o->seda.waits, wait);
	seda_control(&o->seda, q);
}

const struct ovl_controller ovl_seda = {
	.name = "seda",
	.summary = "a token bucket whose rate follows the waits (SEDA)",
	.begin = seda_begin,
	.admit = seda_admit,
	.released = seda_released,
};

const struct ovl_controller ovl_seda_scaled = {
	.name = "seda-scaled",
	.summary = "the same, with steps in proportion to the rate",
	.begin = scaled_begin,
	.admit = seda_admit,
	.released = seda_released,
};
