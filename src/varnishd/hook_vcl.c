/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Hooks of VCL: the active VCL's map gives its tenants weights, limits and
 * groups.  And VCL asks for the numbers of a tenant.
 *
 * The lock guards the tenants' records and map_tenant.user.  Only the CLI's
 * thread changes which map is active.
 */

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "spd.h"
#include "spd_hostmap.h"

/*--------------------------------------------------------------------
 * Pin and unpin a map's tenants
 */

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

/* A value of the tenant, or that of its group if it has none of its own. */
#define MAP_OF(mt, field)						\
	((mt)->field || (mt)->group == NULL ? (mt)->field :		\
	(mt)->group->field)

#define MAP_NS(mt, which)	((int64_t)(MAP_OF(mt, time[which]) * 1e9))

/* Return the tenant's record, made if needed.  NULL: no room.  Caller holds
 * spd_lock(). */
static struct spd_tenant *
map_record(const struct map_tenant *mt)
{
	struct spd_tenant *t;

	t = spd_tenant_check(NULL, mt->name, mt->len);
	return (strcmp(spd_name(t), mt->name) ? NULL : t);
}

/*
 * The same, but try harder to evict an idle tenant: one call looks only at
 * TEN_STEPS records.  If a tenant before this one found no room (`without`),
 * try once.  Caller holds spd_lock(), which this function may drop for a
 * moment.
 */
static struct spd_tenant *
map_room(const struct map_tenant *mt, unsigned without)
{
	unsigned u, n = without > 0 ? 0 : TEN_Count(spd_tenants);
	struct spd_tenant *t;

	t = map_record(mt);
	for (u = 0; t == NULL && u < n; u += TEN_STEPS) {
		spd_unlock();
		spd_lock();
		t = map_record(mt);
	}
	return (t);
}

/*
 * Pin a record for each of the map's tenants, and set its weight, limits and
 * group.  Returns how many tenants found no room for a record.
 */
static unsigned
map_pin(const struct spd_map *m)
{
	struct map_tenant *mt;
	struct spd_tenant *t, *group;
	unsigned step = 0, without = 0;
	int64_t least = 0;

	spd_lock();
	if (m == NULL) {
		spd_set_least_target(0);
		spd_unlock();
		return (0);
	}
	for (mt = m->map->first; mt != NULL; mt = mt->next) {
		spd_pause(step++);
		mt->user = t = map_room(mt, without);
		if (t == NULL) {
			without++;
			continue;
		}
		TEN_Pin(spd_tenants, TEN_OfData(t), 1);
		t->map = m;
		t->by_hand = 0;
		REL_SetWeight(spd_rel, t->rel, spd_map_weight(mt->weight));
		REL_SetLimits(spd_rel, t->rel, spd_map_part(mt->reservation),
		    spd_map_part(mt->limit), METER_Now());
		t->queue_limit = mt->queue_limit;
		spd_new_end(t);
	}
	/* Set groups last: a group may be declared after its members */
	for (mt = m->map->first; mt != NULL; mt = mt->next) {
		spd_pause(step++);
		t = mt->user;
		if (t == NULL)
			continue;
		group = mt->group == NULL ? NULL : mt->group->user;
		if (group != t->group)
			spd_dry_forget(t);
		t->group = group;
		t->admit_all = mt->admit_all;
		t->queue_timeout = MAP_NS(mt, MAP_QUEUE_TIMEOUT);
		t->fetch_target = MAP_NS(mt, MAP_FETCH_TARGET);
		t->target = MAP_NS(mt, MAP_TARGET);
		if (t->target > 0 && (least == 0 || t->target < least))
			least = t->target;
		PAGE_Unref(t->refusal);
		t->refusal = PAGE_Ref(MAP_OF(mt, refusal));
		OWN_Set(spd_owners(), t->owner, mt->weight,
		    mt->memory_reservation, mt->memory_limit,
		    t->group == NULL ? OWN_NONE : t->group->owner);
		REL_SetGroup(spd_rel, t->rel, t->group == NULL ? NULL :
		    t->group->rel, METER_Now());
	}
	spd_set_least_target(least);
	spd_unlock();
	return (without);
}

