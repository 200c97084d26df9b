/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * A worker that waits lends its slot (paper, section 5.2: "before a request
 * fetches content ... spawns a new worker"; design: "Waits give the slot
 * back").  The slot is the worker's, never the request's.  It is lent when
 * the wait has lasted SPD_PATIENCE (a pipe: at once), so that a fast origin
 * costs nothing, and retaken at once on waking, even above W: the paper's
 * "rejoins".
 *
 * A worker that blocks in a write is different: on the link it should
 * block, that is what bounds the queue between CPU and NIC.  So it keeps its
 * slot while the link is busy, but not for more than SPD_BLOCKED a request,
 * nor for a reader that does not read: TCP knows which it is.  While the
 * link is not busy it is the client's path that is slow.
 */

#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include <netinet/in.h>
#include <linux/tcp.h>

#include "sp.h"

#include "vtcp.h"
#include "vtim.h"

#define SPD_PATIENCE	1e-3		/* s, of a wait */
#define SPD_LOOK_MS	5		/* of a write, between two looks */
#define SPD_LOOK	(SPD_LOOK_MS * 1000000)	/* ns */
#define SPD_BLOCKED	1000000000	/* ns, of a request's writes */
#define SPD_WRITERS	8U	/* a tenant may have, however few threads are */
#define SPD_PIPE_BYTES	65536		/* of a pipe, between two charges */
#define SPD_PIPE_NS	100000000	/* the same, when it flows slowly */
#define SPD_ACK_MS	200		/* no ACK for so long: it won't come */

static int
spd_holds_slot(void)
{

	return (spd_me.magic == SPD_WORKER_MAGIC && spd_me.slot >= 0 &&
	    spd_me.node != NULL);
}

static void
spd_lend(void)
{
	struct spd_worker *me = &spd_me;
	int lead;

	spd_lock();
	REL_Progress(spd.rel, me->node, REL_NET, METER_Now());
	spd_give_mine(me);
	me->lent = 1;
	spd.lent++;
	spd.vsc->lent = spd.lent;
	spd.vsc->lendings++;
	lead = spd_unwatched();
	spd_unlock();
	spd_dispatch();
	if (lead)
		spd_summon();
}

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

void
SPD_Rejoin(void)
{
	struct spd_worker *me = &spd_me;

	if (!me->lent)
		return;
	spd_lock();
	AN(spd.lent);
	spd.lent--;
	spd.vsc->lent = spd.lent;
	spd_retake(me);
	me->lent = 0;
	spd_unlock();
	me->fresh = METER_Now();
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

/*--------------------------------------------------------------------
 * Writing.  TCP_INFO over the last SPD_LOOK_MS: was the sender busy but
 * held up by the receiver's window, or are its bytes not acknowledged?
 * (facts: 0 to 0.4 % for a fast client on a saturated link, 76 to 100 %
 * for one that reads slowly or not at all.)
 */

struct spd_look {
	int		began;
	uint64_t	busy, rwnd;	/* us */
};

static int
spd_slow_reader(int fd, struct spd_look *last)
{
	struct tcp_info ti;
	socklen_t l = sizeof ti;
	uint64_t busy, rwnd;

	memset(&ti, 0, sizeof ti);
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &ti, &l))
		return (1);		/* no TCP: only time tells */
	busy = ti.tcpi_busy_time - last->busy;
	rwnd = ti.tcpi_rwnd_limited - last->rwnd;
	last->busy = ti.tcpi_busy_time;
	last->rwnd = ti.tcpi_rwnd_limited;
	if (ti.tcpi_unacked > 0 && ti.tcpi_last_ack_recv > SPD_ACK_MS)
		return (1);
	return (busy > 0 && rwnd * 2 > busy);
}

/* So many bytes have gone to the client of the running request, if it is its
 * descriptor.  Varnish counts what it has handed down, which may never go. */
