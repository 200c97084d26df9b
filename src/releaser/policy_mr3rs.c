/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * `mr3-rs`: MR3 without synchronisation (paper, Figure 8), with repairs.
 * `mr3`: the same with end-to-end synchronisation (section 4.3), to compare.
 *
 * A tenant has an account A, and all have a level G, in virtual ns.  Figure 8's
 * excess is s = A - G.  A round raises G by u + 1; a turn releases while A < G.
 * The lists `this` and `next` are Figure 8's Q_ac, cut at its R.
 *
 * The repairs are bits of `options`.  Costs are settled.  Debt is kept.  u is
 * at most U, and a tenant that owes U or more waits in a timing wheel.  Closed
 * resources are respected.  A tenant that returns with credit goes first.
 *
 * Tenants that use the same resources share a level.  While a closed resource
 * holds a tenant, the levels that use it stand still, and rounds go on for the
 * others (progressive filling).  These levels catch up later, by U at most.
 */

#include <assert.h>

#include "mr3.h"
#include "wheel.h"

/*--------------------------------------------------------------------
 * Rounds
 */

/* Put the tenants of `held` and `parked` back, in the order that they had */
static void
thaw(struct mr3 *p)
{
	list_splice(p->this.next, &p->held);
	list_splice(p->next.next, &p->parked);
}

/* Return how far the moving levels have to rise until one of them reaches its
 * lowest bucket, virtual ns; -1: all their wheels are empty */
static int64_t
jump(struct mr3 *p, unsigned still)
{
	int64_t up, least_up = -1;
	struct level *lv;
	unsigned g;

	for (g = 0; g < LEVELS; g++) {
		lv = &p->level[g];
		if ((g & still) || lv->indebted == 0)
			continue;
		(void)wheel_lowest(lv, &up);
		up = up * QUANTUM_MAX - lv->g;
		if (least_up < 0 || up < least_up)
			least_up = up;
	}
	return (least_up);
}

/* Does a backlogged tenant, whose level moves, wait outside of the wheel? */
static int
some_next(const struct mr3 *p, unsigned still)
{
	unsigned g;

	for (g = 0; g < LEVELS; g++)
		if (!(g & still) &&
		    p->level[g].backlogged > p->level[g].indebted)
			return (1);
	return (0);
}

/* Must rounds be short?  They must while a backlogged tenant uses net: short
 * rounds let net and the cores work at the same time. */
static int
short_rounds(const struct mr3 *p)
{
	unsigned g;

	for (g = 0; g < LEVELS; g++)
		if ((g & REL_MASK(REL_NET)) && p->level[g].backlogged > 0)
			return (1);
	return (0);
}

/* Return u + 1, virtual ns, of a round that begins now */
static int64_t
quantum(const struct rel *rel, const struct mr3 *p, int is_short)
{
	int64_t u = p->s_before;

	if (!is_short)
		u = most(u, rel->round * REL_WEIGHT_ONE /
		    (int64_t)rel->busy_weight);
	if (rel->options & REL_OPT_CAP)
		u = least(u, QUANTUM_MAX);
	return (u + 1);
}

/* Start a round for all tenants whose levels move.  0: there are none. */
static int
start_round(struct rel *rel, struct mr3 *p)
{
	unsigned g, still = 0;
	int64_t up;

	if (list_empty(&p->held))
		thaw(p);
	else
		still = p->closed;
	if (some_next(p, still)) {
		p->s_before = p->s_max;
		p->s_max = 0;
		up = quantum(rel, p, short_rounds(p));
	} else
		up = jump(p, still);
	if (up < 0)
		return (0);
	for (g = 0; g < LEVELS; g++) {
		struct level *lv = &p->level[g];

		if (g & still) {
			lv->missed = least(lv->missed + least(up, QUANTUM_MAX),
			    QUANTUM_MAX);
			continue;
		}
		raise_level(rel, lv, up + lv->missed);
		lv->missed = 0;
	}
	list_splice(&p->this, &p->next);
	return (1);
}

static void
leave(struct mr3 *p, struct mr3_tenant *mt)
{
	assert(mt->backlogged);
	if (mt->indebted)
		wheel_remove(level_of(p, mt), mt);
	else
		list_remove(&mt->link);
	mt->backlogged = 0;
	mt->in_turn = 0;
	level_of(p, mt)->backlogged--;
}

/* End the tenant's turn: Figure 8, lines 27 to 31 */
static void
end_turn(struct rel *rel, struct mr3 *p, struct rel_tenant *t)
{
	struct mr3_tenant *mt = account_of(t);
	int64_t s;

	if (t->waiting == 0 && !(rel->options & REL_OPT_KEEP_DEBT))
		set_excess(p, mt, 0);
	s = excess(p, mt);
	if (rel->options & REL_OPT_CAP)
		s = least(s, QUANTUM_MAX);
	if (s > p->s_max)
		p->s_max = s;
	if (t->waiting == 0) {
		leave(p, mt);
	} else {
		list_remove(&mt->link);
		mt->in_turn = 0;
		place(rel, mt);
	}
}

