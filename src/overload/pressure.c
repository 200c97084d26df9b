/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * See pressure.h.
 *
 * A window ends after at least 0.1 s and 100 requests, or else after 1 s.  It is
 * not shorter, since a change of the quality needs that long to show in the
 * queue.  If more than a tenth of its requests are above SLOW, the quality is
 * halved.  If at least nine tenths are below FAST, the quality rises by STEP.
 * Otherwise it does not change.  So the 90th percentile decides.
 */

#include <math.h>

#include "pressure.h"

#define NEW		(1. / 16)	/* weight of a request in the mean */
#define SLOW		1.1		/* parts of the target */
#define FAST		.8
#define STEP		.01
#define REQUESTS	100U
#define SECOND		INT64_C(1000000000)	/* ns */

/* Return the weight of the old mean: 1 at once, 1/2 after 1 s without a
 * request. */
static double
old_weight(const struct ovl_pressure *p, int64_t now)
{
	double idle = fmax(0, (double)(now - p->last));

	return (SECOND / (SECOND + idle));
}

/* Return 1 - quality.  It falls by STEP in each second without a request. */
static double
lost_now(const struct ovl_pressure *p, int64_t now)
{
	double idle = fmax(0, (double)(now - p->last)) / SECOND;

	return (fmax(0, p->lost - STEP * floor(idle)));
}

/* Does a window of this age, ns, end? */
static int
ends(const struct ovl_pressure *p, int64_t age)
{

	return (age >= SECOND || (age >= SECOND / 10 && p->n >= REQUESTS));
}

void
OVL_Pressed(struct ovl_pressure *p, int64_t now, double part)
{
	double old = (1 - NEW) * old_weight(p, now);

	p->mean = old * p->mean + (1 - old) * fmin(1, fmax(0, part));
	p->lost = lost_now(p, now);
	if (now - p->last >= SECOND)	/* what is older says nothing now */
		p->n = p->slow = p->fast = 0;
	p->last = now;
	if (p->n == 0)
		p->began = now;
	p->n++;
	p->slow += part > SLOW;
	p->fast += part < FAST;
	if (!ends(p, now - p->began))
		return;
	if (p->slow * 10 > p->n)
		p->lost = 1 - (1 - p->lost) / 2;
	else if (p->fast * 10 >= p->n * 9)
		p->lost = fmax(0, p->lost - STEP);
	p->n = p->slow = p->fast = 0;
}

double
OVL_Pressure(const struct ovl_pressure *p, int64_t now)
{

	return (p->mean * old_weight(p, now));
}

double
OVL_Quality(const struct ovl_pressure *p, int64_t now)
{

	return (1 - lost_now(p, now));
}
