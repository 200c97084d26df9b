/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Weighted fair queueing, on many workers MSFQ (2DFQ, section 2).  The least
 * finish tag goes: the head-of-line request that would end first under
 * generalised processor sharing.
 *
 * No tenant is further behind it than one largest request for each worker.  A
 * tenant with small requests may be far ahead, and then waits for as long.
 */

#include "vtime.h"

static const struct vt_rules wfq_rules = {
	.order = VT_BY_FINISH,
	.eligible = VT_ALL,
};

static void
wfq_init(struct rel *rel)
{
	vt_init(rel, &wfq_rules);
}

const struct rel_policy rel_policy_wfq = {
	.name =		"wfq",
	.summary =	"weighted fair queueing: the lowest finish tag first",
	.init =		wfq_init,
	VT_CALLS
};
