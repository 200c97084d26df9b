/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Hooks of the cache: an object is admitted, or it is only in transit.
 *
 * At the answer of the backend the largest size that is admitted now is drawn
 * (spd_tuner.c).  An object that is larger goes to Transient.  It is as any other
 * object while it streams: all clients that wait for it get it from one fetch.
 * At the end of the fetch it leaves the cache, and its memory is free when its
 * last reader has it.
 *
 *  - What VCL decides counts first: pass, beresp.uncacheable and beresp.storage.
 *  - An object that replaces a stale one that the cache has is admitted, also
 *    after a 304.
 *  - If the size is not known before the body, the object begins in the cache,
 *    and leaves it at the end if it was too large.
 *  - sandpaper_transit bounds the bytes in transit.  Above it the object is
 *    passed to the client: memory for a part of it is enough.
 *
 * bo->sandpaper[2] has the flags SPD_FETCH_*.
 * bo->sandpaper[3] is the largest size that is admitted, bytes, or a SPD_SIZE_*.
 * Nothing here takes spd_lock().
 */

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "spd.h"

#include "cache/cache_objhead.h"
#include "storage/storage.h"
#include "vtim.h"

#define LINGER		10.		/* s */
#define PASS		10.		/* s: so long an object is passed, after
					 * one fetch without room in transit */
#define PASS_BUFFER	(1U << 20)	/* bytes, of an object that is passed */

/* VCL admits the object of this fetch, of any size. */
void
SPD_VclAdmits(struct busyobj *bo)
{

	CHECK_OBJ_NOTNULL(bo, BUSYOBJ_MAGIC);
	bo->sandpaper[2] |= SPD_FETCH_VCL;
}

/* Return 1 if the sizes of this answer decide. */
static int
spd_decides(const struct busyobj *bo)
{
	const struct objcore *stale = bo->stale_oc;

	return (!bo->uncacheable && bo->storage != NULL &&
	    bo->storage != stv_transient &&
	    !(bo->sandpaper[2] & (SPD_FETCH_VCL | SPD_FETCH_ALL)) &&
	    (stale == NULL || stale->stobj->stevedore == stv_transient));
}

/* Return the size of the body in the cache, bytes, or -1. */
static ssize_t
spd_length(const struct busyobj *bo)
{
	const char *filters = SPD_FILTERS(bo);

	if (bo->was_304 || bo->htc == NULL || bo->do_esi || bo->do_gzip || bo->do_gunzip ||
	    (filters != NULL && *filters != '\0'))
		return (-1);
	return (bo->htc->content_length);
}

/*
 * Prepare to pass the object to one client, through a bounded buffer.  Returns 0
 * if a client may not read it as it comes: then the fetch would wait for ever.
 * 6.0 has no such buffer.
 */
static int
spd_pass(struct busyobj *bo)
{
	struct objcore *oc = bo->fetch_objcore;

	if (bo->is_bgfetch || !bo->do_stream ||
	    bo->sandpaper[2] & SPD_FETCH_PART ||
	    SPD_PASS_BUFFER(oc->boc, PASS_BUFFER) == 0)
		return (0);
	spd_oc_pass(oc);
	bo->uncacheable = 1;
	oc->ttl = PASS;
	oc->grace = oc->keep = 0;
	return (1);
}

/* Prepare an object that is not admitted for its way through Transient. */
static void
spd_in_transit(struct busyobj *bo, uint64_t bytes)
{

	if (spd_oc_transit(bo->fetch_objcore, bytes, spd_transit_limit())) {
		bo->sandpaper[3] = SPD_SIZE_REJECTED;
		bo->storage = stv_transient;
	} else
		bo->sandpaper[3] = spd_pass(bo) ? SPD_SIZE_PASSED :
		    SPD_SIZE_MOST;
}

/* VCL has seen the headers of the answer: decide if the object is admitted. */
void
SPD_Admit(struct busyobj *bo)
{
	struct objcore *oc = bo->fetch_objcore;
	uint64_t digest, most, bytes;
	ssize_t length;

	if (cache_param->sandpaper_admission == SPD_OFF || !spd_decides(bo))
		return;
	digest = spd_digest(oc);
	most = spd_tuner_draw(digest, spd_draw(spd_self()));
	if (cache_param->sandpaper_admission != SPD_ON)
		return;
	bo->sandpaper[3] = most;
	length = spd_length(bo);
	bytes = spd_oc_size(length < 0 ? 0 : (uint64_t)length);
	if (bytes > most)
		spd_in_transit(bo, bytes);
}

/* A try of a fetch has failed: what was decided does not hold any more. */
void
SPD_Failed(struct busyobj *bo)
{

	spd_oc_leave_transit(bo->fetch_objcore);
	bo->sandpaper[2] &= ~(uint64_t)SPD_FETCH_VCL;
	bo->sandpaper[3] = SPD_SIZE_ALL;
}

static enum spd_admission
spd_answer_of(const struct busyobj *bo)
{

	switch (bo->sandpaper[3]) {
	case SPD_SIZE_REJECTED:
		return (SPD_REJECTED);
	case SPD_SIZE_LATE:
		return (SPD_LATE);
	case SPD_SIZE_PASSED:
		return (SPD_PASSED);
	default:
		return (SPD_ADMITTED);
	}
}

/* Note the size in memory of an object that is complete, and return its size
 * with its whole body.  An object that is passed keeps only its headers. */
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

/*
 * An object that was not admitted expires now, so later requests do not find it.
 * If requests are on its waiting list, it stays for LINGER: else each of them
 * would fetch it again.  Of those that have just left the list, a few may.
 */
static void
spd_leave(const struct busyobj *bo)
{
	struct objcore *oc = bo->fetch_objcore;
	vtim_real now = VTIM_real();
	double ttl = 0;

	if (!bo->do_stream || !VTAILQ_EMPTY(&oc->objhead->waitinglist))
		ttl = vmin_t(double, LINGER, oc->t_origin + oc->ttl - now);
	if (oc->flags & OC_F_BUSY) {
		/* 9.0: it begins to be found when it is finished */
		oc->ttl = (float)(now + ttl - oc->t_origin);
		oc->grace = oc->keep = 0;
	} else
		EXP_Rearm(oc, now, ttl, 0, 0);
}

/* A fetch is complete, but not said to be: the last clients wait for that. */
void
SPD_Fetched(struct busyobj *bo)
{
	uint64_t bytes = spd_measure(bo);
	enum spd_admission a;

	if (bytes > bo->sandpaper[3] && bo->sandpaper[3] >= SPD_SIZE_LEAST)
		bo->sandpaper[3] = SPD_SIZE_LATE;
	a = spd_answer_of(bo);
	if (a == SPD_ADMITTED && bo->storage != stv_transient)
		spd_enforce_limit(bo);
	if (bo->sandpaper[3] != SPD_SIZE_ALL)
		spd_admission_count(a, bytes);
	if (a == SPD_REJECTED || a == SPD_LATE)
		spd_leave(bo);
}

/* The objcore is freed. */
void
SPD_Freed(struct objcore *oc)
{

	spd_oc_free(oc);
}

/* A request has its answer: note whether it was a hit, and of how many bytes. */
void
SPD_Asked(const struct req *req)
{
	const struct objcore *oc = req->objcore;
	struct spd_worker *me = &spd_me;
	uint64_t bytes = spd_oc_bytes(oc);

	if (oc->flags & (OC_F_PRIVATE | OC_F_HFP | OC_F_FAILED) ||
	    (oc->flags & OC_F_HFM && !spd_oc_passed(oc)))
		return;
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
