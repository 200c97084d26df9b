/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Choose what a free worker does next: run a request, parse a connection, lead,
 * be the deputy, or return to its pool.
 *
 * A worker that ends a request keeps its slot and takes the next release itself
 * (SPD_Next()).  So under load no request is handed to another thread.  Code
 * that frees a slot in another way, or enqueues outside of a worker, must call
 * spd_dispatch().  At most P workers parse.
 *
 * The lock guards `parsers`.  The other state is the thread's spd_me.
 */

#include "config.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "spd.h"

#define SPD_BATCH	16		/* requests in one hold of the lock */
#define SPD_PARSE_RUN	8		/* connections, then a release */
#define SPD_YIELD	500000		/* ns, well below a time slice */
#define SPD_SUM_TURNS	32		/* tasks between two Pool_TrySumstat()
					 * that succeed */

SPD_STATIC unsigned parsers;		/* workers that parse; locked */
static struct pace pace;		/* of refusals; locked */

/*--------------------------------------------------------------------
 * Hand releases to threads
 */

/*
 * Release requests while slots are free, and run each on another thread.  If
 * requests are left to the workers that run, call a deputy instead.
 * Caller does not hold the lock.
 */
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
		while (n < SPD_BATCH && !spd_slots_full() &&
		    !spd_enough_run(now)) {
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
		deputy = !spd_has_deputy() && REL_Waiting(spd_rel) > 0 &&
		    !spd_slots_full() && spd_enough_run(now);
		spd_unlock();
		/* A released request has its slot.  So no pool may refuse its
		 * task, and it must not wait behind tasks without a slot. */
		for (u = 0; u < n; u++)
			spd_task_run(req[u]);
	} while (n == SPD_BATCH);
	if (deputy)
		spd_summon();
}

/*--------------------------------------------------------------------
 * A worker begins a request, or ends a connection's turn
 */

/*
 * Begin this request on this worker: its tenant pays from now on.  A released
 * HTTP/1 request makes its connection BUSY.  Caller holds spd_lock().
 */
void
spd_begin(struct spd_worker *me, struct req *req, int64_t now)
{
	struct rel_node *n = SPD_NODE(req);
	struct spd_tenant *t = spd_tenant_rel(n->tenant);
	struct spd_conn *conn;

	SPD_LOCKED();
	me->began = now;
	me->unlooked = 0;
	me->charge = n->charge;
	me->charge_cores = t->estimate[REL_NET] > t->estimate[REL_CPU] ? 1 :
	    spd_set.cores;
	spd_turn_to(me, t, now);
	if ((SPD_REQUEST(n)->flags & (SPD_F_GRANTED | SPD_F_H2)) !=
	    SPD_F_GRANTED)
		return;
	conn = spd_conn_fd(req->sp->fd);
	AN(conn);
	assert(conn->sp == req->sp && conn->state == SPD_QUEUED);
	spd_conn_to(conn, SPD_BUSY);
}

/* A request is done that took `cpu` ns of CPU time.  Caller holds spd_lock(). */
void
spd_pace(int64_t cpu)
{

	SPD_LOCKED();
	PACE_Ran(&pace, cpu);
}

/*
 * End this worker's turn of parsing, and park the connection me->parks, if any.
 * If bytes came meanwhile, that connection becomes READY instead.  Caller holds
 * spd_lock().
 */
static void
spd_end_turn(struct spd_worker *me, int64_t now)
{
	struct spd_conn *c = me->parks;

	SPD_LOCKED();
	if (me->parsing) {
		me->parsing = 0;
		AN(parsers);
		parsers--;
		spd_stage(SPD_PARSES, me->parse_wait, now - me->parse_began);
		if (me->turn_refused)
			PACE_Refused(&pace);
	}
	me->parks = NULL;
	if (c != NULL && !spd_park_locked(c, now + me->parks_for, 0))
		spd_ready_push(c, now);
}

/*
 * End this worker's turn of parsing without parking.  The worker goes on with
 * the connection: it waits for the rest as stock does, or runs the request
 * without the gate.  So the slot of its last request goes back, too.  c: the
 * connection, or NULL: it has no record.
 */
void
spd_parsed(struct spd_conn *c)
{
	struct spd_worker *me = &spd_me;
	int waiting = 0, ready;

	if (c != NULL)
		c->came = 0;	/* what comes later is not late */
	if (me->magic != SPD_WORKER_MAGIC || (!me->parsing && me->slot < 0))
		return;
	AZ(me->parks);
	spd_lock();
	spd_end_turn(me, METER_Now());
	if (me->slot >= 0 && me->node == NULL) {
		spd_give_mine(me);
		waiting = REL_Waiting(spd_rel) > 0;
	}
	ready = spd_may_parse();
	spd_unlock();
	if (waiting)
		spd_dispatch();
	if (ready)
		spd_summon();
}

