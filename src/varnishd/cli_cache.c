/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The CLI command sandpaper.cache: what admission does, what each tenant has in
 * the cache, and what it would gain with more.
 *
 * The numbers are copied, and printed without a lock.
 */

#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spd.h"

#include "vcli_serve.h"
#include "varnishd/spd_fields.h"

#define MORE		.1		/* of the storage */
#define GB		1e9

static const char * const modes[] = { SPD_MODE_NAMES };

/*--------------------------------------------------------------------
 * Copy the numbers
 */

struct row {
	struct spd_fields	f;
	uint32_t		owner;
	struct own_evictions	evicted;
	const char		*mostly;	/* a name, or "-" */
	double			more;		/* hits, a part, with MORE */
};

struct table {
	struct spd_cache_stat	stat;
	unsigned		rows;
	struct row		*row;
};

static double
requests(const struct row *r)
{

	return ((double)r->f.hits + (double)r->f.misses);
}

/* Order rows by the hits that more memory would bring, then by requests. */
static int
row_cmp(const void *p1, const void *p2)
{
	const struct row *a = p1, *b = p2;
	double x = a->more * requests(a), y = b->more * requests(b);

	if (x != y)
		return (x < y ? 1 : -1);
	if (requests(a) != requests(b))
		return (requests(a) < requests(b) ? 1 : -1);
	return (strcmp(a->f.tenant.text, b->f.tenant.text));
}

/* Return which part of the owner's requests would be more with `bytes` than
 * with `now`, or 0 if that is not known. */
static double
gain(uint32_t owner, double now, double bytes)
{
	double more = spd_cache_hits(owner, bytes) - spd_cache_hits(owner, now);

	return (more > 0 ? more : 0);
}

/* Return the name of the tenant with this owner. */
static const char *
name_of(const struct table *t, const struct own_evictions *e)
{
	unsigned u;

	if (e->others == 0)
		return ("-");
	for (u = 0; u < t->rows; u++)
		if (t->row[u].owner == e->mostly)
			return (t->row[u].f.tenant.text);
	return ("(other)");
}

/* Copy all numbers.  The caller frees t->row. */
static void
snap(struct table *t)
{
	struct spd_tenant *tenant;
	struct ten_record *rec;
	struct row *r;
	unsigned u, space;
	int64_t now;

	memset(t, 0, sizeof *t);
	(void)spd_cache_stat(&t->stat, 1);
	spd_lock();
	space = TEN_Count(spd_tenants) + 64;
	spd_unlock();
	t->row = calloc(space, sizeof *t->row);
	AN(t->row);
	spd_lock();
	now = METER_Now();
	for (u = 0; t->rows < space &&
	    (rec = TEN_At(spd_tenants, u)) != NULL; u++) {
		r = &t->row[t->rows++];
		tenant = TEN_Data(rec);
		spd_fields(tenant, 0, now, &r->f);
		r->owner = tenant->owner;
		spd_pause(u);
	}
	spd_unlock();
	for (r = t->row; r < t->row + t->rows; r++) {
		OWN_Evictions(spd_owners(), r->owner, &r->evicted);
		r->more = gain(r->owner, (double)r->f.cached_bytes,
		    (double)r->f.cached_bytes + MORE * t->stat.capacity);
	}
	qsort(t->row, t->rows, sizeof *t->row, row_cmp);
	for (r = t->row; r < t->row + t->rows; r++)
		r->mostly = name_of(t, &r->evicted);
}

static double
part(double of, double all)
{

	return (all > 0 ? of / all : 0);
}

/*--------------------------------------------------------------------
 * Text
 */

#define SIZE		16		/* bytes of a text */

/* Write a size with its unit.  Returns buf. */
static const char *
size(char buf[SIZE], double bytes)
{
	static const char * const unit[] = { "B", "kB", "MB", "GB", "TB", "PB" };
	unsigned u = 0;

	if (!(bytes < 1e18))
		return (strcpy(buf, "all"));
	for (; bytes >= 999.5 && u + 1 < sizeof unit / sizeof *unit; u++)
		bytes /= 1000;
	(void)snprintf(buf, SIZE, "%.3g %s", bytes, unit[u]);
	return (buf);
}

static void
state_text(struct cli *cli, const struct spd_cache_stat *st)
{
	char b[2][SIZE];

	VCLI_Out(cli, "admission %s, c %s, tunes %ju, fallbacks %ju\n",
	    modes[cache_param->sandpaper_admission], size(b[0], st->c),
	    (uintmax_t)st->tunes, (uintmax_t)st->fallbacks);
	VCLI_Out(cli, "hits with this c %.1f %%, predicted %.1f %%, with all "
	    "objects %.1f %%\n", 100 * st->measured, 100 * st->predicted,
	    100 * st->measured_all);
	VCLI_Out(cli, "memory %s, storage %s, in transit %s\n\n",
	    modes[cache_param->sandpaper_memory], size(b[0], st->capacity),
	    size(b[1], (double)st->transit));
}