/*
 * Unpin the map's tenants that no other map has pinned meanwhile.  Such a
 * tenant loses its weight, limits and group, and begins as a new Host.
 */
static void
map_unpin(const struct spd_map *m)
{
	struct map_tenant *mt;
	struct spd_tenant *t;
	unsigned step = 0;

	spd_lock();
	for (mt = m->map->first; mt != NULL; mt = mt->next) {
		spd_pause(step++);
		t = mt->user;
		mt->user = NULL;
		if (t == NULL || t->map != m)
			continue;
		t->map = NULL;
		TEN_Pin(spd_tenants, TEN_OfData(t), 0);
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
		spd_new_begin(t);
		if (t->group == NULL)
			REL_SetGroup(spd_rel, t->rel, NULL, METER_Now());
	}
	spd_unlock();
}

/*
 * Put a map into force, or none (NULL), and return the last one, or NULL.
 *
 * First the new map's tenants are pinned, then requests use the new map, then
 * the last map's tenants are unpinned.  So a tenant of both maps keeps its
 * record, its requests that wait, and the debt of its limit.
 */
static struct spd_map *
map_use(struct spd_map *m, unsigned *left)
{
	struct spd_map *last;
	unsigned without;

	spd_capacity();
	without = map_pin(m);
	last = spd_map_publish(m);
	if (last != NULL && last != m) {
		map_unpin(last);
		if (without > 0)
			without = map_pin(m);	/* there is more room now */
	}
	if (without > 0)
		VSL(SLT_Error, NO_VXID, "Sandpaper: %u of the map's tenants "
		    "have no weight, limit or group: there is no room. Raise "
		    "the parameter sandpaper_tenants_max, which is %u",
		    without, cache_param->sandpaper_tenants_max);
	*left = without;
	return (last);
}

/* Make this VCL's map the active one, or no map if the VCL has none.  Only the
 * CLI's thread calls this. */
void
SPD_VclUse(const struct vcl *vcl)
{
	unsigned without;

	spd_tell_start();
	(void)map_use(spd_map_of(vcl), &without);
}

/*
 * Read the files of the active VCL's map again.  Returns NULL and the number of
 * tenants and groups in force, of which `left` found no room; or why nothing was
 * changed.  Only the CLI's thread calls this.
 */
const char *
spd_map_reload(unsigned *tenants, unsigned *left)
{
	struct spd_map *m, *last;
	const char *error;

	m = spd_map_again(&error);
	if (m == NULL)
		return (error);
	last = map_use(m, left);
	spd_map_replace(last, m);
	*tenants = m->map->tenants;
	return (NULL);
}

/*--------------------------------------------------------------------
 * Questions
 */

/* Return the congestion of net (1) or cpu (0): see price/price.h. */
double
SPD_Congestion(int net)
{
	double congestion;

	spd_lock();
	congestion = spd_congestion(net ? REL_NET : REL_CPU, METER_Now());
	spd_unlock();
	return (congestion);
}

/* Should this request save net (1) or cpu (0) at the expense of the other one?
 * See the lean in price/price.h. */
int
SPD_Save(int net)
{
	double lean;

	spd_lock();
	lean = spd_lean(METER_Now());
	spd_unlock();
	return (spd_draw(spd_self()) < (net ? lean : -lean));
}

/* Copy the tenant's fields, without `oldest_ns` and `waits_for`.  Returns -1 if
 * there is no such tenant. */
int
SPD_Ask(const char *name, struct spd_fields *f)
{
	struct spd_tenant *t;

	memset(f, 0, sizeof *f);
	spd_lock();
	t = spd_tenant_find(name, strlen(name));
	if (t != NULL)
		spd_fields(t, 0, METER_Now(), f);
	spd_unlock();
	return (t != NULL ? 0 : -1);
}
