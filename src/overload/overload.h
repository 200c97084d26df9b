/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Overload control: may one more request of a tenant wait?
 *
 * A tenant can have a target: how long its requests may wait for a release.  A
 * controller tries to refuse, when it comes, each request that would wait for
 * longer: its client would get no answer in time.
 *
 * It knows only the tenant's own queue: how many requests wait, and how long
 * each one waited.  How long a request runs after its release does not count:
 * an origin that is slow is no overload of this machine.
 *
 * A tenant's queue has room for `least` requests whatever the controller says.
 * So a controller that is wrong cannot take the tenant's share from it.
 *
 * A request that has waited to be parsed for half of the target, and for more
 * than 20 ms, is late.  All controllers but `limit` refuse it.  Without this
 * rule all answers would be late when requests come faster than they can be
 * refused.
 *
 * All times are ns.  No clock, lock or allocation.  The caller serialises.
 */

#ifndef OVERLOAD_OVERLOAD_H_INCLUDED
#define OVERLOAD_OVERLOAD_H_INCLUDED

#include <stdint.h>

#include "histogram.h"

struct ovl_queue {			/* of the tenant, now */
	int64_t			now;
	int64_t			target;		/* longest wait, at most 10 s;
						 * 0: none */
	int64_t			standing;	/* the same, when the queue has
						 * not been empty for long; 0:
						 * the target */
	int64_t			age;		/* since the request came: how
						 * long it waited to be parsed */
	unsigned		waiting;	/* requests, without this one */
	unsigned		least;		/* so many can always wait */
};

struct ovl_codel {
	int64_t			above;		/* refuse from this time on; 0:
						 * the last wait was short */
	int64_t			next;		/* refusal */
	unsigned		count;		/* refusals, by RFC 8289 */
	unsigned		before;		/* `count` when it began to
						 * refuse */
	int			refuses;
};

struct ovl_seda {
	struct histogram	waits;		/* since `began` */
	int64_t			began, filled;	/* the bucket was filled then */
	float			p90;		/* smoothed, ns */
	float			rate, tokens;	/* of the bucket; requests/s,
						 * and requests */
	int			scaled;		/* it is seda-scaled */
};

struct ovl_gradient {
	int64_t			began;		/* the window */
	double			sum;		/* of its waits, ns */
	unsigned		n;		/* its waits */
	float			limit;		/* waiting requests */
};

struct ovl_credits {
	int64_t			updated, wait;	/* wait: the last one */
	float			credits;	/* waiting requests */
};

struct ovl_time {
	int64_t			empty;		/* the queue was, last */
	int64_t			since;		/* the last release */
	int			first;		/* the next release is the first
						 * one since it was empty */
	double			busy, released;	/* ns, and the releases in them;
						 * both are halved together, to
						 * forget old releases */
};

struct ovl {				/* all 0: nothing was seen */
	unsigned		controller;	/* the state is of this one,
						 * plus 1 */
	union {
		struct ovl_codel	codel;
		struct ovl_seda		seda;
		struct ovl_gradient	gradient;
		struct ovl_credits	credits;
		struct ovl_time		time;
	};
};

_Static_assert(sizeof(struct ovl) <= 128, "every tenant has one");

unsigned OVL_Controllers(void);
/* Returns -1 if there is none. */
int OVL_ByName(const char *);
const char *OVL_Name(unsigned controller);
const char *OVL_Summary(unsigned controller);

/*
 * A request comes.  Returns 1 if it may wait, 0 if it is to be refused.  The
 * first call of another controller begins with an empty state.
 */
int OVL_Admit(unsigned controller, struct ovl *, const struct ovl_queue *);

/* Return 1 if a request that has waited for `age` to be parsed is late. */
int OVL_Late(unsigned controller, int64_t target, int64_t age);

/* A request that has waited for so long is released; `waiting` others wait. */
void OVL_Released(unsigned controller, struct ovl *, const struct ovl_queue *,
    int64_t wait);

#endif
