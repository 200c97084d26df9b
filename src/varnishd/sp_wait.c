/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * A worker that waits lends its slot (paper, section 5.2: "before a request
 * fetches content ... spawns a new worker"; design: "Waits give the slot
 * back").  The slot is the worker's, never the request's.  It is lent when
 * the wait has lasted SPD_PATIENCE, so that a fast origin costs nothing,
 * and retaken at once on waking, even above W: the paper's "rejoins".
 *
 * A worker that blocks in a write is different: on the link it should
 * block, that is what bounds the queue between CPU and NIC.  Only a reader
 * that does not read has its slot taken away, and TCP knows which it is.
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
#define SPD_LOOKS	200		/* a link that slow is a slow reader's */
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

	Lck_Lock(&spd.mtx);
	spd_give(me->slot);
	me->slot = -1;
	me->lent = 1;
	spd.lent++;
	spd.vsc->lent = spd.lent;
	spd.vsc->lendings++;
	lead = !spd.leader;
	Lck_Unlock(&spd.mtx);
	spd_dispatch();
	if (lead)
		spd_summon();
}

/* What comes from this client is no request any more */
void
SPD_Pipe(const struct req *req)
{
	struct spd_conn *c;

	if (spd.mode == SPD_OFF || !spd_holds_slot())
		return;
	c = spd_conn(req->sp);
	if (c != NULL)
		spd_disarm(c);
	spd_lend();
}

void
SPD_Rejoin(void)
{
	struct spd_worker *me = &spd_me;

	if (!me->lent)
		return;
	Lck_Lock(&spd.mtx);
	AN(spd.lent);
	spd.lent--;
	spd.vsc->lent = spd.lent;
	me->slot = spd_take();
	me->lent = 0;
	Lck_Unlock(&spd.mtx);
}

/*--------------------------------------------------------------------
 * Condition variables.  All callers loop over their predicate, so that an
 * early return for lending is theirs to go round again: what they hold
 * (boc, sess) comes before our lock in the order.
 */

int
SPD_CondWaitTimeout(pthread_cond_t *cond, struct lock *lck, vtim_dur tmo)
{
	vtim_real t0;
	int r;

	if (!spd_holds_slot())
		return (Lck_CondWaitTimeout(cond, lck, tmo));
	if (tmo > 0 && tmo <= SPD_PATIENCE)
		return (Lck_CondWaitTimeout(cond, lck, tmo));
	t0 = VTIM_real();
	r = Lck_CondWaitTimeout(cond, lck, SPD_PATIENCE);
	if (r != ETIMEDOUT)
		return (r);
	spd_lend();
	if (tmo > 0) {
		tmo -= VTIM_real() - t0;
		r = Lck_CondWaitTimeout(cond, lck, vmax(tmo, SPD_PATIENCE));
	} else
		r = Lck_CondWait(cond, lck);
	SPD_Rejoin();
	return (r);
}

int
SPD_CondWait(pthread_cond_t *cond, struct lock *lck)
{

	if (!spd_holds_slot())
		return (Lck_CondWait(cond, lck));
	return (SPD_CondWaitTimeout(cond, lck, 0.));
}

/*--------------------------------------------------------------------
 * A request's body
 */

ssize_t
SPD_Read(int fd, void *ptr, size_t len)
{
	struct pollfd pfd;
	ssize_t l;

	if (!spd_holds_slot())
		return (read(fd, ptr, len));
	l = recv(fd, ptr, len, MSG_DONTWAIT);
	if (l >= 0 || errno != EAGAIN)
		return (l);
	pfd.fd = fd;
	pfd.events = POLLIN;
	if (poll(&pfd, 1, (int)(SPD_PATIENCE * 1e3)) == 1)
		return (read(fd, ptr, len));
	spd_lend();
	l = read(fd, ptr, len);
	pfd.fd = errno;
	SPD_Rejoin();
	errno = pfd.fd;
	return (l);
}

/*--------------------------------------------------------------------
 * Writing.  TCP_INFO over the last SPD_LOOK_MS: was the sender busy but
 * held up by the receiver's window, or are its bytes not acknowledged?
 * (facts: 0 to 0.4 % for a fast client on a saturated link, 76 to 100 %
 * for one that reads slowly or not at all.)
 */

struct spd_look {
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

/* A short count is no time-out: V1L_Flush() looks at errno */
static ssize_t
spd_wrote(ssize_t l)
{

	if (l >= 0)
		errno = 0;
	return (l);
}

static ssize_t
spd_sendmsg(int fd, const struct iovec *iov, int n)
{
	struct msghdr msg;

	memset(&msg, 0, sizeof msg);
	msg.msg_iov = TRUST_ME(iov);
	msg.msg_iovlen = (size_t)n;
	return (sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL));
}

/* Workers that one tenant's slow readers may hold */
static unsigned
spd_writers_max(void)
{
	unsigned u;

	u = cache_param->wthread_max * cache_param->wthread_pools / 8;
	return (vmax_t(unsigned, u, 8));
}

/* Lent: as long as it takes, up to the socket's own time-out */
static ssize_t
spd_write_slowly(int fd, const struct iovec *iov, int n)
{
	struct spd_tenant *t = spd_tenant_rel(spd_me.node->tenant);
	struct rel_node *node = spd_me.node;
	ssize_t l;
	int e;

	Lck_Lock(&spd.mtx);
	spd.vsc->slow_readers++;
	/* What it does not read does not stand before the link */
	(void)NIC_Correct(spd.nic, SPD_FLAGS(node) >> SPD_COUNTED_SHIFT, 0,
	    METER_Now());
	SPD_FLAGS(node) &= (1U << SPD_COUNTED_SHIFT) - 1;
	SPD_FLAGS(node) |= SPD_F_SLOW;
	if (t->writers >= spd_writers_max()) {
		spd.vsc->shed++;
		Lck_Unlock(&spd.mtx);
		errno = EPIPE;
		return (-1);
	}
	t->writers++;
	spd.writers++;
	Lck_Unlock(&spd.mtx);
	spd_lend();
	l = writev(fd, iov, n);
	e = errno;
	SPD_Rejoin();
	Lck_Lock(&spd.mtx);
	t->writers--;
	spd.writers--;
	Lck_Unlock(&spd.mtx);
	errno = e;
	return (l);
}

/*
 * Like writev(2) on a blocking socket: all, or part and a time-out, or an
 * error.  The caller goes round again for the rest.
 */
ssize_t
SPD_Writev(int fd, const struct iovec *iov, int n)
{
	struct spd_look look = { 0, 0 };
	struct pollfd pfd;
	ssize_t l;
	int i;

	if (!spd_holds_slot())
		return (writev(fd, iov, n));
	l = spd_sendmsg(fd, iov, n);
	if (l >= 0 || errno != EAGAIN)
		return (spd_wrote(l));
	pfd.fd = fd;
	pfd.events = POLLOUT;
	(void)spd_slow_reader(fd, &look);
	for (i = 0; i < SPD_LOOKS; i++) {
		if (poll(&pfd, 1, SPD_LOOK_MS) == 1) {
			l = spd_sendmsg(fd, iov, n);
			if (l >= 0 || errno != EAGAIN)
				return (spd_wrote(l));
		} else if (spd_slow_reader(fd, &look))
			break;
	}
	return (spd_write_slowly(fd, iov, n));
}
