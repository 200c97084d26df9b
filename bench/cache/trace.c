/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Traces, and what the programs of this folder say about wrong arguments.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/mman.h>
#include <sys/stat.h>

#include "trace.h"

const char *program;

void
fail(const char *what, const char *why)
{

	(void)fprintf(stderr, "%s: %s: %s\n", program, what, why);
	exit(2);
}

double
number(const char *option, const char *value, double low, double high)
{
	char *end, why[120];
	double x = strtod(value, &end);

	if (end == value || *end != '\0' || !(x >= low && x <= high)) {
		(void)snprintf(why, sizeof why, "%.20s is not allowed: use a "
		    "number from %.0f to %.0f", value, low, high);
		fail(option, why);
	}
	return (x);
}

const struct record *
trace_open(const char *path, size_t *n)
{
	int fd = open(path, O_RDONLY);
	struct stat st;
	char why[100];
	void *p;

	if (fd < 0 || fstat(fd, &st) != 0)
		fail(path, strerror(errno));
	*n = (size_t)st.st_size / sizeof(struct record);
	if (*n == 0 || (size_t)st.st_size % sizeof(struct record) != 0) {
		(void)snprintf(why, sizeof why, "%lld bytes, not records of %zu "
		    "bytes: is it an oracleGeneral trace?",
		    (long long)st.st_size, sizeof(struct record));
		fail(path, why);
	}
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		fail(path, strerror(errno));
	return (p);
}
