/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Preloaded into varnishd: who parses waits in recv(2) until the test opens
 * the FIFO $HELD_GO for writing.  With $HELD_ON, only once there is that file.
 */

#define _GNU_SOURCE
#include <assert.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

typedef ssize_t recv_f(int, void *, size_t, int);

static atomic_int opened;

ssize_t
recv(int s, void *buf, size_t len, int flags)
{
	recv_f *real = (recv_f *)dlsym(RTLD_NEXT, "recv");
	const char *on = getenv("HELD_ON");
	int fd;

	if ((flags & MSG_DONTWAIT) && !opened &&
	    (on == NULL || access(on, F_OK) == 0)) {
		fd = open(getenv("HELD_GO"), O_RDONLY);
		assert(fd >= 0);
		opened = 1;
		(void)close(fd);
	}
	return (real(s, buf, len, flags));
}
