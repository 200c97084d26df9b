/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Hooks of VCL: the map in force, and what VCL asks of a tenant.
 */

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "spd.h"
#include "spd_hostmap.h"

/*--------------------------------------------------------------------
 * A map's tenants are pinned, and get what it says of them
 */

/* Of REL_PART_ONE; no part that is said becomes none */
static uint32_t
map_part(double part)
{
	return (part > 0 ?
	    (uint32_t)vmax(1., part * REL_PART_ONE + .5) : 0);
}

/* Locked: the tenant's record.  NULL: there is no room */
static struct spd_tenant *
map_record(const struct map_tenant *mt)
{
	struct spd_tenant *t;

	t = spd_tenant_check(NULL, mt->name, mt->len);
	return (strcmp(spd_name(t), mt->name) ? NULL : t);
}

/* The same, though others have to go: an addition looks at TEN_STEPS of them.
 * Where nobody could go for the last one, it looks no further. */
static struct spd_tenant *
map_room(const struct map_tenant *mt, unsigned without)
{
	unsigned u, n = without > 0 ? 0 : TEN_Count(spd.tenants);
	struct spd_tenant *t;

	t = map_record(mt);
	for (u = 0; t == NULL && u < n; u += TEN_STEPS) {
		spd_unlock();
		spd_lock();
		t = map_record(mt);
	}
	return (t);
}

/* The map's tenants have records from now on, with its weights, limits and
 * groups.  Returns how many have none. */
static unsigned
map_pin(const struct spd_map *m)
{
	struct map_tenant *mt;
	struct spd_tenant *t;
	unsigned step = 0, without = 0;

	if (m == NULL)
		return (0);
	spd_lock();
	VSTAILQ_FOREACH(mt, &m->tenants, list) {
		spd_pause(step++);
		mt->pinned = t = map_room(mt, without);
		if (t == NULL) {
			without++;
			continue;
		}
		TEN_Pin(spd.tenants, TEN_OfHost(t), 1);
		t->map = m;
		REL_SetWeight(spd.rel, t->rel, mt->weight);
		REL_SetLimits(spd.rel, t->rel, map_part(mt->reservation),
		    map_part(mt->limit), METER_Now());
		t->queue_limit = mt->queue_limit;
		spd_new_end(t);
	}
	/* In the order of the calls a group may come after its members */
	VSTAILQ_FOREACH(mt, &m->tenants, list) {
		spd_pause(step++);
		t = mt->pinned;
		if (t == NULL)
			continue;
		t->group = mt->group == NULL ? NULL : mt->group->pinned;
		REL_SetGroup(spd.rel, t->rel, t->group == NULL ? NULL :
		    t->group->rel, METER_Now());
	}
	spd_unlock();
	return (without);
}

/* Those that were this map's, and are not another one's by now, may go.  They
 * are new Hosts. */
static void
map_unpin(const struct spd_map *m)
{
	struct map_tenant *mt;
	struct spd_tenant *t;
	unsigned step = 0;

	spd_lock();
	VSTAILQ_FOREACH(mt, &m->tenants, list) {
		spd_pause(step++);
		t = mt->pinned;
		mt->pinned = NULL;
		if (t == NULL || t->map != m)
			continue;
		t->map = NULL;
		TEN_Pin(spd.tenants, TEN_OfHost(t), 0);
		REL_SetWeight(spd.rel, t->rel, REL_WEIGHT_ONE);
		REL_SetLimits(spd.rel, t->rel, 0, 0, METER_Now());
		t->queue_limit = 0;
		t->group = NULL;
		spd_new_begin(t);
		if (t->group == NULL)
			REL_SetGroup(spd.rel, t->rel, NULL, METER_Now());
	}
	spd_unlock();
}

/*
 * Only the CLI's thread changes maps.  A tenant that both maps have keeps its
 * record, its limit's debt and what waits behind the limit.  Requests ask the
 * last map until the new one's tenants are pinned.
 */
void
SPD_VclUse(const struct vcl *vcl)
{
	struct spd_map *m, *last;
	unsigned without;

	spd_log_start();
	m = spd_map_of(vcl);
	without = map_pin(m);
	last = spd_map_publish(m);
	if (last != NULL && last != m)
		map_unpin(last);
	if (without > 0)
		VSL(SLT_Error, NO_VXID, "Sandpaper: %u of the map's tenants "
		    "have no weight, limit or group: there is no room. Raise "
		    "the parameter sandpaper_tenants_max, which is %u",
		    without, cache_param->sandpaper_tenants_max);
}

/*--------------------------------------------------------------------
 * Questions
 */

int
SPD_Ask(const char *name, struct spd_answer *a)
{
	struct rel_tenant_stat st;
	struct spd_tenant *t;

	memset(a, 0, sizeof *a);
	spd_lock();
	t = spd_tenant_find(name, strlen(name));
	if (t == NULL) {
		spd_unlock();
		return (-1);
	}
	REL_TenantStat(spd.rel, t->rel, &st);
	a->cpu = (double)st.estimate[REL_CPU] * 1e-9;
	a->net = (double)st.estimate[REL_NET] * 1e-9;
	a->waiting = st.waiting;
	a->running = st.running;
	a->weight = (double)st.weight / REL_WEIGHT_ONE;
	a->share = REL_Share(spd.rel, t->rel);
	a->used_cpu = (double)t->cpu_ns * 1e-9;
	a->bytes = t->bytes;
	a->waited = (double)t->wait_ns * 1e-9;
	a->requests = t->requests;
	spd_unlock();
	return (0);
}
