/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The releaser: requests wait here, a policy says which goes next.
 *
 * Nothing here knows Varnish, a clock, a thread or a lock: `now` is an
 * argument, the caller serialises all calls on one `struct rel`, and the
 * same calls give the same answers everywhere (varnishd, the unit tests and
 * the simulator share this source).  All times and costs are nanoseconds in
 * int64_t.
 *
 * A request is a `struct rel_node` in the caller's memory:
 *
 *	IDLE --Enqueue--> WAITING --Dequeue--> RUNNING --Complete--> IDLE
 *	                     `------Cancel-----> IDLE
 *
 * SHUT and POOLED are WAITING, too, behind its tenant's limit or until it is
 * its tenant's turn in a group: see REL_Waits().
 * While a node waits it belongs to the releaser; from the moment that
 * Dequeue returns it, or Cancel or Complete has returned, it is the
 * caller's again and may be freed.
 *
 * Tenants are memory of the caller too (REL_TenantSize() bytes each), so
 * that nothing is allocated here after REL_New().
 */

#ifndef RELEASER_H_INCLUDED
#define RELEASER_H_INCLUDED

#include <stddef.h>
#include <stdint.h>

#include "resource.h"

enum rel_state {
	REL_IDLE = 0,
	REL_WAITING,
	REL_RUNNING,
	REL_SHUT,
	REL_POOLED
};

enum rel_answer {
	REL_RELEASED,		/* *node is yours, it runs */
	REL_EMPTY,		/* nothing waits */
	REL_NO_SLOT,		/* the slot is not below the number of slots */
	REL_NOT_YET		/* nothing is eligible before *when; INT64_MAX:
				 * before a resource opens or a request ends */
};

struct rel;
struct rel_tenant;

struct rel_link {			/* of a circular list: list.h */
	struct rel_link		*next, *prev;
};

/* A policy started anew so often during one request looks as if it had not */
#define REL_EPOCH_BITS		13

struct rel_node {
	uint32_t		magic;
#define REL_NODE_MAGIC		0x6e0de5a9
	uint16_t		state:3;	/* enum rel_state */
	uint16_t		epoch:REL_EPOCH_BITS;	/* at release: starts of
							 * the policy, and moves
							 * of the tenant */
	uint16_t		slot:14;	/* that it was released for */
	uint16_t		reserved:2;	/* by whose reservation */
	struct rel_tenant	*tenant;
	struct rel_link		queue;		/* in the tenant's */
	union {
		struct rel_link	order;		/* WAITING: all, by arrival */
		struct {			/* RUNNING */
			int64_t	charge;		/* ns, k: charged at release */
			uint32_t turn;		/* the policy's */
		};
	};
	int64_t			arrival;	/* ns, now of REL_Enqueue() */
	uint32_t		host[2];	/* the host's, never looked at */
};

/*
 * The repairs to the paper's Figure 8 that the default policy has
 * (design: "The default policy, exactly").  Clearing a bit gives the
 * paper's own behaviour in that point.
 */
#define REL_OPT_SETTLE		(1U << 0)	/* charge what it cost, not k */
#define REL_OPT_KEEP_DEBT	(1U << 1)	/* a queue that empties keeps debt */
#define REL_OPT_CAP		(1U << 2)	/* u <= U, and the debt wheel */
#define REL_OPT_CLOSED		(1U << 3)	/* heed closed resources */
#define REL_OPT_REJOIN		(1U << 4)	/* who comes back goes first */
#define REL_OPT_LIMITS		(1U << 5)	/* heed limits and groups */
#define REL_OPT_ALL		(0x3fU)
#define REL_OPT_PAPER		(0U)

/* Weights are integers, REL_WEIGHT_ONE is a weight of 1.0 */
#define REL_WEIGHT_ONE		1024U
#define REL_WEIGHT_MAX		(1024U * REL_WEIGHT_ONE)

/* A part of all that a resource can do, in fixed point */
#define REL_PART_ONE	65536U

typedef void rel_assert_f(void *priv);	/* "the lock is held" */

struct rel_tenant_stat {
	unsigned		waiting;	/* requests */
	unsigned		running;	/* requests */
	uint32_t		weight;
	uint32_t		reservation;	/* of REL_PART_ONE, or 0 */
	uint32_t		limit;		/* the same */
	int64_t			estimate[REL__RESOURCES];	/* ns */
	enum rel_resource	dominant;
	int64_t			account;	/* ns, A - G: excess if > 0 */
	uint64_t		enqueued, released, cancelled, completed;
	int64_t			charged;	/* ns, settled, since it began */
};

/*--------------------------------------------------------------------
 * Policies
 */

unsigned REL_Policies(void);			/* how many there are */
const char *REL_PolicyName(unsigned);		/* NULL past the last */
const char *REL_PolicySummary(unsigned);	/* one line, no full stop */
/*
 * The estimator (EST_ByName() of cost.h) that a policy has costs estimated by,
 * and its alpha, Q16; NULL: none of its own.
 */
const char *REL_PolicyEstimator(unsigned, uint32_t *alpha);
int REL_PolicyByName(const char *);		/* index, or -1 */

/*--------------------------------------------------------------------
 * A releaser.
 *
 * REL_New() returns NULL when memory runs out.  nslots >= 1.  held (may be
 * NULL) is called first thing in every function that changes state.
 */

struct rel *REL_New(unsigned policy, unsigned nslots, unsigned options,
    rel_assert_f *held, void *priv);
void REL_Destroy(struct rel **);

/*
 * Another policy from now on.  What waits is queued again in order of
 * arrival; accounts start anew; requests that run under the old policy
 * complete without touching the new one's accounts.  Unknown: -1, and
 * nothing has changed.  A policy's tables are sized in REL_New() for the
 * largest policy: no failure for want of memory.
 */
int REL_SetPolicy(struct rel *, unsigned policy, int64_t now);
unsigned REL_GetPolicy(const struct rel *);
void REL_SetSlots(struct rel *, unsigned nslots);
void REL_SetOptions(struct rel *, unsigned options);
				/* accounts start anew if they change */
/*
 * A round gives so many ns of service at least, to all that have requests
 * together, but no more than U a tenant, and not while one waits that uses the
 * link: longer turns, warmer caches.  0, as in a new one: as the paper has it,
 * the largest excess of the round before.
 */
void REL_SetRound(struct rel *, int64_t ns);
/*
 * Of policy mr3-vf: how many virtual flows a tenant has (paper, section 6.3:
 * alpha), 1 to REL_FLOWS_MAX; REL_FLOWS in a new releaser.  Accounts start anew
 * if it changes.
 */
#define REL_FLOWS	8U
#define REL_FLOWS_MAX	16U			/* a power of two */
void REL_SetFlows(struct rel *, unsigned alpha);

unsigned REL_Waiting(const struct rel *);
unsigned REL_Shut(const struct rel *);		/* of these, behind limits */
unsigned REL_Running(const struct rel *);
unsigned REL_Backlogged(const struct rel *);	/* tenants that wait */
uint64_t REL_BackloggedWeight(const struct rel *);	/* the sum of theirs */
int64_t REL_Oldest(const struct rel *);		/* first arrival, or -1 */
struct rel_node *REL_First(const struct rel *);	/* that to arrive, or NULL */

/*--------------------------------------------------------------------
 * Tenants
 */

size_t REL_TenantSize(void);
struct rel_tenant *REL_TenantInit(struct rel *, void *mem, uint32_t weight);
void REL_TenantFini(struct rel *, struct rel_tenant *);
				/* asserts that nothing waits or runs, and
				 * that it is a group of nobody */
int REL_TenantIdle(const struct rel *, const struct rel_tenant *);
				/* nothing waits or runs, no debt, no member */
unsigned REL_TenantWaiting(const struct rel_tenant *);
				/* requests */
unsigned REL_TenantRunning(const struct rel_tenant *);
				/* requests */
/* Its first request that waits, or NULL.  It looks at all members of a group,
 * and under fifo at all requests of its group */
const struct rel_node *REL_TenantFirst(const struct rel_tenant *);
void REL_TenantStat(const struct rel *, const struct rel_tenant *,
    struct rel_tenant_stat *);
void REL_SetWeight(struct rel *, struct rel_tenant *, uint32_t weight);

/*
 * The tenant is a member of the group from now on, or of none (NULL).  A group
 * is a tenant that has no requests of its own, and is itself in no group: its
 * weight, reservation and limit are those of all its members together, among
 * whom their weights count.  The tenant's requests that wait are queued again,
 * in their order: a call takes as long as enqueueing them.  What runs of it at
 * this time is not settled when it completes.
 */
void REL_SetGroup(struct rel *, struct rel_tenant *, struct rel_tenant *group,
    int64_t now);
struct rel_tenant *REL_Group(const struct rel_tenant *);	/* or NULL */
/* Requests that wait of a tenant and its siblings */
unsigned REL_GroupWaiting(const struct rel_tenant *);
/* The tenant's part of n, by weight, among its siblings that wait; at least 1.
 * In no group: n */
unsigned REL_GroupPart(const struct rel_tenant *, unsigned n);
/* What the tenant has of a scarce resource while those wait that wait now, and
 * itself: 0 to 1 */
double REL_Share(const struct rel *, const struct rel_tenant *);

/*
 * What a tenant has at least and at most, whatever its weight and the policy,
 * as parts of its dominant resource (mClock: Gulati, Merchant and Varman,
 * OSDI 2010, section 3); 0: nothing is reserved, there is no limit.  Behind
 * its limit a request waits though slots are free.  What is reserved and not
 * used goes to others.  More than the machine reserved in all: whoever is
 * furthest behind goes first, and who has no reservation may starve.  What is
 * reserved for a member it has though its group be at its limit.
 */
void REL_SetLimits(struct rel *, struct rel_tenant *, uint32_t reservation,
    uint32_t limit, int64_t now);

/*
 * What the next request of the tenant will cost, ns a resource.  The
 * largest is the dominant resource, and what a release is charged; at
 * least 1 ns is.  A group's is that of the member whose turn it is, and
 * nothing that is said here.
 */
void REL_SetEstimate(struct rel *, struct rel_tenant *,
    const int64_t estimate[REL__RESOURCES]);

/*--------------------------------------------------------------------
 * Requests
 */

/* Does it wait, wherever? */
static inline int
REL_Waits(const struct rel_node *n)
{
	return (n->state != REL_IDLE && n->state != REL_RUNNING);
}

void REL_Enqueue(struct rel *, struct rel_tenant *, struct rel_node *,
    int64_t now);

/*
 * The next request, for a worker with this slot (0 to nslots - 1).
 * closed: REL_MASK()s of resources that must get no more work now.
 * A tenant whose dominant resource is closed is not eligible.  A tenant
 * that uses a closed resource for more than REL_USES of its estimate
 * stays with its turn, so that it cannot run ahead of those that are
 * held.  All others pass.
 */
#define REL_USES	8		/* an eighth */
enum rel_answer REL_Dequeue(struct rel *, int64_t now, unsigned slot,
    unsigned closed, struct rel_node **node, int64_t *when);

/*
 * The running request began service on a resource.  Policies with end-to-end
 * synchronisation (paper, section 4.3) wait for that, REL_Synchronised() is
 * true for these: REL_Dequeue() may release more afterwards.  A request that
 * completes need not have said so.
 */
int REL_Synchronised(const struct rel *);
void REL_Progress(struct rel *, struct rel_node *, enum rel_resource,
    int64_t now);

/* The running request has cost this much so far (2DFQ's refresh charging):
 * the part beyond its charge is charged now */
void REL_Refresh(struct rel *, struct rel_node *, int64_t cost, int64_t now);

/*
 * The request is done and its dominant cost was `cost`.  (cost - charge)
 * x scale / REL_SCALE_ONE is settled: scale is 1/p for a request that was
 * measured because a draw with probability p said so, REL_SCALE_ONE for
 * one that is always measured.  A negative cost says it wasn't measured,
 * and nothing is settled.
 */
void REL_Complete(struct rel *, struct rel_node *, int64_t cost,
    uint32_t scale, int64_t now);

/* A waiting request goes away, uncharged */
void REL_Cancel(struct rel *, struct rel_node *, int64_t now);

/* A cost of the tenant's outside of any request (backend threads) */
void REL_Charge(struct rel *, struct rel_tenant *, int64_t cost, int64_t now);

#endif
