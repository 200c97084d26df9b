/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Rules that name the requests that do not wait in a queue, such as the health
 * checks of a load balancer.
 *
 * A rule has the path of a URL, and maybe a Host.  It is good for a number of
 * requests a second, and for that many at once.  So a client that uses it takes
 * little from others.  But it can use the rule up.
 */

#ifndef TENANTS_EXEMPT_H_INCLUDED
#define TENANTS_EXEMPT_H_INCLUDED

#include <stddef.h>
#include <stdint.h>

#define EXEMPT_RULES		16	/* at most */
#define EXEMPT_PER_SECOND	1000	/* at most */

struct exempt;

enum exempt_answer {
	EXEMPT_NO,		/* no rule names the request */
	EXEMPT_NOW,		/* it is to run at once */
	EXEMPT_OVER		/* a rule names it, but was used up */
};

/*
 * Add a rule.  url: the path, which must be equal.  A "?" and what comes after
 * it in a request do not count.  host: as in a pattern without "*", "" or NULL: any.
 * Returns NULL, or an error text: what is wrong, and what is allowed.
 */
const char *EXEMPT_Add(struct exempt **rules, const char *url,
    const char *host, int64_t per_second);

/*
 * Look for a rule that names the request and is not used up at the time `now`,
 * ns, and use it once.  host: lower case, len bytes.  Needs no lock.
 */
enum exempt_answer EXEMPT_Use(struct exempt *rules, const char *url,
    const char *host, size_t len, int64_t now);

void EXEMPT_Free(struct exempt **rules);

#endif
