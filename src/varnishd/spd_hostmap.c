/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The VCLs' maps, and the one in force.
 *
 * A VCL fills its map in vcl_init.  The map of the active VCL is in force;
 * for a label, that of the VCL behind the label.  The map is published before
 * that VCL becomes active.  `maplock` guards the list of maps and the map in
 * force.  Requests only read.  Writers are vcl_init, and the commands
 * vcl.use, vcl.label, vcl.discard and sandpaper.reload.  The map itself:
 * src/tenants/hostmap.h.
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
 * map the tenant has the name of the Host.  exempt: NULL, or what a rule says of
 * a request for this URL.  Takes the map lock.
 */
size_t
spd_map_name(const char *host, size_t len, const char *url, char *name,
    enum exempt_answer *exempt)
{
	size_t l;

	PTOK(pthread_rwlock_rdlock(&maplock));
	if (exempt != NULL) {
		*exempt = EXEMPT_NO;
		if (active != NULL && active->map->exempt != NULL)
			*exempt = EXEMPT_Use(active->map->exempt, url, host,
			    len, METER_Now());
	}
	if (active != NULL && active->names)
		l = MAP_Name(active->map, host, len, name);
	else {
		memcpy(name, host, len + 1);
		l = len;
	}
	PTOK(pthread_rwlock_unlock(&maplock));
	return (l);
}

/*--------------------------------------------------------------------
 * The maps
 */

/* Return a new map of a VCL, which is in no list yet. */
static struct spd_map *
spd_map_new(const struct vcl *vcl)
{
	struct spd_map *m;

	ALLOC_OBJ(m, SPD_MAP_MAGIC);
	AN(m);
	m->vcl = vcl;
	MAP_Init(m->map);
	VSTAILQ_INIT(&m->steps);
	return (m);
}

static void
spd_map_free(struct spd_map *m)
{

	MAP_Fini(m->map);
	spd_steps_free(m);
	FREE_OBJ(m);
}

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
		m = spd_map_new(vcl);
		VTAILQ_INSERT_TAIL(&maps, m, list);
	}
	PTOK(pthread_rwlock_unlock(&maplock));
	return (m);
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
	if (m != NULL)
		spd_map_free(m);
}

/*--------------------------------------------------------------------
 * Fill the active VCL's map again
 */

/*
 * Return a new map for the VCL of the map in force, filled as that one was: its
 * files are read again.  NULL: *error says why; no map is changed.  Only the
 * CLI's thread may call it.
 */
struct spd_map *
spd_map_again(const char **error)
{
	struct spd_map *m;

	if (active == NULL || !spd_steps_have_file(active)) {
		*error = "the active VCL has no file of tenants: call "
		    "sandpaper.tenants_file() in vcl_init";
		return (NULL);
	}
	m = spd_map_new(active->vcl);
	*error = spd_steps_again(m, active);
	if (*error == NULL)
		return (m);
	spd_map_free(m);
	return (NULL);
}

/* The new map is in force: it takes the place of its VCL's old one, which is
 * freed. */
void
spd_map_replace(struct spd_map *old, struct spd_map *m)
{

	PTOK(pthread_rwlock_wrlock(&maplock));
	assert(active == m && old->vcl == m->vcl);
	VTAILQ_REMOVE(&maps, old, list);
	VTAILQ_INSERT_TAIL(&maps, m, list);
	PTOK(pthread_rwlock_unlock(&maplock));
	spd_map_free(old);
}
