/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Apply the parameters.
 *
 * Varnish does not call the child when a parameter changes.  So the keeper
 * calls spd_params() about every 50 ms.  The static variable is the keeper's.
 * The lock guards what is set here.
 */

#include "config.h"

#include <stdlib.h>

#include "spd.h"

/*
 * Apply all parameters.  The first call is from SPD_Init().  In the modes
 * `off` and `observe` the policy is `fifo`, without limits, and there are
 * SPD_SLOTS_MAX / 2 slots.
 */
void
spd_params(void)
{
	static unsigned tenants_max;
	enum spd_mode mode = cache_param->sandpaper;
	unsigned policy, limit, slots, cores;
	int drain, failed = 0;

	spd_counter();
	cores = cache_param->sandpaper_cores;
	if (cores == 0)
		cores = POOLMGR_Cores("");
	limit = POOLMGR_Slots(cache_param->sandpaper_workers_per_core, cores);
	limit = vmin_t(unsigned, limit, SPD_SLOTS_MAX / 2);
	slots = limit;
	policy = cache_param->sandpaper_policy;
	if (mode != SPD_ON) {
		limit = SPD_SLOTS_MAX / 2;
		policy = (unsigned)REL_PolicyByName("fifo");
	}

	spd_lock();
	spd_set.cores = cores;
	spd_set.parsers = vmax_t(unsigned, 2, cores);
	spd_costs(policy);
	spd_dry_params(slots, mode != spd_set.mode);
	if (tenants_max != cache_param->sandpaper_tenants_max) {
		tenants_max = cache_param->sandpaper_tenants_max;
		failed = TEN_SetMax(spd_tenants, tenants_max);
	}
	spd_new_params();
	spd_set.overload = cache_param->sandpaper_overload;
	spd_set.target = (int64_t)(cache_param->sandpaper_target * 1e9);
	spd_set.standing = (int64_t)(cache_param->sandpaper_standing * 1e9);
	if (REL_GetPolicy(spd_rel) != policy)
		AZ(REL_SetPolicy(spd_rel, policy, METER_Now()));
	REL_SetOptions(spd_rel, mode == SPD_ON ? REL_OPT_ALL :
	    REL_OPT_ALL & ~REL_OPT_LIMITS);
	spd_set.synchronised = REL_Synchronised(spd_rel);
	REL_SetRound(spd_rel, (int64_t)(cache_param->sandpaper_round * 1e9));
	if (spd_slots() != limit) {
		spd_set_slots(limit);
		REL_SetSlots(spd_rel, limit);
	}
	if (mode != spd_set.mode && mode == SPD_OFF)
		spd_timer(METER_Now());		/* wake the leader */
	spd_set.mode = mode;
	if (mode != SPD_ON)
		spd_price_busy(0);	/* spd_open() does not run */
	drain = mode == SPD_OFF && (REL_Waiting(spd_rel) > 0 ||
	    spd_nready() > 0 || spd_nparked() > 0 || spd_running() > 0);
	spd_set.live = mode != SPD_OFF || drain;
	spd_unlock();
	if (failed)
		VSL(SLT_Error, NO_VXID, "Sandpaper: no memory for %u "
		    "tenants: the last limit stays in use, lower "
		    "sandpaper_tenants_max",
		    tenants_max);
	/* There may be more slots, or another order of release */
	spd_dispatch();
}
