/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The CLI commands sandpaper.list and sandpaper.show.
 *
 * The numbers are copied under the lock, and printed without it.  The copy of
 * all tenants gives the lock up every SPD_PAUSE rows, so rows may differ in
 * time.
 */

#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spd.h"

#include "vcli_serve.h"
#include "vsb.h"

#define SPD_LIST_ROWS	100		/* default of <n> */

/*--------------------------------------------------------------------
 * Copy the numbers
 */

struct row {				/* a tenant */
	char			name[TEN_NAME_MAX + 1];
	char			group[TEN_NAME_MAX + 1];
	struct rel_tenant_stat	st;
	uint64_t		requests, refused, gone, shed, bytes;
	int64_t			cpu_ns, wait_ns;
	unsigned		queue_limit;
	double			share;
	int			is_new;		/* a new Host */
	unsigned		new_seconds;	/* with good answers */
	int64_t			oldest_ns;	/* wait of its oldest request */
	const char		*waits_for;	/* NULL: none of its requests
						 * waits */
};

struct snapshot {
	const char		*policy;
	enum spd_mode		mode;
	unsigned		slots, running, lent, waiting, tenants;
	int64_t			residual, closed_ns, backlog;
	uint64_t		rate, overflows;
	struct spd_new_stat	news;
	unsigned		rows;
	struct row		*row;
};

/*
 * Return why the tenant's first waiting request waits.  If no other reason is
 * true, the policy lets others go first.  Caller holds spd_lock().
 */
static const char *
snap_reason(const struct rel_node *first, enum rel_resource dominant,
    int64_t now)
{
	int64_t opens;

	SPD_LOCKED();
	if (first->state == REL_SHUT)
		return ("limit");
	if (first->state == REL_POOLED)
		return ("group");
	if (spd.mode == SPD_ON && dominant == REL_NET &&
	    NIC_Closed(spd.nic, now, &opens))
		return ("net");
	if (spd.running >= spd.limit)
		return ("slot");
	return (spd_enough_run(now) ? "worker" : "turn");
}

/* Copy a tenant's numbers.  Caller holds spd_lock(). */
static void
snap_row(struct row *r, struct spd_tenant *t, int64_t now)
{
	const struct rel_node *first;

	CHECK_OBJ_NOTNULL(t, SPD_TENANT_MAGIC);
	SPD_LOCKED();
	(void)snprintf(r->name, sizeof r->name, "%s", spd_name(t));
	REL_TenantStat(spd.rel, t->rel, &r->st);
	first = REL_TenantFirst(t->rel);
	/* This request may have come after `now` */
	if (first != NULL && first->arrival < now)
		r->oldest_ns = now - first->arrival;
	if (first != NULL)
		r->waits_for = snap_reason(first, r->st.dominant, now);
	r->share = REL_Share(spd.rel, t->rel);
	(void)snprintf(r->group, sizeof r->group, "%s",
	    t->group != NULL ? spd_name(t->group) : "");
	r->is_new = NEW_Is(&t->newhost);
	r->new_seconds = spd_new_seconds(t, now);
	r->queue_limit = spd_waiting_limit(t);
	r->requests = t->requests;
	r->refused = t->refused;
	r->gone = t->gone;
	r->shed = t->shed;
	r->bytes = t->bytes;
	r->cpu_ns = t->cpu_ns;
	r->wait_ns = t->wait_ns;
}

/* Order rows by CPU time, the most first, then by name. */
static int
row_cmp(const void *p1, const void *p2)
{
	const struct row *a = p1, *b = p2;

	if (a->cpu_ns != b->cpu_ns)
		return (a->cpu_ns < b->cpu_ns ? 1 : -1);
	return (strcmp(a->name, b->name));
}

