/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The gate: a request waits in the releaser, gets a slot, runs, and its
 * cost is settled.
 *
 * Slots are counted, threads are provided for them.  A worker that ends a
 * request keeps its slot and picks the next release itself (SPD_Next(), in
 * sp_ready.c), so that under load a request costs no hand-over.  Whoever
 * frees a slot otherwise, or adds a request from outside of a worker, calls
 * spd_dispatch().
 *
 * On the request's way there are three decisions under the lock: enqueue,
 * release and settle.  Nothing there allocates, calls the kernel or wakes a
 * thread but to run a request; the exceptions are in doc/internals/locking.md.
 */

#include "config.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/syscall.h>

#include "sp.h"

#include "vtcp.h"
#include "vtim.h"

/* ns, before a closed NIC is looked at again: late, as each look costs
 * wake-ups, and what is then sent in a burst takes fewer interrupts */
#define SPD_COALESCE	(NIC_BACKLOG / 4 * 3)
#define SPD_FETCHES	8U	/* a tenant may have, however few threads are */
#define SPD_ALONE	INT64_C(10000000000)	/* ns */
#define SPD_REFUSE_EVERY 5000000	/* ns, a tenant's streams */
#define SPD_REFUSE_MOST	250000000	/* ns, that a session waits for it */

struct spd spd;
__thread struct spd_worker spd_me;
pthread_key_t spd_key;

/*--------------------------------------------------------------------
 * This thread
 */

struct spd_worker *
spd_self(void)
{

	if (spd_me.magic == SPD_WORKER_MAGIC) {
		if (spd_me.meter->src != spd.source) {
			METER_Close(spd_me.meter);
			METER_Open(spd_me.meter, spd.source);
		}
		return (&spd_me);
	}
	memset(&spd_me, 0, sizeof spd_me);
	spd_me.magic = SPD_WORKER_MAGIC;
	spd_me.slot = -1;
	spd_me.rnd = (uint64_t)METER_Now() * 2654435761U ^
	    (uint64_t)(uintptr_t)&spd_me;
	METER_Open(spd_me.meter, spd.source);
	PTOK(pthread_getcpuclockid(pthread_self(), &spd_me.clock));
	spd_me.tid = (pid_t)syscall(SYS_gettid);
	PTOK(pthread_setspecific(spd_key, &spd_me));
	return (&spd_me);
}

/* A thread ends: its meter may have a file descriptor */
void
spd_thread_ends(void *priv)
{
	struct spd_worker *me;

	CAST_OBJ_NOTNULL(me, priv, SPD_WORKER_MAGIC);
	assert(me->slot < 0);
	METER_Close(me->meter);
	FINI_OBJ(me);
}

/*--------------------------------------------------------------------
 * Slots.  A slot is taken, for a worker that is to have it, or by it, and then
 * owned by it until it is given back.  An owner does not end: through its slot
 * the keeper finds who runs, however many threads there are.
 */

/* -1: there is none */
int
spd_take(void)
{
	unsigned u;
	int i;

	SPD_LOCKED();
	for (u = 0; u < spd.slots_max / 64; u++) {
		if (~spd.slots[u] == 0)
			continue;
		i = __builtin_ctzll(~spd.slots[u]);
		spd.slots[u] |= 1ULL << i;
		spd.running++;
		spd.vsc->running = spd.running;
		return ((int)u * 64 + i);
	}
	return (-1);
}

/*
 * A request runs on in this worker, above W if need be.  If all slots that
 * there can be are in use, it runs without one: it cannot wait here.
 */
void
spd_retake(struct spd_worker *me)
{
	int slot;

	SPD_LOCKED();
	slot = spd_take();
	if (slot >= 0)
		spd_own(me, slot);
	else
		spd.vsc->slotless++;
}

/* It has been taken for this worker.  The lock is not needed */
void
spd_own(struct spd_worker *me, int slot)
{

	me->slot = slot;
	atomic_store_explicit(&spd.owner[slot], me, memory_order_release);
}

void
spd_give(int slot)
{
	uint64_t bit = 1ULL << (slot & 63);

	SPD_LOCKED();
	assert(slot >= 0 && slot < SPD_SLOTS_MAX);
	AN(spd.slots[slot >> 6] & bit);
	spd.slots[slot >> 6] &= ~bit;
	atomic_store_explicit(&spd.owner[slot], NULL, memory_order_relaxed);
	AN(spd.running);
	spd.running--;
	spd.vsc->running = spd.running;
}

