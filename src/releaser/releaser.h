/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The releaser: queues of requests, and a policy that picks the next one.
 *
 * The library has no clock, no thread and no lock, and includes nothing of
 * Varnish.  `now` is an argument.  The caller serialises all calls on one
 * `struct rel`.  The same calls give the same answers in varnishd, in the
 * unit tests and in the simulator.  Times and costs are int64_t, in ns.
 *
 * A request is a `struct rel_node` in the caller's memory: see enum rel_state.
 * Tenants are memory of the caller too, REL_TenantSize() bytes each.  So
 * nothing is allocated after REL_New().
 */

#ifndef RELEASER_H_INCLUDED
#define RELEASER_H_INCLUDED

#include <stddef.h>
#include <stdint.h>

#include "resource.h"

/*
 *	IDLE --Enqueue--> WAITING --Dequeue--> RUNNING --Complete--> IDLE
 *	                     `------Cancel-----> IDLE
 *	IDLE --Run--------------------------> RUNNING
 *
 * A waiting node can also be SHUT (throttled by its tenant's limit) or POOLED
 * (in a group, before its member has the turn): see REL_IsBacklogged().
 *
 * The releaser owns a node while the node waits.  A RUNNING node must stay
 * valid until Complete.  The caller owns the node again, and may free it, when
 * Cancel or Complete returns.
 */
enum rel_state {
	REL_IDLE = 0,
	REL_WAITING,
	REL_RUNNING,
	REL_THROTTLED,
	REL_IN_CLASS
};

enum rel_answer {
	REL_RELEASED,		/* *node runs */
	REL_EMPTY,		/* no request waits */
	REL_NO_SLOT,		/* slot >= number of slots */
	REL_NOT_YET		/* no request is eligible before *when, ns.
				 * INT64_MAX: before a resource opens, or a
				 * request progresses or completes */
};

struct rel;
struct rel_tenant;

struct rel_link {			/* of a circular list: see list.h */
	struct rel_link		*next, *prev;
};

/* After 2^REL_EPOCH_BITS restarts of the policy within one request, the
 * request's stale epoch looks current */
#define REL_EPOCH_BITS		13

struct rel_node {
	uint32_t		magic;
#define REL_NODE_MAGIC		0x6e0de5a9
	uint16_t		state:3;	/* enum rel_state */
	uint16_t		epoch:REL_EPOCH_BITS;	/* at release: restarts
							 * of the policy, moves
							 * of the tenant */
	uint16_t		slot:14;	/* it was released for */
	uint16_t		reserved:2;	/* enum rel_reserved */
	struct rel_tenant	*tenant;
	struct rel_link		queue;		/* in the tenant's queue */
	union {
		struct rel_link	order;		/* all that wait, by arrival */
		struct {			/* RUNNING */
			int64_t	charge;		/* ns, k: charged so far */
			uint32_t turn;		/* private to the policy */
		};
	};
	int64_t			arrival;	/* ns, now of REL_Enqueue() */
};

/*
 * Options of a releaser.  The first five are repairs to the paper's Figure 8
 * (doc/internals/algorithms.md, section "The default policy").  A cleared bit
 * gives the paper's own behaviour in that point.
 */
#define REL_OPT_SETTLE		(1U << 0)	/* settle the real cost */
#define REL_OPT_KEEP_DEBT	(1U << 1)	/* empty queue: keep debt */
#define REL_OPT_CAP		(1U << 2)	/* u <= U, and the debt wheel */
#define REL_OPT_CLOSED		(1U << 3)	/* respect closed resources */
#define REL_OPT_REJOIN		(1U << 4)	/* credit on return: first */
#define REL_OPT_LIMITS		(1U << 5)	/* enforce limits, groups */
#define REL_OPT_ALL		(0x3fU)
#define REL_OPT_PAPER		(0U)

/* Weights are fixed point: REL_WEIGHT_ONE is a weight of 1.0 */
#define REL_WEIGHT_ONE		1024U
#define REL_WEIGHT_MAX		(1024U * REL_WEIGHT_ONE)

/* The whole capacity of a resource, fixed point */
#define REL_PART_ONE	65536U

typedef void rel_assert_f(void *priv);	/* assert: lock held */

struct rel_tenant_stat {
	unsigned		waiting;	/* requests */
	unsigned		running;	/* requests */
	uint32_t		weight;
	uint32_t		reservation;	/* of REL_PART_ONE; 0: none */
	uint32_t		limit;		/* of REL_PART_ONE; 0: none */
	int64_t			estimate[REL__RESOURCES];	/* ns */
	enum rel_resource	dominant;
	int64_t			account;	/* virtual ns, A - G: excess */
	uint64_t		enqueued, released, cancelled, completed;
	int64_t			charged;	/* ns, settled, in all */
};

/*--------------------------------------------------------------------
 * Policies
 */