static ssize_t
spd_sent(int fd, ssize_t l)
{
	struct spd_worker *me = &spd_me;

	if (l > 0 && me->magic == SPD_WORKER_MAGIC && me->node != NULL &&
	    spd_req_of(me->node)->sp->fd == fd)
		me->sent += (size_t)l;
	return (l);
}

/*
 * Send what follows the first `done` bytes of iov, as the flags say: all, or
 * what is left of a part that has begun.
 */
static ssize_t
spd_send(int fd, const struct iovec *iov, int n, size_t done, int flags)
{
	struct msghdr msg;

	for (; n > 0 && done >= iov->iov_len; iov++, n--)
		done -= iov->iov_len;
	assert(n > 0);
	/* The kernel would hold bytes back for more that never come */
	while (n > 1 && iov[n - 1].iov_len == 0)
		n--;
	flags |= MSG_NOSIGNAL;
	if (done > 0)
		return (spd_sent(fd, send(fd, (const char *)iov->iov_base +
		    done, iov->iov_len - done, flags |
		    (n > 1 ? MSG_MORE : 0))));
	memset(&msg, 0, sizeof msg);
	msg.msg_iov = TRUST_ME(iov);
	msg.msg_iovlen = (size_t)n;
	return (spd_sent(fd, sendmsg(fd, &msg, flags)));
}

/*--------------------------------------------------------------------
 * Slow readers hold a worker each: who does not take what is sent, or does
 * not open an HTTP/2 window.  Once they have half of all threads, a tenant
 * may have an eighth.
 */

/* 1: there are as many as there may be */
static int
spd_writer_begins(struct spd_tenant *t)
{
	unsigned all = cache_param->wthread_max * cache_param->wthread_pools;
	struct spd_tenant *liable;
	struct spd_excess e;
	int shed;

	spd_lock();
	liable = spd_new_liable(t);
	shed = spd.writers >= all / 2 && spd_exceeds_new(&e, t,
	    "slow readers (see thread_pool_max)", t->writers, liable->writers,
	    vmax_t(unsigned, all / 8, SPD_WRITERS));
	if (shed) {
		SPD_COUNT(t, shed, 1);
		spd.vsc->shed++;
	} else {
		t->writers++;
		spd_me.writer_of = liable != t ? liable : NULL;
		if (liable != t)
			liable->writers++;
		spd.writers++;
	}
	spd_unlock();
	if (shed)
		spd_log_excess(spd_req_of(spd_me.node)->vsl, &e);
	return (shed);
}

