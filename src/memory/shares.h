/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Memory by tenant: whose object makes room for a new one?
 *
 * The victim is the tenant with the most bytes per weight.  So memory is shared
 * max-min fairly: a tenant below its share loses nothing, and memory that a
 * tenant does not use is lent to others until it asks for it.
 *
 *  - A tenant above its limit is a victim before all others.
 *  - A tenant with at most its reservation is a victim only if all are such.
 *  - A group counts as one tenant with the bytes of its members.  If the group
 *    is the victim, one of its members is, by the same rules.  A member's
 *    reservation and limit count only there.
 *
 * Tenants with about the same bytes per weight are one level.  Each doubling has
 * SHARES_STEPS levels.  So the victim is found in O(1), and has at least
 * 2^(-1/SHARES_STEPS) of the most bytes per weight.  Within a level the order is
 * not specified.
 *
 * No clock, lock or allocation.  The caller serialises the calls on a struct
 * shares and on all that is in it.
 */

#ifndef SHARES_H_INCLUDED
#define SHARES_H_INCLUDED

#include <stdint.h>

#define SHARES_STEPS	16		/* levels per doubling: 4.4 % apart */
#define SHARES_LEVELS	1024		/* of 64 doublings */

struct shares;

/* The bytes of a tenant or a group in one store. */
struct share {
	unsigned		magic;
#define SHARE_MAGIC		0x5ba7e001
	unsigned		level;		/* 0: in no level */
	struct share		*next, **link;	/* in its level */
	struct shares		*in;		/* where it competes */
	struct share		*group;		/* it is a member of, or NULL */
	struct shares		*members;	/* if it is a group, else NULL */
	uint64_t		bytes;
	uint64_t		reservation, limit;	/* bytes; 0: none */
	double			weight;
};

/* What competes: tenants and groups, or the members of a group. */
struct shares {
	unsigned		magic;
#define SHARES_MAGIC		0x5ba7e5e7
	uint64_t		used[SHARES_LEVELS / 64];	/* bit: level */
	struct share		*level[SHARES_LEVELS];
};

void SHARES_Init(struct shares *);

/* Prepare a share without bytes, of weight 1.  group: NULL, or the group that
 * it is a member of; then `in` is the group's members.  members: NULL, or those
 * of this group.  A member of a group is no group. */
void SHARE_Init(struct share *, struct shares *in, struct share *group,
    struct shares *members);
/* weight: 0.001 to 1024.  reservation, limit: bytes; 0: none. */
void SHARE_Set(struct share *, double weight, uint64_t reservation,
    uint64_t limit);
/* Add bytes to a tenant and to its group, or take them away. */
void SHARE_Charge(struct share *, uint64_t bytes);
void SHARE_Release(struct share *, uint64_t bytes);
/* Return the bytes that a tenant or its group would have above its limit, with
 * so many more. */
uint64_t SHARE_Excess(const struct share *, uint64_t more);

/* A search for a tenant whose object can go.  No share may change meanwhile. */
struct share_search {
	const struct shares	*in;
	struct share		*first, *at;
};

/*
 * Begin a search: return the victim, or NULL if no tenant has bytes.
 *
 * taker: the tenant that needs room for so many bytes more, or NULL.  It counts
 * as if it had them.
 */
struct share *SHARES_Victim(struct share_search *, const struct shares *,
    struct share *taker, uint64_t bytes);
/* If none of its objects can go: return the next one, or NULL. */
struct share *SHARES_Next(struct share_search *);

#endif
