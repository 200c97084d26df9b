/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Hooks of HTTP/2: a stream is a request without a connection of its own.
 *
 * The session's thread parses and enqueues its streams.  It holds no slot and
 * runs no stream.  The lock guards the releaser and h2_sessions.
 */

#include "config.h"

#include <poll.h>
#include <stdlib.h>

#include "spd.h"

static unsigned h2_sessions;		/* threads of HTTP/2 sessions; locked */

/* Return the number of HTTP/2 sessions.  Caller holds spd_lock(). */
unsigned
spd_h2_sessions(void)
{

	SPD_LOCKED();
	return (h2_sessions);
}

/*
 * Let the session's thread wait for `wait` ns after it refused a stream.  The
 * session reads nothing meanwhile.  If the client has closed the connection,
 * the thread does not wait.
 */
static void
spd_delay_session(const struct sess *sp, int64_t wait)
{
	struct pollfd pfd = { .fd = sp->fd, .events = POLLRDHUP };

	(void)poll(&pfd, 1, (int)((wait + 999999) / 1000000));
}

/*
 * Put a stream's request into its tenant's queue.  Returns 0, or another value
 * if the caller must refuse the stream.  If Sandpaper is off, the stream
 * becomes a pool task as in stock.
 */
int
SPD_Stream(struct worker *wrk, struct req *req, enum task_prio prio)
{
	struct spd_verdict e;
	int64_t wait;

	if (spd_set.mode == SPD_OFF)
		return (Pool_Task(wrk->pool, SPD_TASK(req), prio));
	if (prio == TASK_QUEUE_REQ && spd_pool_must_fail())
		return (-1);
	switch (spd_enqueue(wrk, req, NULL, SPD_F_H2, &e, &wait)) {
	case SPD_IN_GRANTED:
		spd_task_run(req);
		return (0);
	case SPD_IN_QUEUED:
		spd_dispatch();
		return (0);
	default:
		spd_log_limit(req->vsl, &e);
		spd_delay_session(req->sp, wait);
		return (-1);
	}
}

/*
 * Take the request of a reset stream out of the queue.  Returns 1 if the
 * request waited: the caller then owns it. 0: a worker has the request, or
 * will have it.
 */
int
SPD_Cancel(struct req *req)
{
	struct rel_node *n = SPD_NODE(req);
	int waited;

	/* A worker may write the node's magic without the lock.  The state is
	 * written under the lock only, so only the state is read here. */
	spd_lock();
	waited = REL_IsBacklogged(n);
	if (waited)
		spd_take_out(n, METER_Now());
	spd_unlock();
	return (waited);
}

/* Count a session's thread that begins (1) or ends (-1). */
void
SPD_H2Session(int d)
{
	struct spd_worker *me = &spd_me;

	/* The last stream's tenant pays for the frames after that stream. */
	if (me->magic == SPD_WORKER_MAGIC)
		spd_owe(me);
	spd_lock();
	if (me->magic == SPD_WORKER_MAGIC)
		spd_turn_to(me, NULL, METER_Now());
	h2_sessions += (unsigned)d;
	spd_unlock();
}