/* The keeper has taken this worker's slot away */
int
spd_robbed(const struct spd_worker *me)
{

	SPD_LOCKED();
	return (spd.owner[me->slot] != me);
}

/* This worker's slot goes back, unless the keeper has taken it already */
void
spd_give_mine(struct spd_worker *me)
{

	SPD_LOCKED();
	assert(me->slot >= 0);
	if (!spd_robbed(me))
		spd_give(me->slot);
	me->slot = -1;
}

/*--------------------------------------------------------------------
 * The next release for this slot.  It is the caller's to run.
 */

struct req *
spd_req_of(struct rel_node *node)
{
	struct req *req;

	req = (void *)((char *)node - offsetof(struct req, sandpaper));
	CHECK_OBJ_NOTNULL(req, REQ_MAGIC);
	return (req);
}

/* NULL: nothing may go, before *when (ns; INT64_MAX: who knows) */
struct req *
spd_release(int64_t now, int slot, int64_t *when)
{
	struct rel_node *node;
	struct spd_tenant *t;
	int64_t opens = INT64_MAX;
	unsigned closed = 0;
	uint32_t counted;

	SPD_LOCKED();
	*when = INT64_MAX;
	if (REL_Waiting(spd.rel) == 0)
		return (NULL);
	if (spd.frozen) {
		if (spd.steps == 0 || spd.running + spd.lent > 1)
			return (NULL);
	}
	if (spd.mode == SPD_ON && NIC_Closed(spd.nic, now, &opens))
		closed = REL_MASK(REL_NET);
	/* The policy's slots are 0 to W - 1, ours may be above W: after a
	 * rejoin, or when W shrank */
	switch (REL_Dequeue(spd.rel, now, (unsigned)slot % spd.limit, closed,
	    &node, when)) {
	case REL_RELEASED:
		break;
	case REL_NOT_YET:
		/* Several releases a wake-up: the link has NIC_BACKLOG, it
		 * does not run dry meanwhile */
		if (closed != 0 && opens < *when)
			*when = vmax(opens, now + SPD_COALESCE);
		return (NULL);
	default:
		return (NULL);
	}
	if (spd.frozen)
		spd.steps--;
	node->slot = (uint16_t)slot;
	t = spd_tenant_rel(node->tenant);
	counted = NIC_Release(spd.nic,
	    (uint32_t)vmin_t(int64_t, ACC_Value(&spd.costs, &t->key, REL_NET),
	    UINT32_MAX >> SPD_COUNTED_SHIFT), now);
	SPD_FLAGS(node) = (SPD_FLAGS(node) & ((1U << SPD_COUNTED_SHIFT) - 1)) |
	    SPD_F_GRANTED | counted << SPD_COUNTED_SHIFT;
	spd.vsc->released++;
	spd.vsc->waiting = REL_Waiting(spd.rel);
	return (spd_req_of(node));
}

/*--------------------------------------------------------------------
 * Hand releases to pool threads, as many as there are slots
 */

#define SPD_BATCH 16

/*
 * Every core runs a request, and no request has waited for long.  These workers
 * will take the waiting requests: another thread would only take CPU time from
 * them.  Who holds requests back summons a deputy, if there is none.
 */
int
spd_hold(int64_t now)
{

	SPD_LOCKED();
	return (spd.mode == SPD_ON && spd.running >= spd.cores &&
	    (REL_Waiting(spd.rel) == 0 ||
	    now - REL_Oldest(spd.rel) < SPD_NAP));
}

void
spd_dispatch(void)
{
	struct req *req[SPD_BATCH];
	unsigned n, u;
	int64_t now, when;
	int slot, deputy;

	do {
		n = 0;
		now = METER_Now();
		spd_lock();
		while (n < SPD_BATCH && spd.running < spd.limit &&
		    !spd_hold(now)) {
			slot = spd_take();
			if (slot < 0)
				break;
			req[n] = spd_release(now, slot, &when);
			if (req[n] == NULL) {
				spd_timer(when);
				spd_give(slot);
				break;
			}
			n++;
		}
		deputy = !spd.deputy && REL_Waiting(spd.rel) > 0 &&
		    spd.running < spd.limit && spd_hold(now);
		spd_unlock();
		/* A release has its slot: it must never be refused, and not
		 * wait behind requests that have none. */
		for (u = 0; u < n; u++)
			spd_run(req[u]);
	} while (n == SPD_BATCH);
	if (deputy)
		spd_summon();
}

