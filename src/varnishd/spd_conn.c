/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * A connection between two requests, by file descriptor.
 *
 * It is parked: in an epoll set of ours, edge triggered and entered once, so that
 * a keep-alive request costs neither a poll nor a wake-up; and in a heap, the
 * earliest deadline at its root.  Clients choose when their bytes come, and so the
 * order of deadlines: nothing is walked here.
 */

#include "config.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <sys/epoll.h>

#include "spd.h"

#include "vtim.h"

#define SPD_CHUNK	1024		/* connections */
#define SPD_FDS_MAX	(1 << 22)
#ifndef SPD_IDLE_MAX			/* less in a fuzz target */
#define SPD_IDLE_MAX	2000		/* connections that keep a request */
#endif
#define SPD_YEAR	3e7		/* s: longer is not parked */

static struct spd_conn *_Atomic chunks[SPD_FDS_MAX / SPD_CHUNK];
static struct vbh *deadlines;		/* of parked connections, locked */

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

int
spd_conn_of(struct spd_conn *c, const struct sess *sp)
{

	(void)atomic_load_explicit(&c->left, memory_order_acquire);
	return (c->sp == sp && c->vxid == VXID(sp->vxid));
}

/* NULL: no memory or no room for that descriptor, it is served as in stock */
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
 * This thread is done with a session's record, for now or for good.  Who has
 * the descriptor next has it from the kernel, after the session closed it: an
 * order that C knows nothing of.  Not for who hands it on under the lock, as
 * when it parks: by now it may be another's.
 */
void
spd_conn_leave(struct spd_conn *c)
{

	atomic_store_explicit(&c->left, 1, memory_order_release);
}

/* 1: it is in the epoll set */
int
spd_arm(struct spd_conn *c)
{
	struct epoll_event ev;

	if (c->armed)
		return (1);
	ev.events = EPOLLIN | EPOLLRDHUP | EPOLLET;
	ev.data.u64 = (uint64_t)c->serial << 32 | (unsigned)c->fd;
	if (epoll_ctl(spd.epoll, EPOLL_CTL_ADD, c->fd, &ev) == 0 ||
	    errno == EEXIST)
		c->armed = 1;
	return (c->armed);
}

void
spd_disarm(struct spd_conn *c)
{

	if (c->armed) {
		c->armed = 0;
		(void)epoll_ctl(spd.epoll, EPOLL_CTL_DEL, c->fd, NULL);
		spd_lock();
		c->pending = 0;
		c->drained = 0;
		spd_unlock();
	}
	spd_conn_leave(c);
}

/*--------------------------------------------------------------------
 * Parked
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

/* 1: parked.  0: bytes came meanwhile */
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
	c->state = SPD_PARKED;
	VBH_insert(deadlines, c);
	if (c->partial)
		spd_part_parked(c, 1);
	spd.nparked++;
	spd.vsc->lingering = spd.nparked;
	return (1);
}

void
spd_unpark_locked(struct spd_conn *c)
{

	SPD_LOCKED();
	assert(c->state == SPD_PARKED);
	VBH_delete(deadlines, c->idx);
	if (c->partial)
		spd_part_parked(c, 0);
	c->state = SPD_BUSY;
	AN(spd.nparked);
	spd.nparked--;
	spd.vsc->lingering = spd.nparked;
}

/* Locked: the next one whose deadline has passed, no longer parked, or NULL */
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

/*
 * Do enough connections linger, or wait to be parsed?  Those beyond have no
 * request meanwhile.
 */
int
spd_many_idle(void)
{

	return (spd.nparked + spd.nready >= SPD_IDLE_MAX);
}

/*--------------------------------------------------------------------
 * For how long
 */

int64_t
spd_ns(double timeout)
{

	return ((int64_t)(vmin(timeout, SPD_YEAR) * 1e9));
}

/* How long a connection without a part of a request is parked, s */
double
spd_linger(const struct sess *sp)
{

	return (vmin(SPD_LINGER(sp), SESS_TMO(sp, timeout_idle)));
}

/* What is left of a timeout, that the last request began, s */
double
spd_left(const struct sess *sp, double timeout)
{

	return (vmax(timeout + sp->t_idle - VTIM_real(), 0.));
}

void
spd_conn_init(void)
{

	deadlines = VBH_new(NULL, spd_deadline_cmp, spd_deadline_update);
	AN(deadlines);
}
