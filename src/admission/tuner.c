/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The tuner of tuner.h.  A request goes into the sample and both shadows.
 * At the end of a window the sample becomes cells, the cells a model, and the
 * model a c.
 */

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "splitmix.h"
#include "tuner.h"

int
TUNER_Init(struct tuner *t, unsigned shift, uint32_t objects, uint64_t delta,
    uint64_t seed)
{

	assert(delta > 0);
	memset(t, 0, sizeof *t);
	t->cell = calloc(SAMPLE_CELLS, sizeof *t->cell);
	if (t->cell == NULL)
		return (-1);
	if (SAMPLE_Init(t->sample, shift, objects) != 0)
		goto no_sample;
	if (SHADOW_Init(t->all, objects) != 0)
		goto no_all;
	if (SHADOW_Init(t->chosen, objects) != 0)
		goto no_chosen;
	t->magic = TUNER_MAGIC;
	t->form = ADM_PADE;
	t->delta = delta;
	t->random = seed;
	t->window = delta < TUNER_FIRST ? delta : TUNER_FIRST;
	t->c = INFINITY;
	return (0);
no_chosen:
	SHADOW_Fini(t->all);
no_all:
	SAMPLE_Fini(t->sample);
no_sample:
	free(t->cell);
	return (-1);
}

void
TUNER_Fini(struct tuner *t)
{

	assert(t != NULL && t->magic == TUNER_MAGIC);
	SHADOW_Fini(t->chosen);
	SHADOW_Fini(t->all);
	SAMPLE_Fini(t->sample);
	free(t->cell);
	memset(t, 0, sizeof *t);
}

int
TUNER_Ask(struct tuner *t, uint64_t digest, uint64_t bytes, double capacity,
    struct curve *curve)
{
	double scaled, size = (double)bytes;
	struct sample_seen seen;
	uint64_t weight;

	assert(t != NULL && t->magic == TUNER_MAGIC);
	if (!SAMPLE_Has(t->sample->shift, digest, bytes))
		return (0);
	weight = UINT64_C(1) << SAMPLE_Shift(t->sample->shift, bytes);
	t->asked += weight;
	seen = SAMPLE_Add(t->sample, digest, bytes);
	if (curve != NULL)
		CURVE_Add(curve, seen.reuse, size, (double)weight,
		    (double)t->sample->clock);
	/* The shadows have 1 in 2^shift of the large objects, too */
	if (SAMPLE_Has(t->sample->shift, digest, 0)) {
		scaled = ldexp(capacity, -(int)t->sample->shift);
		(void)SHADOW_Ask(t->all, digest, size, 1, scaled);
		(void)SHADOW_Ask(t->chosen, digest, size, size <= ADM_Largest(
		    t->c, t->frequency ? (double)seen.f : 1,
		    splitmix_draw(&t->random)), scaled);
	}
	return (t->asked >= t->window);
}

void
TUNER_Lost(struct tuner *t, uint64_t requests)
{

	t->lost += requests;
}

/*--------------------------------------------------------------------
 * The end of a window
 */

/* Return the hit ratio of a shadow, and begin to count anew. */
static double
measure(struct shadow *s)
{
	double ratio;

	ratio = s->requests == 0 ? 0 : (double)s->hits / (double)s->requests;
	s->requests = s->hits = 0;
	return (ratio);
}

/* Return the best c for the cells, or NAN if the window cannot be used. */
static double
find(struct tuner *t, size_t cells, double capacity)
{
	struct adm_model m = {
		.cell = t->cell,
		.ncell = cells,
		.capacity = capacity,
		.form = t->form,
		.frequency = t->frequency,
		.bytes = t->bytes,
	};
	double objects = 0;
	size_t i;

	for (i = 0; i < cells; i++)
		objects += t->cell[i].objects;
	if (!(capacity > 0) || objects < TUNER_LEAST ||
	    (double)t->lost > TUNER_LOST * (double)(t->lost + t->asked))
		return (NAN);
	return (ADM_Choose(&m, &t->predicted));
}

void
TUNER_Tune(struct tuner *t, double capacity)
{
	size_t cells;
	double c;

	assert(t != NULL && t->magic == TUNER_MAGIC);
	cells = SAMPLE_End(t->sample, t->cell);
	t->measured = measure(t->chosen);
	t->measured_all = measure(t->all);
	c = find(t, cells, capacity);
	t->tunes++;
	t->asked = t->lost = 0;
	t->window = t->window * 2 < t->delta ? t->window * 2 : t->delta;

	if (isnan(c)) {
		if (++t->blind == TUNER_BLIND) {
			t->blind = 0;
			t->c = INFINITY;
		}
		return;
	}
	t->blind = 0;
	if (t->rest > 0 && --t->rest > 0)
		return;
	t->bad = t->measured < t->measured_all * (1 - TUNER_WORSE) ?
	    t->bad + 1 : 0;
	if (t->bad == TUNER_BAD) {
		t->bad = 0;
		t->rest = TUNER_REST;
		t->c = INFINITY;
		t->fallbacks++;
		return;
	}
	t->c = c;
}
