/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Find what stalls: workers that block without a hook, requests that wait for
 * too long, and a releaser that releases nothing.
 *
 * Only the keeper calls this.  The static variables are the keeper's.  The lock
 * guards the workers' slots and the releaser.
 */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "spd.h"

/*--------------------------------------------------------------------
 * Workers that block
 *
 * A worker may hold a slot while its CPU clock stands still.  Then it waits
 * for something without a hook, such as a VMOD's I/O or a lock.  After
 * SPD_STILL the keeper takes its slot away.  A worker that only waits for a
 * core keeps its slot: on a loaded machine such a wait may be as long.
 */

#define SPD_STILL	200000000	/* ns without CPU time */
#define SPD_LONG	20000000	/* ns: only requests that have run for
					 * this long are looked at */
#define SPD_LOOKED	256		/* slots a look, at most */

/* Return the time of a thread's CPU clock, ns, or -1. */
static int64_t
cpu_of(clockid_t clock)
{
	struct timespec ts;

	if (clock_gettime(clock, &ts))
		return (-1);		/* the thread has ended */
	return ((int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec);
}

/* Return 1 if the thread runs or waits for a core.  0: the thread sleeps, or
 * /proc cannot be read. */
static int
spd_runnable(pid_t tid)
{
	char path[48], stat[128];
	const char *p;
	ssize_t l;
	int fd;

	bprintf(path, "/proc/self/task/%d/stat", (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return (0);
	l = read(fd, stat, sizeof stat - 1);
	(void)close(fd);
	stat[vmax_t(ssize_t, l, 0)] = '\0';
	p = strrchr(stat, ')');		/* the name may have ')', too */
	return (p != NULL && !strncmp(p, ") R", 3));
}

/*
 * Return 1 if the worker's CPU clock has stood still for SPD_STILL.  Up to 10
 * us of CPU time between two looks count as none.  Caller holds spd_lock().
 */
static int
spd_still(struct spd_worker *w, int64_t cpu, int runnable, int64_t now)
{

	SPD_LOCKED();
	if (w->looked_began != w->began)
		w->first_cpu = cpu;
	if (w->looked_began != w->began || cpu < 0 || runnable ||
	    cpu - w->looked_cpu > 10000) {
		w->looked_began = w->began;
		w->looked_cpu = cpu;
		w->still = now;
		return (0);
	}
	return (now - w->still >= SPD_STILL);
}

/*
 * Look at the workers with requests that have run for SPD_LONG.  Charge each
 * for its CPU time so far, or take its slot away if its CPU clock stands
 * still.  Only the slots are read under the lock; clocks and /proc are read
 * without.
 */
void
spd_watch(int64_t now)
{
	static unsigned at;		/* word of the slots to begin with */
	int64_t cpu[SPD_LOOKED];
	clockid_t clock[SPD_LOOKED];
	pid_t tid[SPD_LOOKED];		/* 0: spd_runnable() not needed */
	int slot[SPD_LOOKED], runnable[SPD_LOOKED], s;
	struct spd_worker *w;
	uint64_t taken;
	unsigned words, n = 0, u, owners = 0, stolen = 0;

	spd_lock();
	for (words = 0; words < SPD_SLOTS_MAX / 64 &&
	    owners + 64 <= SPD_LOOKED; words++) {
		taken = spd_slots_taken(at);
		for (; taken != 0; taken &= taken - 1, owners++) {
			s = (int)at * 64 + __builtin_ctzll(taken);
			w = spd_owner(s);
			if (w == NULL || now - w->began < SPD_LONG)
				continue;
			slot[n] = s;
			tid[n] = w->looked_began == w->began &&
			    now - w->still >= SPD_STILL ? w->tid : 0;
			clock[n++] = w->clock;
		}
		at = (at + 1) % (SPD_SLOTS_MAX / 64);
	}
	spd_unlock();
	if (n == 0)
		return;
	for (u = 0; u < n; u++) {
		cpu[u] = cpu_of(clock[u]);
		runnable[u] = tid[u] != 0 && spd_runnable(tid[u]);
	}
	spd_lock();
	for (u = 0; u < n; spd_pause(u++)) {
		w = spd_owner(slot[u]);
		if (w == NULL || w->clock != clock[u])
			continue;		/* another worker's, or free */
		if (!spd_still(w, cpu[u], runnable[u], now)) {
			spd_refresh(w, cpu[u], now);
			continue;
		}
		spd_give(slot[u]);
		stolen++;
	}
	spd_vsc->stalled += stolen;
	spd_unlock();
	if (stolen)
		spd_dispatch();
}

/*--------------------------------------------------------------------
 * Requests that wait for too long
 */
#define SPD_STUCK	INT64_C(5000000000)	/* ns */
#define SPD_LATE_BATCH	16

/*
 * Return 1 if requests have waited for SPD_STUCK and none was released.
 * Requests behind their tenant's limit do not count.  Returns 1 once per
 * SPD_STUCK.  Caller holds spd_lock().
 */
static int
spd_stuck(int64_t now)
{
	static uint64_t released, late;
	static int64_t since;
	unsigned waiting = REL_Waiting(spd_rel) - REL_Throttled(spd_rel);

	SPD_LOCKED();
	if (spd_vsc->released != released || spd_frozen() ||
	    (waiting == 0 && spd_vsc->refused_late == late)) {
		released = spd_vsc->released;
		late = spd_vsc->refused_late;
		since = now;
	}
	if (now - since < SPD_STUCK || waiting == 0)
		return (0);
	since = now;
	spd_vsc->stuck++;
	return (1);
}

/* Log that no request was released for SPD_STUCK. */
static void
spd_tell_stuck(int64_t now)
{
	unsigned waiting, running, open, lent;
	char until[32] = "";
	int64_t opens;
	int closed;

	spd_lock();
	waiting = REL_Waiting(spd_rel);
	running = spd_running();
	open = spd_slots_open();
	lent = spd_lent();
	closed = spd_link_closed(now, &opens);
	spd_unlock();
	if (closed)
		bprintf(until, " for %.3f s", (double)(opens - now) * 1e-9);
	VSL(SLT_Error, NO_VXID, "Sandpaper: no request was released for %d s: "
	    "%u waiting, %u of %u open slots in use, %u lent, net %s%s",
	    (int)(SPD_STUCK / 1000000000), waiting, running, open, lent,
	    closed ? "closed" : "open", until);
}

/*
 * Take requests that have waited for sandpaper_queue_timeout out of the queue,
 * and have a worker refuse each.
 */
static void
spd_time_out(int64_t now)
{
	int64_t limit = (int64_t)(cache_param->sandpaper_queue_timeout * 1e9);
	struct req *req, *streams[SPD_LATE_BATCH];
	struct rel_node *n;
	unsigned found, u, nstreams;

	if (limit == 0 || spd_set.mode != SPD_ON)
		return;
	do {
		nstreams = 0;
		spd_lock();
		for (found = 0; found < SPD_LATE_BATCH; found++) {
			n = REL_First(spd_rel);
			if (n == NULL || now - n->arrival < limit)
				break;
			req = spd_req_of(n);
			spd_count_late(spd_tenant_rel(n->tenant), now);
			spd_take_out(n, now);
			SPD_REQUEST(n)->flags |= SPD_F_LATE;
			if (SPD_REQUEST(n)->flags & SPD_F_H2)
				streams[nstreams++] = req;
			else
				spd_ready_push(spd_conn(req->sp), now);
		}
		spd_unlock();
		for (u = 0; u < nstreams; u++)
			AZ(Pool_Task(streams[u]->sp->pool,
			    SPD_TASK(streams[u]), TASK_QUEUE_RUSH));
		if (found > nstreams)
			spd_summon();
	} while (found == SPD_LATE_BATCH);
}

/* Look at the requests that wait: log, count, and refuse late ones. */
void
spd_watch_queue(int64_t now)
{
	int stuck;

	spd_lock();
	stuck = spd_stuck(now);
	spd_vsc->oldest_wait_ms = REL_Oldest(spd_rel) < 0 ? 0 :
	    (uint64_t)vmax_t(int64_t, 0, now - REL_Oldest(spd_rel)) / 1000000;
	spd_vsc->congestion_cpu = (uint64_t)(spd_congestion(REL_CPU, now) *
	    1000);
	spd_vsc->congestion_net = (uint64_t)(spd_congestion(REL_NET, now) *
	    1000);
	spd_unlock();
	if (stuck)
		spd_tell_stuck(now);
	spd_time_out(now);
}
