/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Hooks of a fetch: the tenant of its request pays for its CPU time, and has a
 * limit of fetches.
 *
 * A fetch over the limit fails as if no thread were free.  So a dead origin
 * takes a bounded number of threads, and cache hits go on.  A tenant with a
 * fetch target has a second limit, which follows how fast its origins answer.
 * Fetches in the background meet the limits first.  A fetch counts from the test
 * of the limit until it ends, also while it waits for a thread.  A tenant's
 * record stays until its fetches end.
 *
 * Its object belongs to that tenant; to (new), if the tenant is a new Host.
 *
 * bo->sandpaper[0] is the tenant, or NULL if the request passed no gate.
 * bo->sandpaper[1] is the group (new) if the fetch counts there too, or NULL.
 * For [2] and [3] see hook_cache.c.  bo->sandpaper[4] is when the fetch began to
 * wait for a thread, ns.  The lock guards the counts.
 */

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "spd.h"

SPD_STATIC unsigned fetches;		/* waiting for a thread, or running;
					 * locked */

/* Return the number of fetches.  Caller holds spd_lock(). */
unsigned
spd_fetches(void)
{

	SPD_LOCKED();
	return (fetches);
}

/* Return the tenant of the request that fetches, or NULL. */
static struct spd_tenant *
spd_fetcher(const struct req *req)
{
	const struct rel_node *n = (const void *)SPD_TOPREQ(req)->sandpaper;

	if (n->magic != REL_NODE_MAGIC || n->tenant == NULL)
		return (NULL);
	return (spd_tenant_rel(n->tenant));
}

/* Look at what this thread fetches. */
void
spd_fetch_look(struct spd_fetch_look *l)
{
	const struct busyobj *bo = THR_GetBusyobj();
	const struct objcore *oc = bo == NULL ? NULL : bo->fetch_objcore;

	memset(l, 0, sizeof *l);
	if (oc == NULL)
		return;
	l->flags = bo->sandpaper[2];
	l->owner = spd_oc_owner(oc);
	if (oc->boc != NULL)
		l->bytes = SPD_FETCHED(oc->boc);
}

/* Return how many fetches its tenant may have before this one.  Those in the
 * background have half of the limit: their clients have an answer. */
static unsigned
spd_fetch_most(const struct busyobj *bo)
{
	unsigned limit = spd_fetch_limit();

	return (bo->is_bgfetch ? limit / 2 + limit % 2 : limit);
}

/*
 * Return 1 if the tenant may not have one more fetch, or its origins are too
 * slow for it, and then fill *e.  Otherwise count it as one that waits for an
 * answer.  Caller holds spd_lock().
 */
static int
spd_fetch_refused(struct spd_tenant *t, const struct spd_tenant *liable,
    const struct busyobj *bo, struct spd_verdict *e)
{
	unsigned waiting = t->origins.waiting;

	return (spd_limit_reached_new(e, t,
	    "fetches (see sandpaper_fetch_limit)", t->fetches - t->dry_fetches,
	    liable->fetches - liable->dry_fetches, spd_fetch_most(bo)) ||
	    (!OVL_FetchBegins(&t->origins, t->fetch_target,
	    bo->is_bgfetch != 0, METER_Now()) &&
	    spd_limit_reached(e, t, "fetches without an answer "
	    "(see sandpaper.fetch_target())", waiting, waiting)));
}

/* Count a fetch.  Returns 0, and logs, if its tenant is at the limit. */
static int
spd_fetch_count(struct busyobj *bo)
{
	struct spd_tenant *t = spd_fetcher(bo->req), *liable = NULL;
	struct spd_verdict e;
	int full = 0, passes;

	spd_lock();
	if (t != NULL) {
		liable = spd_new_liable(t);
		full = spd_fetch_refused(t, liable, bo, &e);
	}
	passes = full && spd_set.mode != SPD_ON;
	if (passes) {
		if (spd_set.mode == SPD_OBSERVE)
			SPD_WOULD_REFUSE(t, fetch);
		full = 0;
	}
	if (full) {
		SPD_REFUSED(t, fetch);
	} else {
		fetches++;
		if (t != NULL) {
			t->fetches++;
			t->dry_fetches += (unsigned)passes;
			spd_price_queue(t, METER_Now());
		}
		spd_oc_set_owner(bo->fetch_objcore,
		    liable == NULL ? OWN_OTHER : liable->owner);
		if (liable == t)
			liable = NULL;
		else {
			liable->fetches++;
			liable->dry_fetches += (unsigned)passes;
		}
		bo->sandpaper[0] = (uintptr_t)t;
		bo->sandpaper[1] = (uintptr_t)liable;
		bo->sandpaper[2] = (t != NULL && t->admit_all ?
		    SPD_FETCH_ALL : 0) | (bo->req->esi_level > 0 ?
		    SPD_FETCH_PART : 0) | (t == NULL ? 0 :
		    passes ? SPD_FETCH_DRY : SPD_FETCH_ASKS);
		bo->sandpaper[3] = SPD_SIZE_ALL;
		bo->sandpaper[4] = (uint64_t)METER_Now();
	}
	spd_unlock();
	if (full)
		spd_log_limit(bo->vsl, &e);
	return (!full);
}

