/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Send the requests of a trace to a cache, as fast as it answers, and count the
 * hits.
 *
 * Each connection takes the next request of the trace when it has its answer.
 * So with N connections a request is at most N requests early or late.  A
 * request is GET /OBJECT/BYTES, its Host is tTENANT.example.  A hit is an
 * answer whose header X-Cache begins with h or H.  Bodies are thrown away by
 * the kernel.
 *
 * The result is one JSON object.
 */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "trace.h"

#define EVENTS		256
#define HEAD		8192		/* bytes of an answer's headers */
#define SMALL		65536		/* bytes: response times are of these */
#define TICK		1e-5		/* s: of the response times */
#define TICKS		1000000

struct conn {
	int			fd;
	const struct record	*asks;
	size_t			got;		/* bytes of the headers */
	uint64_t		body;		/* bytes that remain */
	int			in_body, hit;
	double			since;		/* s, of the request */
	char			in[HEAD];
};

static struct {
	unsigned		connections;
	uint64_t		requests, window;
	uint32_t		most;		/* bytes of an object */
	struct sockaddr_in	to;
} options = { .connections = 32, .requests = UINT64_MAX, .window = 100000,
    .most = UINT32_MAX };

static const struct record *trace;
static size_t length;
static uint64_t next_request, answered;
static unsigned busy;			/* connections */
static struct count {
	uint64_t		requests, hits, bytes, hit_bytes;
} all, window;
static unsigned first = 1;
static uint32_t ticks[TICKS], timed;

static double
now(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return ((double)ts.tv_sec + (double)ts.tv_nsec * 1e-9);
}

static uint32_t
size_of(const struct record *r)
{

	return (r->size < options.most ? r->size : options.most);
}

/*--------------------------------------------------------------------
 * Requests and answers
 */

static void
ask(struct conn *c)
{
	char request[256];
	int l;

	if (next_request == length) {
		c->asks = NULL;
		busy--;
		return;
	}
	c->asks = &trace[next_request++];
	c->got = 0;
	c->in_body = 0;
	c->since = now();
	l = snprintf(request, sizeof request, "GET /%" PRIu64 "/%u HTTP/1.1\r\n"
	    "Host: t%u.example\r\n\r\n", c->asks->object, size_of(c->asks),
	    (unsigned)(c->asks->object >> 48));
	if (send(c->fd, request, (size_t)l, MSG_NOSIGNAL) != l)
		fail("send", strerror(errno));
}

static void
print_window(void)
{

	(void)printf("%s\n  {\"requests\": %" PRIu64 ", \"objects\": %.6f, "
	    "\"bytes\": %.6f}", first ? "" : ",", window.requests,
	    (double)window.hits / (double)window.requests,
	    (double)window.hit_bytes / (double)window.bytes);
	(void)fflush(stdout);
	first = 0;
	memset(&window, 0, sizeof window);
}

static void
count(struct count *k, const struct conn *c)
{

	k->requests++;
	k->bytes += size_of(c->asks);
	if (c->hit) {
		k->hits++;
		k->hit_bytes += size_of(c->asks);
	}
}

/* The answer is complete. */
static void
done(struct conn *c)
{
	double tick = (now() - c->since) / TICK;

	answered++;
	count(&all, c);
	count(&window, c);
	if (size_of(c->asks) <= SMALL) {
		ticks[tick < TICKS ? (unsigned)tick : TICKS - 1]++;
		timed++;
	}
	if (window.requests == options.window || answered == length)
		print_window();
	ask(c);
}

/* Read the headers in c->in, which end at `end`. */
static void
headers(struct conn *c, const char *end)
{
	const char *p;
	size_t body = c->got - (size_t)(end - c->in);

	c->in[c->got < HEAD ? c->got : HEAD - 1] = '\0';
	if (strncmp(c->in, "HTTP/1.1 200 ", 13) != 0)
		fail("the cache answers", strtok(c->in, "\r\n"));
	p = strcasestr(c->in, "\nContent-Length: ");
	if (p == NULL || p > end ||
	    strtoull(p + 17, NULL, 10) != size_of(c->asks))
		fail("Content-Length", "not as in the trace");
	p = strcasestr(c->in, "\nX-Cache: ");
	if (p == NULL || p > end)
		fail("X-Cache", "the answer does not have it");
	c->hit = p[10] == 'h' || p[10] == 'H';
	c->in_body = 1;
	c->body = size_of(c->asks) - body;
}

