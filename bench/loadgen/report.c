/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * What is printed: a JSON object at the end, and one for each interval.
 *
 * A request that still waits has waited at least this long.  Its age is a
 * latency, too: a proxy that does not answer must not look fast.  With a target
 * it is none: what was not answered in time is not good.
 */

#include <stdio.h>
#include <stdlib.h>

#include "loadgen.h"

static int
waits(const struct conn *c)
{

	return (conn_is_waiting(c) || (c->state == CONNECTING &&
	    c->thinks_until == 0 && c->group->mode->flags & CONNECTS));
}

/* Add the ages of requests that wait at `until`; return how many. */
static uint64_t
add_waiting(const struct group *g, struct latencies *lat, uint64_t until)
{
	const struct conn *c;
	uint64_t l, n = 0, late = g->late_tail - g->late_head;
	int ages = g->target <= 0;

	FOR_CONNS(c, g)
		/* The last events may be younger than `until`. */
		if (waits(c) && c->asked < until) {
			if (ages)
				latencies_add(lat, until - c->asked);
			n++;
		}
	for (l = g->late_head; ages && l < g->late_tail; l++)
		latencies_add(lat, until - g->late[l % LATE_MAX].due);
	return (n + late);
}

/* What a group had counted when the last interval ended */
struct before {
	uint64_t	done, errors, not_ok;
	size_t		nlat;
};

static void
interval_group(const struct group *g, struct before *b, uint64_t now,
    double seconds)
{
	struct latencies lat = { 0 };
	uint64_t waiting = 0;

	latencies_copy(&lat, &g->lat, b->nlat);
	if (g->mode->flags & WAITS)
		waiting = add_waiting(g, &lat, now);
	latencies_sort(&lat);
	printf("{\"name\": \"%s\", \"rps\": %.3f, \"p99_s\": %.6f, "
	    "\"errors\": %ju, \"not_200\": %ju, \"waiting\": %ju}", g->name,
	    (double)(g->done - b->done) / seconds,
	    latencies_quantile(&lat, .99),
	    (uintmax_t)(g->errors - b->errors),
	    (uintmax_t)(g->not_ok - b->not_ok), (uintmax_t)waiting);
	free(lat.us);
	b->done = g->done;
	b->errors = g->errors;
	b->not_ok = g->not_ok;
	b->nlat = g->lat.n;
}

static void
print_interval(uint64_t now, double seconds)
{
	static struct before *before;
	const struct group *g;

	if (before == NULL)
		before = calloc(ngroups, sizeof *before);
	printf("{\"interval_s\": %.6f, \"groups\": [", seconds);
	FOR_GROUPS(g) {
		printf("%s", g > groups ? ", " : "");
		interval_group(g, &before[g - groups], now, seconds);
	}
	printf("]}\n");
	(void)fflush(stdout);
}

/* Print an interval that has ended.  Returns when the next one ends. */
uint64_t
report_interval(uint64_t now, uint64_t interval)
{
	static uint64_t begun, end;

	if (end == 0) {
		begun = win.begin;
		end = win.begin + interval;
	}
	if (now >= end) {
		print_interval(now, (double)(now - begun) / (double)NS);
		begun = now;
		while (end <= now)
			end += interval;
	}
	return (end);
}

/* The window has ended: count what waits. */
void
report_waiting(void)
{
	struct group *g;

	FOR_GROUPS(g)
		if (g->mode->flags & WAITS)
			g->waiting = add_waiting(g, &g->lat, win.end);
}

static void
print_slices(const char *name, const uint64_t *slices)
{
	unsigned i;

	printf(", \"%s\": [", name);
	for (i = 0; i < win.nslices; i++)
		printf("%s%ju", i ? ", " : "", (uintmax_t)slices[i]);
	printf("]");
}

/* Return Jain's index of the connections' answers: 1 if all have as many. */
static double
jain(const struct group *g)
{
	const struct conn *c;
	double sum = 0, squares = 0;

	FOR_CONNS(c, g) {
		sum += (double)c->count;
		squares += (double)c->count * (double)c->count;
	}
	return (squares > 0 ? sum * sum / (g->nconn * squares) : 0);
}

static void
print_group(const struct group *g, double seconds)
{
	const struct conn *c;
	uint64_t lo = UINT64_MAX, hi = 0;

	FOR_CONNS(c, g) {
		lo = c->count < lo ? c->count : lo;
		hi = c->count > hi ? c->count : hi;
	}
	printf("{\"name\": \"%s\", \"mode\": \"%s\", \"connections\": %u, ",
	    g->name, g->mode->name, g->nconn);
	printf("\"requests\": %ju, \"rps\": %.3f, \"bytes\": %ju, ",
	    (uintmax_t)g->done, (double)g->done / seconds,
	    (uintmax_t)g->bytes);
	printf("\"sent\": %ju, \"sent_in_all\": %ju, "
	    "\"answered_in_all\": %ju, ",
	    (uintmax_t)(g->sent_in_all - g->sent_before),
	    (uintmax_t)g->sent_in_all, (uintmax_t)g->answered_in_all);
	printf("\"errors\": %ju, \"not_200\": %ju, \"waiting\": %ju, ",
	    (uintmax_t)g->errors, (uintmax_t)g->not_ok,
	    (uintmax_t)g->waiting);
	printf("\"unanswered\": %ju, \"extra\": %ju, \"first_error\": \"%s\", ",
	    (uintmax_t)group_owed(g), (uintmax_t)g->extra, g->first_error);
	printf("\"conn_min\": %ju, \"conn_max\": %ju, \"conn_mean\": %.3f, ",
	    (uintmax_t)lo, (uintmax_t)hi, (double)g->done / g->nconn);
	printf("\"jain\": %.6f, \"mean_s\": %.6f, ", jain(g),
	    latencies_mean(&g->lat));
	printf("\"p50_s\": %.6f, \"p90_s\": %.6f, \"p99_s\": %.6f, "
	    "\"max_s\": %.6f", latencies_quantile(&g->lat, .5),
	    latencies_quantile(&g->lat, .9), latencies_quantile(&g->lat, .99),
	    latencies_quantile(&g->lat, 1.));
	printf(", \"due\": %ju, \"behind_s\": %.6f, \"connects\": %ju",
	    (uintmax_t)g->due, g->due > 0 ? (double)g->behind / (double)NS /
	    (double)g->due : 0., (uintmax_t)g->connects);
	printf(", \"good\": %ju, \"refused\": %ju, \"retried\": %ju, "
	    "\"given_up\": %ju", (uintmax_t)g->good, (uintmax_t)g->refused,
	    (uintmax_t)g->retried, (uintmax_t)g->given_up);
	print_slices("slices", g->slices);
	print_slices("due_slices", g->due_slices);
	print_slices("good_slices", g->good_slices);
	printf("}");
}

void
report(void)
{
	double window = 0, seconds;
	struct group *g;

	if (win.end > win.begin)
		window = (double)(win.end - win.begin) / (double)NS;
	printf("{\"window_s\": %.6f, \"slice_s\": %.3f, \"groups\": [",
	    window, (double)SLICE / (double)NS);
	FOR_GROUPS(g) {
		printf("%s", g > groups ? ", " : "");
		latencies_sort(&g->lat);
		seconds = counted_seconds(g);
		print_group(g, seconds > 0 ? seconds : 1);
	}
	printf("]}\n");
}