static void
spd_writer_ends(struct spd_tenant *t)
{

	spd_lock();
	t->writers--;
	if (spd_me.writer_of != NULL)
		spd_me.writer_of->writers--;
	spd_me.writer_of = NULL;
	spd.writers--;
	spd_unlock();
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

/* How much spd_send() tries to send, of iov's len bytes, `done` being sent */
static size_t
spd_asks(const struct iovec *iov, size_t done, size_t len)
{
	size_t begin = 0;

	for (; begin + iov->iov_len <= done; iov++)
		begin += iov->iov_len;
	return (begin == done ? len - done : begin + iov->iov_len - done);
}

/* Lent: all of it, or what goes before the socket's own time-out */
static ssize_t
spd_write_slowly(int fd, const struct iovec *iov, int n, size_t done,
    size_t len)
{
	struct rel_node *node = spd_me.node;
	struct spd_tenant *t = spd_tenant_rel(node->tenant);
	size_t asked;
	ssize_t l;
	int e;

	spd_lock();
	spd.vsc->slow_readers += !(SPD_FLAGS(node) & SPD_F_SLOW);
	/* What it does not read does not stand before the link */
	(void)NIC_Correct(spd.nic, SPD_FLAGS(node) >> SPD_COUNTED_SHIFT, 0,
	    METER_Now());
	SPD_FLAGS(node) &= (1U << SPD_COUNTED_SHIFT) - 1;
	SPD_FLAGS(node) |= SPD_F_SLOW;
	spd_unlock();
	if (spd_writer_begins(t)) {
		errno = EPIPE;
		return (-1);
	}
	spd_lend();
	do {
		asked = spd_asks(iov, done, len);
		l = TEMP_FAILURE_RETRY(spd_send(fd, iov, n, done, 0));
		if (l > 0)
			done += (size_t)l;
	} while (l > 0 && (size_t)l == asked && done < len);
	e = errno;
	SPD_Rejoin();
	spd_writer_ends(t);
	errno = e;
	return (done > 0 ? (ssize_t)done : l);
}

/* An answer without VCL.  A worker that parses waits for no reader; nor does
 * one with a slot that has answered a request, and reads the next one. */
ssize_t
SPD_Write(int fd, const void *ptr, size_t len)
{
	const struct spd_worker *me = &spd_me;
	struct iovec iov;

	if (me->magic == SPD_WORKER_MAGIC && (me->parsing ||
	    (me->slot >= 0 && me->node == NULL)))
		return (send(fd, ptr, len, MSG_DONTWAIT | MSG_NOSIGNAL));
	iov.iov_base = TRUST_ME(ptr);
	iov.iov_len = len;
	return (SPD_Writev(fd, &iov, 1));
}

/* The policy waits for requests to begin service on the link */
static void
spd_begin_sending(struct rel_node *n)
{

	SPD_FLAGS(n) |= SPD_F_SENDING;
	spd_lock();
	REL_Progress(spd.rel, n, REL_NET, METER_Now());
	spd_unlock();
	spd_dispatch();
}

/* In the last epoch, or by what has been released since */
static int
spd_link_busy(int64_t now)
{
	int busy = spd.link_busy;

	if (!busy) {
		spd_lock();
		busy = NIC_Busy(spd.nic, now);
		spd_unlock();
	}
	return (busy);
}

/* Wait for room in the socket, with the slot.  0: no longer */
static int
spd_wait_for_room(struct spd_worker *me, int fd, struct spd_look *look)
{
	struct pollfd pfd;
	int64_t from;
	int ready;

	if (SPD_FLAGS(me->node) & SPD_F_SLOW)
		return (0);
	if (!look->began)
		(void)spd_slow_reader(fd, look);
	look->began = 1;
	pfd.fd = fd;
	pfd.events = POLLOUT;
	from = METER_Now();
	ready = poll(&pfd, 1, SPD_LOOK_MS);
	me->fresh = METER_Now();
	me->blocked += me->fresh - from;
	if (me->blocked >= SPD_BLOCKED ||
	    (me->blocked >= SPD_LOOK && !spd_link_busy(me->fresh)))
		return (0);
	return (ready != 0 || !spd_slow_reader(fd, look));
}

/*
 * Like writev(2) on a blocking socket: all, or part and a time-out, or an
 * error.
 */
ssize_t
SPD_Writev(int fd, const struct iovec *iov, int n)
{
	struct spd_look look = { 0, 0, 0 };
	size_t len = 0, done = 0;
	ssize_t l;
	int i;

	if (!spd_holds_slot())
		return (spd_sent(fd, TEMP_FAILURE_RETRY(writev(fd, iov, n))));
	if (spd.synchronised && !(SPD_FLAGS(spd_me.node) & SPD_F_SENDING))
		spd_begin_sending(spd_me.node);
	for (i = 0; i < n; i++)
		len += iov[i].iov_len;
	while (done < len) {
		l = spd_send(fd, iov, n, done, MSG_DONTWAIT);
		if (l >= 0)
			done += (size_t)l;
		else if (errno != EAGAIN)
			return (done > 0 ? (ssize_t)done : -1);
		else if (!spd_wait_for_room(&spd_me, fd, &look))
			return (spd_write_slowly(fd, iov, n, done, len));
	}
	return ((ssize_t)done);
}
