/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Hooks of the cache: which objects does it admit?
 *
 * SPD_Admit() runs when VCL has seen the answer of the backend.  It draws the
 * largest size that is admitted, at random (spd_tuner.c).  An object has one of
 * four outcomes:
 *
 *  - admitted.
 *  - rejected: it is in transit.  It goes through Transient.  All clients that
 *    ask for it during the fetch get it from this fetch.  When the fetch ends,
 *    the object is removed, and when its last reader is done, its memory is
 *    freed.
 *  - passed: there was no room in transit (OWN_Transit()).  One client gets the
 *    object through a small buffer.  The object becomes a hit-for-miss object.
 *    If spd_pass() cannot do that, the object is admitted instead.
 *  - late: its size was not known before the body (chunks, gzip, ESI), or its
 *    headers are large.  It was in the cache, and is removed like a rejected
 *    one.
 *
 * VCL decides first, by pass, beresp.uncacheable, beresp.storage and
 * sandpaper.admit().  If the cache has a stale version, the new one is
 * admitted.
 *
 * bo->sandpaper[2] has the flags SPD_FETCH_*.  bo->sandpaper[3] is the largest
 * size that is admitted, or SPD_SIZE_ALL.  Nothing here takes spd_lock().
 */

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "spd.h"

#include "cache/cache_objhead.h"
#include "storage/storage.h"
#include "vtim.h"

#define LINGER		10.		/* s: how long a rejected object can
					 * still be found, if clients wait */
#define HFM_TTL		10.		/* s: of the hit-for-miss object after a
					 * pass */
#define PASS_BUFFER	(128U << 10)	/* bytes: a slow client holds up to
					 * four times as many */

/* VCL admits the object of this fetch, of any size. */
void
SPD_VclAdmits(struct busyobj *bo)
{

	CHECK_OBJ_NOTNULL(bo, BUSYOBJ_MAGIC);
	bo->sandpaper[2] |= SPD_FETCH_VCL;
}

/* Return 1 if the size decides.  0: VCL or a stale version does. */
static int
spd_decides(const struct busyobj *bo)
{
	const struct objcore *stale = bo->stale_oc;

	return (!bo->uncacheable && bo->storage != NULL &&
	    bo->storage != stv_transient &&
	    !(bo->sandpaper[2] & (SPD_FETCH_VCL | SPD_FETCH_ALL)) &&
	    (stale == NULL || stale->stobj->stevedore == stv_transient));
}

/* Return the size that the body will have, bytes.  -1: it is not known, or
 * varnishd changes the body. */
static ssize_t
spd_length(const struct busyobj *bo)
{
	const char *filters = SPD_FILTERS(bo);

	if (bo->htc == NULL ||
	    bo->do_esi || bo->do_gzip || bo->do_gunzip ||
	    (filters != NULL && *filters != '\0'))
		return (-1);
	return (bo->htc->content_length);
}

/*
 * Prepare to send the object to one client through a small buffer.  Returns 0
 * if that is not possible:
 *
 *  - no client reads during the fetch: the fetch would wait for ever.
 *  - Transient has a limit: many buffers would fill it, and fetches would fail.
 *  - Varnish 6.0 has no such buffer.
 */
static int
spd_pass(struct busyobj *bo)
{
	struct objcore *oc = bo->fetch_objcore;

	if (bo->is_bgfetch || !bo->do_stream ||
	    bo->sandpaper[2] & SPD_FETCH_PART || spd_transient_is_limited() ||
	    SPD_PASS_BUFFER(oc->boc, PASS_BUFFER) == 0)
		return (0);
	spd_oc_pass(oc);
	bo->uncacheable = 1;
	oc->ttl = HFM_TTL;
	oc->grace = oc->keep = 0;
	return (1);
}

/* VCL has seen the headers of the answer: decide if the object is admitted. */
void
SPD_Admit(struct busyobj *bo)
{
	struct objcore *oc = bo->fetch_objcore;
	uint64_t bytes;
	ssize_t length;

	spd_fetch_answered(bo);
	if (cache_param->sandpaper_admission != SPD_ON || !spd_decides(bo))
		return;
	bo->sandpaper[3] = spd_tuner_draw(spd_digest(oc), spd_self());
	length = spd_length(bo);
	bytes = spd_oc_size(length < 0 ? 0 : (uint64_t)length);
	if (bytes <= bo->sandpaper[3])
		return;
	if (spd_oc_transit(oc, bytes, spd_transit_limit()))
		bo->storage = stv_transient;
	else if (!spd_pass(bo))
		bo->sandpaper[3] = SPD_SIZE_MOST;
}

