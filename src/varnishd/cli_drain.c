/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The CLI command sandpaper.drain.
 */

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "spd.h"
#include "cli.h"

#include "vcli_serve.h"

static void v_matchproto_(cli_func_t)
cli_drain(struct cli *cli, const char * const *av, void *priv)
{
	unsigned waiting, running, sessions;

	(void)priv;
	if (av[2] != NULL) {
		if (strcmp(av[2], "on") && strcmp(av[2], "off")) {
			VCLI_Out(cli, "\"%s\" is not allowed: use on or off",
			    av[2]);
			VCLI_SetResult(cli, CLIS_PARAM);
			return;
		}
		if (spd_cli_no_more(cli, av[3]))
			return;
		spd_drain(!strcmp(av[2], "on"));
	}
	spd_lock();
	waiting = REL_Waiting(spd_rel);
	running = REL_Running(spd_rel);
	sessions = spd_h2_sessions();
	spd_unlock();
	VCLI_Out(cli, "mode %s\ndraining %s\nwaiting %u\nrunning %u\n"
	    "h2_sessions %u", spd_cli_mode(spd_set.mode),
	    SPD_Draining() ? "on" : "off", waiting, running, sessions);
}

static struct cli_proto cmds[] = {
	{ CLICMD_SANDPAPER_DRAIN,		"", cli_drain },
	{ NULL }
};

void
spd_cli_drain_init(void)
{

	CLI_AddFuncs(cmds);
}
