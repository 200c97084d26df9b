/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The CLI commands sandpaper.list and sandpaper.show.
 *
 * The numbers are copied under the lock, and printed without it.
 */

#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spd.h"

#include "vcli_serve.h"
#include "vsb.h"

#define SPD_LIST_ROWS	50		/* default of <n> */

/*--------------------------------------------------------------------
 * Copy the numbers
 */

struct snapshot {
	const char		*policy;
	enum spd_mode		mode;
	unsigned		slots, open, running, lent;
	unsigned		waiting, tenants;
	int64_t			residual;
	uint64_t		overflows, would_refuse;
	struct spd_link_stat	net;
	struct spd_new_stat	news;
	unsigned		rows;
	struct spd_fields	*row;
};

/* Order rows by CPU time, the most first, then by name. */
static int
row_cmp(const void *p1, const void *p2)
{
	const struct spd_fields *a = p1, *b = p2;

	if (a->cpu_ns != b->cpu_ns)
		return (a->cpu_ns < b->cpu_ns ? 1 : -1);
	return (strcmp(a->tenant.text, b->tenant.text));
}

/* Copy the state and all tenants' numbers.  The caller frees s->row. */
static void
snap(struct snapshot *s)
{

	memset(s, 0, sizeof *s);
	spd_lock();
	s->policy = REL_PolicyName(REL_GetPolicy(spd_rel));
	s->mode = spd_set.mode;
	s->slots = spd_slots();
	s->open = spd_slots_open();
	s->running = spd_running();
	s->lent = spd_lent();
	s->waiting = REL_Waiting(spd_rel);
	s->tenants = TEN_Count(spd_tenants);
	s->overflows = TEN_Overflows(spd_tenants);
	s->would_refuse = spd_vsc->would_refuse;
	spd_new_stat(&s->news);
	s->residual = spd_residual();
	spd_link_stat(&s->net, METER_Now());
	spd_unlock();
	s->rows = spd_fields_all(1, &s->row);
	qsort(s->row, s->rows, sizeof *s->row, row_cmp);
}

/*--------------------------------------------------------------------
 * Print the numbers
 */

/* Print the tenant's group, and if sandpaper.set has changed it.  For a new
 * Host, print its seconds with good answers, and the seconds that it needs. */
static void
group_text(struct cli *cli, const struct spd_fields *r)
{

	if (r->group.text[0] != '\0')
		VCLI_Out(cli, "  %s", r->group.text);
	if (r->new_seconds >= 0)
		VCLI_Out(cli, " %d of %d s", r->new_seconds, NEW_PROOF);
	if (r->by_hand != NULL)
		VCLI_Out(cli, "  set by hand");
}

static void
list_text(struct cli *cli, const struct snapshot *s, unsigned rows)
{
	const struct meter_source *src = spd_source();
	const struct spd_fields *r;
	unsigned u;

	VCLI_Out(cli, "mode %s, policy %s, counter %s%s\n",
	    spd_cli_mode(s->mode), s->policy, src->name,
	    src->rseq ? ", measures every request" : ", measures a sample");
	VCLI_Out(cli, "slots %u, open %u, running %u, lent %u, waiting %u, "
	    "tenants %u, overflows %ju\n", s->slots, s->open, s->running,
	    s->lent, s->waiting, s->tenants, (uintmax_t)s->overflows);
	VCLI_Out(cli, "net rate %.3f Mbit/s, backlog %.1f kB, held %.3f s, "
	    "cpu outside of workers %.1f us per request\n",
	    (double)s->net.rate * 1e-6, (double)s->net.backlog * 1e-3,
	    (double)s->net.closed_ns * 1e-9, (double)s->residual * 1e-3);
	VCLI_Out(cli, "security patches: %s\n", SPD_SECURITY_PATCHES);
	if (s->mode == SPD_OBSERVE)
		VCLI_Out(cli, "nothing is enforced: sandpaper=on would have "
		    "refused %ju requests so far\n",
		    (uintmax_t)s->would_refuse);
	VCLI_Out(cli, "\n");
	if (s->news.hosts > 0)
		VCLI_Out(cli, "new Hosts %u, with good answers %u%s, "
		    "proven %u\n\n", s->news.hosts, s->news.evident,
		    s->news.crowded ? " (many: each waits for 60 s)" : "",
		    s->news.proven);
	spd_cli_stages_text(cli);
	VCLI_Out(cli, "%-24s %6s %7s %7s %9s %9s %3s %10s %10s %10s %8s"
	    "  %s\n", "tenant", "weight", "waiting", "running", "cpu_us",
	    "net_us", "dom", "requests", "cpu_s", "MB", "oldest_s", "group");
	for (u = 0; u < s->rows && u < rows; u++) {
		r = &s->row[u];
		VCLI_Out(cli, "%-24s %6.3g %7ju %7ju %9.1f %9.1f %3s %10ju "
		    "%10.3f %10.3f %8.3f", r->tenant.text, r->weight,
		    (uintmax_t)r->waiting, (uintmax_t)r->running,
		    (double)r->estimate_cpu_ns * 1e-3,
		    (double)r->estimate_net_ns * 1e-3, r->dominant,
		    (uintmax_t)r->requests, (double)r->cpu_ns * 1e-9,
		    (double)r->bytes * 1e-6, (double)r->oldest_ns * 1e-9);
		group_text(cli, r);
		VCLI_Out(cli, "\n");
	}
}

