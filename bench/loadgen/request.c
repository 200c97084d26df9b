/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * What a request says: its Host, path and headers, by the keys of its group.
 */

#include <assert.h>
#include <stdio.h>

#include "loadgen.h"

static uint64_t serial;		/* of a request, over all groups */

void
request_host(const struct conn *c, char *host, size_t len)
{
	const struct group *g = c->group;

	if (g->random_host)
		(void)snprintf(host, len, "%016jx.%s", (uintmax_t)draw(),
		    g->host);
	else if (g->hosts > 0)
		(void)snprintf(host, len, "h%u.%s",
		    (unsigned)(c - g->conns) % g->hosts, g->host);
	else
		(void)snprintf(host, len, "%s", g->host);
}

static const char *
request_url(struct group *g)
{

	if (g->paths.n == 0)
		return (g->path);
	return (g->in_order ? paths_next(&g->paths) : paths_draw(&g->paths));
}

/* Write a GET and return its length. */
size_t
request_get(const struct conn *c, char *buf, size_t len)
{
	const struct group *g = c->group;
	const char *url = request_url(c->group);
	char host[HOST_MAX], path[URL_MAX + 40];
	int l;

	serial++;
	request_host(c, host, sizeof host);
	if (g->unique)
		(void)snprintf(path, sizeof path, "%s?%ju", url,
		    (uintmax_t)serial);
	else
		(void)snprintf(path, sizeof path, "%s%s", url,
		    g->every > 0 && serial % g->every == 0 ? "?dear" : "");
	l = snprintf(buf, len, "GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n",
	    path, host, g->nheaders == 0 ? "User-Agent: loadgen\r\n" :
	    g->headers[g->sent_in_all % g->nheaders]);
	assert(l > 0 && (size_t)l < len);
	return ((size_t)l);
}