/*--------------------------------------------------------------------
 * What a free worker does next
 */

enum spd_next {
	SPD_RUN,		/* run wrk->task */
	SPD_IDLE,		/* return to the pool */
	SPD_SLEEP,		/* be the leader */
	SPD_DEPUTISE		/* be the deputy */
};

/*
 * Return 1 if a worker without a slot must not take a request.  Either requests
 * are left to the workers that run, or all slots are taken.  Caller holds
 * spd_lock().
 */
static int
spd_crowded(int64_t now)
{

	return (spd_enough_run(now) || spd_slots_full());
}

/*
 * Choose for a worker that has nothing to do: idle, lead, or be the deputy.
 * Caller holds spd_lock().
 */
static enum spd_next
spd_rest(struct spd_worker *me, int64_t now)
{

	SPD_LOCKED();
	me->parsed = 0;
	spd_turn_to(me, NULL, now);
	if (spd_set.mode == SPD_OFF)
		return (SPD_IDLE);
	if (spd_parse_later(now))
		spd_timer(now + SPD_NAP);
	if (spd_crowded(now))
		return (spd_has_deputy() ? SPD_IDLE : SPD_DEPUTISE);
	if (!spd_has_leader())
		return (SPD_SLEEP);
	/* Requests were released during this worker's nap, so a deputy will be
	 * needed again soon. */
	return (me->napped && !spd_has_deputy() &&
	    me->nap_released < spd_vsc->released ? SPD_DEPUTISE : SPD_IDLE);
}

/*
 * Choose the worker's next task and set wrk->task, in this order: a stranded
 * request, a connection to parse, a release for the worker's slot.  tried: 1:
 * nothing can be released now.  The return value says whether there is a task.
 * Caller holds spd_lock().
 */
static enum spd_next
spd_pick(struct worker *wrk, struct spd_worker *me, int64_t now, int tried)
{
	struct pool_task *task;
	struct spd_conn *c;
	struct req *req;
	int64_t when = 0;		/* not 0: nothing could be released */
	int slot, spent = PACE_Spent(&pace, now);
	int run_first = !tried && spent && REL_Waiting(spd_rel) > 0;

	SPD_LOCKED();
	task = spd_stranded();
	if (task != NULL) {
		if (me->slot >= 0)
			spd_give_mine(me);	/* the task has a slot */
		spd_turn_to(me, NULL, now);
		SPD_TASK(wrk)->func = task->func;
		SPD_TASK(wrk)->priv = task->priv;
		me->parsed = 0;
		return (SPD_RUN);
	}
	if (me->slot >= 0 && (spd_slot_revoked(me) || spd_slots_exceeded()))
		spd_give_mine(me);	/* the keeper took the slot away, or
					 * fewer slots are open now */
	if (me->slot < 0 && !me->unlooked && spd_crowded(now))
		return (spd_rest(me, now));
	if (parsers < spd_set.parsers && me->parsed < SPD_PARSE_RUN &&
	    !run_first && (c = spd_ready_pop(now, spent)) != NULL) {
		parsers++;
		me->parsing = 1;
		me->turn_refused = 0;
		me->parsed++;
		me->parse_began = now;
		me->parse_wait = now - c->came;
		spd_turn_to(me, c->tenant, now);
		SPD_TASK(wrk)->func = c->func;
		SPD_TASK(wrk)->priv = c->priv;
		return (SPD_RUN);
	}
	if (me->slot < 0 && !spd_slots_full() &&
	    REL_Waiting(spd_rel) > 0 && (slot = spd_take()) >= 0)
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
	if ((run_first ? when != 0 : me->parsed > 0) && spd_may_parse()) {
		me->parsed = 0;
		return (spd_pick(wrk, me, now, 1));
	}
	return (spd_rest(me, now));
}

/*
 * Give back all that this worker holds: its turn, its slot.  Then let other
 * workers run requests and watch the epoll set.  Caller does not hold the lock.
 */
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
	summon = spd_unwatched() && spd_set.mode != SPD_OFF;
	waiting = REL_Waiting(spd_rel) > 0;
	spd_unlock();
	if (waiting)
		spd_dispatch();
	if (summon)
		spd_summon();
}

/*
 * Yield the core if this worker has run for SPD_YIELD since it last woke up or
 * yielded.  Do so only while more slots are taken than there are cores.
 * Returns the time, ns.
 *
 * Under load a core has several runnable workers.  If the kernel preempts a
 * worker within a request, that request waits for the time slices of the other
 * workers.  Here the worker has no request that could wait.
 */
