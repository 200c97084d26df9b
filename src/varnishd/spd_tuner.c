/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Which objects may enter the cache?  A fetch draws the largest size that is
 * admitted (admission/model.h).  The tuner's thread finds the c that is best
 * for what clients ask for.
 *
 * A request for an object of the sample goes through a ring to this thread.
 * The thread runs at the lowest priority.  When the ring is empty, it sleeps
 * for NAP. At the end of a window it chooses c (admission/tuner.h).
 *
 * Only this thread uses `tuner`.  `mtx` guards `published` and `curves`, which
 * the CLI and the keeper read.  A worker never takes it.  All else is atomic,
 * or is set before there are other threads.
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
#include "tenants/siphash.h"
#include "vrnd.h"
#include "vtim.h"

#define NAP		.1		/* s */
#define RING		16384		/* requests for objects of the sample,
					 * in one NAP */
#define SHIFT		4U		/* one of 16 objects is in the sample */
#define OBJECTS		(1U << 18)	/* of the sample, and of each shadow */
#define SKETCH		(1U << 20)	/* counters of a row: 2 MiB in all */
#define NO_LIMIT	((VCL_BYTES)1e14)	/* bytes: a storage without
						 * limit has more free, or -1
						 * in 6.0 */
#define BATCH		64		/* requests, or curves, while `mtx` is
					 * held once */

static pthread_t spd_tuner_thread;
static struct tuner tuner;
static struct ring ring;
static struct sketch sketch;
static uint8_t key[16];			/* of spd_digest() */
static double ram;			/* bytes, of the machine */
static _Atomic double capacity;		/* bytes, set before the first VCL */
static _Atomic double transient = INFINITY;	/* bytes: its size */
static _Atomic double c = INFINITY;	/* bytes */
static _Atomic unsigned shift = SHIFT;	/* of the sample */
static _Atomic uint64_t count[SPD_ADMISSIONS][SPD_OCTAVES];

static pthread_mutex_t mtx = PTHREAD_MUTEX_INITIALIZER;
static struct spd_cache_stat published;
static struct owner_curve {
	struct curve		curve;
	uint32_t		begun;		/* OWN_Begun() */
} *curves;				/* of each owner */

/*--------------------------------------------------------------------
 * For other threads
 */

/* Return a uniform number of the object.  Clients cannot foresee it.  So they
 * cannot choose which of their objects are in the sample. */
