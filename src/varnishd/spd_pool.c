/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * What we ask of one of Varnish's pools of threads: run a task on an idle
 * thread, give this worker a task of the pool's queues, say how it is.  Varnish
 * has these as parts of Pool_Task() and Pool_Work_Thread().
 *
 * The pool's own lock guards its fields.
 */

#include "config.h"

#include "spd.h"

/*
 * Return 1 if the pool may have an idle thread.  Varnish writes nidle and die
 * under the pool's lock, which is not held here.
 */
static int __attribute__((no_sanitize("thread")))
may_be_idle(const struct pool *pp)
{

	return (pp->nidle > 0 && !pp->die);
}

/*
 * Run the task on an idle thread of this pool.  Returns 0, or -1 if there is
 * none.  The task is copied.  pp may be NULL: no pool.
 */
int
spd_pool_run(struct pool *pp, const struct pool_task *task)
{
	struct worker *wrk;

	AN(task->func);
	if (pp == NULL || !may_be_idle(pp))
		return (-1);
	CHECK_OBJ(pp, POOL_MAGIC);
	Lck_Lock(&pp->mtx);
	wrk = pool_getidleworker(pp, TASK_QUEUE_RUSH);
	if (wrk != NULL) {
		SPD_NOT_IDLE(pp, wrk);
		AZ(SPD_TASK(wrk)->func);
		SPD_TASK(wrk)->func = task->func;
		SPD_TASK(wrk)->priv = task->priv;
	}
	Lck_Unlock(&pp->mtx);
	if (wrk == NULL)
		return (-1);
	PTOK(pthread_cond_signal(&wrk->cond));
	return (0);
}

/*
 * Remove a task from one of the pool's queues.  The pool's lock is held.
 * Varnish's herder reads the counts and the first queue without that lock.
 */
static void __attribute__((no_sanitize("thread")))
task_leaves(struct pool *pp, struct taskhead *queue, struct pool_task *tp)
{

	pp->lqueue--;
	pp->ndequeued--;
	VTAILQ_REMOVE(queue, tp, list);
}

/*
 * Store in the worker's task what it would get if it went back to its pool now.
 * Returns 1, or 0 if there is none.  As in Pool_Work_Thread(), the last idle
 * threads are for urgent tasks.
 */
int
spd_pool_take(struct worker *wrk)
{
	struct pool_task *tp = NULL;
	struct pool *pp = wrk->pool;
	unsigned q, reserve;

	CHECK_OBJ_NOTNULL(pp, POOL_MAGIC);
	AZ(SPD_TASK(wrk)->func);
	Lck_Lock(&pp->mtx);
	reserve = pool_reserve();
	for (q = 0; q < TASK_QUEUE_RESERVE; q++) {
		if (pp->nidle < reserve * q / TASK_QUEUE_RESERVE)
			break;
		tp = VTAILQ_FIRST(&pp->queues[q]);
		if (tp != NULL)
			break;
	}
	if (tp != NULL) {
		task_leaves(pp, &pp->queues[q], tp);
		SPD_TASK(wrk)->func = tp->func;
		SPD_TASK(wrk)->priv = tp->priv;
	}
	Lck_Unlock(&pp->mtx);
	return (tp != NULL);
}

/*
 * Return 1 if a task waits in the pool's queues.  Varnish writes lqueue under
 * the pool's lock, which is not held here.  The caller asks again later.
 */
int __attribute__((no_sanitize("thread")))
spd_pool_has_task(const struct pool *pp)
{

	return (pp->lqueue > 0);
}

/* Return 1 if the pool is ending.  As above, the pool's lock is not held. */
int __attribute__((no_sanitize("thread")))
spd_pool_ends(const struct pool *pp)
{

	return (pp->die);
}

/* Return 1 if debug.reqpool.fail says that this task must fail.  Pool_Task()
 * uses the same bits. */
int
spd_pool_must_fail(void)
{
	int fails;

	if (reqpoolfail == 0)
		return (0);
	fails = reqpoolfail & 1;
	reqpoolfail >>= 1;
	if (fails)
		VSL(SLT_Debug, NO_VXID, "Failing due to reqpoolfail "
		    "(next= 0x%jx)", reqpoolfail);
	return (fails);
}
