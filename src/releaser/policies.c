/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The table of policies, from REL_POLICIES in policy.h.
 */

#include <assert.h>
#include <string.h>

#include "internal.h"

#define POLICY(name)	&rel_policy_##name,
static const struct rel_policy * const policies[] = {
	REL_POLICIES(POLICY)
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
