/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * HTTP/1.1 answers.  A body has a Content-Length or is chunked, without
 * trailers: this is what proxies send to clients that keep a connection.
 */

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http1.h"

#define SECONDS_MAX	86400	/* of a Retry-After */

/* Note what a header says, if it matters.  Returns whether the body's length
 * is known by it: 1, 0, or -1 if it is wrong. */
static int
header(struct http1 *h, const char *p)
{
	long long n;

	if (!strncasecmp(p, "content-length:", 15)) {
		n = strtoll(p + 15, NULL, 10);
		h->left = (uint64_t)n;
		h->ended = n == 0;
		return (n >= 0 ? 1 : -1);
	}
	if (!strncasecmp(p, "transfer-encoding: chunked\r", 27)) {
		h->chunked = 1;
		return (1);
	}
	if (!strncasecmp(p, "connection: close\r", 18))
		h->closes = 1;
	else if (!strncasecmp(p, "retry-after:", 12)) {
		n = strtoll(p + 12, NULL, 10);	/* 0 if it is a date */
		h->retry_after = n < 0 ? 0 :
		    (unsigned)(n < SECONDS_MAX ? n : SECONDS_MAX);
	}
	return (0);
}

int
HTTP1_Head(struct http1 *h, const char *head)
{
	const char *p, *e;
	int i, found = -1;

	memset(h, 0, sizeof *h);
	if (sscanf(head, "HTTP/1.%*d %d", &h->status) != 1)
		return (-1);
	for (p = head; (e = strstr(p, "\r\n")) != NULL; p = e + 2) {
		i = header(h, p);
		if (i < 0)
			return (-1);
		if (i > 0)
			found = 0;
	}
	return (found);
}

static unsigned
hex(char x)
{

	return ((unsigned)(isdigit((unsigned char)x) ? x - '0' :
	    tolower((unsigned char)x) - 'a' + 10));
}

/* Read one character of a chunk's size. */
static int
chunk_size(struct http1 *h, char x)
{

	if (x == '\n') {
		h->last_chunk = h->chunk == 0;
		h->left = h->chunk + 2;		/* and its CRLF */
		h->chunk = 0;
	} else if (isxdigit((unsigned char)x))
		h->chunk = h->chunk << 4 | hex(x);
	else if (x != '\r')
		return (-1);
	return (0);
}

static int
chunks(struct http1 *h, const char *p, size_t len)
{
	const char *e = p + len;
	size_t n;

	while (p < e) {
		if (h->ended)
			return (-1);
		if (h->left == 0) {
			if (chunk_size(h, *p++) != 0)
				return (-1);
			continue;
		}
		n = (size_t)(e - p) < h->left ? (size_t)(e - p) : h->left;
		p += n;
		h->left -= n;
		h->ended = h->last_chunk && h->left == 0;
	}
	return (0);
}

/* The bytes of a body with a length are not looked at: `p` may be NULL. */
int
HTTP1_Body(struct http1 *h, const char *p, size_t len)
{

	if (h->chunked)
		return (chunks(h, p, len));
	if (len > h->left)
		return (-1);
	h->left -= len;
	h->ended = h->left == 0;
	return (0);
}

unsigned
HTTP1_Heads(struct http1 *h, const char *p, size_t len)
{
	static const char head[] = "HTTP/1.1 ";
	const char *e = p + len;
	unsigned n = 0;

	while (p < e) {
		if (h->match == 0 &&
		    (p = memchr(p, 'H', (size_t)(e - p))) == NULL)
			break;
		h->match = *p == head[h->match] ? h->match + 1 : *p == 'H';
		p++;
		if (head[h->match] == '\0') {
			n++;
			h->match = 0;
		}
	}
	return (n);
}