/*--------------------------------------------------------------------
 * Ten numbers a request, two digits at a time: printf("%.6f") costs a
 * microsecond.
 */

static const char digits[] =
    "00010203040506070809" "10111213141516171819"
    "20212223242526272829" "30313233343536373839"
    "40414243444546474849" "50515253545556575859"
    "60616263646566676869" "70717273747576777879"
    "80818283848586878889" "90919293949596979899";

/* The last n digits of u; n is even */
static char *
spd_digits(char *p, uint64_t u, unsigned n)
{
	char *q;

	for (q = p + n; q > p; u /= 100) {
		q -= 2;
		memcpy(q, digits + u % 100 * 2, 2);
	}
	return (p + n);
}

static char *
spd_uint(char *p, uint64_t u)
{
	uint64_t pairs = u;
	unsigned n = 0;

	while (pairs >= 100) {
		pairs /= 100;
		n += 2;
	}
	if (pairs >= 10)
		return (spd_digits(p, u, n + 2));
	*p++ = (char)('0' + pairs);
	return (spd_digits(p, u, n));
}

static char *
spd_sec(char *p, double d)
{
	uint64_t us = d > 0 ? (uint64_t)(d * 1e6 + .5) : 0;

	p = spd_uint(p, us / 1000000);
	*p++ = '.';
	return (spd_digits(p, us % 1000000, 6));
}

static void
spd_timestamp(struct req *req, const char *event, vtim_real now)
{
	char b[96], *p;

	p = b + strlen(event);
	memcpy(b, event, (size_t)(p - b));
	*p++ = ':';
	*p++ = ' ';
	p = spd_sec(p, now);
	*p++ = ' ';
	p = spd_sec(p, now - req->t_first);
	*p++ = ' ';
	p = spd_sec(p, now - req->t_prev);
	*p = '\0';
	VSLbs(req->vsl, SLT_Timestamp, TOSTRAND(b));
	req->t_prev = now;
}

static void
spd_log(struct req *req, struct spd_tenant *t, const int64_t v[4],
    uint64_t bytes, int measured)
{
	char b[TEN_NAME_MAX + 160], *p;
	const char *name = spd_name(t);
	int i;

	p = b + strlen(name);
	memcpy(b, name, (size_t)(p - b));
	for (i = 0; i < 4; i++) {
		*p++ = ' ';
		p = spd_sec(p, (double)v[i] * 1e-9);
	}
	*p++ = ' ';
	p = spd_uint(p, bytes);
	*p++ = ' ';
	*p++ = measured ? 'm' : 'e';
	*p = '\0';
	VSLbs(req->vsl, SLT_Sandpaper, TOSTRAND(b));
}

/*--------------------------------------------------------------------
 * In through the gate
 */

enum spd_in {
	SPD_IN_QUEUED,
	SPD_IN_FULL
};

/*
 * Nobody is held for the link's sake while one tenant alone has asked for
 * SPD_ALONE: that would cost it throughput and wake-ups for nothing.
 */
static void
spd_asks(const struct spd_tenant *t, int64_t now)
{

	SPD_LOCKED();
	if (spd.asked != t) {
		if (spd.asked != NULL)
			spd.shared = now + SPD_ALONE;
		spd.asked = t;
	}
	NIC_SetAlone(spd.nic, now >= spd.shared, now);
}

/*
 * Locked.  A refused stream costs its client next to nothing, and us its
 * parsing and a frame, which is nobody's share.  So a tenant's are so far apart,
 * and the session reads nothing meanwhile.  Returns how long, ns.
 */
static int64_t
spd_refusal(struct spd_tenant *t, int64_t now)
{
	int64_t wait;

	SPD_LOCKED();
	wait = vmax_t(int64_t, 0, t->refusal - now);
	t->refusal = vmin(now + wait + SPD_REFUSE_EVERY,
	    now + SPD_REFUSE_MOST);
	return (wait);
}

