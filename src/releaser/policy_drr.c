/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Deficit round robin (Shreedhar and Varghese, SIGCOMM 1995; named in 2DFQ,
 * section 2).  A turn adds a quantum times the weight to the tenant's deficit,
 * and releases while the deficit covers the next request.  A tenant that stays
 * backlogged keeps the rest.
 *
 * The quantum of a round is the largest k/w met in the round before.  So with
 * known costs each turn releases a request: O(1).  Settlement may leave a
 * tenant in debt.  After a round that released nothing, the quantum is the
 * least amount that a tenant lacked.
 */

#include <assert.h>

#include "policy.h"
#include "virtual.h"

#define DEFICIT_MAX	(INT64_C(1) << 58)	/* virtual ns */

struct drr {
	struct rel_link		this;		/* to come in this round */
	struct rel_link		next;		/* in the next round */
	struct rel_link		held;		/* like this, dominant closed */
	int64_t			quantum;	/* virtual ns, at least 1 */
	int64_t			largest;	/* k/w met in this round */
	int64_t			lacking;	/* least k/w - deficit met;
						 * 0: a turn released;
						 * INT64_MAX: no turn */
	uint64_t		period;		/* busy period */
	unsigned		closed;
};

struct drr_tenant {
	struct rel_link		link;
	struct rel_tenant	*tenant;
	enum rel_resource	dominant;
	int64_t			deficit;	/* virtual ns */
	uint64_t		period;
	struct remainder		remainder;		/* of deficit */
	uint8_t			in_turn;	/* got its quantum */
};

static struct drr *
state(struct rel *rel)
{
	return ((struct drr *)(void *)rel->state);
}

static struct drr_tenant *
account_of(struct rel_tenant *t)
{
	return ((struct drr_tenant *)(void *)t->policy);
}

/* deficit -= ns / w.  A settlement may be negative. */
static void
pay(struct drr_tenant *dt, int64_t ns, uint32_t weight)
{
	dt->deficit = within((__int128)dt->deficit -
	    virtual_ns(&dt->remainder, ns, weight), DEFICIT_MAX);
}

/* Return k/w of the tenant's next request, virtual ns */
static int64_t
next_cost(const struct rel_tenant *t)
{
	return (t->cost * REL_WEIGHT_ONE / t->weight);
}

/* Forget debt and deficit of an earlier busy period */
static void
enter_busy_period(const struct drr *p, struct drr_tenant *dt)
{
	if (dt->period == p->period)
		return;
	dt->period = p->period;
	dt->deficit = 0;
}

/*--------------------------------------------------------------------*/

static void
drr_init(struct rel *rel)
{
	struct drr *p = state(rel);

	list_init(&p->this);
	list_init(&p->next);
	list_init(&p->held);
	p->largest = 1;
}

static void
drr_tenant_init(struct rel *rel, struct rel_tenant *t)
{
	struct drr_tenant *dt = account_of(t);

	dt->tenant = t;
	dt->dominant = t->dominant;
	dt->period = state(rel)->period;
	list_init(&dt->link);
}

static void
drr_enqueue(struct rel *rel, struct rel_tenant *t, struct rel_node *n)
{
	struct drr *p = state(rel);
	struct drr_tenant *dt = account_of(t);

	(void)n;
	if (t->waiting > 1)
		return;
	if (rel->waiting == 1 && rel->running == 0)
		p->period++;
	enter_busy_period(p, dt);
	list_append(&p->next, &dt->link);
}

static void
thaw(struct drr *p)
{
	list_splice(p->this.next, &p->held);
}

/* Start a round.  0: no tenant waits for it. */
static int
start_round(struct drr *p)
{
	if (list_empty(&p->next))
		return (0);
	/* INT64_MAX: all tenants were held, so nothing is known of their
	 * lack */
	p->quantum = p->lacking > 0 && p->lacking < INT64_MAX ?
	    p->lacking : p->largest;
	p->largest = 1;
	p->lacking = INT64_MAX;
	list_splice(&p->this, &p->next);
	return (1);
}

