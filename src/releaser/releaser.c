/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The life of a request: enqueue, release, charge, complete, cancel.
 *
 * waiting.c knows where a request waits.  The policy picks the next one.  A
 * request that is owed by a reservation goes before the policy's choice.  The
 * policy hears of that release and charges it.
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

_Static_assert(sizeof(struct rel_node) <= 64, "a node fits a cache line");

struct rel *
rel_new(const struct rel_policy *policy, unsigned nslots, unsigned options,
    rel_assert_f *held, void *priv)
{
	size_t state, tenant;
	struct rel *rel;
	unsigned r;

	assert(policy != NULL && policy->dequeue != NULL);
	rel_largest(&state, &tenant);
	assert(policy->state_size <= state && policy->tenant_size <= tenant);
	assert(nslots >= 1);
	rel = calloc(1, sizeof *rel + state);
	if (rel == NULL)
		return (NULL);
	rel->magic = REL_MAGIC;
	rel->policy = policy;
	rel->state_size = state;
	rel->tenant_size = tenant;
	rel->nslots = nslots;
	rel->options = options;
	rel->flows = REL_FLOWS;
	rel->held = held;
	rel->priv = priv;
	list_init(&rel->tenants);
	list_init(&rel->order);
	for (r = 0; r < REL__RESOURCES; r++)
		list_init(&rel->hol_blocked[r]);
	list_init(&rel->passed);
	if (policy->init != NULL)
		policy->init(rel);
	return (rel);
}

struct rel *
REL_New(unsigned policy, unsigned nslots, unsigned options,
    rel_assert_f *held, void *priv)
{
	return (rel_new(rel_policy(policy), nslots, options, held, priv));
}

void
REL_Destroy(struct rel **relp)
{
	struct rel *rel;

	assert(relp != NULL);
	rel = *relp;
	*relp = NULL;
	check(rel);
	assert(list_empty(&rel->tenants));
	rel->magic = 0;
	free(rel);
}

int
REL_SetPolicy(struct rel *rel, unsigned policy, int64_t now)
{
	const struct rel_policy *p = rel_policy(policy);

	check_held(rel);
	rel->now = now;
	if (p == NULL)
		return (-1);
	if (rel->policy != p) {
		rel->policy = p;
		rel_restart(rel);
	}
	return (0);
}

unsigned
REL_GetPolicy(const struct rel *rel)
{
	unsigned u = 0;

	check(rel);
	while (u < REL_Policies() && rel->policy != rel_policy(u))
		u++;
	return (u);
}

void
REL_SetSlots(struct rel *rel, unsigned nslots)
{
	check_held(rel);
	assert(nslots >= 1);
	rel->nslots = nslots;
}

void
REL_SetOptions(struct rel *rel, unsigned options)
{
	check_held(rel);
	if (options == rel->options)
		return;
	rel->options = options;
	rel_restart(rel);
}

void
REL_SetRound(struct rel *rel, int64_t ns)
{
	check_held(rel);
	assert(ns >= 0 && ns <= REL_COST_MAX);
	rel->round = ns;
}

void
REL_SetFlows(struct rel *rel, unsigned alpha)
{
	check_held(rel);
	assert(alpha >= 1 && alpha <= REL_FLOWS_MAX);
	if (alpha == rel->flows)
		return;
	rel->flows = alpha;
	rel_restart(rel);
}

unsigned
REL_Waiting(const struct rel *rel)
{
	check(rel);
	return (rel->waits);
}

unsigned
REL_Throttled(const struct rel *rel)
{
	check(rel);
	return (rel->nshut);
}

unsigned
REL_Running(const struct rel *rel)
{
	check(rel);
	return (rel->running);
}

unsigned
REL_Backlogged(const struct rel *rel)
{
	check(rel);
	return (rel->backlogged);
}

uint64_t
REL_BackloggedWeight(const struct rel *rel)
{
	check(rel);
	return (rel->backlogged_weight);
}

int64_t
REL_Oldest(const struct rel *rel)
{
	const struct rel_node *n = REL_First(rel);

	return (n == NULL ? -1 : n->arrival);
}

struct rel_node *
REL_First(const struct rel *rel)
{
	check(rel);
	if (list_empty(&rel->order))
		return (NULL);
	return (LIST_OF(rel->order.next, struct rel_node, order));
}