static void
sizes_text(struct cli *cli, const struct spd_cache_stat *st)
{
	char b[SIZE];
	unsigned u;
	int head = 0;

	for (u = 0; u < SPD_OCTAVES; u++) {
		if (st->count[SPD_ADMITTED][u] + st->count[SPD_REJECTED][u] +
		    st->count[SPD_LATE][u] + st->count[SPD_PASSED][u] == 0)
			continue;
		if (!head++)
			VCLI_Out(cli, "%-12s %10s %10s %10s %10s\n",
			    "from", "admitted", "rejected", "late", "passed");
		VCLI_Out(cli, "%-12s %10ju %10ju %10ju %10ju\n",
		    size(b, exp2(u)),
		    (uintmax_t)st->count[SPD_ADMITTED][u],
		    (uintmax_t)st->count[SPD_REJECTED][u],
		    (uintmax_t)st->count[SPD_LATE][u],
		    (uintmax_t)st->count[SPD_PASSED][u]);
	}
	if (head)
		VCLI_Out(cli, "\n");
}

static void
table_text(struct cli *cli, const struct table *t)
{
	const struct row *r;
	char b[3][SIZE];

	state_text(cli, &t->stat);
	sizes_text(cli, &t->stat);
	VCLI_Out(cli, "%-24s %10s %6s %6s %9s %9s %9s  %s\n", "tenant",
	    "requests", "hits%", "bytes%", "cached", "transit",
	    size(b[0], MORE * t->stat.capacity), "evicted_by");
	for (r = t->row; r < t->row + t->rows; r++)
		VCLI_Out(cli, "%-24s %10.0f %6.1f %6.1f %9s %9s %+8.1f%%  "
		    "%s\n", r->f.tenant.text, requests(r),
		    100 * part((double)r->f.hits, requests(r)),
		    100 * part((double)r->f.hit_bytes,
		    (double)r->f.hit_bytes + (double)r->f.miss_bytes),
		    size(b[0], (double)r->f.cached_bytes),
		    size(b[1], (double)r->f.transit_bytes), 100 * r->more,
		    r->mostly);
}

/* The hit ratios that the tenant would have with other amounts of memory */
static const double factor[] = { 0, .25, .5, 1, 2, 4 };
#define FACTORS		(sizeof factor / sizeof *factor)

static void
tenant_text(struct cli *cli, const struct row *r)
{
	double now = (double)r->f.cached_bytes;
	char b[2][SIZE];
	unsigned u;

	VCLI_Out(cli, "%-22s %s\n%-22s %.0f\n%-22s %.1f %%\n%-22s %s\n"
	    "%-22s %s\n%-22s %ju\n%-22s %ju\n%-22s %s\n", "tenant",
	    r->f.tenant.text, "requests", requests(r), "hits",
	    100 * part((double)r->f.hits, requests(r)), "in the cache",
	    size(b[0], now), "in transit",
	    size(b[1], (double)r->f.transit_bytes), "evicted for its own",
	    (uintmax_t)r->evicted.own, "evicted for others",
	    (uintmax_t)r->evicted.others, "mostly for", r->mostly);
	if (isnan(spd_cache_hits(r->owner, now)))
		return;
	VCLI_Out(cli, "%-22s %+.1f %%\n\n%-12s %s\n", "1 GB more",
	    100 * gain(r->owner, now, now + GB), "memory", "hits%");
	for (u = 0; u < FACTORS; u++)
		VCLI_Out(cli, "%-12s %.1f\n", size(b[0], factor[u] * now),
		    100 * spd_cache_hits(r->owner, factor[u] * now));
}

/*--------------------------------------------------------------------
 * JSON
 */

static void
row_json(struct cli *cli, const struct row *r)
{
	double now = (double)r->f.cached_bytes;
	unsigned u;

	VCLI_Out(cli, "{\"tenant\": ");
	spd_cli_string(cli, r->f.tenant.text);
	VCLI_Out(cli, ", \"hits\": %ju, \"misses\": %ju, \"hit_bytes\": %ju, "
	    "\"miss_bytes\": %ju, \"cached_bytes\": %ju, "
	    "\"transit_bytes\": %ju, \"evicted_own\": %ju, "
	    "\"evicted_others\": %ju, \"evicted_by\": ",
	    (uintmax_t)r->f.hits, (uintmax_t)r->f.misses,
	    (uintmax_t)r->f.hit_bytes, (uintmax_t)r->f.miss_bytes,
	    (uintmax_t)r->f.cached_bytes, (uintmax_t)r->f.transit_bytes,
	    (uintmax_t)r->evicted.own, (uintmax_t)r->evicted.others);
	spd_cli_string(cli, r->mostly);
	VCLI_Out(cli, ", \"gain\": %.6f, \"curve\": [", r->more);
	for (u = 0; u < FACTORS &&
	    !isnan(spd_cache_hits(r->owner, now)); u++)
		VCLI_Out(cli, "%s{\"bytes\": %.0f, \"hits\": %.6f}",
		    u > 0 ? ", " : "", factor[u] * now,
		    spd_cache_hits(r->owner, factor[u] * now));
	VCLI_Out(cli, "]}");
}

