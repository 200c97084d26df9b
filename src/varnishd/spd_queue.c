/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The releaser in varnishd: a request waits there, and is released for a slot.
 *
 * A request needs three decisions under spd_lock(): enqueue and release,
 * here, and settle, in hook_request.c.  Under the lock no thread allocates,
 * calls the kernel or wakes a thread.  doc/internals/locking.md has the
 * exceptions.  The releaser spd_rel is under spd_lock(), and so is each
 * request that waits there.
 */

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "spd.h"

/* ns, until the next look at a closed net.  This is long, since each look costs
 * wake-ups, and a burst of answers takes fewer interrupts. */
#define SPD_COALESCE	(NIC_BACKLOG / 4 * 3)

/* For tests; locked */
static int frozen;			/* debug.sandpaper.freeze */
static unsigned steps;			/* releases while frozen */
static uint64_t fail_next, late_next;	/* debug.sandpaper.fail: bit 0 is for
					 * the next request */

/* For tests: return 1 if this request is to be refused.  If it is to be late,
 * it came long ago. */
static int
spd_must_fail(struct spd_conn *conn, const struct spd_tenant *t,
    struct spd_verdict *e)
{
	int fail = fail_next & 1;

	if ((fail_next | late_next) == 0)
		return (0);
	if ((late_next & 1) && conn != NULL)
		conn->came = 1;
	fail_next >>= 1;
	late_next >>= 1;
	return (fail && spd_limit_reached(e, t, "requests to refuse "
	    "(see debug.sandpaper.fail)", 1, 1));
}

/* Return how long a request has waited to be parsed, ns.  A stream of HTTP/2
 * has not: its session reads it. */
static int64_t
spd_age(struct spd_conn *conn, int64_t now)
{
	int64_t came;

	if (conn == NULL || conn->came == 0)
		return (0);
	came = conn->came;
	conn->came = 0;		/* the next one in its buffer comes now */
	return (vmax_t(int64_t, 0, now - came));
}

/* Charge a tenant for a refusal: ns of CPU, and bytes that are sent.  Caller
 * holds spd_lock(). */
static void
spd_charge_sent(struct spd_tenant *t, int64_t cpu, size_t bytes, int64_t now)
{
	int64_t wire = 0;

	if (bytes > 0) {
		wire = (int64_t)COST_Wire(bytes, cache_param->sandpaper_mtu,
		    cache_param->sandpaper_header);
		SPD_COUNT(t, bytes, bytes);
		(void)spd_link_release(wire, now);
	}
	spd_charge(t, cpu, spd_net(wire), now);
}

/*
 * Charge a tenant for a refusal that took `cpu` ns, and for the page that it
 * sends.  req: NULL for an HTTP/2 stream, which gets no page.  Caller holds
 * spd_lock().
 */
void
spd_charge_refusal(struct spd_worker *me, struct spd_tenant *t,
    const struct req *req, int64_t cpu, int64_t now)
{

	SPD_LOCKED();
	spd_refusal_of(me, t);
	spd_charge_sent(t, cpu, req == NULL || me->page == NULL ||
	    me->page->vcl ? 0 : spd_page_bytes(me, req), now);
}

/* VCL has answered a refused request: charge its tenant, which is the payer, for
 * the bytes.  Takes spd_lock(). */
void
spd_answered(struct spd_worker *me, const struct req *req)
{
	int64_t now = METER_Now();

	spd_by_vcl_ends(me);
	spd_lock();
	if (me->payer != NULL &&
	    TEN_OfData(me->payer)->generation == me->payer_generation)
		spd_charge_sent(me->payer, 0, req->acct.resp_hdrbytes +
		    req->acct.resp_bodybytes, now);
	spd_unlock();
}

/*
 * The mode is `observe`: count the request, which came at `came`, if `on` would
 * refuse it.  Caller holds spd_lock().
 */
static void
spd_dry_run(struct spd_tenant *t, int64_t came, int64_t now)
{
	int64_t most = spd_queue_timeout(t);
	struct spd_verdict e;

	came = spd_dry_look(t, came, spd_unknown_since(now));
	spd_overload_dry(t, came);
	if (spd_admit_full(t, &e))
		SPD_WOULD_REFUSE(t, full);
	else if (spd_overloaded(t, 0, came, &e))
		SPD_WOULD_REFUSE(t, target);
	else if (most > 0 && t->dry.view.wait > (double)most)
		SPD_WOULD_REFUSE(t, late);
	else
		spd_dry_add(t, came);
}

/*
 * Return 1 if the request is refused, and then count it, and fill *e for the
 * log.  conn: as for spd_enqueue().  Caller holds spd_lock().
 */
