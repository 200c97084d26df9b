/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Time and random numbers.  The same seed gives the same Hosts and arrivals.
 */

#include <math.h>
#include <time.h>

#include "loadgen.h"

static uint64_t rng = 88172645463325252ULL;

uint64_t
now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return ((uint64_t)ts.tv_sec * NS + (uint64_t)ts.tv_nsec);
}

void
seed(uint64_t n)
{

	rng ^= n * 0x9e3779b97f4a7c15;
	if (rng == 0)
		rng = 1;
}

/* Draw 64 bits: xorshift64. */
uint64_t
draw(void)
{

	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (rng);
}

/* Draw a number from 0 to below 1. */
double
fraction(void)
{

	return ((double)(draw() >> 11) / 9007199254740992.0);
}

/* Draw the ns to the next of `rate` arrivals a second (Poisson). */
uint64_t
exponential(double rate)
{

	return ((uint64_t)(-log(1.0 - fraction()) / rate * (double)NS));
}
