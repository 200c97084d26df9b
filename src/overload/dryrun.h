/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The dry run: how many requests of a tenant would wait, and for how long, if
 * its share were enforced?  Nothing waits here.  Only the work is counted.
 *
 * A request brings work: its cost on the resource that it needs most.  Each
 * resource does 1 ns of work per ns, for all tenants that have work there, by
 * weight (generalized processor sharing: Parekh and Gallager, IEEE/ACM
 * Transactions on Networking 1993).  A group gets its part first, and its
 * members share that.  What a limit leaves of a part goes to nobody.
 *
 * Work that a tenant's slots can hold does not wait, and on net what net takes at
 * once.  The rest of its work waits.
 *
 * Requests are not seen in the order of time: a busy machine looks at those of
 * one tenant later than at those of another.  So each tenant has a time of its
 * own: when its last request came.  When its time goes on, its work gets less at
 * the share that it has now.
 *
 * All calls are O(1).  Times and work are ns.  No clock, lock or allocation.
 * The caller serialises.
 */

#ifndef OVERLOAD_DRYRUN_H_INCLUDED
#define OVERLOAD_DRYRUN_H_INCLUDED

#include <stdint.h>

#include "resource.h"

/* A resource of the machine, or of a group: what those below it have there */
struct dry_server {
	double			work;		/* ns */
	uint64_t		weights;	/* of those that have work */
	unsigned		busy;		/* how many have work */
};

/* What a tenant or a group may have */
struct dry_right {
	uint32_t		weight;		/* more than 0 */
	double			limit;		/* part of a resource, above 0;
						 * 1: no limit */
	double			reservation;	/* the same; 0: none */
};

struct dry_group {			/* at first 0 */
	struct dry_server	server[REL__RESOURCES];
	struct dry_right	right;
};

struct dry_queue {			/* a tenant's work; at first 0 */
	struct dry_queue	*next, *prev;	/* of all that have work */
	struct dry_group	*group;		/* of the tenant, or NULL */
	struct dry_right	right;
	enum rel_resource	resource;
	double			work;		/* ns; 0: it has none */
	int64_t			at;		/* then */
};

struct dry {				/* at first 0 */
	double			slots;		/* W; set by the caller */
	double			backlog;	/* ns that net takes at once;
						 * set by the caller */
	struct dry_server	server[REL__RESOURCES];
	struct dry_queue	*look;		/* at this one next */
};

/* What would wait, of a tenant whose requests cost `cost` */
struct dry_view {
	double			waiting;	/* requests */
	double			wait;		/* of one more, ns */
	double			slots;		/* its part of W by weight */
	double			of_group;	/* its part of its group by
						 * weight; 1: it is in none */
};

/* The tenant's time goes on to `at`, if that is later: its work gets less. */
void DRY_Advance(struct dry *, struct dry_queue *, int64_t at);

/*
 * Return another tenant that has work, or NULL, to call DRY_Advance() for it:
 * so those without work are found.  The caller stops when it has found
 * DRY_LOOKS tenants that still have work.
 */
struct dry_queue *DRY_Next(struct dry *);
#define DRY_LOOKS	2

/* Return what would wait.  cost: more than 0. */
struct dry_view DRY_View(const struct dry *, const struct dry_queue *,
    double cost);

/* Return how many requests of such a cost would wait in the group, or of all
 * tenants (NULL). */
double DRY_Waiting(const struct dry *, const struct dry_group *, double cost);

/* Return how many tenants without a group, and groups, have work. */
unsigned DRY_Busy(const struct dry *);

/*
 * A request of the tenant comes at the time `at`, after DRY_Advance().  group:
 * the tenant's, with what the group may have, or NULL.  All of its work moves
 * to the resource, if that is another one now.
 */
void DRY_Add(struct dry *, struct dry_queue *, int64_t at, enum rel_resource,
    double cost, struct dry_right, struct dry_group *group,
    struct dry_right of_group);

/* Forget the tenant's work: it ends, or moves to another group. */
void DRY_Forget(struct dry *, struct dry_queue *);

#endif
