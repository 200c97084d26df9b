/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Connections between two requests, and what a free worker does next.
 *
 * Stock lingers: a thread polls the connection for timeout_linger.  Here a
 * connection lingers without a thread, in an epoll set of ours, edge
 * triggered and entered once, so that a keep-alive request costs neither a
 * poll nor a wake-up.  When it has lingered, it goes to Varnish's waiter,
 * as in stock.
 *
 * While all slots are taken nobody goes to sleep on the set: workers look
 * between two requests, at most every SPD_HARVEST ns.  When slots are free,
 * one worker, the leader, sleeps on the set; on an event it becomes a
 * worker again, and another is summoned if slots are still free.
 *
 * If every core runs a request, a leader would take CPU time from these workers
 * at each event.  So one worker, the deputy, sleeps SPD_NAP ns at a time
 * instead.  It looks at the set only if nobody else did meanwhile.  Whoever
 * turns to something else while connections are ready summons one, too:
 * the leader has no event left for these.
 *
 * Connections with bytes wait to be parsed, in turn by the tenant of their
 * last request, and at most P workers parse: one tenant's flood of
 * connections does not take parsing over.
 */

#include "config.h"

#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include "sp.h"

#include "vtcp.h"
#include "vtim.h"

#define SPD_CHUNK	1024		/* connections */
#define SPD_FDS_MAX	(1 << 22)
#define SPD_EVENTS	64
#define SPD_LOOKS	16		/* at the events that are there, at most */
#ifndef SPD_IDLE_MAX			/* less in a fuzz target */
#define SPD_IDLE_MAX	2000		/* connections that keep a request */
#endif
#define SPD_PARSE_RUN	8		/* connections parsed before a release */
#define SPD_YIELD	500000		/* ns, well below a time slice */
#define SPD_SUM_TURNS	32		/* requests between two summings */
#define SPD_YEAR	3e7		/* s: longer is not parked */
#define SPD_EXPIRE	16		/* connections in one hold of the lock */
#define SPD_FULL	0.010		/* s, until a pool is asked again */

static struct spd_conn *_Atomic chunks[SPD_FDS_MAX / SPD_CHUNK];
/* Connections without a tenant yet: with a part of a request, or nothing */
static struct spd_tenant spd_parts, spd_new;
static struct vbh *deadlines;		/* of parked connections, locked */
static const struct pool *leading;	/* the leader's, locked */

/*--------------------------------------------------------------------
 * The connection on a file descriptor
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

static int
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
static int
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
 * Ready: in turn by tenant, in order of arrival within one
 */

static int
spd_of_nobody(const struct spd_tenant *t)
{

	return (t == &spd_new || t == &spd_parts);
}

void
spd_ready_push(struct spd_conn *c)
{
	struct spd_tenant *t = c->tenant;

	SPD_LOCKED();
	if (t == NULL || TEN_OfHost(t)->generation != c->generation) {
		t = c->partial ? &spd_parts : &spd_new;
		c->tenant = NULL;
	}
	c->state = SPD_READY;
	if (VTAILQ_EMPTY(&t->ready))
		VTAILQ_INSERT_TAIL(&spd.readylist, t, readylist);
	VTAILQ_INSERT_TAIL(&t->ready, c, list);
	spd.nready++;
	spd.parts_ready += c->partial;
	spd.nobodys += (unsigned)spd_of_nobody(t);
	spd.vsc->ready = spd.nready;
}

/* Locked.  Nobody's time is used up, and only nobody's connections are ready */
static int
spd_held_back(int64_t now)
{

	return (spd.nready > 0 && spd.nready == spd.nobodys &&
	    !spd_nobody_may(now));
}

/* Locked.  Is there a connection that may be parsed? */
static int
spd_may_parse(void)
{

	return (spd.nready > 0 && !spd_held_back(METER_Now()));
}

