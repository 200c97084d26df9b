/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * A tenant of the releaser: its weight, group, limits and estimate, the reads
 * of its state, and the move of a tenant to another group.
 */

#include <assert.h>
#include <string.h>

#include "internal.h"

size_t
REL_TenantSize(void)
{
	size_t state, tenant;

	rel_largest(&state, &tenant);
	return (sizeof(struct rel_tenant) + tenant);
}

struct rel_tenant *
REL_TenantInit(struct rel *rel, void *mem, uint32_t weight)
{
	struct rel_tenant *t = mem;

	check_held(rel);
	assert(t != NULL);
	assert(weight >= 1 && weight <= REL_WEIGHT_MAX);
	memset(t, 0, sizeof *t);
	t->magic = REL_TENANT_MAGIC;
	t->weight = weight;
	t->cost = 1;
	list_init(&t->queue);
	list_init(&t->shut);
	list_init(&t->member.pool);
	list_init(&t->of.members);
	list_init(&t->of.hol_blocked);
	list_init(&t->of.passed);
	list_append(&rel->tenants, &t->all);
	rel_start_tenant(rel, t);
	return (t);
}

void
REL_TenantFini(struct rel *rel, struct rel_tenant *t)
{
	check_held(rel);
	check_tenant(t);
	assert(t->waits + t->running == 0);
	assert(list_empty(&t->of.members));
	if (t->group == NULL && rel->policy->tenant_fini != NULL)
		rel->policy->tenant_fini(rel, t);
	list_remove(&t->all);
	if (t->group != NULL)
		t->group->of.nmembers--;
	t->magic = 0;
}

static int64_t
account(const struct rel *rel, const struct rel_tenant *t)
{
	const struct rel_tenant *g = t->group;

	if (g != NULL)
		return (g->waits + g->running == 0 || !has_turns(rel, g) ? 0 :
		    group_ahead(&g->of, &t->member));
	if (rel->policy->account == NULL)
		return (0);
	return (rel->policy->account(rel, t));
}

int
REL_TenantIdle(const struct rel *rel, const struct rel_tenant *t)
{
	check(rel);
	check_tenant(t);
	return (t->waits + t->running == 0 && list_empty(&t->of.members) &&
	    account(rel, t) <= 0);
}

unsigned
REL_Members(const struct rel_tenant *t)
{
	check_tenant(t);
	return (t->of.nmembers);
}

uint32_t
REL_Weight(const struct rel_tenant *t)
{

	check_tenant(t);
	return (t->weight);
}

uint32_t
REL_Reservation(const struct rel_tenant *t)
{

	check_tenant(t);
	return (t->mclock.reservation.part);
}

uint32_t
REL_Limit(const struct rel_tenant *t)
{

	check_tenant(t);
	return (t->mclock.limit.part);
}

unsigned
REL_TenantWaiting(const struct rel_tenant *t)
{

	return (t->waits);
}

unsigned
REL_TenantRunning(const struct rel_tenant *t)
{

	return (t->running);
}

unsigned
REL_GroupWaiting(const struct rel_tenant *t)
{

	return (t->group != NULL ? t->group->waits : t->waits);
}

unsigned
REL_GroupPart(const struct rel_tenant *t, unsigned n)
{
	uint64_t all, part;

	if (t->group == NULL)
		return (n);
	all = t->group->of.waiting_weight;
	if (t->waits == 0)
		all += t->weight;
	part = (uint64_t)n * t->weight / all;
	return (part > 0 ? (unsigned)part : 1);
}

struct rel_tenant *
REL_Group(const struct rel_tenant *t)
{

	return (t->group);
}

/* Return the tenant's first node in a list of rel_node.queue, or NULL */
static const struct rel_node *
first_in(const struct rel_link *queue, const struct rel_tenant *t)
{
	const struct rel_node *n;
	const struct rel_link *l;

	for (l = queue->next; l != queue; l = l->next) {
		n = LIST_OF(l, struct rel_node, queue);
		if (n->tenant == t)
			return (n);
	}
	return (NULL);
}

