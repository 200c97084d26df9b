/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Preloaded into varnishd: a worker's first vector that must not block ends
 * within its first part, and from then on no socket has room for what must
 * not block.  What may block is sent.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <pthread.h>
#include <sys/socket.h>

#define TAKEN	4	/* bytes, of the first part */

static atomic_int full;

static int
in_worker(void)
{
	char name[16] = "";

	(void)pthread_getname_np(pthread_self(), name, sizeof name);
	return (strcmp(name, "cache-worker") == 0);
}

static ssize_t
no_room(void)
{

	errno = EAGAIN;
	return (-1);
}

ssize_t
sendmsg(int fd, const struct msghdr *msg, int flags)
{
	ssize_t (*real)(int, const struct msghdr *, int);

	real = (ssize_t (*)(int, const struct msghdr *, int))
	    dlsym(RTLD_NEXT, "sendmsg");
	if (!(flags & MSG_DONTWAIT) || !in_worker())
		return (real(fd, msg, flags));
	if (msg->msg_iovlen < 2 || msg->msg_iov->iov_len <= TAKEN)
		return (full ? no_room() : real(fd, msg, flags));
	if (atomic_exchange(&full, 1))
		return (no_room());
	return (send(fd, msg->msg_iov->iov_base, TAKEN, MSG_NOSIGNAL));
}

ssize_t
send(int fd, const void *ptr, size_t len, int flags)
{
	ssize_t (*real)(int, const void *, size_t, int);

	real = (ssize_t (*)(int, const void *, size_t, int))
	    dlsym(RTLD_NEXT, "send");
	if (full && (flags & MSG_DONTWAIT) && in_worker())
		return (no_room());
	return (real(fd, ptr, len, flags));
}

int
poll(struct pollfd *fds, nfds_t n, int ms)
{
	int (*real)(struct pollfd *, nfds_t, int);

	real = (int (*)(struct pollfd *, nfds_t, int))
	    dlsym(RTLD_NEXT, "poll");
	if (full && n == 1 && fds->events == POLLOUT && in_worker())
		return (real(NULL, 0, ms));
	return (real(fds, n, ms));
}
