/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Which objects may enter the cache?  The threads of fetches ask here, and the
 * tuner's thread finds the c that is best for what clients ask for
 * (admission/model.h).
 *
 * Each request for an object of the sample goes through a ring to the tuner.  It
 * runs at the lowest priority, and sleeps for NAP when the ring is empty.  At
 * the end of a window of sandpaper_admission_delta requests it chooses c.  So it
 * holds no lock that a worker may need.
 *
 * The tuner is its thread's.  `mtx` guards what it has published for the CLI and
 * the keeper, and the curves.  All else is atomic, or needs no lock.
 */

#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/resource.h>
#include <sys/syscall.h>

#include "spd.h"

#include "admission/ring.h"
#include "admission/sketch.h"
#include "admission/tuner.h"
#include "cache/cache_objhead.h"
#include "storage/storage.h"
#include "vtim.h"

#define NAP		.1		/* s */
#define RING		16384		/* requests in a nap: of the sample */
#define SHIFT		4U		/* 1 in 16 objects is in the sample */
#define OBJECTS		(1U << 18)	/* of the sample: 12 MiB, and 18 MiB
					 * for two miniatures */
#define SKETCH		(1U << 20)	/* counters of a row: 2 MiB in all */
#define BATCH		1024		/* requests in one hold of mtx */

static pthread_t spd_tuner_thread;
static struct tuner tuner;
static struct ring ring;
static struct sketch sketch;
static double memory;			/* bytes, of the machine */
static _Atomic double capacity;		/* bytes, set before the first VCL */
static _Atomic double transient = INFINITY;	/* bytes: its size */
static _Atomic double c = INFINITY;	/* bytes */
static _Atomic unsigned shift = SHIFT;	/* of the sample */
static _Atomic uint64_t count[SPD_ADMISSIONS][SPD_OCTAVES];

static pthread_mutex_t mtx = PTHREAD_MUTEX_INITIALIZER;
static struct spd_cache_stat published = { .c = INFINITY };
static struct owner_curve {
	struct curve		curve;
	uint32_t		begun;		/* OWN_Begun() */
} *curves;				/* of each owner */

/*--------------------------------------------------------------------
 * For other threads
 */

/* Return a uniform number of the object. */
uint64_t
spd_digest(const struct objcore *oc)
{
	uint64_t d;

	memcpy(&d, oc->objhead->digest, sizeof d);
	return (d);
}

/* A client asked for an object of so many bytes. */
void
spd_tuner_see(uint64_t digest, uint64_t bytes, uint32_t owner)
{
	struct ring_request r = { digest, bytes, owner };

	if (SAMPLE_Has(atomic_load_explicit(&shift, memory_order_relaxed),
	    digest, bytes))
		(void)RING_Put(&ring, &r);
}

/*
 * Return the size of the largest object that is admitted now, bytes, at most
 * SPD_SIZE_MOST.  Counts a miss of this object.  draw: a uniform number from 0
 * to 1, not 1.
 *
 * With c and f of admission/model.h the size is -c f ln (1 - draw).  So an object
 * of s bytes is admitted with probability e^(-s/(c f)), and s need not be known
 * yet.
 */
uint64_t
spd_tuner_draw(uint64_t digest, double draw)
{
	double now, most;
	unsigned f;

	f = SKETCH_Count(&sketch, digest);
	now = (double)cache_param->sandpaper_admission_c;
	if (now == 0)
		now = atomic_load_explicit(&c, memory_order_relaxed);
	most = -now * f * log1p(-draw);
	return (most < 1e18 ? vmax_t(uint64_t, ADM_SMALL, (uint64_t)most) :
	    SPD_SIZE_MOST);
}

static unsigned
octave_of(uint64_t bytes)
{
	unsigned o = bytes == 0 ? 0 : 63U - (unsigned)__builtin_clzll(bytes);

	return (vmin(o, SPD_OCTAVES - 1U));
}

/* Count an object of so many bytes. */
void
spd_admission_count(enum spd_admission a, uint64_t bytes)
{

	atomic_fetch_add_explicit(&count[a][octave_of(bytes)], 1,
	    memory_order_relaxed);
}

/* Copy the state.  Returns 0 if the tuner has the mutex, and the caller may not
 * wait for a thread of the lowest priority. */
int
spd_cache_stat(struct spd_cache_stat *st, int may_wait)
{
	unsigned a, u;

	if (may_wait)
		PTOK(pthread_mutex_lock(&mtx));
	else if (pthread_mutex_trylock(&mtx) != 0)
		return (0);
	*st = published;
	PTOK(pthread_mutex_unlock(&mtx));
	st->capacity = capacity;
	st->transit = OWN_AllInTransit(spd_owners());
	for (a = 0; a < SPD_ADMISSIONS; a++)
		for (u = 0; u < SPD_OCTAVES; u++)
			st->count[a][u] = count[a][u];
	return (1);
}

/* Return which part of an owner's requests would be hits if it had so many
 * bytes, or NAN if that is not known. */
