/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * A group of connections: when it starts, what arrives, when it rests, and
 * which answers it is owed.
 */

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "loadgen.h"

#define GROUPS_MAX	64

struct group groups[GROUPS_MAX];
unsigned ngroups;

/* Return a new group, or NULL if there are too many. */
struct group *
group_new(void)
{

	return (ngroups < GROUPS_MAX ? &groups[ngroups++] : NULL);
}

static void
start_conn(struct group *g, struct conn *c, uint64_t now)
{

	c->group = g;
	c->fd = -1;
	c->head = malloc(HEAD_MAX);
	assert(c->head != NULL);
	if (g->fresh)
		conn_is_idle(c);
	else if (g->from > 0)
		conn_park(c, run_time(g->from));
	else
		conn_connect(c, now);
}

void
group_start(struct group *g, uint64_t now)
{
	struct conn *c;

	g->conns = calloc(g->nconn, sizeof *g->conns);
	g->slices = calloc(win.nslices, sizeof *g->slices);
	g->due_slices = calloc(win.nslices, sizeof *g->due_slices);
	g->good_slices = calloc(win.nslices, sizeof *g->good_slices);
	assert(g->conns != NULL && g->slices != NULL &&
	    g->due_slices != NULL && g->good_slices != NULL);
	g->resting = g->till > 0 && g->from > 0;
	g->next_arrival = UINT64_MAX;
	if (g->mode->arrival != NULL)
		g->next_arrival = run_time(g->from);
	if (g->mode == &mode_open) {
		g->late = calloc(LATE_MAX, sizeof *g->late);
		assert(g->late != NULL);
	}
	FOR_CONNS(c, g)
		start_conn(g, c, now);
}

static int
may_ask(const struct group *g, uint64_t now)
{

	return (!is_spent(g) && !is_over(g, now));
}

/* Do what is due, and return when the next request arrives. */
uint64_t
group_arrivals(struct group *g, uint64_t now)
{
	uint64_t again;

	while (g->next_arrival <= now && may_ask(g, now))
		g->next_arrival += g->mode->arrival(g, conn_spare(g), now);
	while (later_first(&g->again) <= now && may_ask(g, now))
		open_again(g, conn_spare(g), now);
	if (!may_ask(g, now))
		return (UINT64_MAX);
	again = later_first(&g->again);
	return (again < g->next_arrival ? again : g->next_arrival);
}

/* The group loads again. */
void
group_wake(struct group *g, uint64_t now)
{
	struct conn *c;

	FOR_CONNS(c, g)
		if (c->state == IDLE && c->fd >= 0)
			conn_idle(c, now);
}

/* A group that loads and rests in turn, or for some time */
static void
rest(struct group *g, uint64_t now)
{
	double at = (double)(now - win.start) / (double)NS;
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

/* Every `parts`-th connection, from `part` on, does what is due by time. */
void
group_tick(struct group *g, unsigned part, unsigned parts, uint64_t now)
{
	unsigned i;

	if (g->on > 0 || g->till > 0)
		rest(g, now);
	if (g->patience > 0 && g->late != NULL)
		open_impatient(g, now);
	if (g->mode->tick == NULL && g->retrying == 0)
		return;
	for (i = part; i < g->nconn; i += parts)
		conn_tick(&g->conns[i], now);
}

/* All groups have a limit and have reached it. */
int
groups_spent(void)
{
	const struct group *g;

	FOR_GROUPS(g)
		if (g->limit == 0 || g->answered_in_all + g->errors < g->limit)
			return (0);
	return (1);
}

/* Return how many complete requests are to be answered, and are not yet. */
uint64_t
group_owed(const struct group *g)
{
	const struct conn *c;
	uint64_t n = 0;

	if (!(g->mode->flags & IS_OWED))
		return (0);
	if (g->mode == &mode_h2 && g->window == 0)
		return (0);	/* no stream can be answered */
	FOR_CONNS(c, g) {
		if (g->mode->flags & MANY)
			n += c->fd >= 0 ? c->owed : 0;
		else
			n += (unsigned)conn_is_waiting(c);
	}
	return (n);
}
