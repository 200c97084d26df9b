/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Preloaded into varnishd: these are refused while there is the file that the
 * variable names.
 *
 *  NO_THREADS	a new thread
 *  NO_MEMORY	memory for Sandpaper's tables, which grow with traffic: calloc()
 *		of 1024 connections, and of a multiple of 64 tenants and one
 *  NO_PERF	perf_event_open(2), as seccomp or perf_event_paranoid do it
 *  NO_TRYLOCK	a lock that is tried: another thread always has it
 *  NO_NETLINK	an answer of rtnetlink; the file grows by a byte
 */

#include "preload.h"

#include <stdarg.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define CONNECTIONS	1024
#define TENANTS		64

int
pthread_create(pthread_t *thread, const pthread_attr_t *attr,
    void *(*func)(void *), void *priv)
{
	if (is_there("NO_THREADS"))
		return (EAGAIN);
	return (REAL(pthread_create)(thread, attr, func, priv));
}

void *
calloc(size_t n, size_t size)
{
	static void *(*real)(size_t, size_t);

	if ((n == CONNECTIONS || (n > TENANTS && n % TENANTS == 1)) &&
	    is_there("NO_MEMORY")) {
		errno = ENOMEM;
		return (NULL);
	}
	if (real == NULL)
		real = REAL(calloc);
	return (real(n, size));
}

long
syscall(long number, ...)
{
	long a[6];
	va_list ap;
	int i;

	if (number == SYS_perf_event_open && is_there("NO_PERF")) {
		errno = EACCES;
		return (-1);
	}
	va_start(ap, number);
	for (i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	return (REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]));
}

int
pthread_mutex_trylock(pthread_mutex_t *m)
{
	if (is_there("NO_TRYLOCK"))
		return (EBUSY);
	return (REAL(pthread_mutex_trylock)(m));
}

static int
is_netlink(int fd)
{
	socklen_t l = sizeof (int);
	int domain = 0;

	return (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &l) == 0 &&
	    domain == AF_NETLINK);
}

ssize_t
recv(int fd, void *buf, size_t len, int flags)
{
	int file;

	if (is_netlink(fd) && is_there("NO_NETLINK")) {
		file = open(getenv("NO_NETLINK"), O_WRONLY | O_APPEND);
		assert(write(file, "", 1) == 1);
		assert(close(file) == 0);
		errno = EAGAIN;
		return (-1);
	}
	return (REAL(recv)(fd, buf, len, flags));
}
