/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * A connection waits without a thread: for its next request, or for the rest of
 * one.
 *
 * Stock lingers: a thread polls the connection for timeout_linger.  Here it is
 * parked, and a worker that is free parses what came.  When it has lingered, it
 * goes to Varnish's waiter, as in stock.
 */

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <sys/socket.h>

#include "spd.h"

#define SPD_EXPIRE	16		/* connections in one hold of the lock */

/* A worker is to read from it */
void
spd_ready_now(struct spd_conn *c)
{

	spd_lock();
	c->drained = 0;
	spd_ready_push(c);
	spd_unlock();
	spd_summon();
}

/* 1: parked.  0: bytes came meanwhile */
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
		/* Its worker reads the end of the stream, and closes it */
		(void)shutdown(excess->fd, SHUT_RDWR);
		spd_ready_now(excess);
	}
	return (parked);
}

/* A connection that waited without a request has bytes */
static void v_matchproto_(task_func_t)
spd_resume(struct worker *wrk, void *priv)
{
	struct spd_conn *c = priv;
	struct sess *sp = c->sp;

	if (c->part != NULL && spd.mode != SPD_OFF && !c->expired && !c->hup) {
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

/* From now on it waits without a request.  0: with one */
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
 * Lingering is over: to Varnish's waiter.  Half a request is over: its
 * worker finds that out.
 */

/* To Varnish's waiter, which keeps no request for it */
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

/* Bytes that came in time count, though nobody saw their event yet.  After the
 * process stood still, the waiter would close the connection at once. */
static int
spd_has_bytes(const struct spd_conn *c)
{
	char byte;

	return (recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0);
}

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
			c->expired = spd.mode != SPD_OFF;
			spd_ready_push(c);
			partial = 1;
		}
		spd_unlock();
		for (u = 0; u < nidle; u++) {
			if (spd_has_bytes(idle[u]))
				spd_ready_now(idle[u]);
			else
				spd_to_waiter(wrk, idle[u]);
		}
	} while (n == SPD_EXPIRE);
	spd_unowned_now(spd_self());
	if (partial)
		spd_summon();
}
