/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Answers of HTTP/1.1, in any pieces.  Their bodies are counted, not kept.
 */

#include <stddef.h>
#include <stdint.h>

struct http1 {
	int		status;		/* 0: no HTTP/1 */
	int		closes;		/* the connection, after this answer */
	unsigned	retry_after;	/* s; 0: the answer names no seconds */
	int		chunked, last_chunk;
	int		ended;		/* the answer is complete */
	uint64_t	left;		/* bytes of the body, or of a chunk */
	uint64_t	chunk;		/* its size, as far as it is read */
	unsigned	match;		/* characters of a head's beginning */
};

/* Each returns 0, or -1 if this is no answer with a length. */
int HTTP1_Head(struct http1 *, const char *head);	/* a whole one */
int HTTP1_Body(struct http1 *, const char *, size_t);

/* Returns how many heads begin in these bytes. */
unsigned HTTP1_Heads(struct http1 *, const char *, size_t);
