/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * A load generator for one proxy and several tenants.  It does what wrk
 * cannot: it counts per connection, so that starved connections show; it
 * counts the requests that still wait at the end, with their age; it offers
 * open-loop load, timed from when a request was due; and it misbehaves on
 * demand.  One thread, one epoll set, so all groups share one window.
 *
 * The window may be cut into phases that take turns, and a group may load in
 * one of them only: so what is to be compared is measured within a second of
 * each other, on a machine that is another one every second.  The first part
 * of a phase, while the last one's requests still run, does not count.
 *
 * With -d it stops asking at the end, and waits for what is still owed: each
 * complete request has to be answered, once.
 *
 * With -i it also prints a JSON line for each interval: what each group saw
 * in it.  So a view can follow a long run.
 *
 * With -b it never sleeps: who wakes a core pays for it, and on one machine
 * that is the proxy.
 *
 * Output: the line "start" when the window opens, "end" when it closes, then
 * one JSON object.  Times are seconds, sizes bytes, rates per second.
 */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "h2.h"

#define NS		1000000000ULL
#define TICK		(NS / 100)	/* timers of the misbehaving modes */
#define TICK_PARTS	10		/* each for some of the connections */
#define HEAD_MAX	8192
#define REQUEST_MAX	4096
#define HOST_MAX	300
#define HEADERS_MAX	32		/* sets of headers a group */
#define BODY_CHUNK	(1 << 20)
#define RESET_AFTER	1024		/* bytes read before a reset */
#define OUT_MAX		(1 << 16)
#define LENGTH		1000000		/* of a body that drips */
#define SLICE		(NS / 10)	/* one entry of "slices" */

enum mode {
	CLOSED,		/* next request when the last one is answered */
	PACED,		/* the same, but `rate` a connection at most */
	OPEN,		/* requests at `rate`, whatever the answers do */
	STALL,		/* ask, never read: zero window */
	SLOW,		/* read `rate` bytes/s a connection */
	RESET,		/* ask, read a little, reset; at `rate` in all */
	DRIP,		/* send one header byte every 1/rate seconds */
	POST,		/* a head, then one byte of body every 1/rate s */
	CONNECT,	/* connect and close; at `rate` in all */
	PIPE,		/* ask, whatever the answers do */
	H2,		/* `streams` at a time */
	H2_RESET,	/* ask and reset; `rate` a connection */
	H2_PING,	/* PING and SETTINGS; `rate` a connection */
};

static const char * const mode_names[] = {
	"closed", "paced", "open", "stall", "slow", "reset", "drip",
	"post", "connect", "pipe", "h2", "h2-reset", "h2-ping", NULL
};

enum state { IDLE, CONNECTING, HEAD, BODY, PARKED };

struct group;

struct conn {
	struct group	*group;
	int		fd;
	enum state	state;
	uint64_t	asked;		/* ns: sent, or due (open loop) */
	uint64_t	due;		/* ns: next timed step */
	uint64_t	body_left;	/* bytes; chunked: of the chunk */
	uint64_t	chunk;		/* its size, as far as it is read */
	uint64_t	got;		/* bytes of this answer */
	int		chunked, last_chunk, ended;
	uint64_t	count;		/* answers inside the window */
	unsigned	head_len, dripped;
	char		*head;
	struct h2	h2;
	uint8_t		*out;		/* pipelined, or frames */
	size_t		out_len, out_off;
	unsigned	owed;		/* answers to these */
	unsigned	match;		/* of an answer's first characters */
	uint32_t	events;		/* that are watched */
};

struct group {
	char		name[64], host[256], path[512];
	enum mode	mode;
	unsigned	nconn;
	double		rate;
	double		patience;	/* s until a request in `late` gives up */
	uint64_t	limit;		/* requests in all, 0: no limit */
	int		random_host, unique;
	unsigned	hosts;		/* h0.HOST and so on, in turn by connection */
	int		fresh;		/* open loop: a connection a request */
	unsigned	every;		/* n-th request asks for PATH?dear */
	unsigned	streams, mark;
	uint32_t	window;		/* of an h2 stream */
	double		on, off, shift;	/* s that it loads, that it rests */
	double		from, till;	/* s: it loads between, 0: always */
	int		resting;
	int		phase;		/* in which it loads, -1: always */
	struct sockaddr_in to;
	char		*headers[HEADERS_MAX];
	unsigned	nheaders;
	struct conn	*conns;
	unsigned	retrying;	/* parked until a reconnect is due */
	uint64_t	sent, answered, done, bytes, errors, not_ok;
	uint64_t	waiting, extra;
	char		first_error[80];
	uint64_t	sent_before;	/* the window */
	uint64_t	done_before, errors_before, not_ok_before; /* interval */
	size_t		nlat_before;
	uint32_t	*lat;		/* us */
	size_t		nlat, alat;
	uint64_t	*slices;
	double		*late;		/* open loop: due, not sent; ring */
	uint64_t	late_head, late_tail;
	uint64_t	next_arrival;
};

#define LATE_MAX	(1 << 20)

static struct sockaddr_in proxy;
static struct group groups[64];
static unsigned ngroups, nslices;
static unsigned nphases = 1, phase;
static uint64_t phase_len, settle, interval;	/* ns */
static uint64_t t_start, t_window, t_end, rng = 88172645463325252ULL, serial;
static int ep, busy, draining;

static void __attribute__((noreturn, format(printf, 1, 2)))
usage(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "loadgen: ");
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\nusage: loadgen [-b] [-w warmup_s] [-t window_s] "
	    "[-s seed] [-p phases] [-l phase_s] [-q settle_s] [-d drain_s] "
	    "[-i interval_s] "
	    "ADDR:PORT key=value[,key=value..] ...\n"
	    "keys: name host path headers mode conns rate limit random_host "
	    "unique hosts every streams window mark on off shift from till "
	    "phase patience fresh to\n");
	exit(2);
}

static uint64_t
now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return ((uint64_t)ts.tv_sec * NS + (uint64_t)ts.tv_nsec);
}

/* xorshift64: the same seed gives the same hosts and arrivals */
static uint64_t
draw(void)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (rng);
}

static uint64_t
exponential(double rate)
{
	double u = (double)(draw() >> 11) / 9007199254740992.0;

	return ((uint64_t)(-log(1.0 - u) / rate * (double)NS));
}

static uint64_t
seconds_on(double s)
{

	return (t_start + (uint64_t)(s * (double)NS));
}

