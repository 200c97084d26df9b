/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The state of this thread, and the counter that measures its CPU time.
 *
 * A lap is the CPU time of a thread since its meter was last read.  `spd_me`
 * is thread-local.  The keeper finds it through spd_owner() under spd_lock(),
 * and may read and write the fields that spd_watch.c uses.
 *
 * The keeper chooses the counter.  Its source is never freed, since the meter
 * of a thread may still use an older one.
 */

#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/syscall.h>

#include "spd.h"

__thread struct spd_worker spd_me;
pthread_key_t spd_key;

/* Written by the keeper, read by all threads */
static _Atomic(const struct meter_source *) source;

/* Return the source of all meters. */
const struct meter_source *
spd_source(void)
{

	return (source);
}

/*
 * Return the state of this thread.  The first call makes it.  If the keeper
 * has chosen another counter, the meter is opened again.
 */
struct spd_worker *
spd_self(void)
{

	if (spd_me.magic == SPD_WORKER_MAGIC) {
		if (spd_me.meter->src != source) {
			METER_Close(spd_me.meter);
			METER_Open(spd_me.meter, source);
		}
		return (&spd_me);
	}
	memset(&spd_me, 0, sizeof spd_me);
	spd_me.magic = SPD_WORKER_MAGIC;
	spd_me.slot = -1;
	spd_me.rnd = (uint64_t)METER_Now() * 2654435761U ^
	    (uint64_t)(uintptr_t)&spd_me;
	METER_Open(spd_me.meter, source);
	PTOK(pthread_getcpuclockid(pthread_self(), &spd_me.clock));
	spd_me.tid = (pid_t)syscall(SYS_gettid);
	PTOK(pthread_setspecific(spd_key, &spd_me));
	return (&spd_me);
}

/* Close the meter of a thread that ends: it may have a file descriptor */
void
spd_thread_ends(void *priv)
{
	struct spd_worker *me;

	CAST_OBJ_NOTNULL(me, priv, SPD_WORKER_MAGIC);
	assert(me->slot < 0);
	METER_Close(me->meter);
	PAGE_Unref(me->page);
	FINI_OBJ(me);
}

/*
 * End the lap and return its CPU time, ns.  If reading the meter needs a
 * system call and `wanted` is 0, return -1: the lap goes on.
 */
int64_t
spd_lap(struct spd_worker *me, int wanted)
{
	int64_t lap, banned;

	lap = METER_LapIf(me->meter, wanted);
	if (lap > 0) {
		banned = vmin(lap, me->banned);
		me->banned -= banned;
		lap -= banned;
		me->laps += lap;
	}
	return (lap);
}

/*
 * Draw: return a number from 0 to 1, not 1.  The generator is xorshift64*.
 * Clients do not know its state, so they cannot foresee a draw.
 */
double
spd_draw(struct spd_worker *me)
{

	me->rnd ^= me->rnd >> 12;
	me->rnd ^= me->rnd << 25;
	me->rnd ^= me->rnd >> 27;
	return ((double)((me->rnd * 2685821657736338717ULL) >> 11) * 0x1p-53);
}

/* Return 1 with the probability sandpaper_sample. */
int
spd_sampled(struct spd_worker *me)
{

	return (spd_draw(me) < spd_set.sample);
}

/*--------------------------------------------------------------------
 * The counter
 */

#define SPD_NOTE	256		/* bytes */

static char counter_note[SPD_NOTE];	/* locked */
static int logged;			/* locked */

/* Log which counter is in use, and why it is not the one in the parameter */
static void
spd_tell_counter(void)
{
	const struct meter_source *src = source;
	char note[SPD_NOTE];

	spd_lock();
	memcpy(note, counter_note, sizeof note);
	spd_unlock();
	VSL(SLT_Debug, NO_VXID, "Sandpaper: CPU time is measured by %s%s",
	    src->name, src->rseq ? ", for every request" :
	    ", for a sample of requests");
	if (note[0] != '\0')
		VSL(SLT_Notice, NO_VXID, "Sandpaper: %s", note);
}

/*
 * Log the counter and the security patches, when the first VCL is used.
 * Before that, tests expect a quiet log.
 */
void
spd_tell_start(void)
{
	int log;

	spd_lock();
	log = !logged;
	logged = 1;
	spd_unlock();
	if (!log)
		return;
	spd_tell_counter();
	/* By default vsl_mask hides Debug records, but no Notice */
	VSL(strcmp(SPD_SECURITY_PATCHES, "none") ? SLT_Debug : SLT_Notice,
	    NO_VXID, "Sandpaper: security patches: %s", SPD_SECURITY_PATCHES);
}

/*
 * Use the counter of the parameter sandpaper_counter, if that has changed.
 * SPD_Init() calls it, then only the keeper.
 */
void
spd_counter(void)
{
	static char asked[SANDPAPER_COUNTER_MAX];
	char now[SANDPAPER_COUNTER_MAX], note[SPD_NOTE] = "";
	/* A meter may still use an older source: none is ever freed */
	static struct source {
		struct meter_source	src[1];
		struct source		*older;
	} *newest;
	struct source *s;
	int log;

	memcpy(now, TRUST_ME(cache_param->sandpaper_counter.name), sizeof now);
	now[sizeof now - 1] = '\0';
	if (!strcmp(asked, now))
		return;
	memcpy(asked, now, sizeof asked);
	s = calloc(1, sizeof *s);
	AN(s);
	if (METER_Choose(s->src, now, note, sizeof note)) {
		/* Not expected: the manager's METER_Check() accepts names.
		 * The last source stays in use. */
		VSL(SLT_Error, NO_VXID, "Sandpaper: %s", note);
		free(s);
		return;
	}
	s->older = newest;
	newest = s;
	spd_lock();
	source = s->src;
	memcpy(counter_note, note, sizeof counter_note);
	log = logged;
	spd_unlock();
	if (log)
		spd_tell_counter();
}
