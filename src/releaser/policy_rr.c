/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Round robin: one request of each backlogged tenant in turn.
 *
 * The baseline that ignores costs and weights: a tenant's part of the machine
 * is in proportion to the cost of its requests.  O(1), and O(1) for each tenant
 * whose dominant resource has just closed.
 */

#include <assert.h>

#include "policy.h"

struct rr {
	struct rel_link		ring;		/* the next turn is first */
	struct rel_link		held;		/* dominant resource closed */
	unsigned		closed;
};

struct rr_tenant {
	struct rel_link		link;
	struct rel_tenant	*tenant;
	enum rel_resource	dominant;
};

static struct rr *
state(struct rel *rel)
{
	return ((struct rr *)(void *)rel->state);
}

static struct rr_tenant *
account_of(struct rel_tenant *t)
{
	return ((struct rr_tenant *)(void *)t->policy);
}

static void
rr_init(struct rel *rel)
{
	list_init(&state(rel)->ring);
	list_init(&state(rel)->held);
}

static void
rr_tenant_init(struct rel *rel, struct rel_tenant *t)
{
	(void)rel;
	account_of(t)->tenant = t;
	account_of(t)->dominant = t->dominant;
	list_init(&account_of(t)->link);
}

static void
rr_enqueue(struct rel *rel, struct rel_tenant *t, struct rel_node *n)
{
	(void)n;
	if (t->waiting == 1)
		list_append(&state(rel)->ring, &account_of(t)->link);
}

static void
rr_cancel(struct rel *rel, struct rel_tenant *t, struct rel_node *n)
{
	(void)rel;
	(void)n;
	if (t->waiting == 0)
		list_remove(&account_of(t)->link);
}

static void
rr_estimate(struct rel *rel, struct rel_tenant *t)
{
	struct rr_tenant *rt = account_of(t);
	struct rr *p = state(rel);

	if (t->dominant == rt->dominant)
		return;
	rt->dominant = t->dominant;
	list_splice(p->ring.next, &p->held);
}

/* Return the next tenant whose dominant resource is open, or NULL.  The tenant
 * leaves the ring. */
static struct rel_tenant *
next_turn(struct rr *p)
{
	struct rr_tenant *rt;

	while (!list_empty(&p->ring)) {
		rt = LIST_OF(p->ring.next, struct rr_tenant, link);
		list_remove(&rt->link);
		if (!(REL_MASK(rt->tenant->dominant) & p->closed))
			return (rt->tenant);
		list_append(&p->held, &rt->link);
	}
	return (NULL);
}

static enum rel_answer
rr_dequeue(struct rel *rel, int64_t now, unsigned slot, unsigned closed,
    struct rel_node **node, int64_t *when)
{
	struct rr *p = state(rel);
	struct rel_tenant *t;

	(void)now;
	(void)when;
	if (closed != p->closed)
		list_splice(p->ring.next, &p->held);
	p->closed = closed;
	t = next_turn(p);
	if (t == NULL)
		return (REL_NOT_YET);
	*node = rel_first(t);
	rel_release(rel, *node, slot);
	if (t->waiting > 0)
		list_append(&p->ring, &account_of(t)->link);
	return (REL_RELEASED);
}

const struct rel_policy rel_policy_rr = {
	.name =		"round-robin",
	.summary =	"one request of each tenant in turn, at any cost",
	.state_size =	sizeof(struct rr),
	.tenant_size =	sizeof(struct rr_tenant),
	.init =		rr_init,
	.tenant_init =	rr_tenant_init,
	.enqueue =	rr_enqueue,
	.dequeue =	rr_dequeue,
	.cancel =	rr_cancel,
	.estimate =	rr_estimate,
};
