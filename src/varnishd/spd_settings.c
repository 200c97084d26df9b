/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * What the map gives a tenant: weight, limits, group, times, and more.
 *
 * A tenant that the map names has a record that is pinned: it is never evicted.
 * If each Host of a
 * domain is a tenant (MAP_IsEach()), the record is made by the first request,
 * and gets its settings then.  It is not pinned: when it is idle, it makes room
 * for others.
 *
 * The lock guards all.
 */

#include "config.h"

#include <stdlib.h>

#include "spd.h"
#include "spd_hostmap.h"

static const struct spd_map *giving;	/* new tenants get settings from it;
					 * NULL: from none */

/* Return a part of 0 to 1 in units of REL_PART_ONE.  A part above 0 stays above
 * 0, since 0 means: no limit, no reservation. */
uint32_t
spd_map_part(double part)
{
	return (part > 0 ?
	    (uint32_t)vmax(1., part * REL_PART_ONE + .5) : 0);
}

/* Return a weight in units of REL_WEIGHT_ONE, at least 1. */
uint32_t
spd_map_weight(double weight)
{

	return ((uint32_t)vmax(1., weight * REL_WEIGHT_ONE + .5));
}

/* A value of the tenant, or that of its group if it has none (0, NULL). */
#define MAP_OF(mt, field)						\
	((mt)->field || (mt)->group == NULL ? (mt)->field :		\
	(mt)->group->field)

#define MAP_NS(mt, which)	((int64_t)(MAP_OF(mt, time[which]) * 1e9))

/* Return the target of a tenant, ns, 0: none. */
int64_t
spd_map_target(const struct map_tenant *mt)
{

	return (MAP_NS(mt, MAP_TARGET));
}

/* Give a tenant what the map declares for it.  Its group has a record.  Caller
 * holds spd_lock(). */
void
spd_settings(struct spd_tenant *t, const struct spd_map *m,
    const struct map_tenant *mt)
{
	struct spd_tenant *group;

	SPD_LOCKED();
	t->map = m;
	t->by_hand = 0;
	REL_SetWeight(spd_rel, t->rel, spd_map_weight(mt->weight));
	REL_SetLimits(spd_rel, t->rel, spd_map_part(mt->reservation),
	    spd_map_part(mt->limit), METER_Now());
	t->queue_limit = mt->queue_limit;
	group = mt->group == NULL ? NULL : mt->group->user;
	if (group != t->group)
		spd_dry_forget(t);
	t->group = group;
	t->admit_all = mt->admit_all;
	t->queue_timeout = MAP_NS(mt, MAP_QUEUE_TIMEOUT);
	t->fetch_target = MAP_NS(mt, MAP_FETCH_TARGET);
	t->target = spd_map_target(mt);
	PAGE_Unref(t->refusal);
	t->refusal = PAGE_Ref(MAP_OF(mt, refusal));
	OWN_Set(spd_owners(), t->owner, mt->weight, mt->memory_reservation,
	    mt->memory_limit, group == NULL ? OWN_NONE : group->owner);
	REL_SetGroup(spd_rel, t->rel, group == NULL ? NULL : group->rel,
	    METER_Now());
}

/* The map gives a tenant nothing any more.  The caller sets the releaser's
 * group: it may be that of new Hosts.  Caller holds spd_lock(). */
void
spd_settings_none(struct spd_tenant *t)
{

	SPD_LOCKED();
	t->map = NULL;
	REL_SetWeight(spd_rel, t->rel, REL_WEIGHT_ONE);
	REL_SetLimits(spd_rel, t->rel, 0, 0, METER_Now());
	t->queue_limit = 0;
	t->by_hand = 0;
	spd_dry_forget(t);
	t->group = NULL;
	t->admit_all = 0;
	t->queue_timeout = t->fetch_target = t->target = 0;
	PAGE_Unref(t->refusal);
	t->refusal = NULL;
	OWN_Set(spd_owners(), t->owner, 1, 0, 0, OWN_NONE);
}

/* From now on new tenants get their settings from this map, or NULL.  Caller
 * holds spd_lock(). */
void
spd_settings_from(const struct spd_map *m)
{

	SPD_LOCKED();
	giving = m;
}

/* If the tenant is a Host of its own by a pattern of the map, give it what is
 * declared, and return 1.  Return 0 if it is not, or if its group has no record.
 * Caller holds spd_lock(). */
int
spd_settings_each(struct spd_tenant *t)
{
	const struct ten_record *r = TEN_OfData(t);
	const struct map_tenant *mt;

	SPD_LOCKED();
	if (giving == NULL || r->name[0] == '(')
		return (0);
	mt = MAP_Each(giving->map, r->name, r->namelen);
	if (mt == NULL || mt->group->user == NULL)
		return (0);
	spd_settings(t, giving, mt);
	return (1);
}
