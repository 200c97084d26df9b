/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Hooks of waits: a worker that waits lends its slot, and retakes one when it
 * wakes up.
 *
 * In the paper (section 5.2) a request that fetches spawns a new worker, and
 * later "rejoins".  Here the worker lends its slot when the wait has lasted
 * SPD_PATIENCE, so that a fast origin costs nothing.  A pipe lends it at once.
 * The worker retakes a slot at once, even above W.
 *
 * The thread's spd_me has the state.  The lock guards the slots.
 */

#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>

#include <sys/socket.h>

#include "spd.h"

#include "vtim.h"

#define SPD_PATIENCE	1e-3		/* s, a wait before the slot is lent */
#define SPD_PIPE_BYTES	65536		/* bytes of a pipe, between charges */
#define SPD_PIPE_NS	100000000	/* ns, the same for a slow pipe */

/*--------------------------------------------------------------------
 * A pipe
 */

/*
 * Lend the slot before a pipe.  The client's bytes are no requests from now on,
 * so the connection leaves the epoll set.
 */
void
SPD_Pipe(const struct req *req)
{
	struct spd_conn *c;

	if (!spd_holds_slot())
		return;
	c = spd_conn(req->sp);
	if (c != NULL)
		spd_disarm(c);
	spd_lend();
	if (!METER_Cheap(spd_me.meter))
		(void)spd_lap(&spd_me, 1);
	spd_me.piped_at = METER_Now();
}

/*
 * Charge a pipe that goes on, for its bytes to the client and its CPU time.
 * out: bytes since the pipe began.  A pipe may last for days, so its tenant
 * must pay before the end.  SPD_Done() charges the rest.
 */
void
SPD_Piped(const struct req *req, uint64_t out)
{
	struct spd_worker *me = &spd_me;
	struct spd_tenant *t;
	int64_t now, cpu, net;
	uint64_t wire;

	if (me->magic != SPD_WORKER_MAGIC || me->node == NULL ||
	    spd_req_of(me->node) != req)
		return;
	me->pipe_out = out;
	now = METER_Now();
	if (out - me->piped < SPD_PIPE_BYTES &&
	    now - me->piped_at < SPD_PIPE_NS)
		return;
	me->piped_at = now;
	cpu = vmax_t(int64_t, 0, spd_lap(me, 1));
	wire = COST_Wire(out - me->piped, cache_param->sandpaper_mtu,
	    cache_param->sandpaper_header);
	net = spd_net((int64_t)wire);
	t = spd_tenant_rel(me->node->tenant);
	spd_lock();
	spd_sum_laps(me);
	SPD_COUNT(t, bytes, out - me->piped);
	(void)spd_link_release((int64_t)wire, now);
	spd_charge(t, cpu, net, now);
	spd_unlock();
	me->piped = out;
	me->piped_cpu += cpu;
	me->piped_net += net;
}

/*--------------------------------------------------------------------
 * Condition variables
 *
 * The first call waits for SPD_PATIENCE at most, and returns as if woken.  All
 * callers test their predicate in a loop: it may have become true while the
 * caller's lock was not held, and no thread signals again.  The next call on
 * the same variable lends the slot at once, and waits for its whole tmo.  The
 * caller's lock (boc, sess, or a mutex) comes before `sandpaper` in the order
 * of locks.
 */

/* Wait for cond.  Its lock is mtx, or lck if mtx is NULL.  tmo: s, or INFINITY.
 * Returns 0 or ETIMEDOUT. */
static int
cond_wait(pthread_cond_t *cond, struct lock *lck, pthread_mutex_t *mtx,
    vtim_dur tmo)
{
	struct timespec ts;

	if (mtx == NULL)
		return (Lck_CondWaitTimeout(cond, lck, tmo));
	if (isinf(tmo))
		return (pthread_cond_wait(cond, mtx));
	ts = VTIM_timespec(VTIM_mono() + tmo);
	return (pthread_cond_clockwait(cond, mtx, CLOCK_MONOTONIC, &ts));
}

/* The same, lending the slot from the second call on.  A tmo of SPD_PATIENCE or
 * less never lends. */
