/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Overload control: an input is a sequence of requests that come and are
 * released, of steps of the clock, and of settings.
 *
 * After each call:
 *  - up to `least` requests can wait, and without a target all;
 *  - each controller's numbers are within their bounds;
 *  - pressure and quality are 0 to 1.
 */

#include <math.h>

#include "fuzz.h"

#include "overload/overload.h"
#include "overload/pressure.h"

#define ROOM		1024U

struct fuzz {
	struct fuzz_in		in;
	struct ovl		ovl;
	struct ovl_pressure	pressure;
	unsigned		controller;
	struct ovl_queue	queue;
	int64_t			came[ROOM];	/* of the waiting requests */
	unsigned		first;
};

static void
come(struct fuzz *f)
{
	struct ovl_queue *q = &f->queue;
	int admitted = OVL_Admit(f->controller, &f->ovl, q);

	assert(admitted || (q->waiting >= q->least && q->target > 0));
	if (!admitted)
		OVL_Pressed(&f->pressure, q->now, OVL_REFUSED);
	if (!admitted || q->waiting == ROOM)
		return;
	f->came[(f->first + q->waiting) % ROOM] = q->now;
	q->waiting++;
}

static void
release(struct fuzz *f)
{
	struct ovl_queue *q = &f->queue;

	if (q->waiting == 0)
		return;
	q->waiting--;
	OVL_Released(f->controller, &f->ovl, q,
	    q->now - f->came[f->first % ROOM]);
	OVL_Pressed(&f->pressure, q->now,
	    (double)(q->now - f->came[f->first % ROOM]) / 1e9);
	f->first++;
}

static void
within(double number, double least, double most)
{

	assert(number >= least * .999 && number <= most * 1.001);
}

static void
judge(const struct fuzz *f)
{
	const char *name = OVL_Name(f->controller);
	const struct ovl *o = &f->ovl;

	within(OVL_Pressure(&f->pressure, f->queue.now), 0, 1);
	within(OVL_Quality(&f->pressure, f->queue.now), 0, 1);
	if (o->controller != f->controller + 1)
		return;
	if (strncmp(name, "seda", 4) == 0) {
		within((double)o->seda.rate, .05, 1e6);
		within((double)o->seda.tokens, 0, 10);
		within((double)o->seda.p90, 0, 20e9);
	} else if (strcmp(name, "gradient") == 0)
		within((double)o->gradient.limit, 1, 1000);
	else if (strcmp(name, "credits") == 0)
		within((double)o->credits.credits, 1, 1000);
	else if (strcmp(name, "time") == 0) {
		assert(isfinite(o->time.busy) && o->time.busy >= 0);
		assert(isfinite(o->time.released) && o->time.released >= 0);
	}
}

static void
call(struct fuzz *f)
{
	struct ovl_queue *q = &f->queue;

	switch (fuzz_below(&f->in, 16)) {
	case 0:
		q->target = fuzz_number(&f->in);
		break;
	case 1:
		q->standing = fuzz_number(&f->in);
		break;
	case 2:
		f->controller = fuzz_below(&f->in, OVL_Controllers());
		break;
	case 3:				/* a clock may go back */
		q->now = fuzz_number_to(&f->in, INT64_MAX / 4);
		break;
	case 4:
	case 5:
	case 6:
		q->now += fuzz_number_to(&f->in, INT64_C(1) << 36);
		break;
	case 7:
	case 8:
	case 9:
	case 10:
		release(f);
		break;
	default:
		come(f);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fuzz *f = calloc(1, sizeof *f);

	assert(f != NULL);
	f->in = (struct fuzz_in){ data, len };
	f->queue.target = 500000000;
	f->queue.standing = 20000000;
	f->queue.least = fuzz_below(&f->in, 32);
	f->controller = fuzz_below(&f->in, OVL_Controllers());
	while (f->in.left > 0) {
		call(f);
		judge(f);
	}
	free(f);
	return (0);
}
