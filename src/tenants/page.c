/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * What a tenant's refused requests get.  The header lines are made once, so
 * that a refusal only copies them.
 */

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "page.h"

#define HEAD	"Content-Type: %s\r\nContent-Length: %zu\r\n"

/* Return NULL if a Content-Type can be sent, or an error text. */
static const char *
type_check(const char *type)
{
	const char *p;

	if (type == NULL || *type == '\0')
		return ("the type is empty: use a Content-Type");
	if (strlen(type) > PAGE_TYPE_MAX)
		return ("the type is too long: use at most 100 characters");
	for (p = type; *p != '\0'; p++)
		if (!isprint((unsigned char)*p))
			return ("the type has a character that is not "
			    "allowed: use printable characters");
	return (NULL);
}

const char *
PAGE_New(struct page **to, int64_t status, const char *body, const char *type,
    int vcl)
{
	const char *err;
	struct page *p;
	size_t l, head;

	if (status != 0 && status != 429 && status != 503)
		return ("the status is not allowed: use 429, 503, or 0 for "
		    "the parameter sandpaper_status");
	if (body == NULL)
		body = "";
	l = strlen(body);
	if (l > PAGE_BODY_MAX)
		return ("the body is too long: use at most 16384 bytes");
	err = type_check(type);
	if (err != NULL)
		return (err);
	head = (size_t)snprintf(NULL, 0, HEAD, type, l) + 1;
	p = calloc(1, sizeof *p + head + l);
	assert(p != NULL);
	p->magic = PAGE_MAGIC;
	p->refs = 1;
	p->status = (unsigned)status;
	p->vcl = vcl != 0;
	(void)snprintf(p->head, head, HEAD, type, l);
	p->body = memcpy(p->head + head, body, l);
	p->body_len = l;
	*to = p;
	return (NULL);
}

struct page *
PAGE_Ref(struct page *p)
{

	if (p == NULL)
		return (NULL);
	assert(p->magic == PAGE_MAGIC);
	p->refs++;
	return (p);
}

void
PAGE_Unref(struct page *p)
{

	if (p == NULL)
		return;
	assert(p->magic == PAGE_MAGIC);
	if (--p->refs == 0) {
		p->magic = 0;
		free(p);
	}
}
