/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The CLI command sandpaper.cache prints a table of the cache (spd_table.h), as
 * text or JSON.
 */

#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spd.h"
#include "cli.h"

#include "vcli_serve.h"
#include "varnishd/spd_table.h"

#define ROWS		100U		/* tenants to print */

/* The amounts of memory for which a tenant's hit ratio is printed: factors of
 * what it has now */
static const double factor[] = { .25, .5, 1, 2, 4 };
#define FACTORS		(sizeof factor / sizeof *factor)

static const char *
memory_mode(void)
{
	static const char * const names[] = { SPD_SWITCH_NAMES };

	return (names[cache_param->sandpaper_memory]);
}

/* Return how many objects of these sizes were fetched with admission. */
static uint64_t
fetched(const struct spd_cache_stat *st, unsigned octave)
{
	uint64_t sum = 0;
	unsigned a;

	for (a = 0; a < SPD_ADMISSIONS; a++)
		sum += st->count[a][octave];
	return (sum);
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
	static const char * const unit[] = {
	    "B", "kB", "MB", "GB", "TB", "PB"
	};
	unsigned u = 0;

	if (!(bytes < 1e18))
		return (strcpy(buf, "unlimited"));
	for (; bytes >= 999.5 && u + 1 < sizeof unit / sizeof *unit; u++)
		bytes /= 1000;
	(void)snprintf(buf, SIZE, "%.3g %s", bytes, unit[u]);
	return (buf);
}

/* Write a gain in percentage points.  Returns buf. */
static const char *
points(char buf[SIZE], double gained)
{

	if (isnan(gained))
		return (strcpy(buf, "-"));
	(void)snprintf(buf, SIZE, "%+.1f", 100 * gained);
	return (buf);
}

static void
state_text(struct cli *cli, const struct spd_table *t)
{
	const struct spd_cache_stat *st = &t->stat;
	char b[3][SIZE];

	VCLI_Out(cli, "admission %s, c %s, windows %ju, fallbacks %ju\n",
	    spd_cli_mode(cache_param->sandpaper_admission), size(b[0], st->c),
	    (uintmax_t)st->tunes, (uintmax_t)st->fallbacks);
	if (st->tunes == 0)
		VCLI_Out(cli, "no window of requests is over yet\n");
	else
		VCLI_Out(cli, "hits with this c %.1f %%, predicted %.1f %%, "
		    "with all objects %.1f %%\n", 100 * st->measured,
		    100 * st->predicted, 100 * st->measured_all);
	VCLI_Out(cli, "memory %s, storage %s, in transit %s\n",
	    memory_mode(), size(b[0], st->capacity),
	    size(b[1], (double)st->transit));
	if (!cache_param->sandpaper_memory && !isnan(t->fair_gain))
		VCLI_Out(cli, "with memory on, hits in all %s percentage "
		    "points\n", points(b[2], t->fair_gain));
	VCLI_Out(cli, "\n");
}

static void
sizes_text(struct cli *cli, const struct spd_cache_stat *st)
{
	char b[SIZE];
	unsigned u, lines = 0;

	for (u = 0; u < SPD_OCTAVES; u++) {
		if (fetched(st, u) == 0)
			continue;
		if (lines++ == 0)
			VCLI_Out(cli, "%-12s %10s %10s %10s %10s\n",
			    "from", "admitted", "rejected", "late", "passed");
		VCLI_Out(cli, "%-12s %10ju %10ju %10ju %10ju\n",
		    size(b, exp2(u)),
		    (uintmax_t)st->count[SPD_ADMITTED][u],
		    (uintmax_t)st->count[SPD_REJECTED][u],
		    (uintmax_t)st->count[SPD_LATE][u],
		    (uintmax_t)st->count[SPD_PASSED][u]);
	}
	if (lines > 0)
		VCLI_Out(cli, "\n");
}