static int
in_window(const struct group *g, uint64_t now)
{
	if (now < t_window || now >= t_end)
		return (0);
	if (g->till > 0)
		return (now >= seconds_on(g->from) + settle &&
		    now < seconds_on(g->till));
	if (g->phase < 0)
		return (1);
	return (phase == (unsigned)g->phase &&
	    (now - t_start) % phase_len >= settle);
}

/* Asked when it counts, whenever the answer comes */
static int
asked_in_window(const struct conn *c, uint64_t now)
{
	const struct group *g = c->group;

	return (in_window(g, g->till > 0 ? c->asked : now));
}

static int
is_over(const struct group *g, uint64_t now)
{

	return (g->till > 0 && now >= seconds_on(g->till));
}

static int
loads(const struct group *g)
{
	return (!draining && !g->resting &&
	    (g->phase < 0 || phase == (unsigned)g->phase));
}

/* Is it to be answered? */
static int
well_behaved(const struct group *g)
{
	return (g->mode == CLOSED || g->mode == PACED || g->mode == OPEN ||
	    g->mode == PIPE || (g->mode == H2 && g->window > 0));
}

static void
note_latency(struct group *g, uint64_t ns)
{
	uint64_t us = ns / 1000;

	if (g->nlat == g->alat) {
		g->alat = g->alat ? g->alat * 2 : 65536;
		g->lat = realloc(g->lat, g->alat * sizeof *g->lat);
		assert(g->lat != NULL);
	}
	g->lat[g->nlat++] = us > UINT32_MAX ? UINT32_MAX : (uint32_t)us;
}

static void
watch(struct conn *c, int op, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = c };

	if (op == EPOLL_CTL_MOD && c->events == events)
		return;
	c->events = events;
	if (epoll_ctl(ep, op, c->fd, &ev) != 0) {
		perror("loadgen: epoll_ctl");
		exit(1);
	}
}

static void
conn_park(struct conn *c, uint64_t due)
{
	c->state = PARKED;
	c->due = due;
	c->group->retrying++;
}

static void
conn_close(struct conn *c, int reset)
{
	struct linger l = { .l_onoff = 1, .l_linger = 0 };

	if (c->fd < 0)
		return;
	if (reset)
		(void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &l, sizeof l);
	(void)close(c->fd);
	c->fd = -1;
}

/* A request that had no answer; err is 0 if the proxy closed the connection */
static void
conn_fail(struct conn *c, int err, uint64_t now)
{
	struct group *g = c->group;

	if (in_window(g, now) && g->errors++ == 0)
		(void)snprintf(g->first_error, sizeof g->first_error,
		    "%s, %.3f s after %s", err ? strerror(err) : "closed",
		    now > c->asked ? (double)(now - c->asked) / (double)NS : 0.,
		    c->state == CONNECTING ? "connect" : "the request");
	conn_close(c, 0);
	conn_park(c, now + TICK);
}

static void
conn_connect(struct conn *c, uint64_t now)
{
	int one = 1, small = 4096;

	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (c->fd < 0) {
		conn_fail(c, errno, now);
		return;
	}
	(void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	if (c->group->mark > 0 && setsockopt(c->fd, SOL_SOCKET, SO_MARK,
	    &c->group->mark, sizeof c->group->mark) != 0) {
		perror("loadgen: mark");
		exit(1);
	}
	if (c->group->mode == STALL || c->group->mode == SLOW)
		(void)setsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &small,
		    sizeof small);
	c->state = CONNECTING;
	if (connect(c->fd, (void *)&c->group->to, sizeof proxy) != 0 &&
	    errno != EINPROGRESS) {
		conn_fail(c, errno, now);
		return;
	}
	watch(c, EPOLL_CTL_ADD, EPOLLOUT);
}

static void
format_host(const struct conn *c, char *host, size_t len)
{
	const struct group *g = c->group;

	if (g->random_host)
		(void)snprintf(host, len, "%016jx.%s", (uintmax_t)draw(),
		    g->host);
	else if (g->hosts > 0)
		(void)snprintf(host, len, "h%u.%s",
		    (unsigned)(c - g->conns) % g->hosts, g->host);
	else
		(void)snprintf(host, len, "%s", g->host);
}

static int
format_request(const struct conn *c, char *buf, size_t len)
{
	const struct group *g = c->group;
	char host[HOST_MAX], path[600];
	int l;

	serial++;
	format_host(c, host, sizeof host);
	if (g->unique)
		(void)snprintf(path, sizeof path, "%s?%ju", g->path,
		    (uintmax_t)serial);
	else
		(void)snprintf(path, sizeof path, "%s%s", g->path,
		    g->every > 0 && serial % g->every == 0 ? "?dear" : "");
	l = snprintf(buf, len, "GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n",
	    path, host, g->nheaders == 0 ? "User-Agent: loadgen\r\n" :
	    g->headers[g->sent % g->nheaders]);
	assert(l > 0 && (size_t)l < len);
	return (l);
}

static int
format_post(const struct conn *c, char *buf, size_t len)
{
	int l;

	l = snprintf(buf, len, "POST %s HTTP/1.1\r\nHost: %s\r\n"
	    "Content-Length: %d\r\n\r\n", c->group->path, c->group->host,
	    LENGTH);
	assert(l > 0 && (size_t)l < len);
	return (l);
}

static int
group_spent(const struct group *g)
{
	return (g->limit > 0 && g->sent >= g->limit);
}

/* Those that drip do not do so in step: each begins at its part of a period */
static uint64_t
conn_first(const struct conn *c, uint64_t now)
{
	const struct group *g = c->group;

	return (now + (uint64_t)((double)NS / g->rate *
	    (double)(c - g->conns) / g->nconn));
}

/* Send one request, dated `asked`. */
static void
conn_ask(struct conn *c, uint64_t asked, uint64_t now)
{
	struct group *g = c->group;
	char buf[REQUEST_MAX];
	int l;

	if (g->mode == POST)
		l = format_post(c, buf, sizeof buf);
	else
		l = format_request(c, buf, sizeof buf);
	c->asked = asked;
	c->got = 0;
	c->head_len = 0;
	c->state = HEAD;
	g->sent++;
	if (g->mode == DRIP) {
		c->dripped = 0;
		c->due = conn_first(c, now);
	} else if (send(c->fd, buf, (size_t)l, MSG_NOSIGNAL) != l) {
		conn_fail(c, errno, now);
		return;
	}
	if (g->mode == SLOW)
		c->due = now;
	if (g->mode == POST)
		c->due = conn_first(c, now);
	if (g->mode == PACED)
		c->due = now + (uint64_t)((double)NS / g->rate);
}

