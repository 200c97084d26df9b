/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Hooks of connections: Varnish accepts a connection, HTTP/1 wants to read a
 * request, or Varnish's waiter returns a connection.
 *
 * The worker owns the connection's record while it reads (state BUSY).  A
 * worker that parks the connection gives the record away, under the lock.
 */

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "spd.h"

#include "vtim.h"

#define SPD_FULL	0.010		/* s between calls of Pool_Task() */

/*--------------------------------------------------------------------
 * HTTP/1 wants to read a request
 */

/*
 * Let a connection with a complete request wait for its turn: it becomes READY
 * when the worker has the lock next, as if bytes had come while it was parked.
 * Returns 1.
 */
static int
spd_rx_later(struct spd_worker *me, struct spd_conn *c)
{

	c->pending = 1;
	me->parks = c;
	return (1);
}

/*
 * Read what the socket has, and park the connection if the request is not
 * complete.  Returns 1: the worker is done with the connection.  0: the request
 * is complete, or stock's code must read on or close.
 *
 * refused: this worker has just refused a request of the connection.  A
 * complete request then waits for its tenant's turn.  Else a client that
 * pipelines could keep the worker.
 */
static int
spd_rx(struct worker *wrk, struct req *req, htc_complete_f *complete,
    struct spd_conn *c, int refused)
{
	struct spd_worker *me = &spd_me;
	struct http_conn *htc = req->htc;
	struct sess *sp = req->sp;
	enum htc_status_e hs;
	double timeout;
	ssize_t room, n;
	int without;

	c->func = SPD_TASK(req)->func;
	c->priv = req;
	c->complete = complete;
	while (1) {
		hs = complete(htc);
		if (hs != HTC_S_MORE && hs != HTC_S_EMPTY)
			return (refused && spd_rx_later(me, c));
		if (hs == HTC_S_EMPTY)
			htc->rxbuf_e = htc->rxbuf_b;
		room = vmin_t(ssize_t, WS_ReservationSize(htc->ws),
		    cache_param->http_req_size);
		room -= htc->rxbuf_e - htc->rxbuf_b;
		if (room <= 0 || c->expired || c->hup) {
			/* HTC_RxStuff() may still wait, by the wall clock */
			if (c->expired)
				spd_parsed(c);
			c->expired = 0;
			return (0);
		}
		if (!c->drained) {
			n = spd_recv(c, htc->rxbuf_e, (size_t)room);
			if (n < 0)
				return (0);
			htc->rxbuf_e += n;
			if (n > 0)
				continue;
		}
		timeout = spd_left(sp, hs == HTC_S_EMPTY ? spd_conn_linger(sp) :
		    SESS_TMO(sp, timeout_idle));
		if (hs == HTC_S_MORE && c->t_first == 0.)
			c->t_first = VTIM_real();
		without = spd_many_idle() && spd_without_req(wrk, c);
		if (!without && !spd_arm(c)) {
			spd_parsed(c);
			return (0);
		}
		if (hs == HTC_S_EMPTY) {
			/* Park when the worker has the lock next: SPD_Next() */
			me->parks = c;
			me->parks_for = spd_ns(timeout);
			return (1);
		}
		if (spd_park(c, timeout, 1))
			return (1);
		if (without) {
			spd_wake_conn(c);
			return (1);
		}
	}
}

/* Read an HTTP/1 request.  Returns as spd_rx(), and 0 if Sandpaper is off. */
int
SPD_Rx(struct worker *wrk, struct req *req, htc_complete_f *complete)
{
	struct spd_conn *c, *refused = spd_me.refused;

	CHECK_OBJ_NOTNULL(wrk, WORKER_MAGIC);
	spd_me.conn = NULL;
	spd_me.refused = NULL;
	c = NULL;
	if (spd_set.mode != SPD_OFF)
		c = spd_conn(req->sp);
	else if (spd_me.magic == SPD_WORKER_MAGIC && METER_Cheap(spd_me.meter))
		METER_Drop(spd_me.meter);	/* no tenant pays */
	if (c == NULL) {
		spd_parsed(NULL);
		return (0);
	}
	spd_self()->conn = c;
	if (spd_rx(wrk, req, complete, c, refused == c))
		return (1);
	spd_conn_leave(c);
	return (0);
}

/*
 * Set req->t_first to when the first part of the request came.  HTC_RxStuff()
 * saw all bytes at once, and set it too late.
 */
void
SPD_First(struct req *req)
{
	struct spd_conn *c;

	if (spd_set.mode == SPD_OFF)
		return;
	c = spd_conn(req->sp);
	if (c == NULL)
		return;
	if (c->t_first != 0.)
		req->t_first = vmin(req->t_first, c->t_first);
	c->t_first = 0.;
	spd_conn_leave(c);
}

/* Return 1 if this session's socket is in blocking mode already.  The answer is
 * used once. */
