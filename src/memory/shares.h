/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * A share is the account of an owner in one store.  The shares say from which
 * owner an object is evicted for a new one.
 *
 * The victim is the owner with the most bytes per weight.  So memory is shared
 * max-min fairly.  An owner may use memory that others leave free, and loses it
 * when they need it.
 *
 *  - An owner above its limit is a victim before all others.
 *  - An owner within its reservation is a victim only if all owners are.
 *  - A group counts as one owner, with the bytes of its members.  If a group
 *    is the victim, the same rules choose one of its members.  A member's
 *    reservation and limit count only within its group.
 *
 * Memory is for use.  The host may evict an object that has been idle for very
 * long, whosever it is.  SHARES_Look() names the owners in turn for that.
 *
 * Owners with about the same bytes per weight are in one level.  A doubling
 * has SHARES_STEPS levels.  So the victim is found in O(1), and has at least
 * 2^(-1/SHARES_STEPS) of the most bytes per weight.  Within a level the order
 * is not specified.  From 13 TiB x weight / 0.001 on, there is one level.
 *
 * No clock, lock or allocation.  The caller serialises the calls on a struct
 * shares and on all that is in it.
 */

#ifndef SHARES_H_INCLUDED
#define SHARES_H_INCLUDED

#include <stdint.h>

#define SHARES_STEPS	16		/* levels per doubling: 4.4 % apart */
#define SHARES_LEVELS	1024		/* 64 doublings */

struct shares;

/* The account of an owner or a group in one store */
struct share {
	unsigned		level;		/* 0: in no level */
	float			weight;		/* 0 before SHARE_Init() */
	struct share		*next, **link;	/* in its level */
	struct share		*group;		/* its group, or NULL */
	struct shares		*members;	/* of a group, else NULL */
	uint64_t		bytes;
	uint64_t		reservation, limit;	/* bytes; 0: none */
};

/* A set that competes: owners and groups, or the members of a group */
struct shares {
	unsigned		magic;
#define SHARES_MAGIC		0x5ba7e5e7
	uint64_t		used[SHARES_LEVELS / 64];	/* bit: level */
	struct share		*level[SHARES_LEVELS];
	struct share		*look;		/* SHARES_Look(): the next one,
						 * or NULL: the first one */
};

void SHARES_Init(struct shares *);

/*
 * In each call, `all` is the set of owners and groups, not the members of a
 * group.
 */

/* Prepare a share without bytes, of weight 1.  group: its group, or NULL.
 * members: NULL, or those of this group.  A member of a group is no group. */
void SHARE_Init(struct share *, struct share *group, struct shares *members);
/* weight: 0.001 to 1024.  reservation, limit: bytes; 0: none. */
void SHARE_Set(struct shares *all, struct share *, double weight,
    uint64_t reservation, uint64_t limit);
/* Add bytes to an owner and to its group, or take them away. */
void SHARE_Charge(struct shares *all, struct share *, uint64_t bytes);
void SHARE_Release(struct shares *all, struct share *, uint64_t bytes);
/*
 * If the owner had so many bytes more, would it or its group be above its
 * limit?  Return the share that has to lose an object then: the owner, or a
 * member of its group.  NULL: none, or none that has bytes.
 */
struct share *SHARE_Over(struct share *, uint64_t more);

/* Return the next owner in turn that has bytes, or NULL. */
struct share *SHARES_Look(struct shares *all);
/* Is the owner within its reservation, or its group's? */
int SHARE_Kept(const struct share *);

/* A search for a share whose object is evicted.  No share may change
 * meanwhile. */
struct share_search {
	struct shares		*all;
	struct share		*first, *at;
};

/*
 * Begin a search: return the victim.  NULL: no share has bytes.
 *
 * taker: the owner that needs room for so many bytes, or NULL.  It counts as
 * if it had them.
 */
struct share *SHARES_Victim(struct share_search *, struct shares *all,
    struct share *taker, uint64_t bytes);
/* No object of that share can be evicted: return the next share, or NULL. */
struct share *SHARES_Next(struct share_search *);

#endif