/* Refused: why; *wait: how long a stream's client waits to be told so, ns */
static enum spd_in
spd_enqueue(struct worker *wrk, struct req *req, struct spd_conn *conn,
    unsigned flags, struct spd_excess *e, int64_t *wait)
{
	struct spd_worker *me = spd_self();
	struct rel_node *n = SPD_NODE(req);
	struct spd_tenant *t;
	char name[TEN_NAME_MAX + 1];
	int64_t now, cpu;
	size_t l;
	int full;

	CHECK_OBJ_NOTNULL(wrk, WORKER_MAGIC);
	INIT_OBJ(n, REL_NODE_MAGIC);
	SPD_CPU(n) = 0;
	if (!METER_Cheap(me->meter) && spd_drawn(me))
		flags |= SPD_F_DRAWN;
	cpu = vmax_t(int64_t, 0, spd_lap(me, 0)) + spd_take_owed(me);
	SPD_CPU(n) = (uint32_t)vmin_t(int64_t, cpu >> 4, UINT32_MAX);
	l = spd_tenant_name(req, name);
	t = spd_tenant_find(name, l);

	now = METER_Now();
	spd_lock();
	t = spd_tenant_check(t, name, l);
	spd_sum_laps(me);
	spd_pays(me, t);
	full = spd_queue_full(t, e);
	if (spd.refuse) {
		full = full || ((spd.refuse & 1) &&
		    spd_exceeds(e, t, "requests to refuse "
		    "(see debug.sandpaper.fail)", 1, 1));
		spd.refuse >>= 1;
	}
	if (full) {
		SPD_COUNT(t, refused, 1);
		spd.vsc->refused++;
		if (wait != NULL)
			*wait = spd_refusal(t, now);
		spd_charge(t, cpu, 0, now);
		spd_unlock();
		return (SPD_IN_FULL);
	}
	spd_asks(t, now);
	SPD_FLAGS(n) = flags;
	/* From here on somebody else may run it */
	REL_Enqueue(spd.rel, t->rel, n, now);
	spd.vsc->enqueued++;
	spd.vsc->waiting = REL_Waiting(spd.rel);
	if (conn != NULL) {
		conn->state = SPD_QUEUED;
		conn->func = SPD_TASK(req)->func;
		conn->priv = req;
		conn->tenant = t;
		conn->generation = TEN_OfHost(t)->generation;
	}
	spd_unlock();
	return (SPD_IN_QUEUED);
}

/*
 * The answer when a tenant's queue is full, or did not move.  No VCL runs
 * for it, and it must not block: what the socket does not take is lost.
 */
static void
spd_refuse(struct req *req)
{
	static const char answer[] =
	    "HTTP/1.1 503 Service Unavailable\r\n"
	    "Retry-After: 1\r\n"
	    "Connection: close\r\n"
	    "Content-Length: 0\r\n"
	    "\r\n";
	ssize_t l;

	VSLbs(req->vsl, SLT_RespProtocol, TOSTRAND("HTTP/1.1"));
	VSLbs(req->vsl, SLT_RespStatus, TOSTRAND("503"));
	VSLbs(req->vsl, SLT_RespReason, TOSTRAND("Service Unavailable"));
	l = send(req->sp->fd, answer, sizeof answer - 1,
	    MSG_DONTWAIT | MSG_NOSIGNAL);
	if (l > 0)
		req->acct.resp_hdrbytes += (uint64_t)l;
	req->doclose = SC_OVERLOAD;
}

enum spd_gate
SPD_Gate(struct worker *wrk, struct req *req)
{
	struct spd_excess e;
	struct spd_conn *conn;

	conn = spd.mode == SPD_OFF ? NULL : spd_conn(req->sp);
	if (conn == NULL) {
		spd_parsed();
		return (SPD_GATE_OPEN);
	}
	if (conn->armed && req->htc->body_status != BS_NONE)
		spd_disarm(conn);	/* its bytes are no new request */
	else
		spd_conn_leave(conn);
	if (spd_enqueue(wrk, req, conn, 0, &e, NULL) == SPD_IN_QUEUED)
		return (SPD_GATE_QUEUED);
	(void)Req_LogStart(wrk, req);
	spd_log_excess(req->vsl, &e);
	spd_refuse(req);
	return (SPD_GATE_REFUSED);
}

