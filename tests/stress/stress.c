/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Preloaded into varnishd (tools/stress): before and after calls that other
 * threads depend on, a thread sometimes yields or sleeps. So orders happen
 * that are rare otherwise: what is checked is not true any more when it is
 * used, a signal comes before its wait.
 *
 * STRESS_SEED decides at which calls, for each thread by its number. The
 * kernel decides the rest: a seed makes an order likely, not certain.
 * Of a million such points STRESS_PPM sleep, and nine times as many yield. A
 * thread has calm and busy times, so that some are much slower than others.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define YIELDS		10		/* of so many, one is a sleep */
#define SHORTEST	50000		/* ns, of a sleep */
#define LONGEST		500000
#define TIMES		1000		/* calls, at most, in calm or busy times */
#define BUSY		2		/* half of the times have them all */

static uint64_t seed;
static uint32_t ppm;
static _Atomic uint64_t threads;

static uint32_t
draw(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return ((uint32_t)(z >> 32));
}

static void
disturb(void)
{
	static __thread uint64_t state;
	static __thread uint32_t left, level;
	struct timespec ts = { 0, 0 };
	int e = errno;
	uint32_t u;

	if (state == 0)
		state = (seed << 32 | ++threads) * 2654435761 + 1;
	if (left-- == 0) {
		left = draw(&state) % TIMES;
		level = draw(&state) % 2 * ppm * BUSY;
	}
	u = draw(&state) % 1000000;
	if (u < level) {
		ts.tv_nsec = SHORTEST +
		    (long)(draw(&state) % (LONGEST - SHORTEST));
		(void)nanosleep(&ts, NULL);
	} else if (u / YIELDS < level)
		(void)sched_yield();
	errno = e;
}

/*
 * Condition variables have an older version, too, which dlsym() would find.
 * dlvsym() is only for them: when it fails it allocates, and locks.
 */
static void *
next(const char *name)
{
	void *p = NULL;

#ifdef __x86_64__
	if (!strncmp(name, "pthread_cond_", 13))
		p = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
#endif
	return (p != NULL ? p : dlsym(RTLD_NEXT, name));
}

#define WRAP(type, name, params, args)					\
type name params;							\
type									\
name params								\
{									\
	static type (*_Atomic real) params;				\
	type r;								\
									\
	if (real == NULL)						\
		real = (type (*) params)next(#name);			\
	disturb();							\
	r = real args;							\
	disturb();							\
	return (r);							\
}

WRAP(int, pthread_mutex_lock, (pthread_mutex_t *m), (m))
WRAP(int, pthread_mutex_trylock, (pthread_mutex_t *m), (m))
WRAP(int, pthread_mutex_unlock, (pthread_mutex_t *m), (m))
WRAP(int, pthread_rwlock_rdlock, (pthread_rwlock_t *l), (l))
WRAP(int, pthread_rwlock_unlock, (pthread_rwlock_t *l), (l))
WRAP(int, pthread_cond_signal, (pthread_cond_t *c), (c))
WRAP(int, pthread_cond_broadcast, (pthread_cond_t *c), (c))
WRAP(int, pthread_cond_wait, (pthread_cond_t *c, pthread_mutex_t *m), (c, m))
WRAP(int, pthread_cond_timedwait, (pthread_cond_t *c, pthread_mutex_t *m,
    const struct timespec *t), (c, m, t))
WRAP(int, epoll_wait, (int fd, struct epoll_event *e, int n, int ms),
    (fd, e, n, ms))
WRAP(int, epoll_ctl, (int fd, int op, int of, struct epoll_event *e),
    (fd, op, of, e))
WRAP(int, timerfd_settime, (int fd, int how, const struct itimerspec *t,
    struct itimerspec *old), (fd, how, t, old))
WRAP(ssize_t, write, (int fd, const void *p, size_t l), (fd, p, l))
WRAP(ssize_t, sendmsg, (int fd, const struct msghdr *m, int f), (fd, m, f))
WRAP(ssize_t, recv, (int fd, void *p, size_t l, int f), (fd, p, l, f))
WRAP(int, accept, (int fd, struct sockaddr *sa, socklen_t *l), (fd, sa, l))
WRAP(int, close, (int fd), (fd))

/* Programs that varnishd starts, such as the C compiler, are left alone */
static void __attribute__((constructor))
begin(void)
{
	const char *s = getenv("STRESS_SEED"), *p = getenv("STRESS_PPM");

	if (s != NULL)
		seed = strtoull(s, NULL, 10);
	if (p != NULL)
		ppm = (uint32_t)strtoul(p, NULL, 10);
	(void)unsetenv("LD_PRELOAD");
}
