/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The CLI command sandpaper.list: the state, and many tenants.
 *
 * The state, the tenants and the sums are copied under the lock, one after the
 * other, and sorted and printed without it.
 * tbl/sandpaper_cli.h has the options.
 */

#include "config.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spd.h"
#include "cli.h"

#include "vcli_serve.h"
#include "vtim.h"

#define LIST_ROWS	50U		/* default of <n> */
#define BY_NAME		(-1)		/* a sort key */

static const unsigned last_s[SPD_LAST] = SPD_LAST_S;
static double started;			/* s, the time of day */

/*--------------------------------------------------------------------
 * The arguments
 */

struct choice {
	unsigned long		rows;
	const char		*after;		/* NULL: from the first one */
	const char		*glob;		/* NULL: all */
	uint64_t		keys;		/* of JSON: a mask */
	int			sort;		/* a key, or BY_NAME */
	int			given;		/* -s was */
	int			table;		/* of JSON */
	unsigned		last;		/* index of last_s[] */
};

/* Say that there is no such key, and set the CLI's error. */
static void
unknown_key(struct cli *cli, const char *key, size_t len)
{
	const char *name;
	unsigned u;

	VCLI_Out(cli, "\"%.*s\" is no key. Keys are tenant", (int)len, key);
	for (u = 0; (name = spd_row_name(u)) != NULL; u++)
		VCLI_Out(cli, ", %s", name);
	VCLI_SetResult(cli, CLIS_PARAM);
}

/* Read the keys of -c.  Returns 0, or -1 with the CLI's error set. */
static int
read_keys(struct cli *cli, const char *arg, uint64_t *keys)
{
	size_t len;
	int key;

	for (*keys = 0; ; arg += len + 1) {
		len = strcspn(arg, ",");
		key = spd_row_key(arg, len);
		if (key >= 0 && spd_row_mask(key) == 0) {
			VCLI_Out(cli, "\"%.*s\" is a part of the key last: "
			    "use last", (int)len, arg);
			VCLI_SetResult(cli, CLIS_PARAM);
			return (-1);
		}
		if (key >= 0)
			*keys |= spd_row_mask(key);
		else if (len != 6 || strncmp(arg, "tenant", len)) {
			unknown_key(cli, arg, len);
			return (-1);
		}
		if (arg[len] == '\0')
			return (0);
	}
}

/* Read the key of -s.  Returns 0, or -1 with the CLI's error set. */
static int
read_sort(struct cli *cli, const char *arg, int *sort)
{

	*sort = BY_NAME;
	if (!strcmp(arg, "tenant"))
		return (0);
	*sort = spd_row_key(arg, strlen(arg));
	if (*sort >= 0 && strcmp(arg, "last") && strcmp(arg, "waits"))
		return (0);
	unknown_key(cli, arg, strlen(arg));
	return (-1);
}

/* Read the seconds of -w.  Returns 0, or -1 with the CLI's error set. */
static int
read_last(struct cli *cli, const char *arg, unsigned *last)
{
	char *e;
	unsigned long s = strtoul(arg, &e, 10);

	for (*last = 0; *last < SPD_LAST; (*last)++)
		if (*arg >= '0' && *arg <= '9' && *e == '\0' &&
		    s == last_s[*last])
			return (0);
	VCLI_Out(cli, "\"%s\" is not allowed: use -w 1, -w 10 or -w 60", arg);
	VCLI_SetResult(cli, CLIS_PARAM);
	return (-1);
}

/* Read an option and its value.  Returns 0, or -1 with the CLI's error set. */
static int
read_option(struct cli *cli, const char *option, const char *arg,
    struct choice *c)
{

	if (strlen(option) != 2 || strchr("acfsw", option[1]) == NULL) {
		VCLI_Out(cli, "\"%s\" is no option: use -j first, then -a, -c, "
		    "-f, -s, -t or -w", option);
	} else if (arg == NULL) {
		VCLI_Out(cli, "Option %s needs a value", option);
	} else
		switch (option[1]) {
		case 'a':
			c->after = arg;
			return (0);
		case 'c':
			return (read_keys(cli, arg, &c->keys));
		case 'f':
			c->glob = arg;
			return (0);
		case 's':
			c->given = 1;
			return (read_sort(cli, arg, &c->sort));
		default:
			return (read_last(cli, arg, &c->last));
		}
	VCLI_SetResult(cli, CLIS_PARAM);
	return (-1);
}

