/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Modes of clients that misbehave, with HTTP/1.
 *
 *	stall	ask and never read, with a small receive buffer
 *	slow	the same, but read about `rate` bytes/s a connection
 *	reset	ask, read a little, reset; `rate` a second in all
 *	drip	send a head that never ends, a byte every 1/rate seconds
 *	post	send a head, then a byte of body every 1/rate seconds
 *	connect	connect and close; `rate` a second in all
 *
 * Those that do not read watch for the end of the connection only.
 */

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "loadgen.h"

#define RESET_AFTER	1024	/* bytes */
#define LENGTH		1000000	/* bytes of a body that drips */

const struct mode mode_stall = {
	.name = "stall", .flags = WAITS | FEW_BYTES, .events = EPOLLRDHUP,
	.connected = conn_again, .ask = conn_get, .idle = conn_again,
};

static void
slow_tick(struct conn *c, uint64_t now)
{

	if (conn_is_waiting(c))
		conn_answer(c, (size_t)(c->group->rate * TICK / NS) + 1, now);
}

const struct mode mode_slow = {
	.name = "slow", .flags = NEEDS_RATE | WAITS | FEW_BYTES,
	.events = EPOLLRDHUP, .connected = conn_again, .ask = conn_get,
	.idle = conn_again, .tick = slow_tick,
};

static uint64_t
connect_arrival(struct group *g, struct conn *idle, uint64_t now)
{

	if (idle != NULL)
		conn_connect(idle, now);
	return ((uint64_t)((double)NS / g->rate));
}

static void
reset_connected(struct conn *c, uint64_t now)
{

	conn_ask(c, now, now);
}

/* Part of the response is here: that is all this one wants. */
static void
reset_readable(struct conn *c, uint64_t now)
{
	struct group *g = c->group;

	if (!conn_read(c, RESET_AFTER, BODY_CHUNK, now))
		return;
	g->answered_in_all++;
	if (in_window(g, now))
		g->done++;
	conn_close(c, 1);
	conn_is_idle(c);
}

const struct mode mode_reset = {
	.name = "reset", .flags = NEEDS_RATE | FRESH, .events = EPOLLIN,
	.arrival = connect_arrival, .connected = reset_connected,
	.ask = conn_get, .readable = reset_readable,
};

/* Nothing yet: all of the request drips. */
static void
drip_ask(struct conn *c, uint64_t now)
{

	c->dripped = 0;
	c->due = conn_first(c, now);
}

/* One byte: of the head, if it is not sent yet */
static void
drip_tick(struct conn *c, uint64_t now)
{
	char head[1024] = "";
	const char *byte = "x";

	if (!conn_is_waiting(c) || c->due > now)
		return;
	if (c->group->mode == &mode_drip)
		(void)snprintf(head, sizeof head, "GET %s HTTP/1.1\r\n"
		    "Host: %s\r\nX: ", c->group->path, c->group->host);
	if (c->dripped < strlen(head))
		byte = head + c->dripped;
	c->dripped++;
	c->due = now + conn_period(c);
	conn_send(c, byte, 1, now);
}

const struct mode mode_drip = {
	.name = "drip", .flags = NEEDS_RATE, .events = EPOLLRDHUP,
	.connected = conn_again, .ask = drip_ask, .idle = conn_again,
	.tick = drip_tick,
};

static void
post_ask(struct conn *c, uint64_t now)
{
	char buf[REQUEST_MAX];
	int l;

	l = snprintf(buf, sizeof buf, "POST %s HTTP/1.1\r\nHost: %s\r\n"
	    "Content-Length: %d\r\n\r\n", c->group->path, c->group->host,
	    LENGTH);
	assert(l > 0 && (size_t)l < sizeof buf);
	c->due = conn_first(c, now);
	conn_send(c, buf, (size_t)l, now);
}

const struct mode mode_post = {
	.name = "post", .flags = NEEDS_RATE, .events = EPOLLRDHUP,
	.connected = conn_again, .ask = post_ask, .idle = conn_again,
	.tick = drip_tick,
};

static void
connect_connected(struct conn *c, uint64_t now)
{

	(void)now;
	c->group->sent_in_all++;
	c->group->answered_in_all++;
	conn_close(c, 0);
}

const struct mode mode_connect = {
	.name = "connect", .flags = NEEDS_RATE | FRESH,
	.arrival = connect_arrival, .connected = connect_connected,
};