/*--------------------------------------------------------------------*/

void
REL_Enqueue(struct rel *rel, struct rel_tenant *t, struct rel_node *n,
    int64_t now)
{
	struct rel_tenant *x;

	check_held(rel);
	check_tenant(t);
	assert(n != NULL && n->state == REL_IDLE);
	assert(!t->is_group);
	n->magic = REL_NODE_MAGIC;
	n->tenant = t;
	n->arrival = rel->now = now;
	EACH_LEVEL(x, t) {
		x->enqueued++;
		if (x->waits + x->running == 0)
			mclock_begin(&x->mclock, now);
	}
	list_append(&rel->order, &n->order);
	rel_enter(rel, n);
}

/* Release the request that is owed by a reservation, if there is one.  0:
 * none */
static int
release_reserved(struct rel *rel, unsigned slot, unsigned closed,
    struct rel_node **node)
{
	struct mclock *lim = NULL;
	struct rel_tenant *t, *top;
	struct rel_node *n;

	if (rel->options & REL_OPT_LIMITS)
		lim = mclock_owed(&rel->mclock, closed, rel->now);
	if (lim == NULL)
		return (0);
	t = LIST_OF(lim, struct rel_tenant, mclock);
	/* Outside of its turn: S of the member may be far from v */
	if (t->group != NULL)
		rel_class_swap_head(rel, t);
	top = top_of(t);
	*node = n = rel_first(top);
	rel_release_as(rel, n, slot, 0);
	n->reserved = n->tenant == t ? REL_BY_TENANT : REL_BY_GROUP;
	mclock_charge(lim, n->charge, 1, rel->now);
	if (rel->policy->cancel != NULL)
		rel->policy->cancel(rel, top, n);
	if (rel->policy->charge != NULL)
		rel->policy->charge(rel, top, n, n->charge, REL_SCALE_ONE);
	return (1);
}

enum rel_answer
REL_Dequeue(struct rel *rel, int64_t now, unsigned slot, unsigned closed,
    struct rel_node **node, int64_t *when)
{
	enum rel_answer answer = REL_NOT_YET;
	struct mclock *lim;
	unsigned n;

	check_held(rel);
	assert(node != NULL && when != NULL);
	rel->now = now;
	*node = NULL;
	*when = INT64_MAX;
	if (rel->waits == 0)
		return (REL_EMPTY);
	if (slot >= rel->nslots)
		return (REL_NO_SLOT);
	if (!(rel->options & REL_OPT_CLOSED))
		closed = 0;
	rel->closed = closed;
	if (rel->restart)
		rel_restart(rel);
	/* At most REL_STEPS now; the next decision does the others */
	for (n = 0; n < REL_STEPS &&
	    (lim = mclock_due(&rel->mclock, now)) != NULL; n++)
		rel_unthrottle(rel, LIST_OF(lim, struct rel_tenant, mclock));
	if (closed == 0)
		rel_pass_back(rel);
	else
		rel_pass_closed(rel, closed);
	if (release_reserved(rel, slot, closed, node))
		answer = REL_RELEASED;
	else if (rel->waiting > 0)
		answer = rel->policy->dequeue(rel, now, slot, closed, node,
		    when);
	if (answer == REL_RELEASED)
		rel_update(rel, (*node)->tenant);
	else if (answer == REL_NOT_YET)
		*when = most(mclock_next(&rel->mclock, *when), now);
	return (answer);
}

void
REL_Run(struct rel *rel, struct rel_tenant *t, struct rel_node *n,
    unsigned slot, int64_t now)
{
	struct rel_tenant *x, *top;

	check_held(rel);
	check_tenant(t);
	assert(n != NULL && n->state == REL_IDLE);
	assert(!t->is_group);
	rel->now = now;
	top = top_of(t);
	if (!is_busy(top))
		rel->busy_weight += top->weight;
	EACH_LEVEL(x, t) {
		if (x->waits + x->running == 0)
			mclock_begin(&x->mclock, now);
		x->enqueued++;
		x->released++;
		x->running++;
	}
	rel->running++;
	n->magic = REL_NODE_MAGIC;
	n->tenant = t;
	n->arrival = now;
	rel_runs(rel, n, slot, 0);
	n->reserved = REL_UNQUEUED;
}

