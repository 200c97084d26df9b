/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * What `on` would do, while sandpaper is `observe`: how many requests of a
 * tenant would wait now, and for how long.
 *
 * In `observe` a request runs at once.  The dry run (overload/dryrun.h) adds up
 * the work of the requests, and takes away what would have been done.  A
 * request that would be refused adds nothing.  In the other modes its answers
 * are 0.
 *
 * A request counts from when it came.  On a busy machine connections wait to be
 * parsed, since nothing is refused.  With `on` they would be parsed soon.
 *
 * All functions are called with spd_lock() held.
 */

#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "spd.h"

#define SPD_LOOKS	32U		/* at other tenants, for a request */

static struct dry dry;
static unsigned run;			/* a new one begins with each change of
					 * the mode */

/* Set W, the number of slots that `on` has.  changed: 1: the mode changes, and
 * what is known does not count any more. */
void
spd_dry_params(unsigned slots, int changed)
{

	SPD_LOCKED();
	dry.slots = slots;
	dry.backlog = NIC_BACKLOG;
	run += changed != 0;
}

/* Return what the tenant's next request costs, ns, and where it costs most. */
static double
spd_dry_cost(const struct spd_tenant *t, enum rel_resource *resource)
{

	*resource = t->estimate[REL_NET] > t->estimate[REL_CPU] ?
	    REL_NET : REL_CPU;
	return ((double)vmax_t(int64_t, 1, t->estimate[*resource]));
}

/*
 * Look at other tenants.  The time of each goes on to when its next request
 * came, of those that wait to be parsed; unknown: when the first of those came
 * whose tenant is not known.  Usually that is now.
 */
static void
spd_dry_others(int64_t unknown)
{
	struct dry_queue *q;
	struct spd_tenant *t;
	struct spd_conn *c;
	unsigned u, left = DRY_LOOKS;

	for (u = 0; u < SPD_LOOKS && left > 0; u++) {
		q = DRY_Next(&dry);
		if (q == NULL)
			return;
		t = (void *)((char *)q - offsetof(struct spd_tenant,
		    dry.queue));
		CHECK_OBJ_NOTNULL(t, SPD_TENANT_MAGIC);
		c = VTAILQ_FIRST(&t->ready);
		DRY_Advance(&dry, q, c == NULL ? unknown :
		    vmin(c->came, unknown));
		left -= q->work > 0;
	}
}

/* Return a number of requests that would wait, 0 if the mode is another one. */
static unsigned
spd_dry_count(double waiting)
{

	return (spd_set.mode == SPD_OBSERVE ?
	    (unsigned)ceil(vmin(waiting, 1e9)) : 0);
}

/* Return how many requests of the tenant would wait, at its last request. */
unsigned
spd_dry_waiting(const struct spd_tenant *t)
{

	SPD_LOCKED();
	return (spd_dry_count(t->dry.view.waiting));
}

/*
 * A request of the tenant is parsed, in `observe`.  Bring t->dry up to date,
 * and return when it came: not before the tenant's last one.
 */
int64_t
spd_dry_look(struct spd_tenant *t, int64_t came, int64_t unknown)
{
	struct spd_dry *d = &t->dry;
	enum rel_resource resource;
	double cost;

	SPD_LOCKED();
	if (d->run != run) {
		DRY_Forget(&dry, &d->queue);
		memset(&d->view, 0, sizeof d->view);
		d->run = run;
		d->came = d->replayed = came;
	}
	d->before = spd_dry_waiting(t);
	d->each = d->view.waiting > 0 ? d->view.wait / d->view.waiting : 0;
	d->came = vmax(d->came, came);
	DRY_Advance(&dry, &d->queue, d->came);
	spd_dry_others(unknown);
	cost = spd_dry_cost(t, &resource);
	d->view = DRY_View(&dry, &d->queue, cost);
	d->all = DRY_Waiting(&dry, NULL, cost);
	d->group = t->group == NULL ? d->view.waiting :
	    DRY_Waiting(&dry, &t->group->dry.members, cost);
	d->busy = DRY_Busy(&dry);
	return (d->came);
}

/* Return what the map gives to a tenant or group. */
static struct dry_right
spd_dry_right(const struct spd_tenant *t)
{
	uint32_t limit = REL_Limit(t->rel);

	return ((struct dry_right){ .weight = REL_Weight(t->rel),
	    .reservation = (double)REL_Reservation(t->rel) / REL_PART_ONE,
	    .limit = limit == 0 ? 1 : (double)limit / REL_PART_ONE });
}

/* The request would not be refused: add its work. */
void
spd_dry_add(struct spd_tenant *t, int64_t came)
{
	struct spd_tenant *group = t->group;
	enum rel_resource resource;
	double cost;

	SPD_LOCKED();
	cost = spd_dry_cost(t, &resource);
	DRY_Add(&dry, &t->dry.queue, came, resource, cost,
	    spd_dry_right(t), group == NULL ? NULL : &group->dry.members,
	    spd_dry_right(group == NULL ? t : group));
	t->dry.view = DRY_View(&dry, &t->dry.queue, cost);
}

/* The same, of its group, or of the tenant if it has none */
unsigned
spd_dry_group(const struct spd_tenant *t)
{

	SPD_LOCKED();
	return (spd_dry_count(t->dry.group));
}

/* The same, of all tenants */
unsigned
spd_dry_all(const struct spd_tenant *t)
{

	SPD_LOCKED();
	return (spd_dry_count(t->dry.all));
}

/* The tenant ends, or leaves its group. */
void
spd_dry_forget(struct spd_tenant *t)
{

	SPD_LOCKED();
	DRY_Forget(&dry, &t->dry.queue);
}