struct spd_conn *
spd_ready_pop(int64_t now)
{
	struct spd_tenant *t;
	struct spd_conn *c;
	int turns = 0;

	SPD_LOCKED();
	t = VTAILQ_FIRST(&spd.readylist);
	while (t != NULL && spd_of_nobody(t) && !spd_nobody_may(now)) {
		if (++turns > 2)
			return (NULL);
		VTAILQ_REMOVE(&spd.readylist, t, readylist);
		VTAILQ_INSERT_TAIL(&spd.readylist, t, readylist);
		t = VTAILQ_FIRST(&spd.readylist);
	}
	if (t == NULL)
		return (NULL);
	c = VTAILQ_FIRST(&t->ready);
	AN(c);
	assert(c->state == SPD_READY);
	VTAILQ_REMOVE(&t->ready, c, list);
	VTAILQ_REMOVE(&spd.readylist, t, readylist);
	if (!VTAILQ_EMPTY(&t->ready))
		VTAILQ_INSERT_TAIL(&spd.readylist, t, readylist);
	c->state = SPD_BUSY;
	AN(spd.nready);
	spd.nready--;
	spd.parts_ready -= c->partial;
	spd.nobodys -= (unsigned)spd_of_nobody(t);
	spd.vsc->ready = spd.nready;
	return (c);
}

/*--------------------------------------------------------------------
 * Parked: a heap, the earliest deadline at its root.  Clients choose when
 * their bytes come, and so the order of deadlines: nothing is walked here.
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
static int
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

static void
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

static int64_t
spd_ns(double timeout)
{

	return ((int64_t)(vmin(timeout, SPD_YEAR) * 1e9));
}

/* How long a connection without a part of a request is parked, s */
static double
spd_linger(const struct sess *sp)
{

	return (vmin(SPD_LINGER(sp), SESS_TMO(sp, timeout_idle)));
}

/* A worker is to read from it */
static void
spd_ready_now(struct spd_conn *c)
{

	spd_lock();
	c->drained = 0;
	spd_ready_push(c);
	spd_unlock();
	spd_summon();
}

/* 1: parked.  0: bytes came meanwhile */
static int
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

/*
 * Do enough connections linger, or wait to be parsed?  Those beyond have no
 * request meanwhile.
 */
static int
spd_many_idle(void)
{

	return (spd.nparked + spd.nready >= SPD_IDLE_MAX);
}

/* What is left of a timeout, that the last request began, s */
static double
spd_left(const struct sess *sp, double timeout)
{

	return (vmax(timeout + sp->t_idle - VTIM_real(), 0.));
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
static int
spd_without_req(struct worker *wrk, struct spd_conn *c)
{

	if (!spd_arm(c) || !spd_part_keep(wrk, c))
		return (0);
	c->func = spd_resume;
	c->priv = c;
	return (1);
}

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

/* Locked.  This worker has nothing more to do with the connection that it read
 * from: it parses no more, and parks it. */
static void
spd_end_turn(struct spd_worker *me, int64_t now)
{
	struct spd_conn *c = me->parks;

	SPD_LOCKED();
	if (me->parsing) {
		me->parsing = 0;
		AN(spd.parsers);
		spd.parsers--;
	}
	me->parks = NULL;
	if (c != NULL && !spd_park_locked(c, now + me->parks_for, 0))
		spd_ready_push(c);
}

/*
 * It parses no more, though it goes on with that connection: it waits for the
 * rest as stock does, or runs the request.  It may have the slot of its last
 * request still, which no request needs.
 */
void
spd_parsed(void)
{
	struct spd_worker *me = &spd_me;
	int waiting = 0, ready;

	if (me->magic != SPD_WORKER_MAGIC || (!me->parsing && me->slot < 0))
		return;
	AZ(me->parks);
	spd_lock();
	spd_end_turn(me, 0);
	if (me->slot >= 0 && me->node == NULL) {
		spd_give_mine(me);
		waiting = REL_Waiting(spd.rel) > 0;
	}
	ready = spd_may_parse();
	spd_unlock();
	if (waiting)
		spd_dispatch();
	if (ready)
		spd_summon();
}

/*--------------------------------------------------------------------
 * HTTP/1 wants a request: take what the socket has, wait without a thread
 */

static int
spd_rx(struct worker *wrk, struct req *req, htc_complete_f *complete,
    struct spd_conn *c)
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
			return (0);
		if (hs == HTC_S_EMPTY)
			htc->rxbuf_e = htc->rxbuf_b;
		room = vmin_t(ssize_t, WS_ReservationSize(htc->ws),
		    cache_param->http_req_size);
		room -= htc->rxbuf_e - htc->rxbuf_b;
		if (room <= 0 || c->expired || c->hup) {
			/* Stock's wait ends by the wall clock */
			if (c->expired)
				spd_parsed();
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
		timeout = spd_left(sp, hs == HTC_S_EMPTY ? spd_linger(sp) :
		    SESS_TMO(sp, timeout_idle));
		if (hs == HTC_S_MORE && c->t_first == 0.)
			c->t_first = VTIM_real();
		without = spd_many_idle() && spd_without_req(wrk, c);
		if (!without && !spd_arm(c)) {
			spd_parsed();
			return (0);
		}
		if (hs == HTC_S_EMPTY) {
			/* When it has the lock next, in SPD_Next() */
			me->parks = c;
			me->parks_for = spd_ns(timeout);
			return (1);
		}
		if (spd_park(c, timeout, 1))
			return (1);
		if (without) {
			spd_ready_now(c);
			return (1);
		}
	}
}