/* Read all arguments.  Returns 0, or -1 with the CLI's error set. */
static int
read_choice(struct cli *cli, const char * const *av, int json,
    struct choice *c)
{
	unsigned i = 2;

	*c = (struct choice){ .rows = LIST_ROWS, .keys = UINT64_MAX,
	    .sort = spd_row_key("used_part", 9), .last = 1 };
	if (av[i] != NULL && !strcmp(av[i], "-j"))
		i++;
	for (; av[i] != NULL && av[i][0] == '-'; i++)
		if (!strcmp(av[i], "-t"))
			c->table = 1;
		else if (read_option(cli, av[i], av[i + 1], c))
			return (-1);
		else
			i++;
	if (av[i] != NULL &&
	    spd_cli_number(cli, av[i++], 1, 1000000, &c->rows))
		return (-1);
	if (av[i - 1] != NULL && spd_cli_no_more(cli, av[i]))
		return (-1);
	if (c->after != NULL && c->given && c->sort != BY_NAME)
		VCLI_Out(cli, "-a goes on in the order of names: leave out -s");
	else if ((c->keys != UINT64_MAX || c->table) && !json)
		VCLI_Out(cli, "%s is for JSON: use -j as the first option",
		    c->table ? "-t" : "-c");
	else {
		if (c->after != NULL)
			c->sort = BY_NAME;
		return (0);
	}
	VCLI_SetResult(cli, CLIS_PARAM);
	return (-1);
}

/*--------------------------------------------------------------------
 * Copy the numbers
 */

struct snapshot {
	const char		*policy;
	enum spd_mode		mode;
	unsigned		slots, open, running, lent;
	unsigned		waiting, tenants;
	int64_t			residual;
	uint64_t		overflows, enqueued;
	struct spd_link_stat	net;
	struct spd_new_stat	news;
	struct spd_sums		sums;
	unsigned		rows;
	struct spd_fields	*row;
	const struct spd_fields	**sorted;	/* of these, those that match */
	unsigned		shown;		/* of those, how many to print */
};

/* For row_cmp(): qsort() passes nothing to it.  The CLI has one thread. */
static const struct choice *comparing;

/* Order rows by the key, the most first, then by CPU time, then by name. */
static int
row_cmp(const void *p1, const void *p2)
{
	const struct spd_fields *a = *(const struct spd_fields * const *)p1;
	const struct spd_fields *b = *(const struct spd_fields * const *)p2;
	double va = 0, vb = 0;

	if (comparing->sort != BY_NAME) {
		va = spd_row_value(a, comparing->sort, comparing->last);
		vb = spd_row_value(b, comparing->sort, comparing->last);
		if (va == vb) {
			va = (double)a->cpu_ns;
			vb = (double)b->cpu_ns;
		}
	}
	if (va != vb)
		return (va < vb ? 1 : -1);
	return (strcmp(a->tenant.text, b->tenant.text));
}

/* Choose the rows to print, and sort them.  With -a they are chosen and sorted. */
static void
sort(struct snapshot *s, const struct choice *c)
{
	unsigned u;

	s->sorted = calloc(s->rows + 1, sizeof *s->sorted);
	AN(s->sorted);
	for (u = 0; u < s->rows; u++)
		if (c->after != NULL || c->glob == NULL ||
		    !fnmatch(c->glob, s->row[u].tenant.text, 0))
			s->sorted[s->shown++] = &s->row[u];
	comparing = c;
	if (c->after == NULL)
		qsort(s->sorted, s->shown, sizeof *s->sorted, row_cmp);
	if (s->shown > c->rows)
		s->shown = (unsigned)c->rows;
}

