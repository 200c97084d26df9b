/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The model of an LRU cache with admission by size.  It predicts the hit ratio
 * for a parameter c.  ADM_Choose() finds the c with the highest one.
 *
 * An object of s bytes is admitted with probability e^(-s/c).  c is in bytes.
 * If it is infinite, each object is admitted (Berger, Sitaraman and
 * Harchol-Balter, "AdaptSize", NSDI 2017, section 4.1).  An object of at most
 * ADM_SMALL bytes is always admitted.
 *
 * With `frequency` the probability is e^(-s/(c f)).  f is how often the object
 * was asked for lately, at least 1.  So a large object that many clients ask
 * for is likely to be admitted.  In the model f is the rate of the object, in
 * varnishd its recent misses (sketch.h).
 *
 * An object leaves an LRU cache when it had no request for a time T.  T is
 * about equal for all objects: in this time, objects with as many bytes as the
 * cache has are asked for.  One equation gives T: the expected bytes of the
 * objects in the cache are its capacity (equation 1).
 *
 * Objects of about the same size and rate are one cell.  So a million objects
 * are some thousand cells.
 *
 * No clock, lock or allocation.
 */

#ifndef ADMISSION_MODEL_H_INCLUDED
#define ADMISSION_MODEL_H_INCLUDED

#include <math.h>
#include <stddef.h>

#define ADM_ERROR	1e-3		/* bytes in equation 1, as a fraction
					 * of the capacity */
#define ADM_SMALL	4096		/* bytes: such objects are admitted */

/* Objects of about the same size and rate.  All numbers must be finite, and 0
 * or more. */
struct adm_cell {
	double			objects;	/* how many */
	double			size;		/* bytes of one object */
	double			rate;		/* requests for one object in a
						 * window, smoothed */
	double			requests;	/* for one object, in the last
						 * window */
	double			before;		/* the rate, without the last
						 * window */
	double			admitted;	/* probability; only model.c
						 * uses it */
};

/*
 * The formula for the hits of an object.
 *
 * ADM_PADE is the Pade approximant in the source of AdaptSize.  Its result is
 * negative for objects that are rarely admitted, and then counts as 0.  On most
 * traces it finds the best c.
 *
 * ADM_EXACT is Theorem 1 of AdaptSize.  It treats an object with one request
 * in the window as if clients asked for it in each window.  If many objects
 * have one request, it predicts too many hits, and its c is too small.
 *
 * ADM_TRANSIENT is Theorem 1, but the first request for an object is a miss.
 * Its prediction is the best of the three, but its c is worse.
 */
enum adm_form {
	ADM_PADE,
	ADM_EXACT,
	ADM_TRANSIENT,
	ADM_FORMS
};

struct adm_model {
	struct adm_cell		*cell;
	size_t			ncell;
	double			capacity;	/* bytes, more than 0 */
	enum adm_form		form;
	int			frequency;	/* 1: use f; 0: f is 1 */
	double			bytes;		/* what to maximise: 0: the
						 * object hit ratio; 1: the
						 * byte hit ratio; between:
						 * the mean with this weight */
};

struct adm_hits {			/* 0 to 1; 0 without requests */
	double			objects;	/* object hit ratio */
	double			bytes;		/* byte hit ratio */
};

/*
 * Return the size of the largest object that is admitted, bytes.  draw: a
 * random number from 0 to 1, not 0.
 *
 * The size is -c f ln draw.  So each object has its probability, and its size
 * need not be known yet.
 */
static inline double
ADM_Largest(double c, double f, double draw)
{

	return (isinf(c) ? c : fmax(ADM_SMALL, -c * f * log(draw)));
}

/* Return the name of a form, or NULL. */
const char *ADM_FormName(unsigned);

/* Return T, in windows.  INFINITY: all objects with a probability above 0 fit.
 */
double ADM_Time(struct adm_model *, double c);

/* Return the predicted hit ratios for this c. */
struct adm_hits ADM_Predict(struct adm_model *, double c);

/* Return the c with the highest hit ratio.  NAN: a number of the model is not
 * finite.  *hits, if not NULL, is what is predicted for this c. */
double ADM_Choose(struct adm_model *, struct adm_hits *hits);

#endif
