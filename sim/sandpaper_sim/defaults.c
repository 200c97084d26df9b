/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The defaults of varnishd's parameters, from its own table.
 */

#include <string.h>

#include "glue.h"

const char *
sim_default(const char *name)
{
	static const char * const defaults[][2] = {
#define PARAM_SIMPLE(nm, ty, mi, ma, de, ...) { #nm, de },
#include "varnishd/tbl/sandpaper_params.h"
#undef PARAM_SIMPLE
	};
	size_t n;

	for (n = 0; n < sizeof defaults / sizeof *defaults; n++)
		if (!strcmp(defaults[n][0], name))
			return (defaults[n][1]);
	return (NULL);
}
