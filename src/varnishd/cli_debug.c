/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The debugging commands of the CLI.  They make the order of release
 * deterministic in a test, and cause states that are rare.
 *
 * The lock guards the fields that they set.  tbl/sandpaper_cli.h says what each
 * command does.
 */

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "spd.h"
#include "cli.h"

#include "vcli_serve.h"
#include "vtim.h"

static void v_matchproto_(cli_func_t)
cli_freeze(struct cli *cli, const char * const *av, void *priv)
{

	(void)cli;
	(void)av;
	(void)priv;
	spd_lock();
	spd_freeze(1);
	spd_unlock();
}

static void v_matchproto_(cli_func_t)
cli_thaw(struct cli *cli, const char * const *av, void *priv)
{

	(void)cli;
	(void)av;
	(void)priv;
	spd_lock();
	spd_freeze(0);
	spd_unlock();
	spd_dispatch();
}

static void v_matchproto_(cli_func_t)
cli_step(struct cli *cli, const char * const *av, void *priv)
{
	unsigned long n = 1;

	(void)priv;
	if (av[2] != NULL && spd_cli_number(cli, av[2], 1, 1000000, &n))
		return;
	spd_lock();
	spd_step((unsigned)n);
	spd_unlock();
	spd_dispatch();
}

static void v_matchproto_(cli_func_t)
cli_wait(struct cli *cli, const char * const *av, void *priv)
{
	unsigned long n;
	unsigned waiting, i;

	(void)priv;
	if (spd_cli_number(cli, av[2], 0, 1000000, &n))
		return;
	for (i = 0; i < 5000; i++) {
		spd_lock();
		waiting = REL_Waiting(spd_rel);
		spd_unlock();
		if (waiting == n)
			return;
		VTIM_sleep(0.001);
	}
	VCLI_Out(cli, "After 5 seconds %u requests wait, not %lu", waiting, n);
	VCLI_SetResult(cli, CLIS_CANT);
}

static void v_matchproto_(cli_func_t)
cli_cost(struct cli *cli, const char * const *av, void *priv)
{
	struct spd_tenant *t;
	unsigned long cpu, net;

	(void)priv;
	if (spd_cli_number(cli, av[3], 0, 1000000000, &cpu) ||
	    spd_cli_number(cli, av[4], 0, 1000000000, &net))
		return;
	spd_lock();
	t = spd_tenant_check(NULL, av[2], strlen(av[2]));
	t->fixed[REL_CPU] = (int64_t)cpu * 1000;
	t->fixed[REL_NET] = (int64_t)net * 1000;
	spd_estimate(t);
	spd_unlock();
}

static void v_matchproto_(cli_func_t)
cli_age(struct cli *cli, const char * const *av, void *priv)
{
	unsigned long n;

	(void)priv;
	if (spd_cli_number(cli, av[2], 1, 1000000, &n))
		return;
	spd_lock();
	spd_new_age((int64_t)n * 1000000000);
	spd_unlock();
	spd_new_keep(METER_Now());
}

static void v_matchproto_(cli_func_t)
cli_second(struct cli *cli, const char * const *av, void *priv)
{
	unsigned long n = 1;

	(void)priv;
	if (av[2] != NULL && spd_cli_number(cli, av[2], 1, 1000, &n))
		return;
	while (n-- > 0)
		spd_recent_second(METER_Now());
}

static void v_matchproto_(cli_func_t)
cli_slots(struct cli *cli, const char * const *av, void *priv)
{
	unsigned long n;

	(void)priv;
	if (spd_cli_number(cli, av[2], 0, SPD_SLOTS_MAX, &n))
		return;
	spd_lock();
	spd_cap_slots((unsigned)n);
	spd_unlock();
	spd_dispatch();
}

static void v_matchproto_(cli_func_t)
cli_busy(struct cli *cli, const char * const *av, void *priv)
{
	unsigned long cpu, net;
	double part = -1;

	(void)priv;
	if (av[2] != NULL && spd_cli_number(cli, av[2], 0, 100, &cpu))
		return;
	if (av[2] != NULL && av[3] != NULL) {
		if (spd_cli_number(cli, av[3], 0, 100, &net))
			return;
		part = (double)net / 100;
	}
	spd_pretend_busy(av[2] != NULL ? (int)cpu : -1);
	spd_lock();
	spd_pretend_link_used(part);
	spd_unlock();
}

static void v_matchproto_(cli_func_t)
cli_fail(struct cli *cli, const char * const *av, void *priv)
{
	uint64_t u = 1, fail_next = 0, late_next = 0;
	const char *p;

	(void)cli;
	(void)priv;
	for (p = av[2]; *p != '\0'; p++) {
		if (*p == 'F' || *p == 'f')
			fail_next |= u;
		if (*p == 'L' || *p == 'l')
			late_next |= u;
		u <<= 1;
	}
	spd_lock();
	spd_fail(fail_next, late_next);
	spd_unlock();
}

static struct cli_proto cmds[] = {
	{ CLICMD_DEBUG_SANDPAPER_FREEZE,	"d", cli_freeze },
	{ CLICMD_DEBUG_SANDPAPER_STEP,		"d", cli_step },
	{ CLICMD_DEBUG_SANDPAPER_WAIT,		"d", cli_wait },
	{ CLICMD_DEBUG_SANDPAPER_THAW,		"d", cli_thaw },
	{ CLICMD_DEBUG_SANDPAPER_COST,		"d", cli_cost },
	{ CLICMD_DEBUG_SANDPAPER_AGE,		"d", cli_age },
	{ CLICMD_DEBUG_SANDPAPER_FAIL,		"d", cli_fail },
	{ CLICMD_DEBUG_SANDPAPER_SECOND,	"d", cli_second },
	{ CLICMD_DEBUG_SANDPAPER_SLOTS,		"d", cli_slots },
	{ CLICMD_DEBUG_SANDPAPER_BUSY,		"d", cli_busy },
	{ NULL }
};

void
spd_cli_debug_init(void)
{

	CLI_AddFuncs(cmds);
	spd_lock_cli();
}
