/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * A map from Host to tenant: exact Hosts, and patterns such as "*.example.com".
 *
 * The patterns are in a hash table, which is at most half full: a pattern is at
 * its hash or in one of the places behind that.  A lookup tries the whole Host
 * first.  Then it tries "*." patterns for the Host without its first label,
 * without its first two, and so on.  The tenant of a group has the group's name
 * in parentheses, which no Host has.
 */

#define _GNU_SOURCE			/* for tdestroy() */

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hostmap.h"
#include "pattern.h"
#include "siphash.h"

struct map_host {
	const char		*host;		/* without "*."; behind this */
	size_t			len;
	int			wild;		/* it had "*." */
	struct map_tenant	*tenant;
};

static void
check_map(const struct hostmap *m)
{
	assert(m != NULL && m->magic == HOSTMAP_MAGIC);
}

void
MAP_Init(struct hostmap *m)
{
	int error;

	assert(m != NULL);
	memset(m, 0, sizeof *m);
	m->magic = HOSTMAP_MAGIC;
	m->end = &m->first;
	error = getentropy(m->key, sizeof m->key);
	assert(error == 0);
}

static void
tenant_free(void *p)
{
	PAGE_Unref(((struct map_tenant *)p)->refusal);
	free(p);
}

void
MAP_Fini(struct hostmap *m)
{
	size_t i;

	check_map(m);
	for (i = 0; i < m->space; i++)
		free(m->host[i]);
	free(m->host);
	EXEMPT_Free(&m->exempt);
	tdestroy(m->names, tenant_free);
	memset(m, 0, sizeof *m);
}

/*--------------------------------------------------------------------
 * Look up
 */

/* Return the place of this pattern, which is empty if the map has none.  There
 * is an empty place. */
static struct map_host **
host_find(const struct hostmap *m, const char *host, size_t len, int wild)
{
	size_t i = (size_t)siphash(m->key, host, len) + (size_t)wild;
	struct map_host **h;

	while (1) {
		h = &m->host[i++ & (m->space - 1)];
		if (*h == NULL || ((*h)->len == len && (*h)->wild == wild &&
		    !memcmp((*h)->host, host, len)))
			return (h);
	}
}

/* Return the tenant of exactly this pattern, or NULL */
static struct map_tenant *
host_tenant(const struct hostmap *m, const char *host, size_t len, int wild)
{
	struct map_host *h;

	if (m->space == 0)
		return (NULL);
	h = *host_find(m, host, len, wild);
	return (h == NULL ? NULL : h->tenant);
}

/* Make the table larger. */
static void
host_space(struct hostmap *m)
{
	struct map_host **old = m->host;
	size_t i, space = m->space;

	m->space = space > 0 ? space * 2 : 64;
	m->host = calloc(m->space, sizeof *m->host);
	assert(m->host != NULL);
	for (i = 0; i < space; i++)
		if (old[i] != NULL)
			*host_find(m, old[i]->host, old[i]->len,
			    old[i]->wild) = old[i];
	free(old);
}

/* Return the tenant of the pattern that fits best, or NULL */
static struct map_tenant *
look_up(const struct hostmap *m, const char *host, size_t len)
{
	struct map_tenant *t;
	const char *h = host, *e = host + len;

	check_map(m);
	assert(len <= TEN_NAME_MAX && host[len] == '\0');
	t = host_tenant(m, host, len, 0);
	while (t == NULL && (h = memchr(h, '.', (size_t)(e - h))) != NULL) {
		h++;
		t = host_tenant(m, h, (size_t)(e - h), 1);
	}
	return (t);
}

struct map_tenant *
MAP_Each(const struct hostmap *m, const char *host, size_t len)
{
	struct map_tenant *t = m->each ? look_up(m, host, len) : NULL;

	return (t != NULL && MAP_IsEach(t) ? t : NULL);
}

size_t
MAP_Name(const struct hostmap *m, const char *host, size_t len, char *name)
{
	struct map_tenant *t = look_up(m, host, len);

	if (t != NULL && !MAP_IsEach(t)) {
		memcpy(name, t->name, t->len + 1);
		return (t->len);
	}
	if (t == NULL && !m->own) {
		memcpy(name, TEN_UNKNOWN, sizeof TEN_UNKNOWN);
		return (sizeof TEN_UNKNOWN - 1);
	}
	memcpy(name, host, len + 1);
	return (len);
}

/*--------------------------------------------------------------------
 * Fill
 */

