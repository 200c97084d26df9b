/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * What policies by virtual time have in common: start and finish tags
 * (2DFQ, section 2), the virtual clock, and an index of the tenants that
 * wait.  A policy is a line of `struct vt_rules`.
 *
 *	S	the start tag of a tenant's next request
 *	F	its finish tag, S + l/w; l is the estimate
 *	v	virtual time, at which generalised processor sharing would
 *		begin the next request of who has just come
 *
 * All three in virtual ns, ns over weight.  v grows with the work that is
 * done, over the weight of who has requests: as fast as the clock for each
 * request that runs, but not beyond what was released, and not behind what
 * has completed.  So nobody has to know how fast the machine is.
 *
 * Costs are settled: a request that cost more or less than l moves its
 * tenant's S (2DFQ's retroactive and refresh charging, section 5).
 *
 * A tenant waits in the tree of its dominant resource.  While that is closed,
 * the tree is passed over and v grows.  Then the tree's tags grow too, so that
 * the least of them is at most VT_MISSED less than v.
 */

#ifndef VTIME_H_INCLUDED
#define VTIME_H_INCLUDED

#include "policy.h"
#include "virtual.h"

#define VT_MISSED	INT64_C(4000000)	/* virtual ns */

struct vt_rules {
	/* Who goes first: the smallest start tag, or finish tag */
	enum vt_order {
		VT_BY_START,
		VT_BY_FINISH
	}			order;
	/* Who may go: all; S <= v; S - i/n x (F - S) <= v in slot i of n;
	 * S - r/w <= v, with r ns of its requests released and not served */
	enum vt_eligible {
		VT_ALL,
		VT_STARTED,
		VT_STAGGERED,
		VT_SERVED
	}			eligible;
	/* v is the start tag of what was released last (SFQ) */
	unsigned		self_clocked;
};

struct vt_tenant {
	/* What a walk down a tree looks at, a cache line */
	struct vt_tenant	*left, *right;
	uint64_t		rank;		/* in the heap */
	int64_t			s;		/* S, less the tree's offset */
	int64_t			d;		/* F - S */
	int64_t			least_s;	/* of this and those below */
	int64_t			least_e;	/* of s - d */
	int64_t			arrival;	/* of its first request */

	struct rel_tenant	*tenant;
	uint64_t		number;		/* of the tenant */
	uint64_t		period;
	struct rest		rest;		/* of S */
	/* VT_SERVED */
	struct rel_link		runs;		/* in the list of r > 0 */
	int64_t			ahead;		/* r, ns, */
	int64_t			since;		/* of that time */
	uint8_t			dominant;	/* its tree */
	uint8_t			place;
#define VT_NOWHERE		0
#define VT_WAITS		1
#define VT_GONE			2		/* busy under GPS alone */
};

struct vt_tree {
	struct vt_tenant	*root;
	uint64_t		weight;
	int64_t			offset;		/* to be added to its tags */
};

struct vt {
	const struct vt_rules	*rules;
	int64_t			v;
	int64_t			rest;		/* of v, ns x REL_WEIGHT_ONE */
	int64_t			now;		/* of v */
	int64_t			ahead;		/* ns released, not in v yet */
	int64_t			seen;		/* v of the last dequeue */
	uint64_t		period;		/* busy period */
	uint64_t		tenants;	/* so far */
	unsigned		closed;
	struct vt_tree		tree[REL__RESOURCES];
	struct vt_tree		gone;
	struct rel_link		runs;		/* of vt_tenant.runs */
};

void vt_init(struct rel *, const struct vt_rules *);
void vt_tenant_init(struct rel *, struct rel_tenant *);
void vt_tenant_fini(struct rel *, struct rel_tenant *);
void vt_enqueue(struct rel *, struct rel_tenant *, struct rel_node *);
enum rel_answer vt_dequeue(struct rel *, int64_t now, unsigned slot,
    unsigned closed, struct rel_node **, int64_t *when);
void vt_complete(struct rel *, struct rel_tenant *, struct rel_node *);
void vt_cancel(struct rel *, struct rel_tenant *, struct rel_node *);
void vt_charge(struct rel *, struct rel_tenant *, const struct rel_node *,
    int64_t ns, uint32_t scale);
void vt_estimate(struct rel *, struct rel_tenant *);
void vt_weight(struct rel *, struct rel_tenant *, uint32_t before);
int64_t vt_account(const struct rel *, const struct rel_tenant *);

/* All of a policy but its name, its summary and .init */
#define VT_CALLS						\
	.state_size =	sizeof(struct vt),			\
	.tenant_size =	sizeof(struct vt_tenant),		\
	.tenant_init =	vt_tenant_init,				\
	.tenant_fini =	vt_tenant_fini,				\
	.enqueue =	vt_enqueue,				\
	.dequeue =	vt_dequeue,				\
	.complete =	vt_complete,				\
	.cancel =	vt_cancel,				\
	.charge =	vt_charge,				\
	.estimate =	vt_estimate,				\
	.weight =	vt_weight,				\
	.account =	vt_account

#endif