/* Send what is to be sent; what the socket does not take waits for it. */
static void
conn_flush(struct conn *c, uint64_t now)
{
	ssize_t i;

	if (c->out_off < c->out_len) {
		i = send(c->fd, c->out + c->out_off, c->out_len - c->out_off,
		    MSG_NOSIGNAL);
		if (i < 0 && errno != EAGAIN) {
			conn_fail(c, errno, now);
			return;
		}
		c->out_off += i > 0 ? (size_t)i : 0;
	}
	if (c->out_off == c->out_len)
		c->out_off = c->out_len = 0;
	watch(c, EPOLL_CTL_MOD, c->out_len > 0 ||
	    (c->group->mode == PIPE && loads(c->group)) ?
	    EPOLLIN | EPOLLOUT : EPOLLIN);
}

/* Pipeline, or fill the streams. */
static void
conn_more(struct conn *c, uint64_t now)
{
	struct group *g = c->group;
	unsigned most = g->mode == PIPE ? UINT32_MAX : g->streams;
	char host[HOST_MAX], *p;

	while (loads(g) && c->owed < most &&
	    c->out_len + REQUEST_MAX <= OUT_MAX) {
		p = (char *)c->out + c->out_len;
		if (g->mode == PIPE)
			c->out_len += (size_t)format_request(c, p,
			    REQUEST_MAX);
		else {
			format_host(c, host, sizeof host);
			c->out_len += H2_Ask(&c->h2, (uint8_t *)p, host,
			    g->path);
		}
		g->sent++;
		c->owed++;
	}
	conn_flush(c, now);
}

static void
conn_answers(struct conn *c, unsigned n, uint64_t now)
{
	struct group *g = c->group;

	if (n > c->owed) {
		g->extra += n - c->owed;
		n = c->owed;
	}
	c->owed -= n;
	g->answered += n;
	if (in_window(g, now)) {
		g->done += n;
		c->count += n;
		g->slices[(now - t_window) / SLICE] += n;
	}
}

/* How many answers to pipelined requests begin in these bytes? */
static unsigned
conn_heads(struct conn *c, const char *p, size_t len)
{
	static const char head[] = "HTTP/1.1 ";
	const char *e = p + len;
	unsigned n = 0;

	while (p < e) {
		if (c->match == 0 &&
		    (p = memchr(p, 'H', (size_t)(e - p))) == NULL)
			break;
		c->match = *p == head[c->match] ? c->match + 1 : *p == 'H';
		p++;
		if (head[c->match] == '\0') {
			n++;
			c->match = 0;
		}
	}
	return (n);
}

/* Read from a connection on which several answers are owed. */
static void
conn_eat(struct conn *c, uint64_t now)
{
	static char sink[BODY_CHUNK];
	struct group *g = c->group;
	struct h2_seen seen = { 0 };
	ssize_t i = recv(c->fd, sink, sizeof sink, 0);

	if (i < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (i <= 0) {
		conn_fail(c, i < 0 ? errno : 0, now);
		return;
	}
	if (in_window(g, now))
		g->bytes += (uint64_t)i;
	if (g->mode == PIPE) {
		conn_answers(c, conn_heads(c, sink, (size_t)i), now);
		return;
	}
	H2_Eat(&c->h2, (uint8_t *)sink, (size_t)i, &seen);
	if (in_window(g, now))
		g->not_ok += seen.refused + seen.not_ok;
	if (seen.settings > 0 && c->out_len + H2_FRAME_MAX <= OUT_MAX)
		c->out_len += H2_Settings(c->out + c->out_len, 1);
	if (g->mode == H2) {
		conn_answers(c, seen.ended, now);
		conn_more(c, now);
	} else
		conn_flush(c, now);
}

static void
conn_hello(struct conn *c, uint64_t now)
{

	if (c->out == NULL)
		c->out = malloc(OUT_MAX);
	assert(c->out != NULL);
	c->out_len = c->out_off = 0;
	c->owed = c->match = 0;
	c->due = now;
	c->state = BODY;
	if (c->group->mode != PIPE)
		c->out_len = H2_Hello(&c->h2, c->out, c->group->window);
	if (c->group->mode == PIPE || c->group->mode == H2)
		conn_more(c, now);
	else
		conn_flush(c, now);
}

/* Ask for what was due, on a connection of its own if it is to have one. */
static void
conn_open(struct conn *c, uint64_t due, uint64_t now)
{

	if (!c->group->fresh) {
		conn_ask(c, due, now);
		return;
	}
	c->asked = due;
	conn_connect(c, now);
}

static void
conn_next(struct conn *c, uint64_t now)
{
	struct group *g = c->group;

	c->state = IDLE;
	switch (g->mode) {
	case OPEN:
		if (g->fresh)
			conn_close(c, 0);
		if (g->late_head < g->late_tail)
			conn_open(c, (uint64_t)g->late[
			    g->late_head++ % LATE_MAX], now);
		break;
	case RESET:
	case CONNECT:
	case PACED:
		break;
	default:
		if (!group_spent(g) && loads(g))
			conn_ask(c, now, now);
		break;
	}
}

/* What the kernel says of the connection: an errno, or 0 */
static int
conn_error(const struct conn *c)
{
	int err = 0;
	socklen_t l = sizeof err;

	return (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &l) != 0 ?
	    errno : err);
}

static void
conn_up(struct conn *c, uint64_t now)
{
	int err = conn_error(c);

	if (err != 0) {
		conn_fail(c, err, now);
		return;
	}
	switch (c->group->mode) {
	case CONNECT:
		c->group->sent++;
		c->group->answered++;
		conn_close(c, 0);
		c->state = IDLE;
		return;
	case PIPE:
	case H2:
	case H2_RESET:
	case H2_PING:
		conn_hello(c, now);
		return;
	case STALL:
	case SLOW:
	case DRIP:
	case POST:
		watch(c, EPOLL_CTL_MOD, EPOLLRDHUP);
		break;
	default:
		watch(c, EPOLL_CTL_MOD, EPOLLIN);
	}
	if (c->group->mode == PACED)
		c->due = conn_first(c, now);
	if (c->group->mode == RESET)
		conn_ask(c, now, now);
	else if (c->group->fresh)
		conn_ask(c, c->asked, now);
	else
		conn_next(c, now);
}