/* A session whose stream is refused reads nothing for so long, ns, unless its
 * client is gone: then the streams that it left are refused at once */
static void
spd_stream_waits(const struct sess *sp, int64_t wait)
{
	struct pollfd pfd = { .fd = sp->fd, .events = POLLRDHUP };

	(void)poll(&pfd, 1, (int)((wait + 999999) / 1000000));
}

int
SPD_Stream(struct worker *wrk, struct req *req, enum task_prio prio)
{
	struct spd_excess e;
	int64_t wait;

	if (spd.mode == SPD_OFF)
		return (Pool_Task(wrk->pool, SPD_TASK(req), prio));
	if (prio == TASK_QUEUE_REQ && WRK_ReqPoolFail())
		return (-1);
	if (spd_enqueue(wrk, req, NULL, SPD_F_H2, &e, &wait) !=
	    SPD_IN_QUEUED) {
		spd_log_excess(req->vsl, &e);
		spd_stream_waits(req->sp, wait);
		return (-1);
	}
	spd_dispatch();
	return (0);
}

/* It waits, but its client is gone, or it has waited for too long.  What its
 * parsing took is charged. */
void
spd_take_out(struct rel_node *n, int64_t now)
{
	struct spd_tenant *t = spd_tenant_rel(n->tenant);

	SPD_LOCKED();
	REL_Cancel(spd.rel, n, now);
	spd_charge(t, (int64_t)SPD_CPU(n) << 4, 0, now);
	spd.vsc->cancelled++;
	spd.vsc->waiting = REL_Waiting(spd.rel);
}

int
SPD_Cancel(struct req *req)
{
	struct rel_node *n = SPD_NODE(req);
	int waited;

	/* Its magic is the worker's, if one has it; its state is locked */
	spd_lock();
	waited = REL_Waits(n);
	if (waited) {
		SPD_COUNT(spd_tenant_rel(n->tenant), gone, 1);
		spd_take_out(n, METER_Now());
	}
	spd_unlock();
	return (waited);
}

/*--------------------------------------------------------------------
 * A released request, or one that was woken, runs here now
 */

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
		/* It has a body: the epoll set did not tell */
		pfd.fd = req->sp->fd;
		pfd.events = 0;
		pfd.revents = 0;
		(void)poll(&pfd, 1, 0);
		gone = (pfd.revents & (POLLHUP | POLLERR)) != 0;
	}
	return (gone);
}

static int
spd_bury(struct spd_worker *me, struct req *req)
{
	struct rel_node *n = SPD_NODE(req);
	struct spd_tenant *t;
	int64_t now = METER_Now();

	spd_lock();
	if (n->state == REL_RUNNING) {
		/* Released before the reset was seen: only its parsing costs */
		t = spd_tenant_rel(n->tenant);
		SPD_COUNT(t, gone, 1);
		(void)NIC_Correct(spd.nic, SPD_FLAGS(n) >> SPD_COUNTED_SHIFT,
		    0, now);
		REL_Complete(spd.rel, n, 0, REL_SCALE_ONE, now);
		spd_charge(t, (int64_t)SPD_CPU(n) << 4, 0, now);
		spd.vsc->cancelled++;
	}
	spd_runs(me, NULL);
	spd_unlock();
	n->magic = 0;
	SES_Close(req->sp, SC_REM_CLOSE);
	req->doclose = SC_REM_CLOSE;
	return (1);
}

/* It waited for too long.  A stream's caller resets it. */
static int
spd_late(struct worker *wrk, struct req *req)
{
	struct rel_node *n = SPD_NODE(req);
	char name[TEN_NAME_MAX + 1];
	size_t l;

	n->magic = 0;
	l = spd_tenant_name(req, name);
	(void)Req_LogStart(wrk, req);
	VSLb(req->vsl, SLT_Error, "Sandpaper: limit reached: a request of "
	    "tenant %.*s waited %.1f s of at most %.1f s "
	    "(see sandpaper_queue_timeout)", (int)l, name,
	    (double)(METER_Now() - n->arrival) * 1e-9,
	    cache_param->sandpaper_queue_timeout);
	if (!(SPD_FLAGS(n) & SPD_F_H2))
		spd_refuse(req);
	return (1);
}

