/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Hooks of HTTP/2: a stream is a request without a connection of its own.
 */

#include "config.h"

#include <poll.h>
#include <stdlib.h>

#include "spd.h"

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
