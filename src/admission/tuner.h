/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The tuner chooses a new c (model.h) after each window of requests.
 *
 * The first window has TUNER_FIRST requests.  Each next one is twice as long,
 * up to delta.  Short windows give a first c soon.  Long ones also see objects
 * that are asked for seldom.
 *
 * A guard compares two shadows (shadow.h).  `all` admits each object, `chosen`
 * admits by c.  A window is bad if `chosen` has fewer hits, by TUNER_WORSE.
 * After TUNER_BAD bad windows in a row, each object is admitted for TUNER_REST
 * windows.
 *
 * A window with too few objects, or too many dropped requests, is not used: c
 * stays.  After TUNER_BLIND such windows in a row, each object is admitted.
 *
 * The caller serialises.  No clock, no lock, no system call.
 */

#ifndef ADMISSION_TUNER_H_INCLUDED
#define ADMISSION_TUNER_H_INCLUDED

#include <stdint.h>

#include "curve.h"
#include "model.h"
#include "sample.h"
#include "shadow.h"

#define TUNER_FIRST	8192		/* requests */
#define TUNER_LEAST	1000		/* objects of a window that is used */
#define TUNER_LOST	.1		/* most dropped requests, a fraction */
#define TUNER_WORSE	.005		/* fewer hits, a fraction */
#define TUNER_BAD	2		/* windows, as the next two */
#define TUNER_REST	4
#define TUNER_BLIND	3

struct tuner {
	unsigned		magic;
#define TUNER_MAGIC		0x70ae5000
	struct sample		sample[1];
	struct shadow		all[1], chosen[1];
	struct adm_cell		*cell;		/* SAMPLE_CELLS */
	enum adm_form		form;
	int			frequency;	/* as in struct adm_model */
	double			bytes;		/* as in struct adm_model */
	uint64_t		delta;		/* most requests of a window */
	uint64_t		random;		/* state */

	uint64_t		window;		/* requests, of this one */
	uint64_t		asked, lost;	/* requests of it so far; lost:
						 * the dropped ones */
	unsigned		bad, rest, blind;	/* windows so far */

	/* The results */
	double			c;		/* bytes, or INFINITY */
	struct adm_hits		predicted;	/* for this c */
	double			measured;	/* hit ratio of `chosen` in the
						 * last window */
	double			measured_all;	/* of `all` */
	uint64_t		tunes;		/* windows that have ended */
	uint64_t		fallbacks;	/* of these, those in which the
						 * guard began to admit all */
};

/*
 * shift: of small objects (sample.h).  objects: entries of the sample and of
 * each shadow, a power of 2.  Returns 0, or -1 if there is no memory.
 */
int TUNER_Init(struct tuner *, unsigned shift, uint32_t objects, uint64_t delta,
    uint64_t seed);
void TUNER_Fini(struct tuner *);

/*
 * A client asks for an object of so many bytes.  capacity: bytes of the cache.
 * Only objects of the sample count.  The caller may leave out the others.
 * curve: the request is also added to it, if it is not NULL.
 * Returns 1 at the end of a window: call TUNER_Tune().
 */
int TUNER_Ask(struct tuner *, uint64_t digest, uint64_t bytes, double capacity,
    struct curve *curve);
/* So many requests were dropped, an estimate. */
void TUNER_Lost(struct tuner *, uint64_t requests);
/* Choose c for the next window.  capacity: bytes, or 0 if it is not known. */
void TUNER_Tune(struct tuner *, double capacity);

#endif
