/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The tags and the virtual clock of vtime.h, and the calls of its policies.
 *
 * The trees are in treap.h.  The choice of the next tenant is in
 * vtime_choice.c.
 */

#include <assert.h>

#include "splitmix.h"
#include "treap.h"
#include "vtime_internal.h"

#define TAG_MAX		(INT64_C(1) << 58)	/* virtual ns, from v */

static struct vt *
state(struct rel *rel)
{
	return ((struct vt *)(void *)rel->state);
}

static struct vt_tenant *
account_of(struct rel_tenant *t)
{
	return ((struct vt_tenant *)(void *)t->policy);
}

/*--------------------------------------------------------------------
 * The place of a tenant in the trees
 */

static enum vt_order
order_of(const struct vt *p, const struct vt_tenant *n)
{
	return (n->place == VT_GPS_BUSY ? VT_BY_START : p->rules->order);
}

static void
set_start(struct vt *p, struct vt_tenant *n, __int128 s)
{
	n->s = p->v + within(s - p->v, TAG_MAX) - tree_of(p, n)->offset;
}

/* Take the tenant out of its tree, if it is in one.  Its tags, weight and
 * dominant resource may change only outside of a tree. */
static void
leave(struct vt *p, struct vt_tenant *n)
{
	struct vt_tree *tree = tree_of(p, n);
	int64_t s = start_tag(p, n);

	if (n->place == VT_NOWHERE)
		return;
	tree->root = without(order_of(p, n), tree->root, n);
	tree->weight -= n->tenant->weight;
	n->place = VT_NOWHERE;
	set_start(p, n, s);
}

/* Put the tenant into its tree, if there is one for it.  Under GPS an idle
 * tenant stays busy until S, the finish tag of its last request. */
static void
join(struct vt *p, struct vt_tenant *n, unsigned running)
{
	int64_t s = start_tag(p, n);
	struct vt_tree *tree;

	assert(n->place == VT_NOWHERE);
	if (n->tenant->waiting > 0) {
		n->place = VT_WAITS;
		n->arrival = rel_first(n->tenant)->arrival;
	} else if (running == 0 && s > p->v && !p->rules->self_clocked) {
		n->place = VT_GPS_BUSY;
	} else
		return;
	set_start(p, n, s);
	n->left = n->right = NULL;
	n->d = within((__int128)n->tenant->cost * REL_WEIGHT_ONE /
	    n->tenant->weight, TAG_MAX);
	tree = tree_of(p, n);
	tree->weight += n->tenant->weight;
	tree->root = with(order_of(p, n), tree->root, n);
}

/*--------------------------------------------------------------------
 * Under VT_SERVED: r of a tenant, after a change of its running requests
 */

static void
note_release(struct vt *p, struct vt_tenant *n)
{
	serve(p, n);
	if (list_empty(&n->runs))
		list_append(&p->runs, &n->runs);
	n->ahead = within(n->ahead + n->tenant->cost, VIRTUAL_NS_MAX);
}

/* All work except the charges of running requests is served */
static void
note_end(struct vt *p, struct vt_tenant *n)
{
	serve(p, n);
	n->ahead = least(n->ahead, n->tenant->in_service);
	if (n->ahead == 0)
		list_remove(&n->runs);
}

/* The request cost less than its charge, so less is left to be served */
static void
note_charge(struct vt *p, struct vt_tenant *n, int64_t ns)
{
	serve(p, n);
	if (ns < 0)
		n->ahead -= least(n->ahead, -ns);
}

/*--------------------------------------------------------------------
 * Virtual time
 */

/* v += ns / weight, up to `most`.  Returns the ns that did not fit. */
static int64_t
grow_to(struct vt *p, int64_t ns, uint64_t weight, int64_t most)
{
	__int128 n = (__int128)ns * REL_WEIGHT_ONE + p->remainder;
	__int128 need = (__int128)(most - p->v) * (__int128)weight;

	assert(most >= p->v);
	if (n < need) {
		p->v += (int64_t)(n / (__int128)weight);
		p->remainder = (int64_t)(n % (__int128)weight);
		return (0);
	}
	p->v = most;
	p->remainder = (int64_t)((n - need) % REL_WEIGHT_ONE);
	return ((int64_t)((n - need) / REL_WEIGHT_ONE));
}

/* Advance v by ns of work, shared by the busy tenants and by the tenants that
 * are still backlogged under GPS */
