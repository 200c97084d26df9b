/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Reservations and limits, on top of any policy (mClock: Gulati, Merchant and
 * Varman, OSDI 2010, section 3).
 *
 * Both are parts of the tenant's dominant resource.  Each has a tag, a time in
 * ns.  A request of cost k moves the tag by k/part, and settlement by the rest.
 *
 *	limit		No request is released before the tag.
 *	reservation	From the tag on, the tenant's first request goes before
 *			the policy's choice.  Only requests released so move
 *			the tag: service by weight is not counted against a
 *			reservation.
 *
 * The policy charges both kinds of release.  So a tenant has the larger of its
 * reservation and its share, not the sum.  Unused capacity is lent, not saved.
 * A charge first moves the tag to now - MCLOCK_BURST or later.  When an idle
 * tenant returns, the tag of its reservation moves to now or later.
 */

#ifndef MCLOCK_H_INCLUDED
#define MCLOCK_H_INCLUDED

#include <stdint.h>

#include "heap.h"
#include "releaser.h"

#define MCLOCK_BURST	INT64_C(10000000)	/* ns */

struct limit {
	struct heap_node	heap;		/* by tag: see mclock_place() */
	int64_t			tag;		/* ns */
	uint32_t		part;		/* of REL_PART_ONE; 0: none */
};

struct mclock {				/* one for each tenant */
	struct limit		limit;
	struct limit		reservation;
	unsigned		resource;	/* the reservation's heap */
};

struct mclock_index {			/* one for each releaser */
	struct heap_node	*limit;		/* of throttled tenants */
	struct heap_node	*reservation[REL__RESOURCES];
};

/* Set both parts, of REL_PART_ONE; 0: none.  A changed part starts at now. */
void mclock_set(struct mclock *, uint32_t reservation, uint32_t limit,
    int64_t now);
/* An idle tenant gets a request */
void mclock_begin(struct mclock *, int64_t now);
/* Charge ns to the limit, or to the reservation if `reserved` is true.  A
 * settlement may be negative. */
void mclock_charge(struct mclock *, int64_t ns, int reserved, int64_t now);
/* Update the heaps after a change of tags, dominant resource or queues.
 * owed: a request waits that the reservation could release.
 * shut: all waiting requests are throttled. */
void mclock_place(struct mclock_index *, struct mclock *,
    enum rel_resource dominant, int owed, int shut);

/* Return a throttled tenant whose limit's tag has come, or NULL */
struct mclock *mclock_due(const struct mclock_index *, int64_t now);
/* Return the tenant with the least reservation tag that has come and whose
 * dominant resource is open, or NULL.  closed: REL_MASK()s. */
struct mclock *mclock_owed(const struct mclock_index *, unsigned closed,
    int64_t now);
/* Return the least limit tag of throttled tenants, ns, but at most `when` */
int64_t mclock_next(const struct mclock_index *, int64_t when);

/* Does the tenant have a reservation or a limit? */
static inline int
mclock_any(const struct mclock *lim)
{
	return ((lim->limit.part | lim->reservation.part) != 0);
}

/* Does the limit admit a request now? */
static inline int
mclock_open(const struct mclock *lim, int64_t now)
{
	return (lim->limit.part == 0 || lim->limit.tag <= now);
}

#endif
