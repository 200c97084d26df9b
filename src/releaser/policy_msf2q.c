/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * MSF2Q: worst-case fair weighted fair queueing over N workers (Blanquer and
 * Oezden, SIGCOMM 2001; named in 2DFQ, sections 2, 6 and 8).  The least finish
 * tag goes, of the tenants served no more than under GPS:
 *
 *	W(0, t) <= W_GPS(0, t), that is S - r / w <= v
 *
 * r is what was released of the tenant and is not served yet.  wf2q has S <= v:
 * to it a request is served when it is released.  On one worker both are the
 * same.  On many workers they differ for a tenant that has several requests
 * running: one of large weight, or one of few tenants.
 *
 * L is a tenant's largest request.  No tenant is more than N L behind GPS
 * (2DFQ, Theorem 1 and its proof): a request may go at or before its start
 * under GPS. No tenant is more than N L ahead: each release was due by the work
 * served.
 *
 * The condition is from memory of the paper.  What 2DFQ says of it agrees.
 */

#include "vtime.h"

static const struct vt_rules msf2q_rules = {
	.order = VT_BY_FINISH,
	.eligible = VT_SERVED,
};

static void
msf2q_init(struct rel *rel)
{
	vt_init(rel, &msf2q_rules);
}

const struct rel_policy rel_policy_msf2q = {
	.name =		"msf2q",
	.summary =	"wf2q by served work, for few tenants or large weights",
	.init =		msf2q_init,
	VT_CALLS
};
