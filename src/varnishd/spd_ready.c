/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Connections with bytes wait to be parsed, in turn by the tenant of their last
 * request, and in order of arrival within one: one tenant's flood of connections
 * does not take parsing over.
 */

#include "config.h"

#include <stdlib.h>

#include "spd.h"

/* Connections without a tenant yet: with a part of a request, or nothing */
static struct spd_tenant spd_parts, spd_new;

static int
spd_of_nobody(const struct spd_tenant *t)
{

	return (t == &spd_new || t == &spd_parts);
}

void
spd_ready_push(struct spd_conn *c)
{
	struct spd_tenant *t = c->tenant;

	SPD_LOCKED();
	if (t == NULL || TEN_OfHost(t)->generation != c->generation) {
		t = c->partial ? &spd_parts : &spd_new;
		c->tenant = NULL;
	}
	c->state = SPD_READY;
	if (VTAILQ_EMPTY(&t->ready))
		VTAILQ_INSERT_TAIL(&spd.readylist, t, readylist);
	VTAILQ_INSERT_TAIL(&t->ready, c, list);
	spd.nready++;
	spd.parts_ready += c->partial;
	spd.nobodys += (unsigned)spd_of_nobody(t);
	spd.vsc->ready = spd.nready;
}

/* Locked.  Nobody's time is used up, and only nobody's connections are ready */
int
spd_held_back(int64_t now)
{

	return (spd.nready > 0 && spd.nready == spd.nobodys &&
	    !spd_nobody_may(now));
}

/* Locked.  Is there a connection that may be parsed? */
int
spd_may_parse(void)
{

	return (spd.nready > 0 && !spd_held_back(METER_Now()));
}

struct spd_conn *
spd_ready_pop(int64_t now)
{
	struct spd_tenant *t;
	struct spd_conn *c;
	int turns = 0;

	SPD_LOCKED();
	t = VTAILQ_FIRST(&spd.readylist);
	while (t != NULL && spd_of_nobody(t) && !spd_nobody_may(now)) {
		if (++turns > 2)
			return (NULL);
		VTAILQ_REMOVE(&spd.readylist, t, readylist);
		VTAILQ_INSERT_TAIL(&spd.readylist, t, readylist);
		t = VTAILQ_FIRST(&spd.readylist);
	}
	if (t == NULL)
		return (NULL);
	c = VTAILQ_FIRST(&t->ready);
	AN(c);
	assert(c->state == SPD_READY);
	VTAILQ_REMOVE(&t->ready, c, list);
	VTAILQ_REMOVE(&spd.readylist, t, readylist);
	if (!VTAILQ_EMPTY(&t->ready))
		VTAILQ_INSERT_TAIL(&spd.readylist, t, readylist);
	c->state = SPD_BUSY;
	AN(spd.nready);
	spd.nready--;
	spd.parts_ready -= c->partial;
	spd.nobodys -= (unsigned)spd_of_nobody(t);
	spd.vsc->ready = spd.nready;
	return (c);
}

void
spd_ready_init(void)
{

	VTAILQ_INIT(&spd.readylist);
	INIT_OBJ(&spd_parts, SPD_TENANT_MAGIC);
	VTAILQ_INIT(&spd_parts.ready);
	INIT_OBJ(&spd_new, SPD_TENANT_MAGIC);
	VTAILQ_INIT(&spd_new.ready);
}
