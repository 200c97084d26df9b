/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Hooks of a request: it passes the gate, begins on a worker with a slot, and
 * is settled when it is done.
 *
 * The node in struct req has the request's state.  Before the gate and after
 * its release, the worker owns the node.  While the request waits, the
 * releaser owns it.  The lock guards the tenant's account and estimate.
 */

#include "config.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spd.h"

#include "vtim.h"

/*--------------------------------------------------------------------
 * The gate
 */

/* Return 1 if VCL answers this refused request.  VCL may take long, and so may
 * a client that does not read, so this worker ends its turn of parsing and
 * gives its slot back. */
static int
spd_by_vcl(struct req *req)
{

	if (!spd_refuse_in_vcl(req))
		return (0);
	spd_parsed(NULL);
	return (1);
}

/*
 * Put an HTTP/1 request into its tenant's queue, or refuse it.  After
 * SPD_GATE_QUEUED the caller must not touch req: another worker may run it.
 */
enum spd_gate
SPD_Gate(struct worker *wrk, struct req *req)
{
	struct spd_verdict e;
	struct spd_conn *conn;
	enum spd_in in;

	conn = spd_set.mode == SPD_OFF ? NULL : spd_conn(req->sp);
	if (conn == NULL) {
		spd_parsed(NULL);
		return (SPD_GATE_OPEN);
	}
	if (conn->armed && req->htc->body_status != BS_NONE)
		spd_disarm(conn);	/* the next bytes are the body's */
	else
		spd_conn_leave(conn);
	in = spd_enqueue(wrk, req, conn, 0, &e, NULL);
	if (in == SPD_IN_GRANTED)
		spd_task_run(req);
	if (in != SPD_IN_FULL)
		return (SPD_GATE_QUEUED);
	(void)Req_LogStart(wrk, req);
	spd_log_limit(req->vsl, &e);
	spd_me.turn_refused = 1;
	spd_me.refused = conn;
	if (spd_by_vcl(req))
		return (SPD_GATE_OPEN);
	spd_refuse(req);
	return (SPD_GATE_REFUSED);
}

/*--------------------------------------------------------------------
 * A request begins, or goes on after a waiting list
 */

/* Return 1 if the client of an HTTP/1 request has reset its connection. */
static int
spd_client_gone(const struct req *req, struct spd_conn *conn)
{
	struct pollfd pfd;
	int armed, gone;

	if (conn == NULL)
		return (0);
	gone = conn->hup;
	armed = conn->armed;
	spd_conn_leave(conn);
	if (!gone && !armed) {
		/* The epoll set does not have the socket of a request with a
		 * body. */
		pfd.fd = req->sp->fd;
		pfd.events = 0;
		pfd.revents = 0;
		(void)poll(&pfd, 1, 0);
		gone = (pfd.revents & (POLLHUP | POLLERR)) != 0;
	}
	return (gone);
}

/* Complete a released request that does not run, at cost 0, and charge only the
 * CPU time of its parsing.  Caller holds spd_lock(). */
static void
spd_not_run(struct spd_tenant *t, struct rel_node *n, int64_t now)
{

	spd_link_correct(n, 0, now);
	spd_extra_ends(n);
	REL_Complete(spd_rel, n, 0, REL_SCALE_ONE, now);
	spd_charge(t, (int64_t)SPD_REQUEST(n)->cpu_16ns << 4, 0, now);
	spd_pay_debt(t, now);
	SPD_COUNT(t, cancelled, 1);
}

/* End a request that the client has reset.  Returns 1. */
static int
spd_abandon(struct spd_worker *me, struct req *req)
{
	struct rel_node *n = SPD_NODE(req);
	struct spd_tenant *t;
	int64_t now = METER_Now();

	spd_lock();
	if (n->state == REL_RUNNING) {
		t = spd_tenant_rel(n->tenant);
		spd_not_run(t, n, now);
	}
	spd_runs(me, NULL);
	spd_unlock();
	n->magic = 0;
	SES_Close(req->sp, SC_REM_CLOSE);
	req->doclose = SC_REM_CLOSE;
	return (1);
}

/*
 * Refuse a request that waited for sandpaper_queue_timeout, and is cancelled,
 * or for longer than its tenant's own time, and is released.  The caller
 * answers an HTTP/2 stream.  Returns 1, or 0 if VCL answers.
 */
