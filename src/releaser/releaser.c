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

/* How many of its requests wait, behind its limit or not */
static unsigned
waits(const struct rel_tenant *t)
{
	return (t->waiting + t->nshut);
}

/* Are its limits to be heeded? */
static int
is_limited(const struct rel *rel, const struct rel_tenant *t)
{
	return (mclock_any(&t->mclock) && (rel->options & REL_OPT_LIMITS));
}

/* Its queue, its tags or its dominant resource have changed */
static void
index_limits(struct rel *rel, struct rel_tenant *t)
{
	if (mclock_any(&t->mclock))
		mclock_place(&rel->mclock, &t->mclock, t->dominant,
		    t->waiting > 0, t->nshut > 0);
}

/* So much more is to be paid; reserved: of the reservation, too */
static void
charge_limits(struct rel *rel, struct rel_tenant *t, int64_t ns, int reserved)
{
	if (!mclock_any(&t->mclock))
		return;
	mclock_charge(&t->mclock, ns, 0, rel->now);
	if (reserved)
		mclock_charge(&t->mclock, ns, 1, rel->now);
	index_limits(rel, t);
}

static void
arrive(struct rel *rel, struct rel_node *n)
{
	struct rel_tenant *t = n->tenant;

	list_append(&rel->order, &n->order);
	if (waits(t) == 0) {
		rel->backlogged++;
		rel->backlogged_weight += t->weight;
	}
}

/* The policy sees it from now on */
static void
admit(struct rel *rel, struct rel_node *n)
{
	struct rel_tenant *t = n->tenant;

	n->state = REL_WAITING;
	if (!is_busy(t))
		rel->busy_weight += t->weight;
	list_append(&t->queue, &n->queue);
	t->waiting++;
	rel->waiting++;
	if (rel->policy->enqueue != NULL)
		rel->policy->enqueue(rel, t, n);
}

static void
shut(struct rel *rel, struct rel_node *n)
{
	n->state = REL_SHUT;
	list_append(&n->tenant->shut, &n->queue);
	n->tenant->nshut++;
	rel->nshut++;
}

static void
unshut(struct rel *rel, struct rel_node *n)
{
	assert(n->tenant->nshut > 0);
	list_remove(&n->queue);
	n->tenant->nshut--;
	rel->nshut--;
}

/* The tenant's first one behind the valve passes it */
static void
pass(struct rel *rel, struct rel_tenant *t)
{
	struct rel_node *n = LIST_OF(t->shut.next, struct rel_node, queue);

	unshut(rel, n);
	admit(rel, n);
	index_limits(rel, t);
}

