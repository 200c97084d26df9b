/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * A tenant's cost account: see account.h.  All rules are about two sums, of cpu
 * and of net, of which `net_minus_cpu` keeps the difference.
 */

#include "account.h"

int64_t
ACC_Settle(struct account *a, int64_t cpu, int64_t net)
{

	a->settled = 1;
	return (COST_Dominant(&a->net_minus_cpu, cpu, net));
}

int64_t
ACC_Charge(struct account *a, int64_t cpu, int64_t net)
{

	return (COST_Dominant(&a->net_minus_cpu, cpu, net));
}

/* The sums change when the request is done */
int64_t
ACC_SoFar(const struct account *a, int64_t cpu)
{
	int64_t net_minus_cpu = a->net_minus_cpu;

	return (COST_Dominant(&net_minus_cpu, cpu, 0));
}

/* Bytes are always measured.  So only CPU time stands for other requests. */
uint32_t
ACC_Scale(const struct account *a, uint32_t drawn)
{

	return (ACC_Leading(a) == REL_CPU ? drawn : REL_SCALE_ONE);
}

/*
 * The releaser holds tenants whose dominant resource is closed.  A tenant that
 * turns to another resource sends large answers before its sums show this.  So
 * a need of ACC_TURNED times as much counts as a turn.
 */
void
ACC_Next(const struct account *a, int64_t ns[REL__RESOURCES])
{
	enum rel_resource d;

	if (!a->settled)
		return;
	d = ACC_Leading(a);
	if (ns[!d] / ACC_TURNED > ns[d])
		d = !d;
	if (ns[!d] > ns[d])
		ns[!d] = ns[d];
}