/* Locked.  This worker runs this request from now on */
void
spd_begin(struct spd_worker *me, struct req *req, int64_t now)
{
	struct rel_node *n = SPD_NODE(req);
	struct spd_conn *conn;

	SPD_LOCKED();
	me->began = now;
	me->late = 0;
	me->charge = n->charge;
	spd_turn_to(me, spd_tenant_rel(n->tenant), now);
	if (!(SPD_FLAGS(n) & SPD_F_GRANTED) || SPD_FLAGS(n) & SPD_F_H2)
		return;
	conn = spd_conn_fd(req->sp->fd);
	AN(conn);
	assert(conn->sp == req->sp && conn->state == SPD_QUEUED);
	conn->state = SPD_BUSY;
}

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
		return (0);			/* it met no gate */
	me = spd_self();
	if (SPD_FLAGS(n) & SPD_F_GONE)
		return (spd_bury(me, req));
	if (SPD_FLAGS(n) & SPD_F_LATE)
		return (spd_late(wrk, req));
	assert(n->state == REL_RUNNING);
	if (me->picked != n)
		me->began = METER_Now();
	me->blocked = 0;
	me->piped = me->pipe_out = me->sent = 0;
	me->piped_cpu = me->piped_net = 0;
	granted = (SPD_FLAGS(n) & SPD_F_GRANTED) != 0;
	if (granted) {
		if (me->slot < 0) {
			spd_own(me, n->slot);
			me->fresh = me->began;	/* it was woken for it */
		}
		assert(me->slot == n->slot);
		SPD_WAIT(n) = vmax_t(int64_t, 0, me->began - n->arrival);
		if (!(SPD_FLAGS(n) & SPD_F_H2)) {
			conn = spd_conn(req->sp);
			AN(conn);
		}
	}
	if (me->picked != n) {
		spd_owe(me);
		spd_lock();
		spd_begin(me, req, me->began);
		if (me->slot < 0)
			spd_retake(me);	/* from a waiting list: even above W */
		spd_unlock();
	}
	me->picked = NULL;
	SPD_FLAGS(n) &= ~SPD_F_GRANTED;
	if (granted) {
		if (spd_client_gone(req, conn))
			return (spd_bury(me, req));
		t = VTIM_real();
		spd_timestamp(req, "Enqueue",
		    vmax(req->t_prev, t - (double)SPD_WAIT(n) * 1e-9));
		spd_timestamp(req, "Release", vmax(req->t_prev, t));
	}
	spd_runs(me, n);
	if (SPD_FLAGS(n) & SPD_F_DRAWN)
		(void)spd_lap(me, 1);
	return (0);
}

/* Called with the objhead's lock: after this, the request may run elsewhere */
void
SPD_Disembark(struct req *req)
{
	struct rel_node *n = SPD_NODE(req);
	struct spd_worker *me = &spd_me;
	int64_t lap;

	if (me->magic != SPD_WORKER_MAGIC || me->node != n)
		return;				/* an ESI part, or no gate */
	lap = spd_lap(me, SPD_FLAGS(n) & SPD_F_DRAWN);
	if (lap > 0)
		SPD_CPU(n) = (uint32_t)vmin_t(int64_t, UINT32_MAX,
		    SPD_CPU(n) + (lap >> 4));
	spd_runs(me, NULL);
}

/*--------------------------------------------------------------------
 * Done: what it cost
 */

static uint32_t
spd_scale(uint32_t flags)
{

	if (!(flags & SPD_F_DRAWN) || spd.sample <= 0)
		return (REL_SCALE_ONE);
	return ((uint32_t)(REL_SCALE_ONE / spd.sample));
}

/* An ESI part's answer is none */
void
SPD_Answer(struct req *req, uint16_t status)
{
	struct rel_node *n = SPD_NODE(req);

	if (spd_me.magic == SPD_WORKER_MAGIC && spd_me.node == n &&
	    NEW_Good(status))
		SPD_FLAGS(n) |= SPD_F_GOOD;
}