static void
move(struct rel_link *to, struct mr3_tenant *mt)
{
	list_remove(&mt->link);
	list_append(to, &mt->link);
}

/* Return the tenant that has the turn and may release, or NULL */
static struct rel_tenant *
next_turn(struct rel *rel, struct mr3 *p)
{
	struct mr3_tenant *mt;
	struct rel_link *l;

	for (;;) {
		l = list_empty(&p->back) ? &p->this : &p->back;
		if (list_empty(l)) {
			if (!start_round(rel, p))
				return (NULL);
			continue;
		}
		mt = LIST_OF(l->next, struct mr3_tenant, link);
		if (excess(p, mt) < 0) {
			if (!(REL_MASK(mt->dominant) & p->closed))
				return (mt->tenant);
			move(&p->held, mt);
		} else if (!list_empty(&p->held) && (mt->group & p->closed))
			move(&p->parked, mt);
		else
			end_turn(rel, p, mt->tenant);
	}
}

/*--------------------------------------------------------------------
 * Accounts
 */

/* A += ns / w */
static void
add_cost(struct mr3 *p, struct mr3_tenant *mt, int64_t ns, uint32_t weight)
{
	set_excess(p, mt, excess(p, mt) +
	    within(virtual_ns(&mt->remainder, ns, weight), EXCESS_MAX));
}

/* Start a busy period.  Nothing waited or ran, so all debt and credit is 0. */
static void
new_period(struct mr3 *p)
{
	unsigned g;

	p->period++;
	for (g = 0; g < LEVELS; g++)
		p->level[g].began = p->level[g].g;
}

/* Forget debt and credit of an earlier busy period */
static void
enter_busy_period(struct mr3 *p, struct mr3_tenant *mt)
{
	if (mt->period == p->period)
		return;
	mt->period = p->period;
	mt->a = level_of(p, mt)->began;
}

static unsigned
group(const struct rel *rel, const struct rel_tenant *t)
{
	unsigned r, g;

	if (!(rel->options & REL_OPT_CLOSED))
		return (0);
	g = REL_MASK(t->dominant);
	for (r = 0; r < REL__RESOURCES; r++)
		if (t->estimate[r] > t->estimate[t->dominant] / REL_USES)
			g |= REL_MASK(r);
	return (g);
}

/*--------------------------------------------------------------------
 * Synchronisation (paper, section 4.3).  A turn begins only after a request of
 * the tenant's turn before has begun service on net.  No tenant overtakes this
 * one meanwhile, so cores idle.
 */

/* Must the tenant's turn wait?  No request of its last turn has reached net. */
static int
unsent(const struct rel *rel, const struct mr3_tenant *mt)
{
	return (rel->policy == &rel_policy_mr3 && !mt->in_turn &&
	    mt->sent != mt->turn);
}

static void
note_turn(struct mr3_tenant *mt, struct rel_node *n)
{
	if (!mt->in_turn)
		mt->turn++;
	mt->in_turn = 1;
	n->turn = mt->turn;
}

static void
mr3_progress(struct rel *rel, struct rel_node *n, enum rel_resource r)
{
	struct mr3_tenant *mt = account_of(rel_top(n));

	(void)rel;
	if (r == REL_NET && (int32_t)(n->turn - mt->sent) > 0)
		mt->sent = n->turn;
}

/*--------------------------------------------------------------------
 * The calls
 */

static void
mr3_init(struct rel *rel)
{
	struct mr3 *p = state(rel);
	unsigned g, b;

	list_init(&p->back);
	list_init(&p->this);
	list_init(&p->next);
	list_init(&p->held);
	list_init(&p->parked);
	for (g = 0; g < LEVELS; g++)
		for (b = 0; b < BUCKETS; b++)
			list_init(&p->level[g].wheel[b]);
}

static void
mr3_tenant_init(struct rel *rel, struct rel_tenant *t)
{
	struct mr3_tenant *mt = account_of(t);

	mt->tenant = t;
	mt->period = state(rel)->period;
	list_init(&mt->link);
	mt->dominant = (uint8_t)t->dominant;
	mt->group = (uint8_t)group(rel, t);
	set_excess(state(rel), mt, 0);
}

/*
 * Let a tenant that returns with credit go first.  0: the tenant has no credit,
 * or the policy is `mr3`.
 *
 * The tenant keeps at most the credit of one round of the busy tenants.  So a
 * tenant that asks for less than its share does not wait for the turns of
 * tenants that ask for more.  Not with synchronisation: there a tenant that
 * goes first but may not begin its turn would stop all others.
 */
static int
rejoin(struct rel *rel, struct mr3 *p, struct mr3_tenant *mt)
{
	int64_t s = excess(p, mt);

	if (!(rel->options & REL_OPT_REJOIN) || rel->policy == &rel_policy_mr3)
		return (0);
	if (s >= 0)
		return (0);
	set_excess(p, mt, most(s, -quantum(rel, p, 0)));
	list_append(&p->back, &mt->link);
	return (1);
}

