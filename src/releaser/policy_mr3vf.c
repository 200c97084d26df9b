/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * MR3 with virtual flows (paper, section 6.3), an alternative to `mr3-rs`.
 *
 * A tenant has alpha flows.  Group f has flow f of each tenant.  The groups
 * have rounds in turn, each with MR3's end-to-end synchronisation (section
 * 4.3).  So alpha turns of a tenant may be on their way to net, not one.  Each
 * flow has an excess s, as in Figure 8.  In a round of its group
 *
 *	s -= u + 1, u: the largest s at the end of the group's last round
 *	while s < 0 and a request waits: release it, s += k / w
 *
 * A turn begins only after a request of the flow's turn before has begun
 * service on net.  No tenant overtakes it meanwhile.  A request belongs to the
 * flow that releases it.  MR3's bound holds within a group, so the bound
 * between two tenants is alpha times that.  O(1), and O(alpha) when a tenant
 * becomes backlogged.  alpha = 1 is `mr3` without U, long rounds and levels.
 */

#include <string.h>

#include "policy.h"
#include "virtual.h"

#define EXCESS_MAX	(INT64_C(1) << 58)	/* virtual ns */

struct vf {
	struct rel_link		this;		/* to come in this round */
	struct rel_link		next;		/* in the next group's round */
	struct rel_link		held;		/* like this, dominant closed */
	unsigned		group;		/* of this round */
	int64_t			quantum;	/* u + 1 of this round */
	int64_t			s_max[REL_FLOWS_MAX];	/* by group */
	uint64_t		period;		/* busy period */
	unsigned		closed;
};

struct vf_tenant {
	struct rel_link		link;
	struct rel_tenant	*tenant;
	enum rel_resource	dominant;
	int64_t			s[REL_FLOWS_MAX];	/* virtual ns */
	uint32_t		unsent[REL_FLOWS_MAX];	/* turn not on net; 0 */
	uint32_t		turns;
	uint64_t		period;
	struct remainder		remainder;		/* of s */
	uint8_t			flow;		/* of this or last turn */
	uint8_t			in_turn;	/* got its quantum */
};

static struct vf *
state(struct rel *rel)
{
	return ((struct vf *)(void *)rel->state);
}

static struct vf_tenant *
account_of(struct rel_tenant *t)
{
	return ((struct vf_tenant *)(void *)t->policy);
}

static void
add(struct vf_tenant *ft, unsigned flow, __int128 s)
{
	ft->s[flow] = within(ft->s[flow] + s, EXCESS_MAX);
}

/* Forget debt of an earlier busy period */
static void
enter_busy_period(const struct vf *p, struct vf_tenant *ft)
{
	if (ft->period == p->period)
		return;
	ft->period = p->period;
	memset(ft->s, 0, sizeof ft->s);
}

/*--------------------------------------------------------------------
 * Turns.  The number of a turn contains its flow.
 */

static uint32_t
new_turn(struct vf_tenant *ft)
{
	return (++ft->turns * REL_FLOWS_MAX + ft->flow);
}

static unsigned
flow_of(const struct rel_node *n)
{
	return (n->turn % REL_FLOWS_MAX);
}

static void
thaw(struct vf *p)
{
	list_splice(p->this.next, &p->held);
}

/* Start the round of the next group.  0: no tenant waits for it. */
static int
start_round(const struct rel *rel, struct vf *p)
{
	if (list_empty(&p->next))
		return (0);
	p->group = (p->group + 1) % rel->flows;
	p->quantum = p->s_max[p->group] + 1;
	p->s_max[p->group] = 0;
	list_splice(&p->this, &p->next);
	return (1);
}

static void
end_turn(const struct rel *rel, struct vf *p, struct vf_tenant *ft)
{
	int64_t *s = &ft->s[ft->flow];

	list_remove(&ft->link);
	ft->in_turn = 0;
	if (ft->tenant->waiting > 0)
		list_append(&p->next, &ft->link);
	else if (!(rel->options & REL_OPT_KEEP_DEBT))
		*s = 0;
	if (*s > p->s_max[ft->flow])
		p->s_max[ft->flow] = *s;
}

/* Begin the tenant's turn with its quantum.  0: the turn has to wait, because
 * the flow's last turn is not on net and this one would release. */
static int
begin_turn(struct vf *p, struct vf_tenant *ft)
{
	unsigned f = p->group;

	if (ft->s[f] < p->quantum && ft->unsent[f] != 0)
		return (0);
	ft->in_turn = 1;
	ft->flow = (uint8_t)f;
	add(ft, f, -(__int128)p->quantum);
	if (ft->s[f] < 0)
		ft->unsent[f] = new_turn(ft);
	return (1);
}

/* Return the tenant that has the turn and may release, or NULL */
static struct vf_tenant *
next_turn(const struct rel *rel, struct vf *p)
{
	struct vf_tenant *ft;

	for (;;) {
		if (list_empty(&p->this)) {
			if (!start_round(rel, p))
				return (NULL);
			continue;
		}
		ft = LIST_OF(p->this.next, struct vf_tenant, link);
		if (REL_MASK(ft->tenant->dominant) & p->closed) {
			list_remove(&ft->link);
			list_append(&p->held, &ft->link);
			continue;
		}
		if (!ft->in_turn && !begin_turn(p, ft))
			return (NULL);
		if (ft->s[ft->flow] < 0)
			return (ft);
		end_turn(rel, p, ft);
	}
}

