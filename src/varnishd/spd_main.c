/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The start of Sandpaper.
 *
 * Each part is set up before the parts that use it.  The keeper's thread starts
 * last.
 */

#include "config.h"

#include <stdlib.h>

#include "spd.h"
#include "cli.h"

/* Assert that this thread holds spd_lock().  The releaser calls this first in
 * each function that changes its state. */
static void
spd_assert_held(void *priv)
{

	AZ(priv);
	SPD_LOCKED();
}

/* Start Sandpaper.  The child's main thread calls this once, after Pool_Init(),
 * so pools may begin before. */
void
SPD_Init(void)
{

	spd_heap_init();
	spd_vsc = VSC_sandpaper_New(NULL, NULL, "");
	AN(spd_vsc);
	spd_lock_init();
	PTOK(pthread_key_create(&spd_key, spd_thread_ends));
	spd_vsc->slots = spd_slots();
	spd_rel = REL_New(0, spd_slots(), REL_OPT_ALL, spd_assert_held, NULL);
	AN(spd_rel);
	spd_stage_init();
	spd_recent_init();
	spd_link_init();
	spd_conn_init();
	spd_ready_init();
	spd_poll_init();
	spd_task_init(spd_find_work);
	spd_lock();
	spd_tenants_init();
	spd_unlock();
	spd_params();
	spd_cli_list_init();
	spd_cli_show_init();
	spd_cli_map_init();
	spd_cli_drain_init();
	spd_cli_cache_init();
	spd_cli_debug_init();
	spd_tuner_init();
	spd_keeper_init();
}
