/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Arguments of CLI commands.
 */

#include "config.h"

#include <stdlib.h>

#include "spd.h"

#include "vcli_serve.h"

/* 0: a whole number from lo to hi; else the CLI has its error */
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

/* 0: there is no such argument; else the CLI has its error */
int
spd_cli_no_more(struct cli *cli, const char *arg)
{

	if (arg == NULL)
		return (0);
	VCLI_Out(cli, "\"%s\" is one argument too many: remove it", arg);
	VCLI_SetResult(cli, CLIS_PARAM);
	return (-1);
}
