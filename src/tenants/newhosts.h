/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * New Hosts: when does a Host become a tenant of its own?
 *
 * Without a map any client can invent Hosts.  If each were a tenant at once,
 * 400 invented Hosts would have 400 of 401 shares.  So a Host that no map names
 * begins as new.  All new Hosts together have one small share.  A Host is
 * proven by lasting, plausible use:
 *
 *	evidence	an answer with a status from 200 to 399
 *	proof		evidence in NEW_PROOF of the last NEW_WINDOW seconds
 *
 * Proving a Host takes one token.  A bucket gets one token in NEW_EVERY
 * seconds.  If there are many proven Hosts, it gets a thousandth of their
 * number in each second.  The set is crowded if more than NEW_FEW new Hosts
 * have evidence: then clients may be inventing Hosts, and a Host must also be
 * NEW_AGE seconds old.  The bucket holds NEW_FEW tokens, or one while crowded,
 * but at least the tokens of one second.  A proven Host without an answer for
 * NEW_IDLE seconds is new again.
 *
 * For NEW_START seconds after a start no Host needs an age or a token. 
 * Hundreds of real sites may begin then, and no tenant has a share to lose.
 *
 * There is no clock, lock or allocation here.  `now` is an argument, and the
 * caller serialises the calls on one struct newhosts.  Each call is O(1):
 * NEW_Next() looks at NEW_STEPS Hosts of each list at most.
 */

#ifndef NEWHOSTS_H_INCLUDED
#define NEWHOSTS_H_INCLUDED

#include <stdint.h>

#include "releaser/releaser.h"

#define NEW_WINDOW	60		/* s */
#define NEW_PROOF	10		/* s, of the window */
#define NEW_FEW		20		/* Hosts, and tokens */
#define NEW_AGE		60		/* s, if crowded */
#define NEW_EVERY	10		/* s for one token */
#define NEW_IDLE	600		/* s */
#define NEW_START	60		/* s, without age and tokens */
#define NEW_STEPS	64		/* Hosts of a list in one call */

/*
 *	NONE --Begin--> QUIET <--evidence--> EVIDENT --Next--> PROVEN
 *	                  ^                                       |
 *	                  '----------------- idle ----------------'
 */
enum new_state {
	NEW_NONE = 0,		/* not in a list: the map names it */
	NEW_QUIET,		/* new, no evidence in the window */
	NEW_EVIDENT,		/* new, evidence in the window */
	NEW_PROVEN		/* a tenant of its own */
};

struct newhost {			/* one for each Host; zeros */
	struct rel_link		age;	/* list of its state, by `last` */
	struct rel_link		asks;	/* EVIDENT with proof: by the time
					 * of the proof */
	uint64_t		evidence;	/* bit i: in second last - i */
	int64_t			last;	/* s, last evidence; PROVEN: answer */
	int64_t			since;	/* s, when it became new */
	enum new_state		state;
};

struct newhosts {
	struct rel_link		quiet, evident, proven, asks;
	unsigned		nnew;	/* QUIET and EVIDENT */
	unsigned		nevident, nproven;
	int64_t			ticked;	/* s, last tokens added */
	int64_t			open;	/* s, end of NEW_START */
	unsigned		tokens;	/* 1/1000 */
};

/* Prepare the struct.  All times are ns of one monotonic clock. */
void NEW_Init(struct newhosts *, int64_t now);
/* Start NEW_START now: the first new Host of all has its first request */
void NEW_Start(struct newhosts *, int64_t now);
/* Make a Host new that no map names, at its first request.  It is NONE
 * before. */
void NEW_Begin(struct newhosts *, struct newhost *, int64_t now);
/* Forget the Host: its record ends, or a map names it.  NONE stays NONE. */
void NEW_End(struct newhosts *, struct newhost *);
/* Note an answer of the Host.  good: it is evidence, see NEW_Good(). */
void NEW_Answer(struct newhosts *, struct newhost *, int good, int64_t now);
/*
 * Change the state of one Host for which the time has come: to PROVEN, or from
 * PROVEN to QUIET.  Returns that Host, or NULL if there is none now.  Call it
 * about once a second, until it returns NULL.
 */
struct newhost *NEW_Next(struct newhosts *, int64_t now);

/* Is an answer with this HTTP status evidence? */
static inline int
NEW_Good(unsigned status)
{
	return (status >= 200 && status < 400);
}
/* Return the number of seconds with evidence in the window that ends now; 0 for
 * a Host that is not new */
unsigned NEW_Seconds(const struct newhost *, int64_t now);
/* Do more than NEW_FEW new Hosts have evidence? */
int NEW_Crowded(const struct newhosts *);
/* Is the Host new? */
static inline int
NEW_Is(const struct newhost *h)
{
	return (h->state == NEW_QUIET || h->state == NEW_EVIDENT);
}

#endif