int
REL_IsUnqueued(const struct rel_node *n)
{
	return (n->state == REL_RUNNING && n->reserved == REL_UNQUEUED);
}

int
REL_Synchronised(const struct rel *rel)
{
	check(rel);
	return (rel->policy->progress != NULL);
}

static void
progress(struct rel *rel, struct rel_node *n, enum rel_resource r)
{
	if (rel->policy->progress != NULL && n->reserved != REL_UNQUEUED &&
	    n->epoch == rel_epoch_of(rel, n->tenant))
		rel->policy->progress(rel, n, r);
}

void
REL_Progress(struct rel *rel, struct rel_node *n, enum rel_resource r,
    int64_t now)
{
	check_held(rel);
	check_node(n, REL_RUNNING);
	rel->now = now;
	assert(r < REL__RESOURCES);
	progress(rel, n, r);
}

static void
charge(struct rel *rel, struct rel_tenant *t, const struct rel_node *n,
    int64_t ns, uint32_t scale)
{
	int64_t scaled = (int64_t)((__int128)ns * scale / REL_SCALE_ONE);
	struct remainder *remainder = &t->member.remainder;

	if (n != NULL && n->reserved == REL_UNQUEUED)
		n = NULL;
	rel_pay(rel, t, scaled, n == NULL ? REL_NOT_RESERVED :
	    (enum rel_reserved)n->reserved);
	if (t->group != NULL)
		group_charge(&t->group->of, &t->member, virtual_ns(remainder,
		    settled_ns(remainder, ns, scale), t->weight));
	if (ns != 0 && rel->policy->charge != NULL)
		rel->policy->charge(rel, top_of(t), n, ns, scale);
	rel_update(rel, t);
}

void
REL_Refresh(struct rel *rel, struct rel_node *n, int64_t cost, int64_t now)
{
	int64_t ns;

	check_held(rel);
	check_node(n, REL_RUNNING);
	rel->now = now;
	ns = clamp(cost, 0) - n->charge;
	if (ns <= 0 || n->epoch != rel_epoch_of(rel, n->tenant) ||
	    !(rel->options & REL_OPT_SETTLE))
		return;
	n->charge += ns;
	rel_book(rel, n->tenant, ns);
	charge(rel, n->tenant, n, ns, REL_SCALE_ONE);
}

void
REL_Complete(struct rel *rel, struct rel_node *n, int64_t cost,
    uint32_t scale, int64_t now)
{
	struct rel_tenant *t, *top, *x;

	check_held(rel);
	check_node(n, REL_RUNNING);
	rel->now = now;
	t = n->tenant;
	assert(t->running > 0);
	progress(rel, n, REL_NET);
	if (cost >= 0 && n->epoch == rel_epoch_of(rel, t) &&
	    (rel->options & REL_OPT_SETTLE))
		charge(rel, t, n, clamp(cost, 0) - n->charge, scale);
	rel_book(rel, t, -n->charge);
	top = top_of(t);
	if (rel->policy->complete != NULL)
		rel->policy->complete(rel, top, n);
	EACH_LEVEL(x, t) {
		x->running--;
		x->completed++;
	}
	rel->running--;
	if (!is_busy(top))
		rel->busy_weight -= top->weight;
	n->state = REL_IDLE;
	n->tenant = NULL;
}

void
REL_Cancel(struct rel *rel, struct rel_node *n, int64_t now)
{
	struct rel_tenant *t, *x;

	check_held(rel);
	assert(n != NULL && REL_IsBacklogged(n));
	check_node(n, n->state);
	rel->now = now;
	t = n->tenant;
	EACH_LEVEL(x, t)
		x->cancelled++;
	list_remove(&n->order);
	rel_withdraw(rel, n);
	rel_update(rel, t);
	n->state = REL_IDLE;
	n->tenant = NULL;
}

void
REL_Charge(struct rel *rel, struct rel_tenant *t, int64_t cost, int64_t now)
{
	check_held(rel);
	check_tenant(t);
	rel->now = now;
	assert(cost >= 0);
	charge(rel, t, NULL, clamp(cost, 0), REL_SCALE_ONE);
}