static void
conn_answered(struct conn *c, uint64_t now)
{
	struct group *g = c->group;

	g->answered++;
	if (in_window(g, now)) {
		g->done++;
		g->bytes += c->got;
		c->count++;
		g->slices[(now - t_window) / SLICE]++;
	}
	if (asked_in_window(c, now))
		note_latency(g, now - c->asked);
	conn_next(c, now);
}

/* Part of the response is here: that is all this one wants. */
static void
conn_reset(struct conn *c, uint64_t now)
{
	c->group->answered++;
	if (in_window(c->group, now))
		c->group->done++;
	conn_close(c, 1);
	c->state = IDLE;
}

/*
 * The response's body length, or -1: the head has none or is no HTTP/1.
 * A chunked body has length 0 so far.
 */
static long long
parse_head(struct conn *c, uint64_t now)
{
	char *p, *e;
	int status;

	if (sscanf(c->head, "HTTP/1.%*d %d", &status) != 1)
		return (-1);
	if (status != 200 && in_window(c->group, now))
		c->group->not_ok++;
	c->chunked = c->last_chunk = 0;
	c->chunk = 0;
	for (p = c->head; (e = strstr(p, "\r\n")) != NULL; p = e + 2) {
		if (!strncasecmp(p, "content-length:", 15))
			return (strtoll(p + 15, NULL, 10));
		if (!strncasecmp(p, "transfer-encoding: chunked\r", 27)) {
			c->chunked = 1;
			return (0);
		}
	}
	return (-1);
}

static unsigned
hex(char x)
{

	return ((unsigned)(isdigit((unsigned char)x) ? x - '0' :
	    tolower((unsigned char)x) - 'a' + 10));
}

/* Some of a chunked body: 0, or -1 if it is none.  Trailers are none. */
static int
chunks(struct conn *c, const char *p, size_t len)
{
	const char *e = p + len;
	size_t n;

	while (p < e) {
		if (c->ended)
			return (-1);
		if (c->body_left > 0) {
			n = (size_t)(e - p) < c->body_left ?
			    (size_t)(e - p) : c->body_left;
			p += n;
			c->body_left -= n;
			c->ended = c->last_chunk && c->body_left == 0;
			continue;
		}
		if (*p == '\n') {
			c->last_chunk = c->chunk == 0;
			c->body_left = c->chunk + 2;	/* and its CRLF */
			c->chunk = 0;
		} else if (isxdigit((unsigned char)*p))
			c->chunk = c->chunk << 4 | hex(*p);
		else if (*p != '\r')
			return (-1);
		p++;
	}
	return (0);
}

static ssize_t
conn_read_head(struct conn *c, uint64_t now)
{
	long long len;
	size_t extra, room;
	ssize_t i;
	char *e;

	room = HEAD_MAX - 1 - c->head_len;
	if (c->group->mode == RESET && room > RESET_AFTER)
		room = RESET_AFTER;
	i = recv(c->fd, c->head + c->head_len, room, 0);
	if (i <= 0)
		return (i);
	c->head_len += (unsigned)i;
	c->head[c->head_len] = '\0';
	e = strstr(c->head, "\r\n\r\n");
	if (e == NULL)
		return (c->head_len < HEAD_MAX - 1 ? i : 0);
	e[2] = '\0';
	len = parse_head(c, now);
	extra = c->head_len - (size_t)(e + 4 - c->head);
	c->body_left = 0;
	c->ended = 0;
	c->state = BODY;
	if (len >= 0 && c->chunked)
		return (chunks(c, e + 4, extra) == 0 ? i : 0);
	if (len < (long long)extra)
		return (0);
	c->body_left = (uint64_t)len - extra;
	c->ended = c->body_left == 0;
	return (i);
}

/* The kernel drops a body's bytes, uncopied, if they need not be looked at. */
static ssize_t
conn_read_body(struct conn *c, size_t max)
{
	static char sink[BODY_CHUNK];
	ssize_t i;

	if (c->chunked) {
		i = recv(c->fd, sink, max < sizeof sink ? max : sizeof sink, 0);
		return (i <= 0 || chunks(c, sink, (size_t)i) == 0 ? i : 0);
	}
	i = recv(c->fd, sink, max < c->body_left ? max : c->body_left,
	    MSG_TRUNC);
	if (i > 0)
		c->body_left -= (uint64_t)i;
	c->ended = c->body_left == 0;
	return (i);
}

