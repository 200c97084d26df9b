/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * A connection between two requests, in a table by file descriptor.
 *
 * A parked connection is in Sandpaper's epoll set, edge-triggered and entered
 * once.  So a keep-alive request costs neither a poll nor a wake-up.  The
 * connection is also in a heap, with the earliest deadline at the root.
 * Clients can choose the order of deadlines.  So no function here walks a
 * list.
 *
 * The table only grows, without a lock.  Its owner and spd_lock() guard a
 * record: doc/internals/locking.md.  The heap is under spd_lock().
 */

#include "config.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <sys/epoll.h>

#include "spd.h"

#include "vtim.h"

#define SPD_CHUNK	1024		/* connections, allocated at once */
#define SPD_FDS_MAX	(1 << 22)
#define SPD_YEAR	3e7		/* s: no connection is parked longer */

static struct spd_conn *_Atomic chunks[SPD_FDS_MAX / SPD_CHUNK];
static struct vbh *deadlines;		/* of parked connections; locked */
SPD_STATIC _Atomic unsigned nparked;	/* changed under the lock */
SPD_STATIC int epoll_fd = -1;		/* set at start */

/* Return the epoll set of all connections. */
int
spd_epoll(void)
{

	return (epoll_fd);
}

/* Return the number of PARKED connections.  No lock is needed. */
unsigned
spd_nparked(void)
{

	return (nparked);
}

/*
 * Return the record of a file descriptor.  NULL: there is no memory, or the
 * number is SPD_FDS_MAX or more.  No lock is needed.
 */
struct spd_conn *
spd_conn_fd(int fd)
{
	struct spd_conn *c, *none = NULL;

	assert(fd >= 0);
	if (fd >= SPD_FDS_MAX)
		return (NULL);
	c = chunks[fd / SPD_CHUNK];
	if (c == NULL) {
		c = calloc(SPD_CHUNK, sizeof *c);
		if (c == NULL)
			return (NULL);
		if (!atomic_compare_exchange_strong(&chunks[fd / SPD_CHUNK],
		    &none, c)) {
			free(c);
			c = none;
		}
	}
	return (&c[fd % SPD_CHUNK]);
}

/*
 * Return 1 if the record is that of the session, and 0 if the file descriptor
 * had another session.  Only the owner of the descriptor may call it.  The
 * load pairs with spd_conn_leave().
 */
int
spd_conn_of(struct spd_conn *c, const struct sess *sp)
{

	(void)atomic_load_explicit(&c->left, memory_order_acquire);
	return (c->sp == sp && c->vxid == VXID(sp->vxid));
}

/*
 * Change the state of a connection.  doc/internals/locking.md says who owns it
 * in each state, and has the same table.  Caller holds spd_lock().
 */
void
spd_conn_to(struct spd_conn *c, enum spd_conn_state to)
{
#define TO(state)	(1U << SPD_##state)
	static const unsigned allowed[] = {
		[SPD_BUSY] =	TO(PARKED) | TO(READY) | TO(QUEUED),
		[SPD_PARKED] =	TO(BUSY),
		[SPD_READY] =	TO(BUSY),
		[SPD_QUEUED] =	TO(BUSY) | TO(READY),
	};
#undef TO

	SPD_LOCKED();
	assert(allowed[c->state] & 1U << to);
	c->state = to;
}

/*
 * Return the record of a session, and begin it if the file descriptor had
 * another session.  NULL: there is none, and the session is served as in
 * stock.  Only the owner of the descriptor may call it.  Takes spd_lock() to
 * begin.
 */
struct spd_conn *
spd_conn(const struct sess *sp)
{
	struct spd_conn *c;

	if (sp->fd < 0)
		return (NULL);
	c = spd_conn_fd(sp->fd);
	if (c == NULL || spd_conn_of(c, sp))
		return (c);
	spd_lock();
	assert(c->state == SPD_BUSY);
	memset(c, 0, offsetof(struct spd_conn, left));
	c->serial++;
	c->sp = TRUST_ME(sp);
	c->fd = sp->fd;
	c->vxid = VXID(sp->vxid);
	spd_unlock();
	return (c);
}

/*
 * End the use of a record by this thread, for now or for good.  The next user
 * gets the descriptor from the kernel, after the session closed it.  C does
 * not know this order: `left` adds it.  Do not call this for a connection that
 * was parked, queued or made READY: another worker may have it by now.
 */
