/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Open and close slots, by how busy the cores are: see POOLMGR_Open().
 *
 * Only the keeper calls spd_open().  The static variables are the keeper's,
 * except `pretended`, which debug.sandpaper.busy sets.
 */

#include "config.h"

#include <stdlib.h>

#include "spd.h"

static struct poolmgr_look last;
static _Atomic int pretended = -1;	/* % of the cores; -1: as measured */

/* Let the process seem to use this part of the cores, in percent.  -1: as
 * measured.  For tests. */
void
spd_pretend_busy(int percent)
{

	pretended = percent;
}

/* Open or close slots.  Then let requests run in the open ones. */
void
spd_open(int64_t now)
{
	int64_t cpu = METER_Process();
	int percent = pretended;
	unsigned before, after;

	if (percent >= 0)
		cpu = last.cpu + (now - last.now) / 100 * percent *
		    spd_set.cores;
	spd_lock();
	before = spd_slots_open();
	after = POOLMGR_Open(&last, before, spd_slots(), spd_set.cores,
	    spd_slots_were_full(), cpu, now);
	spd_open_slots(after);
	spd_unlock();
	if (after > before)
		spd_dispatch();
}