double
spd_cache_hits(uint32_t owner, double bytes)
{
	double hits = NAN;

	PTOK(pthread_mutex_lock(&mtx));
	if (curves[owner].begun == OWN_Begun(spd_owners(), owner))
		hits = CURVE_Hits(&curves[owner].curve, bytes);
	PTOK(pthread_mutex_unlock(&mtx));
	return (hits);
}

/*--------------------------------------------------------------------
 * The thread
 */

/* Publish the results of a window, and let the curves forget. */
static void
publish(uint64_t asked, uint64_t dropped)
{
	struct spd_cache_stat *p = &published;
	uint32_t owner;

	PTOK(pthread_mutex_lock(&mtx));
	p->c = tuner.c;
	p->predicted = tuner.predicted.objects;
	p->measured = tuner.measured;
	p->measured_all = tuner.measured_all;
	p->tunes = tuner.tunes;
	p->fallbacks = tuner.fallbacks;
	p->dropped += dropped;
	for (owner = 0; owner < OWN_Room(spd_owners()); owner++)
		CURVE_End(&curves[owner].curve, (double)asked);
	PTOK(pthread_mutex_unlock(&mtx));
}

/* Choose c for the next window. */
static void
spd_tune(void)
{
	uint64_t dropped = RING_Dropped(&ring), asked = tuner.asked;

	tuner.delta = cache_param->sandpaper_admission_delta;
	tuner.bytes = cache_param->sandpaper_admission_bytes;
	TUNER_Lost(&tuner, dropped << tuner.sample->shift);
	TUNER_Tune(&tuner, capacity);
	SKETCH_Age(&sketch);
	c = tuner.c;
	shift = tuner.sample->shift;
	publish(asked, dropped);
}

/* Return the curve of an owner.  The one of an owner before it begins anew. */
static struct curve *
curve_of(uint32_t owner)
{
	struct owner_curve *oc = &curves[owner];
	uint32_t begun = OWN_Begun(spd_owners(), owner);

	if (oc->begun != begun) {
		memset(oc, 0, sizeof *oc);
		oc->begun = begun;
	}
	return (&oc->curve);
}

/* Hear of some requests.  Returns 0 if there are no more, and 1 at the end of a
 * window in *ends. */
static int
spd_hear(int *ends)
{
	struct ring_request r;
	unsigned n;

	*ends = 0;
	PTOK(pthread_mutex_lock(&mtx));
	for (n = 0; n < BATCH && !*ends && RING_Get(&ring, &r); n++)
		*ends = TUNER_Ask(&tuner, r.digest, r.bytes, capacity,
		    curve_of(r.tenant));
	PTOK(pthread_mutex_unlock(&mtx));
	return (n > 0);
}

static void * v_matchproto_(bgthread_t)
spd_tuner(struct worker *wrk, void *priv)
{
	int ends;

	(void)wrk;
	AZ(priv);
	(void)setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 19);
	while (1) {
		while (spd_hear(&ends))
			if (ends)
				spd_tune();
		VTIM_sleep(NAP);
	}
	NEEDLESS(return (NULL));
}

/* Return the size of a storage, bytes, or INFINITY if it has no limit. */
static double
size_of(const struct stevedore *stv)
{
	VCL_BYTES room = stv->var_free_space(stv);

	/* 6.0 has -1 for no limit, 7.7 a huge number */
	return (room < 0 || room > INT64_MAX / 2 ? INFINITY :
	    (double)room + (double)stv->var_used_space(stv));
}

/*
 * Learn the sizes of the storages that have an LRU list.  The first call is for
 * the first VCL: then they are open, and not in use.
 */
void
spd_capacity(void)
{
	struct stevedore *stv;
	double sum = 0;

	if (capacity > 0)
		return;
	STV_Foreach(stv) {
		if (stv->lru == NULL || stv->var_free_space == NULL ||
		    stv->var_used_space == NULL)
			continue;
		if (stv == stv_transient)
			transient = size_of(stv);
		else
			sum += size_of(stv);
	}
	capacity = fmin(sum, (double)(UINT64_MAX / 4));
}

/*
 * Return how many bytes may be in transit.  Transient has no limit by default,
 * and a file may be larger than the memory of the machine.  If Transient has a
 * limit, half of it is for other objects.
 */
uint64_t
spd_transit_limit(void)
{
	double most = fmin(capacity, memory) *
	    cache_param->sandpaper_transit / 100;

	return ((uint64_t)fmin(most, transient / 2));
}

void
spd_tuner_init(void)
{

	memory = (double)sysconf(_SC_PHYS_PAGES) *
	    (double)sysconf(_SC_PAGESIZE);
	curves = calloc(OWN_Room(spd_owners()), sizeof *curves);
	AN(curves);
	AZ(TUNER_Init(&tuner, SHIFT, OBJECTS,
	    cache_param->sandpaper_admission_delta, 1));
	tuner.frequency = 1;
	AZ(RING_Init(&ring, RING));
	AZ(SKETCH_Init(&sketch, SKETCH));
	WRK_BgThread(&spd_tuner_thread, "sandpaper-tuner", spd_tuner, NULL);
}