void
SPD_Done(struct worker *wrk, struct req *req)
{
	struct rel_node *n = SPD_NODE(req);
	struct spd_worker *me = &spd_me;
	struct spd_tenant *t;
	int64_t now, lap, cpu, net, cost, k, v[4];
	uint64_t bytes, wire;
	int measured, drawn, dear;

	CHECK_OBJ_NOTNULL(wrk, WORKER_MAGIC);
	if (me->magic != SPD_WORKER_MAGIC || me->node == NULL ||
	    me->node != n)
		return;
	t = spd_tenant_rel(n->tenant);
	k = me->charge;
	now = METER_Now();
	drawn = (SPD_FLAGS(n) & SPD_F_DRAWN) != 0;
	dear = now - me->began > ACC_DEAR * k * spd.cores;
	lap = spd_lap(me, drawn || dear);
	measured = lap >= 0;
	bytes = SPD_FLAGS(n) & SPD_F_H2 ?
	    req->acct.resp_hdrbytes + req->acct.resp_bodybytes :
	    me->pipe_out > 0 ? me->pipe_out - me->piped : me->sent;
	wire = COST_Wire(bytes, cache_param->sandpaper_mtu,
	    cache_param->sandpaper_header);

	if (measured) {
		cpu = lap + spd.residual + spd_take_owed(me);
		if (METER_Cheap(me->meter) || drawn)
			cpu += (int64_t)SPD_CPU(n) << 4;
		if (!drawn)
			cpu -= vmin_t(int64_t, lap, me->unmeasured);
		me->unmeasured = 0;
	} else {
		cpu = atomic_load_explicit(&t->cpu_next, memory_order_relaxed);
		me->unmeasured += cpu;
	}
	net = spd_net((int64_t)wire);
	v[0] = SPD_WAIT(n);
	v[1] = cpu + me->piped_cpu;
	v[2] = net + me->piped_net;
	v[3] = k;
	spd_log(req, t, v, bytes + me->piped, measured);

	spd_lock();
	spd_sum_laps(me);
	spd.nrequests++;
	if (!(SPD_FLAGS(n) & SPD_F_SLOW))
		(void)NIC_Correct(spd.nic,
		    SPD_FLAGS(n) >> SPD_COUNTED_SHIFT, wire, now);
	cost = ACC_Settle(&t->account, cpu / spd.cores, net);
	if (t->fixed[REL_CPU] + t->fixed[REL_NET] > 0)
		cost = vmax(t->fixed[REL_CPU], t->fixed[REL_NET]);
	/* Only what a draw alone has measured stands for others */
	REL_Complete(spd.rel, n, cost, ACC_Scale(&t->account, measured &&
	    !dear ? spd_scale(SPD_FLAGS(n)) : REL_SCALE_ONE), now);
	spd_pay(t, now);
	if (measured)
		ACC_Sample(&spd.costs, &t->key, REL_CPU, cpu);
	ACC_Sample(&spd.costs, &t->key, REL_NET, (int64_t)wire);
	SPD_COUNT(t, requests, 1);
	spd_new_answer(t, (SPD_FLAGS(n) & SPD_F_GOOD) != 0, now);
	spd_estimate(t);
	SPD_COUNT(t, cpu_ns, cpu);
	SPD_COUNT(t, bytes, bytes);
	SPD_COUNT(t, wait_ns, v[0]);
	spd.vsc->completed++;
	spd.vsc->measured += (unsigned)measured;
	spd_runs(me, NULL);
	spd_unlock();
	n->magic = 0;
}

/*--------------------------------------------------------------------
 * Questions about a request
 */

const char *
SPD_ReqTenant(const struct req *req, char *buf, size_t len)
{
	const struct rel_node *n = (const void *)req->sandpaper;
	struct spd_tenant *t;

	if (n->magic != REL_NODE_MAGIC || n->tenant == NULL)
		return (NULL);
	t = spd_tenant_rel(n->tenant);
	(void)snprintf(buf, len, "%s", spd_name(t));
	return (buf);
}

double
SPD_ReqWait(const struct req *req)
{
	const struct rel_node *n = (const void *)req->sandpaper;

	if (n->magic != REL_NODE_MAGIC)
		return (0);
	return ((double)SPD_WAIT(n) * 1e-9);
}