/* Copy the state and the tenants' numbers.  The caller calls forget(). */
static void
snap(struct snapshot *s, const struct choice *c)
{
	unsigned parts = spd_row_parts(c->keys, c->sort);

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
	spd_new_stat(&s->news);
	s->residual = spd_residual();
	spd_link_stat(&s->net, METER_Now());
	spd_unlock();
	s->rows = c->after != NULL ? spd_fields_after(parts, c->after, c->glob,
	    (unsigned)c->rows, &s->row) :
	    spd_fields_all(parts, &s->row);
	spd_lock();
	spd_sums(&s->sums);
	s->enqueued = spd_vsc->enqueued;
	spd_unlock();
	sort(s, c);
}

static void
forget(struct snapshot *s, const struct choice *c)
{

	free(s->sorted);
	if (c->after == NULL)
		free(s->row);		/* else they are kept */
}

/*--------------------------------------------------------------------
 * Text
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
state_text(struct cli *cli, const struct snapshot *s)
{
	const struct meter_source *src = spd_source();

	VCLI_Out(cli, "mode %s, policy %s, counter %s%s\n",
	    spd_cli_mode(s->mode), s->policy, src->name,
	    src->rseq ? ", measures every request" : ", measures a sample");
	VCLI_Out(cli, "slots %u, slots_open %u, running %u, lent %u, "
	    "waiting %u, tenants %u, tenants_overflow %ju\n", s->slots,
	    s->open, s->running, s->lent, s->waiting, s->tenants,
	    (uintmax_t)s->overflows);
	if (s->net.rate == 0)
		VCLI_Out(cli, "net rate not known: see sandpaper_nic_rate, ");
	else
		VCLI_Out(cli, "net rate %.3f Mbit/s, ",
		    (double)s->net.rate * 1e-6);
	VCLI_Out(cli, "backlog %.1f kB, closed %.3f s, "
	    "cpu outside of workers %.1f us per request\n",
	    (double)s->net.backlog * 1e-3,
	    (double)s->net.closed_ns * 1e-9, (double)s->residual * 1e-3);
	VCLI_Out(cli, "security patches: %s\n", SPD_SECURITY_PATCHES);
	if (s->mode == SPD_OBSERVE)
		VCLI_Out(cli, "nothing is enforced: sandpaper=on would have "
		    "refused %ju requests so far\n",
		    (uintmax_t)s->sums.would_refuse);
	VCLI_Out(cli, "\n");
	if (s->news.hosts > 0)
		VCLI_Out(cli, "new Hosts %u, with good answers %u%s, "
		    "proven %u\n\n", s->news.hosts, s->news.evident,
		    s->news.crowded ? " (many: each waits for 60 s)" : "",
		    s->news.proven);
}

static void
list_text(struct cli *cli, const struct snapshot *s, unsigned last)
{
	const struct spd_fields *r;
	const struct spd_last *l;
	unsigned u;

	state_text(cli, s);
	spd_cli_stages_text(cli);
	VCLI_Out(cli, "tenants in the last %u s\n%-24s %6s %7s %7s %9s %5s %5s"
	    " %3s %11s %11s %9s %13s  %s\n", last_s[last], "tenant", "weight",
	    "waiting", "running", "per_s", "cpu%", "net%", "dom",
	    "wait_p50_ms", "wait_p99_ms", "refused/s", "oldest_wait_s",
	    "group");
	for (u = 0; u < s->shown; u++) {
		r = s->sorted[u];
		l = &r->last.of[last];
		VCLI_Out(cli, "%-24s %6.3g %7ju %7ju %9.1f %5.1f %5.1f %3s "
		    "%11.3f %11.3f %9.1f %13.3f", r->tenant.text, r->weight,
		    (uintmax_t)r->waiting, (uintmax_t)r->running,
		    l->completed_per_s, l->cpu_part * 100, l->net_part * 100,
		    r->dominant, l->wait_p50_s * 1e3, l->wait_p99_s * 1e3,
		    l->refused_per_s, (double)r->oldest_wait_ns * 1e-9);
		group_text(cli, r);
		VCLI_Out(cli, "\n");
	}
}

/*--------------------------------------------------------------------
 * JSON
 */

/* Return the version of the security patches without the word "Debian". */
static const char *
patches_version(void)
{
	static const char debian[] = "Debian ";
	const char *p = SPD_SECURITY_PATCHES;

	return (strncmp(p, debian, sizeof debian - 1) ?
	    p : p + sizeof debian - 1);
}

