/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Dominant resource fair queueing (DRFQ; Ghodsi, Sekar, Zaharia and Stoica,
 * SIGCOMM 2012): start-time fair queueing on several resources.  Request p of a
 * tenant follows request q.  For each resource j:
 *
 *	S(p, j) = max(V(j), B(q, j))
 *	F(p, j) = S(p, j) + s(j) / w		s: the tenant's estimates
 *	B(p, j) = max(F(p, j), max F(p, .) - D / w)
 *	V(j)	= the largest S(., j) that was released
 *
 * The least max S(p, .) goes first.  So a tenant that alternates between
 * resources pays for the one that it used most, as far back as D
 * (dove-tailing).  With D = 0 (memoryless) the policy is `sfq`, request by
 * request.
 *
 * Two tenants are backlogged, their dominant resources do not change, and costs
 * are known.  Then their released work differs by at most M + M' + D / w.  M is
 * a tenant's largest s / w.
 *
 * vtime.c keeps max S and the trees.  This file keeps how far the other tags
 * are behind max S.
 */

#include <string.h>

#include "vtime.h"

/*
 * Written from memory of the paper, with three differences.  V is applied when
 * a tenant becomes backlogged, not for each request.  V counts all releases of
 * the busy period, not only running requests.  Settlement moves all tags of a
 * tenant by the dominant cost, so their distances are those of the estimates.
 */

#define DELTA		INT64_C(4000000)	/* D, ns */

struct drfq {
	struct vt		vt;
	int64_t			behind[REL__RESOURCES];	/* v - V, virtual ns */
};

struct drfq_tenant {
	struct vt_tenant	vt;
	int64_t			lag[REL__RESOURCES];	/* ns, w (max S - S) */
	uint64_t		period;		/* vt.period of lag */
};

static const struct vt_rules drfq_rules = {
	.order = VT_BY_START,
	.eligible = VT_ALL,
	.self_clocked = 1,
};

static struct drfq *
state(struct rel *rel)
{
	return ((struct drfq *)(void *)rel->state);
}

static struct drfq_tenant *
account_of(struct rel_tenant *t)
{
	return ((struct drfq_tenant *)(void *)t->policy);
}

/* Convert virtual ns to ns, at most D from zero */
static int64_t
real_ns(int64_t virt, uint32_t weight)
{
	return (within((__int128)virt * weight / REL_WEIGHT_ONE, DELTA));
}

/* Add ns[r] to each tag.  Returns how much the largest tag grows, ns. */
static int64_t
grow(struct drfq_tenant *dt, const int64_t ns[REL__RESOURCES])
{
	int64_t up = INT64_MIN;
	unsigned r;

	for (r = 0; r < REL__RESOURCES; r++)
		if (ns[r] - dt->lag[r] > up)
			up = ns[r] - dt->lag[r];
	for (r = 0; r < REL__RESOURCES; r++)
		dt->lag[r] = least(dt->lag[r] + up - ns[r], DELTA);
	return (up);
}

/* A tenant's first tags in a busy period are V */
static void
enter_busy_period(const struct drfq *p, struct drfq_tenant *dt, uint32_t weight)
{
	unsigned r;

	if (dt->period == p->vt.period)
		return;
	dt->period = p->vt.period;
	for (r = 0; r < REL__RESOURCES; r++)
		dt->lag[r] = real_ns(p->behind[r], weight);
}

/* S = max(V, S).  beyond: the tenant's max S - v before vt_enqueue(), ns.  Now
 * max S >= v. */
static void
catch_up(const struct drfq *p, struct drfq_tenant *dt, int64_t beyond,
    uint32_t weight)
{
	int64_t past = beyond < 0 ? -beyond : 0;
	unsigned r;

	for (r = 0; r < REL__RESOURCES; r++)
		dt->lag[r] = least(dt->lag[r] + past,
		    beyond + past + real_ns(p->behind[r], weight));
}

/* V = max(V, S) for the request just released.  before: v - max S of that
 * request, virtual ns, >= 0. */
static void
note_start(struct drfq *p, const struct drfq_tenant *dt, int64_t before,
    uint32_t weight)
{
	int64_t grown = p->vt.v - p->vt.seen;
	unsigned r;

	for (r = 0; r < REL__RESOURCES; r++)
		p->behind[r] = least(within((__int128)p->behind[r] + grown,
		    DELTA * REL_WEIGHT_ONE),
		    before + dt->lag[r] * REL_WEIGHT_ONE / weight);
}

/*--------------------------------------------------------------------*/

static void
drfq_init(struct rel *rel)
{
	vt_init(rel, &drfq_rules);
}

static void
drfq_enqueue(struct rel *rel, struct rel_tenant *t, struct rel_node *n)
{
	struct drfq *p = state(rel);
	struct drfq_tenant *dt = account_of(t);
	int64_t beyond;

	if (t->waiting > 1)
		return;
	enter_busy_period(p, dt, t->weight);
	beyond = real_ns(vt_account(rel, t), t->weight);
	vt_enqueue(rel, t, n);
	if (p->vt.period != dt->period) {
		memset(p->behind, 0, sizeof p->behind);
		enter_busy_period(p, dt, t->weight);
		beyond = 0;
	}
	catch_up(p, dt, beyond, t->weight);
}

/* vt_dequeue() charges the dominant cost.  This is too much if the tenant
 * dove-tails, so the rest is paid back. */
static enum rel_answer
drfq_dequeue(struct rel *rel, int64_t now, unsigned slot, unsigned closed,
    struct rel_node **node, int64_t *when)
{
	int64_t s[REL__RESOURCES], before, less;
	struct drfq_tenant *dt;
	struct rel_tenant *t;
	enum rel_answer a;

	a = vt_dequeue(rel, now, slot, closed, node, when);
	if (a != REL_RELEASED)
		return (a);
	t = rel_top(*node);
	dt = account_of(t);
	before = t->cost * REL_WEIGHT_ONE / t->weight - vt_account(rel, t);
	note_start(state(rel), dt, before > 0 ? before : 0, t->weight);
	memcpy(s, t->estimate, sizeof s);
	s[t->dominant] = t->cost;
	less = t->cost - grow(dt, s);
	if (less > 0)
		vt_charge(rel, t, NULL, -less, REL_SCALE_ONE);
	return (a);
}

const struct rel_policy rel_policy_drfq = {
	.name =		"drfq",
	.summary =	"dominant resource fair queueing: one start tag per "
			"resource",
	.state_size =	sizeof(struct drfq),
	.tenant_size =	sizeof(struct drfq_tenant),
	.init =		drfq_init,
	.tenant_init =	vt_tenant_init,
	.tenant_fini =	vt_tenant_fini,
	.enqueue =	drfq_enqueue,
	.dequeue =	drfq_dequeue,
	.complete =	vt_complete,
	.cancel =	vt_cancel,
	.charge =	vt_charge,
	.estimate =	vt_estimate,
	.weight =	vt_weight,
	.account =	vt_account,
};