/* It waits no longer */
static void
depart(struct rel *rel, struct rel_node *n)
{
	struct rel_tenant *t = n->tenant;

	list_remove(&n->order);
	if (n->state == REL_SHUT) {
		unshut(rel, n);
	} else {
		assert(t->waiting > 0);
		list_remove(&n->queue);
		t->waiting--;
		rel->waiting--;
		if (!is_busy(t))
			rel->busy_weight -= t->weight;
	}
	if (waits(t) == 0) {
		rel->backlogged--;
		rel->backlogged_weight -= t->weight;
	}
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
	rel->waiting = 0;
	rel->busy_weight = 0;
	for (l = rel->tenants.next; l != &rel->tenants; l = l->next) {
		t = LIST_OF(l, struct rel_tenant, all);
		list_init(&t->queue);
		t->waiting = 0;
		index_limits(rel, t);
		if (is_busy(t))
			rel->busy_weight += t->weight;
		start_tenant(rel, t);
	}
	while (!list_empty(&all)) {
		n = LIST_OF(all.next, struct rel_node, order);
		list_remove(&n->order);
		list_append(&rel->order, &n->order);
		if (n->state == REL_SHUT && !is_limited(rel, n->tenant))
			unshut(rel, n);
		if (n->state == REL_WAITING || !is_limited(rel, n->tenant))
			admit(rel, n);
		index_limits(rel, n->tenant);
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
	return (rel->waiting + rel->nshut);
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
	list_append(&rel->tenants, &t->all);
	start_tenant(rel, t);
	return (t);
}

void
REL_TenantFini(struct rel *rel, struct rel_tenant *t)
{
	check_held(rel);
	check_tenant(t);
	assert(!is_busy(t) && t->nshut == 0);
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
	return (!is_busy(t) && t->nshut == 0 && account(rel, t) <= 0);
}

unsigned
REL_TenantWaiting(const struct rel_tenant *t)
{

	return (waits(t));
}

const struct rel_node *
REL_TenantFirst(const struct rel_tenant *t)
{

	if (t->waiting > 0)
		return (rel_first(t));
	if (t->nshut > 0)
		return (LIST_OF(t->shut.next, struct rel_node, queue));
	return (NULL);
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
	st->waiting = waits(t);
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
	t->weight = weight;
	if (waits(t) > 0)
		rel->backlogged_weight += weight - (uint64_t)before;
	if (is_busy(t))
		rel->busy_weight += weight - (uint64_t)before;
	if (before != weight && rel->policy->weight != NULL)
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
	mclock_set(&t->mclock, reservation, limit, now);
	while (limit == 0 && t->nshut > 0)
		pass(rel, t);
	/* Out of the heaps, too, if it has neither any more */
	mclock_place(&rel->mclock, &t->mclock, t->dominant, t->waiting > 0,
	    t->nshut > 0);
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
	index_limits(rel, t);
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
	t->enqueued++;
	if (!is_busy(t) && t->nshut == 0)
		mclock_begin(&t->mclock, now);
	arrive(rel, n);
	if (is_limited(rel, t) && (waits(t) > 0 ?
	    t->mclock.limit.part > 0 : !mclock_open(&t->mclock, now)))
		shut(rel, n);
	else
		admit(rel, n);
	index_limits(rel, t);
}

void
rel_release(struct rel *rel, struct rel_node *n, unsigned slot)
{
	struct rel_tenant *t;

	check_node(n, REL_WAITING);
	t = n->tenant;
	t->running++;
	rel->running++;
	depart(rel, n);
	n->state = REL_RUNNING;
	n->epoch = rel->epoch;
	n->slot = slot < REL_SLOT_MAX ? slot & REL_SLOT_MAX : REL_SLOT_MAX;
	n->reserved = 0;
	n->charge = t->cost;
	n->weight = t->weight;
	n->turn = 0;
	charge_limits(rel, t, n->charge, 0);
	t->released++;
	t->charged += n->charge;
	t->booked += n->charge;
	rel->booked += n->charge;
}

/* Who is owed a reservation goes, and the policy charges it; 0: nobody is */
static int
release_reserved(struct rel *rel, unsigned slot, unsigned closed,
    struct rel_node **node)
{
	struct mclock *lim = NULL;
	struct rel_tenant *t;
	struct rel_node *n;

	if (rel->options & REL_OPT_LIMITS)
		lim = mclock_owed(&rel->mclock, closed, rel->now);
	if (lim == NULL)
		return (0);
	t = LIST_OF(lim, struct rel_tenant, mclock);
	*node = n = rel_first(t);
	rel_release(rel, n, slot);
	n->reserved = 1;
	mclock_charge(lim, n->charge, 1, rel->now);
	index_limits(rel, t);
	if (rel->policy->cancel != NULL)
		rel->policy->cancel(rel, t, n);
	if (rel->policy->charge != NULL)
		rel->policy->charge(rel, t, n, n->charge, REL_SCALE_ONE);
	return (1);
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
	if (rel->waiting + rel->nshut == 0)
		return (REL_EMPTY);
	if (slot >= rel->nslots)
		return (REL_NO_SLOT);
	if (!(rel->options & REL_OPT_CLOSED))
		closed = 0;
	while ((lim = mclock_due(&rel->mclock, now)) != NULL)
		pass(rel, LIST_OF(lim, struct rel_tenant, mclock));
	if (release_reserved(rel, slot, closed, node))
		return (REL_RELEASED);
	if (rel->waiting > 0)
		answer = rel->policy->dequeue(rel, now, slot, closed, node,
		    when);
	if (answer == REL_NOT_YET)
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
	int64_t scaled = (int64_t)((__int128)ns * scale / REL_SCALE_ONE);

	t->charged += scaled;
	charge_limits(rel, t, scaled, n != NULL && n->reserved);
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
	assert(n != NULL && REL_Waits(n));
	check_node(n, n->state);
	rel->now = now;
	t = n->tenant;
	t->cancelled++;
	depart(rel, n);
	if (n->state == REL_WAITING && rel->policy->cancel != NULL)
		rel->policy->cancel(rel, t, n);
	index_limits(rel, t);
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
