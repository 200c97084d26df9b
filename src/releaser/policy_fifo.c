/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * First in, first out, over all tenants, as stock Varnish does.
 *
 * For `observe`, and as the baseline.  The policy has no accounts, and ignores
 * groups and closed resources.  O(1), and O(n) in the throttled requests that
 * arrived before the one that goes.
 */

#include <assert.h>

#include "policy.h"

static enum rel_answer
fifo_dequeue(struct rel *rel, int64_t now, unsigned slot, unsigned closed,
    struct rel_node **node, int64_t *when)
{
	struct rel_link *l = rel->order.next;

	(void)now;
	(void)closed;
	(void)when;
	do {
		assert(l != &rel->order);
		*node = LIST_OF(l, struct rel_node, order);
		l = l->next;
	} while ((*node)->state != REL_WAITING);
	rel_release(rel, *node, slot);
	return (REL_RELEASED);
}

const struct rel_policy rel_policy_fifo = {
	.name =		"fifo",
	.summary =	"order of arrival, without regard to the tenant",
	.ungrouped =	1,
	.dequeue =	fifo_dequeue,
};
