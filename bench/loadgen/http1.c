/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * HTTP/1.1: writes requests and reads answers, in any pieces.
 */

#define _GNU_SOURCE
#include "loadgen.h"

void
format_host(const struct conn *c, char *host, size_t len)
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

int
format_request(const struct conn *c, char *buf, size_t len)
{
	const struct group *g = c->group;
	char host[HOST_MAX], path[600];
	int l;

	serial++;
	format_host(c, host, sizeof host);
	if (g->unique)
		(void)snprintf(path, sizeof path, "%s?%ju", g->path,
		    (uintmax_t)serial);
	else
		(void)snprintf(path, sizeof path, "%s%s", g->path,
		    g->every > 0 && serial % g->every == 0 ? "?dear" : "");
	l = snprintf(buf, len, "GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n",
	    path, host, g->nheaders == 0 ? "User-Agent: loadgen\r\n" :
	    g->headers[g->sent % g->nheaders]);
	assert(l > 0 && (size_t)l < len);
	return (l);
}

int
format_post(const struct conn *c, char *buf, size_t len)
{
	int l;

	l = snprintf(buf, len, "POST %s HTTP/1.1\r\nHost: %s\r\n"
	    "Content-Length: %d\r\n\r\n", c->group->path, c->group->host,
	    LENGTH);
	assert(l > 0 && (size_t)l < len);
	return (l);
}

/* How many answers to pipelined requests begin in these bytes? */
unsigned
conn_heads(struct conn *c, const char *p, size_t len)
{
	static const char head[] = "HTTP/1.1 ";
	const char *e = p + len;
	unsigned n = 0;

	while (p < e) {
		if (c->match == 0 &&
		    (p = memchr(p, 'H', (size_t)(e - p))) == NULL)
			break;
		c->match = *p == head[c->match] ? c->match + 1 : *p == 'H';
		p++;
		if (head[c->match] == '\0') {
			n++;
			c->match = 0;
		}
	}
	return (n);
}

/*
 * The response's body length, or -1: the head has none or is no HTTP/1.
 * A chunked body has length 0 so far.
 */
long long
parse_head(struct conn *c, uint64_t now)
{
	char *p, *e;
	int status;

	if (sscanf(c->head, "HTTP/1.%*d %d", &status) != 1)
		return (-1);
	if (status != 200 && in_window(c->group, now))
		c->group->not_ok++;
	c->chunked = c->last_chunk = 0;
	c->chunk = 0;
	for (p = c->head; (e = strstr(p, "\r\n")) != NULL; p = e + 2) {
		if (!strncasecmp(p, "content-length:", 15))
			return (strtoll(p + 15, NULL, 10));
		if (!strncasecmp(p, "transfer-encoding: chunked\r", 27)) {
			c->chunked = 1;
			return (0);
		}
	}
	return (-1);
}

static unsigned
hex(char x)
{

	return ((unsigned)(isdigit((unsigned char)x) ? x - '0' :
	    tolower((unsigned char)x) - 'a' + 10));
}

/* Some of a chunked body: 0, or -1 if it is none.  Trailers are none. */
int
chunks(struct conn *c, const char *p, size_t len)
{
	const char *e = p + len;
	size_t n;

	while (p < e) {
		if (c->ended)
			return (-1);
		if (c->body_left > 0) {
			n = (size_t)(e - p) < c->body_left ?
			    (size_t)(e - p) : c->body_left;
			p += n;
			c->body_left -= n;
			c->ended = c->last_chunk && c->body_left == 0;
			continue;
		}
		if (*p == '\n') {
			c->last_chunk = c->chunk == 0;
			c->body_left = c->chunk + 2;	/* and its CRLF */
			c->chunk = 0;
		} else if (isxdigit((unsigned char)*p))
			c->chunk = c->chunk << 4 | hex(*p);
		else if (*p != '\r')
			return (-1);
		p++;
	}
	return (0);
}
