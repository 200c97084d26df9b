/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Tenants in groups (a reseller and its sites), under any policy.
 *
 * To the policy a group is one tenant, which has one request at a time to be
 * released: that of the member whose turn it is.  Members have turns by
 * self-clocked fair queueing (Golestani, INFOCOM 1994): a member has a tag S,
 * virtual ns.  The least goes, and v is its S; a request that costs k moves S
 * by k/w.  A member that had no request starts at v + k/w at least.  If it
 * started at v, members that come with one request each, and never again, would
 * keep v where it is, and a member that asks again would never have a turn.
 * What a member does not use is its siblings', before it is another group's.
 *
 * A member waits in the heap of its dominant resource.  While that is closed,
 * others have the turns and v grows.  Then the heap's tags grow too, so that the
 * least of them is at most GROUP_MISSED less than v.
 *
 * Costs are settled: S moves by what a request cost more or less.
 */

#ifndef GROUP_H_INCLUDED
#define GROUP_H_INCLUDED

#include <stdint.h>

#include "heap.h"
#include "virtual.h"

#define GROUP_MISSED	INT64_C(4000000)	/* virtual ns */
#define GROUP_V_MAX	(INT64_C(1) << 60)	/* then tags begin anew */

struct member {				/* one a tenant */
	struct heap_node	heap;		/* by S, while its pool has any */
	struct rel_link		pool;		/* of rel_node.queue: its turn
						 * has to come */
	int64_t			start;		/* S, virtual ns, less the
						 * offset of its resource */
	struct rest		rest;		/* of S */
	unsigned		resource;	/* whose heap it is in */
};

struct group_heap {			/* one a resource */
	struct heap_node	*root;
	int64_t			offset;		/* to be added to its tags */
};

struct group {				/* one a tenant that has members */
	struct group_heap	heap[REL__RESOURCES];	/* by dominant */
	int64_t			v;		/* virtual ns */
	struct rel_link		members;	/* of rel_tenant.all */
	uint64_t		waiting_weight;	/* of those that wait */
	unsigned		pooled;		/* requests */
	struct rel_link		stuck;		/* in rel->stuck, or alone */
	struct rel_link		passed;		/* in rel->passed, or alone */
};

/* A new member: S = v */
void group_join(const struct group *, struct member *);
/* S - v */
int64_t group_ahead(const struct group *, const struct member *);
/* Its pool, its tag or its dominant resource have changed */
void group_place(struct group *, struct member *, enum rel_resource dominant);
/* A member that had no request has one, which costs so many virtual ns */
void group_begin(const struct group *, struct member *, int64_t ns);
/* Its request costs so many virtual ns, or so many more or less */
void group_charge(const struct group *, struct member *, int64_t ns);
/* The member uses its turn.  closed: the resources that are closed now */
void group_turn(struct group *, const struct member *, unsigned closed);
/* S of this one is less */
int group_before(const struct group *, const struct member *,
    const struct member *);
/* Whose turn it is, of those whose dominant resource is open; NULL: nobody's */
struct member *group_next(const struct group *, unsigned closed);

#endif
