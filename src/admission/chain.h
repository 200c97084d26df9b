/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * A hash table of objects by digest, for which the memory is allocated once.
 *
 * An entry is a struct of the caller that begins with a struct chained.  Its
 * number is 1 or more.  0 stands for no entry.
 *
 * No lock.  The caller serialises.
 */

#ifndef ADMISSION_CHAIN_H_INCLUDED
#define ADMISSION_CHAIN_H_INCLUDED

#include <stddef.h>
#include <stdint.h>

struct chained {
	uint64_t		digest;		/* uniform in the lower bits */
	uint32_t		next;		/* chain.c's */
};

struct chain {
	unsigned		magic;
#define CHAIN_MAGIC		0xc4a19000
	uint32_t		room, used;	/* entries; room: 2^n */
	uint32_t		top;		/* higher ones were not used */
	uint32_t		free;		/* a number, or 0 */
	uint32_t		*bucket;	/* numbers */
	char			*entry;
	size_t			size;		/* bytes of an entry */
};

/* room: entries, a power of 2, at most 2^30.  size: bytes of an entry.  Returns
 * 0, or -1 if there is no memory. */
int CHAIN_Init(struct chain *, uint32_t room, size_t size);
void CHAIN_Fini(struct chain *);

/* Return the entry of this number. */
void *CHAIN_At(const struct chain *, uint32_t number);
uint32_t CHAIN_Number(const struct chain *, const void *entry);
/* Return the entry of a digest, or NULL. */
void *CHAIN_Find(const struct chain *, uint64_t digest);
/* Return a new entry.  Its other fields are 0.  There must be room, and no
 * entry of this digest. */
void *CHAIN_Add(struct chain *, uint64_t digest);
void CHAIN_Remove(struct chain *, void *entry);
/* Return the entry after this one, or NULL.  After NULL comes the first one.
 * The last one that was returned may be removed. */
void *CHAIN_Next(const struct chain *, const void *entry);

#endif
