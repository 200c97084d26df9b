/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Counters of each tenant that the map in force names, in one cluster of
 * shared memory.  They are made when another map comes into force, never by
 * traffic: a segment for each tenant that comes along would cost a page and a
 * file.
 *
 * The tenants' accounts are the truth.  The keeper copies them, and makes the
 * segments, so that neither a request nor `vcl.use` waits for a file.
 */

#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sp.h"

#include "common/vsmw.h"
#include "VSC_sandpaper_tenant.h"

#define SPD_STAT_COPIES	1000		/* tenants, in one look of the keeper */

struct stat_row {
	struct spd_mapped	of;
	struct VSC_sandpaper_tenant *vsc;
	struct vsc_seg		*seg;
};

static struct vsmw_cluster *cluster;
static struct stat_row *row;
static unsigned rows, next;
static unsigned serial;			/* of the map that they are of */

/*
 * Varnish asserts that it gets a descriptor for a cluster, and one for what it
 * says of the counters: without them there are none until some are free.
 */
static int
stat_descriptors(void)
{
	int one, two;

	one = dup(spd.epoll);
	two = dup(spd.epoll);
	if (one >= 0)
		(void)close(one);
	if (two >= 0)
		(void)close(two);
	return (one >= 0 && two >= 0);
}

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

/* A tenant that no map pins any more may be another one by now */
static void
stat_copy(const struct stat_row *r)
{
	struct spd_tenant *t = r->of.tenant;
	struct rel_tenant_stat st;

	SPD_LOCKED();
	if (TEN_OfHost(t)->generation != r->of.generation)
		return;
	REL_TenantStat(spd.rel, t->rel, &st);
	r->vsc->waiting = st.waiting;
	r->vsc->running = st.running;
	r->vsc->requests = t->requests;
	r->vsc->refused = t->refused;
	r->vsc->gone = t->gone;
	r->vsc->shed = t->shed;
	r->vsc->cpu_ns = (uint64_t)t->cpu_ns;
	r->vsc->bytes = t->bytes;
	r->vsc->wait_ns = (uint64_t)t->wait_ns;
	r->vsc->estimate_cpu_ns = (uint64_t)st.estimate[REL_CPU];
	r->vsc->estimate_net_ns = (uint64_t)st.estimate[REL_NET];
}

/* The keeper calls it, and nobody else */
void
spd_stat(void)
{
	struct spd_mapped *tenant;
	unsigned n;

	if (serial != spd_map_serial() && stat_descriptors()) {
		stat_drop();
		serial = spd_map_tenants(&tenant, &n);
		if (n > 0)
			stat_make(tenant, n);
		free(tenant);
	}
	spd_lock();
	for (n = 0; n < rows && n < SPD_STAT_COPIES; n++) {
		spd_pause(n);
		stat_copy(&row[next]);
		next = (next + 1) % rows;
	}
	spd_unlock();
}
