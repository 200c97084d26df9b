/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * One connection: it connects, asks, reads an answer, and asks again.
 */

#define _GNU_SOURCE
#include "loadgen.h"

void
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

void
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

void
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

int
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

/* Ask for what was due, on a connection of its own if it is to have one. */
void
conn_open(struct conn *c, uint64_t due, uint64_t now)
{

	if (!c->group->fresh) {
		conn_ask(c, due, now);
		return;
	}
	c->asked = due;
	conn_connect(c, now);
}

void
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

void
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

void
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
