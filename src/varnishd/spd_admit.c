/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * May it enter?  The limits of a tenant: requests that wait, fetches, slow
 * readers.
 */

#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spd.h"

#define SPD_FETCHES	8U	/* a tenant may have, however few threads are */
#define SPD_WRITERS	8U	/* the same */
#define SPD_REFUSE_EVERY 5000000	/* ns, a tenant's streams */
#define SPD_REFUSE_MOST	250000000	/* ns, that a session waits for it */

/* Has a tenant as many of these as it may?  If so, *e is for the log. */
int
spd_exceeds(struct spd_excess *e, const struct spd_tenant *t,
    const char *what, unsigned value, unsigned limit)
{

	SPD_LOCKED();
	if (value < limit)
		return (0);
	e->what = what;
	e->value = value;
	e->limit = limit;
	bprintf(e->tenant, "%s", spd_name(t));
	return (1);
}

/*
 * The same, where `all` is what (new) has: all new Hosts have the limit of one
 * tenant, and one of them has half of it, so that there is some for the others.
 */
int
spd_exceeds_new(struct spd_excess *e, struct spd_tenant *t, const char *what,
    unsigned own, unsigned all, unsigned limit)
{
	const struct spd_tenant *liable = spd_new_liable(t);

	if (liable == t)
		return (spd_exceeds(e, t, what, own, limit));
	return (spd_exceeds(e, t, what, own, limit / 2 + limit % 2) ||
	    spd_exceeds(e, liable, what, all, limit));
}

/*--------------------------------------------------------------------
 * Requests
 */

#define SPD_WAITING	"waiting requests (see sandpaper_queue_limit)"

/* Requests */
unsigned
spd_queue_limit(const struct spd_tenant *t)
{

	return (t->queue_limit ? t->queue_limit :
	    cache_param->sandpaper_queue_limit);
}

/*
 * Locked.  All new Hosts have one queue limit.  Past it, a new Host may have its
 * part of that many waiting; past twice the limit, none.
 */
static int
spd_new_full(const struct spd_tenant *t, const struct spd_tenant *group,
    struct spd_excess *e)
{
	unsigned waiting = REL_TenantWaiting(group->rel);
	unsigned limit = spd_queue_limit(group);

	return (spd_exceeds(e, group, SPD_WAITING, waiting, 2 * limit) ||
	    (REL_TenantWaiting(t->rel) >= REL_GroupPart(t->rel, limit) &&
	    spd_exceeds(e, group, SPD_WAITING, waiting, limit)));
}

/*
 * By its own limit, or since too many wait in all and it has a part of them:
 * of a common buffer, each who waits can have as much as every other, and a
 * group as much as a tenant without.  And of those that were released, so many
 * may wait on: for origins, and on waiting lists.
 */
int
spd_queue_full(struct spd_tenant *t, struct spd_excess *e)
{
	const struct spd_tenant *liable = spd_new_liable(t);
	unsigned waiting = REL_TenantWaiting(t->rel);
	unsigned all = cache_param->sandpaper_queue_total;

	SPD_LOCKED();
	if (liable != t && spd_new_full(t, liable, e))
		return (1);
	if (spd_exceeds(e, t, SPD_WAITING, waiting, spd_queue_limit(t)) ||
	    spd_exceeds_new(e, t, "released requests "
	    "(see sandpaper_queue_total)",
	    REL_TenantRunning(t->rel), REL_TenantRunning(liable->rel), all))
		return (1);
	return ((waiting > 0 || liable != t) && REL_Waiting(spd.rel) >= all &&
	    spd_exceeds(e, t, "requests in the full queue "
	    "(see sandpaper_queue_total)",
	    REL_GroupWaiting(t->rel), all / REL_Backlogged(spd.rel)));
}

/*
 * Locked.  A refused stream costs its client next to nothing, and us its
 * parsing and a frame, which is nobody's share.  So a tenant's are so far apart,
 * and the session reads nothing meanwhile.  Returns how long, ns.
 */
int64_t
spd_refusal(struct spd_tenant *t, int64_t now)
{
	int64_t wait;

	SPD_LOCKED();
	wait = vmax_t(int64_t, 0, t->refusal - now);
	t->refusal = vmin(now + wait + SPD_REFUSE_EVERY,
	    now + SPD_REFUSE_MOST);
	return (wait);
}

/*--------------------------------------------------------------------
 * Fetches
 */

/* A fetch and who waits for it are two threads: a quarter is half of them */
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
 * Slow readers hold a worker each: who does not take what is sent, or does
 * not open an HTTP/2 window.  Once they have half of all threads, a tenant
 * may have an eighth.
 */

/* 1: there are as many as there may be */
int
spd_writer_begins(struct spd_tenant *t)
{
	unsigned all = cache_param->wthread_max * cache_param->wthread_pools;
	struct spd_tenant *liable;
	struct spd_excess e;
	int shed;

	spd_lock();
	liable = spd_new_liable(t);
	shed = spd.writers >= all / 2 && spd_exceeds_new(&e, t,
	    "slow readers (see thread_pool_max)", t->writers, liable->writers,
	    vmax_t(unsigned, all / 8, SPD_WRITERS));
	if (shed) {
		SPD_COUNT(t, shed, 1);
		spd.vsc->shed++;
	} else {
		t->writers++;
		spd_me.writer_of = liable != t ? liable : NULL;
		if (liable != t)
			liable->writers++;
		spd.writers++;
	}
	spd_unlock();
	if (shed)
		spd_log_excess(spd_req_of(spd_me.node)->vsl, &e);
	return (shed);
}

void
spd_writer_ends(struct spd_tenant *t)
{

	spd_lock();
	t->writers--;
	if (spd_me.writer_of != NULL)
		spd_me.writer_of->writers--;
	spd_me.writer_of = NULL;
	spd.writers--;
	spd_unlock();
}