const struct rel_node *
REL_TenantFirst(const struct rel_tenant *t)
{
	const struct rel_node *n, *first = NULL;
	const struct rel_link *l;

	if (t->waits == 0)
		return (NULL);
	for (l = t->of.members.next; l != &t->of.members; l = l->next) {
		n = REL_TenantFirst(LIST_OF(l, struct rel_tenant, all));
		if (n != NULL && (first == NULL || n->arrival < first->arrival))
			first = n;
	}
	if (first == NULL)
		first = first_in(t->group != NULL ? &t->group->queue :
		    &t->queue, t);
	if (first == NULL)
		first = first_in(&t->member.pool, t);
	if (first == NULL)
		first = first_in(&t->shut, t);
	return (first);
}

double
REL_Share(const struct rel *rel, const struct rel_tenant *t)
{
	const struct rel_tenant *top;
	double all, share;

	check(rel);
	check_tenant(t);
	top = t->group != NULL ? t->group : t;
	all = (double)rel->backlogged_weight;
	if (top->waits == 0)
		all += top->weight;
	share = top->weight / all;
	if (t == top)
		return (share);
	all = (double)top->of.waiting_weight;
	if (t->waits == 0)
		all += t->weight;
	return (share * t->weight / all);
}

void
REL_TenantStat(const struct rel *rel, const struct rel_tenant *t,
    struct rel_tenant_stat *st)
{
	check(rel);
	check_tenant(t);
	assert(st != NULL);
	memset(st, 0, sizeof *st);
	st->waiting = t->waits;
	st->running = t->running;
	st->weight = t->weight;
	st->reservation = t->mclock.reservation.part;
	st->limit = t->mclock.limit.part;
	memcpy(st->estimate, t->estimate, sizeof st->estimate);
	st->dominant = t->dominant;
	st->account = account(rel, t);
	st->enqueued = t->enqueued;
	st->released = t->released;
	st->cancelled = t->cancelled;
	st->completed = t->completed;
	st->charged = t->charged;
}

void
REL_SetWeight(struct rel *rel, struct rel_tenant *t, uint32_t weight)
{
	uint32_t before;

	check_held(rel);
	check_tenant(t);
	assert(weight >= 1 && weight <= REL_WEIGHT_MAX);
	before = t->weight;
	if (before == weight)
		return;
	t->weight = weight;
	if (t->group != NULL) {
		if (t->waits > 0)
			t->group->of.waiting_weight += weight -
			    (uint64_t)before;
		rescale_remainder(&t->member.remainder, before, weight);
		return;
	}
	if (t->waits > 0)
		rel->backlogged_weight += weight - (uint64_t)before;
	if (is_busy(t))
		rel->busy_weight += weight - (uint64_t)before;
	if (rel->policy->weight != NULL)
		rel->policy->weight(rel, t, before);
}

void
REL_SetLimits(struct rel *rel, struct rel_tenant *t, uint32_t reservation,
    uint32_t limit, int64_t now)
{
	check_held(rel);
	check_tenant(t);
	assert(reservation <= REL_PART_ONE && limit <= REL_PART_ONE);
	rel->now = now;
	if (has_limit(rel, t))
		rel->nshut -= t->of.pooled;
	mclock_set(&t->mclock, reservation, limit, now);
	if (has_limit(rel, t))
		rel->nshut += t->of.pooled;
	while (limit == 0 && (t->is_group ?
	    t->waiting == 0 && t->of.pooled > 0 : !list_empty(&t->shut)))
		rel_unthrottle(rel, t);
	/* A tenant without reservation and limit leaves both heaps */
	rel_index_limits(rel, t);
}

/*
 * A move takes a tenant from its top-level tenant `from` to `to`.  Either is a
 * group, or the tenant itself.  Its running requests complete for `from`, with
 * the charges that they have, and begin again for `to`.
 */
static void
stop_running(struct rel *rel, struct rel_tenant *from, unsigned running,
    int64_t in_service)
{
	from->running -= running - 1;
	from->in_service -= in_service;
	if (rel->policy->complete != NULL)
		rel->policy->complete(rel, from, NULL);
	from->running--;
	if (!is_busy(from))
		rel->busy_weight -= from->weight;
}

static void
start_running(struct rel *rel, struct rel_tenant *to, unsigned running,
    int64_t in_service)
{
	if (!is_busy(to))
		rel->busy_weight += to->weight;
	to->running += running;
	to->in_service += in_service;
}

