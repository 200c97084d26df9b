/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * FAIR_Divide() computes the memory of each owner under max-min fair sharing,
 * from what each owner would fill.  So it says what sandpaper_memory=on would
 * do, before somebody sets it.
 *
 * The rules are those of shares.h.  There is one level L.  An owner has L x its
 * weight, or what it would fill if that is less, or its reservation if that is
 * more.  L is as high as the memory allows.
 *
 * No clock, lock or allocation.
 */

#ifndef MEMORY_FAIR_H_INCLUDED
#define MEMORY_FAIR_H_INCLUDED

#include <stddef.h>

#include "owners.h"

struct fair {
	struct own_settings	set;		/* group: an index, here */
	double			want;		/* bytes that it would fill */
	double			share;		/* the result, bytes */
	struct fair		*members, *next;	/* fair.c's */
};

/* Divide so many bytes.  A group gets the `want` of its members. */
void FAIR_Divide(struct fair *, size_t n, double bytes);

#endif
