/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Check files of tenants, without varnishd: sandpaper.tenants_file() in
 * doc/reference/vmod.md says what a line is.
 */

#include <stdio.h>
#include <string.h>

#include "tenants/file.h"

static const char usage[] =
    "Usage: sandpaper-check FILE..\n"
    "Check files of tenants, as one VCL would read them.\n"
    "\n"
    "Each error is a line with the file, the number of the line and the "
    "reason.\n"
    "The status is 0 if there is none, 1 if there are errors, and 2 if the "
    "arguments\n"
    "are wrong. Nothing is changed, and no varnishd needs to run.\n";

static void
tell(void *priv, unsigned line, const char *why)
{
	const char *path = priv;

	if (line == 0)
		fprintf(stderr, "%s: %s\n", path, why);
	else
		fprintf(stderr, "%s:%u: %s\n", path, line, why);
}

int
main(int argc, char **argv)
{
	unsigned errors = 0, groups = 0;
	const struct map_tenant *t;
	struct hostmap map;
	int i;

	if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
		printf("%s", usage);
		return (0);
	}
	if (argc < 2 || argv[1][0] == '-') {
		fprintf(stderr, "%s", usage);
		return (2);
	}
	MAP_Init(&map);
	for (i = 1; i < argc; i++)
		errors += FILE_Read(&map, argv[i], tell, argv[i]);
	for (t = map.first; t != NULL; t = t->next)
		groups += t->is_group != 0;
	if (errors > 0)
		fprintf(stderr, "%u error%s\n", errors, errors > 1 ? "s" : "");
	else
		printf("no errors: tenants %u, groups %u, patterns of Hosts "
		    "%zu\n", map.tenants - groups, groups, map.nhost);
	MAP_Fini(&map);
	return (errors > 0);
}
