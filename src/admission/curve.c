/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The curve of curve.h.  The requests of a bin count as spread over its times
 * evenly.  So between the ends of a bin, hits and bytes are interpolated.
 */

#include <math.h>

#include "curve.h"

/* Return where a bin begins, in requests. */
static double
begins(unsigned bin)
{

	return (bin == 0 ? 0 : exp2(CURVE_FIRST + (double)bin / CURVE_STEPS));
}

static unsigned
bin_of(double reuse)
{
	double bin = (log2(reuse) - CURVE_FIRST) * CURVE_STEPS;

	return (bin < 1 ? 0 : bin < CURVE_BINS ? (unsigned)bin :
	    CURVE_BINS - 1);
}

void
CURVE_Add(struct curve *c, double reuse, double bytes, double weight)
{
	unsigned bin;

	c->used = 1;
	if (isinf(reuse)) {
		c->new_requests += weight;
		c->new_bytes += weight * bytes;
		return;
	}
	bin = bin_of(reuse);
	c->requests[bin] += (float)weight;
	c->bytes[bin] += (float)(weight * bytes);
}

void
CURVE_End(struct curve *c, double requests)
{
	unsigned bin;

	if (!c->used)
		return;
	for (bin = 0; bin < CURVE_BINS; bin++) {
		c->requests[bin] /= 2;
		c->bytes[bin] /= 2;
	}
	c->new_requests /= 2;
	c->new_bytes /= 2;
	c->time = (c->time + requests) / 2;
}

double
CURVE_Hits(const struct curve *c, double bytes)
{
	double all = c->new_requests, left = c->new_bytes, hits = 0, held = 0;
	double more, part;
	unsigned bin;

	for (bin = 0; bin < CURVE_BINS; bin++) {
		all += (double)c->requests[bin];
		left += (double)c->bytes[bin];
	}
	if (!(all > 0) || !(c->time > 0))
		return (NAN);
	for (bin = 0; bin < CURVE_BINS && left > 0; bin++) {
		/* In this bin `left` falls to what is asked for later */
		more = (left - (double)c->bytes[bin] / 2) *
		    (begins(bin + 1) - begins(bin)) / c->time;
		part = more > 0 ? fmin(1, (bytes - held) / more) : 1;
		hits += part * (double)c->requests[bin];
		if (part < 1)
			break;
		held += more;
		left -= (double)c->bytes[bin];
	}
	return (hits / all);
}