/* Copy the state and all tenants' numbers.  The caller frees s->row. */
static void
snap(struct snapshot *s)
{
	struct ten_record *rec;
	unsigned u, space;
	int64_t now;

	memset(s, 0, sizeof *s);
	spd_lock();
	space = TEN_Count(spd.tenants) + 64;
	spd_unlock();
	s->row = calloc(space, sizeof *s->row);
	AN(s->row);
	spd_lock();
	s->policy = REL_PolicyName(REL_GetPolicy(spd.rel));
	s->mode = spd.mode;
	s->slots = spd.limit;
	s->running = spd.running;
	s->lent = spd.lent;
	s->waiting = REL_Waiting(spd.rel);
	s->tenants = TEN_Count(spd.tenants);
	s->overflows = TEN_Overflows(spd.tenants);
	spd_new_stat(&s->news);
	s->residual = spd.residual;
	s->rate = NIC_Rate(spd.nic);
	now = METER_Now();
	s->backlog = NIC_Backlog(spd.nic, now);
	s->closed_ns = NIC_ClosedTime(spd.nic, now);
	for (u = 0; s->rows < space &&
	    (rec = TEN_At(spd.tenants, u)) != NULL; u++) {
		snap_row(&s->row[s->rows++], TEN_Host(rec), now);
		spd_pause(u);
	}
	spd_unlock();
	qsort(s->row, s->rows, sizeof *s->row, row_cmp);
}

/*--------------------------------------------------------------------
 * Print the numbers
 */

static const char * const modes[] = { SPD_MODE_NAMES };
static const char * const resources[] = { "cpu", "net" };

/* Return a part of the dominant resource as 0 to 1. */
static double
part(uint32_t p)
{
	return ((double)p / REL_PART_ONE);
}

/* Return the tenant's limit, 0 to 1.  1: no limit. */
static double
limit(const struct row *r)
{
	return (r->st.limit > 0 ? part(r->st.limit) : 1);
}

/* Print the tenant's group.  For a new Host, print its seconds with good
 * answers, and the seconds that it needs. */
static void
group_text(struct cli *cli, const struct row *r)
{

	if (r->group[0] == '\0')
		return;
	VCLI_Out(cli, "  %s", r->group);
	if (r->is_new)
		VCLI_Out(cli, " %u of %d s", r->new_seconds, NEW_PROOF);
}