int
SPD_Rx(struct worker *wrk, struct req *req, htc_complete_f *complete)
{
	struct spd_conn *c;

	CHECK_OBJ_NOTNULL(wrk, WORKER_MAGIC);
	spd_me.conn = NULL;
	c = NULL;
	if (spd.mode != SPD_OFF)
		c = spd_conn(req->sp);
	else if (spd_me.magic == SPD_WORKER_MAGIC && METER_Cheap(spd_me.meter))
		METER_Drop(spd_me.meter);	/* nobody pays */
	if (c == NULL) {
		spd_parsed();
		return (0);
	}
	spd_self()->conn = c;
	if (spd_rx(wrk, req, complete, c))
		return (1);
	spd_conn_leave(c);
	return (0);
}

/* HTC_RxStuff() saw all bytes at once: when did the first one come? */
void
SPD_First(struct req *req)
{
	struct spd_conn *c;

	if (spd.mode == SPD_OFF)
		return;
	c = spd_conn(req->sp);
	if (c == NULL)
		return;
	if (c->t_first != 0.)
		req->t_first = vmin(req->t_first, c->t_first);
	c->t_first = 0.;
	spd_conn_leave(c);
}

int
SPD_Resumed(const struct sess *sp)
{
	struct spd_conn *c;
	int resumed;

	/* Also while Sandpaper is off: the caller does what is said here */
	c = sp->fd < 0 ? NULL : spd_conn_fd(sp->fd);
	if (c == NULL || !spd_conn_of(c, sp))
		return (0);
	resumed = c->blocking;
	c->blocking = 0;
	spd_conn_leave(c);
	return (resumed);
}

/*--------------------------------------------------------------------
 * Connections that come from outside
 */

/* As in spd_vital() */
static int __attribute__((no_sanitize("thread")))
spd_pool_ends(const struct pool *pp)
{

	return (pp->die);
}

/* Locked.  Nobody will see the next event soon, or the connections that are
 * ready: these have no event left for a leader */
int
spd_unwatched(void)
{

	SPD_LOCKED();
	if (spd.deputy && spd.running >= spd.cores)
		return (0);
	return (!spd.leader || spd_may_parse());
}

/* The same, and nobody has been called to see to it */
int
spd_leaderless(void)
{
	int leaderless;

	spd_lock();
	leaderless = !spd.summoned && spd_unwatched() &&
	    (spd.mode != SPD_OFF || spd.nready > 0);
	spd_unlock();
	return (leaderless);
}

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
	Pool_Sumstat(wrk);	/* the acceptor never ends its task */
	AN(task.func);
	CAST_OBJ_NOTNULL(req, task.priv, REQ_MAGIC);
	sp = req->sp;
	spd_link_seen(sp);

	c = spd_conn(sp);
	if (c != NULL && req->transport->unwait != NULL) {
		c->blocking = 1;	/* make() has seen to it */
		spd_conn_leave(c);
		task.func(wrk, task.priv);
		task = *SPD_TASK(wrk);
		memset(SPD_TASK(wrk), 0, sizeof *SPD_TASK(wrk));
		if (task.func == NULL)
			return;		/* it has deleted the session */
		c->func = task.func;
		c->priv = task.priv;
		if (spd_many_idle())
			(void)spd_without_req(wrk, c);
		if (!spd_park(c, spd_linger(sp), 0)) {
			/* The bytes are here already */
			spd_lock();
			spd_ready_push(c);
			spd_unlock();
			lead = 1;
		}
		if (lead || spd_leaderless())
			spd_summon();
		return;
	}
	/* It talks first, or PROXY does: that takes a thread, as in stock.  If
	 * the pool has too many tasks, others wait in the kernel's queue. */
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