static int
cond_lend(pthread_cond_t *cond, struct lock *lck, pthread_mutex_t *mtx,
    vtim_dur tmo)
{
	struct spd_worker *me = &spd_me;
	int r;

	if (!spd_holds_slot() || tmo <= SPD_PATIENCE)
		return (cond_wait(cond, lck, mtx, tmo));
	if (me->lend_next_wait != cond) {
		me->lend_next_wait = NULL;
		r = cond_wait(cond, lck, mtx, SPD_PATIENCE);
		if (r != ETIMEDOUT)
			return (r);
		me->lend_next_wait = cond;
		return (0);
	}
	me->lend_next_wait = NULL;
	spd_lend();
	r = cond_wait(cond, lck, mtx, tmo);
	SPD_Rejoin();
	return (r);
}

/* Like Lck_CondWaitTimeout(), lending the slot: see cond_lend(). */
int
SPD_CondWaitTimeout(pthread_cond_t *cond, struct lock *lck, vtim_dur tmo)
{

	return (cond_lend(cond, lck, NULL, tmo));
}

/* Like Lck_CondWait(), lending the slot. */
int
SPD_CondWait(pthread_cond_t *cond, struct lock *lck)
{

	return (SPD_CondWaitTimeout(cond, lck, INFINITY));
}

/*
 * Like pthread_cond_wait(), lending the slot.  From 8.0 on a worker waits so
 * for the rest of a body (storage_simple.c).  A thread that holds a boc's lock
 * may take the mutex.
 */
int
SPD_CondWaitMutex(pthread_cond_t *cond, pthread_mutex_t *mtx)
{

	return (cond_lend(cond, NULL, mtx, INFINITY));
}

/*
 * Wait for an HTTP/2 window to open, as SPD_CondWaitTimeout().  A wait that
 * lends counts as a slow reader.  If the tenant has as many as it may, the wait
 * that would lend returns ETIMEDOUT at once.
 */
int
SPD_CondWaitWindow(pthread_cond_t *cond, struct lock *lck, vtim_dur tmo)
{
	struct spd_tenant *t;
	int r;

	/* This call does not lend, so the reader does not count as slow. */
	if (!spd_holds_slot() || spd_me.lend_next_wait != cond)
		return (SPD_CondWaitTimeout(cond, lck, tmo));
	t = spd_tenant_rel(spd_me.node->tenant);
	if (spd_writer_begins(t)) {
		spd_me.lend_next_wait = NULL;
		return (ETIMEDOUT);
	}
	r = SPD_CondWaitTimeout(cond, lck, tmo);
	spd_writer_ends(t);
	return (r);
}

/*--------------------------------------------------------------------
 * Read a body
 *
 * When a process is stopped and continued, a call on a socket with a timeout
 * ends with EINTR.  That is no error, here and in writes: the call is made
 * again.
 */

/*
 * Like read(2), lending the slot while no byte comes for SPD_PATIENCE.  If the
 * last read of this request lent, its sender is slow, and this one lends at
 * once.
 */
ssize_t
SPD_Read(int fd, void *ptr, size_t len)
{
	struct pollfd pfd;
	ssize_t l;
	int e;

	if (!spd_holds_slot())
		return (TEMP_FAILURE_RETRY(read(fd, ptr, len)));
	l = recv(fd, ptr, len, MSG_DONTWAIT);
	if (l >= 0 || errno != EAGAIN) {
		spd_me.lend_next_wait = NULL;
		return (l);
	}
	pfd.fd = fd;
	pfd.events = POLLIN;
	if (spd_me.lend_next_wait != spd_me.node &&
	    poll(&pfd, 1, (int)(SPD_PATIENCE * 1e3)) == 1)
		return (TEMP_FAILURE_RETRY(read(fd, ptr, len)));
	spd_me.lend_next_wait = spd_me.node;
	spd_lend();
	l = TEMP_FAILURE_RETRY(read(fd, ptr, len));
	e = errno;
	SPD_Rejoin();
	errno = e;
	return (l);
}
