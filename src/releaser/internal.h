/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * What the files of the releaser share and a policy does not see: checks,
 * predicates, the moves of requests in waiting.c, and the restart in restart.c.
 */

#ifndef INTERNAL_H_INCLUDED
#define INTERNAL_H_INCLUDED

#include <assert.h>

#include "policy.h"

static inline void
check(const struct rel *rel)
{
	assert(rel != NULL);
	assert(rel->magic == REL_MAGIC);
}

static inline void
check_held(const struct rel *rel)
{
	check(rel);
	if (rel->held != NULL)
		rel->held(rel->priv);
}

static inline void
check_tenant(const struct rel_tenant *t)
{
	assert(t != NULL);
	assert(t->magic == REL_TENANT_MAGIC);
}

static inline void
check_node(const struct rel_node *n, enum rel_state state)
{
	assert(n != NULL);
	assert(n->magic == REL_NODE_MAGIC);
	assert(n->state == state);
	check_tenant(n->tenant);
}

static inline int64_t
clamp(int64_t ns, int64_t lo)
{
	if (ns < lo)
		return (lo);
	return (ns > REL_COST_MAX ? REL_COST_MAX : ns);
}

/* Does the tenant have a request that the policy sees, waiting or running? */
static inline int
is_busy(const struct rel_tenant *t)
{
	return (t->waiting + t->running > 0);
}

#define EACH_LEVEL(x, t)	for (x = t; x != NULL; x = x->group)

/* Do the tenant's members have turns? */
static inline int
has_turns(const struct rel *rel, const struct rel_tenant *t)
{
	return (t->is_group && (rel->options & REL_OPT_LIMITS) &&
	    !rel->policy->ungrouped);
}

static inline int
has_limit(const struct rel *rel, const struct rel_tenant *t)
{
	return (t->mclock.limit.part > 0 && (rel->options & REL_OPT_LIMITS));
}

/*--------------------------------------------------------------------
 * policies.c
 */

/* Return the policy of this index; NULL: no such policy */
const struct rel_policy *rel_policy(unsigned);
/* Return the largest state_size and the largest tenant_size of all policies */
void rel_largest(size_t *state, size_t *tenant);

/*--------------------------------------------------------------------
 * waiting.c
 */

#define REL_STEPS	16	/* limits that end, or groups whose turn
				 * passes: at most so many in one decision */

/* Update the tenant's place in the heaps of mclock, after a change of its
 * queues, tags or limits */
void rel_index_limits(struct rel *, struct rel_tenant *);
/* Update all that follows from the tenant's queues, tags or estimate.  Do not
 * call this while a policy decides: it may call the policy's estimate(). */
void rel_update(struct rel *, struct rel_tenant *);
/* Put the node where it has to wait: throttled, in a pool, or in a queue */
void rel_enter(struct rel *, struct rel_node *);
/* Take out a waiting node that is not released, and tell the policy */
void rel_withdraw(struct rel *, struct rel_node *);
/* Unthrottle one request of the tenant */
void rel_unthrottle(struct rel *, struct rel_tenant *);
/* Give the turn of the group to this member */
void rel_class_swap_head(struct rel *, struct rel_tenant *);
/* Pass turns on from members whose dominant resource is closed */
void rel_pass_closed(struct rel *, unsigned closed);
/* Pass turns back to the members with the least S.  All resources are open. */
void rel_pass_back(struct rel *);
/* Mark the node RUNNING, with this charge, and reserved by nobody */
void rel_runs(const struct rel *, struct rel_node *, unsigned slot,
    int64_t charge);
/* Release the node: take it out of its queue, charge it, mark it RUNNING.
 * in_turn: 0 if a reservation releases it. */
void rel_release_as(struct rel *, struct rel_node *, unsigned slot,
    int in_turn);
/* Count ns as charged to the tenant and its group, and move their mclock tags.
 * reserved: whose reservation released the request. */
void rel_pay(struct rel *, struct rel_tenant *, int64_t ns, enum rel_reserved);
/* Add ns to the charges of running requests */
void rel_book(struct rel *, struct rel_tenant *, int64_t ns);
/* Return the epoch of a release now.  A request is settled only if the epoch at
 * its completion is the one at its release. */
uint16_t rel_epoch_of(const struct rel *, const struct rel_tenant *);

/*--------------------------------------------------------------------
 * restart.c
 */

/* Start the tenant's account in the policy at zero */
void rel_start_tenant(struct rel *, struct rel_tenant *);
/* Restart the policy, and queue all waiting requests again */
void rel_restart(struct rel *);

#endif
