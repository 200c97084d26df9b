/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The state of `mr3-rs` and `mr3`: the levels and the accounts of tenants.
 *
 * A, G, U and the lists are those of policy_mr3rs.c.
 */

#ifndef MR3_H_INCLUDED
#define MR3_H_INCLUDED

#include "policy.h"
#include "virtual.h"

#define QUANTUM_MAX	INT64_C(4000000)	/* U, virtual ns */
#define BUCKETS		64			/* bits of A / U */
#define LEVELS		(1U << REL__RESOURCES)	/* masks of resources */
#define EXCESS_MAX	(INT64_C(1) << 58)	/* virtual ns */
#define LEVEL_MAX	(INT64_C(1) << 60)

/* The level G of the tenants that use the same resources, and the wheel of
 * those that owe U or more */
struct level {
	int64_t			g;
	int64_t			began;		/* g when the busy period did */
	int64_t			missed;		/* to catch up, 0 to U */
	int64_t			base;		/* g / U */
	unsigned		backlogged;	/* tenants */
	unsigned		indebted;	/* of these, in the wheel */
	uint64_t		map;		/* buckets not empty */
	struct rel_link		wheel[BUCKETS];
};

struct mr3 {
	int64_t			s_max;
	int64_t			s_before;	/* s_max of the last round */
	uint64_t		period;		/* busy period */
	unsigned		closed;
	struct rel_link		back;		/* returned: these go first */
	struct rel_link		this;		/* to come in this round */
	struct rel_link		next;		/* in the next round */
	struct rel_link		held;		/* like this, dominant closed */
	struct rel_link		parked;		/* like next, level stands */
	struct level		level[LEVELS];
};

struct mr3_tenant {
	struct rel_link		link;
	struct rel_tenant	*tenant;
	int64_t			a;		/* A */
	uint64_t		period;
	struct remainder		remainder;		/* of A */
	uint8_t			bucket;
	uint8_t			group;		/* resources used: its level */
	uint8_t			dominant;
	uint8_t			backlogged;
	uint8_t			indebted;	/* in the wheel */
	uint8_t			in_turn;	/* released in this turn */
	uint32_t		turn;		/* the last that released */
	uint32_t		sent;		/* the last that reached net */
};

static inline struct mr3 *
state(struct rel *rel)
{
	return ((struct mr3 *)(void *)rel->state);
}

static inline struct mr3_tenant *
account_of(struct rel_tenant *t)
{
	return ((struct mr3_tenant *)(void *)t->policy);
}

static inline struct level *
level_of(struct mr3 *p, const struct mr3_tenant *mt)
{
	return (&p->level[mt->group]);
}

/* Return s = A - G, virtual ns: what the tenant had beyond its level */
static inline int64_t
excess(struct mr3 *p, const struct mr3_tenant *mt)
{
	return (mt->a - level_of(p, mt)->g);
}

static inline void
set_excess(struct mr3 *p, struct mr3_tenant *mt, int64_t s)
{
	mt->a = level_of(p, mt)->g + within(s, EXCESS_MAX);
}

#endif
