/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * An origin for a trace: GET /OBJECT/BYTES gives so many bytes.
 *
 * One thread, one epoll set.  It says "ready" when it listens.  At the end, on
 * SIGTERM or SIGINT, it prints how many requests it had, and how many bytes of
 * bodies it sent, as one JSON object.
 */

#define _GNU_SOURCE

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define EVENTS		256
#define HEAD		8192		/* bytes of a request, at most */
#define BLOCK		(1 << 18)	/* bytes of one send() */

struct client {
	int			fd;
	size_t			got;		/* bytes of the request */
	size_t			head, head_sent;
	uint64_t		body;		/* bytes that remain */
	char			in[HEAD], out[256];
};

static char block[BLOCK];
static uint64_t requests, bytes;
static volatile sig_atomic_t ends;

static void
end(int sig)
{

	(void)sig;
	ends = 1;
}

static void
fail(const char *what)
{

	(void)fprintf(stderr, "origin: %s: %s\n", what, strerror(errno));
	exit(2);
}

/* Prepare the answer to the request in c->in. */
static void
answer(struct client *c)
{
	uint64_t object, size;

	requests++;
	if (sscanf(c->in, "GET /%" SCNu64 "/%" SCNu64, &object, &size) != 2) {
		c->head = (size_t)snprintf(c->out, sizeof c->out,
		    "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
		c->body = 0;
	} else {
		c->head = (size_t)snprintf(c->out, sizeof c->out,
		    "HTTP/1.1 200 OK\r\nContent-Length: %" PRIu64 "\r\n"
		    "Cache-Control: max-age=86400\r\n\r\n", size);
		c->body = size;
	}
	c->head_sent = 0;
}

/* Send what the socket takes.  Returns -1 if the client has gone. */
static int
send_some(struct client *c)
{
	ssize_t l;

	while (c->head_sent < c->head) {
		l = send(c->fd, c->out + c->head_sent, c->head - c->head_sent,
		    MSG_NOSIGNAL | (c->body > 0 ? MSG_MORE : 0));
		if (l < 0)
			return (errno == EAGAIN ? 0 : -1);
		c->head_sent += (size_t)l;
	}
	while (c->body > 0) {
		l = send(c->fd, block, c->body < BLOCK ? c->body : BLOCK,
		    MSG_NOSIGNAL);
		if (l < 0)
			return (errno == EAGAIN ? 0 : -1);
		c->body -= (uint64_t)l;
		bytes += (uint64_t)l;
	}
	return (0);
}

/* Read and answer requests until the socket is empty, or full. */
static int
serve(struct client *c)
{
	char *after;
	ssize_t l;

	for (;;) {
		if (send_some(c) < 0)
			return (-1);
		if (c->head_sent < c->head || c->body > 0)
			return (0);
		after = memmem(c->in, c->got, "\r\n\r\n", 4);
		if (after != NULL) {
			answer(c);
			after += 4;
			c->got -= (size_t)(after - c->in);
			memmove(c->in, after, c->got);
			continue;
		}
		if (c->got == sizeof c->in)
			return (-1);
		l = recv(c->fd, c->in + c->got, sizeof c->in - c->got, 0);
		if (l <= 0)
			return (l < 0 && errno == EAGAIN ? 0 : -1);
		c->got += (size_t)l;
	}
}

static int
listen_at(const char *address, const char *port)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
	    .sin_port = htons((uint16_t)atoi(port)) };
	int fd, on = 1;

	if (inet_pton(AF_INET, address, &at.sin_addr) != 1) {
		errno = EINVAL;
		fail(address);
	}
	fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (fd < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
	    bind(fd, (struct sockaddr *)&at, sizeof at) != 0 ||
	    listen(fd, 1024) != 0)
		fail(port);
	return (fd);
}

static void
welcome(int set, int listener)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLOUT | EPOLLET };
	struct client *c;
	int fd, on = 1;

	while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
		c = calloc(1, sizeof *c);
		if (c == NULL)
			fail("memory");
		c->fd = fd;
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
		ev.data.ptr = c;
		if (epoll_ctl(set, EPOLL_CTL_ADD, fd, &ev) != 0)
			fail("epoll_ctl");
	}
}

int
main(int argc, char **argv)
{
	struct epoll_event ev[EVENTS];
	struct client *c;
	int listener, set, n, i;

	if (argc != 3) {
		(void)fprintf(stderr, "use: origin ADDRESS PORT\n");
		return (2);
	}
	(void)signal(SIGTERM, end);
	(void)signal(SIGINT, end);
	listener = listen_at(argv[1], argv[2]);
	set = epoll_create1(0);
	ev[0].events = EPOLLIN;
	ev[0].data.ptr = NULL;
	if (set < 0 || epoll_ctl(set, EPOLL_CTL_ADD, listener, &ev[0]) != 0)
		fail("epoll");
	(void)printf("ready\n");
	(void)fflush(stdout);
	while (!ends) {
		n = epoll_wait(set, ev, EVENTS, -1);
		for (i = 0; i < n; i++) {
			c = ev[i].data.ptr;
			if (c == NULL) {
				welcome(set, listener);
			} else if (serve(c) != 0) {
				(void)close(c->fd);
				free(c);
			}
		}
	}
	(void)printf("{\"requests\": %" PRIu64 ", \"bytes\": %" PRIu64 "}\n",
	    requests, bytes);
	return (0);
}
