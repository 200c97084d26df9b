/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Prices in varnishd: what waits, given to src/price.
 *
 * A tenant's queue is its waiting requests, each at the tenant's estimate.  The
 * CPU time of fetches is no part of that estimate: it is added here.  Fetches
 * that have an answer are a queue for the cores, too: no slot limits these.
 * While the cores are busy all fetches are, as an answer may wait for a core to
 * read it.  While they are not busy, nothing waits for them: the requests wait
 * for net, or for the limit of their tenant.
 *
 * Released bytes that are not sent yet wait for net: no request of a tenant that
 * is alone there waits.
 *
 * The congestion is in parts of a buffer: sandpaper_standing, or SPD_BUFFER if
 * that is 0.  All functions are called with spd_lock() held.
 */

#include "config.h"

#include <stdlib.h>

#include "spd.h"

#define SPD_BUSY	90	/* % of the cores: they are busy */
#define SPD_HALF	.5	/* parts used: nothing is scarce if both are less */
#define SPD_FETCH_MEMORY 16	/* requests, or fetches, of a mean */
#define SPD_BUFFER	20000000	/* ns */

static struct price price;
static struct price_part to_send;		/* of net: released bytes */
static unsigned used;			/* % of the cores, in the last 0.1 s */

/* The process uses this percentage of its cores. */
void
spd_price_busy(unsigned percent)
{

	SPD_LOCKED();
	used = percent;
}

static int
is_busy(void)
{

	return (used >= SPD_BUSY);
}

static int64_t
spd_buffer(void)
{

	return (spd_set.standing > 0 ? spd_set.standing : SPD_BUFFER);
}

/* Return what the tenant's next request costs, with its fetches. */
static int64_t
spd_price_cost(const struct spd_tenant *t, enum rel_resource r)
{

	return (t->estimate[r] + (r == REL_CPU ? t->fetch_each : 0));
}

/* The tenant's queue, or its estimate, has changed. */
void
spd_price_queue(struct spd_tenant *t, int64_t now)
{
	int64_t queue[REL__RESOURCES], cost[REL__RESOURCES];
	int64_t waiting = REL_TenantWaiting(t->rel);
	int r;

	SPD_LOCKED();
	for (r = 0; r < REL__RESOURCES; r++) {
		cost[r] = spd_price_cost(t, r);
		queue[r] = waiting * cost[r];
	}
	queue[REL_CPU] += (is_busy() ? t->fetches :
	    t->fetches - t->origins.waiting) * t->fetch_mean;
	PRICE_Set(&price, &t->price, queue, cost, now);
}

/* A fetch of the tenant has taken `cpu` ns of CPU. */
void
spd_price_fetched(struct spd_tenant *t, int64_t cpu)
{

	SPD_LOCKED();
	cpu /= spd_set.cores;
	t->fetched += cpu;
	t->fetch_mean += (cpu - t->fetch_mean) / SPD_FETCH_MEMORY;
}

/* A request of the tenant is done: its fetches cost what was added since the
 * last one. */
void
spd_price_done(struct spd_tenant *t)
{

	SPD_LOCKED();
	t->fetch_each += (t->fetched - t->fetch_each) / SPD_FETCH_MEMORY;
	t->fetched = 0;
}

/* Note what net has to send. */
static void
spd_price_link(int64_t now)
{
	const int64_t cost[REL__RESOURCES] = { 0, 0 };
	const int64_t queue[REL__RESOURCES] = {
		[REL_NET] = spd_link_backlog(now)
	};

	PRICE_Set(&price, &to_send, queue, cost, now);
}

/* Return the congestion of a resource. */
double
spd_congestion(enum rel_resource r, int64_t now)
{

	SPD_LOCKED();
	spd_price_link(now);
	if (r == REL_CPU && !is_busy())
		return (0);
	return (PRICE_Congestion(&price, r, spd_buffer(), now));
}

/* Is the congestion of a resource above 0, even if the cores are not busy? */
static int
is_congested(int64_t now)
{
	int64_t buffer = spd_buffer();

	return (PRICE_Congestion(&price, REL_NET, buffer, now) > 0 ||
	    PRICE_Congestion(&price, REL_CPU, buffer, now) > 0);
}

/* Return the lean (price/price.h).  Nothing is scarce while the use of net is not
 * known, while less than half of each resource is used, or while both congestions
 * are 0. */
double
spd_lean(int64_t now)
{
	double net = spd_link_used(), cpu = used / 100.;

	SPD_LOCKED();
	spd_price_link(now);
	if (net < 0 || vmax(net, cpu) < SPD_HALF || !is_congested(now))
		net = cpu = 0;
	return (PRICE_Lean(&price, net, cpu, now));
}

/* Return the price of the tenant's next request.  The keeper's last look at net,
 * at most 0.1 s ago, is part of it. */
double
spd_price(const struct spd_tenant *t, enum rel_resource r, int64_t now)
{

	SPD_LOCKED();
	if (r == REL_CPU && !is_busy())
		return (0);
	return (PRICE_Of(&price, r, spd_price_cost(t, r), spd_buffer(), now));
}