/* Return the version of the security patches without the word "Debian". */
static const char *
patches_version(void)
{
	static const char debian[] = "Debian ";
	const char *p = SPD_SECURITY_PATCHES;

	return (strncmp(p, debian, sizeof debian - 1) ?
	    p : p + sizeof debian - 1);
}

/*
 * Each kind of field, as JSON and as text.  JSON has seconds, and no field that
 * says "none".
 */
#define JSON(c, key, form, v)	VCLI_Out(c, ", \"%s\": " form, key, v)
#define TEXT(c, label, form, v)	VCLI_Out(c, "%-22s " form "\n", label, v)
#define UNIT(ns, unit)		((double)(ns) * (unit))

#define json_NUMBER(c, key, v)	JSON(c, key, "%ju", (uintmax_t)(v))
#define text_NUMBER(c, label, v) TEXT(c, label, "%ju", (uintmax_t)(v))
#define json_REAL(c, key, v)	JSON(c, key, "%.6g", v)
#define text_REAL(c, label, v)	TEXT(c, label, "%.6g", v)
#define json_PART(c, key, v)	JSON(c, key, "%.6f", v)
#define text_PART(c, label, v)	TEXT(c, label, "%.3f", v)
#define json_TIME(c, key, ns)	JSON(c, key, "%.9f", UNIT(ns, 1e-9))
#define text_TIME(c, label, ns)	TEXT(c, label, "%.6f", UNIT(ns, 1e-9))
#define json_COST(c, key, ns)	JSON(c, key, "%.9f", UNIT(ns, 1e-9))
#define text_COST(c, label, ns)	TEXT(c, label, "%.1f", UNIT(ns, 1e-3))
#define json_NAME(c, key, v)	json_WORD(c, key, (v).text)
#define text_NAME(c, label, v)	text_WORD(c, label, (v).text)

static void
json_WORD(struct cli *cli, const char *key, const char *v)
{

	if (v == NULL || *v == '\0')
		return;
	JSON(cli, key, "%s", "");
	spd_cli_string(cli, v);
}

static void
text_WORD(struct cli *cli, const char *label, const char *v)
{

	TEXT(cli, label, "%s", v != NULL && *v != '\0' ? v : "-");
}

static void
json_PROOF(struct cli *cli, const char *key, int s)
{

	if (s >= 0)
		JSON(cli, key, "%d", s);
}

static void
text_PROOF(struct cli *cli, const char *label, int s)
{

	if (s >= 0)
		VCLI_Out(cli, "%-22s %d of %d s in the last %d s\n", label, s,
		    NEW_PROOF, NEW_WINDOW);
}

/* Print a tenant as a JSON object. */
static void
row_json(struct cli *cli, const struct spd_fields *r)
{

	VCLI_Out(cli, "{\"tenant\": ");
	spd_cli_string(cli, r->tenant.text);
#define TENANT_FIELD(kind, name, key, label, counter, value)	\
	json_##kind(cli, key, r->name);
#include "tenant_fields.h"
	VCLI_Out(cli, "}");
}