/*--------------------------------------------------------------------
 * A backend fetch: its CPU time is its tenant's, and a tenant has so many at
 * most.  Past that it fails as if there were no thread, so that an origin
 * that is dead takes no more of them than that, and hits go on.
 *
 * A fetch counts from the moment at which the limit is tested, also while it
 * waits for a thread.  A tenant is not forgotten before its fetches end.
 *
 * busyobj's words: the tenant, or NULL: no request that met the gate; and who
 * else the fetch counts for: NULL, or (new).
 */

/* A fetch and who waits for it are two threads: a quarter is half of them */
static unsigned
spd_fetch_limit(void)
{
	unsigned u = cache_param->sandpaper_fetch_limit;

	if (u == 0)
		u = vmax(cache_param->wthread_max *
		    cache_param->wthread_pools / 4, SPD_FETCHES);
	return (u);
}

static struct spd_tenant *
spd_fetcher(const struct req *req)
{
	const struct rel_node *n = (const void *)SPD_TOPREQ(req)->sandpaper;

	if (n->magic != REL_NODE_MAGIC || n->tenant == NULL)
		return (NULL);
	return (spd_tenant_rel(n->tenant));
}

/* 1: counted.  0: its tenant is at the limit */
static int
spd_fetch_count(struct busyobj *bo)
{
	struct spd_tenant *t = spd_fetcher(bo->req), *liable = NULL;
	struct spd_excess e;
	int full = 0;

	spd_lock();
	if (t != NULL) {
		liable = spd_new_liable(t);
		full = spd.mode == SPD_ON && spd_exceeds_new(&e, t,
		    "fetches (see sandpaper_fetch_limit)", t->fetches,
		    liable->fetches, spd_fetch_limit());
	}
	if (full) {
		SPD_COUNT(t, refused, 1);
		spd.vsc->refused++;
	} else {
		spd.fetches++;
		if (t != NULL)
			t->fetches++;
		if (liable == t)
			liable = NULL;
		else
			liable->fetches++;
		bo->sandpaper[0] = (uintptr_t)t;
		bo->sandpaper[1] = (uintptr_t)liable;
	}
	spd_unlock();
	if (full)
		spd_log_excess(bo->vsl, &e);
	return (!full);
}

/* Locked.  Whose fetch it was, or NULL */
static struct spd_tenant *
spd_fetch_uncount(const struct busyobj *bo)
{
	struct spd_tenant *t = (void *)(uintptr_t)bo->sandpaper[0];
	struct spd_tenant *liable = (void *)(uintptr_t)bo->sandpaper[1];

	SPD_LOCKED();
	AN(spd.fetches);
	spd.fetches--;
	CHECK_OBJ_ORNULL(t, SPD_TENANT_MAGIC);
	if (t != NULL) {
		AN(t->fetches);
		t->fetches--;
	}
	if (liable != NULL) {
		AN(liable->fetches);
		liable->fetches--;
	}
	return (t);
}

int
SPD_FetchTask(struct pool *pp, struct busyobj *bo, struct pool_task *task,
    enum task_prio prio)
{

	if (!spd_fetch_count(bo))
		return (-1);
	if (Pool_Task(pp, task, prio) == 0)
		return (0);
	spd_lock();
	(void)spd_fetch_uncount(bo);
	spd_unlock();
	return (-1);
}

void
SPD_FetchBegin(void)
{
	struct spd_worker *me = spd_self();

	spd_unowned(me);
	(void)spd_lap(me, 1);
}

void
SPD_FetchEnd(const struct busyobj *bo)
{
	struct spd_worker *me = spd_self();
	struct spd_tenant *t;
	int64_t lap;

	lap = spd_lap(me, 1) + spd.residual;
	spd_lock();
	spd.vsc->fetches++;
	spd_sum_laps(me);
	spd.nrequests++;
	t = spd_fetch_uncount(bo);
	if (t != NULL)
		spd_charge(t, lap, 0, METER_Now());
	spd_unlock();
}

void
SPD_H2Session(int d)
{
	struct spd_worker *me = &spd_me;

	/* What frames took after the last stream is its tenant's */
	if (me->magic == SPD_WORKER_MAGIC)
		spd_owe(me);
	spd_lock();
	if (me->magic == SPD_WORKER_MAGIC)
		spd_turn_to(me, NULL, METER_Now());
	spd.h2_sessions += (unsigned)d;
	spd_unlock();
}