/* Read once, at most `max` bytes of body. */
static void
conn_read(struct conn *c, size_t max, uint64_t now)
{
	ssize_t i;

	if (c->state == HEAD)
		i = conn_read_head(c, now);
	else
		i = conn_read_body(c, max);
	if (i < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (i <= 0) {
		conn_fail(c, i < 0 ? errno : 0, now);
		return;
	}
	c->got += (uint64_t)i;
	if (c->state != BODY)
		return;
	if (c->group->mode == RESET)
		conn_reset(c, now);
	else if (c->ended)
		conn_answered(c, now);
}

static void
conn_event(struct conn *c, uint32_t events, uint64_t now)
{
	char byte;

	if (c->out != NULL && c->state == BODY) {
		if (events & ~(uint32_t)EPOLLOUT)
			conn_eat(c, now);
		else if (c->group->mode == PIPE)
			conn_more(c, now);
		else
			conn_flush(c, now);
		return;
	}
	switch (c->state) {
	case CONNECTING:
		conn_up(c, now);
		break;
	case IDLE:			/* the proxy closed an idle connection */
		if (recv(c->fd, &byte, 1, MSG_PEEK) > 0)
			c->group->extra++;
		conn_close(c, 0);
		conn_park(c, now + TICK);
		break;
	case HEAD:
	case BODY:
		if (events & EPOLLIN)
			conn_read(c, BODY_CHUNK, now);
		else
			conn_fail(c, conn_error(c), now);
		break;
	default:
		break;
	}
}

static void
conn_drip(struct conn *c, uint64_t now)
{
	char buf[1024];
	int l;

	l = snprintf(buf, sizeof buf, "GET %s HTTP/1.1\r\nHost: %s\r\nX: ",
	    c->group->path, c->group->host);
	if (c->group->mode == POST)
		l = 0;
	if (send(c->fd, (int)c->dripped < l ? buf + c->dripped : "x", 1,
	    MSG_NOSIGNAL) != 1) {
		conn_fail(c, errno, now);
		return;
	}
	c->dripped++;
	c->due = now + (uint64_t)((double)NS / c->group->rate);
}

/* What an h2 connection sends in a tick, if all of the last is gone */
static void
conn_flood(struct conn *c, uint64_t now)
{
	struct group *g = c->group;
	unsigned n = (unsigned)fmax(1, g->rate * TICK / NS);

	for (; n > 0 && c->out_len + 2 * H2_FRAME_MAX <= OUT_MAX; n--) {
		if (g->mode == H2_PING) {
			c->out_len += H2_Ping(c->out + c->out_len);
			c->out_len += H2_Settings(c->out + c->out_len, 0);
		} else {
			c->out_len += H2_Ask(&c->h2, c->out + c->out_len,
			    g->host, g->path);
			c->out_len += H2_Reset(&c->h2, c->out + c->out_len);
		}
		g->sent++;
	}
	conn_flush(c, now);
}

static void
conn_tick(struct conn *c, uint64_t now)
{
	struct group *g = c->group;

	if (c->state == PARKED && c->due <= now) {
		g->retrying--;
		if (g->mode == RESET || g->mode == CONNECT || g->fresh)
			c->state = IDLE;
		else if (!group_spent(g) && !is_over(g, now))
			conn_connect(c, now);
		else
			c->state = IDLE;
		return;
	}
	if (g->mode == PACED && c->state == IDLE && c->fd >= 0 &&
	    c->due <= now && !group_spent(g) && loads(g))
		conn_ask(c, now, now);
	if (c->state != HEAD && c->state != BODY)
		return;
	if ((g->mode == DRIP || g->mode == POST) && c->due <= now)
		conn_drip(c, now);
	else if (g->mode == SLOW)
		conn_read(c, (size_t)(g->rate * TICK / NS) + 1, now);
	else if ((g->mode == H2_RESET || g->mode == H2_PING) &&
	    c->out_len == 0)
		conn_flood(c, now);
}

static struct conn *
group_idle(const struct group *g)
{
	unsigned i;

	for (i = 0; i < g->nconn; i++)
		if (g->conns[i].state == IDLE)
			return (&g->conns[i]);
	return (NULL);
}

/* A request is due: give it to an idle connection, or let it wait. */
static void
group_arrival(struct group *g, uint64_t now)
{
	struct conn *c = group_idle(g);

	if (group_spent(g) || is_over(g, now)) {
		g->next_arrival = UINT64_MAX;
		return;
	}
	if (g->mode == RESET || g->mode == CONNECT) {
		if (c != NULL)
			conn_connect(c, now);
		g->next_arrival += (uint64_t)((double)NS / g->rate);
		return;
	}
	if (c != NULL && (c->fd >= 0 || g->fresh))
		conn_open(c, g->next_arrival, now);
	else if (g->late_tail - g->late_head < LATE_MAX)
		g->late[g->late_tail++ % LATE_MAX] = (double)g->next_arrival;
	else
		g->errors++;
	g->next_arrival += exponential(g->rate);
}

static void
group_start(struct group *g, uint64_t now)
{
	unsigned i;

	g->conns = calloc(g->nconn, sizeof *g->conns);
	g->slices = calloc(nslices, sizeof *g->slices);
	assert(g->conns != NULL && g->slices != NULL);
	g->next_arrival = UINT64_MAX;
	g->resting = g->till > 0 && g->from > 0;
	if (g->mode == OPEN || g->mode == RESET || g->mode == CONNECT)
		g->next_arrival = seconds_on(g->from);
	if (g->mode == OPEN) {
		g->late = calloc(LATE_MAX, sizeof *g->late);
		assert(g->late != NULL);
	}
	for (i = 0; i < g->nconn; i++) {
		g->conns[i].group = g;
		g->conns[i].fd = -1;
		g->conns[i].head = malloc(HEAD_MAX);
		assert(g->conns[i].head != NULL);
		if (g->mode == RESET || g->mode == CONNECT || g->fresh)
			continue;
		if (g->from > 0)
			conn_park(&g->conns[i], seconds_on(g->from));
		else
			conn_connect(&g->conns[i], now);
	}
}

static struct sockaddr_in
parse_address(char *arg)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	char *colon = strrchr(arg, ':');

	if (colon == NULL)
		usage("'%s' is not an address: use ADDR:PORT", arg);
	*colon = '\0';
	to.sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
	if (inet_pton(AF_INET, arg, &to.sin_addr) != 1)
		usage("'%s' is not an IPv4 address", arg);
	return (to);
}

/* Sets of headers, an empty line between two: requests take them in turn */
static void
read_headers(struct group *g, const char *path)
{
	char line[REQUEST_MAX / 2], **set = &g->headers[0];
	FILE *f = fopen(path, "r");
	size_t l = 0, n;

	if (f == NULL)
		usage("headers '%s': %s", path, strerror(errno));
	while (fgets(line, sizeof line - 1, f) != NULL) {
		n = strcspn(line, "\n");
		if (n == 0) {
			l = 0;
			set = &g->headers[g->nheaders];
			continue;
		}
		memcpy(line + n, "\r\n", 3);
		if (l == 0 && ++g->nheaders > HEADERS_MAX)
			usage("headers '%s': too many sets, use at most %d",
			    path, HEADERS_MAX);
		if (l + n + 2 >= REQUEST_MAX / 2)
			usage("headers '%s': a set is too long, use at most "
			    "%d bytes", path, REQUEST_MAX / 2 - 2);
		*set = realloc(*set, l + n + 3);
		assert(*set != NULL);
		memcpy(*set + l, line, n + 3);
		l += n + 2;
	}
	(void)fclose(f);
	if (g->nheaders == 0)
		usage("headers '%s': the file has no headers", path);
}

