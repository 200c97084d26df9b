/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * First in, first out, over all tenants: what stock Varnish does.
 *
 * For `observe`, and as the baseline.  Nothing is accounted, and closed
 * resources hold nothing up.
 */

#include <assert.h>

#include "policy.h"

static enum rel_answer
fifo_dequeue(struct rel *rel, int64_t now, unsigned slot, unsigned closed,
    struct rel_node **node, int64_t *when)
{
	(void)now;
	(void)closed;
	(void)when;
	assert(!list_empty(&rel->order));
	*node = LIST_OF(rel->order.next, struct rel_node, order);
	rel_release(rel, *node, slot);
	return (REL_RELEASED);
}

const struct rel_policy rel_policy_fifo = {
	.name =		"fifo",
	.summary =	"order of arrival, whoever the tenant",
	.dequeue =	fifo_dequeue,
};
