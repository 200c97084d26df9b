/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Open and close slots, by how much of its cores varnishd uses: see
 * POOLMGR_Open().
 *
 * Only the keeper calls spd_open().  The static variables are the keeper's.
 * The exception is `pretended`, which debug.sandpaper.busy sets.
 */

#include "config.h"

#include <stdlib.h>

#include "spd.h"

static int64_t looked;			/* ns, the last call */
static int64_t used;			/* ns, CPU time of the process at that
					 * call */
static int64_t doubled;			/* ns, see POOLMGR_Open() */
static _Atomic int pretended = -1;	/* %; -1: as measured */

/* For tests: let the process seem to use this percentage of its cores.  -1: as
 * measured. */
void
spd_pretend_busy(int percent)
{

	pretended = percent;
}

/* Return what the process has used of its cores since the last call, in
 * percent. */
static unsigned
busy(int64_t now)
{
	int64_t cpu = METER_Process(), time = vmax_t(int64_t, 1, now - looked);
	int64_t percent = (cpu - used) / spd_set.cores * 100 / time;
	int set = pretended;

	used = cpu;
	looked = now;
	return ((unsigned)vmax_t(int64_t, 0, set < 0 ? percent : set));
}

/* Open or close slots, and let requests run in those that open. */
void
spd_open(int64_t now)
{
	struct poolmgr_load load;
	unsigned n;

	load.busy = busy(now);
	spd_lock();
	spd_price_busy(load.busy);
	load.slots = spd_slots();
	load.cores = spd_set.cores;
	load.open = spd_slots_open();
	load.full = spd_slots_full();
	n = POOLMGR_Open(&load, &doubled, now);
	spd_open_slots(n);
	spd_unlock();
	if (n > load.open)
		spd_dispatch();
}
