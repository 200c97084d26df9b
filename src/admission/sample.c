/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The sample of sample.h: a table of objects, and the cells of a window.
 *
 * A cell has the objects of a quarter octave of sizes, an eighth octave of
 * rates, and a class of requests before the window.
 */

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sample.h"

#define SIZES		(40 * 4)	/* up to 2^40 bytes */
#define RATES		(32 * 8)	/* from 2^-4 to 2^28 requests */
#define LEAST_RATE	-4.		/* octaves */
#define HISTORIES	4

static void
sample_assert(const struct sample *s)
{

	assert(s != NULL && s->magic == SAMPLE_MAGIC);
}

int
SAMPLE_Init(struct sample *s, unsigned shift, uint32_t objects)
{

	assert(shift < 64);
	memset(s, 0, sizeof *s);
	s->cell = calloc((size_t)SIZES * RATES * HISTORIES, sizeof *s->cell);
	if (s->cell == NULL)
		return (-1);
	if (CHAIN_Init(s->table, objects, sizeof(struct sample_object)) != 0) {
		free(s->cell);
		return (-1);
	}
	s->magic = SAMPLE_MAGIC;
	s->shift = s->least_shift = shift;
	return (0);
}

void
SAMPLE_Fini(struct sample *s)
{

	sample_assert(s);
	CHAIN_Fini(s->table);
	free(s->cell);
	memset(s, 0, sizeof *s);
}

/*--------------------------------------------------------------------
 * The table
 */

static uint64_t
bytes_of(const struct sample_object *o)
{

	return ((uint64_t)o->size * SAMPLE_UNIT);
}

/* Halve the bounds of sample.h.  Objects that are above them now leave. */
static void
thin(struct sample *s)
{
	struct sample_object *o = NULL;

	assert(s->shift < 63);
	s->shift++;
	while ((o = CHAIN_Next(s->table, o)) != NULL)
		if (!SAMPLE_Has(s->shift, o->chained.digest, bytes_of(o)))
			CHAIN_Remove(s->table, o);
}

struct sample_seen
SAMPLE_Add(struct sample *s, uint64_t digest, uint64_t bytes)
{
	struct sample_seen seen = { 1, INFINITY };
	struct sample_object *o;
	uint64_t units = bytes / SAMPLE_UNIT + (bytes % SAMPLE_UNIT > 0);

	sample_assert(s);
	while (s->table->used == s->table->room)
		thin(s);
	if (!SAMPLE_Has(s->shift, digest, bytes))
		return (seen);
	o = CHAIN_Find(s->table, digest);
	if (o == NULL)
		o = CHAIN_Add(s->table, digest);
	o->size = units < UINT32_MAX ? (uint32_t)units : UINT32_MAX;
	o->requests += o->requests < UINT32_MAX;
	s->clock += UINT64_C(1) << SAMPLE_Shift(s->shift, bytes);
	seen.f = fmaxf(1, (float)o->requests + o->rate);
	if (o->last > 0)
		seen.reuse = (double)(s->clock - o->last);
	o->last = s->clock;
	return (seen);
}

/*--------------------------------------------------------------------
 * The end of a window
 */

/* Return the index of x, octaves, on a scale that begins at `from`. */
static size_t
step_of(double octaves, double from, unsigned per_octave, size_t n)
{
	double step = floor((octaves - from) * per_octave);

	return (step < 0 ? 0 : step < (double)n ? (size_t)step : n - 1);
}

static size_t
history_of(float before)
{

	return (before <= 0 ? 0 : before < 1 ? 1 : before < 4 ? 2 : 3);
}

static size_t
cell_of(const struct sample_object *o, float rate)
{
	double bytes = fmax(1, (double)bytes_of(o));

	return ((step_of(log2(bytes), 0, 4, SIZES) * RATES +
	    step_of(log2((double)rate), LEAST_RATE, 8, RATES)) * HISTORIES +
	    history_of(o->rate));
}

/*
 * Add an object to its cell.  rate: its new one.  If there are SAMPLE_CELLS
 * cells already, it is added to the last one that was made.  Returns how many
 * there are now.
 */
static size_t
add(struct sample *s, const struct sample_object *o, float rate,
    struct adm_cell *cell, size_t n)
{
	uint16_t *index = &s->cell[cell_of(o, rate)];
	struct adm_cell *k;

	if (*index == 0 && n < SAMPLE_CELLS) {
		memset(&cell[n], 0, sizeof *cell);
		*index = (uint16_t)++n;
	}
	k = &cell[*index == 0 ? n - 1 : *index - 1U];
	k->objects++;
	k->size += (double)bytes_of(o);
	k->rate += (double)rate;
	k->requests += o->requests;
	k->before += (double)o->rate;
	return (n);
}

/* Turn the sums of a cell into means. */
static void
settle(const struct sample *s, struct adm_cell *k)
{

	k->size /= k->objects;
	k->rate /= k->objects;
	k->requests /= k->objects;
	k->before /= k->objects;
	k->objects = ldexp(k->objects, (int)SAMPLE_Shift(s->shift,
	    (uint64_t)k->size));
}

size_t
SAMPLE_End(struct sample *s, struct adm_cell *cell)
{
	struct sample_object *o = NULL;
	size_t n = 0, i;
	float rate;

	sample_assert(s);
	memset(s->cell, 0, (size_t)SIZES * RATES * HISTORIES *
	    sizeof *s->cell);
	while ((o = CHAIN_Next(s->table, o)) != NULL) {
		rate = (float)o->requests;
		if (o->rate > 0)
			rate = .7f * rate + .3f * o->rate;
		if (rate < SAMPLE_LEAST) {
			CHAIN_Remove(s->table, o);
			continue;
		}
		n = add(s, o, rate, cell, n);
		o->rate = rate;
		o->requests = 0;
	}
	for (i = 0; i < n; i++)
		settle(s, &cell[i]);
	if (s->table->used < s->table->room / 4 && s->shift > s->least_shift)
		s->shift--;
	return (n);
}
