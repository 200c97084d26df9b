/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The trees and the virtual clock of vtime.h.
 *
 * Each tree is a treap (Seidel and Aragon, 1996): ordered by tag, then arrival,
 * then number, and a heap by a pseudo-random rank.  So the expected depth is
 * O(log n) in any order of arrivals.  Each node knows the least S and the least
 * S - (F - S) of its subtree.  From these two follows whether a tenant in the
 * subtree can be eligible, in any slot.
 */

#include <assert.h>

#include "vtime.h"

#define TAG_MAX		(INT64_C(1) << 58)	/* virtual ns, from v */
#define V_MAX		(INT64_C(1) << 60)

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
 * The trees
 */

static int64_t
tag(enum vt_order order, const struct vt_tenant *n)
{
	return (order == VT_BY_START ? n->s : n->s + n->d);
}

static int
earlier(const struct vt_tenant *a, int64_t ta, const struct vt_tenant *b,
    int64_t tb)
{
	if (ta != tb)
		return (ta < tb);
	if (a->arrival != b->arrival)
		return (a->arrival < b->arrival);
	return (a->number < b->number);
}

static int
precedes(enum vt_order order, const struct vt_tenant *a,
    const struct vt_tenant *b)
{
	return (earlier(a, tag(order, a), b, tag(order, b)));
}

static struct vt_tenant *
summed(struct vt_tenant *n)
{
	const struct vt_tenant *below[] = { n->left, n->right };
	unsigned i;

	n->least_s = n->s;
	n->least_e = n->s - n->d;
	for (i = 0; i < 2; i++) {
		if (below[i] == NULL)
			continue;
		n->least_s = least(n->least_s, below[i]->least_s);
		n->least_e = least(n->least_e, below[i]->least_e);
	}
	return (n);
}

static struct vt_tenant *
merge(struct vt_tenant *a, struct vt_tenant *b)
{
	if (a == NULL || b == NULL)
		return (a == NULL ? b : a);
	if (a->rank > b->rank) {
		a->right = merge(a->right, b);
		return (summed(a));
	}
	b->left = merge(a, b->left);
	return (summed(b));
}

/* Split the tree n into the nodes before `at`, *a, and the rest, *b */
static void
split(enum vt_order order, struct vt_tenant *n,
    const struct vt_tenant *at, struct vt_tenant **a, struct vt_tenant **b)
{
	if (n == NULL) {
		*a = *b = NULL;
	} else if (precedes(order, n, at)) {
		split(order, n->right, at, &n->right, b);
		*a = summed(n);
	} else {
		split(order, n->left, at, a, &n->left);
		*b = summed(n);
	}
}

static struct vt_tenant *
with(enum vt_order order, struct vt_tenant *n, struct vt_tenant *m)
{
	if (n == NULL || m->rank > n->rank) {
		split(order, n, m, &m->left, &m->right);
		return (summed(m));
	}
	if (precedes(order, m, n))
		n->left = with(order, n->left, m);
	else
		n->right = with(order, n->right, m);
	return (summed(n));
}

static struct vt_tenant *
without(enum vt_order order, struct vt_tenant *n,
    const struct vt_tenant *m)
{
	assert(n != NULL);
	if (n == m)
		return (merge(n->left, n->right));
	if (precedes(order, m, n))
		n->left = without(order, n->left, m);
	else
		n->right = without(order, n->right, m);
	return (summed(n));
}

static struct vt_tree *
tree_of(struct vt *p, const struct vt_tenant *n)
{
	return (n->place == VT_GONE ? &p->gone : &p->tree[n->dominant]);
}

static enum vt_order
order_of(const struct vt *p, const struct vt_tenant *n)
{
	return (n->place == VT_GONE ? VT_BY_START : p->rules->order);
}

