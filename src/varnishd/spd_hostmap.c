/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * VCL's map: which Hosts belong to which tenant.
 *
 * A VCL fills its map in vcl_init.  The map of the active VCL is in force;
 * for a label, that of the VCL behind the label.  The map is published before
 * that VCL becomes active.  `maplock` guards the list of maps and the map in
 * force.  Requests only read.  Writers are vcl_init, and the commands
 * vcl.use, vcl.label and vcl.discard.
 *
 * The tenant of a group has the group's name in parentheses, which no Host
 * has.  The patterns are sorted.  A lookup tries the whole Host first.  Then
 * it tries "*." patterns for the Host without its first label, without its
 * first two, and so on.
 */

#include "config.h"

#include <ctype.h>
#include <math.h>
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

/* Compare a pattern of the map with a name: by name, then without "*." first */
static int
host_cmp(const struct map_host *h, const char *host, size_t len, int wild)
{
	int i;

	i = memcmp(h->host, host, vmin_t(size_t, h->len, len));
	if (i != 0)
		return (i);
	if (h->len != len)
		return (h->len < len ? -1 : 1);
	return (h->wild - wild);
}

/* Return the index of the first pattern that is not smaller */
static size_t
host_find(const struct spd_map *m, const char *host, size_t len, int wild)
{
	size_t lo = 0, hi = m->nhost, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (host_cmp(&m->host[mid], host, len, wild) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return (lo);
}

/* Return the tenant of exactly this pattern, or NULL */
static struct map_tenant *
host_tenant(const struct spd_map *m, const char *host, size_t len, int wild)
{
	size_t i;

	i = host_find(m, host, len, wild);
	if (i == m->nhost || host_cmp(&m->host[i], host, len, wild))
		return (NULL);
	return (m->host[i].tenant);
}

/*--------------------------------------------------------------------
 * From Host to tenant
 */

/* As spd_map_name(), for this map */
static size_t
map_name(const struct spd_map *m, const char *host, size_t len, char *name)
{
	struct map_tenant *t;
	const char *h = host, *e = host + len;

	t = host_tenant(m, host, len, 0);
	while (t == NULL && (h = memchr(h, '.', (size_t)(e - h))) != NULL) {
		h++;
		t = host_tenant(m, h, (size_t)(e - h), 1);
	}
	if (t != NULL) {
		memcpy(name, t->name, t->len + 1);
		return (t->len);
	}
	if (!m->own) {
		memcpy(name, SPD_UNKNOWN, sizeof SPD_UNKNOWN);
		return (sizeof SPD_UNKNOWN - 1);
	}
	memcpy(name, host, len + 1);
	return (len);
}

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
		l = map_name(active, host, len, name);
	else {
		memcpy(name, host, len + 1);
		l = len;
	}
	PTOK(pthread_rwlock_unlock(&maplock));
	return (l);
}

/*--------------------------------------------------------------------
 * Fill a map, in vcl_init.  It is not in force yet, so no lock guards its
 * content.  The functions return NULL, or an error text.
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
		VSTAILQ_INIT(&m->tenants);
		VTAILQ_INSERT_TAIL(&maps, m, list);
	}
	PTOK(pthread_rwlock_unlock(&maplock));
	return (m);
}

static struct map_tenant *
map_tenant(const struct spd_map *m, const char *name)
{
	struct map_tenant *t;

	VSTAILQ_FOREACH(t, &m->tenants, list)
		if (!strcmp(t->name, name))
			return (t);
	return (NULL);
}

/* Find a group by its name without the parentheses */
static struct map_tenant *
map_group(const struct spd_map *m, const char *name)
{
	char group[TEN_NAME_MAX + 1];

	if (strlen(name) > TEN_NAME_MAX - 2)
		return (NULL);
	bprintf(group, "(%s)", name);
	return (map_tenant(m, group));
}

