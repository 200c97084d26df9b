/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Overload control in varnishd: a request is refused when it comes, if its wait
 * would be too long for its tenant's target.
 *
 * The controllers are in src/overload.  This file describes a tenant's queue to
 * them, and keeps the values that VCL and the CLI show.  With sandpaper=observe
 * they get the queue of the dry run.  All functions are called with spd_lock()
 * held.
 */

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "spd.h"

#define SPD_LEAST	4		/* requests that can always wait */
#define SPD_LATELY	1000000000	/* ns */
#define SPD_REPLAYED	32U		/* releases */

/* Return 1, and describe the tenant's queue, if the tenant has a target.  If it
 * has none, forget what was seen. */
static int
spd_queue_of(struct spd_tenant *t, int64_t now, struct ovl_queue *q)
{

	memset(q, 0, sizeof *q);
	q->target = spd_target(t);
	if (q->target == 0) {
		if (t->pressure.last != 0) {
			t->overload.controller = 0;
			memset(&t->pressure, 0, sizeof t->pressure);
		}
		return (0);
	}
	q->now = now;
	q->standing = spd_set.standing;
	q->waiting = spd_waiting(t);
	return (1);
}

/* Return how many requests of the tenant can always wait: its share of the open
 * slots, or those that it would have. */
static unsigned
spd_least(const struct spd_tenant *t)
{
	double part = spd_set.mode == SPD_ON ?
	    REL_Share(spd_rel, t->rel) * spd_slots_open() : t->dry.view.slots;

	return (vmax_t(unsigned, SPD_LEAST, (unsigned)part));
}

/* Note a refusal, of any cause, for the tenant's pressure and quality. */
void
spd_overload_refused(struct spd_tenant *t, int64_t now)
{

	if (spd_target(t) > 0)
		OVL_Pressed(&t->pressure, now, OVL_REFUSED);
}

/*
 * A request is parsed `age` ns after it came, and the limits of spd_admit.c
 * allow it.  Return 1 if the controller refuses it, and then fill *e for the
 * log.
 */
int
spd_overloaded(struct spd_tenant *t, int64_t age, int64_t now,
    struct spd_verdict *e)
{
	struct ovl_queue q;

	if (!spd_queue_of(t, now, &q))
		return (0);
	q.least = spd_least(t);
	q.age = age;
	if (OVL_Admit(spd_set.overload, &t->overload, &q))
		return (0);
	spd_verdict(e, t, OVL_Name(spd_set.overload), q.waiting, 0, q.target);
	if (OVL_Late(spd_set.overload, q.target, age))
		e->age = age;
	return (1);
}

/*
 * The mode is `observe`: tell the controller of the requests that `on` would
 * have released before the tenant's request that came at `came`.  Of many only
 * the last ones count: no controller remembers more.
 */
void
spd_overload_dry(struct spd_tenant *t, int64_t came)
{
	unsigned before = t->dry.before;
	double each = t->dry.each;
	struct ovl_queue q;
	unsigned left = spd_dry_waiting(t), n, u;

	n = before > left ? before - left : 0;
	if (before == 0 || !spd_queue_of(t, came, &q)) {
		t->dry.replayed = came;		/* its queue is empty */
		return;
	}
	for (u = n - vmin(n, SPD_REPLAYED); u < n; u++) {
		q.now = vmin(came, t->dry.replayed +
		    (int64_t)((u + 1) * each));
		q.waiting = before - 1 - u;
		OVL_Released(spd_set.overload, &t->overload, &q,
		    (int64_t)(before * each));
	}
	t->dry.replayed = vmin(came, t->dry.replayed + (int64_t)(n * each));
}

/* A request of the tenant is released after `wait` ns. */
void
spd_overload_released(struct spd_tenant *t, int64_t wait, int64_t now)
{
	struct ovl_queue q;

	if (!spd_queue_of(t, now, &q))
		return;
	if (spd_set.mode != SPD_OBSERVE)	/* else: spd_overload_dry() */
		OVL_Released(spd_set.overload, &t->overload, &q, wait);
	OVL_Pressed(&t->pressure, now, (double)wait / (double)q.target);
}

/* Return "refuses" if the controller refused a request in the last second, else
 * "admits".  NULL: the tenant has no target. */
const char *
spd_overload_word(const struct spd_tenant *t, int64_t now)
{

	if (spd_target(t) == 0)
		return (NULL);
	return (t->cut != 0 && now - t->cut < SPD_LATELY ?
	    "refuses" : "admits");
}
