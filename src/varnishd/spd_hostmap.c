/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The VCLs' maps, and the one in force.
 *
 * A VCL fills its map in vcl_init.  The map of the active VCL is in force;
 * for a label, that of the VCL behind the label.  The map is published before
 * that VCL becomes active.  `maplock` guards the list of maps and the map in
 * force.  Requests only read.  Writers are vcl_init, and the commands
 * vcl.use, vcl.label and vcl.discard.  The map itself: src/tenants/hostmap.h.
 */

#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spd.h"
#include "spd_hostmap.h"

static VTAILQ_HEAD(, spd_map) maps = VTAILQ_HEAD_INITIALIZER(maps);
static struct spd_map *active;
static _Atomic unsigned serial;		/* of the map in force */
/* A writer goes before readers that come later */
static pthread_rwlock_t maplock =
    PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

/*
 * Write the name of a Host's tenant, with its NUL, and return its length.
 * name has room for TEN_NAME_MAX + 1 bytes; host ends in a NUL.  Without a
 * map the tenant has the name of the Host.  Takes the map lock.
 */
size_t
spd_map_name(const char *host, size_t len, char *name)
{
	size_t l;

	PTOK(pthread_rwlock_rdlock(&maplock));
	if (active != NULL)
		l = MAP_Name(active->map, host, len, name);
	else {
		memcpy(name, host, len + 1);
		l = len;
	}
	PTOK(pthread_rwlock_unlock(&maplock));
	return (l);
}

/*--------------------------------------------------------------------
 * Fill a map, in vcl_init.  It is not in force yet, so no lock guards its
 * content.  hostmap.h says what the functions return.
 */

/* Return the map of a VCL.  The first call makes it. */
struct spd_map *
SPD_MapOf(const struct vcl *vcl)
{
	struct spd_map *m;

	AN(vcl);
	PTOK(pthread_rwlock_wrlock(&maplock));
	VTAILQ_FOREACH(m, &maps, list)
		if (m->vcl == vcl)
			break;
	if (m == NULL) {
		ALLOC_OBJ(m, SPD_MAP_MAGIC);
		AN(m);
		m->vcl = vcl;
		MAP_Init(m->map);
		VTAILQ_INSERT_TAIL(&maps, m, list);
	}
	PTOK(pthread_rwlock_unlock(&maplock));
	return (m);
}

const char *
SPD_MapTenant(struct spd_map *m, const char *name, double weight,
    unsigned queue_limit)
{

	CHECK_OBJ_NOTNULL(m, SPD_MAP_MAGIC);
	return (MAP_Tenant(m->map, name, weight, queue_limit));
}

const char *
SPD_MapGroup(struct spd_map *m, const char *name, double weight)
{

	CHECK_OBJ_NOTNULL(m, SPD_MAP_MAGIC);
	return (MAP_Group(m->map, name, weight));
}

const char *
SPD_MapMember(struct spd_map *m, const char *name, const char *group)
{

	CHECK_OBJ_NOTNULL(m, SPD_MAP_MAGIC);
	return (MAP_Member(m->map, name, group));
}

const char *
SPD_MapLimits(struct spd_map *m, const char *name, double reservation,
    double limit)
{

	CHECK_OBJ_NOTNULL(m, SPD_MAP_MAGIC);
	return (MAP_Limits(m->map, name, reservation, limit));
}

const char *
SPD_MapMemory(struct spd_map *m, const char *name, int64_t reservation,
    int64_t limit)
{

	CHECK_OBJ_NOTNULL(m, SPD_MAP_MAGIC);
	return (MAP_Memory(m->map, name, reservation, limit));
}

const char *
SPD_MapAdmission(struct spd_map *m, const char *name, int all)
{

	CHECK_OBJ_NOTNULL(m, SPD_MAP_MAGIC);
	return (MAP_Admission(m->map, name, all));
}

