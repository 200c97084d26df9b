/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Preloaded into varnishd: while there is the file $HELD_MAP, a worker waits
 * before it reads the host map. While there is the file $HELD_KEEPER, the keeper
 * waits between two rounds. Who waits says so with a file of the same name and
 * `.held`.
 */

#define _GNU_SOURCE
#include <assert.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

typedef int rdlock_f(pthread_rwlock_t *);
typedef int nanosleep_f(const struct timespec *, struct timespec *);

static __thread int keeper;

static int
pause_ns(const struct timespec *ts, struct timespec *left)
{
	nanosleep_f *real = (nanosleep_f *)dlsym(RTLD_NEXT, "nanosleep");

	return (real(ts, left));
}

static void
hold(const char *name)
{
	const struct timespec ts = { 0, 1000000 };
	const char *file = getenv(name);
	char said[4096];
	int fd;

	if (file == NULL || access(file, F_OK) != 0)
		return;
	(void)snprintf(said, sizeof said, "%s.held", file);
	fd = open(said, O_WRONLY | O_CREAT, 0600);
	assert(fd >= 0);
	(void)close(fd);
	while (access(file, F_OK) == 0)
		(void)pause_ns(&ts, NULL);
}

int
pthread_rwlock_rdlock(pthread_rwlock_t *l)
{
	rdlock_f *real = (rdlock_f *)dlsym(RTLD_NEXT, "pthread_rwlock_rdlock");

	if (!keeper)
		hold("HELD_MAP");
	return (real(l));
}

/* Nobody else sleeps for 10 or 50 ms, perhaps rounded down */
int
nanosleep(const struct timespec *ts, struct timespec *left)
{
	long ms = (ts->tv_nsec + 500000) / 1000000;

	if (ts->tv_sec == 0 && (ms == 10 || ms == 50)) {
		keeper = 1;
		hold("HELD_KEEPER");
	}
	return (pause_ns(ts, left));
}
