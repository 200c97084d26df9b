/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Preloaded into varnishd: each call that asks about a socket adds a letter to
 * the file $CALLS, and the kernel's answers are the test's.
 *
 *  t  getsockopt(2) for TCP_INFO.  Since the last one the sender was busy for
 *     100 us, of which the reader's window held it up for $RWND us.
 *  w  poll(2) for 5 ms at most, until a socket has room
 *  r  poll(2) for 1 ms, until it has bytes
 *  h  poll(2) for 0 ms: has the client hung up?
 *
 * With $LATE, the first recv(2) of a body finds no bytes yet.
 */

#include "preload.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>

static void
note(char c)
{
	int fd = open(getenv("CALLS"), O_WRONLY | O_APPEND);

	assert(fd >= 0);
	assert(write(fd, &c, 1) == 1);
	(void)close(fd);
}

int
getsockopt(int s, int level, int name, void *p, socklen_t *l)
{
	static atomic_int n;
	struct tcp_info *ti = p;
	int looks;

	if (level != IPPROTO_TCP || name != TCP_INFO || getenv("RWND") == NULL)
		return (REAL(getsockopt)(s, level, name, p, l));
	assert(*l == sizeof *ti);
	note('t');
	looks = ++n;
	memset(ti, 0, sizeof *ti);
	ti->tcpi_busy_time = (unsigned)looks * 100;
	ti->tcpi_rwnd_limited = (unsigned)looks * (unsigned)atoi(
	    getenv("RWND"));
	return (0);
}

int
poll(struct pollfd *p, nfds_t n, int ms)
{
	int good = n == 1 && fcntl(p->fd, F_GETFD) >= 0;

	/* The others are Varnish's */
	if (good && ms == 5 && p->events == POLLOUT)
		note('w');
	if (good && ms == 1 && p->events == POLLIN)
		note('r');
	if (good && ms == 0 && p->events == 0)
		note('h');
	return (REAL(poll)(p, n, ms));
}

ssize_t
recv(int s, void *p, size_t l, int flags)
{
	static atomic_int came;
	char c;

	if (getenv("LATE") != NULL && (flags & MSG_DONTWAIT) &&
	    REAL(recv)(s, &c, 1, MSG_PEEK | MSG_DONTWAIT) == 1 && c == 'B' &&
	    !came++) {
		errno = EAGAIN;
		return (-1);
	}
	return (REAL(recv)(s, p, l, flags));
}
