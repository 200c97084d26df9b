/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * What the CLI commands share: arguments and names.
 *
 * A wrong argument is answered with the value and what is allowed.  There is no
 * state here.
 */

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "spd.h"
#include "cli.h"

#include "vcli_serve.h"

/* Return the name of a mode. */
const char *
spd_cli_mode(unsigned mode)
{
	static const char * const names[] = { SPD_MODE_NAMES };

	assert(mode < sizeof names / sizeof *names);
	return (names[mode]);
}

/* Read a whole number from lo to hi.  Returns 0, or -1 with the CLI's error
 * set. */
int
spd_cli_number(struct cli *cli, const char *arg, unsigned long lo,
    unsigned long hi, unsigned long *n)
{
	char *e;

	*n = strtoul(arg, &e, 10);
	if (*arg >= '0' && *arg <= '9' && *e == '\0' && *n >= lo && *n <= hi)
		return (0);
	VCLI_Out(cli, "\"%s\" is not allowed: use a whole number from "
	    "%lu to %lu", arg, lo, hi);
	VCLI_SetResult(cli, CLIS_PARAM);
	return (-1);
}

/* Refuse an argument too many.  Returns 0 if arg is NULL, else -1 with the
 * CLI's error set. */
int
spd_cli_no_more(struct cli *cli, const char *arg)
{

	if (arg == NULL)
		return (0);
	VCLI_Out(cli, "\"%s\" is one argument too many: remove it", arg);
	VCLI_SetResult(cli, CLIS_PARAM);
	return (-1);
}

/* Say that there is no such tenant, and set the CLI's error. */
void
spd_cli_unknown(struct cli *cli, const char *name)
{

	VCLI_Out(cli, "Tenant \"%s\" is not known: it had no request, or was "
	    "idle and was removed. Use sandpaper.list to see the known "
	    "tenants", name);
	VCLI_SetResult(cli, CLIS_PARAM);
}
