/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The sample of sample.h: a hash table of objects, chained by index, and the
 * cells of a window.
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
	uint32_t u;

	assert(shift < 64 && objects > 0 && (objects & (objects - 1)) == 0);
	memset(s, 0, sizeof *s);
	s->magic = SAMPLE_MAGIC;
	s->shift = s->least_shift = shift;
	s->room = objects;
	s->bucket = calloc(objects, sizeof *s->bucket);
	s->object = calloc(objects, sizeof *s->object);
	s->cell = calloc((size_t)SIZES * RATES * HISTORIES, sizeof *s->cell);
	if (s->bucket == NULL || s->object == NULL || s->cell == NULL) {
		SAMPLE_Fini(s);
		return (-1);
	}
	for (u = 0; u < objects; u++)
		s->object[u].next = u + 1 < objects ? u + 2 : 0;
	s->free = 1;
	return (0);
}

void
SAMPLE_Fini(struct sample *s)
{

	sample_assert(s);
	free(s->bucket);
	free(s->object);
	free(s->cell);
	memset(s, 0, sizeof *s);
}

/*--------------------------------------------------------------------
 * The table
 */

/* Return the bucket of a digest.  The digest's upper bits are those of the
 * sample. */
static uint32_t *
bucket(const struct sample *s, uint64_t digest)
{

	return (&s->bucket[digest & (s->room - 1)]);
}

/* Take the object that *link has out of its bucket. */
static void
take_out(struct sample *s, uint32_t *link)
{
	uint32_t at = *link;
	struct sample_object *o = &s->object[at - 1];

	*link = o->next;
	o->next = s->free;
	s->free = at;
	s->used--;
}

static uint64_t
bytes_of(const struct sample_object *o)
{

	return ((uint64_t)o->size * SAMPLE_UNIT);
}

/* Halve the sample. */
static void
thin(struct sample *s)
{
	struct sample_object *o;
	uint32_t u, *link;

	assert(s->shift < 63);
	s->shift++;
	for (u = 0; u < s->room; u++)
		for (link = &s->bucket[u]; *link != 0;) {
			o = &s->object[*link - 1];
			if (SAMPLE_Has(s->shift, o->digest, bytes_of(o)))
				link = &o->next;
			else
				take_out(s, link);
		}
}

static struct sample_object *
put_in(struct sample *s, uint64_t digest)
{
	struct sample_object *o;
	uint32_t at, *link = bucket(s, digest);

	at = s->free;
	o = &s->object[at - 1];
	s->free = o->next;
	s->used++;
	memset(o, 0, sizeof *o);
	o->digest = digest;
	o->next = *link;
	*link = at;
	return (o);
}

struct sample_seen
SAMPLE_Add(struct sample *s, uint64_t digest, uint64_t bytes)
{
	struct sample_seen seen = { 1, INFINITY };
	struct sample_object *o = NULL;
	uint64_t units = bytes / SAMPLE_UNIT + (bytes % SAMPLE_UNIT > 0);
	uint32_t at;

	sample_assert(s);
	while (s->used == s->room)
		thin(s);
	if (!SAMPLE_Has(s->shift, digest, bytes))
		return (seen);
	for (at = *bucket(s, digest); at != 0; at = o->next) {
		o = &s->object[at - 1];
		if (o->digest == digest)
			break;
	}
	if (at == 0)
		o = put_in(s, digest);
	o->size = units < UINT32_MAX ? (uint32_t)units : UINT32_MAX;
	o->requests += o->requests < UINT32_MAX;
	s->now += UINT64_C(1) << SAMPLE_Shift(s->shift, bytes);
	seen.f = fmaxf(1, (float)o->requests + o->before);
	if (o->last > 0)
		seen.reuse = (double)(s->now - o->last);
	o->last = s->now;
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
cell_of(const struct sample_object *o)
{
	double bytes = fmax(1, (double)bytes_of(o));

	return ((step_of(log2(bytes), 0, 4, SIZES) * RATES +
	    step_of(log2((double)o->rate), LEAST_RATE, 8, RATES)) * HISTORIES +
	    history_of(o->before));
}

/*
 * Add an object to its cell.  If there are SAMPLE_CELLS cells already, it is
 * added to the last one that was made.  Returns how many there are now.
 */
static size_t
add(struct sample *s, const struct sample_object *o, struct adm_cell *cell,
    size_t n)
{
	uint16_t *index = &s->cell[cell_of(o)];
	struct adm_cell *k;

	if (*index == 0 && n < SAMPLE_CELLS) {
		memset(&cell[n], 0, sizeof *cell);
		*index = (uint16_t)++n;
	}
	k = &cell[*index == 0 ? n - 1 : *index - 1U];
	k->objects++;
	k->size += (double)bytes_of(o);
	k->rate += (double)o->rate;
	k->requests += o->requests;
	k->before += (double)o->before;
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
	struct sample_object *o;
	uint32_t u, *link;
	size_t n = 0, i;
	float requests;

	sample_assert(s);
	memset(s->cell, 0, (size_t)SIZES * RATES * HISTORIES *
	    sizeof *s->cell);
	for (u = 0; u < s->room; u++)
		for (link = &s->bucket[u]; *link != 0;) {
			o = &s->object[*link - 1];
			requests = (float)o->requests;
			o->rate = o->rate > 0 ? .7f * requests + .3f * o->rate :
			    requests;
			if (o->rate < SAMPLE_LEAST) {
				take_out(s, link);
				continue;
			}
			n = add(s, o, cell, n);
			o->before = o->rate;
			o->requests = 0;
			link = &o->next;
		}
	for (i = 0; i < n; i++)
		settle(s, &cell[i]);
	if (s->used < s->room / 4 && s->shift > s->least_shift)
		s->shift--;
	return (n);
}
