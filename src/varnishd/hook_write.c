/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Hooks of writes to a client.
 *
 * A worker that blocks in a write is different from one that waits: on the link it
 * should block, that is what bounds the queue between CPU and NIC.  So it keeps its
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

#include "spd.h"

#define SPD_LOOK_MS	5		/* of a write, between two looks */
#define SPD_LOOK	(SPD_LOOK_MS * 1000000)	/* ns */
#define SPD_BLOCKED	1000000000	/* ns, of a request's writes */
#define SPD_ACK_MS	200		/* no ACK for so long: it won't come */

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