/* The acceptor's CPU time is nobody's, and it waits while that is used up.  The
 * kernel has a queue of clients that want to connect. */
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
		spd.vsc->accept_naps += !may;
		spd_unlock();
		if (may)
			return;
		VTIM_sleep(SPD_NAP * 1e-9);
	}
}

int
SPD_Accept(struct worker *wrk, task_func_t *make, const void *arg, size_t len)
{

	CHECK_OBJ_NOTNULL(wrk, WORKER_MAGIC);
	if (spd.mode == SPD_OFF)
		return (0);
	spd_accept(wrk, make, arg, len);
	spd_accepted(wrk);
	return (1);
}

int
SPD_Ready(struct sess *sp, struct pool_task *tp)
{
	struct spd_conn *c;

	if (spd.mode == SPD_OFF)
		return (0);
	c = spd_conn(sp);
	if (c == NULL)
		return (0);
	spd_lock();
	c->func = tp->func;
	c->priv = tp->priv;
	c->drained = 0;
	/* Left from a time before Sandpaper was off.  The socket of a waiter's
	 * connection is not in blocking mode. */
	c->blocking = c->partial = c->expired = 0;
	c->t_first = 0.;
	spd_ready_push(c);
	spd_unlock();
	spd_summon();
	return (1);
}

/*--------------------------------------------------------------------
 * Look at the epoll set
 */

static void
spd_event(struct spd_conn *c, uint32_t events)
{
	struct req *req;
	struct rel_node *n;
	int hup = (events & (EPOLLHUP | EPOLLERR)) != 0;

	SPD_LOCKED();
	if (hup)
		c->hup = 1;
	if (events & EPOLLRDHUP)
		c->fin = 1;
	switch (c->state) {
	case SPD_PARKED:
		spd_unpark_locked(c);
		c->drained = 0;
		spd_ready_push(c);
		break;
	case SPD_QUEUED:
		c->pending = 1;
		if (!hup)
			break;
		/* Nobody waits for the answer any more */
		CAST_OBJ_NOTNULL(req, c->priv, REQ_MAGIC);
		n = SPD_NODE(req);
		if (!REL_Waits(n))
			break;
		SPD_COUNT(spd_tenant_rel(n->tenant), gone, 1);
		spd_take_out(n, METER_Now());
		SPD_FLAGS(n) |= SPD_F_GONE;
		spd_ready_push(c);
		break;
	default:
		c->pending = 1;
		break;
	}
}

/* Returns how many events there were */
static int
spd_harvest_some(int timeout_ms)
{
	struct epoll_event ev[SPD_EVENTS];
	struct spd_conn *c;
	int i, n;

	n = epoll_wait(spd.epoll, ev, SPD_EVENTS, timeout_ms);
	spd_lock();
	spd.vsc->harvests++;
	for (i = 0; i < n; i++) {
		if (ev[i].data.u64 == UINT64_MAX) {
			spd.timer_at = 0;
			continue;
		}
		c = spd_conn_fd((int)(uint32_t)ev[i].data.u64);
		AN(c);
		if (c->serial == ev[i].data.u64 >> 32)
			spd_event(c, ev[i].events);
	}
	spd_unlock();
	return (n);
}

/* The kernel's list is in order of arrival: whoever comes behind a thousand
 * others is not to wait for as many looks */
static void
spd_harvest(int timeout_ms)
{
	int i;

	for (i = 0; i < SPD_LOOKS; i++)
		if (spd_harvest_some(i == 0 ? timeout_ms : 0) < SPD_EVENTS)
			break;
}

/* Look without waiting; the time is nobody's */
static void
spd_look_now(struct spd_worker *me, int64_t now)
{

	spd.harvested = now;
	spd_harvest(0);
	spd_unowned(me);
}

