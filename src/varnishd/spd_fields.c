/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Copy the fields of tenants, as the table tenant_fields.h says.
 *
 * The lock guards the tenants' records and the releaser.
 */

#include "config.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "spd.h"

static const char * const resources[] = { "cpu", "net" };

_Static_assert(sizeof(field_NAME) == TEN_NAME_MAX + 1,
    "a name must fit");
_Static_assert(sizeof(field_WAITS) == WAITS * sizeof(uint64_t),
    "all counts must fit");

/* Return how long the request has waited, ns.  NULL: 0. */
static int64_t
spd_oldest(const struct rel_node *first, int64_t now)
{

	/* This request may have come after `now` */
	return (first != NULL && first->arrival < now ?
	    now - first->arrival : 0);
}

/*
 * Return why a tenant's first waiting request waits, or NULL if none waits.
 * If no other reason is true, the policy lets others go first.  Caller holds
 * spd_lock().
 */
static const char *
spd_waits_for(const struct rel_node *first, enum rel_resource dominant,
    int64_t now)
{
	int64_t opens;

	SPD_LOCKED();
	if (first == NULL)
		return (NULL);
	if (first->state == REL_THROTTLED)
		return ("limit");
	if (first->state == REL_IN_CLASS)
		return ("group");
	if (dominant == REL_NET && spd_link_closed(now, &opens))
		return ("net");
	if (spd_slots_full())
		return ("slot");
	return (spd_enough_run(now) ? "worker" : "turn");
}

/* Copy a tenant's name, at most TEN_NAME_MAX bytes. */
static field_NAME
name_of(const char *name)
{
	field_NAME copy;
	size_t l = strlen(name);

	assert(l < sizeof copy.text);
	memcpy(copy.text, name, l + 1);
	return (copy);
}

static field_WAITS
waits_of(const struct spd_tenant *t)
{
	field_WAITS copy;

	memcpy(copy.count, t->waits, sizeof copy.count);
	return (copy);
}

/* Return what the tenant's last seconds were; all 0 if that is not wanted.
 * Caller holds spd_lock(). */
static field_LAST
last_of(const struct spd_tenant *t, unsigned parts)
{
	static const unsigned seconds[SPD_LAST] = SPD_LAST_S;
	double grown[REC__COUNTERS];
	field_LAST copy;
	double span;
	unsigned u;

	memset(&copy, 0, sizeof copy);
	for (u = 0; u < SPD_LAST && parts & SPD_FIELDS_LAST; u++) {
		span = (double)spd_recent(t, seconds[u], grown);
#define PER_S(counter)		(grown[counter] * 1e9 / span)
#define PART(counter)		(grown[counter] / span)
#define LAST_FIELD(name, value)	copy.of[u].name = (value);
#include "last_fields.h"
	}
	return (copy);
}

/*
 * Copy a tenant's fields.  parts: SPD_FIELDS_WHY: also those of its first
 * waiting request; to find it takes O(requests that wait in its group).
 * SPD_FIELDS_LAST: also its last seconds.  Caller holds spd_lock().
 */
void
spd_fields(struct spd_tenant *t, unsigned parts, int64_t now,
    struct spd_fields *f)
{
	const struct rel_node *first = parts & SPD_FIELDS_WHY ?
	    REL_TenantFirst(t->rel) : NULL;
	struct rel_tenant_stat st;

	CHECK_OBJ_NOTNULL(t, SPD_TENANT_MAGIC);
	SPD_LOCKED();
	f->owner = t->owner;
	f->tenant = name_of(spd_name(t));
	REL_TenantStat(spd_rel, t->rel, &st);
#define TENANT_FIELD(kind, name, key, counter, value)	\
	f->name = (value);
#include "tenant_fields.h"
}

/* Copy the sums over all tenants.  Caller holds spd_lock(). */
void
spd_sums(struct spd_sums *sums)
{

	SPD_LOCKED();
#define COPY_SUM(kind, name)	sums->name = (field_##kind)spd_vsc->name;
#define COPY_VSC(kind, name)
#define COPY_NO(kind, name)
#define TENANT_FIELD(kind, name, key, counter, value)	\
	COPY_##counter(kind, name)
#include "tenant_fields.h"
}

/*--------------------------------------------------------------------
 * Many tenants.  The caller frees the rows.  Every SPD_PAUSE rows the lock is
 * given up, so rows may differ in time.
 */

/* Copy the fields of all tenants.  parts: as for spd_fields().  Returns how many
 * rows there are. */