/* Return 1 if the origin said that it does not serve this request: it has an
 * error, or asks for fewer requests.  The status is that of VCL by now. */
static int
spd_fetch_denied(const struct busyobj *bo)
{
	uint16_t status = http_GetStatus(bo->beresp) % 1000;

	return (status >= 500 || status == 429);
}

/* The fetch no longer waits for an answer.  Caller holds spd_lock(). */
static void
spd_fetch_answer(struct busyobj *bo, struct spd_tenant *t, int failed,
    int64_t now)
{
	int64_t took = now - (int64_t)bo->sandpaper[4];

	if (!(bo->sandpaper[2] & SPD_FETCH_ASKS))
		return;
	bo->sandpaper[2] &= ~(uint64_t)SPD_FETCH_ASKS;
	if (failed)
		OVL_FetchFailed(&t->origins, t->fetch_target, took, now);
	else
		OVL_FetchAnswered(&t->origins, t->fetch_target, took, now);
}

/* The head of the answer is there. */
void
spd_fetch_answered(struct busyobj *bo)
{
	struct spd_tenant *t = (void *)(uintptr_t)bo->sandpaper[0];
	int64_t now = METER_Now();

	if (t == NULL)
		return;
	spd_lock();
	spd_fetch_answer(bo, t, spd_fetch_denied(bo), now);
	spd_price_queue(t, now);
	spd_unlock();
}

/* Uncount a fetch.  Returns its tenant, or NULL.  Caller holds spd_lock(). */
static struct spd_tenant *
spd_fetch_uncount(const struct busyobj *bo)
{
	struct spd_tenant *t = (void *)(uintptr_t)bo->sandpaper[0];
	struct spd_tenant *liable = (void *)(uintptr_t)bo->sandpaper[1];
	unsigned passes = (bo->sandpaper[2] & SPD_FETCH_DRY) != 0;

	SPD_LOCKED();
	AN(fetches);
	fetches--;
	CHECK_OBJ_ORNULL(t, SPD_TENANT_MAGIC);
	if (t != NULL) {
		AN(t->fetches);
		t->fetches--;
		t->dry_fetches -= passes;
	}
	if (liable != NULL) {
		AN(liable->fetches);
		liable->fetches--;
		liable->dry_fetches -= passes;
	}
	return (t);
}

/* Like Pool_Task(), for a fetch.  Returns -1 if Pool_Task() fails, or if the
 * tenant is at its limit. */
int
SPD_FetchTask(struct pool *pp, struct busyobj *bo, struct pool_task *task,
    enum task_prio prio)
{
	struct spd_tenant *t;

	if (!spd_fetch_count(bo))
		return (-1);
	if (Pool_Task(pp, task, prio) == 0)
		return (0);
	spd_lock();
	t = spd_fetch_uncount(bo);
	if (t != NULL) {
		if (bo->sandpaper[2] & SPD_FETCH_ASKS)
			OVL_FetchUndone(&t->origins);
		spd_price_queue(t, METER_Now());
	}
	spd_unlock();
	return (-1);
}

/* Begin a fetch: its CPU time is measured from now on. */
void
SPD_FetchBegin(void)
{
	struct spd_worker *me = spd_self();

	spd_unowned(me);
	(void)spd_lap(me, 1);
	me->fetch_began = METER_Now();
}

/* End a fetch, and charge its CPU time and the residual to its tenant.  If no
 * head of an answer came, it has failed. */
void
SPD_FetchEnd(struct busyobj *bo)
{
	struct spd_worker *me = spd_self();
	struct spd_tenant *t;
	int64_t lap, now = METER_Now();

	lap = spd_lap(me, 1) + spd_residual();
	spd_lock();
	spd_vsc->fetches++;
	spd_stage(SPD_FETCHES, me->fetch_began - (int64_t)bo->sandpaper[4],
	    now - me->fetch_began);
	spd_sum_laps(me);
	spd_residual_count();
	t = spd_fetch_uncount(bo);
	if (t != NULL) {
		spd_fetch_answer(bo, t, 1, now);
		spd_price_queue(t, now);
		spd_charge(t, lap, 0, now);
		spd_price_fetched(t, lap);
	}
	spd_unlock();
}
