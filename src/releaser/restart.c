/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The restart of the policy: the account of each tenant begins at zero, and the
 * tag of each member of a group at v.
 *
 * All waiting requests leave their queues, and then enter again.  The running
 * requests go on.  Their epoch is older, so the policy does not settle them.
 */

#include <string.h>

#include "internal.h"

void
rel_start_tenant(struct rel *rel, struct rel_tenant *t)
{
	memset(t->policy, 0, rel->tenant_size);
	if (rel->policy->tenant_init != NULL)
		rel->policy->tenant_init(rel, t);
}

/* Set the tags of all members to v */
static void
start_group(struct group *g)
{
	struct rel_tenant *t;
	struct rel_link *l;
	unsigned r;

	for (r = 0; r < REL__RESOURCES; r++)
		g->heap[r].offset = 0;
	for (l = g->members.next; l != &g->members; l = l->next) {
		t = LIST_OF(l, struct rel_tenant, all);
		group_join(g, &t->member);
		t->member.remainder = (struct remainder){ 0 };
	}
}

/* Empty the tenant's queues; the nodes are in another list */
static void
clear(struct rel *rel, struct rel_tenant *t)
{
	list_init(&t->queue);
	list_init(&t->shut);
	list_init(&t->member.pool);
	t->waits = t->waiting = 0;
	t->of.pooled = 0;
	t->of.waiting_weight = 0;
	rel_update(rel, t);
}

/* Waiting requests enter in order of arrival */
void
rel_restart(struct rel *rel)
{
	struct rel_link all, *l, *m;
	struct rel_tenant *t;
	struct rel_node *n;

	rel->restart = 0;
	rel->epoch++;
	memset(rel->state, 0, rel->state_size);
	if (rel->policy->init != NULL)
		rel->policy->init(rel);

	list_init(&all);
	list_splice(&all, &rel->order);
	rel->waits = rel->waiting = rel->nshut = rel->backlogged = 0;
	rel->backlogged_weight = rel->busy_weight = 0;
	for (l = rel->tenants.next; l != &rel->tenants; l = l->next) {
		t = LIST_OF(l, struct rel_tenant, all);
		clear(rel, t);
		for (m = t->of.members.next; m != &t->of.members; m = m->next)
			clear(rel, LIST_OF(m, struct rel_tenant, all));
		start_group(&t->of);
		if (is_busy(t))
			rel->busy_weight += t->weight;
		rel_start_tenant(rel, t);
	}
	while (!list_empty(&all)) {
		n = LIST_OF(all.next, struct rel_node, order);
		list_remove(&n->order);
		list_append(&rel->order, &n->order);
		rel_enter(rel, n);
	}
}
