/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Modes of clients that wait for their answers.
 *
 *	closed	the next request when the last one is answered
 *	paced	the same, but `rate` a connection at most
 *	open	requests at `rate` in all, whatever the answers do
 *
 * An open request that finds no idle connection waits in a ring.  Its time is
 * when it was due, not when it was sent.  A request that was refused is due
 * again when its client asks again.
 */

#include <sys/epoll.h>

#include "loadgen.h"

const struct mode mode_closed = {
	.name = "closed", .flags = IS_OWED | WAITS, .events = EPOLLIN,
	.connected = conn_again, .ask = conn_get, .idle = conn_again,
	.readable = conn_take,
};

static void
paced_connected(struct conn *c, uint64_t now)
{

	c->due = conn_first(c, now);
}

static void
paced_ask(struct conn *c, uint64_t now)
{

	c->due = now + conn_period(c);
	conn_get(c, now);
}

static void
paced_tick(struct conn *c, uint64_t now)
{

	if (c->state == IDLE && c->fd >= 0 && c->due <= now)
		conn_again(c, now);
}

const struct mode mode_paced = {
	.name = "paced", .flags = NEEDS_RATE | IS_OWED | WAITS,
	.events = EPOLLIN, .connected = paced_connected, .ask = paced_ask,
	.readable = conn_take, .tick = paced_tick,
};

/* Ask for what was due, on a connection of its own if it is to have one. */
static void
open_ask(struct conn *c, struct asking a, uint64_t now)
{

	c->tries = a.tries;
	if (!c->group->fresh) {
		conn_ask(c, a.due, now);
		return;
	}
	c->asked = a.due;
	conn_connect(c, now);
}

static void
open_idle(struct conn *c, uint64_t now)
{
	struct group *g = c->group;

	if (g->fresh)
		conn_close(c, 0);
	if (g->late_head < g->late_tail)
		open_ask(c, g->late[g->late_head++ % LATE_MAX], now);
}

static void
open_connected(struct conn *c, uint64_t now)
{

	if (c->group->fresh)
		conn_ask(c, c->asked, now);
	else
		open_idle(c, now);
}

/* A request is due.  Without an idle connection it waits for one. */
static void
open_due(struct group *g, struct conn *idle, struct asking a, uint64_t now)
{

	if (idle != NULL && (idle->fd >= 0 || g->fresh))
		open_ask(idle, a, now);
	else if (g->late_tail - g->late_head < LATE_MAX)
		g->late[g->late_tail++ % LATE_MAX] = a;
	else
		g->errors++;
}

/* Return the rate at this time, and until when it is so. */
static double
rate_at(const struct group *g, uint64_t t, uint64_t *until)
{
	double rate = g->rate;
	unsigned i;

	*until = UINT64_MAX;
	for (i = 0; i < g->nsteps; i++) {
		if (run_time(g->steps[i].at) > t) {
			*until = run_time(g->steps[i].at);
			break;
		}
		rate = g->steps[i].rate;
	}
	return (rate);
}

/* Return the ns between two arrivals. */
static uint64_t
gap_at(const struct group *g, double rate)
{

	if (rate <= 0)
		return (UINT64_MAX);
	return (g->even ? (uint64_t)((double)NS / rate) : exponential(rate));
}

/* Return the ns from an arrival to the next.  Arrivals have no memory: where
 * the rate changes, the wait begins anew. */
static uint64_t
open_gap(const struct group *g, uint64_t from)
{
	uint64_t t = from, gap, until;
	double rate;

	for (;;) {
		rate = rate_at(g, t, &until);
		if (rate <= 0 && until == UINT64_MAX)
			return (UINT64_MAX - from);
		gap = gap_at(g, rate);
		if (gap < until - t)
			return (t + gap - from);
		t = until;
	}
}

static uint64_t
open_arrival(struct group *g, struct conn *idle, uint64_t now)
{
	struct asking a = { .due = g->next_arrival };

	count_due(g, a.due, now);
	open_due(g, idle, a, now);
	return (open_gap(g, a.due));
}

/* A client that was refused asks again. */
void
open_again(struct group *g, struct conn *idle, uint64_t now)
{

	if (in_window(g, now))
		g->retried++;
	open_due(g, idle, later_take(&g->again), now);
}

/* Users who have waited too long for a connection give up. */
void
open_impatient(struct group *g, uint64_t now)
{
	uint64_t patience = (uint64_t)(g->patience * (double)NS);

	while (g->late_head < g->late_tail &&
	    now - g->late[g->late_head % LATE_MAX].due > patience) {
		g->late_head++;
		if (in_window(g, now)) {
			g->errors++;
			if (g->target <= 0)
				latencies_add(&g->lat, patience);
		}
	}
}

const struct mode mode_open = {
	.name = "open", .flags = NEEDS_RATE | IS_OWED | WAITS,
	.events = EPOLLIN, .arrival = open_arrival,
	.connected = open_connected, .ask = conn_get, .idle = open_idle,
	.readable = conn_take,
};
