/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Start-time fair queueing (2DFQ, section 2).  The least start tag goes. 
 * Virtual time is the start tag of the last release, so no rate has to be
 * known.
 */

#include "vtime.h"

static const struct vt_rules sfq_rules = {
	.order = VT_BY_START,
	.eligible = VT_ALL,
	.self_clocked = 1,
};

static void
sfq_init(struct rel *rel)
{
	vt_init(rel, &sfq_rules);
}

const struct rel_policy rel_policy_sfq = {
	.name =		"sfq",
	.summary =	"start-time fair queueing: the lowest start tag first",
	.init =		sfq_init,
	VT_CALLS
};
