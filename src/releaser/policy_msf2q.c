/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * MSF2Q: worst-case fair weighted fair queueing over N workers (Blanquer and
 * Oezden, SIGCOMM 2001; named in 2DFQ, sections 2, 6 and 8): the least finish
 * tag of those tenants that have been served no more than under generalised
 * processor sharing,
 *
 *	W(0, t) <= W_GPS(0, t), that is S - r / w <= v
 *
 * with r what has been released of the tenant and is not served yet.  wf2q
 * takes the whole of a request as served when it is released, S <= v.  On one
 * worker that is the same, as nothing runs when one is chosen.  On many it is
 * not if a tenant may have several at once: one of great weight, or of few.
 *
 * A request may go at or before its start under GPS, so nobody is more than
 * N L behind (2DFQ, Theorem 1 and its proof), and as each release was due by
 * what had been served, nobody is more than N L ahead, L its largest request.
 *
 * The condition is from memory of the paper; what 2DFQ says of it (a direct
 * extension of WF2Q, for a great weight or few tenants on many links) agrees.
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
