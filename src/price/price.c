/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * See price.h.
 *
 * A mean follows its sum with a time constant of about MEMORY.  The weight of
 * the old mean is a fraction, since an exponential function is too slow for
 * each request.  The least cost is that of two windows of a second, since the
 * minimum of a sliding window would need a list.
 */

#include <assert.h>
#include <math.h>
#include <stddef.h>

#include "price.h"

#define SECOND		INT64_C(1000000000)	/* ns */
#define MEMORY		(SECOND / 20)
#define QUEUE_MOST	INT64_C(1000000000000000)	/* 9000 of them cannot
							 * overflow a sum */
#define LEAN_STEP	.1		/* at most, in one call */
#define LOW		.25		/* parts of the buffer: no congestion */
#define HIGH		.75		/* P_HIGH */
#define P_HIGH		.1

/* Return a queue, in bounds. */
static int64_t
bounded(int64_t queue)
{

	if (queue < 0)
		return (0);
	return (queue < QUEUE_MOST ? queue : QUEUE_MOST);
}

/* Return the mean of a queue now. */
static double
mean_now(const struct price *p, enum rel_resource r, int64_t now)
{
	double q = (double)p->queue[r], since = fmax(0, (double)(now - p->set));

	return (q + (p->mean[r] - q) * MEMORY / (MEMORY + since));
}

static void
note_cost(struct price *p, enum rel_resource r, int64_t cost)
{

	if (cost > 0 && (p->least[r][0] == 0 || cost < p->least[r][0]))
		p->least[r][0] = cost;
}

/* If the second is over, begin another one. */
static void
turn_second(struct price *p, int64_t now)
{
	int64_t age = now - p->second;
	int r;

	if (age < SECOND)
		return;
	for (r = 0; r < REL__RESOURCES; r++) {
		p->least[r][1] = age < 2 * SECOND ? p->least[r][0] : 0;
		p->least[r][0] = 0;
	}
	p->second = now;
}

void
PRICE_Set(struct price *p, struct price_part *part,
    const int64_t queue[REL__RESOURCES], const int64_t cost[REL__RESOURCES],
    int64_t now)
{
	int64_t q;
	int r;

	turn_second(p, now);
	for (r = 0; r < REL__RESOURCES; r++) {
		q = bounded(queue[r]);
		if (q > 0)
			note_cost(p, r, cost[r]);
		p->mean[r] = mean_now(p, r, now);
		p->queue[r] += q - part->queue[r];
		part->queue[r] = q;
		assert(p->queue[r] >= 0);
	}
	if (now > p->set)
		p->set = now;
}

double
PRICE_Congestion(const struct price *p, enum rel_resource r, int64_t buffer,
    int64_t now)
{
	double part;

	assert(buffer > 0);
	part = mean_now(p, r, now) / (double)buffer;
	if (part < LOW)
		return (0);
	if (part < HIGH)
		return (P_HIGH * (part - LOW) / (HIGH - LOW));
	return (P_HIGH + (1 - P_HIGH) * (part - HIGH) / HIGH);
}

double
PRICE_Lean(struct price *p, double net, double cpu, int64_t now)
{
	double step = (double)(now - p->leaned) / SECOND;

	step = fmax(0, fmin(step, LEAN_STEP));
	if (now > p->leaned)
		p->leaned = now;
	if (net > 0 || cpu > 0)
		p->lean += step * (net - cpu) / fmax(net, cpu);
	else				/* back to 0 */
		p->lean -= fmax(-step, fmin(p->lean, step));
	p->lean = fmax(-1, fmin(p->lean, 1));
	return (p->lean);
}

double
PRICE_Of(const struct price *p, enum rel_resource r, int64_t cost,
    int64_t buffer, int64_t now)
{
	const int64_t *least = p->least[r];
	int64_t l = least[0];

	if (l == 0 || (least[1] > 0 && least[1] < l))
		l = least[1];
	if (l == 0)
		return (PRICE_Congestion(p, r, buffer, now));
	return (PRICE_Congestion(p, r, buffer, now) *
	    fmax(0, (double)cost) / (double)l);
}
