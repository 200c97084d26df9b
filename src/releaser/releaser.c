/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The host of the policies.
 *
 * Each waiting request is in two lists: its tenant's queue, from whose head
 * alone policies release, and the list of all by order of arrival, which is
 * fifo's queue and lets another policy start from where the last one ended.
 * Both are doubly linked, so that a cancel is as cheap as a release.
 *
 * A tenant with a limit has a valve before its queue: while a request of it
 * is in the queue, or its limit says not yet, others are shut behind the
 * valve.  Who is owed a reservation goes before whom the policy would choose,
 * which is told, and charges it.
 *
 * A member of a group has its requests in a pool; that of the member whose
 * turn it is goes on into the group's queue, before the last one leaves it.
 * So a request passes its tenant's valve, the pool and its group's valve, and
 * the policy sees it.
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "policy.h"

static const struct rel_policy * const policies[] = {
	&rel_policy_mr3rs,
	&rel_policy_fifo,
	&rel_policy_mr3,
	&rel_policy_wfq,
	&rel_policy_sfq,
	&rel_policy_wf2q,
	&rel_policy_2dfq,
	&rel_policy_2dfqe,
	&rel_policy_drr,
	&rel_policy_rr,
	&rel_policy_drfq,
	&rel_policy_msf2q,
	&rel_policy_mr3vf,
};

#define NPOLICIES	(sizeof policies / sizeof policies[0])

_Static_assert(sizeof(struct rel_node) <= 64, "a node fits a cache line");

/*--------------------------------------------------------------------*/

unsigned
REL_Policies(void)
{
	return (NPOLICIES);
}

const char *
REL_PolicyName(unsigned u)
{
	return (u < NPOLICIES ? policies[u]->name : NULL);
}

const char *
REL_PolicySummary(unsigned u)
{
	return (u < NPOLICIES ? policies[u]->summary : NULL);
}

const char *
REL_PolicyEstimator(unsigned u, uint32_t *alpha)
{
	assert(u < NPOLICIES && alpha != NULL);
	*alpha = policies[u]->alpha;
	return (policies[u]->estimator);
}

int
REL_PolicyByName(const char *name)
{
	unsigned u;

	assert(name != NULL);
	for (u = 0; u < NPOLICIES; u++)
		if (strcmp(policies[u]->name, name) == 0)
			return ((int)u);
	return (-1);
}

static size_t
largest_state(void)
{
	size_t sz = 0;
	unsigned u;

	for (u = 0; u < NPOLICIES; u++)
		if (policies[u]->state_size > sz)
			sz = policies[u]->state_size;
	return (sz);
}

static size_t
largest_tenant(void)
{
	size_t sz = 0;
	unsigned u;

	for (u = 0; u < NPOLICIES; u++)
		if (policies[u]->tenant_size > sz)
			sz = policies[u]->tenant_size;
	return (sz);
}

/*--------------------------------------------------------------------*/

static void
check(const struct rel *rel)
{
	assert(rel != NULL);
	assert(rel->magic == REL_MAGIC);
}

static void
check_held(const struct rel *rel)
{
	check(rel);
	if (rel->held != NULL)
		rel->held(rel->priv);
}

static void
check_tenant(const struct rel_tenant *t)
{
	assert(t != NULL);
	assert(t->magic == REL_TENANT_MAGIC);
}

static void
check_node(const struct rel_node *n, enum rel_state state)
{
	assert(n != NULL);
	assert(n->magic == REL_NODE_MAGIC);
	assert(n->state == state);
	check_tenant(n->tenant);
}

static int64_t
clamp(int64_t ns, int64_t lo)
{
	if (ns < lo)
		return (lo);
	return (ns > REL_COST_MAX ? REL_COST_MAX : ns);
}

static void
start_tenant(struct rel *rel, struct rel_tenant *t)
{
	memset(t->policy, 0, largest_tenant());
	if (rel->policy->tenant_init != NULL)
		rel->policy->tenant_init(rel, t);
}

