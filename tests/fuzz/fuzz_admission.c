/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The tuner of admission: an input is a sequence of requests, lost requests and
 * ends of windows, with objects of any size and a cache of any size.
 *
 * After each window:
 *  - c is more than 0, or infinite;
 *  - all hit ratios are from 0 to 1;
 *  - the hit ratio of a curve does not fall with more memory.
 */

#include <math.h>

#include "fuzz.h"

#include "admission/tuner.h"
#include "splitmix.h"

#define OBJECTS		256		/* so that the tables are often full */
#define DELTA		8192		/* requests */
#define MOST		512		/* requests of one call */

struct fuzz {
	struct fuzz_in		in;
	struct tuner		t[1];
	struct curve		curve;
	double			capacity;	/* bytes */
	uint64_t		number;		/* of an object */
};

static void
judge_part(double part)
{

	assert(part >= 0 && part <= 1);
}

static void
judge_curve(const struct curve *c)
{
	double bytes, before = 0, hits;

	if (isnan(CURVE_Hits(c, 0)))
		return;
	for (bytes = 0; bytes < 1e20; bytes = 4 * bytes + 1000) {
		hits = CURVE_Hits(c, bytes);
		judge_part(hits);
		assert(hits >= before);
		before = hits;
	}
}

static void
end_window(struct fuzz *f)
{
	struct curve adjusted;
	double c = f->t->c;

	TUNER_Tune(f->t, f->capacity);
	CURVE_End(&f->curve, (double)f->t->sample->clock);
	assert(f->t->c > 0);
	if (f->capacity == 0)		/* not known: c stays, or is infinite */
		assert(f->t->c == c || isinf(f->t->c));
	judge_part(f->t->predicted.objects);
	judge_part(f->t->predicted.bytes);
	judge_part(f->t->measured);
	judge_part(f->t->measured_all);
	judge_curve(&f->curve);
	assert(CURVE_Fills(&f->curve) >= 0);
	adjusted = f->curve;
	CURVE_Adjust(&adjusted, (double)fuzz_number(&f->in));
	judge_curve(&adjusted);
}

/* Ask for objects of one size: all different, or a few again and again. */
static void
ask(struct fuzz *f)
{
	uint64_t bytes = (uint64_t)fuzz_number(&f->in), digest;
	unsigned n = fuzz_below(&f->in, 256) * (MOST / 256), different;

	different = 1 + fuzz_byte(&f->in);
	while (n-- > 0) {
		digest = splitmix(different < 200 ? f->number + n % different :
		    f->number + n);
		if (TUNER_Ask(f->t, digest, bytes, f->capacity, &f->curve))
			end_window(f);
	}
	f->number += fuzz_below(&f->in, 2) * MOST;
}

static void
call(struct fuzz *f)
{

	switch (fuzz_below(&f->in, 8)) {
	case 0:
		TUNER_Lost(f->t, (uint64_t)fuzz_number_to(&f->in, 1 << 20));
		break;
	case 1:
		f->capacity = (double)fuzz_number(&f->in);
		break;
	case 2:
		f->t->bytes = fuzz_below(&f->in, 5) / 4.;
		break;
	case 3:
		end_window(f);
		break;
	default:
		ask(f);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fuzz f = { .in = { data, len }, .capacity = 1e6 };

	assert(TUNER_Init(f.t, fuzz_below(&f.in, 5), OBJECTS, DELTA,
	    fuzz_byte(&f.in)) == 0);
	f.t->form = fuzz_below(&f.in, ADM_FORMS);
	f.t->frequency = (int)fuzz_below(&f.in, 2);
	while (f.in.left > 0)
		call(&f);
	end_window(&f);
	TUNER_Fini(f.t);
	return (0);
}