/* Add a tenant, or a group of tenants.  queue_limit: requests. */
static const char *
map_declare(struct spd_map *m, const char *name, double weight,
    unsigned queue_limit, int is_group)
{
	char whole[TEN_NAME_MAX + 1];
	struct map_tenant *t;
	const char *p;

	CHECK_OBJ_NOTNULL(m, SPD_MAP_MAGIC);
	if (name == NULL || *name == '\0')
		return ("the name is empty: use at least one character");
	if (strlen(name) > TEN_NAME_MAX - 2U * (is_group != 0))
		return (is_group ?
		    "the name is too long: use at most 253 characters" :
		    "the name is too long: use at most 255 characters");
	for (p = name; *p != '\0'; p++)
		if (!isgraph((unsigned char)*p) || *p == '"' || *p == '\\')
			return ("the name has a character that is not "
			    "allowed: use printable characters, but no "
			    "space, quote or backslash");
	if (*name == '(')
		return ("the name begins with a parenthesis: use another "
		    "first character");
	bprintf(whole, is_group ? "(%s)" : "%s", name);
	if (!strcmp(whole, TEN_OTHER) || !strcmp(whole, SPD_UNKNOWN) ||
	    !strcmp(whole, SPD_NOHOST) || !strcmp(whole, SPD_NEW))
		return ("the names other, unknown, none and new are "
		    "Sandpaper's own: use another name");
	if (map_tenant(m, name) != NULL)
		return ("a tenant of this name is declared already: use "
		    "another name");
	if (map_group(m, name) != NULL)
		return ("a group of this name is declared already: use "
		    "another name");
	if (isnan(weight) || weight < 0.001 || weight > 1024)
		return ("the weight is not allowed: use 0.001 to 1024");
	if (queue_limit > 1000000)
		return ("the queue limit is not allowed: use 1 to 1000000, or "
		    "0 for the parameter sandpaper_queue_limit");
	t = calloc(1, sizeof *t);
	AN(t);
	bprintf(t->name, "%s", whole);
	t->len = strlen(t->name);
	t->weight = (uint32_t)vmax(1., weight * REL_WEIGHT_ONE + .5);
	t->queue_limit = queue_limit;
	t->is_group = is_group;
	VSTAILQ_INSERT_TAIL(&m->tenants, t, list);
	return (NULL);
}

const char *
SPD_MapTenant(struct spd_map *m, const char *name, double weight,
    unsigned queue_limit)
{

	return (map_declare(m, name, weight, queue_limit, 0));
}

const char *
SPD_MapGroup(struct spd_map *m, const char *name, double weight)
{

	return (map_declare(m, name, weight, 0, 1));
}

const char *
SPD_MapMember(struct spd_map *m, const char *name, const char *group)
{
	struct map_tenant *t, *g;

	CHECK_OBJ_NOTNULL(m, SPD_MAP_MAGIC);
	t = name == NULL ? NULL : map_tenant(m, name);
	if (t == NULL || t->is_group)
		return ("the tenant is not declared: call sandpaper.tenant() "
		    "first");
	g = group == NULL ? NULL : map_group(m, group);
	if (g == NULL)
		return ("the group is not declared: call sandpaper.group() "
		    "first");
	if (t->group != NULL)
		return ("the tenant is a member of a group already: a tenant "
		    "can be in one group only");
	t->group = g;
	return (NULL);
}

/*
 * Set the reservation and the limit of a tenant or group, as parts of its
 * dominant resource.  A reservation of 0 is none, and a limit of 1 is none.
 */
const char *
SPD_MapLimits(struct spd_map *m, const char *name, double reservation,
    double limit)
{
	struct map_tenant *t, *other;
	double all = 0;

	CHECK_OBJ_NOTNULL(m, SPD_MAP_MAGIC);
	t = name == NULL ? NULL : map_tenant(m, name);
	if (t == NULL && name != NULL)
		t = map_group(m, name);
	if (t == NULL)
		return ("the tenant or group is not declared: call "
		    "sandpaper.tenant() or sandpaper.group() first");
	if (isnan(reservation) || reservation < 0 || reservation > 1)
		return ("the reservation is not allowed: use 0 to 1");
	if (isnan(limit) || limit < 0.001 || limit > 1)
		return ("the limit is not allowed: use 0.001 to 1");
	if (reservation > limit)
		return ("the reservation is above the limit: lower the "
		    "reservation or raise the limit");
	t->reservation = reservation;
	t->limit = limit < 1 ? limit : 0;
	VSTAILQ_FOREACH(other, &m->tenants, list)
		all += other->reservation;
	if (all > 1 + 1e-9)		/* rounding: ten times 0.1 is not 1 */
		return ("the sum of all reservations is above 1: lower one "
		    "of them");
	return (NULL);
}

