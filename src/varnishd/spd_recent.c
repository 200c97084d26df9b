/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * What each tenant used in the last second, the last 10 and the last 60.
 *
 * Each second the keeper gives the tenants' counters to tenants/recent.h.  A
 * tenant gets memory for that when it has used something; a new Host gets none,
 * since many come and go.
 *
 * calloc() and free() are called without the lock, which guards all else.
 */

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "spd.h"

static struct rec_clock seconds;
static struct recent *ended;		/* of tenants that have ended */

/* Set what recent.h counts.  Caller holds spd_lock(). */
static void
recent_counters(const struct spd_tenant *t, uint64_t counter[REC__COUNTERS])
{

	counter[REC_COMPLETED] = t->completed;
	counter[REC_REFUSED_FULL] = t->refused_full;
	counter[REC_REFUSED_TARGET] = t->refused_target;
	counter[REC_REFUSED_LATE] = t->refused_late;
	counter[REC_REFUSED_FETCH] = t->refused_fetch;
	counter[REC_CPU] = (uint64_t)t->cpu_ns;
	counter[REC_NET] = (uint64_t)t->net_ns;
	counter[REC_BYTES] = t->bytes;
	memcpy(counter + REC_WAITS, t->waits, sizeof t->waits);
}

/* Has the tenant used something?  Caller holds spd_lock(). */
static int
recent_used(const struct spd_tenant *t)
{

	return (t->completed + t->refused_full + t->refused_target +
	    t->refused_late + t->refused_fetch > 0 || t->cpu_ns > 0);
}

/* Free the memory of tenants that have ended, and have some for SPD_PAUSE
 * tenants more. */
static void
recent_memory(struct recent *spare[SPD_PAUSE])
{
	struct recent *r, *next;
	unsigned u;

	spd_lock();
	r = ended;
	ended = NULL;
	spd_unlock();
	for (; r != NULL; r = next) {
		next = r->next;
		free(r);
	}
	for (u = 0; u < SPD_PAUSE; u++)
		if (spare[u] == NULL)
			spare[u] = calloc(1, sizeof *spare[u]);
}

/* Give the tenant memory, if it may have some.  What it has used in a second
 * without does not count.  Caller holds spd_lock(). */
static void
recent_begin(struct spd_tenant *t, struct recent **spare,
    const uint64_t counter[REC__COUNTERS])
{

	if (NEW_Is(&t->newhost) || *spare == NULL) {
		t->without_recent = 1;
		return;
	}
	t->recent = *spare;
	*spare = NULL;
	if (t->without_recent)
		memcpy(t->recent->counter, counter,
		    sizeof t->recent->counter);
}

/*
 * Count a second of at most SPD_PAUSE tenants, from the given one on: so many are
 * counted in one hold of the lock.  Return how many there were.  Records may move
 * between two holds: recent.h allows that one is counted twice, or not.  Without
 * memory a tenant has to wait for the next second.
 */
static unsigned
recent_some(unsigned from, struct recent *spare[SPD_PAUSE])
{
	uint64_t counter[REC__COUNTERS];
	struct ten_record *rec;
	struct spd_tenant *t;
	unsigned n;

	recent_memory(spare);
	spd_lock();
	for (n = 0; n < SPD_PAUSE; n++) {
		rec = TEN_At(spd_tenants, from + n);
		if (rec == NULL)
			break;
		t = TEN_Data(rec);
		if (t->recent == NULL && !recent_used(t))
			continue;
		recent_counters(t, counter);
		if (t->recent == NULL)
			recent_begin(t, &spare[n], counter);
		if (t->recent != NULL)
			REC_Add(t->recent, &seconds, counter);
	}
	spd_unlock();
	return (n);
}

/* A second has ended, of all tenants. */
void
spd_recent_second(int64_t now)
{
	struct recent *spare[SPD_PAUSE] = { NULL };
	unsigned n, at = 0, u;

	spd_lock();
	REC_Second(&seconds, now);
	spd_unlock();
	do {
		n = recent_some(at, spare);
		at += n;
	} while (n == SPD_PAUSE);
	for (u = 0; u < SPD_PAUSE; u++)
		free(spare[u]);
}

/* The tenant ends.  Caller holds spd_lock(). */
void
spd_recent_end(struct spd_tenant *t)
{

	SPD_LOCKED();
	if (t->recent == NULL)
		return;
	t->recent->next = ended;
	ended = t->recent;
	t->recent = NULL;
}

/* Copy how much the tenant's counters grew in the last 1, 10 or 60 seconds.
 * Return how long these are, ns.  Caller holds spd_lock(). */
int64_t
spd_recent(const struct spd_tenant *t, unsigned last,
    double grown[REC__COUNTERS])
{

	SPD_LOCKED();
	return (REC_Last(t->recent, &seconds, last, grown));
}

/* The first second begins. */
void
spd_recent_init(void)
{

	REC_Begin(&seconds, METER_Now());
}
