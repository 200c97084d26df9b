/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Why a tenant's requests wait or are refused, in words, at the end of
 * sandpaper.show: what it used, what it waits for, who else waits, and what
 * would help.
 */

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "spd.h"
#include "cli.h"

#include "vcli_serve.h"

#define OTHERS		5U		/* at most, that are named */
#define LAST		1		/* index of SPD_LAST_S: 10 s */

/* What a tenant can wait for (see spd_fields.c), and what would help */
static const struct {
	const char		*waits_for, *why, *helps;
} reasons[] = {
	{ "limit", "the tenant is at its limit",
	    "a higher limit, or requests that cost less" },
	{ "group", "another member of its group goes first, or the group is at "
	    "its limit",
	    "a higher weight in the group, or a higher weight or limit of the "
	    "group" },
	{ "net", "net is full: the interface has all that it can send, and this "
	    "tenant needs net most",
	    "smaller answers, a higher weight, or a faster interface" },
	{ "slot", "all open slots are in use",
	    "more cores, requests that cost less, or a higher weight" },
	{ "worker", "the next worker that is done takes it, within 1 ms",
	    "nothing has to be done" },
	{ "turn", "other tenants go first: for their weights, they had less",
	    "more cores, requests that cost less, or a higher weight" },
};

/* Why requests are refused, by cause */
static const struct {
	size_t			per_s;		/* in struct spd_last */
	const char		*why, *helps;
} refusals[] = {
#define PER_S(cause)	offsetof(struct spd_last, refused_##cause##_per_s)
	{ PER_S(full), "its queue is full, or the queues of all tenants are, "
	    "and it has more than its part",
	    "a higher queue_limit or sandpaper_queue_total, if there is memory" },
	{ PER_S(target), "they would have waited for longer than its target "
	    "allows",
	    "requests that cost less, more hits, a higher weight, more cores" },
	{ PER_S(late), "they waited for longer than its queue_timeout or "
	    "sandpaper_queue_timeout",
	    "requests that cost less, more hits, a higher weight, more cores" },
	{ PER_S(fetch), "it had as many fetches as it may have",
	    "a faster origin, more hits, or a higher sandpaper_fetch_limit" },
#undef PER_S
};

/* Print what the tenant used. */
static void
used(struct cli *cli, const struct spd_fields *r)
{
	const struct spd_last *l = &r->last.of[LAST];

	VCLI_Out(cli, "In the last 10 s it used %.1f %% of cpu and %.1f %% of "
	    "net, for %.1f requests/s.\n", l->cpu_part * 100,
	    l->net_part * 100, l->completed_per_s);
	if (l->completed_per_s <= 0)
		return;
	VCLI_Out(cli, "Half of these waited for %.3f ms or less, 99 %% for "
	    "%.3f ms or less.\n", l->wait_p50_s * 1e3, l->wait_p99_s * 1e3);
}

/* Print what the first waiting request waits for. */
static void
waits(struct cli *cli, const struct spd_fields *r)
{
	unsigned u;

	if (r->waits_for == NULL) {
		VCLI_Out(cli, "None of its requests waits.\n");
		return;
	}
	VCLI_Out(cli, "%ju of its requests wait. The first one has waited "
	    "for %.3f s: ", (uintmax_t)r->waiting,
	    (double)r->oldest_wait_ns * 1e-9);
	for (u = 0; u < sizeof reasons / sizeof *reasons; u++)
		if (!strcmp(r->waits_for, reasons[u].waits_for))
			VCLI_Out(cli, "%s.\nWhat helps: %s.\n",
			    reasons[u].why, reasons[u].helps);
	VCLI_Out(cli, "Its weight is %.6g. Next to all that wait now, this is "
	    "%.1f %% of what is scarce.\n", r->weight, r->share * 100);
}

/* Order tenants: those with waiting requests that used most come first. */
static int
other_cmp(const void *p1, const void *p2)
{
	const struct spd_fields *a = p1, *b = p2;
	double va, vb;

	va = a->last.of[LAST].used_part + (a->waiting > 0 ? 1e6 : 0);
	vb = b->last.of[LAST].used_part + (b->waiting > 0 ? 1e6 : 0);
	if (va != vb)
		return (va < vb ? 1 : -1);
	return (strcmp(a->tenant.text, b->tenant.text));
}

/* Does this one compete with the tenant?  Its group does not, and if it is a
 * group, its members do not. */
static int
competes(const struct spd_fields *o, const struct spd_fields *r)
{

	return (o->waiting > 0 && strcmp(o->tenant.text, r->tenant.text) &&
	    strcmp(o->tenant.text, r->group.text) &&
	    strcmp(o->group.text, r->tenant.text));
}

/* Print who else has waiting requests. */
static void
others(struct cli *cli, const struct spd_fields *r)
{
	unsigned rows, u, n = 0;
	struct spd_fields *row, *o;

	rows = spd_fields_all(SPD_FIELDS_LAST, &row);
	qsort(row, rows, sizeof *row, other_cmp);
	for (u = 0; u < rows; u++) {
		o = &row[u];
		if (!competes(o, r) || n++ >= OTHERS)
			continue;
		VCLI_Out(cli, "%s%s (weight %.6g, %ju waiting, %.1f %% of cpu, "
		    "%.1f %% of net)", n == 1 ? "Others that wait: " : ", ",
		    o->tenant.text, o->weight, (uintmax_t)o->waiting,
		    o->last.of[LAST].cpu_part * 100,
		    o->last.of[LAST].net_part * 100);
	}
	free(row);
	if (n > OTHERS)
		VCLI_Out(cli, ", and %u more", n - OTHERS);
	VCLI_Out(cli, n > 0 ? ".\n" : "No other tenant has a request that "
	    "waits.\n");
}

/* Print why requests are refused. */
static void
refused(struct cli *cli, const struct spd_fields *r)
{
	double per_s;
	unsigned u;

	for (u = 0; u < sizeof refusals / sizeof *refusals; u++) {
		memcpy(&per_s, (const char *)&r->last.of[LAST] +
		    refusals[u].per_s, sizeof per_s);
		if (per_s > 0)
			VCLI_Out(cli, "%.1f per second were refused in the "
			    "last 10 s: %s.\nWhat helps: %s.\n", per_s,
			    refusals[u].why, refusals[u].helps);
	}
}

/* Print why the tenant's requests wait or are refused. */
void
spd_why_text(struct cli *cli, const struct spd_fields *r)
{

	used(cli, r);
	waits(cli, r);
	if (r->waits_for != NULL)
		others(cli, r);
	refused(cli, r);
}
