/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * A group of connections: when they start, ask, rest and give up.
 */

#define _GNU_SOURCE
#include "loadgen.h"

static struct conn *
group_idle(const struct group *g)
{
	unsigned i;

	for (i = 0; i < g->nconn; i++)
		if (g->conns[i].state == IDLE)
			return (&g->conns[i]);
	return (NULL);
}

/* A request is due: give it to an idle connection, or let it wait. */
void
group_arrival(struct group *g, uint64_t now)
{
	struct conn *c = group_idle(g);

	if (group_spent(g) || is_over(g, now)) {
		g->next_arrival = UINT64_MAX;
		return;
	}
	if (g->mode == RESET || g->mode == CONNECT) {
		if (c != NULL)
			conn_connect(c, now);
		g->next_arrival += (uint64_t)((double)NS / g->rate);
		return;
	}
	if (c != NULL && (c->fd >= 0 || g->fresh))
		conn_open(c, g->next_arrival, now);
	else if (g->late_tail - g->late_head < LATE_MAX)
		g->late[g->late_tail++ % LATE_MAX] = (double)g->next_arrival;
	else
		g->errors++;
	g->next_arrival += exponential(g->rate);
}

void
group_start(struct group *g, uint64_t now)
{
	unsigned i;

	g->conns = calloc(g->nconn, sizeof *g->conns);
	g->slices = calloc(nslices, sizeof *g->slices);
	assert(g->conns != NULL && g->slices != NULL);
	g->next_arrival = UINT64_MAX;
	g->resting = g->till > 0 && g->from > 0;
	if (g->mode == OPEN || g->mode == RESET || g->mode == CONNECT)
		g->next_arrival = seconds_on(g->from);
	if (g->mode == OPEN) {
		g->late = calloc(LATE_MAX, sizeof *g->late);
		assert(g->late != NULL);
	}
	for (i = 0; i < g->nconn; i++) {
		g->conns[i].group = g;
		g->conns[i].fd = -1;
		g->conns[i].head = malloc(HEAD_MAX);
		assert(g->conns[i].head != NULL);
		if (g->mode == RESET || g->mode == CONNECT || g->fresh)
			continue;
		if (g->from > 0)
			conn_park(&g->conns[i], seconds_on(g->from));
		else
			conn_connect(&g->conns[i], now);
	}
}

/* All groups have a limit and have reached it. */
int
all_spent(void)
{
	unsigned u;

	for (u = 0; u < ngroups; u++)
		if (groups[u].limit == 0 ||
		    groups[u].answered + groups[u].errors < groups[u].limit)
			return (0);
	return (1);
}

int
timed(enum mode mode)
{
	return (mode == PACED || mode == SLOW || mode == DRIP || mode == POST ||
	    mode == H2_RESET || mode == H2_PING);
}

void
group_wake(struct group *g, uint64_t now)
{
	unsigned i;

	for (i = 0; i < g->nconn; i++)
		if (g->conns[i].state == IDLE && g->conns[i].fd >= 0)
			conn_next(&g->conns[i], now);
}

/* A group that loads and rests in turn, or for some time */
void
group_rest(struct group *g, uint64_t now)
{
	double at = (double)(now - t_start) / (double)NS;
	int rests;

	if (g->till > 0)
		rests = at < g->from || at >= g->till;
	else
		rests = fmod(at + g->shift, g->on + g->off) >= g->on;

	if (rests == g->resting)
		return;
	g->resting = rests;
	if (!rests)
		group_wake(g, now);
}

/* Users who have waited too long for a connection give up. */
void
group_impatient(struct group *g, uint64_t now)
{
	uint64_t patience = (uint64_t)(g->patience * (double)NS);

	while (g->late_head < g->late_tail &&
	    now - (uint64_t)g->late[g->late_head % LATE_MAX] > patience) {
		g->late_head++;
		if (in_window(g, now)) {
			g->errors++;
			note_latency(g, patience);
		}
	}
}

/* Answers that are still owed to those who are to have them */
uint64_t
group_owed(const struct group *g)
{
	const struct conn *c;
	uint64_t n = 0;

	if (!well_behaved(g))
		return (0);
	for (c = g->conns; c < g->conns + g->nconn; c++) {
		if (c->out != NULL)
			n += c->fd >= 0 ? c->owed : 0;
		else
			n += c->state == HEAD || c->state == BODY;
	}
	return (n);
}