/* A try of a fetch has failed: forget what was decided for it. */
void
SPD_Failed(struct busyobj *bo)
{
	struct objcore *oc = bo->fetch_objcore;

	if (spd_oc_passed(oc)) {
		bo->uncacheable = 0;
		oc->flags &= ~OC_F_HFM;
	}
	spd_oc_forget(oc);
	bo->sandpaper[2] &= ~(uint64_t)SPD_FETCH_VCL;
	bo->sandpaper[3] = SPD_SIZE_ALL;
}

/* Note the size in memory of a complete object, and return its size with its
 * body.  A hit-for-miss or hit-for-pass object keeps only its headers. */
static uint64_t
spd_measure(struct busyobj *bo)
{
	struct objcore *oc = bo->fetch_objcore;
	ssize_t headers = 0;
	uint64_t bytes;

	(void)ObjGetAttr(bo->wrk, oc, OA_HEADERS, &headers);
	bytes = spd_oc_size(SPD_FETCHED(oc->boc) + (uint64_t)headers);
	spd_oc_set_bytes(oc, oc->flags & (OC_F_HFM | OC_F_HFP) ?
	    spd_oc_size((uint64_t)headers) : bytes);
	return (bytes);
}

static enum spd_admission
spd_outcome(const struct busyobj *bo, uint64_t bytes)
{

	if (spd_oc_in_transit(bo->fetch_objcore))
		return (SPD_REJECTED);
	if (spd_oc_passed(bo->fetch_objcore))
		return (SPD_PASSED);
	return (bytes > bo->sandpaper[3] ? SPD_LATE : SPD_ADMITTED);
}

/*
 * Remove an object that was not admitted.  Its readers go on.
 *
 * It can be found for LINGER more, but not beyond its TTL, if requests are on
 * its waiting list, or if it did not stream.  Else each of these requests
 * would fetch it again.  A request that has just left the list may still do
 * that.
 */
static void
spd_leave(const struct busyobj *bo)
{
	struct objcore *oc = bo->fetch_objcore;
	vtim_real now = VTIM_real();
	double ttl;
	int lingers;

	ttl = vmin_t(double, LINGER, oc->t_origin + oc->ttl - now);
	Lck_Lock(&oc->objhead->mtx);		/* lookups read the TTL */
	lingers = !bo->do_stream || !VTAILQ_EMPTY(&oc->objhead->waitinglist);
	if (oc->flags & OC_F_BUSY) {
		/* 9.0, no streaming: requests find it after the fetch only */
		oc->ttl = (float)(now + ttl - oc->t_origin);
		oc->grace = oc->keep = 0;
	} else if (lingers)
		EXP_Rearm(oc, now, ttl, 0, 0);
	Lck_Unlock(&oc->objhead->mtx);
	if (!lingers)
		HSH_Kill(oc);
}

/* A fetch is complete.  Clients that wait for its end do not know it yet. */
void
SPD_Fetched(struct busyobj *bo)
{
	const struct objcore *oc = bo->fetch_objcore;
	enum spd_admission outcome = SPD_ADMITTED;
	uint64_t bytes;

	if (oc->flags & OC_F_PRIVATE)
		return;
	bytes = spd_measure(bo);
	if (bo->sandpaper[3] != SPD_SIZE_ALL) {
		outcome = spd_outcome(bo, bytes);
		spd_admission_count(outcome, bytes);
		if (outcome == SPD_REJECTED || outcome == SPD_LATE)
			spd_leave(bo);
	}
	if (outcome == SPD_ADMITTED && oc->stobj->stevedore != stv_transient)
		bo->sandpaper[2] |= SPD_FETCH_STORED;
}

/* The object of a fetch is finished: if it stays, its owner makes room. */
void
SPD_Stored(struct busyobj *bo)
{

	if (bo->sandpaper[2] & SPD_FETCH_STORED)
		spd_enforce_limit(bo);
}

/* The objcore is freed. */
void
SPD_Freed(struct objcore *oc)
{

	spd_oc_free(oc);
}

/*
 * A request has its answer.  Count a hit or a miss of the tenant that asks, and
 * tell the tuner.  Objects that VCL does not cache do not count.
 */
void
SPD_Asked(const struct req *req)
{
	const struct objcore *oc = req->objcore;
	struct spd_worker *me = &spd_me;
	uint64_t bytes;

	if (oc->flags & (OC_F_PRIVATE | OC_F_HFP | OC_F_FAILED) ||
	    (oc->flags & OC_F_HFM && !spd_oc_passed(oc)))
		return;
	bytes = spd_oc_bytes(oc);
	if (req->is_hit) {
		me->hits++;
		me->hit_bytes += bytes;
	} else {
		me->misses++;
		me->miss_bytes += bytes;
	}
	if (bytes > 0 && !(oc->flags & OC_F_HFM) &&
	    cache_param->sandpaper_admission != SPD_OFF)
		spd_tuner_see(spd_digest(oc), bytes, spd_oc_owner(oc));
}
