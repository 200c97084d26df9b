/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Modes with many requests at a time on a connection.
 *
 *	pipe		ask, whatever the answers do (HTTP/1 pipelining)
 *	h2		`streams` requests at a time
 *	h2-reset	ask and reset; `rate` a connection
 *	h2-ping		PING and SETTINGS; `rate` a connection
 *
 * What is to be sent is in `out`.  What the socket does not take waits there.
 */

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "loadgen.h"

#define OUT_MAX		(1 << 16)

static void
start(struct conn *c)
{

	if (c->out == NULL)
		c->out = malloc(OUT_MAX);
	assert(c->out != NULL);
	c->out_len = c->out_off = 0;
	c->owed = c->http1.match = 0;
	c->state = BODY;
}

static int
has_room(const struct conn *c, size_t len)
{

	return (c->out_len + len <= OUT_MAX);
}

static void
flush(struct conn *c, uint64_t now)
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
	conn_watch(c, c->out_len > 0 ||
	    (c->group->mode == &mode_pipe && loads(c->group)) ?
	    EPOLLIN | EPOLLOUT : EPOLLIN);
}

static void
take_answers(struct conn *c, unsigned n, uint64_t now)
{

	if (n > c->owed) {
		c->group->extra += n - c->owed;
		n = c->owed;
	}
	c->owed -= n;
	count_answers(c, n, now);
}

static char sink[BODY_CHUNK];

/* Read into `sink`.  Returns 0 if nothing came, or the connection failed. */
static size_t
receive(struct conn *c, uint64_t now)
{
	ssize_t i = recv(c->fd, sink, sizeof sink, 0);

	if (i < 0 && (errno == EAGAIN || errno == EINTR))
		return (0);
	if (i <= 0) {
		conn_fail(c, i < 0 ? errno : 0, now);
		return (0);
	}
	if (in_window(c->group, now))
		c->group->bytes += (uint64_t)i;
	return ((size_t)i);
}

static void
pipe_fill(struct conn *c, uint64_t now)
{

	while (loads(c->group) && has_room(c, REQUEST_MAX)) {
		c->out_len += request_get(c, (char *)c->out + c->out_len,
		    REQUEST_MAX);
		c->group->sent_in_all++;
		c->owed++;
	}
	flush(c, now);
}

static void
pipe_connected(struct conn *c, uint64_t now)
{

	start(c);
	pipe_fill(c, now);
}

static void
pipe_readable(struct conn *c, uint64_t now)
{
	size_t n = receive(c, now);

	if (n > 0)
		take_answers(c, HTTP1_Heads(&c->http1, sink, n), now);
}

const struct mode mode_pipe = {
	.name = "pipe", .flags = IS_OWED | MANY, .events = EPOLLIN | EPOLLOUT,
	.connected = pipe_connected, .readable = pipe_readable,
	.writable = pipe_fill,
};

static void
h2_start(struct conn *c)
{

	start(c);
	c->out_len = H2_Hello(&c->h2, c->out, c->group->window);
}

static void
h2_fill(struct conn *c, uint64_t now)
{
	struct group *g = c->group;
	char host[HOST_MAX];

	while (loads(g) && c->owed < g->streams && has_room(c, REQUEST_MAX)) {
		request_host(c, host, sizeof host);
		c->out_len += H2_Ask(&c->h2, c->out + c->out_len, host,
		    g->path);
		g->sent_in_all++;
		c->owed++;
	}
	flush(c, now);
}

static void
h2_connected(struct conn *c, uint64_t now)
{

	h2_start(c);
	h2_fill(c, now);
}

/* Read frames, and acknowledge SETTINGS.  Returns 0 if none came. */
static size_t
read_frames(struct conn *c, struct h2_seen *seen, uint64_t now)
{
	size_t n = receive(c, now);

	if (n == 0)
		return (0);
	H2_Eat(&c->h2, (uint8_t *)sink, n, seen);
	if (in_window(c->group, now))
		c->group->not_ok += seen->refused + seen->not_ok;
	if (seen->settings > 0 && has_room(c, H2_FRAME_MAX))
		c->out_len += H2_Settings(c->out + c->out_len, 1);
	return (n);
}

static void
h2_readable(struct conn *c, uint64_t now)
{
	struct h2_seen seen = { 0 };

	if (read_frames(c, &seen, now) == 0)
		return;
	take_answers(c, seen.ended, now);
	h2_fill(c, now);
}

const struct mode mode_h2 = {
	.name = "h2", .flags = IS_OWED | MANY | IS_H2,
	.events = EPOLLIN,
	.connected = h2_connected, .readable = h2_readable, .writable = flush,
};

static void
flood_connected(struct conn *c, uint64_t now)
{

	h2_start(c);
	flush(c, now);
}

static void
flood_readable(struct conn *c, uint64_t now)
{
	struct h2_seen seen = { 0 };

	if (read_frames(c, &seen, now) > 0)
		flush(c, now);
}

/* Send a tick's part of `rate`, if the last part is gone. */
static void
flood_tick(struct conn *c, uint64_t now)
{
	struct group *g = c->group;
	unsigned n = (unsigned)fmax(1, g->rate * TICK / NS);
	uint8_t *p;

	if (!conn_is_waiting(c) || c->out_len > 0)
		return;
	for (; n > 0 && has_room(c, 2 * H2_FRAME_MAX); n--) {
		p = c->out + c->out_len;
		if (g->mode == &mode_h2_ping) {
			p += H2_Ping(p);
			p += H2_Settings(p, 0);
		} else {
			p += H2_Ask(&c->h2, p, g->host, g->path);
			p += H2_Reset(&c->h2, p);
		}
		c->out_len = (size_t)(p - c->out);
		g->sent_in_all++;
	}
	flush(c, now);
}

const struct mode mode_h2_reset = {
	.name = "h2-reset", .flags = NEEDS_RATE | MANY | IS_H2,
	.events = EPOLLIN,
	.connected = flood_connected, .readable = flood_readable,
	.writable = flush, .tick = flood_tick,
};

const struct mode mode_h2_ping = {
	.name = "h2-ping", .flags = NEEDS_RATE | MANY | IS_H2,
	.events = EPOLLIN,
	.connected = flood_connected, .readable = flood_readable,
	.writable = flush, .tick = flood_tick,
};
