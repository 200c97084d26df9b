/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Let a connection wait without a thread: for its next request, or for the rest
 * of a request.
 *
 * In stock a thread polls the connection for timeout_linger.  Here the
 * connection is parked, and a free worker reads its bytes when they come.  When
 * the timeout is over, the connection goes to Varnish's waiter, as in stock.
 *
 * The lock guards a parked connection.  spd_conn.c has the heap of deadlines.
 */

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <sys/socket.h>

#include "spd.h"

#define SPD_EXPIRE	16		/* connections in a hold of the lock */

/* Make a BUSY connection READY and call a worker to read from it. */
void
spd_wake_conn(struct spd_conn *c)
{

	spd_lock();
	c->drained = 0;
	spd_ready_push(c, METER_Now());
	spd_unlock();
	spd_summon();
}

/*
 * Park a BUSY connection for `timeout` seconds.  partial: it has a part of a
 * request.  Returns 1 if parked.  0: bytes came meanwhile, or the connection is
 * not in the epoll set.  If too many parts are parked, the oldest one's
 * connection is closed.
 */
int
spd_park(struct spd_conn *c, double timeout, int partial)
{
	struct spd_conn *excess = NULL;
	int64_t deadline;
	int parked;

	if (!spd_arm(c))
		return (0);
	deadline = METER_Now() + spd_ns(timeout);
	spd_lock();
	parked = spd_park_locked(c, deadline, partial);
	if (parked && partial)
		excess = spd_part_excess();
	if (excess != NULL)
		spd_unpark_locked(excess);
	spd_unlock();
	if (excess != NULL) {
		/* A worker then reads the end of the stream, and closes the
		 * connection. */
		(void)shutdown(excess->fd, SHUT_RDWR);
		spd_wake_conn(excess);
	}
	return (parked);
}

/*
 * Go on with a READY connection that waited without a request.  If the request
 * is still not complete, park again.  Else a new request gets the part.
 */
static void v_matchproto_(task_func_t)
spd_resume(struct worker *wrk, void *priv)
{
	struct spd_conn *c = priv;
	struct sess *sp = c->sp;

	if (c->part != NULL && spd_set.mode != SPD_OFF && !c->expired &&
	    !c->hup) {
		while (spd_part_grows(c)) {
			if (!spd_park(c, spd_left(sp, SESS_TMO(sp,
			    timeout_idle)), 1))
				continue;
			SPD_Next(wrk);
			return;
		}
	}
	spd_part_again(wrk, c);
}

/*
 * Let a connection wait without a request: its part is copied, and the request
 * goes back to the pool.  Returns 0 if the connection keeps its request.
 */
int
spd_without_req(struct worker *wrk, struct spd_conn *c)
{

	if (!spd_arm(c) || !spd_part_keep(wrk, c))
		return (0);
	c->func = spd_resume;
	c->priv = c;
	return (1);
}

/*--------------------------------------------------------------------
 * Deadlines
 */

/* Give a connection without a part to Varnish's waiter, and its request back to
 * the pool. */
static void
spd_to_waiter(struct worker *wrk, struct spd_conn *c)
{
	struct sess *sp = c->sp;
	struct req *req;

	c->blocking = 0;
	if (c->func == spd_resume)
		WS_Release(sp->ws, 0);
	else {
		CAST_OBJ_NOTNULL(req, c->priv, REQ_MAGIC);
		WS_ReleaseP(req->htc->ws, req->htc->rxbuf_b);
		SPD_IDLE_REQ(wrk, req);
	}
	spd_disarm(c);
	wrk->stats->sess_herd++;
	SES_Wait(sp, XPORT_ByNumber(sp->sattr[SA_TRANSPORT]));
}

/*
 * Return 1 if the socket has bytes.  They came in time, though no thread has
 * seen their event.  After the process stood still, the waiter would close the
 * connection at once.
 */
static int
spd_has_bytes(const struct spd_conn *c)
{
	char byte;

	return (recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0);
}

/*
 * Unpark all connections with a deadline up to `now`, ns.  A connection without
 * a part goes to Varnish's waiter.  A connection with a part becomes READY, and
 * `expired` says so to its worker, unless Sandpaper is off.  Only the keeper
 * calls this.
 */
void
spd_expire(struct worker *wrk, int64_t now)
{
	struct spd_conn *c, *idle[SPD_EXPIRE];
	unsigned n, u, nidle;
	int partial = 0;

	METER_Drop(spd_self()->meter);
	do {
		nidle = 0;
		spd_lock();
		for (n = 0; n < SPD_EXPIRE; n++) {
			c = spd_expired(now);
			if (c == NULL)
				break;
			if (!c->partial) {
				idle[nidle++] = c;
				continue;
			}
			c->expired = spd_set.mode != SPD_OFF;
			/* Not `now`: that may be without end */
			spd_ready_push(c, METER_Now());
			partial = 1;
		}
		spd_unlock();
		for (u = 0; u < nidle; u++) {
			if (spd_has_bytes(idle[u]))
				spd_wake_conn(idle[u]);
			else
				spd_to_waiter(wrk, idle[u]);
		}
	} while (n == SPD_EXPIRE);
	spd_unowned_now(spd_self());
	if (partial)
		spd_summon();
}