/* Somebody must look again at this time, ns */
void
spd_timer(int64_t when)
{
	struct itimerspec its;

	SPD_LOCKED();
	if (when == INT64_MAX || (spd.timer_at != 0 && spd.timer_at <= when))
		return;
	spd.timer_at = when;
	memset(&its, 0, sizeof its);
	its.it_value.tv_sec = when / 1000000000;
	its.it_value.tv_nsec = when % 1000000000;
	AZ(timerfd_settime(spd.timer, TFD_TIMER_ABSTIME, &its, NULL));
}

/*--------------------------------------------------------------------
 * Lingering is over: to Varnish's waiter.  Half a request is over: its
 * worker finds that out.
 */

/* Locked: the next one whose deadline has passed, no longer parked, or NULL */
static struct spd_conn *
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

/* Has the pool a task that waits for a thread?  Varnish writes what is read
 * here under the pool's lock; what is too late is seen at the next look. */
static int __attribute__((no_sanitize("thread")))
spd_pool_waits(const struct pool *pp)
{

	return (pp->lqueue > 0);
}

/* For the keeper: the leader sleeps, but its pool does not know that it has a
 * thread, and may not have another one */
void
spd_wake_leader(void)
{

	spd_lock();
	if (spd.leader && spd_pool_waits(leading))
		spd_timer(METER_Now());
	spd_unlock();
}

/* Sleep on the epoll set.  Locked, returns unlocked. */
static void
spd_sleep(struct worker *wrk)
{

	SPD_LOCKED();
	AZ(spd.leader);
	spd.leader = 1;
	leading = wrk->pool;
	/* It came without the call, which may wait in the pools for long: the
	 * next call must reach it */
	spd.summoned = 0;
	spd_unlock();
	if (SPD_WORKER_VCL(wrk) != NULL)
		VCL_Rel(&SPD_WORKER_VCL(wrk));
	Pool_Sumstat(wrk);
	spd_me.turns = 0;
	spd_harvest(-1);
	spd_me.late = 0;
	spd_me.fresh = METER_Now();
	spd.harvested = spd_me.fresh;
	spd_lock();
	AN(spd.leader);
	spd.leader = 0;
	spd_unlock();
}

/* Be the deputy for SPD_NAP ns.  Locked, returns unlocked. */
static void
spd_nap(struct worker *wrk, struct spd_worker *me, int64_t now)
{

	SPD_LOCKED();
	AZ(spd.deputy);
	spd.deputy = 1;
	spd.summoned = 0;
	me->nap_released = spd.vsc->released;
	spd_unlock();
	/* It may be the deputy for as long as there is load */
	if (SPD_WORKER_VCL(wrk) != NULL) {
		VCL_Rel(&SPD_WORKER_VCL(wrk));
		Pool_Sumstat(wrk);
		me->turns = 0;
	}
	VTIM_sleep(SPD_NAP * 1e-9);
	me->fresh = METER_Now();
	me->napped = 1;
	me->late = spd.harvested <= now;
	spd_lock();
	AN(spd.deputy);
	spd.deputy = 0;
	spd_unlock();
}

/*--------------------------------------------------------------------
 * What a free worker does next
 */

enum spd_next {
	SPD_RUN,		/* wrk->task is set */
	SPD_IDLE,		/* nothing, back to the pool */
	SPD_SLEEP,		/* nothing, slots are free, nobody leads */
	SPD_DEPUTISE		/* nothing, new requests are held back, or have
				 * no slot, and nobody is the deputy */
};

/* Locked.  A worker without a slot is not to take another request */
static int
spd_crowded(int64_t now)
{

	return (spd_hold(now) || spd.running >= spd.limit);
}

/* Locked.  There is nothing to do for this worker */
static enum spd_next
spd_rest(struct spd_worker *me, int64_t now)
{

	SPD_LOCKED();
	me->parsed = 0;
	spd_turn_to(me, NULL, now);
	if (spd.mode == SPD_OFF)
		return (SPD_IDLE);
	if (spd_held_back(now))
		spd_timer(now + SPD_NAP);
	if (spd_crowded(now))
		return (spd.deputy ? SPD_IDLE : SPD_DEPUTISE);
	if (!spd.leader)
		return (SPD_SLEEP);
	/* Requests were released during the nap: a deputy will be needed
	 * again soon */
	return (me->napped && !spd.deputy &&
	    me->nap_released < spd.vsc->released ? SPD_DEPUTISE : SPD_IDLE);
}