static int
name_cmp(const void *p1, const void *p2)
{
	const struct map_tenant *a = p1, *b = p2;

	return (strcmp(a->name, b->name));
}

/* Find a tenant, or a group by its name with parentheses, or NULL */
static struct map_tenant *
map_tenant(const struct hostmap *m, const char *name)
{
	struct map_tenant key, **found;

	if (strlen(name) > TEN_NAME_MAX)
		return (NULL);
	(void)strcpy(key.name, name);
	found = tfind(&key, &m->names, name_cmp);
	return (found == NULL ? NULL : *found);
}

/* Find a group by its name without the parentheses */
static struct map_tenant *
map_group(const struct hostmap *m, const char *name)
{
	char group[TEN_NAME_MAX + 1];

	if (strlen(name) > TEN_NAME_MAX - 2)
		return (NULL);
	(void)snprintf(group, sizeof group, "(%s)", name);
	return (map_tenant(m, group));
}

/* Add a tenant, or a group of tenants.  queue_limit: requests. */
static const char *
map_declare(struct hostmap *m, const char *name, double weight,
    unsigned queue_limit, int is_group)
{
	char whole[TEN_NAME_MAX + 3];	/* gcc 14 sees no bound with "()" */
	struct map_tenant *t;
	const char *p;
	void *node;

	check_map(m);
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
	if (*name == '(' && (is_group || strcmp(name, TEN_UNKNOWN)))
		return ("the name begins with a parenthesis: use another "
		    "first character");
	(void)snprintf(whole, sizeof whole, is_group ? "(%s)" : "%s", name);
	if (is_group && (!strcmp(whole, TEN_OTHER) ||
	    !strcmp(whole, TEN_UNKNOWN) || !strcmp(whole, TEN_NONE) ||
	    !strcmp(whole, TEN_NEW)))
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
	assert(t != NULL);
	memcpy(t->name, whole, sizeof t->name);
	t->len = strlen(t->name);
	t->weight = weight;
	t->queue_limit = queue_limit;
	t->is_group = is_group;
	*m->end = t;
	m->end = &t->next;
	m->tenants++;
	node = tsearch(t, &m->names, name_cmp);
	assert(node != NULL);
	return (NULL);
}

const char *
MAP_Tenant(struct hostmap *m, const char *name, double weight,
    unsigned queue_limit)
{

	return (map_declare(m, name, weight, queue_limit, 0));
}

const char *
MAP_Group(struct hostmap *m, const char *name, double weight)
{

	return (map_declare(m, name, weight, 0, 1));
}

/* Why a name is not that of a tenant. */
static const char *
no_tenant(const struct hostmap *m, const char *name)
{

	if (name != NULL && map_group(m, name) != NULL)
		return ("this is a group: use the name of a tenant");
	return ("the tenant is not declared: declare it first");
}

/* Find a tenant or a group by its name, or NULL. */
static struct map_tenant *
map_either(const struct hostmap *m, const char *name)
{
	struct map_tenant *t;

	if (name == NULL)
		return (NULL);
	t = map_tenant(m, name);
	return (t != NULL ? t : map_group(m, name));
}

static const char for_each[] = "any number of Hosts would have this "
    "reservation: leave it out, or give it to the group";
static const char neither[] = "the tenant or group is not declared: "
    "declare it first";

