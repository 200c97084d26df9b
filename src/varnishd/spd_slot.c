/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Slots: a slot is the right to run one request.
 *
 * A slot is FREE, GRANTED to a request that is on its way to a worker, or HELD
 * by a worker: slot_to() has the transitions.  Through slot_owner[] the keeper
 * finds the workers that run, however many threads there are.  A worker gives
 * its slot back before its thread ends, so slot_owner[] never points to a
 * thread that has ended.  The lock guards all this.  `running` is also read
 * without it.
 */

#include "config.h"

#include <stdlib.h>

#include "spd.h"

#define SPD_EXTRA	8U		/* slots, beyond those that are open */

SPD_STATIC unsigned nslots = 1;		/* W.  Not on: SPD_SLOTS_MAX / 2 */
SPD_STATIC unsigned nopen = 1;		/* that the policy may use now */
/* That spd_take() may take, rounded down to a multiple of 64 */
SPD_STATIC unsigned slots_max = SPD_SLOTS_MAX;
SPD_STATIC uint64_t slot_map[SPD_SLOTS_MAX / 64];	/* bit: taken */
SPD_STATIC struct spd_worker *slot_owner[SPD_SLOTS_MAX];	/* if HELD */
SPD_STATIC _Atomic unsigned running;	/* slots taken */
SPD_STATIC unsigned lent;		/* slots lent */
SPD_STATIC unsigned extra;		/* requests with an extra slot, also
					 * while they have lent it */

enum slot_state {
	SLOT_FREE,
	SLOT_GRANTED,
	SLOT_HELD
};

/*
 * Change the state of a slot; w: its owner, if it becomes HELD.
 * doc/internals/locking.md says who gives and takes slots, and has the same
 * table.  Caller holds spd_lock().
 */
static void
slot_to(int slot, enum slot_state to, struct spd_worker *w)
{
#define TO(state)	(1U << SLOT_##state)
	static const unsigned allowed[] = {
		[SLOT_FREE] =	TO(GRANTED),
		[SLOT_GRANTED] =	TO(HELD) | TO(FREE),
		[SLOT_HELD] =	TO(FREE),
	};
#undef TO
	uint64_t *word = &slot_map[slot >> 6], bit = 1ULL << (slot & 63);
	enum slot_state is;

	SPD_LOCKED();
	assert(slot >= 0 && slot < SPD_SLOTS_MAX);
	is = !(*word & bit) ? SLOT_FREE :
	    slot_owner[slot] == NULL ? SLOT_GRANTED : SLOT_HELD;
	assert(allowed[is] & 1U << to);
	assert((w != NULL) == (to == SLOT_HELD));
	slot_owner[slot] = w;
	if (is == SLOT_FREE) {
		*word |= bit;
		running++;
	} else if (to == SLOT_FREE) {
		*word &= ~bit;
		AN(running);
		running--;
	}
	spd_vsc->running = running;
}

/* Return W, the number of slots that the policy may use. */
unsigned
spd_slots(void)
{

	return (nslots);
}

/* Set W, and open all slots.  More slots may be taken for now.  Caller holds
 * spd_lock(). */
void
spd_set_slots(unsigned n)
{

	SPD_LOCKED();
	nslots = n;
	spd_vsc->slots = n;
	spd_open_slots(n);
}

/* Return how many slots are open.  Caller holds spd_lock(). */
unsigned
spd_slots_open(void)
{

	SPD_LOCKED();
	return (nopen);
}

/* Set how many slots are open, at most W.  More slots may be taken for now.
 * Caller holds spd_lock(). */
void
spd_open_slots(unsigned n)
{

	SPD_LOCKED();
	assert(n <= nslots);
	nopen = n;
	spd_vsc->slots_open = n;
}

/* Set how many slots there can be, for tests.  Caller holds spd_lock(). */
void
spd_cap_slots(unsigned n)
{

	SPD_LOCKED();
	slots_max = n;
}

/* Return how many slots are taken.  No lock is needed. */
unsigned
spd_running(void)
{

	return (running);
}

/* Return 1 if all open slots are taken.  Caller holds spd_lock(). */
int
spd_slots_full(void)
{

	SPD_LOCKED();
	return (running >= nopen + extra);
}

