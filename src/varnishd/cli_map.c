/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The CLI commands sandpaper.reload and sandpaper.set.
 */

#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spd.h"
#include "cli.h"
#include "spd_hostmap.h"

#include "tenants/file.h"

#include "vcli_serve.h"
#include "vsb.h"

static void v_matchproto_(cli_func_t)
cli_reload(struct cli *cli, const char * const *av, void *priv)
{
	const char *error;
	unsigned tenants, left;

	(void)priv;
	if (spd_cli_no_more(cli, av[2]))
		return;
	error = spd_map_reload(&tenants, &left);
	if (error == NULL) {
		VCLI_Out(cli, "%u tenants and groups are in force", tenants);
		if (left > 0)
			VCLI_Out(cli, ", but %u of them have no weight, limit "
			    "or group: raise sandpaper_tenants_max, which is "
			    "%u", left, cache_param->sandpaper_tenants_max);
		return;
	}
	VCLI_Out(cli, "Nothing was changed: %s", error);
	VCLI_SetResult(cli, CLIS_CANT);
}

/*--------------------------------------------------------------------
 * Set something of one tenant, until the map is read again
 */

#define OF_GROUP	(1U << FILE_WEIGHT | 1U << FILE_LIMIT)
#define OF_TENANT	(OF_GROUP | 1U << FILE_QUEUE_LIMIT |		\
	1U << FILE_TARGET | 1U << FILE_QUEUE_TIMEOUT | 1U << FILE_FETCH_TARGET)

/* Refuse the command.  Returns -1. */
static int v_printflike_(2, 3)
refuse(struct cli *cli, const char *format, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	VCLI_Out(cli, "Nothing was changed: %s", text);
	VCLI_SetResult(cli, CLIS_PARAM);
	return (-1);
}

static void v_matchproto_(file_error_f)
tell_error(void *priv, unsigned line, const char *why)
{

	(void)line;
	(void)refuse(priv, "%s\n", why);
}

/* Read the command's words as a line of a file of tenants.  Returns 0, or -1
 * with the CLI's error set. */
static int
read_words(struct cli *cli, const char * const *av, struct hostmap *m,
    unsigned *given)
{
	struct vsb *line = VSB_new_auto();
	unsigned errors, allowed;
	int i;

	AN(line);
	for (i = 2; av[i] != NULL; i++)
		VSB_printf(line, "%s ", av[i]);
	AZ(VSB_finish(line));
	errors = FILE_Line(m, VSB_data(line), given, tell_error, cli);
	VSB_destroy(&line);
	if (errors > 0)
		return (-1);
	if (m->first == NULL || m->nhost > 0)
		return (refuse(cli, "use the name of a tenant and settings, "
		    "such as weight=2"));
	allowed = m->first->is_group ? OF_GROUP : OF_TENANT;
	if (*given == 0 || (*given & ~allowed) != 0)
		return (refuse(cli, m->first->is_group ? "of a group set "
		    "weight or limit; all else is in the map" : "set weight, "
		    "limit, queue_limit, target, queue_timeout or "
		    "fetch_target; all else is in the map"));
	return (0);
}

#define GIVEN(s)	((given & 1U << FILE_##s) != 0)

/* Set what was given.  Caller holds spd_lock(). */
static void
set(struct spd_tenant *t, const struct map_tenant *mt, unsigned given,
    uint32_t reservation)
{
	struct own_settings own;

	if (GIVEN(WEIGHT)) {
		REL_SetWeight(spd_rel, t->rel, spd_map_weight(mt->weight));
		OWN_Settings(spd_owners(), t->owner, &own);
		OWN_Set(spd_owners(), t->owner, mt->weight, own.reservation,
		    own.limit, own.group);
	}
	if (GIVEN(LIMIT))
		REL_SetLimits(spd_rel, t->rel, reservation,
		    spd_map_part(mt->limit), METER_Now());
	if (GIVEN(QUEUE_LIMIT))
		t->queue_limit = mt->queue_limit;
	if (GIVEN(TARGET)) {
		t->target = spd_ns(mt->time[MAP_TARGET]);
		spd_lower_least_target(t->target);
	}
	if (GIVEN(QUEUE_TIMEOUT))
		t->queue_timeout = spd_ns(mt->time[MAP_QUEUE_TIMEOUT]);
	if (GIVEN(FETCH_TARGET))
		t->fetch_target = spd_ns(mt->time[MAP_FETCH_TARGET]);
	t->by_hand = 1;
}

/* Set what was given of a tenant or group of the map, or refuse. */
static void
set_tenant(struct cli *cli, const struct map_tenant *mt, unsigned given)
{
	struct rel_tenant_stat st = { 0 };
	struct spd_tenant *t;
	int mapped, low = 0;

	spd_lock();
	t = spd_tenant_find(mt->name, mt->len);
	mapped = t != NULL && t->map != NULL;
	if (mapped) {
		REL_TenantStat(spd_rel, t->rel, &st);
		low = mt->limit > 0 && spd_map_part(mt->limit) < st.reservation;
		if (!low)
			set(t, mt, given, st.reservation);
	}
	spd_unlock();
	if (!mapped)
		(void)refuse(cli, MAP_IsEach(mt) ? "\"%s\" stands for many "
		    "tenants: use the name of one, or change the map" :
		    "the map of the active VCL has no \"%s\"", mt->name);
	else if (low)
		(void)refuse(cli, "the limit is below the reservation, which "
		    "is %.3g", (double)st.reservation / REL_PART_ONE);
	else
		VCLI_Out(cli, "Set until the map is read again");
}

static void v_matchproto_(cli_func_t)
cli_set(struct cli *cli, const char * const *av, void *priv)
{
	struct hostmap m;
	unsigned given;

	(void)priv;
	MAP_Init(&m);
	if (read_words(cli, av, &m, &given) == 0)
		set_tenant(cli, m.first, given);
	MAP_Fini(&m);
}

static struct cli_proto cmds[] = {
	{ CLICMD_SANDPAPER_RELOAD,		"", cli_reload },
	{ CLICMD_SANDPAPER_SET,			"", cli_set },
	{ NULL }
};

void
spd_cli_map_init(void)
{

	CLI_AddFuncs(cmds);
}
