/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The curve of an owner of objects says how many of the requests for them would
 * be hits with other amounts of memory.
 *
 * The reuse time of a request is the number of requests for all objects since
 * the last request for its object.  In an LRU cache whose objects leave after
 * a time T, a request is a hit if its reuse time is less than T.  After a
 * request, the cache holds the object until the next request for it, but at
 * most for T.  So bytes and hits both follow from the reuse times (X. Hu and
 * others, "Kinetic Modeling of Data Eviction in Cache", USENIX ATC 2016; here
 * with sizes).
 *
 * CURVE_End() halves the weight of all requests so far.
 *
 * No clock, lock or allocation.
 */

#ifndef ADMISSION_CURVE_H_INCLUDED
#define ADMISSION_CURVE_H_INCLUDED

#define CURVE_FIRST	4		/* octaves: times below 2^4 are one bin */
#define CURVE_STEPS	2		/* bins per octave */
#define CURVE_BINS	64		/* up to 2^36 requests; the last one
					 * also has all above */

struct curve {				/* all 0: it has seen nothing */
	float			requests[CURVE_BINS], bytes[CURVE_BINS];
	double			new_requests;	/* for objects that were not
						 * seen before */
	double			new_bytes;
	double			time;		/* requests for all objects,
						 * while these came */
	int			used;		/* 1: not all is 0 */
};

/* A request for an object of so many bytes.  reuse: its reuse time, or
 * INFINITY. weight: this request stands for so many. */
void CURVE_Add(struct curve *, double reuse, double bytes, double weight);
/* A window of so many requests for all objects ends. */
void CURVE_End(struct curve *, double requests);

/* Return which part of the requests are hits with so many bytes of memory.
 * NAN: there were no requests. */
double CURVE_Hits(const struct curve *, double bytes);

#endif
