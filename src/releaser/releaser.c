/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The host of the policies.
 *
 * Each waiting request is in two lists: its tenant's queue, from whose head
 * alone policies release, and the list of all by order of arrival, which is
 * fifo's queue and lets another policy start from where the last one ended.
 * Both are doubly linked, so that a cancel is as cheap as a release.
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

/* Has it a request, waiting or running? */
static int
is_busy(const struct rel_tenant *t)
{
	return (t->waiting + t->running > 0);
}

static void
link_node(struct rel *rel, struct rel_node *n)
{
	struct rel_tenant *t = n->tenant;

	if (!is_busy(t))
		rel->busy_weight += t->weight;
	list_append(&t->queue, &n->queue);
	list_append(&rel->order, &n->order);
	if (t->waiting++ == 0) {
		rel->backlogged++;
		rel->backlogged_weight += t->weight;
	}
	rel->waiting++;
}

static void
unlink_node(struct rel *rel, struct rel_node *n)
{
	struct rel_tenant *t = n->tenant;

	assert(t->waiting > 0);
	list_remove(&n->queue);
	list_remove(&n->order);
	if (--t->waiting == 0) {
		rel->backlogged--;
		rel->backlogged_weight -= t->weight;
	}
	if (!is_busy(t))
		rel->busy_weight -= t->weight;
	rel->waiting--;
}

/* All waiting requests anew, in order of arrival, to a policy at its start */
static void
restart(struct rel *rel)
{
	struct rel_link all, *l;
	struct rel_tenant *t;
	struct rel_node *n;

	rel->epoch++;
	memset(rel->state, 0, largest_state());
	if (rel->policy->init != NULL)
		rel->policy->init(rel);

	list_init(&all);
	list_splice(&all, &rel->order);
	rel->waiting = rel->backlogged = 0;
	rel->backlogged_weight = rel->busy_weight = 0;
	for (l = rel->tenants.next; l != &rel->tenants; l = l->next) {
		t = LIST_OF(l, struct rel_tenant, all);
		list_init(&t->queue);
		t->waiting = 0;
		if (is_busy(t))
			rel->busy_weight += t->weight;
		start_tenant(rel, t);
	}
	while (!list_empty(&all)) {
		n = LIST_OF(all.next, struct rel_node, order);
		list_remove(&n->order);
		link_node(rel, n);
		if (rel->policy->enqueue != NULL)
			rel->policy->enqueue(rel, n->tenant, n);
	}
}

/*--------------------------------------------------------------------*/

struct rel *
rel_new(const struct rel_policy *policy, unsigned nslots, unsigned options,
    rel_assert_f *held, void *priv)
{
	struct rel *rel;

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
	return (rel->waiting);
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
	list_append(&rel->tenants, &t->all);
	start_tenant(rel, t);
	return (t);
}

void
REL_TenantFini(struct rel *rel, struct rel_tenant *t)
{
	check_held(rel);
	check_tenant(t);
	assert(t->waiting == 0 && t->running == 0);
	if (rel->policy->tenant_fini != NULL)
		rel->policy->tenant_fini(rel, t);
	list_remove(&t->all);
	t->magic = 0;
}

static int64_t
account(const struct rel *rel, const struct rel_tenant *t)
{
	if (rel->policy->account == NULL)
		return (0);
	return (rel->policy->account(rel, t));
}

int
REL_TenantIdle(const struct rel *rel, const struct rel_tenant *t)
{
	check(rel);
	check_tenant(t);
	return (t->waiting == 0 && t->running == 0 && account(rel, t) <= 0);
}

unsigned
REL_TenantWaiting(const struct rel_tenant *t)
{

	return (t->waiting);
}

void
REL_TenantStat(const struct rel *rel, const struct rel_tenant *t,
    struct rel_tenant_stat *st)
{
	check(rel);
	check_tenant(t);
	assert(st != NULL);
	memset(st, 0, sizeof *st);
	st->waiting = t->waiting;
	st->running = t->running;
	st->weight = t->weight;
	memcpy(st->estimate, t->estimate, sizeof st->estimate);
	st->dominant = t->dominant;
	st->oldest = t->waiting > 0 ? rel_first(t)->arrival : -1;
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
	t->weight = weight;
	if (t->waiting > 0)
		rel->backlogged_weight += weight - (uint64_t)before;
	if (is_busy(t))
		rel->busy_weight += weight - (uint64_t)before;
	if (before != weight && rel->policy->weight != NULL)
		rel->policy->weight(rel, t, before);
}

