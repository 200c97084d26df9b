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

#include "spd.h"

#define SPD_DRY_WINDOW	100000000	/* ns */

static struct dry dry;
static int64_t oldest, oldest_before;	/* ns, when the oldest request of this
					 * window came, and of the last one */
static int64_t window;			/* ns, its begin */

/* Set W, the number of slots that `on` has. */
void
spd_dry_slots(unsigned n)
{

	SPD_LOCKED();
	dry.slots = n;
	dry.backlog = NIC_BACKLOG;
}

/* Return what the tenant's next request costs, ns, and where it costs most. */
static double
spd_dry_cost(const struct spd_tenant *t, enum rel_resource *resource)
{

	*resource = t->estimate[REL_NET] > t->estimate[REL_CPU] ?
	    REL_NET : REL_CPU;
	return ((double)vmax_t(int64_t, 1, t->estimate[*resource]));
}

/* A request is parsed that came at `came`.  Return a time from which on
 * requests of any tenant may still wait to be parsed. */
static int64_t
spd_dry_behind(int64_t came, int64_t now)
{

	if (now - window > SPD_DRY_WINDOW) {
		oldest_before = oldest;
		oldest = came;
		window = now;
	}
	oldest = vmin(oldest, came);
	return (vmin(oldest, oldest_before));
}

/* A request of the tenant is parsed that came at `came`, in `observe`: bring
 * t->dry up to date. */
void
spd_dry_look(struct spd_tenant *t, int64_t came, int64_t now)
{
	struct spd_dry *d = &t->dry;
	enum rel_resource resource;
	double cost;

	SPD_LOCKED();
	DRY_Advance(&dry, &d->queue, came);
	DRY_AdvanceSome(&dry, spd_dry_behind(came, now));
	cost = spd_dry_cost(t, &resource);
	d->view = DRY_View(&dry, &d->queue, cost);
	d->all = DRY_Waiting(&dry, NULL, cost);
	d->group = t->group == NULL ? d->view.waiting :
	    DRY_Waiting(&dry, &t->group->dry.members, cost);
}

/* Return what the map gives to a tenant or group. */
static struct dry_right
spd_dry_right(const struct spd_tenant *t)
{
	uint32_t limit = REL_Limit(t->rel);

	return ((struct dry_right){ .weight = REL_Weight(t->rel),
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

/* Return how many requests of the tenant would wait, at its last request. */
unsigned
spd_dry_waiting(const struct spd_tenant *t)
{

	SPD_LOCKED();
	return (spd_set.mode == SPD_OBSERVE ?
	    (unsigned)ceil(t->dry.view.waiting) : 0);
}

/* The same, of its group, or of the tenant if it has none */
unsigned
spd_dry_group(const struct spd_tenant *t)
{

	SPD_LOCKED();
	return (spd_set.mode == SPD_OBSERVE ? (unsigned)ceil(t->dry.group) : 0);
}

/* The same, of all tenants */
unsigned
spd_dry_all(const struct spd_tenant *t)
{

	SPD_LOCKED();
	return (spd_set.mode == SPD_OBSERVE ? (unsigned)ceil(t->dry.all) : 0);
}

/* The tenant ends, or leaves its group. */
void
spd_dry_forget(struct spd_tenant *t)
{

	SPD_LOCKED();
	DRY_Forget(&dry, &t->dry.queue);
}