uint64_t
spd_digest(const struct objcore *oc)
{

	return (siphash(key, oc->objhead->digest, sizeof(uint64_t)));
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

/* Return the c that admission uses, bytes, or INFINITY. */
static double
c_now(void)
{
	double fixed = (double)cache_param->sandpaper_admission_c;

	return (fixed > 0 ? fixed :
	    atomic_load_explicit(&c, memory_order_relaxed));
}

/* An object is a miss.  Draw the size of the largest object that is admitted
 * now, bytes, at most SPD_SIZE_MOST. */
uint64_t
spd_tuner_draw(uint64_t digest, struct spd_worker *me)
{
	double f = SKETCH_Count(&sketch, digest), most;

	most = ADM_Largest(c_now(), f, 1 - spd_draw(me));
	return (most < 1e18 ? (uint64_t)most : SPD_SIZE_MOST);
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

/* Copy the results of the last window.  If the tuner has the mutex, a caller
 * that may not wait for a thread of the lowest priority keeps its old ones. */
static void
copy_published(struct spd_cache_stat *st, int may_wait)
{

	if (may_wait)
		PTOK(pthread_mutex_lock(&mtx));
	else if (pthread_mutex_trylock(&mtx) != 0)
		return;
	*st = published;
	PTOK(pthread_mutex_unlock(&mtx));
}

/* Copy the state.  If the caller may not wait, *st has what this function wrote
 * there before. */
void
spd_cache_stat(struct spd_cache_stat *st, int may_wait)
{
	unsigned a, u;

	copy_published(st, may_wait);
	st->c = c_now();
	st->capacity = capacity;
	st->transit = OWN_AllInTransit(spd_owners());
	for (a = 0; a < SPD_ADMISSIONS; a++)
		for (u = 0; u < SPD_OCTAVES; u++)
			st->count[a][u] = count[a][u];
}

/* Copy the curve of an owner.  It is all 0 if the owner has none. */
void
spd_cache_curve(uint32_t owner, struct curve *curve)
{

	memset(curve, 0, sizeof *curve);
	PTOK(pthread_mutex_lock(&mtx));
	if (curves[owner].begun == OWN_Begun(spd_owners(), owner))
		*curve = curves[owner].curve;
	PTOK(pthread_mutex_unlock(&mtx));
}

/*--------------------------------------------------------------------
 * The thread
 */

/* Publish the results of a window. */
static void
publish(uint64_t dropped)
{
	struct spd_cache_stat *p = &published;

	PTOK(pthread_mutex_lock(&mtx));
	p->predicted = tuner.predicted.objects;
	p->measured = tuner.measured;
	p->measured_all = tuner.measured_all;
	p->tunes = tuner.tunes;
	p->fallbacks = tuner.fallbacks;
	p->dropped += dropped;
	PTOK(pthread_mutex_unlock(&mtx));
}

/* A window ends: halve the weight of all requests so far. */
static void
end_curves(void)
{
	uint32_t owner = 0, room = OWN_Room(spd_owners()), end;

	while (owner < room) {
		end = vmin(owner + BATCH, room);
		PTOK(pthread_mutex_lock(&mtx));
		for (; owner < end; owner++)
			CURVE_End(&curves[owner].curve,
			    (double)tuner.sample->clock);
		PTOK(pthread_mutex_unlock(&mtx));
	}
}

/* Choose c for the next window. */
static void
spd_tune(void)
{
	uint64_t dropped = RING_Dropped(&ring);

	tuner.delta = cache_param->sandpaper_admission_delta;
	tuner.bytes = cache_param->sandpaper_admission_bytes;
	TUNER_Lost(&tuner, dropped << tuner.sample->shift);
	TUNER_Tune(&tuner, capacity);
	SKETCH_Age(&sketch);
	c = tuner.c;
	shift = tuner.sample->shift;
	publish(dropped);
	end_curves();
}

/* Return the curve of an owner, with nothing of an earlier owner of this
 * number. Caller holds mtx. */
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

/* Read some requests.  Returns 0 if there are none.  *ends: 1 at the end of a
 * window. */
static int
spd_read(int *ends)
{
	struct ring_request r;
	unsigned n;

	*ends = 0;
	PTOK(pthread_mutex_lock(&mtx));
	for (n = 0; n < BATCH && !*ends && RING_Get(&ring, &r); n++)
		*ends = TUNER_Ask(&tuner, r.digest, r.bytes, capacity,
		    curve_of(r.owner));
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
		while (spd_read(&ends))
			if (ends)
				spd_tune();
		VTIM_sleep(NAP);
	}
	NEEDLESS(return (NULL));
}

/* Return the size of a storage, bytes, or INFINITY if it has no limit. */
static double
storage_size(const struct stevedore *stv)
{
	VCL_BYTES room = stv->var_free_space(stv);

	return (room < 0 || room > NO_LIMIT ? INFINITY :
	    (double)room + (double)stv->var_used_space(stv));
}

/* Read the sizes of the storages that have an LRU list.  The first VCL calls
 * this: then they are open, and not in use. */
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
			transient = storage_size(stv);
		else
			sum += storage_size(stv);
	}
	capacity = fmin(sum, (double)(UINT64_MAX / 4));
}

/*
 * Return how many bytes may be in transit.  By default Transient has no limit.
 * If it has one, half of it is for other objects.  A storage in a file may be
 * larger than the memory of the machine.
 */
uint64_t
spd_transit_limit(void)
{
	double most = fmin(capacity, ram) *
	    cache_param->sandpaper_transit / 100;

	return ((uint64_t)fmin(most, transient / 2));
}

/* Has Transient a limit? */
int
spd_transient_is_limited(void)
{

	return (transient < INFINITY);
}

void
spd_tuner_init(void)
{

	AZ(VRND_RandomCrypto(key, sizeof key));
	ram = (double)sysconf(_SC_PHYS_PAGES) *
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
