/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Slots: a slot is the right to run one request.
 *
 * spd_take() takes a slot.  spd_own() binds it to a worker, until spd_give().
 * The bitmap spd.slots and the counter spd.running are under spd_lock().
 * spd.owner[] is atomic.  Through it the keeper finds the workers that run,
 * however many threads there are.  A worker gives its slot back before its
 * thread ends.  So a worker that the keeper finds there under the lock exists.
 */

#include "config.h"

#include <stdlib.h>

#include "spd.h"

/*
 * Take a free slot and return its number, or -1 if there is none.  It may be a
 * slot above W: the caller compares spd.running with spd.limit.
 * Caller holds spd_lock().
 */
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

/*
 * Bind a slot that spd_take() returned to a worker.  No lock is needed, since
 * the slot was already taken for this worker.
 */
void
spd_own(struct spd_worker *me, int slot)
{

	me->slot = slot;
	atomic_store_explicit(&spd.owner[slot], me, memory_order_release);
}

/*
 * Take a slot for this worker at once, even above W, since its request runs
 * on.  If every slot of the bitmap is in use, the request runs without a
 * slot: it cannot wait here.  Caller holds spd_lock().
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

/* Give a slot back.  Caller holds spd_lock(). */
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

/*
 * Return 1 if the keeper has taken this worker's slot away.
 * Caller holds spd_lock().
 */
int
spd_robbed(const struct spd_worker *me)
{

	SPD_LOCKED();
	return (spd.owner[me->slot] != me);
}

/*
 * Give this worker's slot back, unless the keeper has taken it away already.
 * Caller holds spd_lock().
 */
void
spd_give_mine(struct spd_worker *me)
{

	SPD_LOCKED();
	assert(me->slot >= 0);
	if (!spd_robbed(me))
		spd_give(me->slot);
	me->slot = -1;
}

/*
 * Return 1 if this thread runs a request with a slot.  A slot that the keeper
 * has taken away counts, too.
 */
int
spd_holds_slot(void)
{

	return (spd_me.magic == SPD_WORKER_MAGIC && spd_me.slot >= 0 &&
	    spd_me.node != NULL);
}
