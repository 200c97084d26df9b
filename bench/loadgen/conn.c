/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * One connection: it connects, sends, reads answers one by one, and fails.
 *
 *	PARKED -> CONNECTING -> IDLE -> HEAD -> BODY -> IDLE ...
 *
 * What it does in a state is its mode's.  After an error it is PARKED for a
 * tick.  Then it connects again, or is IDLE without a socket (fresh).
 */

#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "loadgen.h"

#define SMALL		4096	/* of a small receive buffer */
#define EVENTS		256	/* at a time */

static int ep;

void
conn_init(void)
{

	ep = epoll_create1(EPOLL_CLOEXEC);
	assert(ep >= 0);
}

static void
control(struct conn *c, int op, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = c };

	c->events = events;
	if (epoll_ctl(ep, op, c->fd, &ev) != 0) {
		perror("loadgen: epoll_ctl");
		exit(1);
	}
}

void
conn_watch(struct conn *c, uint32_t events)
{

	if (c->events != events)
		control(c, EPOLL_CTL_MOD, events);
}

/* The connection has no request.  What an open loop asks next, it can take. */
void
conn_is_idle(struct conn *c)
{

	c->state = IDLE;
	if (c->listed)
		return;
	c->listed = 1;
	c->next_idle = c->group->idle;
	c->group->idle = c;
}

/* Return an idle connection, or NULL.  It is on the list no more. */
struct conn *
conn_spare(struct group *g)
{
	struct conn *c;

	while ((c = g->idle) != NULL) {
		g->idle = c->next_idle;
		c->listed = 0;
		if (c->state == IDLE)
			return (c);
	}
	return (NULL);
}

void
conn_park(struct conn *c, uint64_t due)
{

	c->state = PARKED;
	c->due = due;
	c->group->retrying++;
}

void
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

/* The connection has failed; err is 0 if the proxy closed it */
void
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
set_options(const struct conn *c)
{
	const struct group *g = c->group;
	int one = 1, few = SMALL;

	(void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	if (g->mark > 0 && setsockopt(c->fd, SOL_SOCKET, SO_MARK, &g->mark,
	    sizeof g->mark) != 0) {
		perror("loadgen: mark");
		exit(1);
	}
	if (g->mode->flags & FEW_BYTES)
		(void)setsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &few,
		    sizeof few);
}

void
conn_connect(struct conn *c, uint64_t now)
{
	const struct sockaddr_in *to = &c->group->to;

	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (c->fd < 0) {
		conn_fail(c, errno, now);
		return;
	}
	set_options(c);
	c->state = CONNECTING;
	if (!c->group->fresh)
		c->asked = now;
	if (in_window(c->group, now))
		c->group->connects++;
	if (connect(c->fd, (const void *)to, sizeof *to) != 0 &&
	    errno != EINPROGRESS) {
		conn_fail(c, errno, now);
		return;
	}
	control(c, EPOLL_CTL_ADD, EPOLLOUT);
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
	conn_is_idle(c);
	if (c->group->mode->events != 0)
		conn_watch(c, c->group->mode->events);
	c->group->mode->connected(c, now);
}

/* ns between two steps of a connection whose rate is its own */
uint64_t
conn_period(const struct conn *c)
{

	return ((uint64_t)((double)NS / c->group->rate));
}

/* A group's connections are not in step: each begins in its part of a period */
uint64_t
conn_first(const struct conn *c, uint64_t now)
{
	const struct group *g = c->group;

	return (now + (uint64_t)((double)NS / g->rate *
	    (double)(c - g->conns) / g->nconn));
}

/* Send one request, dated `asked`. */
void
conn_ask(struct conn *c, uint64_t asked, uint64_t now)
{

	c->asked = asked;
	c->got = 0;
	c->head_len = 0;
	c->state = HEAD;
	c->group->mode->ask(c, now);
	c->group->sent_in_all++;
}

void
conn_send(struct conn *c, const char *p, size_t len, uint64_t now)
{

	if (send(c->fd, p, len, MSG_NOSIGNAL) != (ssize_t)len)
		conn_fail(c, errno, now);
}

/* Send a GET: what most modes ask. */
void
conn_get(struct conn *c, uint64_t now)
{
	char buf[REQUEST_MAX];

	conn_send(c, buf, request_get(c, buf, sizeof buf), now);
}

/* Ask at once, if the group still does: a closed loop. */
void
conn_again(struct conn *c, uint64_t now)
{

	if (!is_spent(c->group) && loads(c->group))
		conn_ask(c, now, now);
}

/* The answer is complete, or the group loads again. */
void
conn_idle(struct conn *c, uint64_t now)
{

	conn_is_idle(c);
	if (c->group->mode->idle != NULL)
		c->group->mode->idle(c, now);
}

static ssize_t
conn_read_head(struct conn *c, size_t most, uint64_t now)
{
	size_t room = HEAD_MAX - 1 - c->head_len;
	ssize_t i;
	char *e;
	int found;

	i = recv(c->fd, c->head + c->head_len, most < room ? most : room, 0);
	if (i <= 0)
		return (i);
	c->head_len += (unsigned)i;
	c->head[c->head_len] = '\0';
	e = strstr(c->head, "\r\n\r\n");
	if (e == NULL)
		return (c->head_len < HEAD_MAX - 1 ? i : 0);
	e[2] = '\0';
	e += 4;
	c->state = BODY;
	found = HTTP1_Head(&c->http1, c->head);
	if (c->http1.status != 0 && c->http1.status != 200 &&
	    in_window(c->group, now))
		c->group->not_ok++;
	if (found == 0)
		found = HTTP1_Body(&c->http1, e,
		    c->head_len - (size_t)(e - c->head));
	return (found == 0 ? i : 0);
}

