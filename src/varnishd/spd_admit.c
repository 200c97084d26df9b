/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The limits of a tenant: on its requests, its fetches and its slow readers.
 *
 * These functions only say if a limit is reached.  Their callers refuse and
 * log.  All new Hosts together have the limits of one tenant.  So the tenant
 * (new) also counts what its members have.  The counts are under spd_lock().
 */

#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spd.h"

SPD_STATIC unsigned writers;		/* workers with a slow reader; locked */

#define SPD_FETCHES	8U	/* least limit, whatever the threads */
#define SPD_WRITERS	8U	/* the same, for slow readers */
#define SPD_REFUSE_EVERY 5000000	/* ns, between a tenant's refusals */
#define SPD_REFUSE_MOST	250000000	/* ns, longest wait for a refusal */

/* Fill *e for the log.  Caller holds spd_lock(). */
void
spd_verdict(struct spd_verdict *e, const struct spd_tenant *t,
    const char *what, unsigned value, unsigned limit, int64_t target)
{

	SPD_LOCKED();
	e->what = what;
	e->value = value;
	e->limit = limit;
	e->target = target;
	e->age = 0;
	bprintf(e->tenant, "%s", spd_name(t));
}

/*
 * Return 1 if a value has reached its limit, and then fill *e for the log.
 * Caller holds spd_lock().
 */
int
spd_limit_reached(struct spd_verdict *e, const struct spd_tenant *t,
    const char *what, unsigned value, unsigned limit)
{

	SPD_LOCKED();
	if (value < limit)
		return (0);
	spd_verdict(e, t, what, value, limit, 0);
	return (1);
}

/*
 * The same for a tenant that has `own`.  If the tenant is a member of (new),
 * all members together have `all`, and the limit of one tenant.  One member
 * has half of that limit, so that the others get something.
 * Caller holds spd_lock().
 */
int
spd_limit_reached_new(struct spd_verdict *e, struct spd_tenant *t,
    const char *what, unsigned own, unsigned all, unsigned limit)
{
	const struct spd_tenant *liable = spd_new_liable(t);

	if (liable == t)
		return (spd_limit_reached(e, t, what, own, limit));
	return (spd_limit_reached(e, t, what, own, limit / 2 + limit % 2) ||
	    spd_limit_reached(e, liable, what, all, limit));
}

/*--------------------------------------------------------------------
 * Requests
 */

#define SPD_WAITING	"waiting requests (see sandpaper_queue_limit)"

/* Return how many requests of the tenant wait, or would wait with `on`. */
unsigned
spd_waiting(const struct spd_tenant *t)
{

	return (REL_TenantWaiting(t->rel) + spd_dry_waiting(t));
}

/* Return how many requests of the tenant may wait */
unsigned
spd_waiting_limit(const struct spd_tenant *t)
{

	return (t->queue_limit ? t->queue_limit :
	    cache_param->sandpaper_queue_limit);
}

/*
 * Return 1 if too many requests of (new) wait for one more of its member t.
 * Up to the queue limit of (new), each may enter.  Above the limit, a member
 * may have its part of that number, by weight.  Above twice the limit, none
 * may enter.  Caller holds spd_lock().
 */
static int
spd_admit_full_new(const struct spd_tenant *t, const struct spd_tenant *group,
    struct spd_verdict *e)
{
	unsigned waiting = REL_TenantWaiting(group->rel) + spd_dry_group(t);
	unsigned limit = spd_waiting_limit(group);

	return (spd_limit_reached(e, group, SPD_WAITING, waiting, 2 * limit) ||
	    (spd_waiting(t) >= (spd_set.mode == SPD_OBSERVE ?
	    vmax(1U, (unsigned)(limit * t->dry.view.of_group)) :
	    REL_GroupPart(t->rel, limit)) &&
	    spd_limit_reached(e, group, SPD_WAITING, waiting, limit)));
}

/*
 * Return 1 if the tenant may not have one more request, and then fill *e.
 * These are the limits:
 *
 *	(new)		spd_admit_full_new(), for its members
 *	waiting		the queue limit of the tenant
 *	running		sandpaper_queue_total, by spd_limit_reached_new().
 *			Released requests may wait, too: for origins, on waiting
 *			lists
 *	all waiting	sandpaper_queue_total.  When all tenants reach it, each
 *			backlogged tenant or group may have an equal part.  A
 *			tenant without waiting requests may enter; a member of
 *			(new) may not, if (new) has its part
 *
 * Caller holds spd_lock().
 */
