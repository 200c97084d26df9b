/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Find a thread for a granted request or for a call for a worker.
 *
 * A pool can be full while other pools have idle threads.  So an idle thread of
 * any pool may run the task.  A granted request tries its session's pool first.
 * If no thread is idle, the task does not wait in the queue of one pool:
 *  - a granted request waits in `stranded`, with its slot.  The next free
 *    worker of any pool runs it;
 *  - a call for a worker waits in the queues of all pools.  These queues also
 *    make the herders start threads.  A pool that begins later has no call: the
 *    keeper calls again.
 *
 * The lock guards `stranded`, `called` and `summoned`.
 */

#include "config.h"

#include "spd.h"

#define SPD_POOLS	64

struct spd_pool {
	_Atomic(struct pool *)	pool;		/* NULL: a free entry */
	struct pool_task	task;
	int			called;		/* locked: task is queued */
};

static struct spd_pool pools[SPD_POOLS];
static _Atomic unsigned npools;
static _Atomic unsigned turn;		/* pool to ask first */
static _Atomic int pool_begun;		/* since the keeper looked */
SPD_STATIC int summoned;		/* a worker was called and has not come
					 * yet; locked */
static VTAILQ_HEAD(, pool_task) stranded = VTAILQ_HEAD_INITIALIZER(stranded);

static void (*find_work)(struct worker *);

/*
 * Add a pool that begins (1) to the list, or remove one that ends (0).  Only
 * Varnish's herder of pools calls this, so no lock guards the list.  A call may
 * come before spd_lock_init().  A pool past SPD_POOLS is not listed.
 */
void
SPD_Pool(struct pool *pp, int begins)
{
	unsigned u, n = npools;

	for (u = 0; u < n && pools[u].pool != (begins ? NULL : pp); u++)
		continue;
	if (begins && u < SPD_POOLS) {
		pools[u].pool = pp;
		npools = vmax(n, u + 1);
		pool_begun = 1;
	} else if (!begins && u < n)
		pools[u].pool = NULL;
}

/*
 * Give the task to an idle thread, first of pool `first` (or NULL), then of any
 * pool.  Returns 0, or -1 if no thread is idle.  The task is copied.
 */
static int
spd_task_to_idle(struct pool *first, const struct pool_task *task)
{
	unsigned u, n = npools, from;
	struct pool *pp;

	if (spd_pool_run(first, task) == 0)
		return (0);
	from = turn++;
	for (u = 0; u < n; u++) {
		pp = pools[(from + u) % n].pool;
		if (pp != first && spd_pool_run(pp, task) == 0)
			return (0);
	}
	return (-1);
}

/*--------------------------------------------------------------------
 * Call a worker, to parse, to lead, or to run a stranded request
 */

/* Return 1 if a call is on its way.  Caller holds spd_lock(). */
int
spd_summoned(void)
{

	SPD_LOCKED();
	return (summoned);
}

/* Forget the call: a worker has come.  Or no call may be on its way, so that
 * the next one wakes the leader.  Caller holds spd_lock(). */
void
spd_summon_done(void)
{

	SPD_LOCKED();
	summoned = 0;
}

/*
 * End the call and look for work.  priv is the pool that had the call in its
 * queue.  NULL: an idle thread got the call.
 */
static void v_matchproto_(task_func_t)
spd_come(struct worker *wrk, void *priv)
{
	struct spd_pool *p = priv;

	spd_lock();
	summoned = 0;
	if (p != NULL)
		p->called = 0;
	spd_unlock();
	find_work(wrk);
}

/*
 * Put the call into the queues of all pools.  The pool that has a free thread
 * first answers it.
 */
static void
spd_call_all(void)
{
	unsigned u, called = 0;
	struct pool *pp;
	int call;

	spd_lock();
	spd_wake();			/* the leader is free */
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
	summoned = 0;	/* no pool yet: the keeper calls again */
	spd_unlock();
}

/* Call a worker, if no call is on its way.  Caller does not hold the lock. */
void
spd_summon(void)
{
	const struct pool_task task = { .func = spd_come };
	int summon;

	spd_lock();
	summon = !summoned;
	summoned = 1;
	spd_unlock();
	if (summon && spd_task_to_idle(NULL, &task))
		spd_call_all();
}

/*
 * If a pool has begun since the last time, call again.  The threads of all other
 * pools may be taken for long, and the new pool has not been asked.  Caller does
 * not hold the lock.
 */
void
spd_summon_new_pools(void)
{

	if (!atomic_exchange(&pool_begun, 0))
		return;
	spd_lock();
	spd_summon_done();
	spd_unlock();
	spd_summon();
}

/*--------------------------------------------------------------------
 * A granted request
 */

/*
 * Run a request that has its slot, on an idle thread or the next free worker.
 * Caller does not hold the lock, and must not use the request afterwards.
 */
void
spd_task_run(struct req *req)
{
	struct pool_task *task = SPD_TASK(req);

	if (spd_task_to_idle(req->sp->pool, task) == 0)
		return;				/* req may be freed by now */
	spd_lock();
	VTAILQ_INSERT_TAIL(&stranded, task, list);
	spd_vsc->stranded++;
	spd_unlock();
	spd_call_all();
}

/* Remove and return the first stranded task, or NULL.  Caller holds
 * spd_lock(). */
struct pool_task *
spd_stranded(void)
{
	struct pool_task *task = VTAILQ_FIRST(&stranded);

	SPD_LOCKED();
	if (task != NULL)
		VTAILQ_REMOVE(&stranded, task, list);
	return (task);
}

/* Set the function that a called worker runs: a function of a higher floor. */
void
spd_task_init(void (*work)(struct worker *))
{

	find_work = work;
}
