/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The table of policies.  A new policy is one file, its extern in policy.h, and
 * one line here.
 */

#include <assert.h>
#include <string.h>

#include "internal.h"

static const struct rel_policy * const policies[] = {
	&rel_policy_mr3rs,
	&rel_policy_fifo,
	&rel_policy_mr3,
	&rel_policy_wfq,
	&rel_policy_sfq,
	&rel_policy_wf2q,
	&rel_policy_2dfq,
	&rel_policy_2dfqe,
	&rel_policy_drr,
	&rel_policy_rr,
	&rel_policy_drfq,
	&rel_policy_msf2q,
	&rel_policy_mr3vf,
};

#define NPOLICIES	(sizeof policies / sizeof policies[0])

unsigned
REL_Policies(void)
{
	return (NPOLICIES);
}

const char *
REL_PolicyName(unsigned u)
{
	return (u < NPOLICIES ? policies[u]->name : NULL);
}

const char *
REL_PolicySummary(unsigned u)
{
	return (u < NPOLICIES ? policies[u]->summary : NULL);
}

const char *
REL_PolicyEstimator(unsigned u, uint32_t *alpha)
{
	assert(u < NPOLICIES && alpha != NULL);
	*alpha = policies[u]->alpha;
	return (policies[u]->estimator);
}

int
REL_PolicyByName(const char *name)
{
	unsigned u;

	assert(name != NULL);
	for (u = 0; u < NPOLICIES; u++)
		if (strcmp(policies[u]->name, name) == 0)
			return ((int)u);
	return (-1);
}

const struct rel_policy *
rel_policy(unsigned u)
{
	return (u < NPOLICIES ? policies[u] : NULL);
}

void
rel_largest(size_t *state, size_t *tenant)
{
	unsigned u;

	*state = *tenant = 0;
	for (u = 0; u < NPOLICIES; u++) {
		if (policies[u]->state_size > *state)
			*state = policies[u]->state_size;
		if (policies[u]->tenant_size > *tenant)
			*tenant = policies[u]->tenant_size;
	}
}