int
spd_admit_full(struct spd_tenant *t, struct spd_verdict *e)
{
	const struct spd_tenant *liable = spd_new_liable(t);
	unsigned waiting = spd_waiting(t);
	unsigned all = cache_param->sandpaper_queue_total;

	SPD_LOCKED();
	if (liable != t && spd_admit_full_new(t, liable, e))
		return (1);
	if (spd_limit_reached(e, t, SPD_WAITING, waiting,
	    spd_waiting_limit(t)) ||
	    spd_limit_reached_new(e, t, "released requests "
	    "(see sandpaper_queue_total)",
	    REL_TenantRunning(t->rel), REL_TenantRunning(liable->rel), all))
		return (1);
	return ((waiting > 0 || liable != t) &&
	    REL_Waiting(spd_rel) + spd_dry_all(t) >= all &&
	    spd_limit_reached(e, t, "requests in the full queue "
	    "(see sandpaper_queue_total)",
	    REL_GroupWaiting(t->rel) + spd_dry_group(t),
	    all / vmax(1U, spd_set.mode == SPD_OBSERVE ? t->dry.busy :
	    REL_Backlogged(spd_rel))));
}

/*
 * Return how long the session of a refused HTTP/2 stream must wait, ns, and
 * read nothing.  A refused stream costs its client next to nothing.  It costs
 * varnishd the parsing and a frame, which no queue holds back.  So the
 * refusals of a tenant are SPD_REFUSE_EVERY apart.  Caller holds spd_lock().
 */
int64_t
spd_refusal_delay(struct spd_tenant *t, int64_t now)
{
	int64_t wait;

	SPD_LOCKED();
	wait = vmax_t(int64_t, 0, t->next_refusal - now);
	t->next_refusal = vmin(now + wait + SPD_REFUSE_EVERY,
	    now + SPD_REFUSE_MOST);
	return (wait);
}

/*--------------------------------------------------------------------
 * Fetches
 */

/*
 * Return how many fetches a tenant may have.  By default it is a quarter of
 * all threads.  For each fetch one more thread may wait, so that is half of
 * them.
 */
unsigned
spd_fetch_limit(void)
{
	unsigned u = cache_param->sandpaper_fetch_limit;

	if (u == 0)
		u = vmax(cache_param->wthread_max *
		    cache_param->wthread_pools / 4, SPD_FETCHES);
	return (u);
}

/*--------------------------------------------------------------------
 * Slow readers.  A client that does not read, or does not open an HTTP/2
 * window, holds a worker.  When slow readers have half of all threads, a
 * tenant may have slow readers for an eighth of all threads.
 */

/*
 * Count a slow reader: the client of the request that runs here.  Return 1 if
 * the tenant is at its limit; then the reader is not counted.  Takes
 * spd_lock().
 */
int
spd_writer_begins(struct spd_tenant *t)
{
	unsigned all = cache_param->wthread_max * cache_param->wthread_pools;
	struct spd_tenant *liable;
	struct spd_verdict e;
	int shed;

	spd_lock();
	liable = spd_new_liable(t);
	shed = writers >= all / 2 && spd_limit_reached_new(&e, t,
	    "slow readers (see thread_pool_max)", t->writers, liable->writers,
	    vmax_t(unsigned, all / 8, SPD_WRITERS));
	if (shed && spd_set.mode != SPD_ON) {
		if (spd_set.mode == SPD_OBSERVE)
			SPD_COUNT(t, would_shed, 1);
		shed = 0;
	}
	if (shed)
		SPD_COUNT(t, shed, 1);
	else {
		t->writers++;
		spd_me.writer_of = liable != t ? liable : NULL;
		if (liable != t)
			liable->writers++;
		writers++;
	}
	spd_unlock();
	if (shed)
		spd_log_limit(spd_req_of(spd_me.node)->vsl, &e);
	return (shed);
}

/* Count the slow reader no longer.  Takes spd_lock(). */
void
spd_writer_ends(struct spd_tenant *t)
{

	spd_lock();
	t->writers--;
	if (spd_me.writer_of != NULL)
		spd_me.writer_of->writers--;
	spd_me.writer_of = NULL;
	writers--;
	spd_unlock();
}