/* Has it a request that the policy sees, waiting or running? */
static int
is_busy(const struct rel_tenant *t)
{
	return (t->waiting + t->running > 0);
}

#define EACH_LEVEL(x, t)	for (x = t; x != NULL; x = x->group)

/* The tenant of the policy that this one is, or is a member of */
static struct rel_tenant *
top_of(struct rel_tenant *t)
{
	return (t->group != NULL ? t->group : t);
}

/* Have its members turns? */
static int
has_turns(const struct rel *rel, const struct rel_tenant *t)
{
	return (t->is_group && (rel->options & REL_OPT_LIMITS) &&
	    !rel->policy->ungrouped);
}

static int
has_limit(const struct rel *rel, const struct rel_tenant *t)
{
	return (t->mclock.limit.part > 0 && (rel->options & REL_OPT_LIMITS));
}

/*--------------------------------------------------------------------
 * What follows from a tenant's queues, tags and estimate when they have
 * changed
 */

static void
index_limits(struct rel *rel, struct rel_tenant *t)
{
	/* A policy that heeds no groups owes a member nothing */
	int owed = t->waiting > 0 &&
	    (t->group == NULL || has_turns(rel, t->group));
	int shut = t->waiting == 0 &&
	    (t->is_group ? t->of.pooled > 0 : t->waits > 0);

	mclock_place(&rel->mclock, &t->mclock, t->dominant, owed, shut);
}

/* A group's estimate is that of the member whose turn it is */
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
index_stuck(struct rel *rel, struct rel_tenant *g)
{
	list_remove(&g->of.stuck);
	if (g->waiting > 0 && group_next(&g->of, REL_MASK(g->dominant)))
		list_append(&rel->stuck[g->dominant], &g->of.stuck);
}

/* Not while a policy decides: its estimate() may be called */
static void
update(struct rel *rel, struct rel_tenant *t)
{
	struct rel_tenant *g = t->is_group ? t : t->group;

	if (t->group != NULL)
		group_place(&g->of, &t->member, t->dominant);
	if (g != NULL) {
		take_estimate(rel, g);
		index_stuck(rel, g);
		if (mclock_any(&g->mclock))
			index_limits(rel, g);
	}
	if (g != t && mclock_any(&t->mclock))
		index_limits(rel, t);
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
	n->state = REL_SHUT;
	list_append(&n->tenant->shut, &n->queue);
	rel->nshut++;
}

/* Before the one at `at` in its tenant's pool */
static void
pool(struct rel *rel, struct rel_node *n, struct rel_link *at)
{
	struct rel_tenant *g = n->tenant->group;

	n->state = REL_POOLED;
	list_append(at, &n->queue);
	g->of.pooled++;
	if (has_limit(rel, g))
		rel->nshut++;
}

static void
unpool(struct rel *rel, struct rel_node *n)
{
	struct rel_tenant *g = n->tenant->group;

	list_remove(&n->queue);
	assert(g->of.pooled > 0);
	g->of.pooled--;
	if (has_limit(rel, g))
		rel->nshut--;
}

/* The policy sees it from now on */
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

/* The policy sees it no longer */
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

/* Tags begin at zero again, long before they could overflow */
static void
rebase(struct group *g)
{
	struct member *m;
	struct rel_link *l;

	for (l = g->members.next; l != &g->members; l = l->next) {
		m = &LIST_OF(l, struct rel_tenant, all)->member;
		m->start -= g->v;
		m->heap.key -= g->v;
	}
	g->v = 0;
}

/* The member's first one leaves the pool.  v: it is the turn of whoever is next,
 * and moves the group's v */