static int
spd_refused(struct spd_tenant *t, struct spd_conn *conn, int64_t now,
    struct spd_verdict *e)
{
	int fails = spd_must_fail(conn, t, e);
	int64_t age = spd_age(conn, now);

	SPD_LOCKED();
	if (!fails && spd_set.mode != SPD_ON) {
		if (spd_set.mode == SPD_OBSERVE)
			spd_dry_run(t, now - age, now);
		return (0);
	}
	if (fails || spd_admit_full(t, e))
		SPD_REFUSED(t, full);
	else if (spd_overloaded(t, age, now, e)) {
		SPD_REFUSED(t, target);
		t->cut = now;
	} else
		return (0);
	spd_overload_refused(t, now);
	return (1);
}

/* Mark a request that runs as granted to this slot, and count its bytes on net.
 * Caller holds spd_lock(). */
static void
spd_granted(struct spd_tenant *t, struct rel_node *n, int slot, int64_t now)
{

	n->slot = (uint16_t)slot;
	SPD_REQUEST(n)->flags |= SPD_F_GRANTED;
	SPD_REQUEST(n)->counted = spd_link_release(spd_wire(t), now) &
	    SPD_COUNTED_MAX;
	spd_vsc->released++;
}

/*
 * Let a request in: it waits in the releaser, or runs at once if it has a slot
 * (not -1).  Caller holds spd_lock().
 */
static enum spd_in
spd_let_in(struct spd_tenant *t, struct rel_node *n, int slot, int64_t now)
{

	SPD_LOCKED();
	spd_note_user(t, now);
	spd_vsc->enqueued++;
	if (slot >= 0) {
		REL_Run(spd_rel, t->rel, n, (unsigned)slot, now);
		spd_granted(t, n, slot, now);
		spd_vsc->exempt++;
		return (SPD_IN_GRANTED);
	}
	REL_Enqueue(spd_rel, t->rel, n, now);
	spd_price_queue(t, now);
	spd_vsc->waiting = REL_Waiting(spd_rel);
	return (SPD_IN_QUEUED);
}

/* Begin the node of a request.  Return the CPU time of its parsing, ns. */
static int64_t
spd_node_begin(struct spd_worker *me, struct rel_node *n, unsigned flags)
{
	int64_t cpu;

	INIT_OBJ(n, REL_NODE_MAGIC);
	if (!METER_Cheap(me->meter) && spd_sampled(me))
		flags |= SPD_F_SAMPLED;
	SPD_REQUEST(n)->flags = flags & 0xff;
	SPD_REQUEST(n)->counted = 0;
	cpu = vmax_t(int64_t, 0, spd_lap(me, 0)) + spd_take_owed(me);
	SPD_REQUEST(n)->cpu_16ns = (uint32_t)vmin_t(int64_t, cpu >> 4,
	    UINT32_MAX);
	return (cpu);
}

/*
 * Let a request wait in the releaser, run it at once, or refuse it.  conn: its
 * connection, or NULL for an HTTP/2 stream; flags: SPD_F_*.  If it returns
 * SPD_IN_FULL, *e has the limit, and *wait (if not NULL) how long the session
 * must wait, ns.  After SPD_IN_QUEUED the caller must not touch the request.
 * Takes spd_lock().
 */
enum spd_in
spd_enqueue(struct worker *wrk, struct req *req, struct spd_conn *conn,
    unsigned flags, struct spd_verdict *e, int64_t *wait)
{
	struct spd_worker *me = spd_self();
	struct rel_node *n = SPD_NODE(req);
	enum exempt_answer exempt;
	struct spd_tenant *t;
	char name[TEN_NAME_MAX + 1];
	int64_t now, cpu;
	enum spd_in in;
	int slot = -1;
	size_t l;

	CHECK_OBJ_NOTNULL(wrk, WORKER_MAGIC);
	cpu = spd_node_begin(me, n, flags);
	l = spd_tenant_name(req, name, &exempt);
	t = spd_tenant_find(name, l);

	now = METER_Now();
	spd_lock();
	t = spd_tenant_check(t, name, l);
	spd_sum_laps(me);
	spd_set_payer(me, t);
	if (conn != NULL) {
		conn->tenant = t;
		conn->generation = TEN_OfData(t)->generation;
	}
	if (exempt == EXEMPT_NOW)
		slot = spd_take_extra();
	spd_vsc->exempt_over += exempt != EXEMPT_NO && slot < 0;
	if (slot < 0 && spd_refused(t, conn, now, e)) {
		n->magic = 0;
		if (wait != NULL)
			*wait = spd_refusal_delay(t, now);
		spd_charge_refusal(me, t, conn == NULL ? NULL : req, cpu, now);
		spd_unlock();
		return (SPD_IN_FULL);
	}
	/* After the unlock another worker may run, end and free the request */
	if (slot >= 0)
		(void)spd_age(conn, now);	/* as spd_refused() does */
	in = spd_let_in(t, n, slot, now);
	if (conn != NULL) {
		spd_conn_to(conn, SPD_QUEUED);
		conn->func = SPD_TASK(req)->func;
		conn->priv = req;
	}
	spd_unlock();
	return (in);
}

