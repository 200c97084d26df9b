/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * A tenant's cost account: which resource the tenant pays for, and what its
 * next request should cost.  varnishd and the simulator call the same code, so
 * both give the releaser the same costs and estimates.
 *
 * A request whose CPU time was not measured costs its estimate, and is no
 * sample of CPU.  No clock, lock or allocation.  The caller holds the lock.
 */

#ifndef ACCOUNT_H_INCLUDED
#define ACCOUNT_H_INCLUDED

#include "perfctr/cost.h"
#include "resource.h"

/*
 * Call these in this order:
 *
 *	a tenant's first request	estimate
 *	a request is done		ACC_Settle(), ACC_Scale(),
 *					REL_Complete(), ACC_Sample(), estimate
 *	other CPU time			ACC_Charge(), REL_Charge()
 *	a request runs for long		ACC_SoFar(), REL_Refresh()
 *
 * Estimate: ACC_Value() for each resource, in ns; ACC_Next();
 * REL_SetEstimate().  Nothing else changes the releaser's estimate.  A tenant
 * without a completed request keeps the mean that it began with.  A host with
 * known costs, or with several struct acc_key for a tenant, also estimates when
 * the tenant's head-of-line request changes.
 */

/* The estimator, and the means of all tenants */
struct acc_costs {
	unsigned		estimator;	/* a kind, of cost.h */
	uint32_t		alpha;		/* the estimator's, Q16 */
	struct est_mean		mean[REL__RESOURCES];
};

/* A kind of requests.  Samples are in the host's unit: ns, or bytes. */
struct acc_key {
	struct est		est[REL__RESOURCES];
};

/* One for each tenant; all zero at first */
struct account {
	int64_t			net_minus_cpu;	/* ns, net minus cpu: see
						 * COST_Dominant() */
	unsigned		settled;	/* a request was settled */
};

/*
 * Return the resource of which the tenant has used most in all (Ghodsi et al.,
 * DRF).  Sums decide, not single requests.  The mean of the larger cost of each
 * request is more than the larger of the mean costs.  So a tenant whose two
 * costs are close would pay for the noise in them.
 */
static inline enum rel_resource
ACC_Leading(const struct account *a)
{

	return (a->net_minus_cpu > 0 ? REL_NET : REL_CPU);
}

/* Return the estimate of one resource, in the host's unit */
static inline int64_t
ACC_Value(const struct acc_costs *c, const struct acc_key *k,
    enum rel_resource r)
{

	return (EST_Value(&k->est[r], &c->mean[r]));
}

/* Note what a request has used of one resource, in the host's unit */
static inline void
ACC_Sample(struct acc_costs *c, struct acc_key *k, enum rel_resource r,
    int64_t used)
{

	EST_Sample(c->estimator, &k->est[r], used, c->alpha);
	EST_MeanSample(&c->mean[r], used);
}

/*
 * Return the dominant cost, ns, of: a request that is done; work outside of a
 * request, or a part of a request; a running request, by the CPU time that it
 * has used.  ACC_SoFar() leaves the sums as they are.
 */
int64_t ACC_Settle(struct account *, int64_t cpu, int64_t net);
int64_t ACC_Charge(struct account *, int64_t cpu, int64_t net);
int64_t ACC_SoFar(const struct account *, int64_t cpu);

/*
 * Return the factor of a settlement.  Call it after ACC_Settle().  drawn: 1/p
 * if only a draw had the request's CPU time measured, else REL_SCALE_ONE.
 */
uint32_t ACC_Scale(const struct account *, uint32_t drawn);

/* A request that took more than this many times its charge is always
 * measured */
#define ACC_DEAR		4

/*
 * Turn the needs of the next request into an estimate for REL_SetEstimate(),
 * ns.
 *
 * The leading resource becomes the dominant one.  The other becomes it instead
 * if its need is more than ACC_TURNED times as large.  The estimate that is not
 * dominant is at most the dominant one.  Before the first settlement nothing
 * changes.
 */
#define ACC_TURNED		2
void ACC_Next(const struct account *, int64_t ns[REL__RESOURCES]);

#endif
