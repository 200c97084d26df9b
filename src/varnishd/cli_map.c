/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The CLI command sandpaper.reload.
 */

#include "config.h"

#include <stdlib.h>

#include "spd.h"
#include "spd_hostmap.h"

#include "vcli_serve.h"

static void v_matchproto_(cli_func_t)
cli_reload(struct cli *cli, const char * const *av, void *priv)
{
	const char *error;
	unsigned tenants;

	(void)priv;
	if (spd_cli_no_more(cli, av[2]))
		return;
	error = spd_map_reload(&tenants);
	if (error == NULL) {
		VCLI_Out(cli, "%u tenants and groups are in force", tenants);
		return;
	}
	VCLI_Out(cli, "Nothing was changed: %s", error);
	VCLI_SetResult(cli, CLIS_CANT);
}

static struct cli_proto cmds[] = {
	{ CLICMD_SANDPAPER_RELOAD,		"", cli_reload },
	{ NULL }
};

void
spd_cli_map_init(void)
{

	CLI_AddFuncs(cmds);
}
