/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The c of a cache (model.h), chosen anew after each window of requests.
 *
 * The first window has TUNER_FIRST requests, each next one twice as many, up to
 * delta.  So a good c is found soon after a start, and the windows are long
 * enough for rare objects then.
 *
 * A guard watches the c.  Two miniature caches (shadow.h) see the same requests:
 * one admits each object, the other one by the c in force.  If the second has
 * fewer hits in TUNER_BAD windows in a row, each object is admitted for
 * TUNER_REST windows.
 *
 * If a window cannot be used, the c stays.  After TUNER_BLIND such windows in a
 * row, each object is admitted.
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
#define TUNER_LEAST	1000		/* objects of a window that can be used */
#define TUNER_LOST	.1		/* requests that may be lost, a part */
#define TUNER_WORSE	.005		/* hits fewer, a part: a bad window */
#define TUNER_BAD	2		/* windows */
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
	uint64_t		delta;		/* requests of a window, at most */
	uint64_t		random;		/* state */

	uint64_t		window, asked, lost;	/* requests */
	unsigned		bad, rest, blind;	/* windows */

	/* The results */
	double			c;		/* bytes, or INFINITY */
	struct adm_hits		predicted;	/* for this c */
	double			measured;	/* of `chosen`, last window */
	double			measured_all;	/* of `all` */
	double			found;		/* bytes: c without the guard */
	uint64_t		tunes, fallbacks;
};

/*
 * shift: 1 in 2^shift objects is sampled.  objects: how many of them there is
 * room for, a power of 2.  Returns 0, or -1 if there is no memory.
 */
int TUNER_Init(struct tuner *, unsigned shift, uint32_t objects, uint64_t delta,
    uint64_t seed);
void TUNER_Fini(struct tuner *);

/*
 * A client asks for an object of so many bytes.  capacity: bytes of the cache.
 * Only objects of the sample count: the caller may leave out the others.
 * curve: NULL, or where to add the request, too.
 * Returns 1 at the end of a window: call TUNER_Tune().
 */
int TUNER_Ask(struct tuner *, uint64_t digest, uint64_t bytes, double capacity,
    struct curve *curve);
/* So many requests were not seen. */
void TUNER_Lost(struct tuner *, uint64_t requests);
/* Choose the c for the next window.  capacity: bytes, or 0 if it is not known. */
void TUNER_Tune(struct tuner *, double capacity);

#endif