static void
table_text(struct cli *cli, const struct spd_table *t)
{
	const struct spd_row *r;
	char b[5][SIZE], head[SIZE + 1];

	state_text(cli, t);
	sizes_text(cli, &t->stat);
	(void)snprintf(head, sizeof head, "+%s",
	    size(b[0], SPD_TABLE_MORE * t->stat.capacity));
	VCLI_Out(cli, "%-24s %10s %6s %6s %9s %9s %9s %9s %6s  %s\n",
	    "tenant", "requests", "hits%", "bytes%", "cached", "transit", head,
	    "fair", "+fair", "evicted_by");
	for (r = t->row; r < t->row + vmin(t->rows, ROWS); r++)
		VCLI_Out(cli, "%-24s %10.0f %6.1f %6.1f %9s %9s %9s %9s %6s  "
		    "%s\n",
		    r->f->tenant.text, spd_row_requests(r),
		    100 * part((double)r->f->hits, spd_row_requests(r)),
		    100 * part((double)r->f->hit_bytes,
		    (double)r->f->hit_bytes + (double)r->f->miss_bytes),
		    size(b[0], (double)r->f->cached_bytes),
		    size(b[1], (double)r->f->transit_bytes),
		    points(b[2], r->gain), size(b[3], r->share),
		    points(b[4], r->fair_gain), r->by);
}

static void
tenant_text(struct cli *cli, const struct spd_row *r, double more)
{
	double now = (double)r->f->cached_bytes;
	char b[3][SIZE];
	unsigned u;

	VCLI_Out(cli, "%-22s %s\n%-22s %.0f\n%-22s %.1f %%\n%-22s %s\n"
	    "%-22s %s\n%-22s %s\n%-22s %ju\n%-22s %ju\n%-22s %s\n", "tenant",
	    r->f->tenant.text, "requests", spd_row_requests(r), "hits",
	    100 * part((double)r->f->hits, spd_row_requests(r)), "in the cache",
	    size(b[0], now), "in transit",
	    size(b[1], (double)r->f->transit_bytes), "fair share",
	    size(b[2], r->share), "evicted for itself",
	    (uintmax_t)r->evicted.own, "evicted for others",
	    (uintmax_t)r->evicted.others, "most of these for", r->by);
	if (isnan(r->gain))
		return;
	VCLI_Out(cli, "\n%-12s %s\n", "memory", "hits%");
	for (u = 0; u < FACTORS && now > 0; u++)
		VCLI_Out(cli, "%-12s %.1f\n", size(b[0], factor[u] * now),
		    100 * CURVE_Hits(&r->curve, factor[u] * now));
	VCLI_Out(cli, "%-12s %.1f\n", size(b[0], now + more),
	    100 * CURVE_Hits(&r->curve, now + more));
}

/*--------------------------------------------------------------------
 * JSON
 */

/* Begin the object of a tenant.  The caller ends it. */
static void
row_json(struct cli *cli, const struct spd_row *r)
{
	const struct spd_fields *f = r->f;

	VCLI_Out(cli, "{\"tenant\": ");
	spd_cli_string(cli, f->tenant.text);
	VCLI_Out(cli, ", \"hits\": %ju, \"misses\": %ju, \"hit_bytes\": %ju, "
	    "\"miss_bytes\": %ju, \"cached_bytes\": %ju, "
	    "\"transit_bytes\": %ju, \"evicted_own\": %ju, "
	    "\"evicted_others\": %ju, \"evicted_by\": ",
	    (uintmax_t)f->hits, (uintmax_t)f->misses,
	    (uintmax_t)f->hit_bytes, (uintmax_t)f->miss_bytes,
	    (uintmax_t)f->cached_bytes, (uintmax_t)f->transit_bytes,
	    (uintmax_t)r->evicted.own, (uintmax_t)r->evicted.others);
	spd_cli_string(cli, r->by);
	VCLI_Out(cli, ", \"fair_bytes\": %.0f", r->share);
	if (!isnan(r->gain))
		VCLI_Out(cli, ", \"gain\": %.6f, \"fair_gain\": %.6f", r->gain,
		    r->fair_gain);
}