/* Read what has come. */
static void
read_some(struct conn *c)
{
	const char *end;
	ssize_t l;

	while (c->asks != NULL) {
		if (c->in_body && c->body == 0) {
			done(c);
			continue;
		}
		if (c->in_body)
			l = recv(c->fd, NULL, c->body, MSG_TRUNC);
		else
			l = recv(c->fd, c->in + c->got, HEAD - 1 - c->got, 0);
		if (l < 0 && errno == EAGAIN)
			return;
		if (l <= 0)
			fail("the cache closed a connection", l < 0 ?
			    strerror(errno) : "after a part of an answer");
		if (c->in_body) {
			c->body -= (uint64_t)l;
			continue;
		}
		c->got += (size_t)l;
		end = memmem(c->in, c->got, "\r\n\r\n", 4);
		if (end != NULL)
			headers(c, end + 4);
		else if (c->got == HEAD - 1)
			fail("the cache answers", "more than 8191 bytes of "
			    "headers");
	}
}

/*--------------------------------------------------------------------
 * The run
 */

static void
begin(int set, struct conn *c)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	int on = 1;

	c->fd = socket(AF_INET, SOCK_STREAM, 0);
	if (c->fd < 0 || connect(c->fd, (void *)&options.to,
	    sizeof options.to) != 0)
		fail("connect", strerror(errno));
	(void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	if (fcntl(c->fd, F_SETFL, O_NONBLOCK) != 0)
		fail("connect", strerror(errno));
	ev.data.ptr = c;
	if (epoll_ctl(set, EPOLL_CTL_ADD, c->fd, &ev) != 0)
		fail("epoll_ctl", strerror(errno));
	busy++;
	ask(c);
}

static double
percentile(double part)
{
	uint64_t sum = 0;
	unsigned u;

	for (u = 0; u < TICKS; u++) {
		sum += ticks[u];
		if ((double)sum >= part * timed)
			break;
	}
	return (u * TICK);
}

static void
usage(FILE *f)
{

	(void)fprintf(f, "use: replay [OPTION..] ADDRESS PORT TRACE\n"
	    "  --connections N  (32)\n"
	    "  --requests N     of the trace (all)\n"
	    "  --window N       requests of a line of the result (100000)\n"
	    "  --most BYTES     the largest object: larger ones count as so "
	    "large\n");
}

static void
arguments(int argc, char **argv)
{
	static const struct option known[] = {
		{ "connections", required_argument, NULL, 'c' },
		{ "requests", required_argument, NULL, 'n' },
		{ "window", required_argument, NULL, 'w' },
		{ "most", required_argument, NULL, 'm' },
		{ NULL, 0, NULL, 0 }
	};
	int o;

	while ((o = getopt_long(argc, argv, "", known, NULL)) != -1)
		switch (o) {
		case 'c':
			options.connections = (unsigned)number("--connections",
			    optarg, 1, 10000);
			break;
		case 'n':
			options.requests = (uint64_t)number("--requests",
			    optarg, 1, UINT32_MAX);
			break;
		case 'w':
			options.window = (uint64_t)number("--window",
			    optarg, 1, UINT32_MAX);
			break;
		case 'm':
			options.most = (uint32_t)number("--most", optarg,
			    1, UINT32_MAX);
			break;
		default:
			usage(stderr);
			exit(2);
		}
	if (argc - optind != 3) {
		usage(stderr);
		exit(2);
	}
	options.to.sin_family = AF_INET;
	options.to.sin_port = htons((uint16_t)number("PORT", argv[optind + 1],
	    1, 65535));
	if (inet_pton(AF_INET, argv[optind], &options.to.sin_addr) != 1)
		fail(argv[optind], "is not an IPv4 address");
	trace = trace_open(argv[optind + 2], &length);
	if (length > options.requests)
		length = options.requests;
}

int
main(int argc, char **argv)
{
	struct epoll_event ev[EVENTS];
	struct conn *conns;
	double began;
	int set, n, i;
	unsigned u;

	program = "replay";
	arguments(argc, argv);
	set = epoll_create1(0);
	conns = calloc(options.connections, sizeof *conns);
	if (set < 0 || conns == NULL)
		fail("start", strerror(errno));
	(void)printf("{\n \"windows\": [");
	began = now();
	for (u = 0; u < options.connections; u++)
		begin(set, &conns[u]);
	while (busy > 0) {
		n = epoll_wait(set, ev, EVENTS, 60000);
		if (n == 0)
			fail("the cache", "did not answer for 60 s");
		for (i = 0; i < n; i++)
			read_some(ev[i].data.ptr);
	}
	(void)printf("\n ],\n \"requests\": %" PRIu64 ", \"objects\": %.6f, "
	    "\"bytes\": %.6f, \"seconds\": %.3f, \"requests_per_second\": %.1f,"
	    "\n \"small_p50_s\": %.5f, \"small_p99_s\": %.5f\n}\n",
	    all.requests, (double)all.hits / (double)all.requests,
	    (double)all.hit_bytes / (double)all.bytes, now() - began,
	    (double)all.requests / (now() - began), percentile(.5),
	    percentile(.99));
	return (0);
}