static enum spd_next
spd_pick(struct worker *wrk, struct spd_worker *me, int64_t now)
{
	struct pool_task *task;
	struct spd_conn *c;
	struct req *req;
	int64_t when;
	int slot;

	SPD_LOCKED();
	task = spd_stranded();
	if (task != NULL) {
		if (me->slot >= 0)
			spd_give_mine(me);	/* it has its own */
		spd_turn_to(me, NULL, now);
		SPD_TASK(wrk)->func = task->func;
		SPD_TASK(wrk)->priv = task->priv;
		me->parsed = 0;
		return (SPD_RUN);
	}
	if (me->slot >= 0 && (spd_robbed(me) || spd.running > spd.limit))
		spd_give_mine(me);	/* somebody rejoined, or W shrank */
	if (me->slot < 0 && !me->late && spd_crowded(now))
		return (spd_rest(me, now));
	if (spd.parsers < spd.parsers_max && me->parsed < SPD_PARSE_RUN &&
	    (c = spd_ready_pop(now)) != NULL) {
		spd.parsers++;
		me->parsing = 1;
		me->parsed++;
		spd_turn_to(me, c->tenant, now);
		SPD_TASK(wrk)->func = c->func;
		SPD_TASK(wrk)->priv = c->priv;
		return (SPD_RUN);
	}
	if (me->slot < 0 && spd.running < spd.limit &&
	    REL_Waiting(spd.rel) > 0 && (slot = spd_take()) >= 0)
		spd_own(me, slot);
	if (me->slot >= 0) {
		req = spd_release(now, me->slot, &when);
		if (req != NULL) {
			me->picked = SPD_NODE(req);
			spd_begin(me, req, now);
			SPD_TASK(wrk)->func = SPD_TASK(req)->func;
			SPD_TASK(wrk)->priv = SPD_TASK(req)->priv;
			me->parsed = 0;
			return (SPD_RUN);
		}
		spd_timer(when);
		spd_give_mine(me);
	}
	if (me->parsed > 0 && spd_may_parse()) {
		me->parsed = 0;
		return (spd_pick(wrk, me, now));
	}
	return (spd_rest(me, now));
}

/* Leave the loop: with another task to do, or because Sandpaper is off */
static void
spd_leave(struct spd_worker *me)
{
	int64_t now = METER_Now();
	int summon, waiting;

	spd_lock();
	spd_end_turn(me, now);
	if (me->slot >= 0)
		spd_give_mine(me);
	spd_turn_to(me, NULL, now);
	me->parsed = 0;
	summon = spd_unwatched() && spd.mode != SPD_OFF;
	waiting = REL_Waiting(spd.rel) > 0;
	spd_unlock();
	if (waiting)
		spd_dispatch();
	if (summon)
		spd_summon();
}

/*
 * All slots of a core have a runnable worker under load.  One that is
 * preempted within a request strands it until the others have had their
 * time slices, which is what a tail is made of.  So a worker that has run
 * for a part of a slice, since it was woken or yielded last, lets the next
 * one run while it has no request.  Returns the time.
 */
static int64_t
spd_yield(struct spd_worker *me)
{
	int64_t now = METER_Now();

	if (me->slot < 0 || spd.running <= spd.cores ||
	    now - me->fresh < SPD_YIELD)
		return (now);
	spd_lock();
	spd_end_turn(me, now);
	spd_unlock();
	(void)sched_yield();
	me->fresh = METER_Now();
	return (me->fresh);
}

/*
 * A task that waits in the queues of this worker's pool goes first, if the pool
 * would give it to this worker: of less urgent ones, it keeps some until more
 * threads are idle.  The worker takes it here.  If it only went back for it, the
 * call for another leader could take the idle thread that the pool wants to
 * have before it gives the task away.
 */
