/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * See exempt.h.  A rule bounds its rate by the generic cell rate algorithm (GCRA,
 * ITU-T I.371).  It keeps one time, `due`: then all of its uses are back.  Each
 * use moves `due` by 1/rate.  The rule is used up if `due` would then be more
 * than a second ahead.
 */

#include <assert.h>
#include <ctype.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "exempt.h"
#include "name.h"
#include "pattern.h"

#define SECOND	INT64_C(1000000000)	/* ns */

struct exempt {
	struct exempt		*next;
	char			url[TEN_NAME_MAX + 1];
	size_t			url_len;
	char			host[TEN_NAME_MAX + 1];	/* "": any */
	size_t			host_len;
	int64_t			every;		/* ns: 1 / rate */
	_Atomic int64_t		due;		/* ns */
};

static const char *
url_error(const char *url)
{
	const char *p;

	if (url == NULL || *url != '/')
		return ("the URL does not begin with /: use a path, such as "
		    "/healthz");
	for (p = url; *p != '\0'; p++) {
		if (*p == '?' || *p == '#')
			return ("the URL has a query or a fragment: use only its path");
		if (!isgraph((unsigned char)*p))
			return ("the URL has a character that is not allowed: "
			    "use printable characters, but no spaces");
	}
	return (p - url > TEN_NAME_MAX ?
	    "the URL is too long: use at most 255 characters" : NULL);
}

static const char *
host_error(const char *host)
{
	if (*host != '\0' && strlen(host) > TEN_NAME_MAX)
		return ("the Host is too long: use at most 255 characters");
	return (*host != '\0' ? PATTERN_Check(host) : NULL);
}

const char *
EXEMPT_Add(struct exempt **rules, const char *url, const char *host,
    int64_t per_second)
{
	struct exempt *e, **end;
	unsigned n = 0;
	const char *err;
	size_t i;

	if (host == NULL)
		host = "";
	err = url_error(url);
	if (err == NULL)
		err = host_error(host);
	if (err != NULL)
		return (err);
	if (per_second < 1 || per_second > EXEMPT_PER_SECOND)
		return ("the rate is not allowed: use 1 to 1000 a second");
	for (end = rules; *end != NULL; end = &(*end)->next, n++)
		if (!strcmp((*end)->url, url) &&
		    !strcasecmp((*end)->host, host))
			return ("this URL and Host are exempt already: use "
			    "them once");
	if (n == EXEMPT_RULES)
		return ("there are too many rules: use at most 16");
	e = calloc(1, sizeof *e);
	assert(e != NULL);
	e->url_len = strlen(url);
	memcpy(e->url, url, e->url_len);
	e->host_len = strlen(host);
	for (i = 0; i < e->host_len; i++)
		e->host[i] = (char)tolower((unsigned char)host[i]);
	e->every = SECOND / per_second;
	*end = e;
	return (NULL);
}

static int
matches(const struct exempt *e, const char *url, const char *host, size_t len)
{
	return (!strncmp(url, e->url, e->url_len) &&
	    (url[e->url_len] == '\0' || url[e->url_len] == '?') &&
	    (e->host_len == 0 || (e->host_len == len &&
	    !memcmp(e->host, host, len))));
}

static int
use(struct exempt *e, int64_t now)
{
	int64_t due = e->due, from;

	do {
		from = due > now ? due : now;
		if (from - now > SECOND - e->every)
			return (0);
	} while (!atomic_compare_exchange_weak(&e->due, &due,
	    from + e->every));
	return (1);
}

enum exempt_answer
EXEMPT_Use(struct exempt *rules, const char *url, const char *host, size_t len,
    int64_t now)
{
	enum exempt_answer answer = EXEMPT_NO;
	struct exempt *e;

	for (e = rules; e != NULL; e = e->next)
		if (matches(e, url, host, len)) {
			if (use(e, now))
				return (EXEMPT_NOW);
			answer = EXEMPT_OVER;
		}
	return (answer);
}

void
EXEMPT_Free(struct exempt **rules)
{
	struct exempt *e;

	while ((e = *rules) != NULL) {
		*rules = e->next;
		free(e);
	}
}