static void
grow(const struct rel *rel, struct vt *p, int64_t ns)
{
	int64_t most = p->v + TAG_MAX;
	struct vt_tenant *n;
	uint64_t weight;

	p->ahead -= ns;
	if (p->rules->self_clocked)
		return;
	while (ns > 0 && p->v < most &&
	    (weight = rel->busy_weight + p->gps_busy.weight) > 0) {
		n = leftmost(p->gps_busy.root);
		if (n != NULL && n->s <= p->v)
			leave(p, n);
		else
			ns = grow_to(p, ns, weight,
			    n == NULL ? most : least(most, n->s));
	}
}

/* Subtract v from all tags, long before they could overflow */
static void
rebase(struct rel *rel, struct vt *p)
{
	struct vt_tenant *n;
	struct vt_tree *tree;
	struct rel_link *l;
	unsigned r;

	for (l = rel->tenants.next; l != &rel->tenants; l = l->next) {
		n = account_of(LIST_OF(l, struct rel_tenant, all));
		if (n->period == p->period)
			n->s = start_tag(p, n) - p->v;
	}
	move_all(p->gps_busy.root, -p->v);
	for (r = 0; r < REL__RESOURCES; r++) {
		tree = &p->tree[r];
		move_all(tree->root, tree->offset - p->v);
		tree->offset = 0;
	}
	p->seen -= p->v;
	p->v = 0;
}

static void
advance(struct rel *rel, struct vt *p)
{
	int64_t past = rel->now - p->now;

	p->now = rel->now;
	if (past > 0 && p->ahead > 0)
		grow(rel, p, least(within((__int128)past * rel->running,
		    VIRTUAL_NS_MAX), p->ahead));
	if (p->v > V_MAX)
		rebase(rel, p);
}

/* Note which resources are closed from now on.  While one is closed, the tags
 * of its tree grow, but not by more than v has grown. */
static void
advance_closed_trees(struct vt *p, unsigned closed)
{
	int64_t grown = p->v - p->seen, behind;
	struct vt_tree *tree;
	unsigned r;

	for (r = 0; r < REL__RESOURCES; r++) {
		tree = &p->tree[r];
		if (!(p->closed & REL_MASK(r)) || tree->root == NULL)
			continue;
		behind = p->v - (tag(p->rules->order, leftmost(tree->root)) +
		    tree->offset);
		tree->offset += least(grown, most(behind - VT_MISSED, 0));
	}
	p->seen = p->v;
	p->closed = closed;
}

/* S += ns / w */
static void
add_cost(struct vt *p, struct vt_tenant *n, int64_t ns, uint32_t weight)
{
	set_start(p, n, (__int128)start_tag(p, n) +
	    virtual_ns(&n->remainder, ns, weight));
}

/* Start a busy period.  Nothing waited or ran, so all debt and credit is 0. */
static void
new_period(struct vt *p)
{
	unsigned r;

	p->period++;
	p->v = p->remainder = p->ahead = p->seen = 0;
	p->gps_busy = (struct vt_tree){ .root = NULL };
	for (r = 0; r < REL__RESOURCES; r++)
		p->tree[r].offset = 0;
}

static void
enter_busy_period(struct vt *p, struct vt_tenant *n)
{
	if (n->period == p->period)
		return;
	n->period = p->period;
	n->place = VT_NOWHERE;
	set_start(p, n, p->v);
}

/*--------------------------------------------------------------------
 * The calls
 */

void
vt_init(struct rel *rel, const struct vt_rules *rules)
{
	struct vt *p = state(rel);

	p->rules = rules;
	p->now = rel->now;
	list_init(&p->runs);
}

void
vt_tenant_init(struct rel *rel, struct rel_tenant *t)
{
	struct vt *p = state(rel);
	struct vt_tenant *n = account_of(t);

	n->tenant = t;
	n->number = p->tenants++;
	n->dominant = (uint8_t)t->dominant;
	n->period = p->period;
	n->rank = splitmix(n->number * SPLITMIX_STEP);
	list_init(&n->runs);
	set_start(p, n, p->v);
}

void
vt_tenant_fini(struct rel *rel, struct rel_tenant *t)
{
	struct vt *p = state(rel);
	struct vt_tenant *n = account_of(t);

	enter_busy_period(p, n);
	leave(p, n);
}

