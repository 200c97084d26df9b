/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * How many of a tenant's requests would be hits if it had more memory, or less?
 *
 * The reuse time of a request is the time since the last request for the same
 * object.  In an LRU cache whose objects leave after a time T, a request is a hit
 * if its reuse time is less than T.  Such a cache holds each requested object for
 * its reuse time, or for T if that is shorter.  So its bytes and its hits both
 * follow from the tenant's reuse times (X. Hu and others, "Kinetic Modeling of
 * Data Eviction in Cache", USENIX ATC 2016; here with sizes).
 *
 * Times are in requests of all tenants.  Old requests count for less: at the end
 * of each window by half.
 *
 * No clock, lock or allocation.
 */

#ifndef ADMISSION_CURVE_H_INCLUDED
#define ADMISSION_CURVE_H_INCLUDED

#define CURVE_FIRST	4		/* octaves: times below 2^4 are one bin */
#define CURVE_STEPS	2		/* bins per octave */
#define CURVE_BINS	64		/* up to 2^36 requests */

struct curve {				/* all 0: it has seen nothing */
	int			used;
	float			requests[CURVE_BINS], bytes[CURVE_BINS];
	double			new_requests, new_bytes;	/* first requests
								 * for an object */
	double			time;		/* of these */
};

/* A request for an object of so many bytes.  reuse: requests of all tenants
 * since the last one for it, or INFINITY.  weight: for so many it stands. */
void CURVE_Add(struct curve *, double reuse, double bytes, double weight);
/* A window of so many requests of all tenants ends. */
void CURVE_End(struct curve *, double requests);

/* Return which part of the requests are hits with so many bytes of memory, or
 * NAN if there were no requests. */
double CURVE_Hits(const struct curve *, double bytes);

#endif
