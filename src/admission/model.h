/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Which objects should a cache admit?  A model of an LRU cache predicts its hit
 * ratio for any c, and finds the c with the highest one.
 *
 * An object of s bytes is admitted with probability e^(-s/c).  c is in bytes, and
 * infinite if each object is admitted (Berger, Sitaraman and Harchol-Balter,
 * "AdaptSize", NSDI 2017, section 4.1).  An object of at most ADM_SMALL bytes is
 * always admitted.
 *
 * With `frequency` the probability is e^(-s/(c f)).  f is the number of requests
 * for the object in a window, at least 1.  So a large object that many ask for
 * is admitted, and more small ones have to wait for their second request.
 *
 * An object leaves an LRU cache when nobody has asked for it in a time T.  T is
 * about the same for all objects, since it is the time in which objects of as
 * many bytes as the cache holds come to the head of its list.  So T follows from
 * one equation: the objects that are expected in the cache fill it (equation 1).
 *
 * Objects of about the same size and rate are one cell.  So a million objects
 * are some thousand cells.
 *
 * No clock, lock or allocation.
 */

#ifndef ADMISSION_MODEL_H_INCLUDED
#define ADMISSION_MODEL_H_INCLUDED

#include <stddef.h>

#define ADM_ERROR	1e-3		/* of the capacity, in equation 1 */
#define ADM_SMALL	4096		/* bytes: such objects are admitted */

/* Objects of about the same size and rate.  All numbers are finite, and 0 or
 * more. */
struct adm_cell {
	double			objects;	/* how many */
	double			size;		/* bytes of one object */
	double			rate;		/* requests for one object in a
						 * window, smoothed */
	double			requests;	/* for one object, in the last
						 * window */
	double			before;		/* for one object, before it */
	double			admitted;	/* model.c's: the probability */
};

/*
 * Which part of the requests for an object are hits?
 *
 * ADM_PADE is the Pade approximant in the authors' source.  If an object is
 * rarely admitted, it is negative, and counts as 0.  It finds the best c on
 * most traces.
 *
 * ADM_EXACT is Theorem 1.  It treats an object with one request in the window as
 * if it were asked for in each window.  If many objects are asked for once, the
 * prediction is too high, and the c too small.
 *
 * ADM_TRANSIENT is Theorem 1, with the first request for an object as a miss.
 * Its prediction is the closest to the measurement, but the c that it chooses is
 * worse.
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
	int			frequency;	/* f counts, too */
	double			bytes;		/* 0: the highest object hit
						 * ratio; 1: byte hit ratio;
						 * between: their mean */
};

struct adm_hits {			/* 0 to 1; 0 if nobody asks */
	double			objects;	/* object hit ratio */
	double			bytes;		/* byte hit ratio */
};

/* Return the name of a form, or NULL. */
const char *ADM_FormName(unsigned);

/* Return T, in windows, with an error of ADM_ERROR of the capacity; INFINITY if
 * all objects that may be admitted fit. */
double ADM_Time(struct adm_model *, double c);

/* Return the predicted hit ratios for this c. */
struct adm_hits ADM_Predict(struct adm_model *, double c);

/* Return the c with the highest hit ratio, or NAN if a number of the model is not
 * finite.  *hits, if not NULL: what is predicted for this c. */
double ADM_Choose(struct adm_model *, struct adm_hits *hits);

#endif