static int64_t
spd_yield(struct spd_worker *me)
{
	int64_t now = METER_Now();

	if (me->slot < 0 || spd_running() <= spd_set.cores ||
	    now - me->slice_start < SPD_YIELD)
		return (now);
	spd_lock();
	spd_end_turn(me, now);
	spd_unlock();
	(void)sched_yield();
	me->slice_start = METER_Now();
	return (me->slice_start);
}

/*
 * Take a task from the queues of this worker's pool, as the pool would give it.
 * Returns 1 if there was one.  The pool keeps its last idle threads for urgent
 * tasks.  So the pool may not give a less urgent task to this worker.
 *
 * The worker must not go back to the pool for this task.  A call for a leader
 * could then take the idle thread that the pool requires for the task.
 */
static int
spd_vital(struct worker *wrk)
{

	return (spd_pool_has_task(wrk->pool) && spd_pool_take(wrk));
}

/*
 * End the worker's last task.  Returns 1 if that task has set another one: an
 * HTTP/2 session, or a task of a debugging transport.
 */
static int
spd_end_task(struct worker *wrk, struct spd_worker *me)
{

	spd_runs(me, NULL);
	me->picked = NULL;
	me->napped = 0;
	wrk->stats->summs++;
	spd_owe(me);
	if (SPD_TASK(wrk)->func != NULL) {
		if (me->conn != NULL)
			spd_disarm(me->conn);
		return (1);
	}
	me->conn = NULL;
	/* As the pool does between two tasks */
	if (WS_Overflowed(wrk->aws))
		wrk->stats->ws_thread_overflow++;
	WS_Rollback(wrk->aws, 0);
	wrk->seen_methods = 0;
	return (0);
}

/*
 * Prepare the worker for its task: draw whether its turn is measured.  Then
 * dispatch, if `waiting`, and call another worker, if `lead`.
 */
static void
spd_goes(struct spd_worker *me, int waiting, int lead)
{

	if (me->parsing && !METER_Cheap(me->meter) && spd_sampled(me)) {
		(void)spd_lap(me, 1);
		me->turn_drawn = 1;
	}
	if (waiting)
		spd_dispatch();
	if (lead)
		spd_summon();
}

/*
 * Find the next task of a free worker and set wrk->task, or return without a
 * task.  The worker may lead or be the deputy meanwhile.
 *
 * This function does not test spd_set.live.  A request may pass the gate after
 * the keeper cleared it.  Only a called worker would then find the request.
 */
void
spd_find_work(struct worker *wrk)
{
	struct spd_worker *me;
	enum spd_next next;
	int64_t now;
	int waiting, crowded, lead, looked = 0;

	CHECK_OBJ_NOTNULL(wrk, WORKER_MAGIC);
	me = spd_self();
	if (spd_end_task(wrk, me)) {
		spd_leave(me);
		return;
	}
	now = spd_yield(me);
	if (++me->turns >= SPD_SUM_TURNS && Pool_TrySumstat(wrk))
		me->turns = 0;
	while (1) {
		if (spd_pool_ends(wrk->pool) || spd_vital(wrk)) {
			spd_leave(me);
			return;
		}
		if (!looked && now - spd_harvested() > SPD_HARVEST) {
			looked = 1;
			spd_look_now(me, now);
		}
		spd_lock();
		spd_end_turn(me, now);
		next = spd_pick(wrk, me, now, 0);
		waiting = REL_Waiting(spd_rel) > 0;
		crowded = spd_crowded(now);
		lead = crowded ? !spd_has_deputy() :
		    !spd_has_leader() || (!me->parsing && spd_may_parse());
		if (next == SPD_SLEEP && !looked) {
			looked = 1;
			spd_unlock();
			spd_look_now(me, now);
		} else if (next == SPD_SLEEP) {
			spd_sleep(wrk);		/* unlocks */
			spd_unowned(me);
			looked = 1;
			now = me->slice_start;
		} else if (next == SPD_DEPUTISE) {
			spd_nap(wrk, me, now);	/* unlocks */
			looked = !me->unlooked;
			now = me->slice_start;
		} else
			break;
	}
	spd_unlock();
	if (next == SPD_RUN)
		spd_goes(me, waiting && !crowded, lead);
	else
		me->unlooked = 0;
}

/* Find the next task, if Sandpaper is live or this worker holds anything. */
void
SPD_Next(struct worker *wrk)
{

	if (spd_set.live || (spd_me.magic == SPD_WORKER_MAGIC &&
	    (spd_me.slot >= 0 || spd_me.parsing || spd_me.parks != NULL)))
		spd_find_work(wrk);
}
