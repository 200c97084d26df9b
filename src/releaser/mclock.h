/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Reservations and limits, on top of any policy (mClock: Gulati, Merchant and
 * Varman, OSDI 2010, section 3).
 *
 * Each is a part of what the tenant's dominant resource can do, and has a
 * tag, a time: what costs k moves it by k/part.
 *
 *	limit		no request is released before it
 *	reservation	from then on a request is owed: it goes before whom
 *			the policy would choose.  Only requests that are
 *			released so move it, so that what a tenant has by its
 *			weight is no reason to be without later.
 *
 * The policy charges both kinds of releases: a tenant has the larger of its
 * reservation and its share, not the sum.  A tag is never more than
 * MCLOCK_BURST behind the clock when it moves, and a reservation's begins at
 * the clock when a tenant comes back: what was not used is lent, not saved.
 *
 * Costs are settled: a tag moves by what a request cost more or less.
 */

#ifndef MCLOCK_H_INCLUDED
#define MCLOCK_H_INCLUDED

#include <stdint.h>

#include "heap.h"
#include "releaser.h"

#define MCLOCK_BURST	INT64_C(10000000)	/* ns */

struct limit {
	struct heap_node	heap;		/* by tag, while it matters */
	int64_t			tag;		/* ns of now */
	uint32_t		part;		/* of REL_PART_ONE; 0: none */
};

struct mclock {				/* one a tenant */
	struct limit		limit;
	struct limit		reservation;
	unsigned		resource;	/* whose heap the latter is in */
};

struct mclock_index {			/* one a releaser */
	struct heap_node	*limit;		/* who only waits for its tag */
	struct heap_node	*reservation[REL__RESOURCES];	/* who waits */
};

/* Parts of REL_PART_ONE, 0: none; a part that changes begins now */
void mclock_set(struct mclock *, uint32_t reservation, uint32_t limit,
    int64_t now);
/* A tenant that had no request has one */
void mclock_begin(struct mclock *, int64_t now);
/* It costs so much, or so much more or less than was said */
void mclock_charge(struct mclock *, int64_t ns, int reserved, int64_t now);
/* Its tags, its dominant resource or what waits have changed.  owed: a request
 * waits that its reservation could release; shut: all wait behind the valve */
void mclock_place(struct mclock_index *, struct mclock *,
    enum rel_resource dominant, int owed, int shut);

/* Whose valve is to be opened, or NULL */
struct mclock *mclock_due(const struct mclock_index *, int64_t now);
/* Whose request is owed, of those whose dominant resource is open, or NULL */
struct mclock *mclock_owed(const struct mclock_index *, unsigned closed,
    int64_t now);
/* The next time that mclock_due() has somebody, if that is before `when` */
int64_t mclock_next(const struct mclock_index *, int64_t when);

/* Has it either of the two? */
static inline int
mclock_any(const struct mclock *lim)
{
	return ((lim->limit.part | lim->reservation.part) != 0);
}

/* May a request be released? */
static inline int
mclock_open(const struct mclock *lim, int64_t now)
{
	return (lim->limit.part == 0 || lim->limit.tag <= now);
}

#endif