const char *
MAP_Member(struct hostmap *m, const char *name, const char *group)
{
	struct map_tenant *t, *g;

	check_map(m);
	t = name == NULL ? NULL : map_tenant(m, name);
	if (t == NULL || t->is_group)
		return (no_tenant(m, name));
	g = group == NULL ? NULL : map_group(m, group);
	if (g == NULL)
		return ("the group is not declared: declare it first");
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
MAP_Limits(struct hostmap *m, const char *name, double reservation,
    double limit)
{
	struct map_tenant *t;

	check_map(m);
	t = map_either(m, name);
	if (t == NULL)
		return (neither);
	if (MAP_IsEach(t) && reservation > 0)
		return (for_each);
	if (isnan(reservation) || reservation < 0 || reservation > 1)
		return ("the reservation is not allowed: use 0 to 1");
	if (isnan(limit) || limit < 0.001 || limit > 1)
		return ("the limit is not allowed: use 0.001 to 1");
	if (reservation > limit)
		return ("the reservation is above the limit: lower the "
		    "reservation or raise the limit");
	m->reserved += reservation - t->reservation;
	t->reservation = reservation;
	t->limit = limit < 1 ? limit : 0;
	if (m->reserved > 1 + 1e-9)		/* ten times 0.1 is not 1 */
		return ("the sum of all reservations is above 1: lower one "
		    "of them");
	return (NULL);
}

const char *
MAP_Memory(struct hostmap *m, const char *name, int64_t reservation,
    int64_t limit)
{
	struct map_tenant *t;

	check_map(m);
	t = map_either(m, name);
	if (t == NULL)
		return (neither);
	if (MAP_IsEach(t) && reservation > 0)
		return (for_each);
	if (reservation < 0)
		return ("the reservation is not allowed: use 0B or more");
	if (limit < 0)
		return ("the limit is not allowed: use 1B or more, or 0B for "
		    "none");
	if (limit > 0 && reservation > limit)
		return ("the reservation is above the limit: use at most the "
		    "limit");
	t->memory_reservation = (uint64_t)reservation;
	t->memory_limit = (uint64_t)limit;
	return (NULL);
}

const char *
MAP_Admission(struct hostmap *m, const char *name, int all)
{
	struct map_tenant *t;

	check_map(m);
	t = name == NULL ? NULL : map_tenant(m, name);
	if (t == NULL || t->is_group)
		return (no_tenant(m, name));
	t->admit_all = all;
	return (NULL);
}

const char *
MAP_Time(struct hostmap *m, const char *name, enum map_time which, double s)
{
	static const struct {
		double		most;		/* s */
		const char	*error;
	} times[MAP_TIMES] = {
		[MAP_TARGET] = { 10,
		    "the target is not allowed: use 0.001s to 10s" },
		[MAP_QUEUE_TIMEOUT] = { 86400,
		    "the time is not allowed: use 0.001s to 86400s" },
		[MAP_FETCH_TARGET] = { 3600,
		    "the target is not allowed: use 0.001s to 3600s" },
	};
	struct map_tenant *t;

	check_map(m);
	assert(which < MAP_TIMES);
	t = map_either(m, name);
	if (t == NULL)
		return (neither);
	if (isnan(s) || s < 0.001 || s > times[which].most)
		return (times[which].error);
	t->time[which] = s;
	return (NULL);
}

const char *
MAP_Refusal(struct hostmap *m, const char *name, int64_t status,
    const char *body, const char *type, int vcl)
{
	struct map_tenant *t;
	struct page *page;
	const char *err;

	check_map(m);
	t = map_either(m, name);
	if (t == NULL)
		return (neither);
	err = PAGE_New(&page, status, body, type, vcl);
	if (err != NULL)
		return (err);
	PAGE_Unref(t->refusal);
	t->refusal = page;
	return (NULL);
}

const char *
MAP_Host(struct hostmap *m, const char *name, const char *pattern)
{
	struct map_tenant *t;
	struct map_host *h;
	const char *err;
	int wild;
	size_t i, len;
	char *host;

	check_map(m);
	t = name == NULL ? NULL : map_tenant(m, name);
	if (t == NULL || t->is_group)
		return (no_tenant(m, name));
	if (MAP_IsEach(t) && t->group == NULL)
		return ("these tenants are in no group, so each Host that a "
		    "client invents would have a share: set a group first");
	if (pattern == NULL)
		return ("the pattern is empty: use a host name");
	wild = pattern[0] == '*' && pattern[1] == '.';
	if (wild)
		pattern += 2;
	err = PATTERN_Check(pattern);
	if (err != NULL)
		return (err);
	len = strlen(pattern);
	if (len > TEN_NAME_MAX)
		return ("the pattern is too long: use at most 255 characters");
	h = malloc(sizeof *h + len + 1);
	assert(h != NULL);
	host = (char *)(h + 1);
	for (i = 0; i <= len; i++)
		host[i] = (char)tolower((unsigned char)pattern[i]);
	*h = (struct map_host){ .host = host, .len = len, .wild = wild,
	    .tenant = t };
	if (host_tenant(m, h->host, len, wild) != NULL) {
		free(h);
		return ("this pattern is assigned already: use each pattern "
		    "once");
	}
	if (2 * m->nhost >= m->space)
		host_space(m);
	*host_find(m, h->host, len, wild) = h;
	m->nhost++;
	m->each |= MAP_IsEach(t);
	return (NULL);
}

void
MAP_Unknown(struct hostmap *m, int own)
{

	check_map(m);
	m->own = own;
}