unsigned REL_Policies(void);			/* number of policies */
const char *REL_PolicyName(unsigned);		/* NULL: no such policy */
const char *REL_PolicySummary(unsigned);	/* one line, no full stop */
/*
 * Return the name of the estimator that the policy needs: see EST_ByName() of
 * cost.h.  *alpha: its weight, Q16.  NULL: the policy works with any estimator.
 */
const char *REL_PolicyEstimator(unsigned, uint32_t *alpha);
int REL_PolicyByName(const char *);		/* index; -1: unknown */

/*--------------------------------------------------------------------
 * A releaser.
 *
 * REL_New() returns NULL if memory runs out.  nslots >= 1.  Functions that
 * change state call held() before they change anything, to assert that the
 * caller holds its lock.  REL_Destroy() does not.  held may be NULL.
 */

struct rel *REL_New(unsigned policy, unsigned nslots, unsigned options,
    rel_assert_f *held, void *priv);
void REL_Destroy(struct rel **);

/*
 * Switch to another policy.  Waiting requests are queued again, in order of
 * arrival.  Accounts start at zero.  A request that runs now completes without
 * a settlement.  Never allocates: REL_New() sized the policy's memory for the
 * largest policy.  Returns 0, or -1 for an unknown policy, and changes nothing.
 */
int REL_SetPolicy(struct rel *, unsigned policy, int64_t now);
unsigned REL_GetPolicy(const struct rel *);
void REL_SetSlots(struct rel *, unsigned nslots);
void REL_SetOptions(struct rel *, unsigned options);
				/* accounts start at zero if they change */
/*
 * Set the least service of one round of mr3-rs and mr3, ns, for all busy
 * tenants together.  Longer turns keep caches warm.  A tenant gets at most U
 * of a round.  The setting has no effect while a tenant waits that uses net.
 * 0, the default: as in the paper, u is the largest excess of the last round.
 */
void REL_SetRound(struct rel *, int64_t ns);
/*
 * Set alpha, the number of virtual flows of a tenant under policy mr3-vf
 * (paper, section 6.3): 1 to REL_FLOWS_MAX.  The default is REL_FLOWS.
 * Accounts start at zero if alpha changes.
 */
#define REL_FLOWS	8U
#define REL_FLOWS_MAX	16U			/* a power of two */
void REL_SetFlows(struct rel *, unsigned alpha);

unsigned REL_Waiting(const struct rel *);
unsigned REL_Throttled(const struct rel *);	/* of these */
unsigned REL_Running(const struct rel *);
unsigned REL_Backlogged(const struct rel *);	/* top-level tenants */
uint64_t REL_BackloggedWeight(const struct rel *);	/* their weights */
int64_t REL_Oldest(const struct rel *);		/* ns, first arrival; -1 */
struct rel_node *REL_First(const struct rel *);	/* first to arrive; NULL */

/*--------------------------------------------------------------------
 * Tenants
 */

/* Start a tenant in mem, of REL_TenantSize() bytes.  weight: 1 to
 * REL_WEIGHT_MAX, of REL_WEIGHT_ONE. */
size_t REL_TenantSize(void);
struct rel_tenant *REL_TenantInit(struct rel *, void *mem, uint32_t weight);
void REL_TenantFini(struct rel *, struct rel_tenant *);
				/* asserts: nothing waits or runs, and the
				 * tenant has no members */
int REL_TenantIdle(const struct rel *, const struct rel_tenant *);
				/* nothing waits or runs, no debt, no member */
unsigned REL_TenantWaiting(const struct rel_tenant *);
				/* requests */
unsigned REL_TenantRunning(const struct rel_tenant *);
				/* requests */
/*
 * Return the first waiting request of the tenant, or NULL.  Walks all members
 * of a group.  For a member it walks the group's queue: one request, or all
 * requests of the group if the policy ignores groups (fifo).
 */
const struct rel_node *REL_TenantFirst(const struct rel_tenant *);
void REL_TenantStat(const struct rel *, const struct rel_tenant *,
    struct rel_tenant_stat *);
void REL_SetWeight(struct rel *, struct rel_tenant *, uint32_t weight);
uint32_t REL_Weight(const struct rel_tenant *);
/* Of REL_PART_ONE; 0: none */
uint32_t REL_Reservation(const struct rel_tenant *);
uint32_t REL_Limit(const struct rel_tenant *);

/*
 * Make the tenant a member of the group, or of no group (NULL).
 *
 * A group is a tenant without requests of its own, and is in no group itself.
 * Its weight, reservation and limit hold for all its members together.  The
 * weights of the members count only among the members.  Waiting requests of
 * the tenant are queued again, in their order, so the call is O(requests).
 * Requests of the tenant that run now are not settled when they complete.
 */
void REL_SetGroup(struct rel *, struct rel_tenant *, struct rel_tenant *group,
    int64_t now);