static int
spd_late(struct worker *wrk, struct req *req)
{
	struct rel_node *n = SPD_NODE(req);
	char name[TEN_NAME_MAX + 1];
	int h2 = (SPD_REQUEST(n)->flags & SPD_F_H2) != 0;
	int released = n->state == REL_RUNNING;
	int64_t now = METER_Now(), wait, most, cpu;
	struct spd_worker *me = spd_self();
	struct spd_tenant *t;
	size_t l;

	AN(SPD_REQUEST(n)->flags & SPD_F_LATE);
	l = spd_tenant_name(req, name, NULL);
	cpu = vmax_t(int64_t, 0, spd_lap(me, 0)) + spd_take_owed(me);
	wait = released ? SPD_WAIT(n) : now - n->arrival;
	most = (int64_t)(cache_param->sandpaper_queue_timeout * 1e9);
	spd_lock();
	t = released ? spd_tenant_rel(n->tenant) : spd_tenant_find(name, l);
	if (released) {
		most = t->queue_timeout;
		spd_not_run(t, n, now);
		spd_count_late(t, now);
	}
	if (t != NULL)
		spd_charge_refusal(me, t, h2 ? NULL : req, cpu, now);
	else
		spd_refusal_of(me, NULL);
	spd_unlock();
	n->magic = 0;
	if (h2)
		spd_parsed(NULL);	/* the answer may wait: without slot */
	(void)Req_LogStart(wrk, req);
	VSLb(req->vsl, SLT_Error, "Sandpaper: limit reached: a request of "
	    "tenant %.*s waited %.3f s of at most %.6g s (see %s)", (int)l,
	    name, (double)wait * 1e-9, (double)most * 1e-9, released ?
	    "sandpaper.queue_timeout()" : "sandpaper_queue_timeout");
	if (h2)
		return (1);
	spd_me.refused = spd_conn_fd(req->sp->fd);
	if (spd_by_vcl(req))
		return (0);
	spd_refuse(req);
	return (1);
}

/* Return 1 if VCL answers this request, which is refused. */
int
SPD_Refused(const struct req *req)
{

	return (spd_me.magic == SPD_WORKER_MAGIC && spd_me.answers == req);
}

/* The same, and then give vcl_synth the status. */
int
SPD_Synth(struct req *req)
{

	if (!SPD_Refused(req))
		return (0);
	spd_refusal_synth(&spd_me, req);
	return (1);
}

/*
 * Begin a released or woken request on this worker.  A woken one takes a slot,
 * even above W.  Returns 1 if the request must not run: the client has reset,
 * or it waited for too long.
 */
int
SPD_Begin(struct worker *wrk, struct req *req)
{
	struct rel_node *n = SPD_NODE(req);
	struct spd_worker *me;
	struct spd_conn *conn = NULL;
	int granted;
	vtim_real t;

	CHECK_OBJ_NOTNULL(wrk, WORKER_MAGIC);
	if (n->magic != REL_NODE_MAGIC)
		return (0);			/* it passed no gate */
	me = spd_self();
	if (n->state != REL_RUNNING)	/* cancelled */
		return (SPD_REQUEST(n)->flags & SPD_F_RESET ?
		    spd_abandon(me, req) : spd_late(wrk, req));
	if (me->picked != n)
		me->began = METER_Now();
	me->blocked = me->sends_at = me->loaned = 0;
	me->piped = me->pipe_out = me->sent = 0;
	me->piped_cpu = me->piped_net = 0;
	me->hits = me->misses = 0;
	me->hit_bytes = me->miss_bytes = 0;
	granted = (SPD_REQUEST(n)->flags & SPD_F_GRANTED) != 0;
	if (granted) {
		SPD_WAIT(n) = vmax_t(int64_t, 0, me->began - n->arrival);
		if (!(SPD_REQUEST(n)->flags & SPD_F_H2)) {
			conn = spd_conn(req->sp);
			AN(conn);
		}
	}
	if (me->picked != n) {
		spd_owe(me);
		spd_lock();
		if (granted) {
			spd_own(me, n->slot);
			me->slice_start = me->began;	/* woken for it */
		}
		spd_begin(me, req, me->began);
		if (me->slot < 0)
			spd_retake(me);	/* woken from a waiting list */
		spd_unlock();
	}
	if (granted)
		assert(me->slot == n->slot);
	me->picked = NULL;
	SPD_REQUEST(n)->flags &= ~SPD_F_GRANTED;
	if (granted) {
		if (spd_client_gone(req, conn))
			return (spd_abandon(me, req));
		if (SPD_REQUEST(n)->flags & SPD_F_LATE)
			return (spd_late(wrk, req));
		t = VTIM_real();
		spd_timestamp(req, "Enqueue",
		    vmax(req->t_prev, t - (double)SPD_WAIT(n) * 1e-9));
		spd_timestamp(req, "Release", vmax(req->t_prev, t));
	}
	spd_runs(me, n);
	if (SPD_REQUEST(n)->flags & SPD_F_SAMPLED)
		(void)spd_lap(me, 1);
	return (0);
}

