/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Preloaded into varnishd: a worker's syslog(), by std.syslog(), burns
 * $BURN_MS of CPU time, and more until the test says that it is enough, by
 * $BURN_GO.  $BURN_NOW tells the test that it has begun, and at its end how
 * many ns it were.  Both are FIFOs.
 */

#include "preload.h"

#include <stdarg.h>
#include <stdio.h>
#include <syslog.h>

static int64_t
cpu_ns(void)
{
	struct timespec ts;

	assert(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts) == 0);
	return (ts.tv_sec * S_NS + ts.tv_nsec);
}

static void
say(int64_t ns)
{
	int fd;

	fd = open(getenv("BURN_NOW"), O_WRONLY);
	assert(fd >= 0);
	assert(dprintf(fd, "%jd", (intmax_t)ns) > 0);
	(void)close(fd);
}

static void
burn(void)
{
	int64_t from, least = atoll(getenv("BURN_MS")) * 1000000;
	char c;
	int fd;

	fd = open(getenv("BURN_GO"), O_RDONLY | O_NONBLOCK);
	assert(fd >= 0);
	say(0);
	from = cpu_ns();
	while (cpu_ns() - from < least || read(fd, &c, 1) != 1)
		continue;
	(void)close(fd);
	say(cpu_ns() - from);
}

void
syslog(int priority, const char *fmt, ...)
{
	va_list ap;

	if (in_worker()) {
		burn();
		return;
	}
	va_start(ap, fmt);
	vsyslog(priority, fmt, ap);
	va_end(ap);
}
