/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The price of a resource: how much more work waits than it can do soon.
 *
 * L. Vasilescu, V. Olteanu and C. Raiciu, "Sharing CPUs via endpoint congestion
 * control", KBNets 2017, section 4, gives each flow a queue of its own, and lets
 * all senders see one congestion, that of the sum of the queues.  A flow whose
 * packets cost more gets a stronger signal.  Here the queues are the tenants',
 * and their sum is a time: how long the resource needs for all requests that
 * wait.  So the sums of two resources can be compared: the longer one holds
 * the requests back.
 *
 * The congestion is 0 while the mean of the sum is below a quarter of the
 * buffer.  It rises to 0.1 at three quarters, as RED's probability does in the
 * paper.  Above that it rises without a limit, by 0.9 per three quarters: it is
 * no probability, and must not be the same for two queues that are both long.
 *
 * The lean says how to use both resources if a request can save one at the
 * expense of the other.  If all requests save the scarce one at a time, the
 * other one is scarce a moment later, and each is idle in turn.  So only a part
 * of the requests saves it.  The part rises while it is used more than the other
 * one, by at most 1 in a second, and falls while it is used less.  Congestions
 * are not compared: the same requests wait for both resources, so they do not
 * say which one is idle.
 *
 * All times are ns.  No clock, lock or allocation.  The caller serialises.
 */

#ifndef PRICE_PRICE_H_INCLUDED
#define PRICE_PRICE_H_INCLUDED

#include <stdint.h>

#include "resource.h"

struct price_part {			/* of one tenant; all 0: nothing waits */
	int64_t			queue[REL__RESOURCES];
};

struct price {				/* of all tenants; all 0 at first */
	int64_t			queue[REL__RESOURCES];	/* the sum, now */
	double			mean[REL__RESOURCES];	/* of it, at `set` */
	int64_t			set;		/* when a queue changed last */
	/* The least cost of a waiting request in this second, and in the one
	 * before; 0: there was none */
	int64_t			least[REL__RESOURCES][2];
	int64_t			second;		/* when this second began */
	double			lean;		/* at `leaned` */
	int64_t			leaned;
};

/*
 * Note the queue of a tenant: how long each resource needs for it, and what one
 * request of it costs.  A queue counts as 0 to 10^15.
 */
void PRICE_Set(struct price *, struct price_part *,
    const int64_t queue[REL__RESOURCES], const int64_t cost[REL__RESOURCES],
    int64_t now);

/* Return the congestion of a resource, 0 or more.  buffer: above 0. */
double PRICE_Congestion(const struct price *, enum rel_resource,
    int64_t buffer, int64_t now);

/*
 * Return the lean, -1 to 1: which part of the requests should save net at the
 * expense of cpu.  Below 0: cpu at the expense of net.  It changes only by these
 * calls.  Between two calls at most 0.1 s count.  net, cpu: the parts of both
 * that are used, 0 or more.  Both 0: nothing is scarce, and it returns to 0.
 */
double PRICE_Lean(struct price *, double net, double cpu, int64_t now);

/*
 * Return the price of a request that costs so much: the congestion, times the
 * cost over the least cost of a request that has waited lately.  A cost below 0
 * counts as 0.
 */
double PRICE_Of(const struct price *, enum rel_resource, int64_t cost,
    int64_t buffer, int64_t now);

#endif
