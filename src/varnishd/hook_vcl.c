/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Hooks of VCL: the active VCL's map gives its tenants weights, limits and
 * groups.  And VCL asks for the numbers of a tenant, and of its request.
 *
 * The lock guards the tenants' records and map_tenant.user.  Only the CLI's
 * thread changes which map is active.
 */

#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spd.h"
#include "spd_hostmap.h"

/*--------------------------------------------------------------------
 * Pin and unpin a map's tenants
 */

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
 * Call a function for each tenant.  Downwards: if a record ends meanwhile, the
 * last one takes its place, and that one was seen already.  Caller holds
 * spd_lock(), which this function may drop for a moment.
 */
static void
map_all(void (*call)(struct spd_tenant *, const struct spd_map *),
    const struct spd_map *m)
{
	struct ten_record *r;
	unsigned u;

	for (u = TEN_Count(spd_tenants); u > 0; u--) {
		r = TEN_At(spd_tenants, u);
		if (r != NULL)
			call(TEN_Data(r), m);
		spd_pause(u);
	}
}

/* Give a known Host its settings, if it is a tenant by a pattern of the map.
 * Caller holds spd_lock(). */
static void
map_each(struct spd_tenant *t, const struct spd_map *m)
{

	(void)m;
	if (!TEN_OfData(t)->pinned && spd_settings_each(t))
		spd_new_end(t);
}

/*
 * Pin a record for each of the map's tenants, and set its weight, limits and
 * group.  Returns how many tenants found no room for a record.
 */
static unsigned
map_pin(const struct spd_map *m)
{
	struct map_tenant *mt;
	struct spd_tenant *t;
	unsigned step = 0, without = 0;
	int64_t least = 0, target;

	spd_lock();
	if (m == NULL) {
		spd_set_least_target(0);
		spd_settings_from(NULL);
		spd_unlock();
		return (0);
	}
	for (mt = m->map->first; mt != NULL; mt = mt->next) {
		spd_pause(step++);
		if (MAP_IsEach(mt))
			continue;
		mt->user = t = map_room(mt, without);
		if (t == NULL) {
			without++;
			continue;
		}
		TEN_Pin(spd_tenants, TEN_OfData(t), 1);
		spd_new_end(t);
	}
	/* A group may be declared after its members */
	for (mt = m->map->first; mt != NULL; mt = mt->next) {
		spd_pause(step++);
		if (mt->user != NULL)
			spd_settings(mt->user, m, mt);
		target = spd_map_target(mt);
		if (target > 0 && (least == 0 || target < least))
			least = target;
	}
	spd_set_least_target(least);
	spd_settings_from(m);
	map_all(map_each, m);
	spd_unlock();
	return (without);
}

/* If only this map gives the tenant something, it begins as a new Host, or is a
 * tenant by a pattern of the map in force.  Caller holds spd_lock(). */
static void
map_forget(struct spd_tenant *t, const struct spd_map *m)
{

	if (t->map != m)
		return;
	TEN_Pin(spd_tenants, TEN_OfData(t), 0);
	if (spd_settings_each(t))
		return;
	spd_settings_none(t);
	spd_new_begin(t);
	if (t->group == NULL)
		REL_SetGroup(spd_rel, t->rel, NULL, METER_Now());
}

/* Unpin the map's tenants that no other map has taken meanwhile. */
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
		if (t != NULL)
			map_forget(t, m);
	}
	map_all(map_forget, m);
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
	/* The keeper would notice a new maximum later.  It tells if memory is
	 * missing */
	spd_lock();
	(void)TEN_SetMax(spd_tenants, cache_param->sandpaper_tenants_max);
	spd_unlock();
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

/* Copy the tenant's fields, without those of its first waiting request and of
 * the last seconds.  Returns -1 if there is no such tenant. */
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

/* Copy the name of the request's tenant into buf.  Returns buf, or NULL if the
 * request passed no gate. */
const char *
SPD_ReqTenant(const struct req *req, char *buf, size_t len)
{
	const struct rel_node *n = (const void *)req->sandpaper;
	struct spd_tenant *t;

	if (n->magic != REL_NODE_MAGIC || n->tenant == NULL)
		return (NULL);
	t = spd_tenant_rel(n->tenant);
	(void)snprintf(buf, len, "%s", spd_name(t));
	return (buf);
}

/* Return how long a request that runs has waited, s. */
double
SPD_ReqWait(const struct req *req)
{
	const struct rel_node *n = (const void *)req->sandpaper;

	if (n->magic != REL_NODE_MAGIC)
		return (0);
	return ((double)SPD_WAIT(n) * 1e-9);
}
