/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The curve of curve.h.  The requests of a bin count as spread over its times
 * evenly.  So between the ends of a bin, hits and bytes are interpolated.
 */

#include <math.h>

#include "curve.h"

#define ADJUST		2.	/* at most: twice or half of the requests */

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
CURVE_Add(struct curve *c, double reuse, double bytes, double weight,
    double now)
{
	unsigned bin;

	if (!(c->ever > 0))
		c->since = now - weight;
	c->ever += weight;
	c->time = now - c->since;
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
CURVE_End(struct curve *c, double now)
{
	unsigned bin;

	if (!(c->ever > 0))
		return;
	for (bin = 0; bin < CURVE_BINS; bin++) {
		c->requests[bin] /= 2;
		c->bytes[bin] /= 2;
	}
	c->new_requests /= 2;
	c->new_bytes /= 2;
	c->time = (now - c->since) / 2;
	c->since = now - c->time;
}

/* Return the bytes of all requests, and *requests. */
static double
all_of(const struct curve *c, double *requests)
{
	double bytes = c->new_bytes;
	unsigned bin;

	*requests = c->new_requests;
	for (bin = 0; bin < CURVE_BINS; bin++) {
		*requests += (double)c->requests[bin];
		bytes += (double)c->bytes[bin];
	}
	return (bytes);
}

/* In this bin the bytes that are asked for later fall from `left`.  Return how
 * many bytes come into a cache per request, on average. */
static double
filling(const struct curve *c, unsigned bin, double left)
{

	return (fmax(0, left - (double)c->bytes[bin] / 2) / c->time);
}

void
CURVE_Adjust(struct curve *c, double ever)
{
	double all, more, less;
	unsigned bin;

	(void)all_of(c, &all);
	if (!(c->ever > 0) || !(ever > 0))
		return;
	more = all * (fmin(fmax(ever / c->ever, 1 / ADJUST), ADJUST) - 1);
	if (more > 0)
		c->requests[0] += (float)more;
	for (bin = 0; bin < CURVE_BINS && more < 0; bin++) {
		less = fmin(-more, (double)c->requests[bin]);
		c->requests[bin] -= (float)less;
		more += less;
	}
}

double
CURVE_Hits(const struct curve *c, double bytes)
{
	double all, left = all_of(c, &all), hits = 0, held = 0, more, part;
	unsigned bin;

	if (!(all > 0) || !(c->time > 0))
		return (NAN);
	for (bin = 0; bin < CURVE_BINS && left > 0; bin++) {
		more = filling(c, bin, left) * (begins(bin + 1) - begins(bin));
		part = more > 0 ? fmin(1, (bytes - held) / more) : 1;
		hits += part * (double)c->requests[bin];
		if (part < 1)
			break;
		held += more;
		left -= (double)c->bytes[bin];
	}
	return (hits / all);
}

double
CURVE_Fills(const struct curve *c)
{
	double all, left = all_of(c, &all), held = 0, end;
	unsigned bin;

	for (bin = 0; bin < CURVE_BINS && begins(bin) < CURVE_LONG * c->time;
	    bin++) {
		end = fmin(begins(bin + 1), CURVE_LONG * c->time);
		held += filling(c, bin, left) * (end - begins(bin));
		left -= (double)c->bytes[bin];
	}
	return (held);
}