static void
list_text(struct cli *cli, const struct snapshot *s, unsigned rows)
{
	const struct meter_source *src = spd.source;
	const struct row *r;
	unsigned u;

	VCLI_Out(cli, "mode %s, policy %s, counter %s%s\n", modes[s->mode],
	    s->policy, src->name, src->rseq ? ", measures every request" :
	    ", measures a sample");
	VCLI_Out(cli, "slots %u, running %u, lent %u, waiting %u, "
	    "tenants %u, overflows %ju\n", s->slots, s->running, s->lent,
	    s->waiting, s->tenants, (uintmax_t)s->overflows);
	VCLI_Out(cli, "net rate %.3f Mbit/s, backlog %.1f kB, held %.3f s, "
	    "cpu outside of workers %.1f us per request\n",
	    (double)s->rate * 1e-6, (double)s->backlog * 1e-3,
	    (double)s->closed_ns * 1e-9, (double)s->residual * 1e-3);
	VCLI_Out(cli, "security patches: %s\n\n", SPD_SECURITY_PATCHES);
	if (s->news.hosts > 0)
		VCLI_Out(cli, "new Hosts %u, with good answers %u%s, "
		    "proven %u\n\n", s->news.hosts, s->news.evident,
		    s->news.crowded ? " (many: each waits for 60 s)" : "",
		    s->news.proven);
	VCLI_Out(cli, "%-24s %6s %7s %7s %9s %9s %3s %10s %10s %10s %8s"
	    "  %s\n", "tenant", "weight", "waiting", "running", "cpu_us",
	    "net_us", "dom", "requests", "cpu_s", "MB", "oldest_s", "group");
	for (u = 0; u < s->rows && u < rows; u++) {
		r = &s->row[u];
		VCLI_Out(cli, "%-24s %6.3g %7u %7u %9.1f %9.1f %3s %10ju "
		    "%10.3f %10.3f %8.3f", r->name,
		    (double)r->st.weight / REL_WEIGHT_ONE, r->st.waiting,
		    r->st.running, (double)r->st.estimate[REL_CPU] * 1e-3,
		    (double)r->st.estimate[REL_NET] * 1e-3,
		    resources[r->st.dominant], (uintmax_t)r->requests,
		    (double)r->cpu_ns * 1e-9, (double)r->bytes * 1e-6,
		    (double)r->oldest_ns * 1e-9);
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

/* Print a JSON string.  VCLI_JSON_str() of Varnish 6.0 writes octal escapes,
 * which JSON does not have. */
static void
json_name(struct cli *cli, const char *name)
{
	char b[6 * TEN_NAME_MAX + 1], *p = b;

	for (; *name != '\0'; name++) {
		if (*name == '"' || *name == '\\')
			*p++ = '\\';
		if ((unsigned char)*name < ' ')
			p += sprintf(p, "\\u%04x", (unsigned char)*name);
		else
			*p++ = *name;
	}
	*p = '\0';
	VCLI_Out(cli, "\"%s\"", b);
}

/* Print a tenant as a JSON object. */
static void
row_json(struct cli *cli, const struct row *r)
{

	VCLI_Out(cli, "{\"tenant\": ");
	json_name(cli, r->name);
	if (*r->group) {
		VCLI_Out(cli, ", \"group\": ");
		json_name(cli, r->group);
	}
	if (r->is_new)
		VCLI_Out(cli, ", \"new_seconds\": %u", r->new_seconds);
	VCLI_Out(cli, ", \"weight\": %.6g, \"share\": %.6f, "
	    "\"reservation\": %.6f, \"limit\": %.6f, "
	    "\"queue_limit\": %u, \"waiting\": %u, "
	    "\"running\": %u, \"dominant\": \"%s\", "
	    "\"estimate_cpu_s\": %.9f, \"estimate_net_s\": %.9f, ",
	    (double)r->st.weight / REL_WEIGHT_ONE, r->share,
	    part(r->st.reservation), limit(r), r->queue_limit,
	    r->st.waiting, r->st.running, resources[r->st.dominant],
	    (double)r->st.estimate[REL_CPU] * 1e-9,
	    (double)r->st.estimate[REL_NET] * 1e-9);
	VCLI_Out(cli, "\"requests\": %ju, \"refused\": %ju, "
	    "\"gone\": %ju, \"shed\": %ju, "
	    "\"cpu_s\": %.9f, \"bytes\": %ju, "
	    "\"waited_s\": %.9f, \"oldest_s\": %.6f, "
	    "\"account_s\": %.9f", (uintmax_t)r->requests,
	    (uintmax_t)r->refused, (uintmax_t)r->gone, (uintmax_t)r->shed,
	    (double)r->cpu_ns * 1e-9, (uintmax_t)r->bytes,
	    (double)r->wait_ns * 1e-9, (double)r->oldest_ns * 1e-9,
	    (double)r->st.account * 1e-9);
	if (r->waits_for != NULL)
		VCLI_Out(cli, ", \"waits_for\": \"%s\"", r->waits_for);
	VCLI_Out(cli, "}");
}

static void
list_json(struct cli *cli, const char * const *av, const struct snapshot *s,
    unsigned rows)
{
	const struct meter_source *src = spd.source;
	unsigned u;

	VCLI_JSON_begin(cli, 2, av);
	VCLI_Out(cli, ",\n{\"mode\": \"%s\", \"policy\": \"%s\", "
	    "\"counter\": \"%s\", \"every_request\": %s,\n", modes[s->mode],
	    s->policy, src->name, src->rseq ? "true" : "false");
	VCLI_Out(cli, "\"slots\": %u, \"running\": %u, \"lent\": %u, "
	    "\"waiting\": %u, \"tenants\": %u, \"overflows\": %ju,\n",
	    s->slots, s->running, s->lent, s->waiting, s->tenants,
	    (uintmax_t)s->overflows);
	VCLI_Out(cli, "\"residual_ns\": %jd, \"nic_rate_bps\": %ju, "
	    "\"nic_backlog_bytes\": %jd, \"nic_held_s\": %.6f,\n",
	    (intmax_t)s->residual, (uintmax_t)s->rate, (intmax_t)s->backlog,
	    (double)s->closed_ns * 1e-9);
	VCLI_Out(cli, "\"new_hosts\": %u, \"new_hosts_with_good_answers\": %u, "
	    "\"proven_hosts\": %u, \"many_new_hosts\": %s,\n", s->news.hosts,
	    s->news.evident, s->news.proven,
	    s->news.crowded ? "true" : "false");
	VCLI_Out(cli, "\"security_patches\": \"%s\",\n", patches_version());
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

static void
show_text(struct cli *cli, const struct row *r)
{

	VCLI_Out(cli, "%-22s %s\n", "tenant", r->name);
	VCLI_Out(cli, "%-22s %s\n", "group", *r->group ? r->group : "-");
	if (r->is_new)
		VCLI_Out(cli, "%-22s %u of %d s in the last %d s\n",
		    "good answers", r->new_seconds, NEW_PROOF, NEW_WINDOW);
	VCLI_Out(cli, "%-22s %.6g\n", "weight",
	    (double)r->st.weight / REL_WEIGHT_ONE);
	VCLI_Out(cli, "%-22s %.3f\n", "share", r->share);
	VCLI_Out(cli, "%-22s %.3f\n", "reservation", part(r->st.reservation));
	VCLI_Out(cli, "%-22s %.3f\n", "limit", limit(r));
	VCLI_Out(cli, "%-22s %u\n", "queue limit", r->queue_limit);
	VCLI_Out(cli, "%-22s %u\n", "waiting", r->st.waiting);
	VCLI_Out(cli, "%-22s %u\n", "running", r->st.running);
	VCLI_Out(cli, "%-22s %.6f\n", "oldest wait, s",
	    (double)r->oldest_ns * 1e-9);
	VCLI_Out(cli, "%-22s %s\n", "waits for",
	    r->waits_for != NULL ? r->waits_for : "-");
	VCLI_Out(cli, "%-22s %s\n", "dominant resource",
	    resources[r->st.dominant]);
	VCLI_Out(cli, "%-22s %.1f\n", "estimated cpu, us",
	    (double)r->st.estimate[REL_CPU] * 1e-3);
	VCLI_Out(cli, "%-22s %.1f\n", "estimated net, us",
	    (double)r->st.estimate[REL_NET] * 1e-3);
	VCLI_Out(cli, "%-22s %.1f\n", "account, us",
	    (double)r->st.account * 1e-3);
	VCLI_Out(cli, "%-22s %ju\n", "requests", (uintmax_t)r->requests);
	VCLI_Out(cli, "%-22s %ju\n", "refused", (uintmax_t)r->refused);
	VCLI_Out(cli, "%-22s %ju\n", "gone", (uintmax_t)r->gone);
	VCLI_Out(cli, "%-22s %ju\n", "shed", (uintmax_t)r->shed);
	VCLI_Out(cli, "%-22s %.6f\n", "cpu, s", (double)r->cpu_ns * 1e-9);
	VCLI_Out(cli, "%-22s %ju\n", "bytes", (uintmax_t)r->bytes);
	VCLI_Out(cli, "%-22s %.6f\n", "waited, s",
	    (double)r->wait_ns * 1e-9);
}

static void
show(struct cli *cli, const char * const *av, int json)
{
	struct spd_tenant *t;
	struct row r;
	const char *name = av[2];

	if (json && av[3] != NULL)
		name = av[3];
	else if (spd_cli_no_more(cli, av[3]))
		return;
	memset(&r, 0, sizeof r);
	spd_lock();
	t = spd_tenant_find(name, strlen(name));
	if (t != NULL)
		snap_row(&r, t, METER_Now());
	spd_unlock();
	if (t == NULL) {
		VCLI_Out(cli, "Tenant \"%s\" is not known: it had no "
		    "request, or was idle and was removed. Use sandpaper.list "
		    "to see the known tenants", name);
		VCLI_SetResult(cli, CLIS_PARAM);
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