static void
table_json(struct cli *cli, const char * const *av, const struct table *t)
{
	const struct spd_cache_stat *st = &t->stat;
	unsigned u, n = 0;

	VCLI_JSON_begin(cli, 2, av);
	VCLI_Out(cli, ",\n{\"admission\": \"%s\", \"memory\": \"%s\", ",
	    modes[cache_param->sandpaper_admission],
	    modes[cache_param->sandpaper_memory]);
	if (isfinite(st->c))
		VCLI_Out(cli, "\"c\": %.0f, ", st->c);
	VCLI_Out(cli, "\"tunes\": %ju, \"fallbacks\": %ju, "
	    "\"predicted\": %.6f, \"measured\": %.6f, "
	    "\"measured_all\": %.6f, \"storage_bytes\": %.0f, "
	    "\"transit_bytes\": %ju,\n\"sizes\": [", (uintmax_t)st->tunes,
	    (uintmax_t)st->fallbacks, st->predicted, st->measured,
	    st->measured_all, st->capacity, (uintmax_t)st->transit);
	for (u = 0; u < SPD_OCTAVES; u++) {
		if (st->count[SPD_ADMITTED][u] + st->count[SPD_REJECTED][u] +
		    st->count[SPD_LATE][u] + st->count[SPD_PASSED][u] == 0)
			continue;
		VCLI_Out(cli, "%s{\"from\": %.0f, \"admitted\": %ju, "
		    "\"rejected\": %ju, \"late\": %ju, \"passed\": %ju}",
		    n++ > 0 ? ", " : "", exp2(u),
		    (uintmax_t)st->count[SPD_ADMITTED][u],
		    (uintmax_t)st->count[SPD_REJECTED][u],
		    (uintmax_t)st->count[SPD_LATE][u],
		    (uintmax_t)st->count[SPD_PASSED][u]);
	}
	VCLI_Out(cli, "],\n\"list\": [");
	for (u = 0; u < t->rows; u++) {
		VCLI_Out(cli, "%s\n", u > 0 ? "," : "");
		row_json(cli, &t->row[u]);
	}
	VCLI_Out(cli, "\n]}");
	VCLI_JSON_end(cli);
}

/*--------------------------------------------------------------------
 * The command
 */

static const struct row *
row_of(const struct table *t, const char *name)
{
	unsigned u;

	for (u = 0; u < t->rows; u++)
		if (!strcmp(t->row[u].f.tenant.text, name))
			return (&t->row[u]);
	return (NULL);
}

/* Print one tenant.  Returns 0 if it is not known. */
static int
one(struct cli *cli, const char * const *av, const struct table *t,
    const char *name, int json)
{
	const struct row *r = row_of(t, name);

	if (r == NULL)
		return (0);
	if (!json) {
		tenant_text(cli, r);
		return (1);
	}
	VCLI_JSON_begin(cli, 2, av);
	VCLI_Out(cli, ",\n");
	row_json(cli, r);
	VCLI_JSON_end(cli);
	return (1);
}

static void
cache(struct cli *cli, const char * const *av, int json)
{
	const char *name = json ? av[3] : av[2];
	struct table t;

	if (spd_cli_no_more(cli, name == NULL ? NULL : av[json ? 4 : 3]))
		return;
	snap(&t);
	if (name == NULL && json)
		table_json(cli, av, &t);
	else if (name == NULL)
		table_text(cli, &t);
	else if (!one(cli, av, &t, name, json))
		spd_cli_unknown(cli, name);
	free(t.row);
}

static void v_matchproto_(cli_func_t)
cli_cache(struct cli *cli, const char * const *av, void *priv)
{

	(void)priv;
	cache(cli, av, 0);
}

static void v_matchproto_(cli_func_t)
cli_cache_json(struct cli *cli, const char * const *av, void *priv)
{

	(void)priv;
	cache(cli, av, 1);
}

static struct cli_proto cmds[] = {
	{ CLICMD_SANDPAPER_CACHE,		"", cli_cache, cli_cache_json },
	{ NULL }
};

void
spd_cli_cache_init(void)
{

	CLI_AddFuncs(cmds);
}
