/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The counters SANDPAPER_TENANT.* of each tenant that the active VCL's map
 * names, in one cluster of shared memory.
 *
 * The keeper copies them from the tenants' records.  It makes the counters
 * when another map becomes active, never because of traffic: each tenant costs
 * shared memory.  Only the keeper does this, so neither a request nor
 * `vcl.use` waits for a file.  All variables here are the keeper's; the lock
 * guards the tenants' records.
 */

#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "spd.h"
#include "spd_hostmap.h"

#include "common/vsmw.h"
#include "VSC_sandpaper_tenant.h"

#define PPM(part)		((uint64_t)((part) * 1e6))
#define SPD_STAT_COPIES	1000		/* tenants, in one spd_stat() */

struct stat_row {
	struct spd_mapped	of;
	struct VSC_sandpaper_tenant *vsc;
	struct vsc_seg		*seg;
};

static struct vsmw_cluster *cluster;
static struct stat_row *row;
static unsigned rows, next;		/* next: the row to copy */
static unsigned serial;			/* of the map that the rows are of */

/*
 * Return 1 if two file descriptors are free: for the cluster, and for the
 * description of the counters.  Varnish asserts that it gets them.  Without
 * them there are no new counters until the next try.
 */
static int
stat_descriptors(void)
{
	int one, two;

	one = dup(spd_epoll());
	two = dup(spd_epoll());
	if (one >= 0)
		(void)close(one);
	if (two >= 0)
		(void)close(two);
	return (one >= 0 && two >= 0);
}

/* Remove all counters. */
static void
stat_drop(void)
{
	unsigned u;

	for (u = 0; u < rows; u++)
		VSC_sandpaper_tenant_Destroy(&row[u].seg);
	if (cluster != NULL)
		VSMW_DestroyCluster(heritage.proc_vsmw, &cluster);
	free(row);
	row = NULL;
	rows = next = 0;
}

/* Make the counters of n tenants. */
static void
stat_make(const struct spd_mapped *tenant, unsigned n)
{
	unsigned u;

	row = calloc(n, sizeof *row);
	AN(row);
	vsc_lock();
	cluster = VSMW_NewCluster(heritage.proc_vsmw,
	    n * VRT_VSC_Overhead(VSC_sandpaper_tenant_size), "VSC_cluster");
	vsc_unlock();
	AN(cluster);
	for (u = 0; u < n; u++) {
		row[u].of = tenant[u];
		row[u].vsc = VSC_sandpaper_tenant_New(cluster, &row[u].seg,
		    "%s", tenant[u].name);
		AN(row[u].vsc);
	}
	rows = n;
}

/*
 * Copy a tenant's counters to *vsc.  Returns 0 if the record has another tenant
 * by now, or none.  Caller holds spd_lock().
 */
static int
stat_copy(const struct spd_mapped *of, struct VSC_sandpaper_tenant *vsc)
{
	const struct spd_tenant *t = of->tenant;
	struct rel_tenant_stat st;

	SPD_LOCKED();
	if (TEN_OfData(of->tenant)->generation != of->generation)
		return (0);
	REL_TenantStat(spd_rel, t->rel, &st);
#define COPY_VSC(name, value)	vsc->name = (uint64_t)(value);
#define COPY_SUM(name, value)	COPY_VSC(name, value)
#define COPY_NO(name, value)
#define TENANT_FIELD(kind, name, key, counter, value)	\
	COPY_##counter(name, value)
#include "tenant_fields.h"
	return (1);
}

/*
 * Copy the next rows, at most SPD_PAUSE of them.  Returns how many.  The rows
 * are written without the lock, since each write may be a page fault.
 */
static unsigned
stat_some(unsigned most)
{
	struct VSC_sandpaper_tenant copy[SPD_PAUSE];
	int known[SPD_PAUSE];
	unsigned n = vmin_t(unsigned, most, SPD_PAUSE), u;

	memset(copy, 0, sizeof copy);
	spd_lock();
	for (u = 0; u < n; u++)
		known[u] = stat_copy(&row[(next + u) % rows].of, &copy[u]);
	spd_unlock();
	for (u = 0; u < n; u++) {
		if (known[u])
			*row[next].vsc = copy[u];
		next = (next + 1) % rows;
	}
	return (n);
}

/* Copy the tenants' counters, at most SPD_STAT_COPIES.  Only the keeper calls
 * this. */
void
spd_stat(void)
{
	struct spd_mapped *tenant;
	unsigned n, left;

	if (serial != spd_map_serial() && stat_descriptors()) {
		stat_drop();
		serial = spd_map_tenants(&tenant, &n);
		if (n > 0)
			stat_make(tenant, n);
		free(tenant);
	}
	for (left = vmin_t(unsigned, rows, SPD_STAT_COPIES); left > 0; )
		left -= stat_some(left);
}

/*--------------------------------------------------------------------
 * The cache
 */

/* Return how many objects had this answer, of all sizes. */
static uint64_t
counted(const struct spd_cache_stat *st, enum spd_admission a)
{
	uint64_t sum = 0;
	unsigned u;

	for (u = 0; u < SPD_OCTAVES; u++)
		sum += st->count[a][u];
	return (sum);
}

/* Copy the state of the cache into its counters.  Only the keeper writes these,
 * without the lock. */
void
spd_stat_cache(void)
{
	static struct spd_cache_stat st;

	spd_cache_stat(&st, 0);
	spd_vsc->transit_bytes = st.transit;
	spd_vsc->admission_c = isinf(st.c) ? 0 : (uint64_t)st.c;
	spd_vsc->admission_windows = st.tunes;
	spd_vsc->admission_fallbacks = st.fallbacks;
	spd_vsc->admission_predicted = PPM(st.predicted);
	spd_vsc->admission_measured = PPM(st.measured);
	spd_vsc->admission_measured_all = PPM(st.measured_all);
	spd_vsc->admission_dropped = st.dropped;
	spd_vsc->admission_admitted = counted(&st, SPD_ADMITTED);
	spd_vsc->admission_late = counted(&st, SPD_LATE);
	spd_vsc->admission_passed = counted(&st, SPD_PASSED);
	spd_vsc->admission_rejected = counted(&st, SPD_REJECTED) +
	    spd_vsc->admission_late + spd_vsc->admission_passed;
}

/*--------------------------------------------------------------------
 * The stages
 */

/* Keep the profile of this second, and copy it into the counters. */
void
spd_stat_stages(int64_t now)
{
	struct spd_profile all;

	spd_lock();
	spd_stage_second(now);
	spd_stage_all(&all);
	spd_unlock();
#define COPY_STAGE(s, name)						\
	do {								\
		spd_vsc->name##_wait_ns = (uint64_t)all.stage[s].wait;	\
		spd_vsc->name##_ns = (uint64_t)all.stage[s].in_it;	\
		spd_vsc->name##_done = all.stage[s].done;		\
	} while (0)
	COPY_STAGE(SPD_PARSES, parse);
	COPY_STAGE(SPD_RUNS, run);
	COPY_STAGE(SPD_FETCHES, fetch);
	COPY_STAGE(SPD_DELIVERS, deliver);
#undef COPY_STAGE
}