/*--------------------------------------------------------------------
 * The calls
 */

static void
vf_init(struct rel *rel)
{
	struct vf *p = state(rel);

	list_init(&p->this);
	list_init(&p->next);
	list_init(&p->held);
	p->group = rel->flows - 1;
}

static void
vf_tenant_init(struct rel *rel, struct rel_tenant *t)
{
	struct vf_tenant *ft = account_of(t);

	ft->tenant = t;
	ft->dominant = t->dominant;
	ft->period = state(rel)->period;
	list_init(&ft->link);
}

/* With REL_OPT_KEEP_DEBT a returning tenant keeps its debt, and never credit */
static void
vf_enqueue(struct rel *rel, struct rel_tenant *t, struct rel_node *n)
{
	struct vf *p = state(rel);
	struct vf_tenant *ft = account_of(t);
	unsigned f;

	(void)n;
	if (t->waiting > 1)
		return;
	if (rel->waiting == 1 && rel->running == 0)
		p->period++;
	enter_busy_period(p, ft);
	for (f = 0; f < rel->flows; f++)
		if (ft->s[f] < 0 || !(rel->options & REL_OPT_KEEP_DEBT))
			ft->s[f] = 0;
	list_append(&p->next, &ft->link);
}

static enum rel_answer
vf_dequeue(struct rel *rel, int64_t now, unsigned slot, unsigned closed,
    struct rel_node **node, int64_t *when)
{
	struct vf *p = state(rel);
	struct vf_tenant *ft;
	struct rel_tenant *t;

	(void)now;
	(void)when;
	if (closed != p->closed)
		thaw(p);
	p->closed = closed;
	ft = next_turn(rel, p);
	if (ft == NULL)
		return (REL_NOT_YET);
	t = ft->tenant;
	*node = rel_first(t);
	rel_release(rel, *node, slot);
	(*node)->turn = ft->turns * REL_FLOWS_MAX + ft->flow;
	add(ft, ft->flow, virtual_ns(&ft->remainder, t->cost, t->weight));
	if (t->waiting == 0 || ft->s[ft->flow] >= 0)
		end_turn(rel, p, ft);
	return (REL_RELEASED);
}

static void
vf_progress(struct rel *rel, struct rel_node *n, enum rel_resource r)
{
	uint32_t *unsent = &account_of(rel_top(n))->unsent[flow_of(n)];

	(void)rel;
	if (r == REL_NET && *unsent == n->turn)
		*unsent = 0;
}

static void
vf_cancel(struct rel *rel, struct rel_tenant *t, struct rel_node *n)
{
	(void)n;
	(void)rel;
	if (t->waiting > 0)
		return;
	list_remove(&account_of(t)->link);
	account_of(t)->in_turn = 0;
}

/* Return the flow that pays: the one that released the request.  If a
 * reservation did, or without a request: the flow of this or the last turn. */
static unsigned
payer(const struct vf_tenant *ft, const struct rel_node *n)
{
	return (n == NULL || n->reserved ? ft->flow : flow_of(n));
}

static void
vf_charge(struct rel *rel, struct rel_tenant *t, const struct rel_node *n,
    int64_t ns, uint32_t scale)
{
	struct vf_tenant *ft = account_of(t);

	enter_busy_period(state(rel), ft);
	add(ft, payer(ft, n), virtual_ns(&ft->remainder,
	    settled_ns(&ft->remainder, ns, scale), t->weight));
}

static void
vf_estimate(struct rel *rel, struct rel_tenant *t)
{
	struct vf_tenant *ft = account_of(t);

	if (t->dominant == ft->dominant)
		return;
	ft->dominant = t->dominant;
	thaw(state(rel));
}

static void
vf_weight(struct rel *rel, struct rel_tenant *t, uint32_t before)
{
	struct vf_tenant *ft = account_of(t);
	unsigned f;

	for (f = 0; f < rel->flows; f++)
		ft->s[f] = within((__int128)ft->s[f] * before / t->weight,
		    EXCESS_MAX);
	rescale_remainder(&ft->remainder, before, t->weight);
}

/* Return the sum over all flows */
static int64_t
vf_account(const struct rel *rel, const struct rel_tenant *t)
{
	const struct vf *p = (const void *)rel->state;
	const struct vf_tenant *ft = (const void *)t->policy;
	__int128 sum = 0;
	unsigned f;

	if (ft->period != p->period || rel->waiting + rel->running == 0)
		return (0);
	for (f = 0; f < rel->flows; f++)
		sum += ft->s[f];
	return (within(sum, EXCESS_MAX));
}

const struct rel_policy rel_policy_mr3vf = {
	.name =		"mr3-vf",
	.summary =	"mr3 with several virtual flows per tenant",
	.state_size =	sizeof(struct vf),
	.tenant_size =	sizeof(struct vf_tenant),
	.init =		vf_init,
	.tenant_init =	vf_tenant_init,
	.enqueue =	vf_enqueue,
	.dequeue =	vf_dequeue,
	.progress =	vf_progress,
	.cancel =	vf_cancel,
	.charge =	vf_charge,
	.estimate =	vf_estimate,
	.weight =	vf_weight,
	.account =	vf_account,
};