static void
set_key(struct group *g, const char *key, char *val)
{
	unsigned i;

	if (!strcmp(key, "name"))
		(void)snprintf(g->name, sizeof g->name, "%s", val);
	else if (!strcmp(key, "host"))
		(void)snprintf(g->host, sizeof g->host, "%s", val);
	else if (!strcmp(key, "path"))
		(void)snprintf(g->path, sizeof g->path, "%s", val);
	else if (!strcmp(key, "headers"))
		read_headers(g, val);
	else if (!strcmp(key, "conns"))
		g->nconn = (unsigned)strtoul(val, NULL, 10);
	else if (!strcmp(key, "rate"))
		g->rate = strtod(val, NULL);
	else if (!strcmp(key, "fresh"))
		g->fresh = atoi(val);
	else if (!strcmp(key, "patience"))
		g->patience = strtod(val, NULL);
	else if (!strcmp(key, "limit"))
		g->limit = strtoull(val, NULL, 10);
	else if (!strcmp(key, "random_host"))
		g->random_host = atoi(val);
	else if (!strcmp(key, "unique"))
		g->unique = atoi(val);
	else if (!strcmp(key, "hosts"))
		g->hosts = (unsigned)strtoul(val, NULL, 10);
	else if (!strcmp(key, "every"))
		g->every = (unsigned)strtoul(val, NULL, 10);
	else if (!strcmp(key, "streams"))
		g->streams = (unsigned)strtoul(val, NULL, 10);
	else if (!strcmp(key, "window"))
		g->window = (uint32_t)strtoul(val, NULL, 10);
	else if (!strcmp(key, "mark"))
		g->mark = (unsigned)strtoul(val, NULL, 10);
	else if (!strcmp(key, "on"))
		g->on = strtod(val, NULL);
	else if (!strcmp(key, "off"))
		g->off = strtod(val, NULL);
	else if (!strcmp(key, "shift"))
		g->shift = strtod(val, NULL);
	else if (!strcmp(key, "from"))
		g->from = strtod(val, NULL);
	else if (!strcmp(key, "till"))
		g->till = strtod(val, NULL);
	else if (!strcmp(key, "phase"))
		g->phase = atoi(val);
	else if (!strcmp(key, "to"))
		g->to = parse_address(val);
	else if (!strcmp(key, "mode")) {
		for (i = 0; mode_names[i] != NULL; i++)
			if (!strcmp(val, mode_names[i]))
				break;
		if (mode_names[i] == NULL)
			usage("mode '%s' is not known: use closed, paced, open, "
			    "stall, slow, reset, drip, post, connect, pipe, h2, "
			    "h2-reset, h2-ping", val);
		g->mode = (enum mode)i;
	} else
		usage("key '%s' is not known", key);
}

static void
parse_group(char *spec)
{
	struct group *g;
	char *item, *eq, *save = NULL;

	if (ngroups == sizeof groups / sizeof groups[0])
		usage("too many groups: use at most %u", ngroups);
	g = &groups[ngroups++];
	(void)snprintf(g->name, sizeof g->name, "g%u", ngroups);
	(void)snprintf(g->path, sizeof g->path, "/");
	g->nconn = 1;
	g->phase = -1;
	g->streams = 1;
	g->window = H2_WINDOW_MAX;
	g->to = proxy;
	for (item = strtok_r(spec, ",", &save); item != NULL;
	    item = strtok_r(NULL, ",", &save)) {
		eq = strchr(item, '=');
		if (eq == NULL)
			usage("'%s' is not valid: use key=value", item);
		*eq = '\0';
		set_key(g, item, eq + 1);
	}
	if (g->host[0] == '\0' || g->nconn == 0)
		usage("group '%s' needs host and conns", g->name);
	if (g->rate <= 0 && g->mode != CLOSED && g->mode != STALL &&
	    g->mode != PIPE && g->mode != H2)
		usage("group '%s' needs a rate", g->name);
	if (g->fresh && g->mode != OPEN)
		usage("group '%s': only open groups are fresh", g->name);
	if (g->till > 0 && (g->from < 0 || g->till <= g->from || g->on > 0 ||
	    g->phase >= 0))
		usage("group '%s': from %g till %g, without on or phase",
		    g->name, g->from, g->till);
	if (g->phase >= 0 && g->mode != CLOSED)
		usage("group '%s': phase works only with mode=closed",
		    g->name);
	if (g->phase >= (int)nphases)
		usage("group '%s': phase %d is not allowed: use 0 to %u",
		    g->name, g->phase, nphases - 1);
}

/* All groups have a limit and have reached it. */
static int
all_spent(void)
{
	unsigned u;

	for (u = 0; u < ngroups; u++)
		if (groups[u].limit == 0 ||
		    groups[u].answered + groups[u].errors < groups[u].limit)
			return (0);
	return (1);
}

static int
timed(enum mode mode)
{
	return (mode == PACED || mode == SLOW || mode == DRIP || mode == POST ||
	    mode == H2_RESET || mode == H2_PING);
}

static void
group_wake(struct group *g, uint64_t now)
{
	unsigned i;

	for (i = 0; i < g->nconn; i++)
		if (g->conns[i].state == IDLE && g->conns[i].fd >= 0)
			conn_next(&g->conns[i], now);
}

/* A group that loads and rests in turn, or for some time */
static void
group_rest(struct group *g, uint64_t now)
{
	double at = (double)(now - t_start) / (double)NS;
	int rests;

	if (g->till > 0)
		rests = at < g->from || at >= g->till;
	else
		rests = fmod(at + g->shift, g->on + g->off) >= g->on;

	if (rests == g->resting)
		return;
	g->resting = rests;
	if (!rests)
		group_wake(g, now);
}

/* Users who have waited too long for a connection give up. */
static void
group_impatient(struct group *g, uint64_t now)
{
	uint64_t patience = (uint64_t)(g->patience * (double)NS);

	while (g->late_head < g->late_tail &&
	    now - (uint64_t)g->late[g->late_head % LATE_MAX] > patience) {
		g->late_head++;
		if (in_window(g, now)) {
			g->errors++;
			note_latency(g, patience);
		}
	}
}

/* Part of a tick: clients of one group are not in step.  Returns the next. */
static uint64_t
ticks(uint64_t now)
{
	static unsigned part;
	struct group *g;
	unsigned u, i;

	part = (part + 1) % TICK_PARTS;
	for (u = 0; u < ngroups; u++) {
		g = &groups[u];
		if (g->on > 0 || g->till > 0)
			group_rest(g, now);
		if (g->patience > 0 && g->late != NULL)
			group_impatient(g, now);
		if (!timed(g->mode) && g->retrying == 0)
			continue;
		for (i = part; i < g->nconn; i += TICK_PARTS)
			conn_tick(&g->conns[i], now);
	}
	return (now + TICK / TICK_PARTS);
}

static uint64_t
arrivals(uint64_t now)
{
	uint64_t next = UINT64_MAX;
	unsigned u;

	for (u = 0; u < ngroups; u++) {
		while (groups[u].next_arrival <= now)
			group_arrival(&groups[u], now);
		if (groups[u].next_arrival < next)
			next = groups[u].next_arrival;
	}
	return (next);
}

/* A phase begins: its groups' connections ask.  Returns when it ends. */
static uint64_t
phases(uint64_t now)
{
	uint64_t turn = (now - t_start) / phase_len;
	unsigned u;

	if (phase != turn % nphases) {
		phase = (unsigned)(turn % nphases);
		for (u = 0; u < ngroups; u++)
			if (groups[u].phase == (int)phase)
				group_wake(&groups[u], now);
	}
	return (t_start + (turn + 1) * phase_len);
}

