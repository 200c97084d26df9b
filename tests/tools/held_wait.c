/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Preloaded into varnishd: the first wait of a worker's millisecond that
 * ends by time does not get its lock back before the test says so, by
 * $HELD_GO; $HELD_NOW tells the test that it has come so far.  Both are
 * FIFOs.
 */

#define _GNU_SOURCE
#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SHORT_NS	2000000

typedef int timedwait_f(pthread_cond_t *, pthread_mutex_t *,
    const struct timespec *);

static atomic_flag held = ATOMIC_FLAG_INIT;

static long
left_ns(const struct timespec *until)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return ((until->tv_sec - now.tv_sec) * 1000000000L +
	    until->tv_nsec - now.tv_nsec);
}

static void
meet(const char *variable, int flags)
{
	char c = 'x';
	int fd;

	fd = open(getenv(variable), flags);
	assert(fd >= 0);
	if (flags == O_WRONLY)
		assert(write(fd, &c, 1) == 1);
	else
		assert(read(fd, &c, 1) == 1);
	(void)close(fd);
}

int
pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mtx,
    const struct timespec *until)
{
	timedwait_f *real;
	char name[16] = "";
	int r, is_short = left_ns(until) < SHORT_NS;

	real = (timedwait_f *)dlvsym(RTLD_NEXT, "pthread_cond_timedwait",
	    "GLIBC_2.3.2");
	if (real == NULL)
		real = (timedwait_f *)dlsym(RTLD_NEXT, "pthread_cond_timedwait");
	r = real(cond, mtx, until);
	(void)pthread_getname_np(pthread_self(), name, sizeof name);
	if (r != ETIMEDOUT || !is_short || strcmp(name, "cache-worker") != 0 ||
	    atomic_flag_test_and_set(&held))
		return (r);
	(void)pthread_mutex_unlock(mtx);
	meet("HELD_NOW", O_WRONLY);
	meet("HELD_GO", O_RDONLY);
	(void)pthread_mutex_lock(mtx);
	return (r);
}
