/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * What the files of the releaser share, beside what a policy sees: checks,
 * questions, and the moves of waiting.c.
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

/* Has it a request that the policy sees, waiting or running? */
static inline int
is_busy(const struct rel_tenant *t)
{
	return (t->waiting + t->running > 0);
}

#define EACH_LEVEL(x, t)	for (x = t; x != NULL; x = x->group)

/* Have its members turns? */
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

/* NULL: there are not so many */
const struct rel_policy *rel_policy(unsigned);
/* Bytes of the policy that needs most: in all, and a tenant */
void rel_largest(size_t *state, size_t *tenant);

/*--------------------------------------------------------------------
 * waiting.c
 */

#define REL_STEPS	16	/* limits that end, or groups whose turn is
				 * passed on: at most so many in one decision */

/* The tenant is new to the policy */
void rel_start_tenant(struct rel *, struct rel_tenant *);
/* Its queues, tags or limits have changed */
void rel_index_limits(struct rel *, struct rel_tenant *);
/* Its queues, tags or estimate have changed; not while a policy decides */
void rel_update(struct rel *, struct rel_tenant *);
/* To where it has to wait */
void rel_enter(struct rel *, struct rel_node *);
/* It waits no longer, and is not released */
void rel_withdraw(struct rel *, struct rel_node *);
/* The valve opens for one request */
void rel_open_valve(struct rel *, struct rel_tenant *);
/* The member has the turn of its group */
void rel_pass_turn(struct rel *, struct rel_tenant *);
/* Turns of members whose resource is closed go to others */
void rel_pass_closed(struct rel *, unsigned closed);
/* And back to them, when all is open */
void rel_pass_back(struct rel *);
/* The node leaves its queue, and runs: in its turn, or by a reservation (0) */
void rel_release_as(struct rel *, struct rel_node *, unsigned slot,
    int in_turn);
/* All waiting requests anew, to a policy at its start */
void rel_restart(struct rel *);
/* It runs, and these ns are charged; reserved: by whose reservation */
void rel_pay(struct rel *, struct rel_tenant *, int64_t ns, enum rel_reserved);
/* So many ns more are charged to what runs */
void rel_book(struct rel *, struct rel_tenant *, int64_t ns);
/* What a request was charged is settled while this is the same */
uint16_t rel_epoch_of(const struct rel *, const struct rel_tenant *);

#endif
