/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The loop: waits for what is due or comes, and sees to it.
 */

#define _GNU_SOURCE
#include "loadgen.h"

/* Part of a tick: clients of one group are not in step.  Returns the next. */
static uint64_t
ticks(uint64_t now)
{
	static unsigned part;
	struct group *g;
	unsigned u, i;

	part = (part + 1) % TICK_PARTS;
	for (u = 0; u < ngroups; u++) {
		g = &groups[u];
		if (g->on > 0 || g->till > 0)
			group_rest(g, now);
		if (g->patience > 0 && g->late != NULL)
			group_impatient(g, now);
		if (!timed(g->mode) && g->retrying == 0)
			continue;
		for (i = part; i < g->nconn; i += TICK_PARTS)
			conn_tick(&g->conns[i], now);
	}
	return (now + TICK / TICK_PARTS);
}

static uint64_t
arrivals(uint64_t now)
{
	uint64_t next = UINT64_MAX;
	unsigned u;

	for (u = 0; u < ngroups; u++) {
		while (groups[u].next_arrival <= now)
			group_arrival(&groups[u], now);
		if (groups[u].next_arrival < next)
			next = groups[u].next_arrival;
	}
	return (next);
}

/* A phase begins: its groups' connections ask.  Returns when it ends. */
static uint64_t
phases(uint64_t now)
{
	uint64_t turn = (now - t_start) / phase_len;
	unsigned u;

	if (phase != turn % nphases) {
		phase = (unsigned)(turn % nphases);
		for (u = 0; u < ngroups; u++)
			if (groups[u].phase == (int)phase)
				group_wake(&groups[u], now);
	}
	return (t_start + (turn + 1) * phase_len);
}

/* Wait until `next` for what comes, and see to it. */
static void
serve(uint64_t now, uint64_t next)
{
	struct epoll_event ev[256];
	struct timespec ts;
	int i, n;

	next = next > now && !busy ? next - now : 0;
	ts.tv_sec = (time_t)(next / NS);
	ts.tv_nsec = (long)(next % NS);
	n = epoll_pwait2(ep, ev, 256, &ts, NULL);
	if (busy && n == 0)
		(void)sched_yield();	/* to the origin */
	now = now_ns();
	for (i = 0; i < n; i++)
		conn_event(ev[i].data.ptr, ev[i].events, now);
}

void
run(void)
{
	uint64_t now, next, end, tick = 0;
	unsigned u;
	int open = 0;

	for (now = now_ns(); now < t_end && !all_spent(); now = now_ns()) {
		if (!open && now >= t_window) {
			open = 1;
			for (u = 0; u < ngroups; u++)
				groups[u].sent_before = groups[u].sent;
			printf("start\n");
			(void)fflush(stdout);
		}
		if (now >= tick)
			tick = ticks(now);
		next = arrivals(now);
		if (tick < next)
			next = tick;
		if (t_end < next)
			next = t_end;
		if (interval > 0) {
			end = intervals(now);
			if (end < next)
				next = end;
		}
		if (nphases > 1) {
			end = phases(now);
			if (end < next)
				next = end;
		}
		if (!open && t_window < next)
			next = t_window;
		serve(now, next);
	}
	if (!open)	/* on a machine too busy to notice the window */
		printf("start\n");
	if (now < t_end)
		t_end = now;
	printf("end\n");
	(void)fflush(stdout);
}

void
drain(uint64_t until)
{
	uint64_t now, owed, tick = 0;
	unsigned u;

	draining = 1;
	for (now = now_ns(); now < until; now = now_ns()) {
		for (owed = 0, u = 0; u < ngroups; u++) {
			owed += group_owed(&groups[u]);
			groups[u].late_head = groups[u].late_tail;
		}
		if (owed == 0)
			break;
		if (now >= tick)
			tick = ticks(now);
		serve(now, tick);
	}
}