void
spd_conn_leave(struct spd_conn *c)
{

	atomic_store_explicit(&c->left, 1, memory_order_release);
}

/* Enter the connection into the epoll set.  Return 1 if it is there. */
int
spd_arm(struct spd_conn *c)
{
	struct epoll_event ev;

	if (c->armed)
		return (1);
	ev.events = EPOLLIN | EPOLLRDHUP | EPOLLET;
	ev.data.u64 = (uint64_t)c->serial << 32 | (unsigned)c->fd;
	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, c->fd, &ev) == 0 ||
	    errno == EEXIST)
		c->armed = 1;
	return (c->armed);
}

/*
 * Take the connection out of the epoll set, forget its events, and leave its
 * record.  Takes spd_lock().
 */
void
spd_disarm(struct spd_conn *c)
{

	if (c->armed) {
		c->armed = 0;
		(void)epoll_ctl(epoll_fd, EPOLL_CTL_DEL, c->fd, NULL);
		spd_lock();
		c->pending = 0;
		c->drained = 0;
		spd_unlock();
	}
	spd_conn_leave(c);
}

/*--------------------------------------------------------------------
 * Park a connection
 */

static int v_matchproto_(vbh_cmp_t)
spd_deadline_cmp(void *priv, const void *a, const void *b)
{
	const struct spd_conn *ca = a, *cb = b;

	(void)priv;
	return (ca->deadline < cb->deadline);
}

static void v_matchproto_(vbh_update_t)
spd_deadline_update(void *priv, void *a, unsigned newidx)
{
	struct spd_conn *c = a;

	(void)priv;
	c->idx = newidx;
}

/*
 * Park a connection until bytes come, or until its deadline (ns).  partial: a
 * part of a request is here.  Return 0, and do not park it, if an event came
 * meanwhile.  Caller holds spd_lock().
 */
int
spd_park_locked(struct spd_conn *c, int64_t deadline, int partial)
{

	SPD_LOCKED();
	c->partial = (uint8_t)partial;
	if (c->pending) {
		c->pending = 0;
		c->drained = 0;
		return (0);
	}
	c->deadline = deadline;
	c->blocking = 1;
	spd_conn_to(c, SPD_PARKED);
	VBH_insert(deadlines, c);
	if (c->partial)
		spd_part_parked(c, 1);
	nparked++;
	spd_vsc->lingering = nparked;
	return (1);
}

/* Give a parked connection to the caller.  Caller holds spd_lock(). */
void
spd_unpark_locked(struct spd_conn *c)
{

	SPD_LOCKED();
	assert(c->state == SPD_PARKED);
	VBH_delete(deadlines, c->idx);
	if (c->partial)
		spd_part_parked(c, 0);
	spd_conn_to(c, SPD_BUSY);
	AN(nparked);
	nparked--;
	spd_vsc->lingering = nparked;
}

/*
 * Return the parked connection with the earliest deadline, if that has passed,
 * or NULL.  The connection is no longer parked.  Caller holds spd_lock().
 */
struct spd_conn *
spd_expired(int64_t now)
{
	struct spd_conn *c;

	SPD_LOCKED();
	c = VBH_root(deadlines);
	if (c == NULL || c->deadline > now)
		return (NULL);
	spd_unpark_locked(c);
	return (c);
}

/*--------------------------------------------------------------------
 * For how long a connection is parked
 */

/* Return a timeout (s) in ns, at most SPD_YEAR */
int64_t
spd_ns(double timeout)
{

	return ((int64_t)(vmin(timeout, SPD_YEAR) * 1e9));
}

/* Return how long a connection without a part of a request is parked, s */
double
spd_conn_linger(const struct sess *sp)
{

	return (vmin(SPD_LINGER(sp), SESS_TMO(sp, timeout_idle)));
}

/* Return the rest of a timeout, s, which began when the session became idle */
double
spd_left(const struct sess *sp, double timeout)
{

	return (vmax(timeout + sp->t_idle - VTIM_real(), 0.));
}

void
spd_conn_init(void)
{

	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	assert(epoll_fd >= 0);
	deadlines = VBH_new(NULL, spd_deadline_cmp, spd_deadline_update);
	AN(deadlines);
}
