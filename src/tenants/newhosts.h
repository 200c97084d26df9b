/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * New Hosts: which Host becomes a tenant of its own, and when.
 *
 * Without a map anybody may invent Hosts.  If each of them were a tenant at
 * once, 400 invented Hosts would have 400 of 401 shares.  So a Host that no
 * map names begins as new.  All new Hosts together have one small share.  A
 * Host is proven, and then a tenant of its own, by lasting, plausible use:
 *
 *	evidence	an answer with a status from 200 to 399
 *	proof		evidence in NEW_PROOF of the last NEW_WINDOW seconds
 *
 * At most NEW_FEW new Hosts have evidence: a Host with proof is proven at
 * once.  If more have, somebody may be inventing Hosts: then a Host with
 * proof must also be NEW_AGE seconds old.  Either way a Host takes one token
 * from a bucket.  The bucket gets one token every NEW_EVERY seconds, or a
 * thousandth of the proven Hosts every second if that is more.  It holds
 * NEW_FEW tokens, or one while more than NEW_FEW Hosts have evidence.  A
 * proven Host without an answer for NEW_IDLE seconds is new again.
 *
 * For NEW_START seconds after a start no Host needs an age or a token: nobody
 * has a share yet that others could take, and hundreds of real sites may begin
 * at this time.
 *
 *	NONE --Begin--> QUIET <--evidence--> EVIDENT --Next--> PROVEN
 *	                  ^                                       |
 *	                  '----------------- idle ----------------'
 *
 * There is no clock, lock or allocation here: `now` is an argument, and the
 * caller serialises the calls on one struct newhosts.  Each call is O(1), but
 * that NEW_Next() looks at NEW_STEPS Hosts at most.
 */

#ifndef NEWHOSTS_H_INCLUDED
#define NEWHOSTS_H_INCLUDED

#include <stdint.h>

#include "releaser/releaser.h"

#define NEW_WINDOW	60		/* s */
#define NEW_PROOF	10		/* s, of the window */
#define NEW_FEW		20		/* Hosts, and tokens */
#define NEW_AGE		60		/* s */
#define NEW_EVERY	10		/* s, one token */
#define NEW_IDLE	600		/* s */
#define NEW_START	60		/* s */
#define NEW_STEPS	64		/* Hosts that one call looks at */

enum new_state {
	NEW_NONE = 0,		/* not looked at: the map names it */
	NEW_QUIET,		/* new, no evidence in the window */
	NEW_EVIDENT,		/* new, some evidence */
	NEW_PROVEN		/* a tenant of its own */
};

struct newhost {			/* one a Host; begins as zeros */
	struct rel_link		age;	/* EVIDENT, PROVEN: by `last` */
	struct rel_link		asks;	/* EVIDENT with proof: in the order in
					 * which they had it */
	uint64_t		evidence;	/* bit i: at second last - i */
	int64_t			last;	/* s, of bit 0; PROVEN: of an answer */
	int64_t			since;	/* s, it is new */
	enum new_state		state;
};

struct newhosts {
	struct rel_link		quiet, evident, proven, asks;
	unsigned		nnew;	/* QUIET and EVIDENT */
	unsigned		nevident, nproven;
	int64_t			ticked;	/* s */
	int64_t			open;	/* s, until then no age or token */
	unsigned		tokens;	/* 1/1000 */
};

/* All times are ns of one monotonic clock */
void NEW_Init(struct newhosts *, int64_t now);
/* The first new Host of all comes now */
void NEW_Start(struct newhosts *, int64_t now);
/* A Host that no map names has its first request; it is NONE before */
void NEW_Begin(struct newhosts *, struct newhost *, int64_t now);
/* The record goes, or a map names the Host; NONE stays as it is */
void NEW_End(struct newhosts *, struct newhost *);
/* The Host had an answer: good, if that is evidence */
void NEW_Answer(struct newhosts *, struct newhost *, int good, int64_t now);
/*
 * A Host whose state has just changed to PROVEN, or from PROVEN to QUIET, or
 * NULL: there is none now.  Call it again until it says NULL, about once a
 * second.
 */
struct newhost *NEW_Next(struct newhosts *, int64_t now);

/* Is an answer with this HTTP status evidence? */
static inline int
NEW_Good(unsigned status)
{
	return (status >= 200 && status < 400);
}
/* Seconds with evidence in the window that ends now */
unsigned NEW_Seconds(const struct newhost *, int64_t now);
/* May anybody be inventing Hosts? */
int NEW_Crowded(const struct newhosts *);
/* Is it new? */
static inline int
NEW_Is(const struct newhost *h)
{
	return (h->state == NEW_QUIET || h->state == NEW_EVIDENT);
}

#endif
