/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Runs files through a fuzz target, without libFuzzer, one test a file: all
 * in the folder that is named, by default tests/fuzz/corpus/TARGET.
 */

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>

#include "fuzz.h"

#include <cmocka.h>

#define FILES_MAX	1000
#define FILE_MAX	65536

static struct dirent **file;
static char folder[2048];

static void
run(void **state)
{
	static uint8_t buf[FILE_MAX];
	char path[4096];
	uint8_t *exact;
	size_t len;
	FILE *f;

	(void)snprintf(path, sizeof path, "%s/%s", folder,
	    (const char *)*state);
	f = fopen(path, "rb");
	assert_non_null(f);
	len = fread(buf, 1, sizeof buf, f);
	(void)fclose(f);
	exact = malloc(len + 1);	/* so that ASan sees its end */
	assert_non_null(exact);
	memcpy(exact, buf, len);
	(void)LLVMFuzzerTestOneInput(exact, len);
	free(exact);
}

static int
visible(const struct dirent *d)
{
	return (d->d_name[0] != '.');
}

int
main(int argc, char **argv)
{
	static struct CMUnitTest tests[FILES_MAX];
	const char *name;
	int i, n;

	name = strrchr(argv[0], '/');
	name = name == NULL ? argv[0] : name + 1;
	if (argc > 1)
		(void)snprintf(folder, sizeof folder, "%s", argv[1]);
	else if (!strncmp(name, "fuzz_", 5))
		(void)snprintf(folder, sizeof folder, "tests/fuzz/corpus/%s",
		    name + 5);
	n = scandir(folder, &file, visible, alphasort);
	if (n < 1 || n > FILES_MAX) {
		(void)fprintf(stderr, "%s: 1 to %d files, not %d\n", folder,
		    FILES_MAX, n);
		return (1);
	}
	for (i = 0; i < n; i++)
		tests[i] = (struct CMUnitTest){ .name = file[i]->d_name,
		    .test_func = run, .initial_state = file[i]->d_name };
	i = _cmocka_run_group_tests(folder, tests, (size_t)n, NULL, NULL);
	while (n > 0)
		free(file[--n]);
	free(file);
	return (i);
}
