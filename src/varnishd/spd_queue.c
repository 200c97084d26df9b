/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The releaser in varnishd: a request waits in it, and is released for a slot.
 *
 * On the request's way there are three decisions under the lock: enqueue,
 * release and settle.  Nothing there allocates, calls the kernel or wakes a
 * thread but to run a request; the exceptions are in doc/internals/locking.md.
 */

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "spd.h"

/* ns, before a closed NIC is looked at again: late, as each look costs
 * wake-ups, and what is then sent in a burst takes fewer interrupts */
#define SPD_COALESCE	(NIC_BACKLOG / 4 * 3)

/* Refused: why; *wait: how long a stream's client waits to be told so, ns */
enum spd_in
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
	spd_note_user(t, now);
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