static void
take_turn(struct rel *rel, struct rel_tenant *t, int v)
{
	struct rel_node *n;
	struct group *g = &t->group->of;

	n = LIST_OF(t->member.pool.next, struct rel_node, queue);
	unpool(rel, n);
	if (v)
		group_turn(g, &t->member);
	if (g->v > GROUP_V_MAX)
		rebase(g);
	group_place(g, &t->member, t->dominant);
	join(rel, n);
}

/* Somebody of the group, whose dominant resource is open if there is one */
static void
give_turn(struct rel *rel, struct rel_tenant *g)
{
	struct member *m = group_next(&g->of, rel->closed);

	if (m == NULL)
		m = group_next(&g->of, 0);
	if (m != NULL)
		take_turn(rel, LIST_OF(m, struct rel_tenant, member), 1);
}

/* The member has the turn, instead of whoever has it: to the policy the
 * queue does not become empty */
static void
pass_turn(struct rel *rel, struct rel_tenant *t, int v)
{
	struct rel_tenant *g = t->group;
	struct rel_node *n = g->waiting > 0 ? rel_first(g) : NULL;

	if (n != NULL && n->tenant == t)
		return;
	take_turn(rel, t, v);
	if (n != NULL) {
		quit(rel, n);
		pool(rel, n, n->tenant->member.pool.next);
		if (rel->policy->cancel != NULL)
			rel->policy->cancel(rel, g, n);
		update(rel, n->tenant);
	}
	update(rel, t);
}

/* It is past its tenant's valve */
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
	pool(rel, n, &t->member.pool);
	group_place(&g->of, &t->member, t->dominant);
	if (g->waiting == 0 &&
	    (!has_limit(rel, g) || mclock_open(&g->mclock, rel->now)))
		give_turn(rel, g);
}

/* To where it has to wait */
static void
enter(struct rel *rel, struct rel_node *n)
{
	struct rel_tenant *t = n->tenant;

	arrive(rel, n);
	if (has_limit(rel, t) &&
	    (t->waits > 1 || !mclock_open(&t->mclock, rel->now)))
		shut(rel, n);
	else
		admit(rel, n);
	update(rel, t);
}

/* The valve opens for one request */
static void
open_valve(struct rel *rel, struct rel_tenant *t)
{
	struct rel_node *n;

	if (t->is_group) {
		give_turn(rel, t);
	} else {
		n = LIST_OF(t->shut.next, struct rel_node, queue);
		list_remove(&n->queue);
		rel->nshut--;
		admit(rel, n);
	}
	update(rel, t);
}

/* It waits no longer.  Another one of its group's has the turn before, so
 * that to the policy the queue does not become empty. */
static void
depart(struct rel *rel, struct rel_node *n)
{
	struct rel_tenant *t = n->tenant, *top = top_of(t), *x;

	if (n->state == REL_SHUT) {
		list_remove(&n->queue);
		rel->nshut--;
	} else if (n->state == REL_POOLED) {
		unpool(rel, n);
	} else {
		if (has_turns(rel, top) && !has_limit(rel, top))
			give_turn(rel, top);
		quit(rel, n);
	}
	if (t != top && n->state != REL_SHUT)
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

/* It waits no longer, and is not released: the policy takes note of it */
static void
withdraw(struct rel *rel, struct rel_node *n)
{
	int seen = n->state == REL_WAITING;

	depart(rel, n);
	if (seen && rel->policy->cancel != NULL)
		rel->policy->cancel(rel, top_of(n->tenant), n);
}

/*--------------------------------------------------------------------*/

/* Nothing waits of it */
static void
clear(struct rel *rel, struct rel_tenant *t)
{
	list_init(&t->queue);
	list_init(&t->shut);
	list_init(&t->member.pool);
	t->waits = t->waiting = 0;
	t->of.pooled = 0;
	t->of.waiting_weight = 0;
	update(rel, t);
}

/* All waiting requests anew, in order of arrival, to a policy at its start */
static void
restart(struct rel *rel)
{
	struct rel_link all, *l, *m;
	struct rel_tenant *t;
	struct rel_node *n;

	rel->restart = 0;
	rel->epoch++;
	memset(rel->state, 0, largest_state());
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
		if (is_busy(t))
			rel->busy_weight += t->weight;
		start_tenant(rel, t);
	}
	while (!list_empty(&all)) {
		n = LIST_OF(all.next, struct rel_node, order);
		list_remove(&n->order);
		list_append(&rel->order, &n->order);
		enter(rel, n);
	}
}

