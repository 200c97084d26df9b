/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * What a release policy is: one file with one `struct rel_policy`, and one
 * line in the table of policies.c.
 *
 * The host (the other files) keeps the requests, in one queue a tenant and all
 * of them by arrival, and what is the same for every policy: states,
 * estimates, counts, groups, reservations and limits: a policy does not see
 * what is behind a limit, and a group is a tenant to it.  A policy keeps
 * accounts, and says who goes next.  Its memory is the host's, zeroed:
 * `state_size` bytes a releaser and `tenant_size` bytes a tenant.
 */

#ifndef POLICY_H_INCLUDED
#define POLICY_H_INCLUDED

#include "group.h"
#include "list.h"
#include "mclock.h"
#include "releaser.h"

#define REL_SLOT_MAX	0x3fff	/* of rel_node.slot */

enum rel_reserved {			/* rel_node.reserved */
	REL_NOT_RESERVED = 0,
	REL_BY_TENANT,
	REL_BY_GROUP
};

/* No single cost or charge counts for more, ns (73 minutes) */
#define REL_COST_MAX		(INT64_C(1) << 42)

struct rel_policy {
	const char		*name;
	const char		*summary;
	size_t			state_size;
	size_t			tenant_size;
	/* How costs are estimated for it (cost.h), and its alpha, Q16; NULL:
	 * as the host does */
	const char		*estimator;
	uint32_t		alpha;
	int			ungrouped;	/* heeds no groups */

	/* The rest may be NULL, but for dequeue */
	void (*init)(struct rel *);
	void (*tenant_init)(struct rel *, struct rel_tenant *);
	void (*tenant_fini)(struct rel *, struct rel_tenant *);

	/* The node has been put into its queue; of a group also within
	 * rel_release(), so that its queue does not become empty */
	void (*enqueue)(struct rel *, struct rel_tenant *, struct rel_node *);
	/* Something waits; a node that goes was given to rel_release().
	 * closed: 0 if it need not be heeded; *when is INT64_MAX */
	enum rel_answer (*dequeue)(struct rel *, int64_t now, unsigned slot,
	    unsigned closed, struct rel_node **, int64_t *when);
	/* The node has left its queue */
	void (*cancel)(struct rel *, struct rel_tenant *, struct rel_node *);
	/* ns x scale / REL_SCALE_ONE / weight more, or less, to be paid: of
	 * this request, or of none (NULL).  The weight is the tenant's now:
	 * weight() has rescaled what was charged before */
	void (*charge)(struct rel *, struct rel_tenant *,
	    const struct rel_node *, int64_t ns, uint32_t scale);
	/* A request of the tenant's ends: settled, and still counted.  NULL:
	 * all those of a member that leaves its group, or of a tenant that
	 * joins one */
	void (*complete)(struct rel *, struct rel_tenant *, struct rel_node *);
	/* Began service on a resource; of REL_NET also when it completes */
	void (*progress)(struct rel *, struct rel_node *, enum rel_resource);
	/* Estimate or weight of the tenant have changed */
	void (*estimate)(struct rel *, struct rel_tenant *);
	void (*weight)(struct rel *, struct rel_tenant *, uint32_t before);
	/* Virtual ns: what is owed, or a credit below zero */
	int64_t (*account)(const struct rel *, const struct rel_tenant *);
};

struct rel_tenant {
	uint32_t		magic;
#define REL_TENANT_MAGIC	0x7e4a47b3
	uint32_t		weight;
	struct rel_link		all;		/* in rel->tenants, or members */
	struct rel_link		queue;		/* of rel_node.queue */
	struct rel_link		shut;		/* the same, behind its limit */
	unsigned		waits;		/* requests, wherever */
	unsigned		waiting;	/* of these, in queue; a member's
						 * are in pool or its group's */
	unsigned		running;
	int64_t			estimate[REL__RESOURCES];
	int64_t			cost;		/* ns, k: 1 to REL_COST_MAX */
	enum rel_resource	dominant;
	uint64_t		enqueued, released, cancelled, completed;
	int64_t			charged;
	int64_t			booked;		/* ns, charges of what runs */
	struct mclock		mclock;
	struct rel_tenant	*group;		/* whose member it is, or NULL */
	uint16_t		moves;		/* of it, while requests ran */
	struct member		member;		/* as such */
	int			is_group;
	struct group		of;		/* its members */
	_Alignas(64) char	policy[];	/* the policy's */
};

struct rel {
	uint32_t		magic;
#define REL_MAGIC		0x5e1ea5e4
	const struct rel_policy	*policy;
	size_t			state_size;	/* bytes, of any policy */
	size_t			tenant_size;
	unsigned		nslots;
	unsigned		options;
	int64_t			round;		/* ns, at least */
	unsigned		flows;		/* alpha */
	int64_t			now;		/* ns, of the last call */
	int64_t			booked;		/* ns, charges of what runs */
	uint16_t		epoch:REL_EPOCH_BITS;	/* starts of a policy */
	uint8_t			restart;	/* before the next decision */
	unsigned		waits;		/* requests, wherever */
	unsigned		waiting;	/* of these, where the policy sees
						 * them */
	unsigned		nshut;		/* of these, behind limits */
	unsigned		running;
	unsigned		backlogged;	/* groups, and tenants without */
	uint64_t		backlogged_weight;
	uint64_t		busy_weight;	/* who has a request at all */
	struct rel_link		tenants;	/* of rel_tenant.all */
	struct rel_link		order;		/* of rel_node.order */
	unsigned		closed;		/* of the last dequeue */
	/* Groups by the resource of whose turn it is, if a member that uses
	 * another one could have it instead */
	struct rel_link		stuck[REL__RESOURCES];
	/* Groups whose turn would be another member's, but that its resource
	 * was closed */
	struct rel_link		passed;
	struct mclock_index	mclock;
	rel_assert_f		*held;
	void			*priv;
	_Alignas(16) char	state[];	/* the policy's */
};

extern const struct rel_policy rel_policy_mr3rs;
extern const struct rel_policy rel_policy_mr3;
extern const struct rel_policy rel_policy_fifo;
extern const struct rel_policy rel_policy_wfq;
extern const struct rel_policy rel_policy_sfq;
extern const struct rel_policy rel_policy_wf2q;
extern const struct rel_policy rel_policy_2dfq;
extern const struct rel_policy rel_policy_2dfqe;
extern const struct rel_policy rel_policy_drr;
extern const struct rel_policy rel_policy_rr;
extern const struct rel_policy rel_policy_drfq;
extern const struct rel_policy rel_policy_msf2q;
extern const struct rel_policy rel_policy_mr3vf;

/* REL_New() with a policy that need not be in the table (tests) */
struct rel *rel_new(const struct rel_policy *, unsigned nslots,
    unsigned options, rel_assert_f *, void *priv);

/* For dequeue: the node leaves its queue, and runs */
void rel_release(struct rel *, struct rel_node *, unsigned slot);

/* The tenant of the policy that this one is, or is a member of */
static inline struct rel_tenant *
top_of(struct rel_tenant *t)
{
	return (t->group != NULL ? t->group : t);
}

/* The tenant of the policy whose node it is */
static inline struct rel_tenant *
rel_top(const struct rel_node *n)
{
	return (top_of(n->tenant));
}

/* The tenant's first node */
static inline struct rel_node *
rel_first(const struct rel_tenant *t)
{
	return (LIST_OF(t->queue.next, struct rel_node, queue));
}

#endif
