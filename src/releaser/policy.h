/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The interface of a release policy: one file with one `struct rel_policy`,
 * and one name in REL_POLICIES below.
 *
 * The host is the rest of the releaser.  It keeps the requests: one queue for
 * each tenant, and one list of all, by arrival.  It also does what is the same
 * for every policy: states, estimates, counts, groups, reservations, limits.
 * A policy does not see throttled requests, and sees a group as one tenant.
 * A policy keeps accounts and picks the next request.  Its memory is the
 * host's, zeroed: `state_size` bytes for each releaser, and `tenant_size`
 * bytes for each tenant.
 */

#ifndef POLICY_H_INCLUDED
#define POLICY_H_INCLUDED

#include "group.h"
#include "list.h"
#include "mclock.h"
#include "releaser.h"

#define REL_SLOT_MAX	0x3fff	/* largest rel_node.slot */

enum rel_reserved {			/* rel_node.reserved: released by the
					 * reservation of */
	REL_NOT_RESERVED = 0,
	REL_BY_TENANT,
	REL_BY_GROUP,
	REL_UNQUEUED		/* REL_Run(): the policy never saw it */
};

/* Upper bound of one cost or charge, ns (73 minutes) */
#define REL_COST_MAX		(INT64_C(1) << 42)

struct rel_policy {
	const char		*name;
	const char		*summary;
	size_t			state_size;
	size_t			tenant_size;
	/* Name of the estimator that the policy needs (cost.h), and its alpha,
	 * Q16.  NULL: any. */
	const char		*estimator;
	uint32_t		alpha;
	int			ungrouped;	/* ignores groups */

	/* Except dequeue, each of these may be NULL */
	void (*init)(struct rel *);
	void (*tenant_init)(struct rel *, struct rel_tenant *);
	void (*tenant_fini)(struct rel *, struct rel_tenant *);

	/* A node has entered the tenant's queue.  For a group the host also
	 * calls this within rel_release(), so that to the policy the group
	 * stays backlogged. */
	void (*enqueue)(struct rel *, struct rel_tenant *, struct rel_node *);
	/* Pick the next node, and give it to rel_release().  At least one
	 * request waits.  closed: REL_MASK()s, 0 if REL_OPT_CLOSED is off.
	 * *when is INT64_MAX on entry. */
	enum rel_answer (*dequeue)(struct rel *, int64_t now, unsigned slot,
	    unsigned closed, struct rel_node **, int64_t *when);
	/* A node has left the tenant's queue without a turn: it was cancelled,
	 * moved, or released by a reservation */
	void (*cancel)(struct rel *, struct rel_tenant *, struct rel_node *);
	/* Add ns x scale / REL_SCALE_ONE / weight to the account; ns may be
	 * negative.  The node is the request that pays, NULL: none.  The weight
	 * is the present one: weight() has rescaled earlier charges. */
	void (*charge)(struct rel *, struct rel_tenant *,
	    const struct rel_node *, int64_t ns, uint32_t scale);
	/* A request completes: its cost is settled, and t->running still
	 * counts it.  NULL node: the tenant's running requests move to another
	 * group, or to none; t->running counts them as one. */
	void (*complete)(struct rel *, struct rel_tenant *, struct rel_node *);
	/* A request began service on a resource.  The host also calls this
	 * with REL_NET when a request completes. */
	void (*progress)(struct rel *, struct rel_node *, enum rel_resource);
	/* The tenant's estimate, or its weight, has changed */
	void (*estimate)(struct rel *, struct rel_tenant *);
	void (*weight)(struct rel *, struct rel_tenant *, uint32_t before);
	/* Return the account, virtual ns: debt if > 0, credit if < 0 */
	int64_t (*account)(const struct rel *, const struct rel_tenant *);
};

