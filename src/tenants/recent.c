/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * See recent.h.
 */

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "recent.h"

#define ENDS	((REC_TENS + 1) * REC_SECONDS + 2)
#define MOST	((REC_TENS + 1) * REC_SECONDS)

double
WAIT_Quantile(const double count[WAITS], double q)
{
	double all = 0, below = 0, from = 0, to;
	unsigned i;

	for (i = 0; i < WAITS; i++)
		all += count[i];
	if (all <= 0)
		return (0);
	for (i = 0; i < WAITS - 1; i++) {
		to = (double)WAIT_Bound(i) * 1e-9;
		if (below + count[i] >= q * all && count[i] > 0)
			return (from +
			    (to - from) * (q * all - below) / count[i]);
		below += count[i];
		from = to;
	}
	return (from);
}

void
REC_Begin(struct rec_clock *c, int64_t now)
{

	c->n = 0;
	c->end[0] = now;
}

void
REC_Second(struct rec_clock *c, int64_t now)
{

	int64_t last = c->end[c->n % ENDS];

	c->n++;
	c->end[c->n % ENDS] = now > last ? now : last + 1;
}

/* Begin second n.  The first of a ten keeps the sums of the ten before. */
static void
begin(struct recent *r, unsigned n)
{
	float *sum = r->ten[n / REC_SECONDS % REC_TENS];
	unsigned s, i;

	if (n % REC_SECONDS == 0) {
		memset(sum, 0, sizeof r->ten[0]);
		for (s = 0; s < REC_SECONDS; s++)
			for (i = 0; i < REC__COUNTERS; i++)
				sum[i] += r->second[s][i];
	}
	memset(r->second[n % REC_SECONDS], 0, sizeof r->second[0]);
}

void
REC_Add(struct recent *r, const struct rec_clock *c,
    const uint64_t counter[REC__COUNTERS])
{
	int grew = memcmp(r->counter, counter, sizeof r->counter) != 0;
	float *second;
	unsigned i;

	assert(c->n > 0);
	if (!grew && r->still > MOST) {	/* all is 0 already */
		r->n = c->n;
		return;
	}
	if (c->n - r->n > MOST)
		r->n = c->n - MOST;
	for (; r->n < c->n; r->n++) {
		begin(r, r->n);
		r->still++;
	}
	if (!grew)
		return;
	r->still = 0;
	second = r->second[(c->n - 1) % REC_SECONDS];
	for (i = 0; i < REC__COUNTERS; i++)
		second[i] += (float)(counter[i] - r->counter[i]);
	memcpy(r->counter, counter, sizeof r->counter);
}

int64_t
REC_Last(const struct recent *r, const struct rec_clock *c, unsigned seconds,
    double grown[REC__COUNTERS])
{
	unsigned n = c->n, before, in_ten, take, s, i;
	int64_t span;

	/* The last second may be over, but not known to the tenant yet */
	if (r != NULL && r->n + 1 == n)
		n--;
	/* Seconds of the running ten; the last one may have completed it */
	in_ten = n == 0 ? 0 : (n - 1) % REC_SECONDS + 1;
	take = seconds <= REC_SECONDS ? seconds : in_ten;
	memset(grown, 0, REC__COUNTERS * sizeof *grown);
	for (s = 1; r != NULL && s <= take && s <= n; s++)
		for (i = 0; n - s < r->n && i < REC__COUNTERS; i++)
			grown[i] += (double)r->second[(n - s) %
			    REC_SECONDS][i];
	for (s = 0; r != NULL && seconds > REC_SECONDS && s < REC_TENS; s++)
		for (i = 0; i < REC__COUNTERS; i++)
			grown[i] += (double)r->ten[s][i];
	if (seconds > REC_SECONDS)
		take += REC_TENS * REC_SECONDS;
	before = n > take ? n - take : 0;
	span = c->end[n % ENDS] - c->end[before % ENDS];
	return (span > 0 ? span : 1);
}