/*--------------------------------------------------------------------*/

struct rel *
rel_new(const struct rel_policy *policy, unsigned nslots, unsigned options,
    rel_assert_f *held, void *priv)
{
	struct rel *rel;
	unsigned r;

	assert(policy != NULL && policy->dequeue != NULL);
	assert(policy->state_size <= largest_state());
	assert(policy->tenant_size <= largest_tenant());
	assert(nslots >= 1);
	rel = calloc(1, sizeof *rel + largest_state());
	if (rel == NULL)
		return (NULL);
	rel->magic = REL_MAGIC;
	rel->policy = policy;
	rel->nslots = nslots;
	rel->options = options;
	rel->flows = REL_FLOWS;
	rel->held = held;
	rel->priv = priv;
	list_init(&rel->tenants);
	list_init(&rel->order);
	for (r = 0; r < REL__RESOURCES; r++)
		list_init(&rel->stuck[r]);
	if (policy->init != NULL)
		policy->init(rel);
	return (rel);
}

struct rel *
REL_New(unsigned policy, unsigned nslots, unsigned options,
    rel_assert_f *held, void *priv)
{
	assert(policy < NPOLICIES);
	return (rel_new(policies[policy], nslots, options, held, priv));
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
	check_held(rel);
	rel->now = now;
	if (policy >= NPOLICIES)
		return (-1);
	if (rel->policy != policies[policy]) {
		rel->policy = policies[policy];
		restart(rel);
	}
	return (0);
}

unsigned
REL_GetPolicy(const struct rel *rel)
{
	unsigned u;

	check(rel);
	for (u = 0; u < NPOLICIES; u++)
		if (rel->policy == policies[u])
			break;
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
	restart(rel);
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
	restart(rel);
}

unsigned
REL_Waiting(const struct rel *rel)
{
	check(rel);
	return (rel->waits);
}

unsigned
REL_Shut(const struct rel *rel)
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

size_t
REL_TenantSize(void)
{
	return (sizeof(struct rel_tenant) + largest_tenant());
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
	list_init(&t->of.stuck);
	list_append(&rel->tenants, &t->all);
	start_tenant(rel, t);
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
	t->magic = 0;
}

static int64_t
account(const struct rel *rel, const struct rel_tenant *t)
{
	const struct rel_tenant *g = t->group;

	if (g != NULL)
		return (g->waits + g->running == 0 ? 0 :
		    t->member.start - g->of.v);
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

/* The tenant's first one in a list of rel_node.queue, or NULL */
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
	const struct rel_node *first;

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
	first = REL_TenantFirst(t);
	st->oldest = first == NULL ? -1 : first->arrival;
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
		rest_of_weight(&t->member.rest, before, weight);
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
		open_valve(rel, t);
	/* Out of the heaps, too, if it has neither any more */
	index_limits(rel, t);
}

/*
 * A tenant moves from its top tenant `from` to `to`: a group, or the tenant
 * itself.  Its requests that run are of `to` from now on: to `from` they are
 * complete, and what they have been charged is right.
 */
static void
stop_running(struct rel *rel, struct rel_tenant *from, unsigned running,
    int64_t booked)
{
	from->running -= running - 1;
	from->booked -= booked;
	if (rel->policy->complete != NULL)
		rel->policy->complete(rel, from, NULL);
	from->running--;
	if (!is_busy(from))
		rel->busy_weight -= from->weight;
}