struct rel_tenant *REL_Group(const struct rel_tenant *);	/* or NULL */
unsigned REL_Members(const struct rel_tenant *);	/* 0: it is no group */
/* Return how many requests of the tenant and its siblings wait */
unsigned REL_GroupWaiting(const struct rel_tenant *);
/*
 * Return the tenant's part of n, by weight, among its backlogged siblings and
 * itself: at least 1.  Returns n for a tenant in no group.
 */
unsigned REL_GroupPart(const struct rel_tenant *, unsigned n);
/*
 * Return the tenant's share, 0 to 1: its part of a scarce resource in
 * competition with all tenants that are backlogged now.
 */
double REL_Share(const struct rel *, const struct rel_tenant *);

/*
 * Set the tenant's reservation and limit: the least and the most that it gets,
 * as parts of its dominant resource, of REL_PART_ONE.  0: none.  Both hold
 * under any policy and any weight (mClock: Gulati, Merchant and Varman, OSDI
 * 2010, section 3).
 *
 * A throttled request waits even if slots are free.  A reservation that is not
 * used goes to other tenants.  If more is reserved than there is, the tenant
 * that is furthest behind its reservation goes first.  Then tenants without a
 * reservation may starve.  A member has its reservation even while its group
 * is throttled.
 */
void REL_SetLimits(struct rel *, struct rel_tenant *, uint32_t reservation,
    uint32_t limit, int64_t now);

/*
 * Set what the next request of the tenant will cost, ns for each resource.
 *
 * The largest cost names the dominant resource, cpu if they are equal.  A
 * release charges that cost, but at least 1 ns.  A group's estimate is that of
 * the member that has the turn, so a call for a group does nothing.
 */
void REL_SetEstimate(struct rel *, struct rel_tenant *,
    const int64_t estimate[REL__RESOURCES]);

/*--------------------------------------------------------------------
 * Requests
 */

/* Does the request wait: in a queue, throttled, or in its group's pool? */
static inline int
REL_IsBacklogged(const struct rel_node *n)
{
	return (n->state != REL_IDLE && n->state != REL_RUNNING);
}

/* Add an IDLE node to the tenant's queue.  The tenant is no group. */
void REL_Enqueue(struct rel *, struct rel_tenant *, struct rel_node *,
    int64_t now);

/*
 * Release the next request for a worker that has this slot, 0 to nslots - 1.
 *
 * closed: REL_MASK()s of the resources that must get no more work now.  A
 * tenant is not eligible while its dominant resource is closed.  Under mr3-rs
 * and mr3 a tenant uses a resource if its estimate of that is more than
 * 1/REL_USES of its dominant one.  While a tenant is held, a tenant that uses
 * a closed resource ends its turn and gets no new one.  So it cannot run ahead
 * of the tenants that are held.  All others pass.  fifo ignores closed.
 */
#define REL_USES	8		/* an eighth */
enum rel_answer REL_Dequeue(struct rel *, int64_t now, unsigned slot,
    unsigned closed, struct rel_node **node, int64_t *when);

/*
 * Run an IDLE request of the tenant at once, on this slot.  It does not wait,
 * and no limit, closed resource or number of slots holds it back.  Nothing is charged
 * before REL_Complete().  So the caller bounds how often it does this.
 */
void REL_Run(struct rel *, struct rel_tenant *, struct rel_node *,
    unsigned slot, int64_t now);
int REL_IsUnqueued(const struct rel_node *);	/* it began by REL_Run() */

/*
 * Report that the running request began service on a resource.
 *
 * Policies with end-to-end synchronisation (paper, section 4.3) wait for that
 * report; REL_Synchronised() is true for them.  Afterwards REL_Dequeue() may
 * release more.  REL_Complete() includes the report for net.
 */
int REL_Synchronised(const struct rel *);
void REL_Progress(struct rel *, struct rel_node *, enum rel_resource,
    int64_t now);

/*
 * Charge a request while it runs (2DFQ, section 5: refresh charging).  cost:
 * its dominant cost so far, ns.  The part beyond its charge is charged now.
 */
void REL_Refresh(struct rel *, struct rel_node *, int64_t cost, int64_t now);

/*
 * Complete the request and settle its dominant cost, ns.
 *
 * (cost - charge) x scale / REL_SCALE_ONE is settled.  scale is 1/p if only a
 * draw of probability p had this request measured, else 1: REL_SCALE_ONE.
 * cost < 0: not measured, nothing is settled.
 */
void REL_Complete(struct rel *, struct rel_node *, int64_t cost,
    uint32_t scale, int64_t now);

/* Cancel a waiting request.  It was never charged. */
void REL_Cancel(struct rel *, struct rel_node *, int64_t now);

/* Charge a cost outside of any request, such as a backend thread's, ns */
void REL_Charge(struct rel *, struct rel_tenant *, int64_t cost, int64_t now);

#endif
