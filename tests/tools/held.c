/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Preloaded into varnishd: a thread waits at one of these places while there is
 * the file that the variable names. It says so with a file of the same name and
 * `.held`.
 *
 *  HELD_MAP	a worker, before it reads the host map
 *  HELD_KEEPER	the keeper, between two rounds
 *  HELD_RECV	who parses, in recv(2)
 *  HELD_WAIT	the first worker whose wait of a millisecond ends by time, before
 *		it has its lock back
 */

#include "preload.h"

#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>

#define SHORT_NS	2000000

static __thread int keeper;

static void
hold(const char *variable)
{
	const struct timespec ts = { 0, 1000000 };
	char said[4096];
	int fd;

	if (!is_there(variable))
		return;
	(void)snprintf(said, sizeof said, "%s.held", getenv(variable));
	fd = open(said, O_WRONLY | O_CREAT, 0600);
	assert(fd >= 0);
	(void)close(fd);
	while (is_there(variable))
		(void)REAL(nanosleep)(&ts, NULL);
}

int
pthread_rwlock_rdlock(pthread_rwlock_t *l)
{
	if (!keeper)
		hold("HELD_MAP");
	return (REAL(pthread_rwlock_rdlock)(l));
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
	return (REAL(nanosleep)(ts, left));
}

ssize_t
recv(int s, void *buf, size_t len, int flags)
{
	if (flags & MSG_DONTWAIT)
		hold("HELD_RECV");
	return (REAL(recv)(s, buf, len, flags));
}

static int64_t
left_ns(const struct timespec *until)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return ((until->tv_sec - now.tv_sec) * S_NS +
	    until->tv_nsec - now.tv_nsec);
}

int
pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mtx,
    const struct timespec *until)
{
	static atomic_flag held = ATOMIC_FLAG_INIT;
	int r, is_short = left_ns(until) < SHORT_NS;

	r = real_timedwait()(cond, mtx, until);
	if (r != ETIMEDOUT || !is_short || !in_worker() ||
	    !is_there("HELD_WAIT") || atomic_flag_test_and_set(&held))
		return (r);
	(void)pthread_mutex_unlock(mtx);
	hold("HELD_WAIT");
	(void)pthread_mutex_lock(mtx);
	return (r);
}
