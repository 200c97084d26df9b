/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Slots: the right to run.  A slot is taken, for a worker that is to have it, or
 * by it, and then owned by it until it is given back.  An owner does not end:
 * through its slot the keeper finds who runs, however many threads there are.
 */

#include "config.h"

#include <stdlib.h>

#include "spd.h"

/* -1: there is none */
int
spd_take(void)
{
	unsigned u;
	int i;

	SPD_LOCKED();
	for (u = 0; u < spd.slots_max / 64; u++) {
		if (~spd.slots[u] == 0)
			continue;
		i = __builtin_ctzll(~spd.slots[u]);
		spd.slots[u] |= 1ULL << i;
		spd.running++;
		spd.vsc->running = spd.running;
		return ((int)u * 64 + i);
	}
	return (-1);
}

/* It has been taken for this worker.  The lock is not needed */
void
spd_own(struct spd_worker *me, int slot)
{

	me->slot = slot;
	atomic_store_explicit(&spd.owner[slot], me, memory_order_release);
}

/*
 * A request runs on in this worker, above W if need be.  If all slots that
 * there can be are in use, it runs without one: it cannot wait here.
 */
void
spd_retake(struct spd_worker *me)
{
	int slot;

	SPD_LOCKED();
	slot = spd_take();
	if (slot >= 0)
		spd_own(me, slot);
	else
		spd.vsc->slotless++;
}

void
spd_give(int slot)
{
	uint64_t bit = 1ULL << (slot & 63);

	SPD_LOCKED();
	assert(slot >= 0 && slot < SPD_SLOTS_MAX);
	AN(spd.slots[slot >> 6] & bit);
	spd.slots[slot >> 6] &= ~bit;
	atomic_store_explicit(&spd.owner[slot], NULL, memory_order_relaxed);
	AN(spd.running);
	spd.running--;
	spd.vsc->running = spd.running;
}

/* The keeper has taken this worker's slot away */
int
spd_robbed(const struct spd_worker *me)
{

	SPD_LOCKED();
	return (spd.owner[me->slot] != me);
}

/* This worker's slot goes back, unless the keeper has taken it already */
void
spd_give_mine(struct spd_worker *me)
{

	SPD_LOCKED();
	assert(me->slot >= 0);
	if (!spd_robbed(me))
		spd_give(me->slot);
	me->slot = -1;
}

int
spd_holds_slot(void)
{

	return (spd_me.magic == SPD_WORKER_MAGIC && spd_me.slot >= 0 &&
	    spd_me.node != NULL);
}