static void
list_json(struct cli *cli, const char * const *av, const struct snapshot *s,
    unsigned rows)
{
	const struct meter_source *src = spd_source();
	unsigned u;

	VCLI_JSON_begin(cli, 2, av);
	VCLI_Out(cli, ",\n{\"mode\": \"%s\", \"policy\": \"%s\", "
	    "\"counter\": \"%s\", \"every_request\": %s,\n",
	    spd_cli_mode(s->mode), s->policy, src->name,
	    src->rseq ? "true" : "false");
	VCLI_Out(cli, "\"slots\": %u, \"open\": %u, \"running\": %u, "
	    "\"lent\": %u, \"waiting\": %u, \"tenants\": %u, "
	    "\"overflows\": %ju, \"would_refuse\": %ju,\n",
	    s->slots, s->open, s->running, s->lent, s->waiting, s->tenants,
	    (uintmax_t)s->overflows, (uintmax_t)s->would_refuse);
	VCLI_Out(cli, "\"residual_ns\": %jd, \"nic_rate_bps\": %ju, "
	    "\"nic_backlog_bytes\": %jd, \"nic_held_s\": %.6f,\n",
	    (intmax_t)s->residual, (uintmax_t)s->net.rate,
	    (intmax_t)s->net.backlog, (double)s->net.closed_ns * 1e-9);
	VCLI_Out(cli, "\"new_hosts\": %u, \"new_hosts_with_good_answers\": %u, "
	    "\"proven_hosts\": %u, \"many_new_hosts\": %s,\n", s->news.hosts,
	    s->news.evident, s->news.proven,
	    s->news.crowded ? "true" : "false");
	VCLI_Out(cli, "\"security_patches\": \"%s\",\n", patches_version());
	spd_cli_stages_json(cli);
	VCLI_Out(cli, "\"list\": [");
	for (u = 0; u < s->rows && u < rows; u++) {
		VCLI_Out(cli, "%s\n", u ? "," : "");
		row_json(cli, &s->row[u]);
	}
	VCLI_Out(cli, "\n]}");
	VCLI_JSON_end(cli);
}

static void
list(struct cli *cli, const char * const *av, int json)
{
	struct snapshot s;
	unsigned long rows = SPD_LIST_ROWS;
	int i = 2;

	if (av[i] != NULL && !strcmp(av[i], "-j"))
		i++;
	if (av[i] != NULL && spd_cli_number(cli, av[i++], 1, 1000000, &rows))
		return;
	if (spd_cli_no_more(cli, av[i]))
		return;
	snap(&s);
	if (json)
		list_json(cli, av, &s, (unsigned)rows);
	else
		list_text(cli, &s, (unsigned)rows);
	free(s.row);
}

static void v_matchproto_(cli_func_t)
cli_list(struct cli *cli, const char * const *av, void *priv)
{

	(void)priv;
	list(cli, av, 0);
}

static void v_matchproto_(cli_func_t)
cli_list_json(struct cli *cli, const char * const *av, void *priv)
{

	(void)priv;
	list(cli, av, 1);
}

/* Say why requests of the tenant are refused, if they are. */
static void
why_text(struct cli *cli, const struct spd_fields *r)
{

	if (r->overload == NULL || strcmp(r->overload, "refuses"))
		return;
	VCLI_Out(cli, "\nRequests of this tenant were refused in the last "
	    "second. They come faster than\nits share (%.3f) can serve them, "
	    "and would wait for longer than its target (%.3f s),\nor than "
	    "sandpaper_standing. What helps: cheaper requests, more answers "
	    "from the\ncache, more cores, or a higher weight if the share is "
	    "below 1.\n", r->share, (double)r->target_ns * 1e-9);
}

static void
show_text(struct cli *cli, const struct spd_fields *r)
{

	text_NAME(cli, "tenant", r->tenant);
#define TENANT_FIELD(kind, name, key, label, counter, value)	\
	text_##kind(cli, label, r->name);
#include "tenant_fields.h"
	why_text(cli, r);
}

static void
show(struct cli *cli, const char * const *av, int json)
{
	struct spd_tenant *t;
	struct spd_fields r;
	const char *name = av[2];

	if (json && av[3] != NULL)
		name = av[3];
	else if (spd_cli_no_more(cli, av[3]))
		return;
	memset(&r, 0, sizeof r);
	spd_lock();
	t = spd_tenant_find(name, strlen(name));
	if (t != NULL)
		spd_fields(t, 1, METER_Now(), &r);
	spd_unlock();
	if (t == NULL) {
		spd_cli_unknown(cli, name);
		return;
	}
	if (!json) {
		show_text(cli, &r);
		return;
	}
	VCLI_JSON_begin(cli, 2, av);
	VCLI_Out(cli, ",\n");
	row_json(cli, &r);
	VCLI_JSON_end(cli);
}

static void v_matchproto_(cli_func_t)
cli_show(struct cli *cli, const char * const *av, void *priv)
{

	(void)priv;
	show(cli, av, 0);
}

static void v_matchproto_(cli_func_t)
cli_show_json(struct cli *cli, const char * const *av, void *priv)
{

	(void)priv;
	show(cli, av, 1);
}

static struct cli_proto cmds[] = {
	{ CLICMD_SANDPAPER_LIST,		"", cli_list, cli_list_json },
	{ CLICMD_SANDPAPER_SHOW,		"", cli_show, cli_show_json },
	{ NULL }
};

void
spd_cli_show_init(void)
{

	CLI_AddFuncs(cmds);
}