static int64_t
start_tag(const struct vt *p, const struct vt_tenant *n)
{
	if (n->place == VT_GONE)
		return (n->s);
	return (n->s + p->tree[n->dominant].offset);
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
		n->place = VT_GONE;
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

static struct vt_tenant *
leftmost(struct vt_tenant *n)
{
	while (n != NULL && n->left != NULL)
		n = n->left;
	return (n);
}

static void
move_all(struct vt_tenant *n, int64_t by)
{
	if (n == NULL)
		return;
	move_all(n->left, by);
	move_all(n->right, by);
	n->least_s += by;
	n->least_e += by;
}

/*--------------------------------------------------------------------
 * The choice.  In slot i of n a request is eligible if
 * n (v - S) + i (F - S) >= 0, that is n v >= (n - i) S + i (S - (F - S)).
 * Each node has a lower bound of both terms for its subtree.
 */

struct choice {
	unsigned		i, n;
};

/* Return n S - i (F - S): the least n v at which the request is eligible.
 * e is S - (F - S). */
static __int128
lack(const struct choice *c, int64_t s, int64_t e)
{
	return ((__int128)(c->n - c->i) * s + (__int128)c->i * e);
}

/* Return the first tenant of the tree that is eligible at v, or NULL */
static struct vt_tenant *
first_eligible(const struct choice *c, struct vt_tenant *n, int64_t v)
{
	struct vt_tenant *m;

	if (n == NULL || lack(c, n->least_s, n->least_e) > (__int128)c->n * v)
		return (NULL);
	m = first_eligible(c, n->left, v);
	if (m != NULL)
		return (m);
	if (lack(c, n->s, n->s - n->d) <= (__int128)c->n * v)
		return (n);
	return (first_eligible(c, n->right, v));
}

/* Lower *nv to the least n v at which a tenant of the tree is eligible */
static void
soonest(const struct choice *c, const struct vt_tenant *n, __int128 offset,
    __int128 *nv)
{
	const struct vt_tenant *a, *b, *t;
	__int128 k;

	if (n == NULL || lack(c, n->least_s, n->least_e) + offset >= *nv)
		return;
	k = lack(c, n->s, n->s - n->d) + offset;
	if (k < *nv)
		*nv = k;
	a = n->left;
	b = n->right;
	if (a != NULL && b != NULL && lack(c, b->least_s, b->least_e) <
	    lack(c, a->least_s, a->least_e)) {
		t = a;
		a = b;
		b = t;
	}
	soonest(c, a, offset, nv);
	soonest(c, b, offset, nv);
}

/* Compare the heads of two trees; NULL goes last */
static int
goes_before(struct vt *p, const struct vt_tenant *a, const struct vt_tenant *b)
{
	if (a == NULL || b == NULL)
		return (a != NULL);
	return (earlier(a, tag(p->rules->order, a) + tree_of(p, a)->offset,
	    b, tag(p->rules->order, b) + tree_of(p, b)->offset));
}

/*
 * Under VT_SERVED a tenant with running requests may be eligible before S,
 * because S counts work that is not served yet.  This changes with time, so no
 * tree can have it: first_served() looks at each such tenant.
 */

/* Bring r up to now: each running request is served as fast as the clock */
static void
serve(const struct vt *p, struct vt_tenant *n)
{
	int64_t past = p->now - n->since;

	n->since = p->now;
	if (past > 0 && n->ahead > 0)
		n->ahead -= least(n->ahead, within((__int128)past *
		    n->tenant->running, VIRTUAL_NS_MAX));
}

static int64_t
served_tag(const struct vt *p, struct vt_tenant *n)
{
	uint32_t weight = n->tenant->weight;

	serve(p, n);
	return (start_tag(p, n) -
	    (n->ahead * REL_WEIGHT_ONE + weight - 1) / weight);
}

static int
may_go(const struct vt *p, const struct vt_tenant *n)
{
	return (n->place == VT_WAITS && !(p->closed & REL_MASK(n->dominant)));
}

/* Return the first of `best` and the eligible tenants with r > 0.  A tenant
 * with r = 0 leaves the list: its tree suffices. */
static struct vt_tenant *
first_served(struct vt *p, struct vt_tenant *best)
{
	struct rel_link *l, *next;
	struct vt_tenant *n;
	int64_t s;

	for (l = p->runs.next; l != &p->runs; l = next) {
		next = l->next;
		n = LIST_OF(l, struct vt_tenant, runs);
		s = served_tag(p, n);
		if (n->ahead == 0)
			list_remove(l);
		else if (may_go(p, n) && s <= p->v && goes_before(p, n, best))
			best = n;
	}
	return (best);
}

/* Return the least v at which a tenant of p->runs is eligible, or `most` */
static int64_t
soonest_served(struct vt *p, int64_t most)
{
	struct vt_tenant *n;
	struct rel_link *l;

	for (l = p->runs.next; l != &p->runs; l = l->next) {
		n = LIST_OF(l, struct vt_tenant, runs);
		if (may_go(p, n))
			most = least(most, served_tag(p, n));
	}
	return (most);
}

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
	n->ahead = least(n->ahead, n->tenant->booked);
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

/* Return the tenant that goes in this slot at v, or NULL */
static struct vt_tenant *
first(struct vt *p, const struct choice *c)
{
	struct vt_tenant *best = NULL, *m;
	struct vt_tree *tree;
	unsigned r;

	for (r = 0; r < REL__RESOURCES; r++) {
		tree = &p->tree[r];
		if (tree->root == NULL || (p->closed & REL_MASK(r)))
			continue;
		m = p->rules->eligible == VT_ALL ? leftmost(tree->root) :
		    first_eligible(c, tree->root, p->v - tree->offset);
		if (goes_before(p, m, best))
			best = m;
	}
	return (first_served(p, best));
}

/* Move v on to the first eligible tenant in this slot, if v is less.  0: no
 * tenant waits whose dominant resource is open. */
static int
follow(struct vt *p, const struct choice *c)
{
	__int128 nv = (__int128)c->n * V_MAX * 2;
	unsigned r, some = 0;
	int64_t v;

	for (r = 0; r < REL__RESOURCES; r++) {
		if (p->tree[r].root == NULL || (p->closed & REL_MASK(r)))
			continue;
		some = 1;
		soonest(c, p->tree[r].root, (__int128)c->n *
		    p->tree[r].offset, &nv);
	}
	v = soonest_served(p, (int64_t)((nv + c->n - 1) / c->n));
	if (some && v > p->v)
		p->v = v;
	return ((int)some);
}

/* Return the tenant that goes in this slot, or NULL if all is closed.  No slot
 * idles: if no tenant is eligible, the machine is faster than v, so v moves. */
static struct vt_tenant *
choose(const struct rel *rel, struct vt *p, unsigned slot)
{
	struct choice c = { .i = 0, .n = rel->nslots };
	struct vt_tenant *best;

	if (p->rules->eligible == VT_STAGGERED)
		c.i = slot;
	if (p->rules->eligible == VT_ALL && !p->rules->self_clocked)
		(void)follow(p, &c);
	best = first(p, &c);
	if (best == NULL && follow(p, &c))
		best = first(p, &c);
	return (best);
}

/*--------------------------------------------------------------------
 * Virtual time
 */

/* v += ns / weight, up to `most`.  Returns the ns that did not fit. */
static int64_t
grow_to(struct vt *p, int64_t ns, uint64_t weight, int64_t most)
{
	__int128 n = (__int128)ns * REL_WEIGHT_ONE + p->rest;
	__int128 need = (__int128)(most - p->v) * (__int128)weight;

	assert(most >= p->v);
	if (n < need) {
		p->v += (int64_t)(n / (__int128)weight);
		p->rest = (int64_t)(n % (__int128)weight);
		return (0);
	}
	p->v = most;
	p->rest = (int64_t)((n - need) % REL_WEIGHT_ONE);
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
	    (weight = rel->busy_weight + p->gone.weight) > 0) {
		n = leftmost(p->gone.root);
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
	move_all(p->gone.root, -p->v);
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
heed(struct vt *p, unsigned closed)
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
	    virtual_ns(&n->rest, ns, weight));
}

