/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Worst-case fair weighted fair queueing, work conserving on many workers
 * (2DFQ, section 2).  The least finish tag goes, of the requests that would
 * have begun by now under generalised processor sharing: S <= v.
 *
 * So no tenant gets far ahead.  But if no small request is eligible, all
 * workers take large ones (2DFQ, Figure 5d).
 */

#include "vtime.h"

static const struct vt_rules wf2q_rules = {
	.order = VT_BY_FINISH,
	.eligible = VT_STARTED,
};

static void
wf2q_init(struct rel *rel)
{
	vt_init(rel, &wf2q_rules);
}

const struct rel_policy rel_policy_wf2q = {
	.name =		"wf2q",
	.summary =	"worst-case fair queueing: the lowest finish tag of "
			"requests that are due",
	.init =		wf2q_init,
	VT_CALLS
};
