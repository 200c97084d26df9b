/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * What a tenant's refused requests get: a status, and perhaps a page.
 *
 * A page does not change after PAGE_New().  References to it are counted, since
 * a request may send it while the map that has it goes.  Any thread may take
 * and end references.
 */

#ifndef TENANTS_PAGE_H_INCLUDED
#define TENANTS_PAGE_H_INCLUDED

#include <stddef.h>
#include <stdint.h>

#define PAGE_BODY_MAX	16384		/* bytes */
#define PAGE_TYPE_MAX	100		/* bytes */

struct page {
	unsigned		magic;
#define PAGE_MAGIC		0x5a9d9a6e
	_Atomic unsigned	refs;
	unsigned		status;		/* 429 or 503; 0: not set */
	unsigned		vcl;		/* 1: VCL makes the answer */
	size_t			body_len;	/* bytes */
	const char		*body;
	char			head[];		/* two lines of an HTTP/1 head */
};

/*
 * Make a page with one reference.  status: 429, 503, or 0: not set.  body,
 * type: the page and its Content-Type; they are copied.  vcl: 1: VCL makes the
 * answer where it can.  Returns NULL, or an error text: what is wrong, and what
 * is allowed.
 */
const char *PAGE_New(struct page **, int64_t status, const char *body,
    const char *type, int vcl);

/* Take a reference, and return the page.  NULL: there is no page. */
struct page *PAGE_Ref(struct page *);

/* End a reference, the last one frees the page.  NULL: there is no page. */
void PAGE_Unref(struct page *);

#endif
