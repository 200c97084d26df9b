/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 *	browse	`think` seconds after an answer the client asks again.  After
 *		`per_conn` answers it closes the connection.  It connects anew
 *		when it asks again.
 *
 * This is the client of SEDA (M. Welsh's thesis, chapter 6, section 1.3).  A
 * response time counts from when the client begins to connect, if it has to.
 *
 * All clients of a group think as long, so they ask in the order in which they
 * began to think: a queue.
 */

#include <stddef.h>
#include <sys/epoll.h>

#include "loadgen.h"

static void
browse_think(struct conn *c, uint64_t now)
{
	struct group *g = c->group;

	c->thinks_until = now + (uint64_t)(g->think * (double)NS);
	c->next_thinking = NULL;
	if (g->thinking == NULL) {
		g->thinking = c;
		g->next_arrival = c->thinks_until;
	} else
		g->last_thinking->next_thinking = c;
	g->last_thinking = c;
}

/* An answer is complete. */
static void
browse_idle(struct conn *c, uint64_t now)
{

	c->used++;
	if (c->http1.closes || c->used == c->group->per_conn)
		conn_close(c, 0);
	browse_think(c, now);
}

static void
browse_connected(struct conn *c, uint64_t now)
{

	c->used = 0;
	if (c->thinks_until == 0 && !is_spent(c->group) && loads(c->group))
		conn_ask(c, c->asked, now);
}

/* A client has thought.  Until it has a connection its request waits. */
static void
browse_ask(struct conn *c, uint64_t now)
{

	c->thinks_until = 0;
	if (c->state == CONNECTING)
		c->asked = now;
	else if (c->state == IDLE && c->fd < 0)
		conn_connect(c, now);
	else if (c->state == IDLE)
		conn_ask(c, now, now);
}

static uint64_t
browse_arrival(struct group *g, struct conn *idle, uint64_t now)
{
	struct conn *c = g->thinking;

	(void)idle;
	if (c != NULL) {
		g->thinking = c->next_thinking;
		browse_ask(c, now);
	}
	c = g->thinking;
	return ((c != NULL ? c->thinks_until : UINT64_MAX) - g->next_arrival);
}

const struct mode mode_browse = {
	.name = "browse", .flags = IS_OWED | WAITS | CONNECTS,
	.events = EPOLLIN, .arrival = browse_arrival,
	.connected = browse_connected, .ask = conn_get, .idle = browse_idle,
	.readable = conn_take,
};