/* Return 1 if more slots are taken than are open.  Caller holds spd_lock(). */
int
spd_slots_exceeded(void)
{

	SPD_LOCKED();
	return (running > nopen + extra);
}

/* Return how many workers have lent their slot.  Caller holds spd_lock(). */
unsigned
spd_lent(void)
{

	SPD_LOCKED();
	return (lent);
}

/* Return 64 slots of the bitmap.  Caller holds spd_lock(). */
uint64_t
spd_slots_taken(unsigned word)
{

	SPD_LOCKED();
	return (slot_map[word]);
}

/* Return the worker that has this slot, or NULL.  Caller holds spd_lock(). */
struct spd_worker *
spd_owner(int slot)
{

	SPD_LOCKED();
	return (slot_owner[slot]);
}

/*
 * Take a free slot and return its number, or -1 if there is none.  It may be a
 * slot that is not open: the caller tests spd_slots_full().
 * Caller holds spd_lock().
 */
int
spd_take(void)
{
	unsigned u;
	int slot;

	SPD_LOCKED();
	for (u = 0; u < slots_max / 64; u++) {
		if (~slot_map[u] == 0)
			continue;
		slot = (int)u * 64 + __builtin_ctzll(~slot_map[u]);
		slot_to(slot, SLOT_GRANTED, NULL);
		return (slot);
	}
	return (-1);
}

/*
 * Take a slot beyond those that are open, for a request that must not wait
 * (REL_Run()).  spd_extra_ends() tells that it is done.  -1: SPD_EXTRA of them
 * run already.  Caller holds spd_lock().
 */
int
spd_take_extra(void)
{
	int slot;

	SPD_LOCKED();
	slot = extra < SPD_EXTRA ? spd_take() : -1;
	extra += slot >= 0;
	return (slot);
}

/* This request is about to complete.  Caller holds spd_lock(). */
void
spd_extra_ends(const struct rel_node *n)
{

	SPD_LOCKED();
	if (!REL_IsUnqueued(n))
		return;
	AN(extra);
	extra--;
}

/* Make this worker the owner of a GRANTED slot.  Caller holds spd_lock(). */
void
spd_own(struct spd_worker *me, int slot)
{

	assert(me->slot < 0);
	slot_to(slot, SLOT_HELD, me);
	me->slot = slot;
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
		spd_vsc->slotless++;
}

/* Give a slot back.  Caller holds spd_lock(). */
void
spd_give(int slot)
{

	slot_to(slot, SLOT_FREE, NULL);
}

/*
 * Return 1 if the keeper has revoked this worker's slot.
 * Caller holds spd_lock().
 */
int
spd_slot_revoked(const struct spd_worker *me)
{

	SPD_LOCKED();
	return (slot_owner[me->slot] != me);
}

/*
 * Give this worker's slot back, unless the keeper has revoked it already.
 * Caller holds spd_lock().
 */
void
spd_give_mine(struct spd_worker *me)
{

	SPD_LOCKED();
	assert(me->slot >= 0);
	if (!spd_slot_revoked(me))
		spd_give(me->slot);
	me->slot = -1;
}

/*
 * Return 1 if this thread runs a request with a slot.  A revoked slot counts,
 * too.
 */
int
spd_holds_slot(void)
{

	return (spd_me.magic == SPD_WORKER_MAGIC && spd_me.slot >= 0 &&
	    spd_me.node != NULL);
}

/* Give this worker's slot back, as a loan.  Caller holds spd_lock(). */
void
spd_begin_loan(struct spd_worker *me)
{

	SPD_LOCKED();
	AZ(me->lent);
	spd_give_mine(me);
	me->lent = 1;
	spd_vsc->lent = ++lent;
	spd_vsc->lendings++;
}

/* End the loan: take a slot again, even above W.  Caller holds spd_lock(). */
void
spd_end_loan(struct spd_worker *me)
{

	SPD_LOCKED();
	AN(me->lent);
	AN(lent);
	spd_vsc->lent = --lent;
	spd_retake(me);
	me->lent = 0;
}