int
SPD_Resumed(const struct sess *sp)
{
	struct spd_conn *c;
	int resumed;

	/* The answer must be right while Sandpaper is off, too: after a 1 the
	 * caller does not set the mode. */
	c = sp->fd < 0 ? NULL : spd_conn_fd(sp->fd);
	if (c == NULL || !spd_conn_of(c, sp))
		return (0);
	resumed = c->blocking;
	c->blocking = 0;
	spd_conn_leave(c);
	return (resumed);
}

/*--------------------------------------------------------------------
 * Connections that Varnish hands over
 */

/*
 * Make a session for an accepted connection, in the acceptor's thread, and park
 * the connection.  make() gets a copy of arg, len bytes.
 */
static void
spd_accept(struct worker *wrk, task_func_t *make, const void *arg, size_t len)
{
	struct pool_task task;
	struct req *req;
	struct sess *sp;
	struct spd_conn *c;
	int lead = 0;

	assert(WS_ReserveSize(wrk->aws, (unsigned)len) >= len);
	memcpy(WS_Reservation(wrk->aws), arg, len);
	AZ(SPD_TASK(wrk)->func);
	make(wrk, WS_Reservation(wrk->aws));
	task = *SPD_TASK(wrk);
	memset(SPD_TASK(wrk), 0, sizeof *SPD_TASK(wrk));
	WS_Rollback(wrk->aws, 0);
	Pool_Sumstat(wrk);	/* the acceptor's task never ends */
	AN(task.func);
	CAST_OBJ_NOTNULL(req, task.priv, REQ_MAGIC);
	sp = req->sp;
	spd_link_seen(sp);

	c = spd_conn(sp);
	if (c != NULL && req->transport->unwait != NULL) {
		c->blocking = 1;	/* make() has set that mode */
		spd_conn_leave(c);
		task.func(wrk, task.priv);
		task = *SPD_TASK(wrk);
		memset(SPD_TASK(wrk), 0, sizeof *SPD_TASK(wrk));
		if (task.func == NULL)
			return;		/* the task has deleted the session */
		c->func = task.func;
		c->priv = task.priv;
		if (spd_many_idle())
			(void)spd_without_req(wrk, c);
		if (!spd_park(c, spd_conn_linger(sp), 0)) {
			/* Bytes came, or the epoll set refused the socket */
			spd_lock();
			spd_ready_push(c, METER_Now());
			spd_unlock();
			lead = 1;
		}
		if (lead || spd_leaderless())
			spd_summon();
		return;
	}
	/* A transport that cannot wait, such as PROXY, takes a thread, as in
	 * stock.  While the pool refuses the task, the acceptor waits, and
	 * further clients wait in the kernel's queue. */
	SPD_TASK(req)->func = task.func;
	SPD_TASK(req)->priv = task.priv;
	while (Pool_Task(wrk->pool, SPD_TASK(req), TASK_QUEUE_REQ)) {
		if (spd_pool_ends(wrk->pool)) {
			Req_Release(req);
			SES_Delete(sp, SC_OVERLOAD, NAN);
			break;
		}
		VTIM_sleep(SPD_FULL);
	}
}

/*
 * Count the acceptor's CPU time, which no tenant pays for.  Wait while that
 * time is used up: see spd_nobody_may().  Clients then wait in the kernel's
 * queue.
 */
static void
spd_accepted(const struct worker *wrk)
{
	struct spd_worker *me = spd_self();
	int64_t now;
	int may;

	me->owed += vmax_t(int64_t, 0, spd_lap(me, 1));
	while (1) {
		now = METER_Now();
		spd_lock();
		spd_turn_to(me, NULL, now);
		may = spd_nobody_may(now) || spd_pool_ends(wrk->pool);
		spd_vsc->accept_naps += !may;
		spd_unlock();
		if (may)
			return;
		VTIM_sleep(SPD_NAP * 1e-9);
	}
}

/* Take an accepted connection.  Returns 0, and does nothing, if Sandpaper is
 * off. */
int
SPD_Accept(struct worker *wrk, task_func_t *make, const void *arg, size_t len)
{

	CHECK_OBJ_NOTNULL(wrk, WORKER_MAGIC);
	if (spd_set.mode == SPD_OFF)
		return (0);
	spd_accept(wrk, make, arg, len);
	spd_accepted(wrk);
	return (1);
}

/*
 * Take a connection with bytes from Varnish's waiter.  It becomes READY, with
 * tp as its task.  Returns 0 if stock must run tp.
 */
int
SPD_Ready(struct sess *sp, struct pool_task *tp)
{
	struct spd_conn *c;

	if (spd_set.mode == SPD_OFF)
		return (0);
	c = spd_conn(sp);
	if (c == NULL)
		return (0);
	spd_lock();
	c->func = tp->func;
	c->priv = tp->priv;
	c->drained = 0;
	/* The record may have old values, from before Sandpaper was off.  The
	 * waiter's sockets are not in blocking mode. */
	c->blocking = c->partial = c->expired = 0;
	c->t_first = 0.;
	spd_ready_push(c, METER_Now());
	spd_unlock();
	spd_summon();
	return (1);
}
