/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * A connection that does not wait for its answers: pipelining, HTTP/2.
 */

#define _GNU_SOURCE
#include "loadgen.h"

/* Send what is to be sent; what the socket does not take waits for it. */
void
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
void
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

/* Read from a connection on which several answers are owed. */
void
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

void
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

/* What an h2 connection sends in a tick, if all of the last is gone */
void
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
