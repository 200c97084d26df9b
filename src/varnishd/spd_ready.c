/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * READY connections: they have bytes, and wait for a worker that parses them.
 *
 * A connection belongs to the tenant of its last request.  Tenants have turns.
 * A turn is one connection, usually the first one of the tenant's list.  So a
 * tenant with very many connections does not take over all parsing.  All lists
 * and counters are under spd_lock().
 */

#include "config.h"

#include <stdlib.h>

#include "spd.h"

/* Instead of a tenant: connections without one, with and without a part */
static struct spd_tenant nobody_part, nobody_whole;

#ifndef SPD_IDLE_MAX			/* less in a fuzz target */
#define SPD_IDLE_MAX	2000		/* idle connections with a request */
#endif

/* Tenants with READY connections; locked */
static VTAILQ_HEAD(, spd_tenant) tenants_ready =
    VTAILQ_HEAD_INITIALIZER(tenants_ready);
SPD_STATIC _Atomic unsigned nready;	/* READY connections; changed under
					 * the lock */
SPD_STATIC unsigned nobodys;		/* of nready: without a tenant */

/* Return the number of READY connections.  No lock is needed. */
unsigned
spd_nready(void)
{

	return (nready);
}

/*
 * Return 1 if SPD_IDLE_MAX connections are parked, or wait to be parsed.
 * Further ones then wait without a request.
 */
int
spd_many_idle(void)
{

	return (spd_nparked() + nready >= SPD_IDLE_MAX);
}

/* Return 1 if t stands for connections without a tenant */
static int
spd_of_nobody(const struct spd_tenant *t)
{

	return (t == &nobody_whole || t == &nobody_part);
}

/*
 * Make a connection READY, the last one of its tenant.  If the tenant's
 * record now belongs to another tenant, the connection has none.  Caller
 * holds spd_lock().
 */
void
spd_ready_push(struct spd_conn *c, int64_t now)
{
	struct spd_tenant *t = c->tenant;

	SPD_LOCKED();
	if (t == NULL || TEN_OfData(t)->generation != c->generation) {
		t = c->partial ? &nobody_part : &nobody_whole;
		c->tenant = NULL;
	}
	spd_conn_to(c, SPD_READY);
	c->came = now;
	if (VTAILQ_EMPTY(&t->ready))
		VTAILQ_INSERT_TAIL(&tenants_ready, t, readylist);
	VTAILQ_INSERT_TAIL(&t->ready, c, list);
	nready++;
	spd_part_ready(c, 1);
	nobodys += (unsigned)spd_of_nobody(t);
	spd_vsc->ready = nready;
}

/* Return when the first READY connection came whose tenant is not known, or
 * `now` if there is none.  Caller holds spd_lock(). */
int64_t
spd_unknown_since(int64_t now)
{
	const struct spd_conn *c = VTAILQ_FIRST(&nobody_whole.ready);

	SPD_LOCKED();
	return (c == NULL ? now : c->came);
}

/*
 * Return 1 if no READY connection has a tenant, and the CPU time for such
 * connections is used up (spd_nobody_may()).  Caller holds spd_lock().
 */
int
spd_parse_later(int64_t now)
{

	return (nready > 0 && nready == nobodys &&
	    !spd_nobody_may(now));
}

/* Return 1 if a connection may be parsed now.  Caller holds spd_lock(). */
int
spd_may_parse(void)
{

	return (nready > 0 && !spd_parse_later(METER_Now()));
}

/*
 * Return the tenant's connection to parse next: the first one.  While the first
 * one is late, it is the newest one in every other turn, and in each turn if
 * spare is 1: then no refusal should be made.  A late request is refused.  So
 * if connections come faster than they can be parsed, some requests still get
 * an answer in time.  Connections without a tenant have the least target of
 * all.
 */
static struct spd_conn *
spd_ready_next(struct spd_tenant *t, int64_t now, int spare)
{
	struct spd_conn *c = VTAILQ_FIRST(&t->ready);
	int64_t target;

	AN(c);
	target = spd_of_nobody(t) ? spd_least_target() : spd_target(t);
	t->newest = (spare || !t->newest) && spd_set.mode == SPD_ON &&
	    OVL_Late(spd_set.overload, target, now - c->came);
	return (t->newest ? VTAILQ_LAST(&t->ready, spd_conns) : c);
}

/*
 * Return the next connection to parse, which the caller then owns, or NULL.
 * Those without a tenant lose their turn while their CPU time is used up.
 * spare: 1: prefer what is not refused.  Caller holds spd_lock().
 */
struct spd_conn *
spd_ready_pop(int64_t now, int spare)
{
	struct spd_tenant *t;
	struct spd_conn *c;
	int turns = 0;

	SPD_LOCKED();
	t = VTAILQ_FIRST(&tenants_ready);
	while (t != NULL && spd_of_nobody(t) && !spd_nobody_may(now)) {
		if (++turns > 2)
			return (NULL);
		VTAILQ_REMOVE(&tenants_ready, t, readylist);
		VTAILQ_INSERT_TAIL(&tenants_ready, t, readylist);
		t = VTAILQ_FIRST(&tenants_ready);
	}
	if (t == NULL)
		return (NULL);
	c = spd_ready_next(t, now, spare);
	assert(c->state == SPD_READY);
	VTAILQ_REMOVE(&t->ready, c, list);
	VTAILQ_REMOVE(&tenants_ready, t, readylist);
	if (!VTAILQ_EMPTY(&t->ready))
		VTAILQ_INSERT_TAIL(&tenants_ready, t, readylist);
	spd_conn_to(c, SPD_BUSY);
	AN(nready);
	nready--;
	spd_part_ready(c, -1);
	nobodys -= (unsigned)spd_of_nobody(t);
	spd_vsc->ready = nready;
	return (c);
}

void
spd_ready_init(void)
{

	INIT_OBJ(&nobody_part, SPD_TENANT_MAGIC);
	VTAILQ_INIT(&nobody_part.ready);
	INIT_OBJ(&nobody_whole, SPD_TENANT_MAGIC);
	VTAILQ_INIT(&nobody_whole.ready);
}