/*
 * Take a request that goes to a waiting list off this worker.  The slot stays
 * with the worker.  Caller holds the object head's lock.  When the caller drops
 * that lock, another worker may run the request.
 */
void
SPD_Disembark(struct req *req)
{
	struct rel_node *n = SPD_NODE(req);
	struct spd_worker *me = &spd_me;
	int64_t lap;

	if (me->magic != SPD_WORKER_MAGIC || me->node != n)
		return;				/* ESI part, or without gate */
	lap = spd_lap(me, SPD_REQUEST(n)->flags & SPD_F_SAMPLED);
	if (lap > 0)
		SPD_REQUEST(n)->cpu_16ns = (uint32_t)vmin_t(int64_t, UINT32_MAX,
		    SPD_REQUEST(n)->cpu_16ns + (lap >> 4));
	spd_runs(me, NULL);
}

/*--------------------------------------------------------------------
 * Done: what it cost
 */

/* Return 1/p for a drawn request, else 1, in units of REL_SCALE_ONE. */
static uint32_t
spd_scale(uint32_t flags)
{

	if (!(flags & SPD_F_SAMPLED) || spd_set.sample <= 0)
		return (REL_SCALE_ONE);
	return ((uint32_t)(REL_SCALE_ONE / spd_set.sample));
}

/*
 * Note that the request's status is good, for the proof of its Host.  The
 * status of an ESI part does not count.  While varnishd drains, the connection
 * of an HTTP/1 request ends with its answer.
 */
void
SPD_Answer(struct req *req, uint16_t status)
{
	struct rel_node *n = SPD_NODE(req);

	if (SPD_Draining() && req->doclose == SC_NULL &&
	    req->transport == &HTTP1_transport)
		req->doclose = SC_RESP_CLOSE;

	if (spd_me.magic == SPD_WORKER_MAGIC && spd_me.node == n &&
	    NEW_Good(status))
		SPD_REQUEST(n)->flags |= SPD_F_GOOD;
}

/* The cost of a request */
struct spd_spent {
	int			measured;	/* its CPU time was measured */
	int			drawn;		/* it was drawn for that */
	int			dear;		/* it ran for more than ACC_DEAR
						 * times its charge */
	int64_t			cpu, net;	/* ns: of CPU; on net */
	uint64_t		bytes, wire;	/* bytes sent; on net */
};

/* Return the bytes sent to the client that were not charged yet. */
static uint64_t
spd_bytes(const struct spd_worker *me, const struct req *req, unsigned flags)
{

	if (flags & SPD_F_H2)
		return (req->acct.resp_hdrbytes + req->acct.resp_bodybytes);
	return (me->pipe_out > 0 ? me->pipe_out - me->piped : me->sent);
}

/*
 * Return the CPU time of a request, ns, without that charged for a pipe.  lap
 * is the CPU time since the last lap, ns, or -1 if it was not measured: then
 * the tenant's estimate counts.
 */
static int64_t
spd_cpu(struct spd_worker *me, const struct rel_node *n, int drawn,
    int64_t lap)
{
	int64_t cpu;

	if (lap < 0) {
		cpu = atomic_load_explicit(
		    &spd_tenant_rel(n->tenant)->cpu_next,
		    memory_order_relaxed);
		me->unmeasured += cpu;
		return (cpu);
	}
	cpu = lap + spd_residual() + spd_take_owed(me);
	if (METER_Cheap(me->meter) || drawn)
		cpu += (int64_t)SPD_REQUEST(n)->cpu_16ns << 4;
	if (!drawn)
		cpu -= vmin_t(int64_t, lap, me->unmeasured);
	me->unmeasured = 0;
	return (cpu);
}

