/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Where a request waits, and how it moves to the policy's queue.
 *
 * Each waiting request is in two lists.  One is a queue of its tenant.  The
 * other is the list of all, by arrival: fifo's queue, and the order in which
 * REL_SetPolicy() queues requests again.  Both are doubly linked, so a cancel
 * is as cheap as a release.
 *
 * The way of a request has three steps: its tenant's limit, the pool of its
 * group's member, its group's limit.  Then it is in a queue that the policy
 * sees.  A tenant with a limit has one admitted request at a time, and none
 * before the limit's tag; its other requests are throttled (SHUT).  Of a group
 * only the member that has the turn has a request in the group's queue.  If
 * the group has no limit, the next turn is given before that request leaves.
 */

#include <assert.h>
#include <string.h>

#include "internal.h"

/*--------------------------------------------------------------------
 * What follows from a change of a tenant's queues, tags or estimate
 */

void
rel_index_limits(struct rel *rel, struct rel_tenant *t)
{
	/* Without turns a member's reservation cannot release a request */
	int owed = t->waiting > 0 &&
	    (t->group == NULL || has_turns(rel, t->group));
	int shut = t->waiting == 0 &&
	    (t->is_group ? t->of.pooled > 0 : t->waits > 0);

	mclock_place(&rel->mclock, &t->mclock, t->dominant, owed, shut);
}

/* Copy the estimate of the member that has the turn to the group */
static void
take_estimate(struct rel *rel, struct rel_tenant *g)
{
	const struct rel_tenant *t;

	if (g->waiting == 0)
		return;
	t = rel_first(g)->tenant;
	if (g->cost == t->cost && g->dominant == t->dominant &&
	    !memcmp(g->estimate, t->estimate, sizeof g->estimate))
		return;
	memcpy(g->estimate, t->estimate, sizeof g->estimate);
	g->dominant = t->dominant;
	g->cost = t->cost;
	if (rel->policy->estimate != NULL)
		rel->policy->estimate(rel, g);
}

static void
index_hol_blocked(struct rel *rel, struct rel_tenant *g)
{
	const struct member *m;

	list_remove(&g->of.hol_blocked);
	list_remove(&g->of.passed);
	if (g->waiting == 0)
		return;
	m = group_next(&g->of, REL_MASK(g->dominant));
	if (m == NULL)
		return;
	list_append(&rel->hol_blocked[g->dominant], &g->of.hol_blocked);
	if (group_before(&g->of, m, &rel_first(g)->tenant->member))
		list_append(&rel->passed, &g->of.passed);
}

void
rel_update(struct rel *rel, struct rel_tenant *t)
{
	struct rel_tenant *g = t->is_group ? t : t->group;

	if (t->group != NULL)
		group_place(&g->of, &t->member, t->dominant);
	if (g != NULL) {
		take_estimate(rel, g);
		index_hol_blocked(rel, g);
		if (mclock_any(&g->mclock))
			rel_index_limits(rel, g);
	}
	if (g != t && mclock_any(&t->mclock))
		rel_index_limits(rel, t);
}

/*--------------------------------------------------------------------
 * The places where a request waits
 */

static void
arrive(struct rel *rel, struct rel_node *n)
{
	struct rel_tenant *t = n->tenant, *top = top_of(t), *x;

	rel->waits++;
	if (top->waits == 0) {
		rel->backlogged++;
		rel->backlogged_weight += top->weight;
	}
	if (t != top && t->waits == 0)
		top->of.waiting_weight += t->weight;
	EACH_LEVEL(x, t)
		x->waits++;
}

static void
shut(struct rel *rel, struct rel_node *n)
{
	n->state = REL_THROTTLED;
	list_append(&n->tenant->shut, &n->queue);
	rel->nshut++;
}

/* Put the node into its member's pool, before the link `at` */
static void
class_enqueue(struct rel *rel, struct rel_node *n, struct rel_link *at)
{
	struct rel_tenant *g = n->tenant->group;

	n->state = REL_IN_CLASS;
	list_append(at, &n->queue);
	g->of.pooled++;
	if (has_limit(rel, g))
		rel->nshut++;
}

static void
class_dequeue(struct rel *rel, struct rel_node *n)
{
	struct rel_tenant *g = n->tenant->group;

	list_remove(&n->queue);
	assert(g->of.pooled > 0);
	g->of.pooled--;
	if (has_limit(rel, g))
		rel->nshut--;
}

/* Put the node into the policy's queue, and tell the policy */
static void
join(struct rel *rel, struct rel_node *n)
{
	struct rel_tenant *t = top_of(n->tenant);

	n->state = REL_WAITING;
	if (!is_busy(t))
		rel->busy_weight += t->weight;
	list_append(&t->queue, &n->queue);
	t->waiting++;
	rel->waiting++;
	if (rel->policy->enqueue != NULL)
		rel->policy->enqueue(rel, t, n);
}

