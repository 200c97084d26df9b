/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Threads: which one runs a task.
 *
 * Varnish's threads are in pools, and a pool can be full while others have
 * idle threads: sessions that keep a thread for long, such as pipes, come to
 * one pool by chance.  What Sandpaper wants to run can run in any pool.  So it
 * goes to an idle thread, of the session's pool if there is one.
 *
 * When no pool has an idle thread, nothing waits in a single pool's queue:
 *  - a granted request waits in `stranded`, with its slot.  The next worker
 *    that is free in any pool runs it;
 *  - a call for a worker waits in the queues of all pools.  That also tells
 *    the herders to make threads.
 */

#include "config.h"

#include "spd.h"

#define SPD_POOLS	64

struct spd_pool {
	_Atomic(struct pool *)	pool;		/* NULL: it ends */
	struct pool_task	task;
	int			called;		/* locked: task is queued */
};

static struct spd_pool pools[SPD_POOLS];
static _Atomic unsigned npools;
static _Atomic unsigned turn;		/* pools are asked in turn */
static VTAILQ_HEAD(, pool_task) stranded = VTAILQ_HEAD_INITIALIZER(stranded);

static void (*find_work)(struct worker *);

/* Varnish's herder of pools made this one, or ends it.  Only that thread writes
 * the list, and the first pools come before the lock is there. */
void
SPD_Pool(struct pool *pp, int begins)
{
	unsigned u, n = npools;

	for (u = 0; u < n && pools[u].pool != (begins ? NULL : pp); u++)
		continue;
	if (begins && u < SPD_POOLS) {
		pools[u].pool = pp;
		npools = vmax(n, u + 1);
	} else if (!begins && u < n)
		pools[u].pool = NULL;
}

/*
 * May it have an idle thread?  Varnish writes both under the pool's lock, and
 * WRK_TaskIdle() looks again.
 */
static int __attribute__((no_sanitize("thread")))
may_be_idle(const struct pool *pp)
{

	return (pp != NULL && pp->nidle > 0 && !pp->die);
}

/* An idle thread runs this task, whose memory is the caller's again; -1: no
 * thread is idle */
static int
spd_run_idle(struct pool *first, const struct pool_task *task)
{
	unsigned u, n = npools, from;
	struct pool *pp;

	if (may_be_idle(first) && WRK_TaskIdle(first, task) == 0)
		return (0);
	from = turn++;
	for (u = 0; u < n; u++) {
		pp = pools[(from + u) % n].pool;
		if (pp != first && may_be_idle(pp) &&
		    WRK_TaskIdle(pp, task) == 0)
			return (0);
	}
	return (-1);
}

/* Has the pool a task that waits for a thread?  Varnish writes what is read
 * here under the pool's lock; what is too late is seen at the next look. */
int __attribute__((no_sanitize("thread")))
spd_pool_waits(const struct pool *pp)
{

	return (pp->lqueue > 0);
}

/* As in spd_vital() */
int __attribute__((no_sanitize("thread")))
spd_pool_ends(const struct pool *pp)
{

	return (pp->die);
}

/*--------------------------------------------------------------------
 * A worker to parse, to lead, or to run what is stranded
 */

static void v_matchproto_(task_func_t)
spd_come(struct worker *wrk, void *priv)
{
	struct spd_pool *p = priv;

	spd_lock();
	spd.summoned = 0;
	if (p != NULL)
		p->called = 0;
	spd_unlock();
	find_work(wrk);
}

/* Whichever pool has a free thread first */
static void
spd_call_all(void)
{
	unsigned u, called = 0;
	struct pool *pp;
	int call;

	spd_lock();
	if (spd.leader)
		spd_timer(METER_Now());	/* it sleeps, and is free */
	spd_unlock();
	for (u = 0; u < npools; u++) {
		pp = pools[u].pool;
		if (pp == NULL)
			continue;
		spd_lock();
		call = !pools[u].called;
		pools[u].called = 1;
		spd_unlock();
		called++;
		if (!call)
			continue;
		pools[u].task.func = spd_come;
		pools[u].task.priv = &pools[u];
		AZ(Pool_Task(pp, &pools[u].task, TASK_QUEUE_RUSH));
	}
	if (called > 0)
		return;
	spd_lock();
	spd.summoned = 0;		/* no pool yet: the keeper tries again */
	spd_unlock();
}

void
spd_summon(void)
{
	const struct pool_task task = { .func = spd_come };
	int summon;

	spd_lock();
	summon = !spd.summoned;
	spd.summoned = 1;
	spd_unlock();
	if (summon && spd_run_idle(NULL, &task))
		spd_call_all();
}

/*--------------------------------------------------------------------
 * A granted request
 */

void
spd_run(struct req *req)
{
	struct pool_task *task = SPD_TASK(req);

	if (spd_run_idle(req->sp->pool, task) == 0)
		return;				/* it may be gone by now */
	spd_lock();
	VTAILQ_INSERT_TAIL(&stranded, task, list);
	spd.vsc->stranded++;
	spd_unlock();
	spd_call_all();
}

/* Locked.  One that no thread has taken, or NULL */
struct pool_task *
spd_stranded(void)
{
	struct pool_task *task = VTAILQ_FIRST(&stranded);

	SPD_LOCKED();
	if (task != NULL)
		VTAILQ_REMOVE(&stranded, task, list);
	return (task);
}

/* What a worker does that was summoned */
void
spd_task_init(void (*work)(struct worker *))
{

	find_work = work;
}
