/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Pressure and quality: what a service that can degrade needs to know.
 *
 * Each request has a part: how long it waited, over the target.
 *
 * The pressure is a mean of the last parts, each at most 1.  It fades when no
 * request comes.
 *
 * The quality is how good an answer may be, 1 to 0 (M. Welsh, the thesis of
 * seda.c, chapter 7, section 3.4).  It is halved when the queue is too slow,
 * and rises slowly when the queue is fast.  The thesis names no numbers; these
 * are ours.
 *
 * No clock, lock or allocation.  The caller serialises.
 */

#ifndef OVERLOAD_PRESSURE_H_INCLUDED
#define OVERLOAD_PRESSURE_H_INCLUDED

#include <stdint.h>

struct ovl_pressure {			/* all 0: nothing was seen */
	int64_t			last;		/* request, ns */
	int64_t			began;		/* the window, ns */
	float			mean;		/* of the parts */
	float			lost;		/* 1 - quality */
	uint32_t		n, slow, fast;	/* requests of the window */
};

#define PRESSURE_WINDOW		100U		/* requests */
#define PRESSURE_SECOND		INT64_C(1000000000)	/* ns */

/* A request waited for this part of the target, or was refused. */
#define OVL_REFUSED		2.
void OVL_Pressed(struct ovl_pressure *, int64_t now, double part);
double OVL_Pressure(const struct ovl_pressure *, int64_t now);
double OVL_Quality(const struct ovl_pressure *, int64_t now);

#endif
