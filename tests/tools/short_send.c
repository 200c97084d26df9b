/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Preloaded into varnishd: a worker's first vector that must not block ends
 * within its first part, and from then on no socket has room for what must
 * not block.  What may block is sent.
 */

#include "preload.h"

#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>

#define TAKEN	4	/* bytes, of the first part */

static atomic_int full;

static ssize_t
no_room(void)
{

	errno = EAGAIN;
	return (-1);
}

ssize_t
sendmsg(int fd, const struct msghdr *msg, int flags)
{
	if (!(flags & MSG_DONTWAIT) || !in_worker())
		return (REAL(sendmsg)(fd, msg, flags));
	if (msg->msg_iovlen < 2 || msg->msg_iov->iov_len <= TAKEN)
		return (full ? no_room() : REAL(sendmsg)(fd, msg, flags));
	if (atomic_exchange(&full, 1))
		return (no_room());
	return (send(fd, msg->msg_iov->iov_base, TAKEN, MSG_NOSIGNAL));
}

ssize_t
send(int fd, const void *ptr, size_t len, int flags)
{
	if (full && (flags & MSG_DONTWAIT) && in_worker())
		return (no_room());
	return (REAL(send)(fd, ptr, len, flags));
}

int
poll(struct pollfd *fds, nfds_t n, int ms)
{
	if (full && n == 1 && fds->events == POLLOUT && in_worker())
		return (REAL(poll)(NULL, 0, ms));
	return (REAL(poll)(fds, n, ms));
}
