/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Groups of tenants (a reseller and its sites), on top of any policy.
 *
 * To the policy a group is one tenant that has one request at a time: the first
 * request of the member that has the turn.  Members have turns by self-clocked
 * fair queueing (Golestani, INFOCOM 1994).  Each member has a tag S, virtual
 * ns.  The member with the least S has the turn, and v becomes its S.  A
 * request of cost k and weight w adds k/w to S.  Settlement adds the rest.
 *
 * A member that becomes backlogged starts at v + k/w or later.  Starting at v
 * would be unfair: new members with one request each would keep v constant, and
 * a member that returns would never have a turn.
 *
 * A backlogged member is in the heap of its dominant resource.  While that
 * resource is closed, other members have the turns and v grows.  Then the tags
 * of this heap grow too: the least is at most GROUP_MISSED less than v.
 */

#ifndef GROUP_H_INCLUDED
#define GROUP_H_INCLUDED

#include <stdint.h>

#include "heap.h"
#include "virtual.h"

#define GROUP_MISSED	INT64_C(4000000)	/* virtual ns */
#define GROUP_V_MAX	(INT64_C(1) << 60)	/* above it, rebase */

struct member {				/* one for each tenant */
	struct heap_node	heap;		/* by S, if pool is not empty */
	struct rel_link		pool;		/* of rel_node.queue: waiting
						 * for the member's turn */
	int64_t			start;		/* S, virtual ns, less the
						 * offset of its resource */
	struct remainder		remainder;		/* of S */
	unsigned		resource;	/* its heap's */
};

struct group_heap {			/* one for each resource */
	struct heap_node	*root;
	int64_t			offset;		/* S less the heap's tag */
};

struct group {				/* one for each group */
	struct group_heap	heap[REL__RESOURCES];	/* by dominant */
	int64_t			v;		/* virtual ns */
	struct rel_link		members;	/* of rel_tenant.all */
	unsigned		nmembers;
	uint64_t		waiting_weight;	/* of backlogged members */
	unsigned		pooled;		/* requests in pools */
	struct rel_link		hol_blocked;	/* in rel->hol_blocked, or
						 * empty */
	struct rel_link		passed;		/* in rel->passed, or empty */
};

/* Start a new member at S = v */
void group_join(const struct group *, struct member *);
/* Return S - v, virtual ns */
int64_t group_ahead(const struct group *, const struct member *);
/* Update the heaps after a change of the member's pool, S, dominant resource */
void group_place(struct group *, struct member *, enum rel_resource dominant);
/* A member becomes backlogged.  ns: k/w of its first request, virtual ns. */
void group_begin(const struct group *, struct member *, int64_t ns);
/* Add ns to S, virtual ns.  A settlement may be negative. */
void group_charge(const struct group *, struct member *, int64_t ns);
/* Let the member use its turn: v = max(v, S).  closed: REL_MASK()s. */
void group_turn(struct group *, const struct member *, unsigned closed);
/* Is S of the first member less than S of the second? */
int group_before(const struct group *, const struct member *,
    const struct member *);
/* Return the member with the least S and an open dominant resource, or NULL */
struct member *group_next(const struct group *, unsigned closed);

#endif
