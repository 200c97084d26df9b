/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The CLI command sandpaper.show: one tenant, and why its requests wait or are
 * refused.
 *
 * The numbers are copied under the lock, and printed without it.
 */

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "spd.h"
#include "cli.h"

#include "vcli_serve.h"

static void
show(struct cli *cli, const char * const *av, int json)
{
	struct spd_tenant *t;
	struct spd_fields r;
	struct spd_json j;
	const char *name = av[2];

	if (json && av[3] != NULL)
		name = av[3];
	else if (spd_cli_no_more(cli, av[3]))
		return;
	memset(&r, 0, sizeof r);
	spd_lock();
	t = spd_tenant_find(name, strlen(name));
	if (t != NULL)
		spd_fields(t, SPD_FIELDS_WHY | SPD_FIELDS_LAST, METER_Now(),
		    &r);
	spd_unlock();
	if (t == NULL) {
		spd_cli_unknown(cli, name);
		return;
	}
	if (!json) {
		spd_row_text(cli, &r);
		VCLI_Out(cli, "\n");
		spd_why_text(cli, &r);
		return;
	}
	VCLI_JSON_begin(cli, 2, av);
	VCLI_Out(cli, ",\n");
	spd_json_begin(&j, cli);
	spd_row_json(&j, &r, UINT64_MAX, 0);
	spd_json_flush(&j);
	VCLI_JSON_end(cli);
}

static void v_matchproto_(cli_func_t)
cli_show(struct cli *cli, const char * const *av, void *priv)
{

	(void)priv;
	show(cli, av, 0);
}

static void v_matchproto_(cli_func_t)
cli_show_json(struct cli *cli, const char * const *av, void *priv)
{

	(void)priv;
	show(cli, av, 1);
}

static struct cli_proto cmds[] = {
	{ CLICMD_SANDPAPER_SHOW,		"", cli_show, cli_show_json },
	{ NULL }
};

void
spd_cli_show_init(void)
{

	CLI_AddFuncs(cmds);
}