unsigned
spd_fields_all(unsigned parts, struct spd_fields **rows)
{
	struct ten_record *rec;
	unsigned space, n;
	int64_t now;

	spd_lock();
	space = TEN_Count(spd_tenants) + 64;
	spd_unlock();
	*rows = calloc(space, sizeof **rows);
	AN(*rows);
	spd_lock();
	now = METER_Now();
	for (n = 0; n < space && (rec = TEN_At(spd_tenants, n)) != NULL; n++) {
		spd_fields(TEN_Data(rec), parts, now, &(*rows)[n]);
		spd_pause(n);
	}
	spd_unlock();
	return (n);
}

/*--------------------------------------------------------------------
 * A page of tenants, in the order of names.  Only the CLI asks for pages, so one
 * thread does.  The sorted names are kept for a while, for the next page.  The
 * memory of the rows is used again, if it is not very large.
 */

#define NAMES_KEPT	INT64_C(10000000000)	/* ns */
#define ROWS_KEPT	4000U

static struct {
	const char		**name;		/* sorted */
	char			*text;
	unsigned		n;
	int64_t			at;		/* ns, when they were copied */
} names;

static struct {
	struct spd_fields	*row;
	unsigned		space;
} page;

static int
name_cmp(const void *a, const void *b)
{

	return (strcmp(*(const char * const *)a, *(const char * const *)b));
}

/* Copy the names that come after `after`, and sort them. */
static void
copy_names(const char *after)
{
	struct ten_record *rec;
	unsigned space, u;
	char *p;

	free(names.name);
	free(names.text);
	spd_lock();
	space = TEN_Count(spd_tenants) + 64;
	spd_unlock();
	names.name = calloc(space, sizeof *names.name);
	names.text = p = malloc(space * (TEN_NAME_MAX + 1UL));
	AN(names.name);
	AN(p);
	names.n = 0;
	names.at = METER_Now();
	spd_lock();
	for (u = 0; u < space && (rec = TEN_At(spd_tenants, u)) != NULL; u++) {
		if (strcmp(rec->name, after) > 0) {
			memcpy(p, rec->name, rec->namelen + 1UL);
			names.name[names.n++] = p;
			p += rec->namelen + 1UL;
		}
		spd_pause(u);
	}
	spd_unlock();
	qsort(names.name, names.n, sizeof *names.name, name_cmp);
}

/* Return the names that come after `after`, and in *n how many there are. */
static const char **
names_after(const char *after, unsigned *n)
{
	const char **p = NULL;

	if (names.n > 0 && METER_Now() - names.at < NAMES_KEPT)
		p = bsearch(&after, names.name, names.n, sizeof *names.name,
		    name_cmp);
	if (p != NULL)
		p++;
	else {
		copy_names(after);
		p = names.name;
	}
	*n = (unsigned)(names.name + names.n - p);
	return (p);
}

/* Return the names that match glob.  The caller frees them. */
static const char **
matching(const char **name, unsigned *n, const char *glob)
{
	const char **found;
	unsigned u, m = 0;

	found = calloc(*n + 1UL, sizeof *found);
	AN(found);
	for (u = 0; u < *n; u++)
		if (!fnmatch(glob, name[u], 0))
			found[m++] = name[u];
	*n = m;
	return (found);
}

/*
 * Copy the fields of the tenants whose names come after `after`, and match glob
 * (or NULL): at most `most` of them, in the order of names.  If `after` is among
 * the kept names, these are used: a tenant that came since they were copied is
 * missing.  Returns how many rows there are: fewer than `most` only if no name is
 * left.  The rows are valid until the next call.
 */
unsigned
spd_fields_after(unsigned parts, const char *after, const char *glob,
    unsigned most, struct spd_fields **rows)
{
	const char **name, **found = NULL;
	struct spd_tenant *t;
	unsigned all, space, u, n = 0;
	int64_t now;

	name = names_after(after, &all);
	if (glob != NULL)
		name = found = matching(name, &all, glob);
	space = vmin(all, most);
	if (space > page.space || page.space > ROWS_KEPT) {
		free(page.row);
		page.row = calloc(space + 1UL, sizeof *page.row);
		AN(page.row);
		page.space = space;
	}
	*rows = page.row;
	spd_lock();
	now = METER_Now();
	for (u = 0; u < all && n < space; u++) {
		t = spd_tenant_find(name[u], strlen(name[u]));
		if (t != NULL)		/* not evicted meanwhile */
			spd_fields(t, parts, now, &page.row[n++]);
		spd_pause(u);
	}
	spd_unlock();
	free(found);
	return (n);
}
