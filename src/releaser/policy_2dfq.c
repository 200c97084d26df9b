/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Two-dimensional fair queueing (2DFQ, section 4).  As wf2q, but on worker i of
 * n a request is eligible earlier, by i/n of its length.  So workers of high
 * index take small requests, and workers of low index take large ones.  Large
 * requests never hold all workers while small ones wait.
 *
 * A tenant is at most N L behind generalised processor sharing (2DFQ, Theorem
 * 1).  Eligible is n (v - S) + i l >= 0, in integers.  With Figure 7's <
 * instead of <=, the second requests of Figure 6 would come too late.
 */

#include "vtime.h"

static const struct vt_rules twodfq_rules = {
	.order = VT_BY_FINISH,
	.eligible = VT_STAGGERED,
};

static void
twodfq_init(struct rel *rel)
{
	vt_init(rel, &twodfq_rules);
}

const struct rel_policy rel_policy_2dfq = {
	.name =		"2dfq",
	.summary =	"two-dimensional fair queueing: cheap and expensive "
			"requests in different slots",
	.init =		twodfq_init,
	VT_CALLS
};

/*
 * 2DFQ^E (section 5): 2dfq with pessimistic estimates.  The estimate of a
 * tenant is its largest cost, which decays by alpha with each request.  So a
 * tenant of unpredictable cost counts as large.
 */
const struct rel_policy rel_policy_2dfqe = {
	.name =		"2dfqe",
	.summary =	"2dfq with pessimistic estimates, for costs that vary "
			"much",
	.init =		twodfq_init,
	.estimator =	"decaying-max",
	.alpha =	64880,			/* 0.99, Q16 */
	VT_CALLS
};
