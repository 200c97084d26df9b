/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Pressure and quality: what a service that can degrade needs to know.
 *
 * Each request has a number: its wait divided by the target.  A refused request
 * has OVL_REFUSED, so that it counts as slow.
 *
 * The pressure is a mean of the last numbers, each at most 1.  Without requests
 * it fades.
 *
 * The quality is how good an answer may be, 1 to 0 (M. Welsh, the thesis named
 * in seda.c, chapter 7, section 3.4).  It is halved when the queue is too slow,
 * and rises slowly when the queue is fast, or without requests.  The thesis
 * names no numbers; these are ours.
 *
 * No clock, lock or allocation.  The caller serialises.
 */

#ifndef OVERLOAD_PRESSURE_H_INCLUDED
#define OVERLOAD_PRESSURE_H_INCLUDED

#include <stdint.h>

struct ovl_pressure {			/* all 0: nothing was seen */
	int64_t			last;		/* ns, of the last request */
	int64_t			began;		/* ns, the window */
	double			mean;
	double			lost;		/* 1 - quality, at `last` */
	unsigned		n, slow, fast;	/* requests of the window */
};

#define OVL_REFUSED		2.

/* A request was released after this wait, in parts of the target, or it was
 * refused (OVL_REFUSED). */
void OVL_Pressed(struct ovl_pressure *, int64_t now, double part);
/* Return 0 to 1. */
double OVL_Pressure(const struct ovl_pressure *, int64_t now);
/* Return 1 to 0. */
double OVL_Quality(const struct ovl_pressure *, int64_t now);

#endif
