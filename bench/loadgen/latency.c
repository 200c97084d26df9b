/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Latencies: kept in microseconds, one by one, so that quantiles are exact.
 */

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen.h"

#define ROOM	65536	/* latencies; doubled when they are full */

static void
make_room(struct latencies *l, size_t more)
{

	if (l->n + more <= l->room)
		return;
	while (l->room < l->n + more)
		l->room = l->room > 0 ? l->room * 2 : ROOM;
	l->us = realloc(l->us, l->room * sizeof *l->us);
	assert(l->us != NULL);
}

void
latencies_add(struct latencies *l, uint64_t ns)
{
	uint64_t us = ns / 1000;

	make_room(l, 1);
	l->us[l->n++] = us > UINT32_MAX ? UINT32_MAX : (uint32_t)us;
}

/* Add those of `of` from its `from`-th on. */
void
latencies_copy(struct latencies *l, const struct latencies *of, size_t from)
{
	size_t n = of->n - from;

	if (n == 0)
		return;
	make_room(l, n);
	memcpy(l->us + l->n, of->us + from, n * sizeof *l->us);
	l->n += n;
}

static int
cmp_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return ((x > y) - (x < y));
}

void
latencies_sort(struct latencies *l)
{

	if (l->n > 0)
		qsort(l->us, l->n, sizeof *l->us, cmp_u32);
}

/* Return their mean in seconds, 0 if there are none. */
double
latencies_mean(const struct latencies *l)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < l->n; i++)
		sum += l->us[i];
	return (l->n > 0 ? sum / (double)l->n / 1e6 : 0);
}

/* Return a quantile of sorted latencies in seconds, 0 if there are none. */
double
latencies_quantile(const struct latencies *l, double q)
{
	size_t i = (size_t)ceil(q * (double)l->n);

	if (l->n == 0)
		return (0);
	return (l->us[i > 0 ? i - 1 : 0] / 1e6);
}
