/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The time, random numbers, and what the window counts.
 */

#define _GNU_SOURCE
#include "loadgen.h"

uint64_t
now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return ((uint64_t)ts.tv_sec * NS + (uint64_t)ts.tv_nsec);
}

/* xorshift64: the same seed gives the same hosts and arrivals */
uint64_t
draw(void)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (rng);
}

uint64_t
exponential(double rate)
{
	double u = (double)(draw() >> 11) / 9007199254740992.0;

	return ((uint64_t)(-log(1.0 - u) / rate * (double)NS));
}

uint64_t
seconds_on(double s)
{

	return (t_start + (uint64_t)(s * (double)NS));
}

int
in_window(const struct group *g, uint64_t now)
{
	if (now < t_window || now >= t_end)
		return (0);
	if (g->till > 0)
		return (now >= seconds_on(g->from) + settle &&
		    now < seconds_on(g->till));
	if (g->phase < 0)
		return (1);
	return (phase == (unsigned)g->phase &&
	    (now - t_start) % phase_len >= settle);
}

/* Asked when it counts, whenever the answer comes */
int
asked_in_window(const struct conn *c, uint64_t now)
{
	const struct group *g = c->group;

	return (in_window(g, g->till > 0 ? c->asked : now));
}

int
is_over(const struct group *g, uint64_t now)
{

	return (g->till > 0 && now >= seconds_on(g->till));
}

int
loads(const struct group *g)
{
	return (!draining && !g->resting &&
	    (g->phase < 0 || phase == (unsigned)g->phase));
}

/* Is it to be answered? */
int
well_behaved(const struct group *g)
{
	return (g->mode == CLOSED || g->mode == PACED || g->mode == OPEN ||
	    g->mode == PIPE || (g->mode == H2 && g->window > 0));
}

void
note_latency(struct group *g, uint64_t ns)
{
	uint64_t us = ns / 1000;

	if (g->nlat == g->alat) {
		g->alat = g->alat ? g->alat * 2 : 65536;
		g->lat = realloc(g->lat, g->alat * sizeof *g->lat);
		assert(g->lat != NULL);
	}
	g->lat[g->nlat++] = us > UINT32_MAX ? UINT32_MAX : (uint32_t)us;
}
