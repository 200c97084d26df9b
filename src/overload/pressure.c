/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * See pressure.h.
 *
 * A window has 100 requests and lasts 0.1 s, or lasts 1 s.  Within 0.1 s the
 * queue shows what the last change did.  If more than a tenth of its requests
 * have a part above SLOW, the quality is halved.  If nine tenths have a part
 * below FAST, it rises by STEP.  So the 90th percentile decides.
 */

#include <math.h>

#include "pressure.h"

#define NEW		(1. / 16)	/* weight of a request in the mean */
#define SLOW		1.1		/* parts of the target */
#define FAST		.8
#define STEP		.01

/* Return the weight of what is older than `now`. */
static double
faded(const struct ovl_pressure *p, int64_t now)
{
	double idle = fmax(0, (double)(now - p->last));

	return (PRESSURE_SECOND / (PRESSURE_SECOND + idle));
}

/* Return the quality's loss after the seconds without a request. */
static double
lost(const struct ovl_pressure *p, int64_t now)
{
	double idle = fmax(0, (double)(now - p->last)) / PRESSURE_SECOND;

	return (fmax(0, (double)p->lost - STEP * floor(idle)));
}

/* Does a window of this age, ns, end? */
static int
ends(const struct ovl_pressure *p, int64_t age)
{

	return (age >= PRESSURE_SECOND || (age >= PRESSURE_SECOND / 10 &&
	    p->n >= PRESSURE_WINDOW));
}

void
OVL_Pressed(struct ovl_pressure *p, int64_t now, double part)
{
	double old = (1 - NEW) * faded(p, now);

	p->mean = (float)(old * (double)p->mean +
	    (1 - old) * fmin(1, fmax(0, part)));
	p->lost = (float)lost(p, now);
	if (now - p->last >= PRESSURE_SECOND)	/* the window is too old */
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
		p->lost = (float)(1 - (1 - (double)p->lost) / 2);
	else if (p->fast * 10 >= p->n * 9)
		p->lost = (float)fmax(0, (double)p->lost - STEP);
	p->n = p->slow = p->fast = 0;
}

double
OVL_Pressure(const struct ovl_pressure *p, int64_t now)
{

	return ((double)p->mean * faded(p, now));
}

double
OVL_Quality(const struct ovl_pressure *p, int64_t now)
{

	return (1 - lost(p, now));
}
