/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * C1: a delivery processor that writes "published 5 minutes ago" into a page.
 *
 * It looks for PATTERN, in which a 0 stands for any digit, wherever the page's
 * storage is cut, and passes the page on as it is, in pieces between which it
 * puts its texts.  These stay in `texts` until the next processor
 * has been told to flush: only then the room is used again.
 */

#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache/cache.h"
#include "cache/cache_filter.h"

#include "vtim.h"

#include "customers.h"

#define PATTERN		"<time datetime=\"0000-00-00T00:00:00Z\">"
#define PATTERN_LEN	(sizeof PATTERN - 1)
#define DATE_AT		(sizeof "<time datetime=\"" - 1)
#define DATE_LEN	(sizeof "0000-00-00T00:00:00" - 1)
#define TEXT_MAX	64

struct published {
	unsigned		magic;
#define PUBLISHED_MAGIC		0x3c1d70a5
	unsigned		matched;	/* characters of the pattern */
	unsigned		used;		/* of texts */
	vtim_real		now;
	char			date[DATE_LEN + 1];
	char			texts[4096];
};

static int v_matchproto_(vdp_init_f)
published_init(VRT_CTX, struct vdp_ctx *vdc, void **priv)
{
	struct published *p;

	CHECK_OBJ_NOTNULL(ctx, VRT_CTX_MAGIC);
	CHECK_OBJ_NOTNULL(vdc, VDP_CTX_MAGIC);
	AN(priv);
	ALLOC_OBJ(p, PUBLISHED_MAGIC);
	if (p == NULL)
		return (-1);
	p->now = ctx->now;
	*priv = p;
	http_Unset(vdc->hp, H_Content_Length);
	*vdc->clen = -1;
	return (0);
}

/* How long ago `date` was, in words; the length, 0 if it is no date */
static unsigned
ago(char *text, vtim_real now, const char *date)
{
	static const struct {
		const char	*name;
		long		seconds;
	} units[] = {
		{ "day",	86400 },
		{ "hour",	3600 },
		{ "minute",	60 },
	};
	vtim_real then = VTIM_parse(date);
	unsigned u;
	long age;
	int l;

	if (then == 0)
		return (0);
	age = now > then ? (long)(now - then) : 0;
	for (u = 0; u < 3; u++)
		if (age >= units[u].seconds)
			break;
	if (u == 3)
		l = snprintf(text, TEXT_MAX, "published just now");
	else {
		age /= units[u].seconds;
		l = snprintf(text, TEXT_MAX, "published %ld %s%s ago", age,
		    units[u].name, age == 1 ? "" : "s");
	}
	assert(l > 0 && l < TEXT_MAX);
	return ((unsigned)l);
}

/* Take one more character: is it the pattern's last one? */
static int
match(struct published *p, char c)
{
	unsigned m = p->matched;

	if (PATTERN[m] == '0' ? c < '0' || c > '9' : c != PATTERN[m]) {
		p->matched = c == PATTERN[0];
		return (0);
	}
	if (m >= DATE_AT && m < DATE_AT + DATE_LEN)
		p->date[m - DATE_AT] = c;
	p->matched = (m + 1) % PATTERN_LEN;
	return (p->matched == 0);
}

static int
insert(struct vdp_ctx *vdc, struct published *p)
{
	unsigned l;

	if (p->used + TEXT_MAX > sizeof p->texts) {
		if (VDP_bytes(vdc, VDP_FLUSH, NULL, 0))
			return (vdc->retval);
		p->used = 0;
	}
	l = ago(p->texts + p->used, p->now, p->date);
	if (l > 0 && VDP_bytes(vdc, VDP_NULL, p->texts + p->used, l))
		return (vdc->retval);
	p->used += l;
	return (0);
}

static int v_matchproto_(vdp_bytes_f)
published_bytes(struct vdp_ctx *vdc, enum vdp_action act, void **priv,
    const void *ptr, ssize_t len)
{
	const char *b = ptr, *done = b, *e = b + len;
	struct published *p;

	CHECK_OBJ_NOTNULL(vdc, VDP_CTX_MAGIC);
	AN(priv);
	CAST_OBJ_NOTNULL(p, *priv, PUBLISHED_MAGIC);
	while (b < e) {
		if (!match(p, *b++))
			continue;
		if (VDP_bytes(vdc, VDP_NULL, done, b - done) ||
		    insert(vdc, p))
			return (vdc->retval);
		done = b;
	}
	if (done == e && act == VDP_NULL)
		return (0);
	(void)VDP_bytes(vdc, act, done, e - done);
	if (act != VDP_NULL)
		p->used = 0;
	return (vdc->retval);
}

static int v_matchproto_(vdp_fini_f)
published_fini(struct vdp_ctx *vdc, void **priv)
{
	struct published *p;

	CHECK_OBJ_NOTNULL(vdc, VDP_CTX_MAGIC);
	TAKE_OBJ_NOTNULL(p, priv, PUBLISHED_MAGIC);
	FREE_OBJ(p);
	return (0);
}

const struct vdp published_vdp = {
	.name =		"published",
	.init =		published_init,
	.bytes =	published_bytes,
	.fini =		published_fini,
};
