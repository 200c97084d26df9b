/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The event loop: do what is due, wait for what comes, until the window ends.
 */

#include <stdio.h>

#include "loadgen.h"

#define TICK_PARTS	10	/* each for some of the connections */

static uint64_t
earlier(uint64_t a, uint64_t b)
{

	return (a < b ? a : b);
}

/* Part of a tick: clients of one group are not in step.  Returns the next. */
static uint64_t
ticks(uint64_t now)
{
	static unsigned part;
	struct group *g;

	part = (part + 1) % TICK_PARTS;
	FOR_GROUPS(g)
		group_tick(g, part, TICK_PARTS, now);
	return (now + TICK / TICK_PARTS);
}

/* Returns when the next request arrives. */
static uint64_t
arrivals(uint64_t now)
{
	uint64_t next = UINT64_MAX;
	struct group *g;

	FOR_GROUPS(g)
		next = earlier(next, group_arrivals(g, now));
	return (next);
}

static int
phases_owe(void)
{
	const struct group *g;

	FOR_GROUPS(g)
		if (g->phase >= 0 && group_owed(g) > 0)
			return (1);
	return (0);
}

/* End a phase or a gap, and wake the next phase's groups.  The last phase ends
 * with the window.  Returns when to look again. */
static uint64_t
phases(uint64_t now)
{
	struct group *g;

	if (now < win.phase_end || win.phase_end == win.end)
		return (win.phase_end);
	win.in_gap = 1;
	if (phases_owe() && now < win.phase_end + win.phase_len)
		return (now + TICK / TICK_PARTS);
	window_next_phase(now);
	FOR_GROUPS(g)
		if (g->phase == (int)win.phase)
			group_wake(g, now);
	return (win.phase_end);
}

static void
serve(uint64_t now, uint64_t next, int busy)
{

	conn_serve(next > now ? next - now : 0, busy);
}

static void
say(const char *what)
{

	printf("%s\n", what);
	(void)fflush(stdout);
}

static void
open_window(void)
{
	struct group *g;

	FOR_GROUPS(g)
		g->sent_before = g->sent_in_all;
	say("start");
}

/* Run until the window ends, or all requests up to the limits are answered. */
void
run(uint64_t interval, int busy)
{
	uint64_t now = now_ns(), next, look = 0, tick = 0;
	int open = 0;

	while (!groups_spent()) {
		if (win.nphases > 1 && now >= look)
			look = phases(now);
		if (!win.in_gap && now >= win.end)
			break;
		if (!open && !win.in_gap && now >= win.begin) {
			open = 1;
			open_window();
		}
		if (now >= tick)
			tick = ticks(now);
		next = earlier(arrivals(now), tick);
		next = earlier(next, open ? win.end : win.begin);
		if (interval > 0)
			next = earlier(next, report_interval(now, interval));
		if (win.nphases > 1)
			next = earlier(next, look);
		serve(now, next, busy);
		now = now_ns();
	}
	if (!open)	/* it was missed, or every limit reached before */
		say("start");
	win.end = earlier(win.end, now);
	say("end");
}

/* Ask no more, and wait for answers that are owed. */
void
drain(uint64_t until, int busy)
{
	uint64_t now, owed, tick = 0;
	struct group *g;

	win.draining = 1;
	for (now = now_ns(); now < until; now = now_ns()) {
		owed = 0;
		FOR_GROUPS(g) {
			owed += group_owed(g);
			g->late_head = g->late_tail;
		}
		if (owed == 0)
			break;
		if (now >= tick)
			tick = ticks(now);
		serve(now, tick, busy);
	}
}
