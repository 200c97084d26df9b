/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Lend and retake a slot: while its request waits for an origin or a client, a
 * worker needs no slot.
 *
 * The hooks of waits decide when a worker lends: hook_wait.c, hook_write.c.
 * The lock guards the slots.  Only the worker's thread uses me->lent.
 */

#include "config.h"

#include <stdlib.h>

#include "spd.h"

/*
 * Lend this worker's slot, so that another request can be released.  The worker
 * keeps its own request, which is about to wait.  For the policy, this request
 * has now begun on net, whatever it waits for.
 */
void
spd_lend(void)
{
	struct spd_worker *me = &spd_me;
	int lead;

	spd_lock();
	me->lent_at = METER_Now();
	REL_Progress(spd_rel, me->node, REL_NET, me->lent_at);
	spd_begin_loan(me);
	lead = spd_unwatched();
	spd_unlock();
	spd_dispatch();
	if (lead)
		spd_summon();
}

/* Retake a slot at once if this worker has lent its slot, even if more than W
 * are then taken. */
void
SPD_Rejoin(void)
{
	struct spd_worker *me = &spd_me;

	if (!me->lent)
		return;
	spd_lock();
	spd_end_loan(me);
	spd_unlock();
	me->slice_start = METER_Now();
	me->loaned += me->slice_start - me->lent_at;
}
