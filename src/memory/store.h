/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * A store is the account of one stevedore of Varnish.  It counts each owner's
 * bytes there, and chooses the list from which the next object is evicted.
 *
 * The lists are the host's.  The first object of a list is evicted first.
 * There are two kinds:
 *
 *  - STORE_COMMON is one LRU list for all owners.
 *  - Each owner has an LRU list of its own.
 *
 * One kind is current.  A new object goes to the end of a list of that kind,
 * and a request for an object moves it there.  So no client has asked for an
 * object on a list of the other kind after the change.  Such objects are
 * evicted first, except for idle ones (STORE_Look()).
 *
 * No lock.  The caller serialises the calls for one store.
 */

#ifndef MEMORY_STORE_H_INCLUDED
#define MEMORY_STORE_H_INCLUDED

#include <stdint.h>

#include "owners.h"
#include "shares.h"

#define STORE_COMMON	0U

struct store;

/* NULL: no memory */
struct store *STORE_New(struct owners *);
void STORE_Destroy(struct store **);

/* Return the number of an object's list.  own: 1: the list of its owner; 0: the
 * common one.  Numbers are at most OWN_Room(). */
unsigned STORE_List(uint32_t owner, int own);

/* An object of so many bytes comes to this list, or leaves it. */
void STORE_Add(struct store *, uint32_t owner, uint64_t bytes, int own);
void STORE_Remove(struct store *, uint32_t owner, uint64_t bytes, int own);
/* An object of this list has no bytes any more, and stays on it. */
void STORE_Empty(struct store *, uint32_t owner, uint64_t bytes, int own);

/*
 * From which list is the next object evicted?  taker: the owner that needs
 * room for so many bytes.  own: the kind that is current, as in STORE_List().
 *
 * STORE_Victim() begins a search.  If no object of that list can be evicted,
 * STORE_Next() returns the next list.  Both return STORE_END if there is none.
 * The store must not change meanwhile.
 */
#define STORE_END	UINT32_MAX
struct store_search {
	struct store		*store;
	uint32_t		taker;
	uint64_t		bytes;
	int			own;
	unsigned		phase;		/* 0: lists of the other kind;
						 * 1: of the current kind */
	int			begun;		/* that phase */
	struct share_search	shares[1];
};
unsigned STORE_Victim(struct store_search *, struct store *, uint32_t taker,
    uint64_t bytes, int own);
unsigned STORE_Next(struct store_search *);

/* Return the list of the next owner in turn, or STORE_END: there is none, or it
 * is within its reservation.  If the first object of the list has been idle for
 * too long, the host may evict it before all others. */
unsigned STORE_Look(struct store *);

/* If the owner had so many bytes more, would it or its group be above its
 * limit?  Return the list that has to lose an object then, or STORE_END. */
unsigned STORE_Over(struct store *, uint32_t owner, uint64_t more);

#endif
