/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * What the policies by virtual time share (2DFQ, section 2): tags, the virtual
 * clock, an index of the backlogged tenants.  Each policy is one vt_rules.
 *
 *	S	start tag of the tenant's next request
 *	F	its finish tag, S + l/w.  l is the estimate, w the weight
 *	v	virtual time: the start tag of a tenant that arrives now under
 *		generalised processor sharing (GPS)
 *
 * All are in virtual ns.  v grows by the work done over the weight of the busy
 * tenants.  The rate of the machine is not known, so each running request
 * counts as fast as the clock.  Their sum is at most the work that was
 * released, and at least the work that has completed.
 *
 * Settlement moves S by the real cost minus l (2DFQ, section 5: retroactive and
 * refresh charging).
 *
 * A backlogged tenant is in the tree of its dominant resource.  While that
 * resource is closed, the tree is skipped and v grows.  Then the tags of the
 * tree grow too: the least is at most VT_MISSED less than v.
 */

#ifndef VTIME_H_INCLUDED
#define VTIME_H_INCLUDED

#include "policy.h"
#include "virtual.h"

#define VT_MISSED	INT64_C(4000000)	/* virtual ns */

struct vt_rules {
	/* Which eligible tenant goes first: least start or finish tag */
	enum vt_order {
		VT_BY_START,
		VT_BY_FINISH
	}			order;
	/* Which tenants are eligible.  VT_ALL: all.  VT_STARTED: S <= v.
	 * VT_STAGGERED: S - i/n x (F - S) <= v in slot i of n.  VT_SERVED:
	 * S - r/w <= v, r: ns that were released and are not served yet. */
	enum vt_eligible {
		VT_ALL,
		VT_STARTED,
		VT_STAGGERED,
		VT_SERVED
	}			eligible;
	/* v is the start tag of the last release (SFQ) */
	unsigned		self_clocked;
};

struct vt_tenant {
	/* Read by each walk down a tree: one cache line */
	struct vt_tenant	*left, *right;
	uint64_t		rank;		/* of the treap */
	int64_t			s;		/* S, less the tree's offset */
	int64_t			d;		/* F - S */
	int64_t			least_s;	/* of s, this node and below */
	int64_t			least_e;	/* of s - d, the same */
	int64_t			arrival;	/* ns, of the first request */

	struct rel_tenant	*tenant;
	uint64_t		number;		/* order of vt_tenant_init() */
	uint64_t		period;
	struct remainder		remainder;		/* of S */
	/* If eligible is VT_SERVED: */
	struct rel_link		runs;		/* in vt.runs while r > 0 */
	int64_t			ahead;		/* r, ns, at time `since` */
	int64_t			since;		/* ns, of ahead */
	uint8_t			dominant;	/* resource of its tree */
	uint8_t			place;
#define VT_NOWHERE		0
#define VT_WAITS		1
#define VT_GPS_BUSY		2		/* backlogged under GPS only */
};

struct vt_tree {
	struct vt_tenant	*root;
	uint64_t		weight;
	int64_t			offset;		/* S less the tree's tag */
};

struct vt {
	const struct vt_rules	*rules;
	int64_t			v;
	int64_t			remainder;	/* of v, ns x REL_WEIGHT_ONE */
	int64_t			now;		/* ns, time of v */
	int64_t			ahead;		/* ns released, not yet in v */
	int64_t			seen;		/* v of the last dequeue */
	uint64_t		period;		/* busy period */
	uint64_t		tenants;	/* number of the next one */
	unsigned		closed;
	struct vt_tree		tree[REL__RESOURCES];
	struct vt_tree		gps_busy;
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

/* All fields of a policy except .name, .summary and .init */
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