/* Take the node out of the policy's queue */
static void
quit(struct rel *rel, struct rel_node *n)
{
	struct rel_tenant *t = top_of(n->tenant);

	assert(t->waiting > 0);
	list_remove(&n->queue);
	t->waiting--;
	rel->waiting--;
	if (!is_busy(t))
		rel->busy_weight -= t->weight;
}

/* Subtract v from all tags, long before they could overflow */
static void
rebase(struct group *g)
{
	struct member *m;
	struct rel_link *l;
	int64_t by;
	unsigned r;

	for (l = g->members.next; l != &g->members; l = l->next) {
		m = &LIST_OF(l, struct rel_tenant, all)->member;
		by = g->heap[m->resource].offset - g->v;
		m->start += by;
		m->heap.key += by;
	}
	for (r = 0; r < REL__RESOURCES; r++)
		g->heap[r].offset = 0;
	g->v = 0;
}

/* Move the member's first request from its pool to the group's queue */
static void
class_promote(struct rel *rel, struct rel_tenant *t)
{
	struct rel_node *n;
	struct group *g = &t->group->of;

	n = LIST_OF(t->member.pool.next, struct rel_node, queue);
	class_dequeue(rel, n);
	if (g->v > GROUP_V_MAX)
		rebase(g);
	group_place(g, &t->member, t->dominant);
	join(rel, n);
}

/* Give the turn to the member with the least S among those whose dominant
 * resource is open.  If all are closed: among all. */
static void
class_promote_next(struct rel *rel, struct rel_tenant *g)
{
	struct member *m = group_next(&g->of, rel->closed);

	if (m == NULL)
		m = group_next(&g->of, 0);
	if (m != NULL)
		class_promote(rel, LIST_OF(m, struct rel_tenant, member));
}

/* The new member's request enters the queue before the old one's leaves it, so
 * that to the policy the group stays backlogged */
void
rel_class_swap_head(struct rel *rel, struct rel_tenant *t)
{
	struct rel_tenant *g = t->group;
	struct rel_node *n = g->waiting > 0 ? rel_first(g) : NULL;

	if (n != NULL && n->tenant == t)
		return;
	class_promote(rel, t);
	if (n != NULL) {
		quit(rel, n);
		class_enqueue(rel, n, n->tenant->member.pool.next);
		if (rel->policy->cancel != NULL)
			rel->policy->cancel(rel, g, n);
		rel_update(rel, n->tenant);
	}
	rel_update(rel, t);
}

/* Let the node pass its tenant's limit */
static void
admit(struct rel *rel, struct rel_node *n)
{
	struct rel_tenant *t = n->tenant, *g = t->group;

	if (g == NULL) {
		join(rel, n);
		return;
	}
	if (t->waiting++ == 0)
		group_begin(&g->of, &t->member,
		    t->cost * REL_WEIGHT_ONE / t->weight);
	if (!has_turns(rel, g)) {
		join(rel, n);
		return;
	}
	class_enqueue(rel, n, &t->member.pool);
	group_place(&g->of, &t->member, t->dominant);
	if (g->waiting == 0 &&
	    (!has_limit(rel, g) || mclock_open(&g->mclock, rel->now)))
		class_promote_next(rel, g);
}

void
rel_enter(struct rel *rel, struct rel_node *n)
{
	struct rel_tenant *t = n->tenant;

	arrive(rel, n);
	if (has_limit(rel, t) &&
	    (t->waits > 1 || !mclock_open(&t->mclock, rel->now)))
		shut(rel, n);
	else
		admit(rel, n);
	rel_update(rel, t);
}

void
rel_unthrottle(struct rel *rel, struct rel_tenant *t)
{
	struct rel_node *n;

	if (t->is_group) {
		class_promote_next(rel, t);
	} else {
		n = LIST_OF(t->shut.next, struct rel_node, queue);
		list_remove(&n->queue);
		rel->nshut--;
		admit(rel, n);
	}
	rel_update(rel, t);
}

/* Take out a waiting node.  In a group without a limit another member gets the
 * turn first, so that to the policy the group stays backlogged. */
static void
depart(struct rel *rel, struct rel_node *n)
{
	struct rel_tenant *t = n->tenant, *top = top_of(t), *x;

	if (n->state == REL_THROTTLED) {
		list_remove(&n->queue);
		rel->nshut--;
	} else if (n->state == REL_IN_CLASS) {
		class_dequeue(rel, n);
	} else {
		if (has_turns(rel, top) && !has_limit(rel, top))
			class_promote_next(rel, top);
		quit(rel, n);
	}
	if (t != top && n->state != REL_THROTTLED)
		t->waiting--;
	rel->waits--;
	EACH_LEVEL(x, t)
		x->waits--;
	if (t != top && t->waits == 0)
		top->of.waiting_weight -= t->weight;
	if (top->waits == 0) {
		rel->backlogged--;
		rel->backlogged_weight -= top->weight;
	}
}