static void
curve_json(struct cli *cli, const struct spd_row *r)
{
	double bytes;
	unsigned u;

	VCLI_Out(cli, ", \"curve\": [");
	for (u = 0; u < FACTORS && !isnan(r->gain); u++) {
		bytes = factor[u] * (double)r->f->cached_bytes;
		VCLI_Out(cli, "%s{\"bytes\": %.0f, \"hits\": %.6f}",
		    u > 0 ? ", " : "", bytes, CURVE_Hits(&r->curve, bytes));
	}
	VCLI_Out(cli, "]");
}

static void
sizes_json(struct cli *cli, const struct spd_cache_stat *st)
{
	unsigned u, n = 0;

	for (u = 0; u < SPD_OCTAVES; u++) {
		if (fetched(st, u) == 0)
			continue;
		VCLI_Out(cli, "%s{\"from\": %.0f, \"admitted\": %ju, "
		    "\"rejected\": %ju, \"late\": %ju, \"passed\": %ju}",
		    n++ > 0 ? ", " : "", exp2(u),
		    (uintmax_t)st->count[SPD_ADMITTED][u],
		    (uintmax_t)st->count[SPD_REJECTED][u],
		    (uintmax_t)st->count[SPD_LATE][u],
		    (uintmax_t)st->count[SPD_PASSED][u]);
	}
}

static void
table_json(struct cli *cli, const char * const *av, const struct spd_table *t)
{
	const struct spd_cache_stat *st = &t->stat;
	unsigned u;

	VCLI_JSON_begin(cli, 2, av);
	VCLI_Out(cli, ",\n{\"admission\": \"%s\", \"memory\": \"%s\", ",
	    spd_cli_mode(cache_param->sandpaper_admission), memory_mode());
	if (isfinite(st->c))
		VCLI_Out(cli, "\"c\": %.0f, ", st->c);
	if (!isnan(t->fair_gain))
		VCLI_Out(cli, "\"fair_gain\": %.6f, ", t->fair_gain);
	VCLI_Out(cli, "\"windows\": %ju, \"fallbacks\": %ju, "
	    "\"predicted\": %.6f, \"measured\": %.6f, "
	    "\"measured_all\": %.6f, \"storage_bytes\": %.0f, "
	    "\"transit_bytes\": %ju,\n\"sizes\": [", (uintmax_t)st->tunes,
	    (uintmax_t)st->fallbacks, st->predicted, st->measured,
	    st->measured_all, st->capacity, (uintmax_t)st->transit);
	sizes_json(cli, st);
	VCLI_Out(cli, "],\n\"list\": [");
	for (u = 0; u < vmin(t->rows, ROWS); u++) {
		VCLI_Out(cli, "%s\n", u > 0 ? "," : "");
		row_json(cli, &t->row[u]);
		VCLI_Out(cli, "}");
	}
	VCLI_Out(cli, "\n]}");
	VCLI_JSON_end(cli);
}

/*--------------------------------------------------------------------
 * The command
 */

/* Print one tenant. */
static void
one(struct cli *cli, const char * const *av, const struct spd_table *t,
    const char *name, int json)
{
	const struct spd_row *r;

	for (r = t->row; r < t->row + t->rows; r++)
		if (!strcmp(r->f->tenant.text, name))
			break;
	if (r == t->row + t->rows) {
		spd_cli_unknown(cli, name);
		return;
	}
	if (!json) {
		tenant_text(cli, r, SPD_TABLE_MORE * t->stat.capacity);
		return;
	}
	VCLI_JSON_begin(cli, 2, av);
	VCLI_Out(cli, ",\n");
	row_json(cli, r);
	curve_json(cli, r);
	VCLI_Out(cli, "}");
	VCLI_JSON_end(cli);
}

static void
cache(struct cli *cli, const char * const *av, int json)
{
	const char *name = json ? av[3] : av[2];
	struct spd_table t;

	if (spd_cli_no_more(cli, name == NULL ? NULL : av[json ? 4 : 3]))
		return;
	spd_table(&t);
	if (name != NULL)
		one(cli, av, &t, name, json);
	else if (json)
		table_json(cli, av, &t);
	else
		table_text(cli, &t);
	spd_table_free(&t);
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