struct rel_tenant {
	uint32_t		magic;
#define REL_TENANT_MAGIC	0x7e4a47b3
	uint32_t		weight;
	struct rel_link		all;		/* in rel->tenants, or
						 * in the group's members */
	struct rel_link		queue;		/* of rel_node.queue */
	struct rel_link		shut;		/* the same: throttled */
	unsigned		waits;		/* requests that wait, in all */
	unsigned		waiting;	/* top-level tenant: in queue.
						 * Member: in its pool, or in
						 * the group's queue */
	unsigned		running;
	int64_t			estimate[REL__RESOURCES];
	int64_t			cost;		/* ns, k: 1 to REL_COST_MAX */
	enum rel_resource	dominant;
	uint64_t		enqueued, released, cancelled, completed;
	int64_t			charged;
	int64_t			in_service;	/* ns, charges of running */
	struct mclock		mclock;
	struct rel_tenant	*group;		/* NULL: in no group */
	uint16_t		moves;		/* changes of group while
						 * requests ran */
	struct member		member;		/* if group is not NULL */
	int			is_group;
	struct group		of;		/* if it is a group */
	_Alignas(64) char	policy[];	/* the policy's account */
};

struct rel {
	uint32_t		magic;
#define REL_MAGIC		0x5e1ea5e4
	const struct rel_policy	*policy;
	size_t			state_size;	/* bytes, of any policy */
	size_t			tenant_size;
	unsigned		nslots;
	unsigned		options;
	int64_t			round;		/* ns, REL_SetRound() */
	unsigned		flows;		/* REL_SetFlows() */
	int64_t			now;		/* ns, of the last call */
	int64_t			in_service;	/* ns, charges of running */
	uint16_t		epoch:REL_EPOCH_BITS;	/* restarts of policy */
	uint8_t			restart;	/* at the next REL_Dequeue() */
	unsigned		waits;		/* requests that wait, in all */
	unsigned		waiting;	/* of these, those that the
						 * policy sees */
	unsigned		nshut;		/* of these, throttled */
	unsigned		running;
	unsigned		backlogged;	/* top-level tenants */
	uint64_t		backlogged_weight;
	uint64_t		busy_weight;	/* of top-level tenants that
						 * are busy: is_busy() */
	struct rel_link		tenants;	/* of rel_tenant.all */
	struct rel_link		order;		/* of rel_node.order */
	unsigned		closed;		/* of the last REL_Dequeue() */
	/* Groups by dominant resource, if a member with another dominant
	 * resource could have the turn instead (head-of-line blocking) */
	struct rel_link		hol_blocked[REL__RESOURCES];
	/* Groups whose turn passed to another member, because the dominant
	 * resource of the member with the least S was closed */
	struct rel_link		passed;
	struct mclock_index	mclock;
	rel_assert_f		*held;
	void			*priv;
	_Alignas(16) char	state[];	/* the policy's own */
};

/* All policies: rel_policy_NAME is in policy_NAME.c, that of mr3 in
 * policy_mr3rs.c, and that of 2dfqe in policy_2dfq.c.  The users' name is
 * rel_policy_NAME.name. */
#define REL_POLICIES(P)		\
	P(mr3rs)		\
	P(fifo)			\
	P(mr3)			\
	P(wfq)			\
	P(sfq)			\
	P(wf2q)			\
	P(2dfq)			\
	P(2dfqe)		\
	P(drr)			\
	P(rr)			\
	P(drfq)			\
	P(msf2q)		\
	P(mr3vf)

#define REL_DECLARE(name)	\
	extern const struct rel_policy rel_policy_##name;
REL_POLICIES(REL_DECLARE)
#undef REL_DECLARE

/* As REL_New(), with a policy that need not be in the table (tests) */
struct rel *rel_new(const struct rel_policy *, unsigned nslots,
    unsigned options, rel_assert_f *, void *priv);

/* Release the node: take it out of its queue, charge the host's accounts, and
 * mark it RUNNING.  For dequeue(). */
void rel_release(struct rel *, struct rel_node *, unsigned slot);

/* Return the tenant that the policy sees: the group, or the tenant itself */
static inline struct rel_tenant *
top_of(struct rel_tenant *t)
{
	return (t->group != NULL ? t->group : t);
}

/* Return the tenant that the policy sees for this node */
static inline struct rel_tenant *
rel_top(const struct rel_node *n)
{
	return (top_of(n->tenant));
}

/* Return the first node of the tenant's queue, which must not be empty */
static inline struct rel_node *
rel_first(const struct rel_tenant *t)
{
	return (LIST_OF(t->queue.next, struct rel_node, queue));
}

#endif