static void
start_running(struct rel *rel, struct rel_tenant *to, unsigned running,
    int64_t booked)
{
	if (!is_busy(to))
		rel->busy_weight += to->weight;
	to->running += running;
	to->booked += booked;
}

/* The tenant's requests in this queue go to the head of `all`, in their order */
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
		withdraw(rel, n);
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
		heap_remove(&last->of.heap[t->member.resource],
		    &t->member.heap);
	list_remove(&t->all);
	list_append(g == NULL ? &rel->tenants : &g->of.members, &t->all);
	t->group = g;
	t->member.start = g == NULL ? 0 : g->of.v;
	t->member.rest = (struct rest){ 0 };
}

/*
 * The requests that wait are queued again, in their order.  From the last one
 * to the first: no turn of the old group is given to one that is about to go.
 */
static void
move_tenant(struct rel *rel, struct rel_tenant *t, struct rel_tenant *g)
{
	unsigned running = t->running;
	int64_t booked = t->booked;
	struct rel_link all;
	struct rel_node *n;

	list_init(&all);
	withdraw_from(rel, t, &t->shut, &all);
	withdraw_from(rel, t, &t->member.pool, &all);
	update(rel, t);			/* it takes no more turns */
	withdraw_from(rel, t, &top_of(t)->queue, &all);
	assert(t->waits == 0);
	update(rel, t);
	if (running > 0)
		stop_running(rel, top_of(t), running, booked);
	t->running = 0;
	t->booked = 0;
	change_group(rel, t, g);
	if (g == NULL)
		start_tenant(rel, t);
	if (running > 0)
		start_running(rel, top_of(t), running, booked);
	t->running = running;
	t->booked = booked;
	while (!list_empty(&all)) {
		n = LIST_OF(all.next, struct rel_node, queue);
		list_remove(&n->queue);
		enter(rel, n);
	}
	/* What runs was charged to another account, by another weight */
	if (running > 0)
		t->moves++;
	/* A policy that waits for these requests' progress would for ever.
	 * However many members move, it starts once. */
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
	update(rel, t);
	if (t->group == NULL && rel->policy->estimate != NULL)
		rel->policy->estimate(rel, t);
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
	enter(rel, n);
}

/* It runs, and these are charged; reserved: by whose reservation */
static void
pay(struct rel *rel, struct rel_tenant *t, int64_t ns,
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

static void
book(struct rel *rel, struct rel_tenant *t, int64_t ns)
{
	struct rel_tenant *x;

	EACH_LEVEL(x, t)
		x->booked += ns;
	rel->booked += ns;
}

/* What a request was charged is settled while this is the same: to the same
 * account, of the same policy */
static uint16_t
epoch_of(const struct rel *rel, const struct rel_tenant *t)
{
	return ((rel->epoch + t->moves) & ((1U << REL_EPOCH_BITS) - 1));
}

void
rel_release(struct rel *rel, struct rel_node *n, unsigned slot)
{
	struct rel_tenant *t, *x;
	int64_t charge;

	check_node(n, REL_WAITING);
	t = n->tenant;
	charge = t->cost;
	if (t->group != NULL) {
		group_charge(&t->group->of, &t->member,
		    virtual_ns(&t->member.rest, charge, t->weight));
		group_place(&t->group->of, &t->member, t->dominant);
	}
	EACH_LEVEL(x, t) {
		x->running++;
		x->released++;
	}
	rel->running++;
	list_remove(&n->order);
	depart(rel, n);
	n->state = REL_RUNNING;
	n->epoch = epoch_of(rel, t);
	n->slot = slot < REL_SLOT_MAX ? slot & REL_SLOT_MAX : REL_SLOT_MAX;
	n->reserved = REL_NOT_RESERVED;
	n->charge = charge;
	n->turn = 0;
	pay(rel, t, charge, REL_NOT_RESERVED);
	book(rel, t, charge);
}

/* Who is owed a reservation goes, and the policy charges it; 0: nobody is */
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
	/* Not its turn among its siblings, which may be far from its tag */
	if (t->group != NULL)
		pass_turn(rel, t, 0);
	top = top_of(t);
	*node = n = rel_first(top);
	rel_release(rel, n, slot);
	n->reserved = n->tenant == t ? REL_BY_TENANT : REL_BY_GROUP;
	mclock_charge(lim, n->charge, 1, rel->now);
	if (rel->policy->cancel != NULL)
		rel->policy->cancel(rel, top, n);
	if (rel->policy->charge != NULL)
		rel->policy->charge(rel, top, n, n->charge, REL_SCALE_ONE);
	return (1);
}