/* Start a busy period.  Nothing waited or ran, so all debt and credit is 0. */
static void
new_period(struct vt *p)
{
	unsigned r;

	p->period++;
	p->v = p->rest = p->ahead = p->seen = 0;
	p->gone = (struct vt_tree){ .root = NULL };
	for (r = 0; r < REL__RESOURCES; r++)
		p->tree[r].offset = 0;
}

static void
freshen(struct vt *p, struct vt_tenant *n)
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

/* Return a pseudo-random number: SplitMix64 (Steele and others, OOPSLA 2014) */
static uint64_t
mixed(uint64_t n)
{
	n = (n + 1) * UINT64_C(0x9e3779b97f4a7c15);
	n = (n ^ n >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	n = (n ^ n >> 27) * UINT64_C(0x94d049bb133111eb);
	return (n ^ n >> 31);
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
	n->rank = mixed(n->number);
	list_init(&n->runs);
	set_start(p, n, p->v);
}

void
vt_tenant_fini(struct rel *rel, struct rel_tenant *t)
{
	struct vt *p = state(rel);
	struct vt_tenant *n = account_of(t);

	freshen(p, n);
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
	freshen(p, n);
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
	heed(p, closed);
	n = choose(rel, p, slot);
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
	freshen(p, n);
	advance(rel, p);
	if (p->rules->eligible == VT_SERVED)
		note_end(p, n);
	if (p->ahead > rel->booked)
		grow(rel, p, p->ahead - rel->booked);
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
	ns = settled_ns(&n->rest, ns, scale);
	freshen(p, n);
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

	freshen(p, n);
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

	freshen(p, n);
	t->weight = before;
	leave(p, n);
	t->weight = weight;
	s = start_tag(p, n);
	set_start(p, n, p->v + (s - p->v) * before / weight);
	rest_of_weight(&n->rest, before, weight);
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
