/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Rules that name the requests which never wait, such as the health checks of a
 * load balancer.
 *
 * A rule has the path of a URL, and maybe a Host.  It holds for so many
 * requests a second, as many at once.  So a client that learns of the rule takes
 * little from others.
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
 * Add a rule.  url: its path, the same to the byte; what stands behind a "?" in
 * a request does not count.  host: as in a pattern without "*", "" or NULL: any.
 * Returns NULL, or an error text: what is wrong, and what is allowed.
 */
const char *EXEMPT_Add(struct exempt **rules, const char *url,
    const char *host, int64_t per_second);

/* Look for a rule of a request that is not used up at the time `now`, ns, and use
 * it once.  host:
 * lower case, len bytes.  Needs no lock. */
enum exempt_answer EXEMPT_Use(struct exempt *rules, const char *url,
    const char *host, size_t len, int64_t now);

void EXEMPT_Free(struct exempt **rules);

#endif
