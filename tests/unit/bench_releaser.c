/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * What a decision costs: ns per enqueue + dequeue + complete, each policy,
 * with 10 slots and 10 requests waiting per tenant.  Not part of check.
 */

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "policy.h"

#define QUEUE	10U
#define SLOTS	10U
#define ROUNDS	1000000U

static double
now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ((double)ts.tv_sec * 1e9 + (double)ts.tv_nsec);
}

static struct rel_tenant *
new_tenant(struct rel *rel, uint32_t *seed)
{
	size_t sz = (REL_TenantSize() + 63) & ~(size_t)63;
	void *mem = aligned_alloc(64, sz);
	struct rel_tenant *t;
	int64_t k[REL__RESOURCES];

	assert(mem != NULL);
	t = REL_TenantInit(rel, mem, REL_WEIGHT_ONE);
	*seed = *seed * 1664525 + 1013904223;
	k[REL_CPU] = 10000 + (*seed >> 12);
	k[REL_NET] = (*seed >> 16) & 0xffff;
	REL_SetEstimate(rel, t, k);
	return (t);
}

static double
measure(unsigned policy, unsigned tenants)
{
	struct rel_node *nodes, *n, *running[SLOTS] = { NULL };
	struct rel_tenant **t, *last;
	uint32_t seed = 1;
	int64_t when;
	double begun, ns;
	struct rel *rel;
	unsigned i;

	rel = REL_New(policy, SLOTS, REL_OPT_ALL, NULL, NULL);
	nodes = calloc((size_t)tenants * QUEUE, sizeof *nodes);
	t = calloc(tenants, sizeof(*t));
	assert(rel != NULL && nodes != NULL && t != NULL);
	for (i = 0; i < tenants; i++)
		t[i] = new_tenant(rel, &seed);
	for (i = 0; i < tenants * QUEUE; i++)
		REL_Enqueue(rel, t[i % tenants], &nodes[i], 0);
	begun = now_ns();
	for (i = 0; i < ROUNDS; i++) {
		n = running[i % SLOTS];
		if (n != NULL) {
			last = n->tenant;
			seed = seed * 1664525 + 1013904223;
			REL_Complete(rel, n, n->charge / 2 +
			    (int64_t)(seed >> 14), REL_SCALE_ONE, i);
			REL_Enqueue(rel, last, n, i);
		}
		if (REL_Dequeue(rel, i, i % SLOTS, 0, &running[i % SLOTS],
		    &when) != REL_RELEASED)
			abort();
	}
	ns = (now_ns() - begun) / ROUNDS;
	for (i = 0; i < SLOTS; i++)
		REL_Complete(rel, running[i], -1, REL_SCALE_ONE, 0);
	for (i = 0; i < tenants * QUEUE; i++)
		if (nodes[i].state == REL_WAITING)
			REL_Cancel(rel, &nodes[i], 0);
	for (i = 0; i < tenants; i++) {
		REL_TenantFini(rel, t[i]);
		free(t[i]);
	}
	free(t);
	free(nodes);
	REL_Destroy(&rel);
	return (ns);
}

int
main(void)
{
	unsigned u;

	for (u = 0; u < REL_Policies(); u++)
		printf("%-8s %4.0f ns at 100 tenants, %4.0f ns at 10,000 "
		    "(enqueue + dequeue + complete)\n", REL_PolicyName(u),
		    measure(u, 100), measure(u, 10000));
	return (0);
}