void
REL_SetEstimate(struct rel *rel, struct rel_tenant *t,
    const int64_t estimate[REL__RESOURCES])
{
	unsigned r, dominant = 0;

	check_held(rel);
	check_tenant(t);
	assert(estimate != NULL);
	for (r = 0; r < REL__RESOURCES; r++) {
		t->estimate[r] = clamp(estimate[r], 0);
		if (t->estimate[r] > t->estimate[dominant])
			dominant = r;
	}
	t->dominant = (enum rel_resource)dominant;
	t->cost = clamp(t->estimate[dominant], 1);
	if (rel->policy->estimate != NULL)
		rel->policy->estimate(rel, t);
}

/*--------------------------------------------------------------------*/

void
REL_Enqueue(struct rel *rel, struct rel_tenant *t, struct rel_node *n,
    int64_t now)
{
	check_held(rel);
	check_tenant(t);
	assert(n != NULL && n->state == REL_IDLE);
	n->magic = REL_NODE_MAGIC;
	n->tenant = t;
	n->arrival = rel->now = now;
	n->state = REL_WAITING;
	link_node(rel, n);
	t->enqueued++;
	if (rel->policy->enqueue != NULL)
		rel->policy->enqueue(rel, t, n);
}

void
rel_release(struct rel *rel, struct rel_node *n, unsigned slot)
{
	struct rel_tenant *t;

	check_node(n, REL_WAITING);
	t = n->tenant;
	t->running++;
	rel->running++;
	unlink_node(rel, n);
	n->state = REL_RUNNING;
	n->epoch = rel->epoch;
	n->slot = (uint16_t)(slot < UINT16_MAX ? slot : UINT16_MAX);
	n->charge = t->cost;
	n->weight = t->weight;
	t->released++;
	t->charged += n->charge;
	t->booked += n->charge;
	rel->booked += n->charge;
}

enum rel_answer
REL_Dequeue(struct rel *rel, int64_t now, unsigned slot, unsigned closed,
    struct rel_node **node, int64_t *when)
{
	check_held(rel);
	assert(node != NULL && when != NULL);
	rel->now = now;
	*node = NULL;
	*when = INT64_MAX;
	if (rel->waiting == 0)
		return (REL_EMPTY);
	if (slot >= rel->nslots)
		return (REL_NO_SLOT);
	if (!(rel->options & REL_OPT_CLOSED))
		closed = 0;
	return (rel->policy->dequeue(rel, now, slot, closed, node, when));
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
	if (rel->policy->progress != NULL && n->epoch == rel->epoch)
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
	t->charged += (int64_t)((__int128)ns * scale / REL_SCALE_ONE);
	if (ns != 0 && rel->policy->charge != NULL)
		rel->policy->charge(rel, t, n, ns, scale);
}

void
REL_Refresh(struct rel *rel, struct rel_node *n, int64_t cost, int64_t now)
{
	int64_t ns;

	check_held(rel);
	check_node(n, REL_RUNNING);
	rel->now = now;
	ns = clamp(cost, 0) - n->charge;
	if (ns <= 0 || n->epoch != rel->epoch ||
	    !(rel->options & REL_OPT_SETTLE))
		return;
	n->charge += ns;
	n->tenant->booked += ns;
	rel->booked += ns;
	charge(rel, n->tenant, n, ns, REL_SCALE_ONE);
}

void
REL_Complete(struct rel *rel, struct rel_node *n, int64_t cost,
    uint32_t scale, int64_t now)
{
	struct rel_tenant *t;

	check_held(rel);
	check_node(n, REL_RUNNING);
	rel->now = now;
	t = n->tenant;
	assert(t->running > 0);
	progress(rel, n, REL_NET);
	if (cost >= 0 && n->epoch == rel->epoch &&
	    (rel->options & REL_OPT_SETTLE))
		charge(rel, t, n, clamp(cost, 0) - n->charge, scale);
	t->booked -= n->charge;
	rel->booked -= n->charge;
	if (rel->policy->complete != NULL)
		rel->policy->complete(rel, t, n);
	t->running--;
	rel->running--;
	if (!is_busy(t))
		rel->busy_weight -= t->weight;
	t->completed++;
	n->state = REL_IDLE;
	n->tenant = NULL;
}

void
REL_Cancel(struct rel *rel, struct rel_node *n, int64_t now)
{
	struct rel_tenant *t;

	check_held(rel);
	check_node(n, REL_WAITING);
	rel->now = now;
	t = n->tenant;
	unlink_node(rel, n);
	t->cancelled++;
	if (rel->policy->cancel != NULL)
		rel->policy->cancel(rel, t, n);
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
