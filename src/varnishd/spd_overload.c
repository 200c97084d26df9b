/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Overload control in varnishd: a request that would wait for longer than its
 * tenant's target is refused when it comes.
 *
 * The controllers are in src/overload.  This file tells them of a tenant's
 * queue, and notes what VCL and the CLI want to know.  With sandpaper=observe
 * nothing is refused, only counted.  All functions are called with spd_lock()
 * held.
 */

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "spd.h"

#define SPD_LEAST	4		/* requests that can always wait */
#define SPD_LATELY	1000000000	/* ns */

/* Return the tenant's target, ns.  0: it has none. */
int64_t
spd_target(const struct spd_tenant *t)
{

	SPD_LOCKED();
	return (t->target > 0 ? t->target : spd_set.target);
}

/* Return 1, and describe the tenant's queue, if the tenant has a target.  If it
 * has none any more, forget what was seen. */
static int
spd_queue_of(struct spd_tenant *t, int64_t now, struct ovl_queue *q)
{

	q->target = spd_target(t);
	if (q->target == 0) {
		if (t->overload.controller != 0) {
			t->overload.controller = 0;
			memset(&t->pressure, 0, sizeof t->pressure);
		}
		return (0);
	}
	q->now = now;
	q->standing = spd_set.standing;
	q->waiting = REL_TenantWaiting(t->rel);
	q->least = SPD_LEAST;
	return (1);
}

/* A request of the tenant is refused, for any reason. */
void
spd_overload_refused(struct spd_tenant *t, int64_t now)
{

	if (spd_target(t) > 0)
		OVL_Pressed(&t->pressure, now, OVL_REFUSED);
}

/*
 * A request comes that no limit holds back.  Return 1 if it must be refused,
 * and then count it and fill *e for the log.
 */
int
spd_overloaded(struct spd_tenant *t, int64_t now, struct spd_verdict *e)
{
	struct ovl_queue q;

	SPD_LOCKED();
	if (!spd_queue_of(t, now, &q))
		return (0);
	if (spd_set.mode == SPD_ON)
		q.least = vmax_t(unsigned, SPD_LEAST, (unsigned)
		    (REL_Share(spd_rel, t->rel) * spd_slots_open()));
	if (OVL_Admit(spd_set.overload, &t->overload, &q))
		return (0);
	if (spd_set.mode != SPD_ON) {
		SPD_COUNT(t, would_refuse, 1);
		return (0);
	}
	spd_overload_refused(t, now);
	SPD_REFUSED(t, target);
	t->cut = now;
	(void)spd_limit_reached(e, t, OVL_Name(spd_set.overload), q.waiting, 0);
	e->target = q.target;
	return (1);
}

/* A request of the tenant that has waited for so long, ns, is released. */
void
spd_overload_released(struct spd_tenant *t, int64_t wait, int64_t now)
{
	struct ovl_queue q;

	SPD_LOCKED();
	if (!spd_queue_of(t, now, &q))
		return;
	OVL_Released(spd_set.overload, &t->overload, &q, wait);
	OVL_Pressed(&t->pressure, now, (double)wait / (double)q.target);
}

/* Return whether requests of the tenant were refused lately, as a word.  NULL:
 * it has no target. */
const char *
spd_overload_word(const struct spd_tenant *t, int64_t now)
{

	if (spd_target(t) == 0)
		return (NULL);
	return (t->cut != 0 && now - t->cut < SPD_LATELY ?
	    "refuses" : "admits");
}