const char *
SPD_MapTarget(struct spd_map *m, const char *name, double target)
{

	CHECK_OBJ_NOTNULL(m, SPD_MAP_MAGIC);
	return (MAP_Time(m->map, name, MAP_TARGET, target));
}

const char *
SPD_MapQueueTimeout(struct spd_map *m, const char *name, double timeout)
{

	CHECK_OBJ_NOTNULL(m, SPD_MAP_MAGIC);
	return (MAP_Time(m->map, name, MAP_QUEUE_TIMEOUT, timeout));
}

const char *
SPD_MapFetchTarget(struct spd_map *m, const char *name, double target)
{

	CHECK_OBJ_NOTNULL(m, SPD_MAP_MAGIC);
	return (MAP_Time(m->map, name, MAP_FETCH_TARGET, target));
}

const char *
SPD_MapRefusal(struct spd_map *m, const char *name, int64_t status,
    const char *body, const char *type, int vcl)
{

	CHECK_OBJ_NOTNULL(m, SPD_MAP_MAGIC);
	return (MAP_Refusal(m->map, name, status, body, type, vcl));
}

const char *
SPD_MapHost(struct spd_map *m, const char *name, const char *pattern)
{

	CHECK_OBJ_NOTNULL(m, SPD_MAP_MAGIC);
	return (MAP_Host(m->map, name, pattern));
}

void
SPD_MapUnknown(struct spd_map *m, int own)
{

	CHECK_OBJ_NOTNULL(m, SPD_MAP_MAGIC);
	MAP_Unknown(m->map, own);
}

/*--------------------------------------------------------------------
 * The map in force
 */

/* Return a number that changes when a map comes into force */
unsigned
spd_map_serial(void)
{

	return (serial);
}

/*
 * List the tenants of the map in force that have a record.  The caller frees
 * the array.  Return the serial of the map.  Takes the map lock.
 */
unsigned
spd_map_tenants(struct spd_mapped **tenant, unsigned *n)
{
	struct map_tenant *t, *first;
	struct spd_mapped *to;
	unsigned found = 0, space = 1, now;

	PTOK(pthread_rwlock_rdlock(&maplock));
	first = active != NULL ? active->map->first : NULL;
	for (t = first; t != NULL; t = t->next)
		space++;
	*tenant = calloc(space, sizeof **tenant);
	AN(*tenant);
	for (t = first; t != NULL; t = t->next) {
		if (t->user == NULL)
			continue;
		to = &(*tenant)[found++];
		to->tenant = t->user;
		to->generation = TEN_OfData(t->user)->generation;
		bprintf(to->name, "%s", t->name);
	}
	*n = found;
	now = serial;
	PTOK(pthread_rwlock_unlock(&maplock));
	return (now);
}

struct spd_map *
spd_map_of(const struct vcl *vcl)
{
	struct spd_map *m;

	VTAILQ_FOREACH(m, &maps, list)
		if (m->vcl == vcl)
			break;
	return (m);
}

struct spd_map *
spd_map_publish(struct spd_map *m)
{
	struct spd_map *last;

	PTOK(pthread_rwlock_wrlock(&maplock));
	last = active;
	active = m;
	serial++;
	PTOK(pthread_rwlock_unlock(&maplock));
	return (last);
}

/* Free the map of a VCL that is discarded, if it has one */
void
SPD_MapDrop(const struct vcl *vcl)
{
	struct spd_map *m;

	PTOK(pthread_rwlock_wrlock(&maplock));
	VTAILQ_FOREACH(m, &maps, list)
		if (m->vcl == vcl)
			break;
	if (m != NULL) {
		assert(m != active);	/* an active VCL is not discarded */
		VTAILQ_REMOVE(&maps, m, list);
	}
	PTOK(pthread_rwlock_unlock(&maplock));
	if (m == NULL)
		return;
	MAP_Fini(m->map);
	FREE_OBJ(m);
}