void
vt_enqueue(struct rel *rel, struct rel_tenant *t, struct rel_node *node)
{
	struct vt *p = state(rel);
	struct vt_tenant *n = account_of(t);

	(void)node;
	if (t->waiting > 1)
		return;
	if (rel->waiting == 1 && rel->running == 0)
		new_period(p);
	enter_busy_period(p, n);
	leave(p, n);
	advance(rel, p);
	if (start_tag(p, n) < p->v)
		set_start(p, n, p->v);
	join(p, n, t->running);
}

enum rel_answer
vt_dequeue(struct rel *rel, int64_t now, unsigned slot, unsigned closed,
    struct rel_node **node, int64_t *when)
{
	struct vt *p = state(rel);
	struct vt_tenant *n;
	struct rel_tenant *t;

	(void)now;
	(void)when;
	advance(rel, p);
	advance_closed_trees(p, closed);
	n = vt_choose(rel, p, slot);
	if (n == NULL)
		return (REL_NOT_YET);
	t = n->tenant;
	leave(p, n);
	if (p->rules->self_clocked && start_tag(p, n) > p->v)
		p->v = start_tag(p, n);
	*node = rel_first(t);
	if (p->rules->eligible == VT_SERVED)
		note_release(p, n);
	rel_release(rel, *node, slot);
	p->ahead = within(p->ahead + t->cost, VIRTUAL_NS_MAX);
	add_cost(p, n, t->cost, t->weight);
	join(p, n, t->running);
	return (REL_RELEASED);
}

/* Work that was charged and not done does not count, the rest is done */
void
vt_complete(struct rel *rel, struct rel_tenant *t, struct rel_node *node)
{
	struct vt *p = state(rel);
	struct vt_tenant *n = account_of(t);

	(void)node;
	/* A group's running requests may be those of a new member.  Then the
	 * group may not have entered this busy period yet. */
	enter_busy_period(p, n);
	advance(rel, p);
	if (p->rules->eligible == VT_SERVED)
		note_end(p, n);
	if (p->ahead > rel->in_service)
		grow(rel, p, p->ahead - rel->in_service);
	if (n->place == VT_NOWHERE)
		join(p, n, t->running - 1);
}

void
vt_cancel(struct rel *rel, struct rel_tenant *t, struct rel_node *node)
{
	struct vt *p = state(rel);
	struct vt_tenant *n = account_of(t);

	(void)node;
	leave(p, n);
	join(p, n, t->running);
}

void
vt_charge(struct rel *rel, struct rel_tenant *t, const struct rel_node *node,
    int64_t ns, uint32_t scale)
{
	struct vt *p = state(rel);
	struct vt_tenant *n = account_of(t);

	(void)node;
	ns = settled_ns(&n->remainder, ns, scale);
	enter_busy_period(p, n);
	leave(p, n);
	advance(rel, p);
	if (p->rules->eligible == VT_SERVED)
		note_charge(p, n, ns);
	add_cost(p, n, ns, t->weight);
	p->ahead = within(p->ahead + ns, VIRTUAL_NS_MAX);
	if (ns > 0)
		grow(rel, p, ns);
	join(p, n, t->running);
}

void
vt_estimate(struct rel *rel, struct rel_tenant *t)
{
	struct vt *p = state(rel);
	struct vt_tenant *n = account_of(t);
	int64_t s;

	enter_busy_period(p, n);
	leave(p, n);
	s = start_tag(p, n);
	n->dominant = (uint8_t)t->dominant;
	set_start(p, n, s);
	join(p, n, t->running);
}

void
vt_weight(struct rel *rel, struct rel_tenant *t, uint32_t before)
{
	struct vt *p = state(rel);
	struct vt_tenant *n = account_of(t);
	uint32_t weight = t->weight;
	__int128 s;

	enter_busy_period(p, n);
	t->weight = before;
	leave(p, n);
	t->weight = weight;
	s = start_tag(p, n);
	set_start(p, n, p->v + (s - p->v) * before / weight);
	rescale_remainder(&n->remainder, before, weight);
	join(p, n, t->running);
}

int64_t
vt_account(const struct rel *rel, const struct rel_tenant *t)
{
	const struct vt *p = (const void *)rel->state;
	const struct vt_tenant *n = (const void *)t->policy;

	if (n->period != p->period || rel->waiting + rel->running == 0)
		return (0);
	return (start_tag(p, n) - p->v);
}
