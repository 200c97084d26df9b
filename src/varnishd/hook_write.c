/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Hooks of writes to a client: a worker that blocks lends its slot only to a
 * slow reader.
 *
 * A worker that blocks because net is busy must keep its slot.  That bounds
 * the queue between cpu and net.  The client is a slow reader in one of three
 * cases:
 *  - net is not busy, and the request's writes have blocked for SPD_LOOK;
 *  - TCP_INFO says that the client does not read;
 *  - the request's writes have blocked for SPD_BLOCKED in all.
 *
 * The thread's spd_me and the node's flags have the state.  Only the request's
 * worker writes them.
 */

#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include <netinet/in.h>
#include <linux/tcp.h>

#include "spd.h"

#define SPD_LOOK_MS	5		/* ms, of a write, between two looks */
#define SPD_LOOK	(SPD_LOOK_MS * 1000000)	/* ns */
#define SPD_BLOCKED	1000000000	/* ns, of all writes of a request */
#define SPD_NO_ACK	200000000	/* ns without an ACK: a slow reader */

/*--------------------------------------------------------------------
 * Is the client a slow reader?
 */

struct spd_look {			/* of one write */
	int64_t		began;		/* ns, when it first waited, or 0 */
	/* TCP_INFO at the last look, us: busy; limited by the window */
	uint64_t	busy, rwnd;
};

/*
 * Return 1 if the client reads slowly, or if there is no TCP_INFO.  It reads
 * slowly if one of two things is true:
 *  - since the last look its window limited the connection for more than half
 *    of the busy time;
 *  - the write has waited for SPD_NO_ACK, no ACK came in that time, and some
 *    bytes are not acknowledged.
 * An old ACK alone says nothing: it may have come with the request, which then
 * waited for its release.
 *
 * On a full link of 100 Mbit/s the window's part was 0 to 0.4 % for a fast
 * client.  For a client that reads slowly or not at all it was 76 to 100 %.
 */
static int
spd_slow_reader(int fd, struct spd_look *last, int64_t now)
{
	struct tcp_info ti;
	socklen_t l = sizeof ti;
	uint64_t busy, rwnd;

	memset(&ti, 0, sizeof ti);
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &ti, &l))
		return (1);		/* no TCP: each such wait is slow */
	busy = ti.tcpi_busy_time - last->busy;
	rwnd = ti.tcpi_rwnd_limited - last->rwnd;
	last->busy = ti.tcpi_busy_time;
	last->rwnd = ti.tcpi_rwnd_limited;
	if (ti.tcpi_unacked > 0 && now - last->began > SPD_NO_ACK &&
	    ti.tcpi_last_ack_recv * INT64_C(1000000) > SPD_NO_ACK)
		return (1);
	return (busy > 0 && rwnd * 2 > busy);
}

/*
 * Count l bytes as sent, if fd is that of the running request's client.
 * Returns l.  Varnish's own counters also have bytes that never reach the
 * socket.
 */
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
 * Send the bytes of iov after the first `done` ones.  If `done` is within a
 * part of iov, send only the rest of that part.  Returns as sendmsg(2).
 */
static ssize_t
spd_send(int fd, const struct iovec *iov, int n, size_t done, int flags)
{
	struct msghdr msg;

	for (; n > 0 && done >= iov->iov_len; iov++, n--)
		done -= iov->iov_len;
	assert(n > 0);
	/* With MSG_MORE and nothing to follow, the kernel would hold bytes
	 * back. */
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

/* Return how many bytes spd_send() tries to send.  iov has len bytes in all. */
static size_t
spd_asks(const struct iovec *iov, size_t done, size_t len)
{
	size_t begin = 0;

	for (; begin + iov->iov_len <= done; iov++)
		begin += iov->iov_len;
	return (begin == done ? len - done : begin + iov->iov_len - done);
}

/*
 * Lend the slot, and write to a slow reader with a blocking socket.  Returns
 * the bytes of iov that are sent by now, or -1.  Fewer than len: the socket's
 * timeout has passed.  EPIPE: the tenant has as many slow readers as it may.
 */
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
	spd_vsc->slow_readers += !(SPD_REQUEST(node)->flags & SPD_F_SLOW);
	/* The request's bytes wait for the client, not for net. */
	spd_link_correct(node, 0, METER_Now());
	SPD_REQUEST(node)->counted = 0;
	SPD_REQUEST(node)->flags |= SPD_F_SLOW;
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

/* Tell a policy with synchronisation that the request begins on net. */
static void
spd_begin_sending(struct rel_node *n)
{

	SPD_REQUEST(n)->flags |= SPD_F_SENDING;
	spd_lock();
	REL_Progress(spd_rel, n, REL_NET, METER_Now());
	spd_unlock();
	spd_dispatch();
}

/*
 * Wait for room in the socket, at most SPD_LOOK_MS, and keep the slot.
 * Returns 0 if the client is a slow reader.
 */
static int
spd_wait_for_room(struct spd_worker *me, int fd, struct spd_look *look)
{
	struct pollfd pfd;
	int64_t from;
	int ready;

	if (SPD_REQUEST(me->node)->flags & SPD_F_SLOW)
		return (0);
	from = METER_Now();
	if (look->began == 0) {
		look->began = from;
		(void)spd_slow_reader(fd, look, from);
	}
	pfd.fd = fd;
	pfd.events = POLLOUT;
	ready = poll(&pfd, 1, SPD_LOOK_MS);
	me->slice_start = METER_Now();
	me->blocked += me->slice_start - from;
	if (me->blocked >= SPD_BLOCKED ||
	    (me->blocked >= SPD_LOOK && !spd_link_busy(me->slice_start)))
		return (0);
	return (ready != 0 || !spd_slow_reader(fd, look, me->slice_start));
}

/* Write all bytes as SPD_Writev() does, without a look at the stage. */
static ssize_t
spd_writev(int fd, const struct iovec *iov, int n)
{
	struct spd_look look = { 0, 0, 0 };
	size_t len = 0, done = 0;
	ssize_t l;
	int i;

	if (!spd_holds_slot())
		return (spd_sent(fd, TEMP_FAILURE_RETRY(writev(fd, iov, n))));
	if (spd_set.synchronised &&
	    !(SPD_REQUEST(spd_me.node)->flags & SPD_F_SENDING))
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

/*
 * Like write(2), for an answer without VCL and for a pipe.  A worker that
 * parses, or has a slot and no request, does not wait for room in the socket.
 */
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
	return (spd_writev(fd, &iov, 1));
}

/*
 * Like writev(2) on a blocking socket, lending the slot to a slow reader.  It
 * writes all bytes, or fewer if the socket's timeout passes.  -1: an error.
 */
ssize_t
SPD_Writev(int fd, const struct iovec *iov, int n)
{

	if (spd_holds_slot() && spd_me.sends_at == 0)
		spd_stage_sends(&spd_me);
	return (spd_writev(fd, iov, n));
}
