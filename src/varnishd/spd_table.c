/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The table of spd_table.h.  The numbers are copied, so it needs no lock.
 */

#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "spd.h"

#include "memory/fair.h"
#include "varnishd/spd_table.h"

#define FULL		.9		/* of the storages are used: there is
					 * no memory left over */

double
spd_row_requests(const struct spd_row *r)
{

	return ((double)r->f->hits + (double)r->f->misses);
}

/* Return how many hits more memory would bring, or 0 if that is not known. */
static double
hits_gained(const struct spd_row *r)
{

	return (isnan(r->gain) ? 0 : r->gain * spd_row_requests(r));
}

/* Order rows by the hits that more memory would bring, then by requests. */
static int
row_cmp(const void *p1, const void *p2)
{
	const struct spd_row *a = p1, *b = p2;

	if (hits_gained(a) != hits_gained(b))
		return (hits_gained(a) < hits_gained(b) ? 1 : -1);
	if (spd_row_requests(a) != spd_row_requests(b))
		return (spd_row_requests(a) < spd_row_requests(b) ? 1 : -1);
	return (strcmp(a->f->tenant.text, b->f->tenant.text));
}

/* Set each tenant's fair share.  If memory is left over, nobody's share is
 * limited: it is what the tenant has.  An owner would fill what it has, or what
 * its curve says if that is more.  Owners whose tenant has gone still have
 * objects, and tenants may share an owner. */
static void
divide(struct spd_table *t)
{
	uint32_t n = OWN_Room(spd_owners()), o;
	double used = 0;
	struct fair *fair, *f;
	struct spd_row *r;

	fair = calloc(n, sizeof *fair);
	AN(fair);
	for (o = 0; o < n; o++) {
		OWN_Settings(spd_owners(), o, &fair[o].set);
		fair[o].want = (double)OWN_Bytes(spd_owners(), o);
		used += fair[o].want;
	}
	for (r = t->row; r < t->row + t->rows; r++) {
		f = &fair[r->f->owner];
		f->want = fmax(f->want, CURVE_Fills(&r->curve));
		r->share = (double)r->f->cached_bytes;
	}
	if (used > FULL * t->stat.capacity) {
		FAIR_Divide(fair, n, t->stat.capacity);
		for (r = t->row; r < t->row + t->rows; r++)
			r->share = fair[r->f->owner].share;
	}
	free(fair);
}

/* Set what each tenant would gain, and all together.  Both are NAN without a
 * curve. */
static void
set_gains(struct spd_table *t)
{
	double now, more = SPD_TABLE_MORE * t->stat.capacity;
	double gained = 0, asked = 0;
	struct spd_row *r;

	for (r = t->row; r < t->row + t->rows; r++) {
		now = (double)r->f->cached_bytes;
		r->gain = CURVE_Hits(&r->curve, now + more) -
		    CURVE_Hits(&r->curve, now);
		r->fair_gain = CURVE_Hits(&r->curve, r->share) -
		    CURVE_Hits(&r->curve, now);
		if (!isnan(r->fair_gain)) {
			gained += r->fair_gain * spd_row_requests(r);
			asked += spd_row_requests(r);
		}
	}
	t->fair_gain = asked > 0 ? gained / asked : NAN;
}

/* Return the names of all owners that have a tenant, by their numbers.  The
 * caller frees the array. */
static const char **
names(const struct spd_table *t)
{
	const char **name;
	unsigned u;

	name = calloc(OWN_Room(spd_owners()), sizeof *name);
	AN(name);
	for (u = 0; u < t->rows; u++)
		name[t->fields[u].owner] = t->fields[u].tenant.text;
	name[OWN_OTHER] = TEN_OTHER;
	return (name);
}

/* Return the name of the tenant for which most of these were evicted. */
static const char *
evicted_by(const struct own_evictions *e, const char * const *name)
{

	if (e->others == 0)
		return ("-");
	return (name[e->mostly] != NULL ? name[e->mostly] : "(gone)");
}

/* Copy all numbers. */
void
spd_table(struct spd_table *t)
{
	const char **name;
	struct spd_row *r;

	memset(t, 0, sizeof *t);
	spd_cache_stat(&t->stat, 1);
	t->rows = spd_fields_all(0, &t->fields);
	t->row = calloc(t->rows, sizeof *t->row);
	AN(t->row);
	name = names(t);
	for (r = t->row; r < t->row + t->rows; r++) {
		r->f = &t->fields[r - t->row];
		OWN_Evictions(spd_owners(), r->f->owner, &r->evicted);
		r->by = evicted_by(&r->evicted, name);
		spd_cache_curve(r->f->owner, &r->curve);
		CURVE_Adjust(&r->curve, spd_row_requests(r));
	}
	free(name);
	divide(t);
	set_gains(t);
	qsort(t->row, t->rows, sizeof *t->row, row_cmp);
}

void
spd_table_free(struct spd_table *t)
{

	free(t->fields);
	free(t->row);
}