static int
spd_vital(struct worker *wrk)
{

	return (spd_pool_waits(wrk->pool) && WRK_TaskTake(wrk));
}

/* Not asked here: is Sandpaper off and drained?  A worker that was called must
 * look, since a request may have passed the gate after the keeper saw that. */
void
spd_find_work(struct worker *wrk)
{
	struct spd_worker *me;
	enum spd_next next;
	int64_t now;
	int waiting, crowded, lead, looked = 0;

	CHECK_OBJ_NOTNULL(wrk, WORKER_MAGIC);
	me = spd_self();
	spd_runs(me, NULL);
	me->picked = NULL;
	me->napped = 0;
	wrk->stats->summs++;
	spd_owe(me);
	if (SPD_TASK(wrk)->func != NULL) {
		/* An HTTP/2 session, or a debugging transport */
		if (me->conn != NULL)
			spd_disarm(me->conn);
		spd_leave(me);
		return;
	}
	me->conn = NULL;
	/* As the pool does between two tasks */
	if (WS_Overflowed(wrk->aws))
		wrk->stats->ws_thread_overflow++;
	WS_Rollback(wrk->aws, 0);
	wrk->seen_methods = 0;
	now = spd_yield(me);
	if (++me->turns >= SPD_SUM_TURNS && Pool_TrySumstat(wrk))
		me->turns = 0;
	while (1) {
		if (spd_pool_ends(wrk->pool) || spd_vital(wrk)) {
			spd_leave(me);
			return;
		}
		if (!looked && now - spd.harvested > SPD_HARVEST) {
			looked = 1;
			spd_look_now(me, now);
		}
		spd_lock();
		spd_end_turn(me, now);
		next = spd_pick(wrk, me, now);
		waiting = REL_Waiting(spd.rel) > 0;
		crowded = spd_crowded(now);
		lead = crowded ? !spd.deputy :
		    !spd.leader || (!me->parsing && spd_may_parse());
		if (next == SPD_SLEEP && !looked) {
			looked = 1;
			spd_unlock();
			spd_look_now(me, now);
			continue;
		}
		if (next == SPD_SLEEP) {
			spd_sleep(wrk);		/* unlocks */
			spd_unowned(me);
			looked = 1;
			now = me->fresh;
			continue;
		}
		if (next == SPD_DEPUTISE) {
			spd_nap(wrk, me, now);	/* unlocks */
			looked = !me->late;
			now = me->fresh;
			continue;
		}
		spd_unlock();
		if (next == SPD_IDLE)
			me->late = 0;
		if (next == SPD_RUN && me->parsing &&
		    !METER_Cheap(me->meter) && spd_drawn(me)) {
			(void)spd_lap(me, 1);
			me->turn_drawn = 1;
		}
		if (next == SPD_RUN && waiting && !crowded)
			spd_dispatch();
		if (next == SPD_RUN && lead)
			spd_summon();
		return;
	}
}

void
SPD_Next(struct worker *wrk)
{

	if (spd.live || (spd_me.magic == SPD_WORKER_MAGIC &&
	    (spd_me.slot >= 0 || spd_me.parsing || spd_me.parks != NULL)))
		spd_find_work(wrk);
}

/*--------------------------------------------------------------------*/

void
spd_ready_init(void)
{
	struct epoll_event ev;

	VTAILQ_INIT(&spd.readylist);
	deadlines = VBH_new(NULL, spd_deadline_cmp, spd_deadline_update);
	AN(deadlines);
	INIT_OBJ(&spd_parts, SPD_TENANT_MAGIC);
	VTAILQ_INIT(&spd_parts.ready);
	INIT_OBJ(&spd_new, SPD_TENANT_MAGIC);
	VTAILQ_INIT(&spd_new.ready);
	spd.epoll = epoll_create1(EPOLL_CLOEXEC);
	assert(spd.epoll >= 0);
	spd.timer = timerfd_create(CLOCK_MONOTONIC,
	    TFD_NONBLOCK | TFD_CLOEXEC);
	assert(spd.timer >= 0);
	ev.events = EPOLLIN | EPOLLET;
	ev.data.u64 = UINT64_MAX;
	AZ(epoll_ctl(spd.epoll, EPOLL_CTL_ADD, spd.timer, &ev));
}