void
rel_withdraw(struct rel *rel, struct rel_node *n)
{
	int seen = n->state == REL_WAITING;

	depart(rel, n);
	if (seen && rel->policy->cancel != NULL)
		rel->policy->cancel(rel, top_of(n->tenant), n);
}

/* At most REL_STEPS groups in one decision; the next one does the others */
void
rel_pass_closed(struct rel *rel, unsigned closed)
{
	struct rel_tenant *g;
	struct member *m;
	unsigned r, n = 0;

	for (r = 0; r < REL__RESOURCES; r++)
		while ((closed & REL_MASK(r)) &&
		    !list_empty(&rel->hol_blocked[r]) && n++ < REL_STEPS) {
			g = LIST_OF(rel->hol_blocked[r].next, struct rel_tenant,
			    of.hol_blocked);
			m = group_next(&g->of, closed);
			if (m == NULL)
				break;
			rel_class_swap_head(rel, LIST_OF(m, struct rel_tenant,
			    member));
		}
}

/* At most REL_STEPS groups in one decision; the next one does the others */
void
rel_pass_back(struct rel *rel)
{
	struct rel_tenant *g;
	struct member *m;
	unsigned n;

	for (n = 0; n < REL_STEPS && !list_empty(&rel->passed); n++) {
		g = LIST_OF(rel->passed.next, struct rel_tenant, of.passed);
		list_remove(&g->of.passed);
		m = group_next(&g->of, 0);
		if (m != NULL && group_before(&g->of, m,
		    &rel_first(g)->tenant->member))
			rel_class_swap_head(rel, LIST_OF(m, struct rel_tenant,
			    member));
	}
}

/*--------------------------------------------------------------------
 * Release
 */

void
rel_pay(struct rel *rel, struct rel_tenant *t, int64_t ns,
    enum rel_reserved reserved)
{
	struct rel_tenant *x;

	EACH_LEVEL(x, t) {
		x->charged += ns;
		if (!mclock_any(&x->mclock))
			continue;
		mclock_charge(&x->mclock, ns, 0, rel->now);
		if (reserved == (x == t ? REL_BY_TENANT : REL_BY_GROUP))
			mclock_charge(&x->mclock, ns, 1, rel->now);
	}
}

void
rel_book(struct rel *rel, struct rel_tenant *t, int64_t ns)
{
	struct rel_tenant *x;

	EACH_LEVEL(x, t)
		x->in_service += ns;
	rel->in_service += ns;
}

uint16_t
rel_epoch_of(const struct rel *rel, const struct rel_tenant *t)
{
	return ((rel->epoch + t->moves) & ((1U << REL_EPOCH_BITS) - 1));
}

void
rel_runs(const struct rel *rel, struct rel_node *n, unsigned slot,
    int64_t charge)
{
	n->state = REL_RUNNING;
	n->epoch = rel_epoch_of(rel, n->tenant);
	n->slot = slot < REL_SLOT_MAX ? slot & REL_SLOT_MAX : REL_SLOT_MAX;
	n->reserved = REL_NOT_RESERVED;
	n->charge = charge;
	n->turn = 0;
}

/* In turn, v of the group becomes the member's S.  A reservation leaves v as it
 * is: the member's S may be far from v. */
void
rel_release_as(struct rel *rel, struct rel_node *n, unsigned slot, int in_turn)
{
	struct rel_tenant *t, *x;
	int64_t charge;

	check_node(n, REL_WAITING);
	t = n->tenant;
	charge = t->cost;
	if (t->group != NULL) {
		if (in_turn && has_turns(rel, t->group))
			group_turn(&t->group->of, &t->member, rel->closed);
		group_charge(&t->group->of, &t->member,
		    virtual_ns(&t->member.remainder, charge, t->weight));
		group_place(&t->group->of, &t->member, t->dominant);
	}
	EACH_LEVEL(x, t) {
		x->running++;
		x->released++;
	}
	rel->running++;
	list_remove(&n->order);
	depart(rel, n);
	rel_runs(rel, n, slot, charge);
	rel_pay(rel, t, charge, REL_NOT_RESERVED);
	rel_book(rel, t, charge);
}

void
rel_release(struct rel *rel, struct rel_node *n, unsigned slot)
{
	rel_release_as(rel, n, slot, 1);
}