static void
mr3_enqueue(struct rel *rel, struct rel_tenant *t, struct rel_node *n)
{
	struct mr3 *p = state(rel);
	struct mr3_tenant *mt = account_of(t);

	(void)n;
	if (mt->backlogged)
		return;
	if (rel->waiting == 1 && rel->running == 0)
		new_period(p);
	enter_busy_period(p, mt);
	mt->backlogged = 1;
	level_of(p, mt)->backlogged++;
	if (rejoin(rel, p, mt))
		return;
	if (excess(p, mt) < 0 || !(rel->options & REL_OPT_KEEP_DEBT))
		set_excess(p, mt, 0);
	place(rel, mt);
}

static enum rel_answer
mr3_dequeue(struct rel *rel, int64_t now, unsigned slot, unsigned closed,
    struct rel_node **node, int64_t *when)
{
	struct mr3 *p = state(rel);
	struct rel_tenant *t;

	(void)now;
	(void)when;
	if (closed != p->closed)
		thaw(p);
	p->closed = closed;
	t = next_turn(rel, p);
	if (t == NULL || unsent(rel, account_of(t)))
		return (REL_NOT_YET);
	*node = rel_first(t);
	rel_release(rel, *node, slot);
	note_turn(account_of(t), *node);
	add_cost(p, account_of(t), t->cost, t->weight);
	if (t->waiting == 0 || excess(p, account_of(t)) >= 0)
		end_turn(rel, p, t);
	return (REL_RELEASED);
}

static void
mr3_cancel(struct rel *rel, struct rel_tenant *t, struct rel_node *n)
{
	(void)n;
	if (t->waiting == 0)
		leave(state(rel), account_of(t));
}

static void
mr3_charge(struct rel *rel, struct rel_tenant *t, const struct rel_node *n,
    int64_t ns, uint32_t scale)
{
	struct mr3_tenant *mt = account_of(t);

	(void)n;
	enter_busy_period(state(rel), mt);
	add_cost(state(rel), mt, settled_ns(&mt->remainder, ns, scale),
	    t->weight);
	replace(rel, mt);
}

static void
mr3_estimate(struct rel *rel, struct rel_tenant *t)
{
	struct mr3 *p = state(rel);
	struct mr3_tenant *mt = account_of(t);
	unsigned g = group(rel, t);
	int64_t s;
	int indebted = mt->indebted;

	if (g == mt->group && t->dominant == mt->dominant)
		return;
	if (indebted)
		wheel_remove(level_of(p, mt), mt);
	/* The level still has to catch up by its missed ns.  A group changes
	 * its level whenever a resource opens or closes, so the missed ns must
	 * not count twice.  A tenant changes its level with its own requests:
	 * there gains and losses are equal. */
	s = excess(p, mt) - (t->is_group ? level_of(p, mt)->missed : 0);
	level_of(p, mt)->backlogged -= mt->backlogged;
	mt->group = (uint8_t)g;
	mt->dominant = (uint8_t)t->dominant;
	level_of(p, mt)->backlogged += mt->backlogged;
	set_excess(p, mt, s + (t->is_group ? level_of(p, mt)->missed : 0));
	if (indebted)
		place(rel, mt);
	thaw(p);
}

static void
mr3_weight(struct rel *rel, struct rel_tenant *t, uint32_t before)
{
	struct mr3 *p = state(rel);
	struct mr3_tenant *mt = account_of(t);
	__int128 s;

	s = (__int128)excess(p, mt) * before / t->weight;
	set_excess(p, mt, within(s, EXCESS_MAX));
	rescale_remainder(&mt->remainder, before, t->weight);
	replace(rel, mt);
}

static int64_t
mr3_account(const struct rel *rel, const struct rel_tenant *t)
{
	const struct mr3 *p = (const void *)rel->state;
	const struct mr3_tenant *mt = (const void *)t->policy;

	if (mt->period != p->period || rel->waiting + rel->running == 0)
		return (0);
	return (mt->a - p->level[mt->group].g);
}

#define MR3_CALLS						\
	.state_size =	sizeof(struct mr3),			\
	.tenant_size =	sizeof(struct mr3_tenant),		\
	.init =		mr3_init,				\
	.tenant_init =	mr3_tenant_init,			\
	.enqueue =	mr3_enqueue,				\
	.dequeue =	mr3_dequeue,				\
	.cancel =	mr3_cancel,				\
	.charge =	mr3_charge,				\
	.estimate =	mr3_estimate,				\
	.weight =	mr3_weight,				\
	.account =	mr3_account

const struct rel_policy rel_policy_mr3rs = {
	.name =		"mr3-rs",
	.summary =	"multi-resource round robin that settles the cost of "
			"each request",
	MR3_CALLS
};

const struct rel_policy rel_policy_mr3 = {
	.name =		"mr3",
	.summary =	"mr3-rs with end-to-end synchronisation: leaves cores "
			"idle",
	.progress =	mr3_progress,
	MR3_CALLS
};
