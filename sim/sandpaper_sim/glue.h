/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * What the simulator calls, once an event: the releaser and the estimators
 * with tenants, requests and slots as numbers.  It plays the part that
 * varnishd's gate has, and decides nothing: who goes next is the policy's.
 *
 * Costs and estimates are those of perfctr/account.c, as in varnishd.
 * With the estimator "oracle" the releaser has the cost of the tenant's first
 * waiting request.
 *
 * All times and costs are ns.  Lines with # are not for cffi.
 */

#ifndef GLUE_H_INCLUDED
#define GLUE_H_INCLUDED

#include <stdint.h>

/* A request that is done */
struct sim_record {
	int64_t			arrival, start, end;	/* ns */
	int64_t			cpu, net;		/* ns, what it cost */
	int32_t			tenant, slot;
};

/* Of the request that sim_dequeue() returned last */
struct sim_answer {
	int32_t			tenant;
	int64_t			cpu, net;		/* ns */
	int64_t			charge;		/* ns, k */
	int64_t			when;		/* ns, of SIM_NOT_YET */
};

struct rel;
struct rel_tenant;
struct sim;

/* Asserts that policy and estimator exist.  NULL: no memory.  keep: records
 * are kept */
struct sim *sim_new(const char *policy, unsigned slots, unsigned options,
    const char *estimator, uint32_t alpha, int keep);
void sim_free(struct sim *);
/* Charge a request's own larger cost (the paper's Figure 8, line 10).  Without
 * this call, what it adds to the larger sum of its tenant, as varnishd does */
void sim_by_request(struct sim *);
struct sim_answer *sim_answer(struct sim *);
/* For the library's own calls: see _build.py */
struct rel *sim_rel(struct sim *);
struct rel_tenant *sim_rel_tenant(struct sim *, int32_t tenant);

/* Weight 1024 is 1.0; the tenant's number, from 0; -1: no memory */
int32_t sim_tenant(struct sim *, uint32_t weight);
/* Hosts that no map names begin in the group; without this call, as tenants */
void sim_new_hosts(struct sim *, int32_t group, int64_t now);
/* The tenant is a Host that no map names; good: all its answers are evidence */
void sim_host(struct sim *, int32_t tenant, int good, int64_t now);
/* Its record is for another Host from now on. 0: it is not idle, or proven */
int sim_another_host(struct sim *, int32_t tenant, int good, int64_t now);
/* NEW_Next(): a tenant that is proven now, or new again; -1: none */
int32_t sim_new_next(struct sim *, int64_t now);
int sim_new_is(const struct sim *, int32_t tenant);	/* NEW_Is() */
void sim_charge(struct sim *, int32_t tenant, int64_t cost, int64_t now);

/* The request's number, which is free again when it is done; -1: no memory */
int32_t sim_enqueue(struct sim *, int32_t tenant, int64_t cpu, int64_t net,
    int64_t now);
/* A request's number, or */
enum {
	SIM_EMPTY = -1,
	SIM_NO_SLOT = -2,
	SIM_NOT_YET = -3
};
int32_t sim_dequeue(struct sim *, unsigned slot, unsigned closed, int64_t now);
void sim_progress(struct sim *, int32_t request, unsigned resource,
    int64_t now);
/* cost: its CPU time so far, ns */
void sim_refresh(struct sim *, int32_t request, int64_t cost, int64_t now);
/* scale, Q16: as in REL_Complete(); 0: its CPU time was not measured */
void sim_complete(struct sim *, int32_t request, uint32_t scale, int64_t now);
void sim_cancel(struct sim *, int32_t request, int64_t now);

/* Those that are done, in order; until the next call of any */
const struct sim_record *sim_records(const struct sim *, int64_t *n);
/* How many are not, and the first `room` of these; what is to come is -1 */
int64_t sim_open(const struct sim *, struct sim_record *, int64_t room);

/* The default of a parameter of varnishd; NULL: there is no such one */
const char *sim_default(const char *name);

#endif