/* Wait until `next` for what comes, and see to it. */
static void
serve(uint64_t now, uint64_t next)
{
	struct epoll_event ev[256];
	struct timespec ts;
	int i, n;

	next = next > now && !busy ? next - now : 0;
	ts.tv_sec = (time_t)(next / NS);
	ts.tv_nsec = (long)(next % NS);
	n = epoll_pwait2(ep, ev, 256, &ts, NULL);
	if (busy && n == 0)
		(void)sched_yield();	/* to the origin */
	now = now_ns();
	for (i = 0; i < n; i++)
		conn_event(ev[i].data.ptr, ev[i].events, now);
}

static int
cmp_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return ((x > y) - (x < y));
}

static int
waits_since(const struct conn *c, uint64_t now)
{

	return ((c->state == HEAD || c->state == BODY) && c->asked < now);
}

static uint32_t
to_us(uint64_t ns)
{

	return (ns / 1000 > UINT32_MAX ? UINT32_MAX : (uint32_t)(ns / 1000));
}

/* The p99 of an interval: of its answers, and of what still waits */
static double
interval_p99(const struct group *g, uint64_t now, size_t *waiting)
{
	size_t n = g->nlat - g->nlat_before, most;
	uint64_t l;
	uint32_t *lat;
	unsigned i;
	double p99 = 0;

	most = n + g->nconn + (size_t)(g->late_tail - g->late_head);
	lat = malloc((most + 1) * sizeof *lat);
	assert(lat != NULL);
	if (n > 0)
		memcpy(lat, g->lat + g->nlat_before, n * sizeof *lat);
	*waiting = n;
	if (g->mode == CLOSED || g->mode == OPEN)
		for (i = 0; i < g->nconn; i++)
			if (waits_since(&g->conns[i], now))
				lat[n++] = to_us(now - g->conns[i].asked);
	for (l = g->late_head; l < g->late_tail; l++)
		lat[n++] = to_us(now - (uint64_t)g->late[l % LATE_MAX]);
	*waiting = n - *waiting;
	if (n > 0) {
		qsort(lat, n, sizeof *lat, cmp_u32);
		p99 = lat[(size_t)ceil(.99 * (double)n) - 1] / 1e6;
	}
	free(lat);
	return (p99);
}

static void
interval_group(struct group *g, uint64_t now, double seconds)
{
	size_t waiting;
	double p99 = interval_p99(g, now, &waiting);

	printf("{\"name\": \"%s\", \"rps\": %.3f, \"p99_s\": %.6f, "
	    "\"errors\": %ju, \"not_200\": %ju, \"waiting\": %zu}", g->name,
	    (double)(g->done - g->done_before) / seconds, p99,
	    (uintmax_t)(g->errors - g->errors_before),
	    (uintmax_t)(g->not_ok - g->not_ok_before), waiting);
	g->done_before = g->done;
	g->errors_before = g->errors;
	g->not_ok_before = g->not_ok;
	g->nlat_before = g->nlat;
}

/* Returns when the next interval ends. */
static uint64_t
intervals(uint64_t now)
{
	static uint64_t end, begun;
	unsigned u;

	if (end == 0) {
		begun = t_window;
		end = t_window + interval;
	}
	if (now >= end) {
		printf("{\"interval_s\": %.6f, \"groups\": [",
		    (double)(now - begun) / (double)NS);
		for (u = 0; u < ngroups; u++) {
			printf("%s", u ? ", " : "");
			interval_group(&groups[u], now,
			    (double)(now - begun) / (double)NS);
		}
		printf("]}\n");
		(void)fflush(stdout);
		begun = now;
		while (end <= now)
			end += interval;
	}
	return (end);
}

static void
run(void)
{
	uint64_t now, next, end, tick = 0;
	unsigned u;
	int open = 0;

	for (now = now_ns(); now < t_end && !all_spent(); now = now_ns()) {
		if (!open && now >= t_window) {
			open = 1;
			for (u = 0; u < ngroups; u++)
				groups[u].sent_before = groups[u].sent;
			printf("start\n");
			(void)fflush(stdout);
		}
		if (now >= tick)
			tick = ticks(now);
		next = arrivals(now);
		if (tick < next)
			next = tick;
		if (t_end < next)
			next = t_end;
		if (interval > 0) {
			end = intervals(now);
			if (end < next)
				next = end;
		}
		if (nphases > 1) {
			end = phases(now);
			if (end < next)
				next = end;
		}
		if (!open && t_window < next)
			next = t_window;
		serve(now, next);
	}
	if (!open)	/* on a machine too busy to notice the window */
		printf("start\n");
	if (now < t_end)
		t_end = now;
	printf("end\n");
	(void)fflush(stdout);
}

/* Answers that are still owed to those who are to have them */
static uint64_t
group_owed(const struct group *g)
{
	const struct conn *c;
	uint64_t n = 0;

	if (!well_behaved(g))
		return (0);
	for (c = g->conns; c < g->conns + g->nconn; c++) {
		if (c->out != NULL)
			n += c->fd >= 0 ? c->owed : 0;
		else
			n += c->state == HEAD || c->state == BODY;
	}
	return (n);
}

static void
drain(uint64_t until)
{
	uint64_t now, owed, tick = 0;
	unsigned u;

	draining = 1;
	for (now = now_ns(); now < until; now = now_ns()) {
		for (owed = 0, u = 0; u < ngroups; u++) {
			owed += group_owed(&groups[u]);
			groups[u].late_head = groups[u].late_tail;
		}
		if (owed == 0)
			break;
		if (now >= tick)
			tick = ticks(now);
		serve(now, tick);
	}
}

static double
quantile(const struct group *g, double q)
{
	size_t i;

	if (g->nlat == 0)
		return (0);
	i = (size_t)ceil(q * (double)g->nlat);
	return (g->lat[i > 0 ? i - 1 : 0] / 1e6);
}

/* Who still waits has waited at least this long: that is a latency too. */
static uint64_t
count_waiting(struct group *g)
{
	uint64_t n = 0;
	unsigned i;
	struct conn *c;

	if (g->mode != CLOSED && g->mode != PACED && g->mode != OPEN &&
	    g->mode != STALL && g->mode != SLOW)
		return (0);
	for (i = 0; i < g->nconn; i++) {
		c = &g->conns[i];
		if ((c->state != HEAD && c->state != BODY) ||
		    c->asked >= t_end)	/* with the last events */
			continue;
		note_latency(g, t_end - c->asked);
		n++;
	}
	for (; g->late_head < g->late_tail; g->late_head++, n++)
		note_latency(g, t_end -
		    (uint64_t)g->late[g->late_head % LATE_MAX]);
	return (n);
}