/* Check a pattern without its "*.": return NULL, or an error text */
static const char *
host_check(const char *p)
{
	const char *host = p;

	if (*p == '[') {
		while (isxdigit((unsigned char)*++p) || *p == ':' || *p == '.')
			continue;
		return (*p == ']' && p[1] == '\0' ? NULL :
		    "the address is not valid: use an IPv6 address in "
		    "brackets, such as [2001:db8::1]");
	}
	for (; *p != '\0'; p++) {
		if (*p == '*')
			return ("* is not allowed here: use it once, as the "
			    "first label, such as \"*.example.com\"");
		if (*p == ':')
			return ("the pattern has a port: remove the port");
		if (*p == '.' && (p == host || p[-1] == '.'))
			return ("a label is empty: use one dot between two "
			    "labels, and none at the start");
		if (!isalnum((unsigned char)*p) && !strchr("-_.", *p))
			return ("the pattern has a character that is not "
			    "allowed: use letters, digits, \"-\", \"_\" and "
			    "\".\"");
	}
	if (p == host)
		return ("the pattern is empty: use a host name");
	return (p[-1] == '.' ?
	    "the pattern ends in a dot: remove the dot" : NULL);
}

const char *
SPD_MapHost(struct spd_map *m, const char *name, const char *pattern)
{
	struct map_tenant *t;
	struct map_host h;
	const char *err;
	char *p;
	size_t i;

	CHECK_OBJ_NOTNULL(m, SPD_MAP_MAGIC);
	t = name == NULL ? NULL : map_tenant(m, name);
	if (t == NULL || t->is_group)
		return ("the tenant is not declared: call sandpaper.tenant() "
		    "first");
	if (pattern == NULL)
		return ("the pattern is empty: use a host name");
	h.wild = pattern[0] == '*' && pattern[1] == '.';
	if (h.wild)
		pattern += 2;
	err = host_check(pattern);
	if (err != NULL)
		return (err);
	if (strlen(pattern) > TEN_NAME_MAX)
		return ("the pattern is too long: use at most 255 characters");
	p = strdup(pattern);
	AN(p);
	h.host = p;
	h.len = strlen(p);
	h.tenant = t;
	for (; *p != '\0'; p++)
		*p = (char)tolower((unsigned char)*p);
	i = host_find(m, h.host, h.len, h.wild);
	if (i < m->nhost && !host_cmp(&m->host[i], h.host, h.len, h.wild)) {
		free(TRUST_ME(h.host));
		return ("this pattern is assigned already: use each pattern "
		    "once");
	}
	if (m->nhost == m->space) {
		m->space = m->space ? m->space * 2 : 64;
		m->host = realloc(m->host, m->space * sizeof *m->host);
		AN(m->host);
	}
	memmove(m->host + i + 1, m->host + i,
	    (m->nhost - i) * sizeof *m->host);
	m->host[i] = h;
	m->nhost++;
	return (NULL);
}

/* Set the tenant of Hosts without a pattern: (unknown); own = 1: the Host */
void
SPD_MapUnknown(struct spd_map *m, int own)
{

	CHECK_OBJ_NOTNULL(m, SPD_MAP_MAGIC);
	m->own = own;
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
	struct map_tenant *t;
	struct spd_mapped *to;
	unsigned found = 0, space = 1, now;

	PTOK(pthread_rwlock_rdlock(&maplock));
	if (active != NULL)
		VSTAILQ_FOREACH(t, &active->tenants, list)
			space++;
	*tenant = calloc(space, sizeof **tenant);
	AN(*tenant);
	if (active != NULL)
		VSTAILQ_FOREACH(t, &active->tenants, list) {
			if (t->pinned == NULL)
				continue;
			to = &(*tenant)[found++];
			to->tenant = t->pinned;
			to->generation = TEN_OfData(t->pinned)->generation;
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
	struct map_tenant *t;
	struct spd_map *m;
	size_t i;

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
	while ((t = VSTAILQ_FIRST(&m->tenants)) != NULL) {
		VSTAILQ_REMOVE_HEAD(&m->tenants, list);
		free(t);
	}
	for (i = 0; i < m->nhost; i++)
		free(TRUST_ME(m->host[i].host));
	free(m->host);
	FREE_OBJ(m);
}
