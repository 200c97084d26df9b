/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * One store of a cache (in Varnish: a stevedore): the bytes of each owner in it,
 * and from which list the next object goes.
 *
 * The lists are the host's.  The head of a list is the object that goes first.
 *
 *  - STORE_COMMON is the list of one LRU cache for all.
 *  - Each owner has a list of its own, in use while owners share the memory.
 *
 * An object that comes, or that a client asks for, goes to the end of the list
 * that is in use now.  So nobody has asked for an object on another list since
 * the use of lists changed.  Such objects go first.
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

/* Return the list of an object.  own: 1: its owner's list; 0: the common one.
 * A list is less than OWN_Room() + 1. */
unsigned STORE_List(uint32_t owner, int own);

/* An object of so many bytes comes to this list, or leaves it. */
void STORE_Add(struct store *, uint32_t owner, uint64_t bytes, int own);
void STORE_Remove(struct store *, uint32_t owner, uint64_t bytes, int own);

/*
 * From which list does the next object go?  taker: the owner that needs room for
 * so many bytes more.  own: which lists are in use.
 *
 * STORE_Victim() begins a search.  If no object of that list can go,
 * STORE_Next() returns the next list.  Both return STORE_END if there is none.
 * The store must not change meanwhile.
 */
#define STORE_END	UINT32_MAX
struct store_search {
	struct store		*store;
	uint32_t		taker;
	uint64_t		bytes;
	int			own;
	unsigned		turn;		/* 0: the lists that are not in
						 * use; 1: those in use */
	int			begun;		/* that turn */
	struct share_search	shares[1];
};
unsigned STORE_Victim(struct store_search *, struct store *, uint32_t taker,
    uint64_t bytes, int own);
unsigned STORE_Next(struct store_search *);

/* Return the bytes that an owner or its group would have above its limit, with
 * so many more. */
uint64_t STORE_Excess(struct store *, uint32_t owner, uint64_t more);

#endif
