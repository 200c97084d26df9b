/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The keeper, Sandpaper's housekeeping thread: work that is due by time.  The
 * keeper wakes every 50 ms, or every 10 ms while connections are parked:
 *  - parameters, deadlines of parked connections, workers that stand still, and
 *    a worker that leads: each time, parameters at most every 45 ms
 *  - the rate of net: every NIC_EPOCH
 *  - waits that are too long, proofs of new Hosts, and the tenants' counters,
 *    and while Sandpaper is on, open slots: every POOLMGR_EVERY
 *  - the residual, the number of threads, the counters of the cache and of
 *    the stages, TEN_Tick(), and what tenants used: every second
 *
 * The static variables are the keeper's.  Herders read `threads`, an atomic.
 */

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "spd.h"

#include "vtim.h"

static pthread_t spd_keeper_thread;
static struct poolmgr poolmgr;
static _Atomic unsigned threads;	/* that a pool should have */

/* Do the work of each second. */
static void
spd_second(int64_t now)
{
	struct poolmgr_snapshot s;
	int64_t cpu;

	spd_part_limit();
	cpu = METER_Process();
	memset(&s, 0, sizeof s);
	spd_lock();
	spd_residual_measure(cpu, now);
	TEN_Tick(spd_tenants);
	spd_vsc->tenants = TEN_Count(spd_tenants);
	s.workers_per_core = cache_param->sandpaper_workers_per_core;
	s.cores = spd_set.cores;
	s.parsers = spd_set.parsers;
	s.acceptors = 1;
	s.lent = spd_lent();
	s.fetches = spd_fetches();
	s.h2_sessions = spd_h2_sessions();
	s.pools = cache_param->wthread_pools;
	s.reserve = cache_param->wthread_reserve;
	s.min = cache_param->wthread_min;
	s.max = cache_param->wthread_max;
	spd_unlock();
	threads = POOLMGR_Threads(&poolmgr, &s, now);
	spd_vsc->threads_wanted = threads;
}

/* Return how many threads the pool should have, at least Varnish's minimum. */
unsigned
SPD_Herd(const struct pool *pp, unsigned min)
{

	CHECK_OBJ_NOTNULL(pp, POOL_MAGIC);
	if (spd_set.mode != SPD_ON || DO_DEBUG(DBG_VTC_MODE))
		return (min);
	return (vmax_t(unsigned, min, threads));
}

static void * v_matchproto_(bgthread_t)
spd_keeper(struct worker *wrk, void *priv)
{
	int64_t now, params = 0, epoch = 0, look = 0, second = 0;

	AZ(priv);
	while (1) {
		now = METER_Now();
		if (now - params >= 45000000) {
			params = now;
			spd_params();
		}
		if (spd_set.mode != SPD_OFF && now - epoch >= NIC_EPOCH) {
			epoch = now;
			spd_learn(now);
		}
		if (spd_set.mode != SPD_OFF)
			spd_watch(now);
		if (spd_set.mode != SPD_OFF && now - look >= POOLMGR_EVERY) {
			look = now;
			spd_watch_queue(now);
			if (spd_set.mode == SPD_ON)
				spd_open(now);
			spd_new_keep(now);
			spd_stat();
		}
		if (now - second >= 1000000000) {
			second = now;
			spd_second(now);
			spd_recent_second(now);
			spd_stat_cache();
			spd_stat_stages(now);
		}
		if (spd_set.live) {
			spd_expire(wrk, spd_set.mode == SPD_OFF ?
			    INT64_MAX : now);
			spd_summon_new_pools();
			if (spd_leaderless())
				spd_summon();
			spd_wake_leader();
			Pool_Sumstat(wrk);
		}
		VTIM_sleep(spd_nparked() > 0 ? 0.010 : 0.050);
	}
	NEEDLESS(return (NULL));
}

void
spd_keeper_init(void)
{

	WRK_BgThread(&spd_keeper_thread, "sandpaper", spd_keeper, NULL);
}
