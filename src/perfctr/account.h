/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * A tenant's cost account: which resource it is charged for, and what its next
 * request is expected to cost.  varnishd and the simulator both call this code,
 * so that both give the releaser the same costs and estimates.
 *
 * What a host does, in this order:
 *
 *	a tenant's first request	estimate
 *	a request is done		ACC_Settle(), ACC_Scale(),
 *					REL_Complete(), ACC_Sample(), estimate
 *	other CPU time			ACC_Charge(), REL_Charge()
 *	a request runs for long		ACC_SoFar(), REL_Refresh()
 *
 * Estimate: ACC_Value() for each resource, as ns; ACC_Next();
 * REL_SetEstimate().  No other event changes the releaser's estimate: a tenant
 * without a completed request keeps the mean of its beginning.  A host whose
 * estimate depends on the request (more than one struct acc_key for a tenant,
 * or known costs) does so also when another request becomes the first one.
 *
 * A request whose CPU time was not measured costs its estimate, and is no
 * sample of CPU.
 *
 * No clock, no lock, no allocation.  The caller holds the lock.
 */

#ifndef ACCOUNT_H_INCLUDED
#define ACCOUNT_H_INCLUDED

#include "perfctr/cost.h"
#include "resource.h"

/* How costs are estimated, and the mean of all tenants */
struct acc_costs {
	unsigned		estimator;	/* of cost.h */
	uint32_t		alpha;		/* its, Q16 */
	struct est_mean		mean[REL__RESOURCES];
};

/* A kind of requests.  Samples are in the host's unit: ns, or bytes */
struct acc_key {
	struct est		est[REL__RESOURCES];
};

/* A tenant.  All zero: a new one */
struct account {
	int64_t			lead;		/* ns, see COST_Dominant() */
	unsigned		settled;	/* one request at least was */
};

/*
 * The leading resource: the one of which the tenant has used most in all
 * (Ghodsi et al., DRF).  Sums decide, not single requests: the mean of each
 * request's larger cost is more than the larger of the mean costs, and a
 * tenant whose two costs are close would pay for the noise in them.
 */
static inline enum rel_resource
ACC_Leading(const struct account *a)
{

	return (a->lead > 0 ? REL_NET : REL_CPU);
}

/* What the next request needs of one resource, in the host's unit */
static inline int64_t
ACC_Value(const struct acc_costs *c, const struct acc_key *k,
    enum rel_resource r)
{

	return (EST_Value(&k->est[r], &c->mean[r]));
}

/* What a request has used of one resource, in the host's unit */
static inline void
ACC_Sample(struct acc_costs *c, struct acc_key *k, enum rel_resource r,
    int64_t used)
{

	EST_Sample(c->estimator, &k->est[r], used, c->alpha);
	EST_MeanSample(&c->mean[r], used);
}

/*
 * The dominant cost, ns: of a request that is done; of what is no
 * request's, or a part of one; of a request that runs on, for the CPU time that
 * it has used.
 */
int64_t ACC_Settle(struct account *, int64_t cpu, int64_t net);
int64_t ACC_Charge(struct account *, int64_t cpu, int64_t net);
int64_t ACC_SoFar(const struct account *, int64_t cpu);

/*
 * The factor of a settlement, after ACC_Settle().  drawn: 1/p, if only a draw
 * had the request's CPU time measured, else REL_SCALE_ONE.
 */
uint32_t ACC_Scale(const struct account *, uint32_t drawn);

/* A request that took more than so many times its charge is always measured */
#define ACC_DEAR		4

/*
 * In: what the next request needs of each resource, ns.  Out: what
 * REL_SetEstimate() gets: the leading resource's is the larger one, unless the
 * other one is ACC_TURNED times as large.
 */
#define ACC_TURNED		2
void ACC_Next(const struct account *, int64_t ns[REL__RESOURCES]);

#endif