/* The kernel drops a body's bytes, uncopied, if they need not be looked at. */
static ssize_t
conn_read_body(struct conn *c, size_t most)
{
	static char sink[BODY_CHUNK];
	struct http1 *h = &c->http1;
	ssize_t i;

	if (h->chunked)
		i = recv(c->fd, sink, most < sizeof sink ? most : sizeof sink,
		    0);
	else
		i = recv(c->fd, sink, most < h->left ? most : h->left,
		    MSG_TRUNC);
	if (i > 0 && HTTP1_Body(h, sink, (size_t)i) != 0)
		return (0);
	return (i);
}

/*
 * Read once, at most so many bytes.  Returns whether the head is complete, and
 * fails if this is no answer or the connection is closed.
 */
int
conn_read(struct conn *c, size_t head, size_t body, uint64_t now)
{
	ssize_t i;

	if (c->state == HEAD)
		i = conn_read_head(c, head, now);
	else
		i = conn_read_body(c, body);
	if (i < 0 && (errno == EAGAIN || errno == EINTR))
		return (0);
	if (i <= 0) {
		conn_fail(c, i < 0 ? errno : 0, now);
		return (0);
	}
	c->got += (uint64_t)i;
	return (c->state == BODY);
}

/* The proxy refused.  The client asks again, or gives up. */
static void
conn_refused(struct conn *c, uint64_t now)
{
	struct group *g = c->group;
	struct asking a = { .due = now, .tries = c->tries + 1 };

	if (in_window(g, now))
		g->refused++;
	if (c->tries < g->retries) {
		if (g->regard)
			a.due += c->http1.retry_after * NS;
		later_add(&g->again, a);
	} else if (in_window(g, now))
		g->given_up++;
}

/* An answer is complete.  With a target, only latencies of 200 count. */
static void
conn_answered(struct conn *c, uint64_t now)
{
	struct group *g = c->group;
	int status = c->http1.status;
	uint64_t took = now - c->asked;

	count_answers(c, 1, now);
	if (in_window(g, now))
		g->bytes += c->got;
	if ((g->target <= 0 || status == 200) && answer_counts(c, now))
		latencies_add(&g->lat, took);
	if (status == 200 && (double)took <= g->target * (double)NS)
		count_good(c, now);
	if (status == 503 || status == 429)
		conn_refused(c, now);
}

/* Read at most so many bytes of body; count the answer if it is complete. */
void
conn_answer(struct conn *c, size_t body, uint64_t now)
{

	if (!conn_read(c, HEAD_MAX, body, now) || !c->http1.ended)
		return;
	conn_answered(c, now);
	if (c->http1.closes && !c->group->fresh &&
	    !(c->group->mode->flags & CONNECTS)) {
		conn_close(c, 0);
		conn_park(c, now + TICK);
	} else
		conn_idle(c, now);
}

/* Read what has come of an answer. */
void
conn_take(struct conn *c, uint64_t now)
{

	conn_answer(c, BODY_CHUNK, now);
}

/* Is an answer due on this connection? */
int
conn_is_waiting(const struct conn *c)
{

	return (c->state == HEAD || c->state == BODY);
}

/* The proxy closed an idle connection, or sent what nobody asked for. */
static void
conn_left(struct conn *c, uint64_t now)
{
	char byte;

	if (recv(c->fd, &byte, 1, MSG_PEEK) > 0)
		c->group->extra++;
	conn_close(c, 0);
	conn_park(c, now + TICK);
}

static void
conn_event(struct conn *c, uint32_t events, uint64_t now)
{
	const struct mode *m = c->group->mode;

	if (c->state == CONNECTING)
		conn_up(c, now);
	else if (c->state == IDLE)
		conn_left(c, now);
	else if (!conn_is_waiting(c))
		return;
	else if (events & EPOLLIN)
		m->readable(c, now);
	else if (events & ~(uint32_t)EPOLLOUT)
		conn_fail(c, conn_error(c), now);
	else
		m->writable(c, now);
}

/* What is due at this time: to connect again, or a step of the mode */
void
conn_tick(struct conn *c, uint64_t now)
{
	struct group *g = c->group;

	if (c->state != PARKED) {
		if (g->mode->tick != NULL)
			g->mode->tick(c, now);
		return;
	}
	if (c->due > now)
		return;
	g->retrying--;
	conn_is_idle(c);
	if (!g->fresh && !is_spent(g) && !is_over(g, now))
		conn_connect(c, now);
}

/* Wait so long for what comes, and see to it. */
void
conn_serve(uint64_t ns, int busy)
{
	struct epoll_event ev[EVENTS];
	struct timespec ts = {
		.tv_sec = (time_t)(ns / NS), .tv_nsec = (long)(ns % NS)
	};
	uint64_t now;
	int i, n;

	if (busy)
		ts.tv_sec = ts.tv_nsec = 0;
	n = epoll_pwait2(ep, ev, EVENTS, &ts, NULL);
	if (busy && n == 0)
		(void)sched_yield();	/* to the origin */
	now = now_ns();
	for (i = 0; i < n; i++)
		conn_event(ev[i].data.ptr, ev[i].events, now);
}