static void
end_turn(struct drr *p, struct drr_tenant *dt)
{
	list_remove(&dt->link);
	dt->in_turn = 0;
	if (dt->tenant->waiting > 0)
		list_append(&p->next, &dt->link);
	else if (dt->deficit > 0)
		dt->deficit = 0;
}

/* Return the tenant that has the turn and may release, or NULL */
static struct drr_tenant *
next_turn(struct drr *p)
{
	struct drr_tenant *dt;
	int64_t cost;

	for (;;) {
		if (list_empty(&p->this)) {
			if (!start_round(p))
				return (NULL);
			continue;
		}
		dt = LIST_OF(p->this.next, struct drr_tenant, link);
		if (REL_MASK(dt->tenant->dominant) & p->closed) {
			list_remove(&dt->link);
			list_append(&p->held, &dt->link);
			continue;
		}
		if (!dt->in_turn)
			dt->deficit = within((__int128)dt->deficit +
			    p->quantum, DEFICIT_MAX);
		dt->in_turn = 1;
		cost = next_cost(dt->tenant);
		if (cost > p->largest)
			p->largest = cost;
		if (dt->deficit >= cost)
			return (dt);
		if (cost - dt->deficit < p->lacking)
			p->lacking = cost - dt->deficit;
		end_turn(p, dt);
	}
}

static enum rel_answer
drr_dequeue(struct rel *rel, int64_t now, unsigned slot, unsigned closed,
    struct rel_node **node, int64_t *when)
{
	struct drr *p = state(rel);
	struct drr_tenant *dt;

	(void)now;
	(void)when;
	if (closed != p->closed)
		thaw(p);
	p->closed = closed;
	dt = next_turn(p);
	if (dt == NULL)
		return (REL_NOT_YET);
	*node = rel_first(dt->tenant);
	rel_release(rel, *node, slot);
	pay(dt, dt->tenant->cost, dt->tenant->weight);
	p->lacking = 0;
	if (dt->tenant->waiting == 0)
		end_turn(p, dt);
	return (REL_RELEASED);
}

static void
drr_cancel(struct rel *rel, struct rel_tenant *t, struct rel_node *n)
{
	(void)n;
	if (t->waiting == 0)
		end_turn(state(rel), account_of(t));
}

static void
drr_charge(struct rel *rel, struct rel_tenant *t, const struct rel_node *n,
    int64_t ns, uint32_t scale)
{
	struct drr_tenant *dt = account_of(t);

	(void)n;
	enter_busy_period(state(rel), dt);
	pay(dt, settled_ns(&dt->remainder, ns, scale), t->weight);
}

static void
drr_estimate(struct rel *rel, struct rel_tenant *t)
{
	struct drr_tenant *dt = account_of(t);

	if (t->dominant == dt->dominant)
		return;
	dt->dominant = t->dominant;
	thaw(state(rel));
}

static void
drr_weight(struct rel *rel, struct rel_tenant *t, uint32_t before)
{
	struct drr_tenant *dt = account_of(t);

	(void)rel;
	dt->deficit = within((__int128)dt->deficit * before / t->weight,
	    DEFICIT_MAX);
	rescale_remainder(&dt->remainder, before, t->weight);
}

static int64_t
drr_account(const struct rel *rel, const struct rel_tenant *t)
{
	const struct drr *p = (const void *)rel->state;
	const struct drr_tenant *dt = (const void *)t->policy;

	if (dt->period != p->period || rel->waiting + rel->running == 0)
		return (0);
	return (-dt->deficit);
}

const struct rel_policy rel_policy_drr = {
	.name =		"drr",
	.summary =	"deficit round robin: each tenant in turn, for one "
			"quantum of cost",
	.state_size =	sizeof(struct drr),
	.tenant_size =	sizeof(struct drr_tenant),
	.init =		drr_init,
	.tenant_init =	drr_tenant_init,
	.enqueue =	drr_enqueue,
	.dequeue =	drr_dequeue,
	.cancel =	drr_cancel,
	.charge =	drr_charge,
	.estimate =	drr_estimate,
	.weight =	drr_weight,
	.account =	drr_account,
};
