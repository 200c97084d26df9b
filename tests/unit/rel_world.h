/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * A releaser with tenants and requests, for tests.
 *
 * It keeps its own books of every request (the shadow), so that what a
 * policy answers can be judged without believing the library: a request
 * has a serial number, and a tenant's must come out in their order.
 */

#ifndef REL_WORLD_H_INCLUDED
#define REL_WORLD_H_INCLUDED

#include <stdint.h>

#include "policy.h"

#define WORLD_TENANTS	64
#ifndef WORLD_REQS		/* fewer are faster to set up */
#define WORLD_REQS	8192
#endif

struct req {
	struct rel_node		node;
	unsigned		tenant;
	unsigned		state;		/* shadow: enum rel_state */
	uint64_t		serial;		/* in its tenant */
	int64_t			cost;		/* ns, the true one */
	int64_t			net;		/* ns */
	int64_t			left;		/* ns, of cost */
	unsigned		place;		/* in free or running */
};

struct world {
	struct rel		*rel;
	unsigned		ntenants;
	struct rel_tenant	*tenant[WORLD_TENANTS];
	uint32_t		weight[WORLD_TENANTS];
	unsigned		group[WORLD_TENANTS];	/* 1 + its number */
	int64_t			estimate[WORLD_TENANTS][REL__RESOURCES];
	uint64_t		enqueued[WORLD_TENANTS];
	uint64_t		next_out[WORLD_TENANTS];
	unsigned		waiting[WORLD_TENANTS];
	unsigned		nwaiting, nrunning, nfree;
	struct req		*running[WORLD_REQS];
	struct req		*free[WORLD_REQS];
	struct req		*reqs;
	uint64_t		hash;		/* of the trace */
	uint64_t		rng;
	int64_t			now;
	unsigned		nslots;
	int64_t			when;		/* of the last dequeue */
	const char		*fault;		/* the first property broken */
};

uint64_t rng_below(uint64_t *, uint64_t n);

/* Takes over the releaser */
struct world *world_new(struct rel *, unsigned nslots, uint64_t seed);
void world_free(struct world **);
unsigned world_tenant(struct world *, uint32_t weight);
/* A tenant without requests goes, another one gets its memory and number */
void world_renew(struct world *, unsigned tenant, uint32_t weight);
void world_estimate(struct world *, unsigned tenant, int64_t cpu, int64_t net);
/* Of group 1 + its number, or 0: of none */
void world_group(struct world *, unsigned tenant, unsigned group);
struct req *world_enqueue(struct world *, unsigned tenant, int64_t cost);
/* The request runs at once: REL_Run() */
struct req *world_run(struct world *, unsigned tenant, int64_t cost);
/* The released request, or NULL; faults are noted.  answer may be NULL */
struct req *world_dequeue(struct world *, unsigned slot, unsigned closed,
    enum rel_answer *answer);
void world_complete(struct world *, struct req *, int64_t cost,
    uint32_t scale);
void world_cancel(struct world *, struct req *);

/*
 * Processor sharing: all that run get the same part of one CPU, until one
 * ends (it is returned, still running) or `until` (NULL).  Time is in ns.
 */
struct req *world_share(struct world *, int64_t until);

#endif
