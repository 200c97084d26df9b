/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Parts of requests: a connection waits for the rest of a request.
 *
 * A request with its workspace takes 33 kB of memory that is in use, and its
 * release writes all of it.  So when many connections wait, the part is kept in
 * memory of about its own size, and the request goes back to the pool.  What
 * comes is added to the part.  A new request gets it when it is complete.
 *
 * These connections have half of the process's descriptors at most.  Beyond
 * that, the one that has waited longest is closed.
 */

#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sys/resource.h>
#include <sys/socket.h>

#include "spd.h"

#ifndef SPD_PARTS			/* less in a fuzz target */
#define SPD_PARTS	2000U		/* connections: these are many */
#endif
#define SPD_PART	256U		/* bytes: a part's memory grows by */
#define SPD_RED		sizeof(void *)	/* bytes: a workspace's end */

static VTAILQ_HEAD(, spd_conn) parts = VTAILQ_HEAD_INITIALIZER(parts);
static unsigned nparts, parts_max = UINT_MAX;	/* locked */

/* Every second: the limit of descriptors may change */
void
spd_part_limit(void)
{
	struct rlimit rl;

	AZ(getrlimit(RLIMIT_NOFILE, &rl));
	spd_lock();
	parts_max = (unsigned)vmin_t(rlim_t, rl.rlim_cur / 2, UINT_MAX);
	spd.vsc->parts_max = parts_max;
	spd_unlock();
}

/* Locked.  A connection with a part is parked (1), or no longer (0) */
void
spd_part_parked(struct spd_conn *c, int parked)
{

	SPD_LOCKED();
	if (parked) {
		VTAILQ_INSERT_TAIL(&parts, c, list);
		nparts++;
	} else {
		VTAILQ_REMOVE(&parts, c, list);
		nparts--;
	}
	spd.vsc->parts = nparts;
}

/* Locked.  Are there more than clients have without bad intent? */
int
spd_many_parts(void)
{

	SPD_LOCKED();
	return (nparts + spd.parts_ready >= SPD_PARTS);
}

/* Locked.  Returns the one to close, if there are too many, or NULL */
struct spd_conn *
spd_part_excess(void)
{

	SPD_LOCKED();
	if (nparts <= parts_max)
		return (NULL);
	spd.vsc->parts_closed++;
	return (VTAILQ_FIRST(&parts));
}

/* Returns bytes that were read, 0 if there are none now, or -1: there won't be
 * any */
ssize_t
spd_recv(struct spd_conn *c, char *buf, size_t room)
{
	ssize_t n;

	n = recv(c->fd, buf, room, MSG_DONTWAIT);
	if (n > 0) {
		/* A FIN's edge may be used up already */
		c->drained = (size_t)n < room && !c->fin;
		return (n);
	}
	if (n == 0 || (errno != EAGAIN && errno != EINTR))
		return (-1);
	c->drained = 1;
	return (0);
}

/* The request goes back to the pool, with what has been read so far kept.
 * Returns 0 if the request stays. */
int
spd_part_keep(struct worker *wrk, struct spd_conn *c)
{
	struct http_conn *htc;
	struct req *req;

	CAST_OBJ_NOTNULL(req, c->priv, REQ_MAGIC);
	if (req->transport->unwait == NULL)
		return (0);
	htc = req->htc;
	AZ(c->part);
	c->part_len = (size_t)(htc->rxbuf_e - htc->rxbuf_b);
	c->part_size = RUP2(c->part_len, SPD_PART);
	if (c->part_len > 0) {
		c->part = malloc(c->part_size + SPD_RED);
		if (c->part == NULL)
			return (0);
		memcpy(c->part, htc->rxbuf_b, c->part_len);
	}
	/* Varnish's waiter reserves it, too, and unwait() releases it */
	if (!WS_ReserveSize(c->sp->ws, sizeof(struct pool_task))) {
		free(c->part);
		c->part = NULL;
		return (0);
	}
	WS_ReleaseP(htc->ws, htc->rxbuf_b);
	SPD_IDLE_REQ(wrk, req);
	return (1);
}

/* Returns how many bytes more may be read */
static size_t
spd_part_room(struct spd_conn *c)
{
	size_t most = cache_param->http_req_size;
	char *p;

	if (c->part_len == c->part_size && c->part_len < most) {
		p = realloc(c->part, c->part_size + SPD_PART + SPD_RED);
		if (p == NULL)
			return (0);
		c->part = p;
		c->part_size += SPD_PART;
	}
	most = vmin(most, c->part_size);
	return (most > c->part_len ? most - c->part_len : 0);
}

/* As Varnish says of a request's bytes in a workspace */
static enum htc_status_e
spd_part_status(const struct spd_conn *c)
{
	struct http_conn htc;
	struct ws ws;

	WS_Init(&ws, "prt", c->part, (unsigned)(c->part_size + SPD_RED));
	(void)WS_ReserveAll(&ws);
	INIT_OBJ(&htc, HTTP_CONN_MAGIC);
	htc.ws = &ws;
	htc.rxbuf_b = c->part;
	htc.rxbuf_e = c->part + c->part_len;
	return (c->complete(&htc));
}

/* Reads what is there into a part.  Returns 1 if more has to come.  0: only a
 * request can tell what is next. */
int
spd_part_grows(struct spd_conn *c)
{
	size_t room;
	ssize_t n;

	while (!c->drained) {
		room = spd_part_room(c);
		if (room == 0)
			return (0);
		n = spd_recv(c, c->part + c->part_len, room);
		if (n < 0)
			return (0);
		c->part_len += (size_t)n;
	}
	return (spd_part_status(c) == HTC_S_MORE);
}

/* A new request has the part, and reads on */
void
spd_part_again(struct worker *wrk, struct spd_conn *c)
{
	struct http_conn *htc;
	struct req *req;
	size_t l;

	XPORT_ByNumber(c->sp->sattr[SA_TRANSPORT])->unwait(wrk, c->sp);
	CAST_OBJ_NOTNULL(req, SPD_TASK(wrk)->priv, REQ_MAGIC);
	if (c->part == NULL)
		return;
	htc = req->htc;
	/* If the workspace is smaller by now, what fits fills it, and Varnish
	 * refuses the request as too long */
	l = vmin_t(size_t, c->part_len, WS_ReservationSize(htc->ws));
	memcpy(htc->rxbuf_e, c->part, l);
	htc->rxbuf_e += l;
	free(c->part);
	c->part = NULL;
}
