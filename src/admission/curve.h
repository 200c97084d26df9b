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

#define CURVE_FIRST	4		/* times below 2^4 are one bin */
#define CURVE_STEPS	2		/* bins per octave */
#define CURVE_BINS	64		/* up to 2^36 requests; the last one
					 * also has all above */

#define CURVE_LONG	4		/* windows */

struct curve {				/* all 0: it has seen nothing */
	float			requests[CURVE_BINS], bytes[CURVE_BINS];
	double			new_requests;	/* for objects that were not
						 * seen before */
	double			new_bytes;
	double			since, time;	/* requests for all objects:
						 * before these, and while
						 * these came */
	double			ever;		/* requests since the start,
						 * none halved */
};

/* A request for an object of so many bytes.  reuse: its reuse time, or
 * INFINITY.  weight: this request stands for so many.  now: the requests for
 * all objects so far. */
void CURVE_Add(struct curve *, double reuse, double bytes, double weight,
    double now);
/* A window ends. */
void CURVE_End(struct curve *, double now);

/*
 * The requests are a sample, and there were really so many since the start.  A
 * few objects have very many requests.  If they are missing in the sample, it
 * has too few requests, and too many if they are in it.  Both are corrected at
 * the shortest reuse times (SHARDS_adj: C. Waldspurger and others, "SHARDS",
 * FAST 2015).
 */
void CURVE_Adjust(struct curve *, double ever);
/* Return which part of the requests are hits with so many bytes of memory.
 * NAN: there were no requests. */
double CURVE_Hits(const struct curve *, double bytes);
/* Return how many bytes the objects have that clients asked for in CURVE_LONG
 * windows or more: a cache without evictions would have them. */
double CURVE_Fills(const struct curve *);

#endif
