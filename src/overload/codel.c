/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * CoDel (RFC 8289) with its usual constants.  If each wait of 100 ms was above
 * 5 ms, requests are refused: the first at once, the next after
 * 100 ms / sqrt(refusals).  CoDel drops what leaves the queue.  Here the
 * request that comes is refused: it has spent no time in the queue.
 */

#include <math.h>

#include "controller.h"

#define CODEL_TARGET	(5 * OVL_MS)
#define CODEL_INTERVAL	(100 * OVL_MS)
#define CODEL_RECENT	16		/* intervals: after a shorter pause the
					 * refusals come as often as before */

static int64_t
codel_after(int64_t when, unsigned count)
{

	return (when + (int64_t)((double)CODEL_INTERVAL / sqrt(count)));
}

static int
codel_admit(struct ovl *o, const struct ovl_queue *q)
{
	struct ovl_codel *c = &o->codel;

	if (!c->refuses || q->now < c->next || q->waiting < q->least)
		return (1);
	c->count++;
	c->next = codel_after(c->next, c->count);
	return (0);
}

/* Begin to refuse (RFC 8289, section 5.5).  There count is 1 at the first drop,
 * here it is 0 before the first refusal. */
static void
codel_begin(struct ovl_codel *c, int64_t now)
{
	unsigned since = c->count - c->before;

	c->count = since > 1 && now - c->next < CODEL_RECENT * CODEL_INTERVAL ?
	    since - 1 : 0;
	c->before = c->count;
	c->refuses = 1;
	c->next = now;
}

static void
codel_released(struct ovl *o, const struct ovl_queue *q, int64_t wait)
{
	struct ovl_codel *c = &o->codel;

	if (wait < CODEL_TARGET || q->waiting == 0) {
		c->above = 0;
		c->refuses = 0;
		return;
	}
	if (c->above == 0)
		c->above = q->now + CODEL_INTERVAL;
	if (!c->refuses && q->now >= c->above)
		codel_begin(c, q->now);
}

const struct ovl_controller ovl_codel = {
	.name = "codel",
	.summary = "refuses ever more while all waits are above 5 ms",
	.admit = codel_admit,
	.released = codel_released,
};