/* Move the tenant's nodes in this queue to the head of `all`, in their order */
static void
withdraw_from(struct rel *rel, const struct rel_tenant *t,
    struct rel_link *queue, struct rel_link *all)
{
	struct rel_link *l, *prev;
	struct rel_node *n;

	for (l = queue->prev; l != queue; l = prev) {
		prev = l->prev;
		n = LIST_OF(l, struct rel_node, queue);
		if (n->tenant != t)
			continue;
		rel_withdraw(rel, n);
		list_append(all->next, &n->queue);
	}
}

static void
change_group(struct rel *rel, struct rel_tenant *t, struct rel_tenant *g)
{
	struct rel_tenant *last = t->group;

	if (last == NULL && rel->policy->tenant_fini != NULL)
		rel->policy->tenant_fini(rel, t);
	if (heap_has(&t->member.heap))
		heap_remove(&last->of.heap[t->member.resource].root,
		    &t->member.heap);
	list_remove(&t->all);
	list_append(g == NULL ? &rel->tenants : &g->of.members, &t->all);
	if (last != NULL)
		last->of.nmembers--;
	t->group = g;
	if (g != NULL) {
		g->of.nmembers++;
		group_join(&g->of, &t->member);
	}
	t->member.remainder = (struct remainder){ 0 };
}

/*
 * Move the tenant to group g, or to no group (NULL).  Throttled requests leave
 * first, then the pool, then the queue.  So the old group gives no turn to a
 * request that is about to leave.
 */
static void
move_tenant(struct rel *rel, struct rel_tenant *t, struct rel_tenant *g)
{
	unsigned running = t->running;
	int64_t in_service = t->in_service;
	struct rel_link all;
	struct rel_node *n;

	list_init(&all);
	withdraw_from(rel, t, &t->shut, &all);
	withdraw_from(rel, t, &t->member.pool, &all);
	rel_update(rel, t);			/* takes no more turns */
	withdraw_from(rel, t, &top_of(t)->queue, &all);
	assert(t->waits == 0);
	rel_update(rel, t);
	if (running > 0)
		stop_running(rel, top_of(t), running, in_service);
	t->running = 0;
	t->in_service = 0;
	change_group(rel, t, g);
	if (g == NULL)
		rel_start_tenant(rel, t);
	if (running > 0)
		start_running(rel, top_of(t), running, in_service);
	t->running = running;
	t->in_service = in_service;
	while (!list_empty(&all)) {
		n = LIST_OF(all.next, struct rel_node, queue);
		list_remove(&n->queue);
		rel_enter(rel, n);
	}
	/* Running requests were charged to another account, by another
	 * weight */
	if (running > 0)
		t->moves++;
	/* The policy must not wait for progress of requests that it no longer
	 * knows.  One restart does for all moves before the next decision. */
	if (running > 0 && rel->policy->progress != NULL)
		rel->restart = 1;
}

void
REL_SetGroup(struct rel *rel, struct rel_tenant *t, struct rel_tenant *g,
    int64_t now)
{
	check_held(rel);
	check_tenant(t);
	if (t->group == g)
		return;
	assert(t != g && !t->is_group);
	if (g != NULL) {
		check_tenant(g);
		assert(g->group == NULL);
		assert(g->is_group || g->waits + g->running == 0);
		g->is_group = 1;
	}
	rel->now = now;
	move_tenant(rel, t, g);
}

void
REL_SetEstimate(struct rel *rel, struct rel_tenant *t,
    const int64_t estimate[REL__RESOURCES])
{
	unsigned r, dominant = 0;

	check_held(rel);
	check_tenant(t);
	assert(estimate != NULL);
	if (t->is_group)
		return;
	for (r = 0; r < REL__RESOURCES; r++) {
		t->estimate[r] = clamp(estimate[r], 0);
		if (t->estimate[r] > t->estimate[dominant])
			dominant = r;
	}
	t->dominant = (enum rel_resource)dominant;
	t->cost = clamp(t->estimate[dominant], 1);
	rel_update(rel, t);
	if (t->group == NULL && rel->policy->estimate != NULL)
		rel->policy->estimate(rel, t);
}