/*
 * Settle a request's cost, and update its tenant's estimate and counters.
 * Caller holds spd_lock().
 */
static void
spd_done(struct rel_node *n, const struct spd_spent *s, int64_t now)
{
	struct spd_tenant *t = spd_tenant_rel(n->tenant);
	int64_t cost;

	SPD_LOCKED();
	spd_residual_count();
	if (!(SPD_REQUEST(n)->flags & SPD_F_SLOW))
		spd_link_correct(n, s->wire, now);
	cost = ACC_Settle(&t->account, s->cpu / spd_set.cores, s->net);
	if (t->fixed[REL_CPU] + t->fixed[REL_NET] > 0)
		cost = vmax(t->fixed[REL_CPU], t->fixed[REL_NET]);
	spd_extra_ends(n);
	/* A request that was measured only because it was drawn stands for 1/p
	 * requests.  Other requests stand for themselves. */
	REL_Complete(spd_rel, n, cost, ACC_Scale(&t->account, s->measured &&
	    !s->dear ? spd_scale(SPD_REQUEST(n)->flags) : REL_SCALE_ONE), now);
	spd_pay_debt(t, now);
	spd_sample(t, s->measured ? s->cpu : -1, (int64_t)s->wire);
	SPD_COUNT(t, completed, 1);
	spd_price_done(t);
	spd_new_answer(t, (SPD_REQUEST(n)->flags & SPD_F_GOOD) != 0, now);
	spd_estimate(t);
	SPD_COUNT(t, cpu_ns, s->cpu);
	SPD_COUNT(t, net_ns, s->net);
	SPD_COUNT(t, bytes, s->bytes);
	SPD_COUNT(t, wait_ns, SPD_WAIT(n));
	SPD_COUNT_OWN(t, waits[WAIT_Count(SPD_WAIT(n))], 1);
	spd_vsc->measured += (unsigned)s->measured;
}

/* Count the hits and misses of a request and its ESI parts.  Caller holds
 * spd_lock(). */
static void
spd_count_hits(const struct spd_worker *me, struct spd_tenant *t)
{

	if (me->hits > 0) {
		SPD_COUNT(t, hits, me->hits);
		SPD_COUNT(t, hit_bytes, me->hit_bytes);
	}
	if (me->misses > 0) {
		SPD_COUNT(t, misses, me->misses);
		SPD_COUNT(t, miss_bytes, me->miss_bytes);
	}
}

/* Measure, log and settle the request that ran on this worker. */
void
SPD_Done(struct worker *wrk, struct req *req)
{
	struct rel_node *n = SPD_NODE(req);
	struct spd_worker *me = &spd_me;
	struct spd_spent s;
	int64_t now, lap, v[4];

	CHECK_OBJ_NOTNULL(wrk, WORKER_MAGIC);
	if (me->magic != SPD_WORKER_MAGIC)
		return;
	if (me->answers == req)
		spd_answered(me, req);
	if (me->node == NULL || me->node != n)
		return;
	now = METER_Now();
	s.drawn = (SPD_REQUEST(n)->flags & SPD_F_SAMPLED) != 0;
	s.dear = now - me->began > ACC_DEAR * me->charge * spd_set.cores;
	lap = spd_lap(me, s.drawn || s.dear);
	s.measured = lap >= 0;
	s.bytes = spd_bytes(me, req, SPD_REQUEST(n)->flags);
	s.wire = COST_Wire(s.bytes, cache_param->sandpaper_mtu,
	    cache_param->sandpaper_header);
	s.cpu = spd_cpu(me, n, s.drawn, lap);
	s.net = spd_net((int64_t)s.wire);
	v[0] = SPD_WAIT(n);
	v[1] = s.cpu + me->piped_cpu;
	v[2] = s.net + me->piped_net;
	v[3] = me->charge * me->charge_cores;
	spd_log(req, spd_tenant_rel(n->tenant), v, s.bytes + me->piped,
	    s.measured);

	spd_lock();
	spd_sum_laps(me);
	spd_ban_pay(now);
	spd_count_hits(me, spd_tenant_rel(n->tenant));
	spd_done(n, &s, now);
	spd_stage_done(me, v[0], now);
	spd_pace(s.cpu);
	spd_runs(me, NULL);
	spd_unlock();
	n->magic = 0;
}