/* Where the turn is that of a member whose dominant resource is closed, and
 * another one's is open */
static void
pass_closed(struct rel *rel, unsigned closed)
{
	struct rel_tenant *g;
	struct member *m;
	unsigned r;

	for (r = 0; r < REL__RESOURCES; r++)
		while ((closed & REL_MASK(r)) && !list_empty(&rel->stuck[r])) {
			g = LIST_OF(rel->stuck[r].next, struct rel_tenant,
			    of.stuck);
			m = group_next(&g->of, closed);
			if (m == NULL)
				break;
			pass_turn(rel, LIST_OF(m, struct rel_tenant, member),
			    1);
		}
}

enum rel_answer
REL_Dequeue(struct rel *rel, int64_t now, unsigned slot, unsigned closed,
    struct rel_node **node, int64_t *when)
{
	enum rel_answer answer = REL_NOT_YET;
	struct mclock *lim;

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
		restart(rel);
	while ((lim = mclock_due(&rel->mclock, now)) != NULL)
		open_valve(rel, LIST_OF(lim, struct rel_tenant, mclock));
	pass_closed(rel, closed);
	if (release_reserved(rel, slot, closed, node))
		answer = REL_RELEASED;
	else if (rel->waiting > 0)
		answer = rel->policy->dequeue(rel, now, slot, closed, node,
		    when);
	if (answer == REL_RELEASED)
		update(rel, (*node)->tenant);
	else if (answer == REL_NOT_YET)
		*when = mclock_next(&rel->mclock, *when);
	return (answer);
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
	if (rel->policy->progress != NULL &&
	    n->epoch == epoch_of(rel, n->tenant))
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
	struct rest *rest = &t->member.rest;

	pay(rel, t, scaled, n == NULL ? REL_NOT_RESERVED :
	    (enum rel_reserved)n->reserved);
	if (t->group != NULL)
		group_charge(&t->group->of, &t->member, virtual_ns(rest,
		    settled_ns(rest, ns, scale), t->weight));
	if (ns != 0 && rel->policy->charge != NULL)
		rel->policy->charge(rel, top_of(t), n, ns, scale);
	update(rel, t);
}

void
REL_Refresh(struct rel *rel, struct rel_node *n, int64_t cost, int64_t now)
{
	int64_t ns;

	check_held(rel);
	check_node(n, REL_RUNNING);
	rel->now = now;
	ns = clamp(cost, 0) - n->charge;
	if (ns <= 0 || n->epoch != epoch_of(rel, n->tenant) ||
	    !(rel->options & REL_OPT_SETTLE))
		return;
	n->charge += ns;
	book(rel, n->tenant, ns);
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
	if (cost >= 0 && n->epoch == epoch_of(rel, t) &&
	    (rel->options & REL_OPT_SETTLE))
		charge(rel, t, n, clamp(cost, 0) - n->charge, scale);
	book(rel, t, -n->charge);
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
	assert(n != NULL && REL_Waits(n));
	check_node(n, n->state);
	rel->now = now;
	t = n->tenant;
	EACH_LEVEL(x, t)
		x->cancelled++;
	list_remove(&n->order);
	withdraw(rel, n);
	update(rel, t);
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