/* Print the state, as members of a JSON object. */
static void
state_json(struct cli *cli, const struct snapshot *s)
{
	const struct meter_source *src = spd_source();
	struct spd_json j;
	unsigned u;

	VCLI_Out(cli, "\"mode\": \"%s\", \"policy\": \"%s\", "
	    "\"counter\": \"%s\", \"every_request\": %s,\n",
	    spd_cli_mode(s->mode), s->policy, src->name,
	    src->rseq ? "true" : "false");
	VCLI_Out(cli, "\"slots\": %u, \"slots_open\": %u, \"running\": %u, "
	    "\"lent\": %u, \"waiting\": %u, \"tenants\": %u, "
	    "\"tenants_overflow\": %ju,\n", s->slots, s->open, s->running,
	    s->lent, s->waiting, s->tenants, (uintmax_t)s->overflows);
	VCLI_Out(cli, "\"residual_ns\": %jd, \"nic_rate_bps\": %ju, "
	    "\"nic_backlog_bytes\": %jd, \"nic_closed_s\": %.6f,\n",
	    (intmax_t)s->residual, (uintmax_t)s->net.rate,
	    (intmax_t)s->net.backlog, (double)s->net.closed_ns * 1e-9);
	VCLI_Out(cli, "\"new_hosts\": %u, \"new_hosts_with_good_answers\": %u, "
	    "\"proven_hosts\": %u, \"many_new_hosts\": %s,\n", s->news.hosts,
	    s->news.evident, s->news.proven,
	    s->news.crowded ? "true" : "false");
	VCLI_Out(cli, "\"security_patches\": \"%s\",\n", patches_version());
	VCLI_Out(cli, "\"started\": %.3f,\n\"sums\": {\"enqueued\": %ju",
	    started, (uintmax_t)s->enqueued);
	spd_json_begin(&j, cli);
	spd_sums_json(&j, &s->sums);
	spd_json_flush(&j);
	VCLI_Out(cli, "},\n\"wait_bounds_s\": [");
	for (u = 0; u < WAITS - 1; u++)
		VCLI_Out(cli, "%s%g", u ? ", " : "",
		    (double)WAIT_Bound(u) * 1e-9);
	VCLI_Out(cli, "],\n");
}

/* began: METER_Thread() when the command began */
static void
list_json(struct cli *cli, const char * const *av, const struct snapshot *s,
    const struct choice *c, int64_t began)
{
	struct spd_json j;
	unsigned u;

	VCLI_JSON_begin(cli, 2, av);
	VCLI_Out(cli, ",\n{");
	state_json(cli, s);
	spd_cli_stages_json(cli);
	spd_json_begin(&j, cli);
	if (c->table) {
		spd_json_text(&j, "\"keys\": ");
		spd_row_keys_json(&j, c->keys);
		spd_json_text(&j, ",\n");
	}
	spd_json_text(&j, "\"list\": [");
	for (u = 0; u < s->shown && !VCLI_Overflow(cli); u++) {
		spd_json_text(&j, u > 0 ? ",\n" : "\n");
		spd_row_json(&j, s->sorted[u], c->keys, c->table);
	}
	spd_json_text(&j, "\n],\n\"cost_s\": ");
	spd_json_decimal(&j, (METER_Thread() - began) / spd_set.cores, 9);
	spd_json_text(&j, "}");
	spd_json_flush(&j);
	VCLI_JSON_end(cli);
}

/*--------------------------------------------------------------------
 * The command
 */

static void
list(struct cli *cli, const char * const *av, int json)
{
	int64_t began = METER_Thread();
	struct snapshot s;
	struct choice c;

	if (read_choice(cli, av, json, &c))
		return;
	snap(&s, &c);
	if (json)
		list_json(cli, av, &s, &c, began);
	else
		list_text(cli, &s, c.last);
	forget(&s, &c);
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

static struct cli_proto cmds[] = {
	{ CLICMD_SANDPAPER_LIST,		"", cli_list, cli_list_json },
	{ NULL }
};

void
spd_cli_list_init(void)
{

	started = VTIM_real();
	CLI_AddFuncs(cmds);
}
