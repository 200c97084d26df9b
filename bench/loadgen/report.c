/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * What is printed: a JSON object at the end, and one an interval.
 */

#define _GNU_SOURCE
#include "loadgen.h"

static int
cmp_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return ((x > y) - (x < y));
}

static int
waits_since(const struct conn *c, uint64_t now)
{

	return ((c->state == HEAD || c->state == BODY) && c->asked < now);
}

static uint32_t
to_us(uint64_t ns)
{

	return (ns / 1000 > UINT32_MAX ? UINT32_MAX : (uint32_t)(ns / 1000));
}

/* The p99 of an interval: of its answers, and of what still waits */
static double
interval_p99(const struct group *g, uint64_t now, size_t *waiting)
{
	size_t n = g->nlat - g->nlat_before, most;
	uint64_t l;
	uint32_t *lat;
	unsigned i;
	double p99 = 0;

	most = n + g->nconn + (size_t)(g->late_tail - g->late_head);
	lat = malloc((most + 1) * sizeof *lat);
	assert(lat != NULL);
	if (n > 0)
		memcpy(lat, g->lat + g->nlat_before, n * sizeof *lat);
	*waiting = n;
	if (g->mode == CLOSED || g->mode == OPEN)
		for (i = 0; i < g->nconn; i++)
			if (waits_since(&g->conns[i], now))
				lat[n++] = to_us(now - g->conns[i].asked);
	for (l = g->late_head; l < g->late_tail; l++)
		lat[n++] = to_us(now - (uint64_t)g->late[l % LATE_MAX]);
	*waiting = n - *waiting;
	if (n > 0) {
		qsort(lat, n, sizeof *lat, cmp_u32);
		p99 = lat[(size_t)ceil(.99 * (double)n) - 1] / 1e6;
	}
	free(lat);
	return (p99);
}

static void
interval_group(struct group *g, uint64_t now, double seconds)
{
	size_t waiting;
	double p99 = interval_p99(g, now, &waiting);

	printf("{\"name\": \"%s\", \"rps\": %.3f, \"p99_s\": %.6f, "
	    "\"errors\": %ju, \"not_200\": %ju, \"waiting\": %zu}", g->name,
	    (double)(g->done - g->done_before) / seconds, p99,
	    (uintmax_t)(g->errors - g->errors_before),
	    (uintmax_t)(g->not_ok - g->not_ok_before), waiting);
	g->done_before = g->done;
	g->errors_before = g->errors;
	g->not_ok_before = g->not_ok;
	g->nlat_before = g->nlat;
}

/* Returns when the next interval ends. */
uint64_t
intervals(uint64_t now)
{
	static uint64_t end, begun;
	unsigned u;

	if (end == 0) {
		begun = t_window;
		end = t_window + interval;
	}
	if (now >= end) {
		printf("{\"interval_s\": %.6f, \"groups\": [",
		    (double)(now - begun) / (double)NS);
		for (u = 0; u < ngroups; u++) {
			printf("%s", u ? ", " : "");
			interval_group(&groups[u], now,
			    (double)(now - begun) / (double)NS);
		}
		printf("]}\n");
		(void)fflush(stdout);
		begun = now;
		while (end <= now)
			end += interval;
	}
	return (end);
}

static double
quantile(const struct group *g, double q)
{
	size_t i;

	if (g->nlat == 0)
		return (0);
	i = (size_t)ceil(q * (double)g->nlat);
	return (g->lat[i > 0 ? i - 1 : 0] / 1e6);
}

/* Who still waits has waited at least this long: that is a latency too. */
uint64_t
count_waiting(struct group *g)
{
	uint64_t n = 0;
	unsigned i;
	struct conn *c;

	if (g->mode != CLOSED && g->mode != PACED && g->mode != OPEN &&
	    g->mode != STALL && g->mode != SLOW)
		return (0);
	for (i = 0; i < g->nconn; i++) {
		c = &g->conns[i];
		if ((c->state != HEAD && c->state != BODY) ||
		    c->asked >= t_end)	/* with the last events */
			continue;
		note_latency(g, t_end - c->asked);
		n++;
	}
	for (; g->late_head < g->late_tail; g->late_head++, n++)
		note_latency(g, t_end -
		    (uint64_t)g->late[g->late_head % LATE_MAX]);
	return (n);
}

/* ns of the window in which a group with an end of its own counts */
static uint64_t
part(const struct group *g)
{
	uint64_t begin = seconds_on(g->from) + settle;
	uint64_t end = seconds_on(g->till);

	begin = begin < t_window ? t_window : begin;
	end = end > t_end ? t_end : end;
	return (end > begin ? end - begin : 0);
}

/* Seconds of the window that count for this group */
static double
group_window(const struct group *g, uint64_t window)
{
	uint64_t counted = window;

	if (g->phase >= 0)
		counted = window / (nphases * phase_len) *
		    (phase_len - settle);
	if (g->till > 0)
		counted = part(g);
	return ((double)counted / (double)NS);
}

static void
report_group(struct group *g, double window)
{
	uint64_t lo = UINT64_MAX, hi = 0;
	unsigned i;

	for (i = 0; i < g->nconn; i++) {
		lo = g->conns[i].count < lo ? g->conns[i].count : lo;
		hi = g->conns[i].count > hi ? g->conns[i].count : hi;
	}
	if (g->nlat > 0)
		qsort(g->lat, g->nlat, sizeof *g->lat, cmp_u32);
	printf("{\"name\": \"%s\", \"mode\": \"%s\", \"connections\": %u, "
	    "\"requests\": %ju, \"rps\": %.3f, \"bytes\": %ju, "
	    "\"sent\": %ju, \"sent_in_all\": %ju, \"answered_in_all\": %ju, "
	    "\"errors\": %ju, \"not_200\": %ju, \"waiting\": %ju, "
	    "\"unanswered\": %ju, \"extra\": %ju, "
	    "\"first_error\": \"%s\", "
	    "\"conn_min\": %ju, \"conn_max\": %ju, \"conn_mean\": %.3f, "
	    "\"p50_s\": %.6f, \"p90_s\": %.6f, \"p99_s\": %.6f, "
	    "\"max_s\": %.6f, \"slices\": [",
	    g->name, mode_names[g->mode], g->nconn,
	    (uintmax_t)g->done, (double)g->done / window,
	    (uintmax_t)g->bytes, (uintmax_t)(g->sent - g->sent_before),
	    (uintmax_t)g->sent,
	    (uintmax_t)g->answered, (uintmax_t)g->errors,
	    (uintmax_t)g->not_ok, (uintmax_t)g->waiting,
	    (uintmax_t)group_owed(g), (uintmax_t)g->extra, g->first_error,
	    (uintmax_t)lo,
	    (uintmax_t)hi, (double)g->done / g->nconn,
	    quantile(g, .5), quantile(g, .9), quantile(g, .99),
	    quantile(g, 1.));
	for (i = 0; i < nslices; i++)
		printf("%s%ju", i ? ", " : "", (uintmax_t)g->slices[i]);
	printf("]}");
}

void
report(void)
{
	double window = 0, counted;
	unsigned u;

	if (t_end > t_window)
		window = (double)(t_end - t_window) / (double)NS;
	printf("{\"window_s\": %.6f, \"slice_s\": %.3f, \"groups\": [",
	    window, (double)SLICE / (double)NS);
	for (u = 0; u < ngroups; u++) {
		printf("%s", u ? ", " : "");
		counted = group_window(&groups[u],
		    t_end > t_window ? t_end - t_window : 0);
		report_group(&groups[u], counted > 0 ? counted : 1);
	}
	printf("]}\n");
}
