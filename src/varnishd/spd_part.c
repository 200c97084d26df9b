/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Parts of requests: a connection waits for the rest of its request.
 *
 * A request and its workspace use 33 kB of memory, and releasing the request
 * writes all of it.  So when many connections wait, a request goes back to the
 * pool, and its part moves to memory of about the part's size.  New bytes are
 * added to the part.  A new request gets a part that is complete.
 *
 * At most half of the process's descriptors may wait with a part.  Beyond
 * that, the connection that was parked first is closed.  The list `parts` is
 * under spd_lock().  The bytes of a part belong to the worker of the
 * connection.
 */

#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sys/resource.h>
#include <sys/socket.h>

#include "spd.h"

#ifndef SPD_PARTS			/* less in a fuzz target */
#define SPD_PARTS	2000U		/* connections: more is abuse */
#endif
#define SPD_PART	256U		/* bytes: memory grows by this */
#define SPD_RED		sizeof(void *)	/* bytes: red zone of a workspace */

/* Parked connections that wait for the rest of a request, by time of parking */
static VTAILQ_HEAD(, spd_conn) parts = VTAILQ_HEAD_INITIALIZER(parts);
static unsigned nparts, parts_max = UINT_MAX;	/* locked */
SPD_STATIC unsigned parts_ready;	/* READY connections with a part;
					 * locked */

/* Set the limit of `parts`, every second: that of descriptors may change */
void
spd_part_limit(void)
{
	struct rlimit rl;

	AZ(getrlimit(RLIMIT_NOFILE, &rl));
	spd_lock();
	parts_max = (unsigned)vmin_t(rlim_t, rl.rlim_cur / 2, UINT_MAX);
	spd_vsc->parts_max = parts_max;
	spd_unlock();
}

/*
 * Add a connection to `parts` (parked = 1), or remove it (0).
 * Caller holds spd_lock().
 */
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
	spd_vsc->parts = nparts;
}

/* A connection becomes READY (1), or no longer is (-1).  Caller holds
 * spd_lock(). */
void
spd_part_ready(const struct spd_conn *c, int d)
{

	SPD_LOCKED();
	if (c->partial)
		parts_ready += (unsigned)d;
}

/*
 * Return 1 if so many connections wait with a part, parked or READY, that some
 * clients must have bad intent.  Caller holds spd_lock().
 */
int
spd_many_parts(void)
{

	SPD_LOCKED();
	return (nparts + parts_ready >= SPD_PARTS);
}

/*
 * Return the connection to close if `parts` is too long, or NULL.
 * Caller holds spd_lock().
 */
struct spd_conn *
spd_part_excess(void)
{

	SPD_LOCKED();
	if (nparts <= parts_max)
		return (NULL);
	if (spd_set.mode != SPD_ON) {
		spd_vsc->would_close_parts += spd_set.mode == SPD_OBSERVE;
		return (NULL);
	}
	spd_vsc->parts_closed++;
	return (VTAILQ_FIRST(&parts));
}

/*
 * Read from a connection without waiting.  Return the number of bytes, 0 if
 * there are none now, or -1 if no more will come.
 */
ssize_t
spd_recv(struct spd_conn *c, char *buf, size_t room)
{
	ssize_t n;

	n = recv(c->fd, buf, room, MSG_DONTWAIT);
	if (n > 0) {
		/* After a FIN no further event may come: read until the end of
		 * the stream */
		c->drained = (size_t)n < room && !c->fin;
		return (n);
	}
	if (n == 0 || (errno != EAGAIN && errno != EINTR))
		return (-1);
	c->drained = 1;
	return (0);
}

/*
 * Keep the bytes of a request as a part, and give the request back to the
 * pool.  Return 0 if the connection keeps its request: its transport has no
 * unwait(), or there is no memory or workspace.
 */
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
	/* As Varnish's waiter does.  unwait() releases this reservation */
	if (!WS_ReserveSize(c->sp->ws, sizeof(struct pool_task))) {
		free(c->part);
		c->part = NULL;
		return (0);
	}
	WS_ReleaseP(htc->ws, htc->rxbuf_b);
	SPD_IDLE_REQ(wrk, req);
	return (1);
}

/*
 * Return how many more bytes a part may get.  If its memory is full, make it
 * larger.  0: the part has http_req_size bytes, or there is no memory.
 */
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

/* Return Varnish's judgement of a part, as if it were in a workspace */
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

/*
 * Read all bytes that the socket has into the part.  Return 1 if the part is
 * valid so far, and more bytes must come.  Return 0 if a request must go on
 * with the part.  The part is complete, wrong or too long, there is no memory,
 * or the stream has ended.
 */
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

/* Make a new request for the connection, and give it the part to read on */
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
	/* The workspace may be smaller than the part by now.  Then the part
	 * fills it, and Varnish refuses the request as too long */
	l = vmin_t(size_t, c->part_len, WS_ReservationSize(htc->ws));
	memcpy(htc->rxbuf_e, c->part, l);
	htc->rxbuf_e += l;
	free(c->part);
	c->part = NULL;
}
