/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Hooks of waits: a worker that waits lends its slot (paper, section 5.2: "before a
 * request fetches content ... spawns a new worker"; design: "Waits give the slot
 * back").  The slot is the worker's, never the request's.  It is lent when
 * the wait has lasted SPD_PATIENCE (a pipe: at once), so that a fast origin
 * costs nothing, and retaken at once on waking, even above W: the paper's
 * "rejoins".
 */

#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include <sys/socket.h>

#include "spd.h"

#define SPD_PATIENCE	1e-3		/* s, of a wait */
#define SPD_PIPE_BYTES	65536		/* of a pipe, between two charges */
#define SPD_PIPE_NS	100000000	/* the same, when it flows slowly */

/*--------------------------------------------------------------------
 * A pipe
 */

/* What comes from this client is no request any more */
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
 * A pipe may last for days.  So it is charged as it flows: bytes that went to
 * the client, and CPU time.  SPD_Done() charges the rest.
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
	(void)NIC_Release(spd.nic, (uint32_t)vmin_t(uint64_t, wire,
	    UINT32_MAX >> SPD_COUNTED_SHIFT), now);
	spd_charge(t, cpu, net, now);
	spd_unlock();
	me->piped = out;
	me->piped_cpu += cpu;
	me->piped_net += net;
}

/*--------------------------------------------------------------------
 * Condition variables.  What is waited for may come true between the end of
 * SPD_PATIENCE and our getting the caller's lock back: nobody signals again.
 * So the first call returns early, as if woken; all callers look at their
 * predicate in a loop, and the next call on the same variable lends.  What
 * they hold (boc, sess) comes before our lock in the order.
 */

int
SPD_CondWaitTimeout(pthread_cond_t *cond, struct lock *lck, vtim_dur tmo)
{
	struct spd_worker *me = &spd_me;
	int r;

	if (!spd_holds_slot() || tmo <= SPD_PATIENCE)
		return (Lck_CondWaitTimeout(cond, lck, tmo));
	if (me->impatient != cond) {
		me->impatient = NULL;
		r = Lck_CondWaitTimeout(cond, lck, SPD_PATIENCE);
		if (r != ETIMEDOUT)
			return (r);
		me->impatient = cond;
		return (0);
	}
	me->impatient = NULL;
	spd_lend();
	r = Lck_CondWaitTimeout(cond, lck, tmo);
	SPD_Rejoin();
	return (r);
}

int
SPD_CondWait(pthread_cond_t *cond, struct lock *lck)
{

	return (SPD_CondWaitTimeout(cond, lck, INFINITY));
}

int
SPD_CondWaitWindow(pthread_cond_t *cond, struct lock *lck, vtim_dur tmo)
{
	struct spd_tenant *t;
	int r;

	/* As long as it does not lend, it is not slow */
	if (!spd_holds_slot() || spd_me.impatient != cond)
		return (SPD_CondWaitTimeout(cond, lck, tmo));
	t = spd_tenant_rel(spd_me.node->tenant);
	if (spd_writer_begins(t)) {
		spd_me.impatient = NULL;
		return (ETIMEDOUT);
	}
	r = SPD_CondWaitTimeout(cond, lck, tmo);
	spd_writer_ends(t);
	return (r);
}

/*--------------------------------------------------------------------
 * A body, a request's or a response's.
 *
 * When a process is stopped and goes on, calls on sockets with a timeout end
 * with EINTR.  That is no error, here and in writes.
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
		spd_me.impatient = NULL;
		return (l);
	}
	/* No patience with who sends byte by byte */
	pfd.fd = fd;
	pfd.events = POLLIN;
	if (spd_me.impatient != spd_me.node &&
	    poll(&pfd, 1, (int)(SPD_PATIENCE * 1e3)) == 1)
		return (TEMP_FAILURE_RETRY(read(fd, ptr, len)));
	spd_me.impatient = spd_me.node;
	spd_lend();
	l = TEMP_FAILURE_RETRY(read(fd, ptr, len));
	e = errno;
	SPD_Rejoin();
	errno = e;
	return (l);
}