/*
 * Release the next request for this slot.  No more slots are taken than are
 * open.  NULL: no request may go before *when, ns; INT64_MAX: that time is not
 * known.  Caller holds spd_lock().
 */
struct req *
spd_release(int64_t now, int slot, int64_t *when)
{
	struct rel_node *node;
	struct spd_tenant *t;
	int64_t opens = INT64_MAX;
	unsigned closed = 0;

	SPD_LOCKED();
	assert(!spd_slots_exceeded());
	*when = INT64_MAX;
	if (REL_Waiting(spd_rel) == 0)
		return (NULL);
	if (frozen) {		/* one at a time, one a step */
		if (steps == 0 || spd_running() + spd_lent() > 1)
			return (NULL);
	}
	if (spd_link_closed(now, &opens))
		closed = REL_MASK(REL_NET);
	/* The policy's slots are 0 to W - 1.  This one may be above: after a
	 * retake, or when W is smaller than before */
	switch (REL_Dequeue(spd_rel, now, (unsigned)slot % spd_slots(), closed,
	    &node, when)) {
	case REL_RELEASED:
		break;
	case REL_NOT_YET:
		/* Let one wake-up release several requests.  net has work for
		 * NIC_BACKLOG, so it does not become idle meanwhile */
		if (closed != 0 && opens < *when)
			*when = vmax(opens, now + SPD_COALESCE);
		return (NULL);
	default:
		return (NULL);
	}
	if (frozen)
		steps--;
	t = spd_tenant_rel(node->tenant);
	spd_granted(t, node, slot, now);
	spd_price_queue(t, now);
	if (spd_set.mode == SPD_ON && t->queue_timeout > 0 &&
	    now - node->arrival > t->queue_timeout)
		SPD_REQUEST(node)->flags |= SPD_F_LATE;	/* refused, not served */
	else
		spd_overload_released(t, now - node->arrival, now);
	spd_vsc->waiting = REL_Waiting(spd_rel);
	return (spd_req_of(node));
}

/*
 * Cancel a waiting request, since its client is gone, or since it has waited
 * for too long.  Charge what its parsing took.  Caller holds spd_lock().
 */
void
spd_take_out(struct rel_node *n, int64_t now)
{
	struct spd_tenant *t = spd_tenant_rel(n->tenant);

	SPD_LOCKED();
	REL_Cancel(spd_rel, n, now);
	spd_price_queue(t, now);
	spd_charge(t, (int64_t)SPD_REQUEST(n)->cpu_16ns << 4, 0, now);
	SPD_COUNT(t, cancelled, 1);
	spd_vsc->waiting = REL_Waiting(spd_rel);
}

/* Count a request of this tenant that waited for too long.  Caller holds
 * spd_lock(). */
void
spd_count_late(struct spd_tenant *t, int64_t now)
{

	SPD_LOCKED();
	SPD_REFUSED(t, late);
	spd_overload_refused(t, now);
}

/*
 * Return 1 if the workers that run will take the waiting requests, so that no
 * thread should be woken for them.  Sandpaper is on then, each core has a
 * running request, and no request has waited for SPD_NAP.  Another thread
 * would only take CPU time from these workers.  A
 * caller that leaves requests to them summons a deputy, if there is none.
 * Caller holds spd_lock().
 */
int
spd_enough_run(int64_t now)
{

	SPD_LOCKED();
	return (spd_set.mode == SPD_ON && spd_running() >= spd_set.cores &&
	    (REL_Waiting(spd_rel) == 0 ||
	    now - REL_Oldest(spd_rel) < SPD_NAP));
}

/*--------------------------------------------------------------------
 * For tests: debug.sandpaper.freeze, .step, .thaw and .fail.  Caller holds
 * spd_lock().
 */

/* Release nothing (1), or release again (0). */
void
spd_freeze(int on)
{

	SPD_LOCKED();
	frozen = on;
	steps = 0;
}

/* While frozen, release n requests more, one after the other. */
void
spd_step(unsigned n)
{

	SPD_LOCKED();
	steps += n;
}

int
spd_frozen(void)
{

	SPD_LOCKED();
	return (frozen);
}

/* Refuse the next requests, or make them late: bit 0 is for the first one. */
void
spd_fail(uint64_t fail, uint64_t late)
{

	SPD_LOCKED();
	fail_next = fail;
	late_next = late;
}
