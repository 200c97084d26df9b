/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Parts of requests: a connection waits for the rest of a request.
 *
 * A request with its workspace takes 33 kB of memory that is in use.  So when
 * many connections wait, the part is kept in memory of its own size, and the
 * request goes back to the pool.  A new one gets the part when more bytes come.
 *
 * These connections have half of the process's descriptors at most.  Beyond
 * that, the one that has waited longest is closed.
 */

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <sys/resource.h>
#include <sys/socket.h>

#include "sp.h"

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

/* More bytes came: a new request has the part, and reads on */
static void v_matchproto_(task_func_t)
spd_part_again(struct worker *wrk, void *priv)
{
	struct spd_conn *c = priv;
	struct http_conn *htc;
	struct req *req;
	size_t l;

	XPORT_ByNumber(c->sp->sattr[SA_TRANSPORT])->unwait(wrk, c->sp);
	CAST_OBJ_NOTNULL(req, SPD_TASK(wrk)->priv, REQ_MAGIC);
	htc = req->htc;
	/* If the workspace is smaller by now, what fits fills it, and Varnish
	 * refuses the request as too long */
	l = vmin_t(size_t, c->part_len, WS_ReservationSize(htc->ws));
	memcpy(htc->rxbuf_e, c->part, l);
	htc->rxbuf_e += l;
	free(c->part);
	c->part = NULL;
}

/* Keeps what has been read so far, and gives the request back.  Returns 0 if the
 * request stays. */
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
	c->part = malloc(c->part_len);
	if (c->part == NULL)
		return (0);
	/* Varnish's waiter reserves it, too, and unwait() releases it */
	if (!WS_ReserveSize(c->sp->ws, sizeof(struct pool_task))) {
		free(c->part);
		c->part = NULL;
		return (0);
	}
	memcpy(c->part, htc->rxbuf_b, c->part_len);
	c->func = spd_part_again;
	c->priv = c;
	WS_ReleaseP(htc->ws, htc->rxbuf_b);
	SPD_IDLE_REQ(wrk, req);
	return (1);
}
