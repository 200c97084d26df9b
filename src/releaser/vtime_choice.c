/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The choice of the policies by virtual time: which tenant goes in a slot.
 *
 * In slot i of n a request is eligible if n (v - S) + i (F - S) >= 0, that is
 * n v >= (n - i) S + i (S - (F - S)).  Each node of a tree has a lower bound of
 * both terms for its subtree.
 */

#include "treap.h"
#include "vtime_internal.h"

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

struct vt_tenant *
vt_choose(const struct rel *rel, struct vt *p, unsigned slot)
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