/* ns of the window in which a group with an end of its own counts */
static uint64_t
part(const struct group *g)
{
	uint64_t begin = seconds_on(g->from) + settle;
	uint64_t end = seconds_on(g->till);

	begin = begin < t_window ? t_window : begin;
	end = end > t_end ? t_end : end;
	return (end > begin ? end - begin : 0);
}

/* Seconds of the window that count for this group */
static double
group_window(const struct group *g, uint64_t window)
{
	uint64_t counted = window;

	if (g->phase >= 0)
		counted = window / (nphases * phase_len) *
		    (phase_len - settle);
	if (g->till > 0)
		counted = part(g);
	return ((double)counted / (double)NS);
}

static void
report_group(struct group *g, double window)
{
	uint64_t lo = UINT64_MAX, hi = 0;
	unsigned i;

	for (i = 0; i < g->nconn; i++) {
		lo = g->conns[i].count < lo ? g->conns[i].count : lo;
		hi = g->conns[i].count > hi ? g->conns[i].count : hi;
	}
	if (g->nlat > 0)
		qsort(g->lat, g->nlat, sizeof *g->lat, cmp_u32);
	printf("{\"name\": \"%s\", \"mode\": \"%s\", \"connections\": %u, "
	    "\"requests\": %ju, \"rps\": %.3f, \"bytes\": %ju, "
	    "\"sent\": %ju, \"sent_in_all\": %ju, \"answered_in_all\": %ju, "
	    "\"errors\": %ju, \"not_200\": %ju, \"waiting\": %ju, "
	    "\"unanswered\": %ju, \"extra\": %ju, "
	    "\"first_error\": \"%s\", "
	    "\"conn_min\": %ju, \"conn_max\": %ju, \"conn_mean\": %.3f, "
	    "\"p50_s\": %.6f, \"p90_s\": %.6f, \"p99_s\": %.6f, "
	    "\"max_s\": %.6f, \"slices\": [",
	    g->name, mode_names[g->mode], g->nconn,
	    (uintmax_t)g->done, (double)g->done / window,
	    (uintmax_t)g->bytes, (uintmax_t)(g->sent - g->sent_before),
	    (uintmax_t)g->sent,
	    (uintmax_t)g->answered, (uintmax_t)g->errors,
	    (uintmax_t)g->not_ok, (uintmax_t)g->waiting,
	    (uintmax_t)group_owed(g), (uintmax_t)g->extra, g->first_error,
	    (uintmax_t)lo,
	    (uintmax_t)hi, (double)g->done / g->nconn,
	    quantile(g, .5), quantile(g, .9), quantile(g, .99),
	    quantile(g, 1.));
	for (i = 0; i < nslices; i++)
		printf("%s%ju", i ? ", " : "", (uintmax_t)g->slices[i]);
	printf("]}");
}

static void
report(void)
{
	double window = 0, counted;
	unsigned u;

	if (t_end > t_window)
		window = (double)(t_end - t_window) / (double)NS;
	printf("{\"window_s\": %.6f, \"slice_s\": %.3f, \"groups\": [",
	    window, (double)SLICE / (double)NS);
	for (u = 0; u < ngroups; u++) {
		printf("%s", u ? ", " : "");
		counted = group_window(&groups[u],
		    t_end > t_window ? t_end - t_window : 0);
		report_group(&groups[u], counted > 0 ? counted : 1);
	}
	printf("]}\n");
}

static void
raise_files(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) == 0) {
		rl.rlim_cur = rl.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &rl);
	}
}

/* ns, rounded up to turns of all phases */
static uint64_t
whole_turns(double seconds)
{
	uint64_t ns = (uint64_t)(seconds * (double)NS);
	uint64_t turn = nphases * phase_len;

	return (nphases > 1 ? (ns + turn - 1) / turn * turn : ns);
}

int
main(int argc, char **argv)
{
	double warmup = 1, window = 5, length = .5, quiet = .2, patience = 0;
	double every = 0;
	uint64_t now;
	unsigned u;
	int o;

	while ((o = getopt(argc, argv, "bw:t:s:p:l:q:d:i:")) != -1) {
		if (o == 'b')
			busy = 1;
		else if (o == 'w')
			warmup = strtod(optarg, NULL);
		else if (o == 't')
			window = strtod(optarg, NULL);
		else if (o == 'p')
			nphases = (unsigned)strtoul(optarg, NULL, 10);
		else if (o == 'l')
			length = strtod(optarg, NULL);
		else if (o == 'q')
			quiet = strtod(optarg, NULL);
		else if (o == 'd')
			patience = strtod(optarg, NULL);
		else if (o == 'i')
			every = strtod(optarg, NULL);
		else if (o == 's')
			rng ^= strtoull(optarg, NULL, 10) * 0x9e3779b97f4a7c15;
		else
			usage("an option is not known");
	}
	if (argc - optind < 2)
		usage("an argument is missing: give an address and at least "
		    "one group");
	if (warmup < 0 || window <= 0 || every < 0)
		usage("a time is not allowed: -w and -i take 0 or more, -t "
		    "more than 0");
	if (nphases == 0 || quiet < 0 || length <= quiet)
		usage("the phases are not allowed: use -p from 1, and -l "
		    "above -q");
	phase_len = (uint64_t)(length * (double)NS);
	settle = (uint64_t)(quiet * (double)NS);
	interval = (uint64_t)(every * (double)NS);
	proxy = parse_address(argv[optind++]);
	for (; optind < argc; optind++)
		parse_group(argv[optind]);
	if (rng == 0)
		rng = 1;
	raise_files();
	ep = epoll_create1(EPOLL_CLOEXEC);
	assert(ep >= 0);
	now = t_start = now_ns();
	t_window = now + whole_turns(warmup);
	t_end = t_window + whole_turns(window);
	nslices = (unsigned)((t_end - t_window) / SLICE) + 1;
	for (u = 0; u < ngroups; u++)
		group_start(&groups[u], now);
	run();
	for (u = 0; u < ngroups; u++)
		groups[u].waiting = count_waiting(&groups[u]);
	drain(t_end + (uint64_t)(patience * (double)NS));
	report();
	return (0);
}
