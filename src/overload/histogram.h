/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * A histogram of up to 255 waits: four bins per octave, from 66 us to 17 s.
 * What is shorter or longer is in the first or last bin.
 */

#ifndef OVERLOAD_HISTOGRAM_H_INCLUDED
#define OVERLOAD_HISTOGRAM_H_INCLUDED

#include <assert.h>
#include <stdint.h>

#define HISTOGRAM_BINS	72
#define HISTOGRAM_FIRST	16		/* the octave of the first bin, ns */

struct histogram {
	uint8_t			bin[HISTOGRAM_BINS];
	uint8_t			n;
};

/* Return where a bin begins, ns. */
static inline int64_t
histogram_begins(unsigned bin)
{
	int64_t octave = INT64_C(1) << (HISTOGRAM_FIRST + bin / 4);

	return (bin == 0 ? 0 : octave + octave / 4 * (bin % 4));
}

static inline void
histogram_add(struct histogram *h, int64_t wait)
{
	unsigned octave, bin = 0;

	assert(h->n < UINT8_MAX);
	if (wait >= INT64_C(1) << HISTOGRAM_FIRST) {
		octave = 63U - (unsigned)__builtin_clzll((uint64_t)wait);
		bin = 4 * (octave - HISTOGRAM_FIRST) +
		    (unsigned)(wait >> (octave - 2) & 3);
	}
	h->bin[bin < HISTOGRAM_BINS ? bin : HISTOGRAM_BINS - 1]++;
	h->n++;
}

/* Return the wait below which this part of the waits is, ns, or 0 if there are
 * none.  The waits of a bin count as spread over it evenly. */
static inline double
histogram_part(const struct histogram *h, double part)
{
	double left = part * h->n, low, high;
	unsigned bin;

	if (h->n == 0)
		return (0);
	for (bin = 0; bin < HISTOGRAM_BINS - 1 && left > h->bin[bin]; bin++)
		left -= h->bin[bin];
	low = (double)histogram_begins(bin);
	high = (double)histogram_begins(bin + 1);
	return (h->bin[bin] == 0 ? low :
	    low + (high - low) * left / h->bin[bin]);
}

#endif
