/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * VCL's way to C1's processor, C2's token and log, and C3's places.
 *
 * What vcl_init sets up belongs to the VCL: one `site`, immutable afterwards,
 * so that requests share it without a lock.
 */

#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <maxminddb.h>

#include "cache/cache.h"
#include "cache/cache_filter.h"

#include "vcl.h"
#include "vsa.h"
#include "vsb.h"

#include "vcc_customers_if.h"

#include "customers.h"
#include "token.h"

#define PRIORITY	134		/* local0.info */
#define LINE_MAX	2048		/* bytes of a line of the log */
#define CLAIM_MAX	128

struct site {
	unsigned		magic;
#define SITE_MAGIC		0x51c2a9e7
	int			log;		/* a socket, or -1 */
	int			has_places;
	MMDB_s			places;
};

static void v_matchproto_(vmod_priv_fini_f)
site_fini(VRT_CTX, void *priv)
{
	struct site *s;

	(void)ctx;
	CAST_OBJ_NOTNULL(s, priv, SITE_MAGIC);
	if (s->log >= 0)
		closefd(&s->log);
	if (s->has_places)
		MMDB_close(&s->places);
	FREE_OBJ(s);
}

static const struct vmod_priv_methods site_methods[1] = {{
	.magic =	VMOD_PRIV_METHODS_MAGIC,
	.type =		"vmod_customers_site",
	.fini =		site_fini,
}};

/* In vcl_init */
static struct site *
site_make(struct vmod_priv *priv)
{
	struct site *s;

	AN(priv);
	if (priv->priv == NULL) {
		ALLOC_OBJ(s, SITE_MAGIC);
		AN(s);
		s->log = -1;
		priv->priv = s;
		priv->methods = site_methods;
	}
	CAST_OBJ_NOTNULL(s, priv->priv, SITE_MAGIC);
	return (s);
}

/* In requests: what vcl_init has made, or NULL */
static const struct site *
site_of(const struct vmod_priv *priv)
{
	const struct site *s;

	AN(priv);
	CAST_OBJ(s, priv->priv, SITE_MAGIC);
	return (s);
}

int v_matchproto_(vmod_event_f)
vmod_event(VRT_CTX, struct vmod_priv *priv, enum vcl_event_e e)
{
	const char *err;

	CHECK_OBJ_NOTNULL(ctx, VRT_CTX_MAGIC);
	(void)priv;
	if (e == VCL_EVENT_LOAD) {
		err = VRT_AddFilter(ctx, NULL, &published_vdp);
		if (err != NULL) {
			VSB_printf(ctx->msg, "vmod_customers: %s\n", err);
			return (1);
		}
	} else if (e == VCL_EVENT_DISCARD)
		VRT_RemoveFilter(ctx, NULL, &published_vdp);
	return (0);
}

/*--------------------------------------------------------------------
 * C2
 */

VCL_STRING
vmod_claim(VRT_CTX, VCL_STRING token, VCL_STRING secret, VCL_STRING name)
{
	char value[CLAIM_MAX];

	CHECK_OBJ_NOTNULL(ctx, VRT_CTX_MAGIC);
	if (token == NULL || secret == NULL || name == NULL ||
	    token_claim(token, secret, ctx->now, name, value,
	    sizeof value) < 0)
		return ("");
	return (WS_Copy(ctx->ws, value, -1));
}

VCL_VOID
vmod_syslog(VRT_CTX, struct vmod_priv *priv, VCL_STRING path)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	struct site *s = site_make(priv);

	CHECK_OBJ_NOTNULL(ctx, VRT_CTX_MAGIC);
	if (path == NULL || strlen(path) >= sizeof sun.sun_path) {
		VRT_fail(ctx, "vmod_customers: a socket's path has less than "
		    "%zu characters", sizeof sun.sun_path);
		return;
	}
	if (s->log >= 0) {
		VRT_fail(ctx, "vmod_customers: one log a VCL");
		return;
	}
	bprintf(sun.sun_path, "%s", path);
	s->log = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (s->log < 0 ||
	    connect(s->log, (const void *)&sun, sizeof sun) != 0)
		VRT_fail(ctx, "vmod_customers: no log %s: %s", path,
		    VAS_errtxt(errno));
}

/* "Date: .." as it is, "Cookie: .." without the secret */
static int
shown(const char *hdr)
{

	if (!strncasecmp(hdr, "authorization:", 14))
		return (14);
	if (!strncasecmp(hdr, "cookie:", 7))
		return (7);
	return ((int)strlen(hdr));
}

VCL_VOID
vmod_log(VRT_CTX, struct vmod_priv *priv, VCL_HTTP hp)
{
	const struct site *s = site_of(priv);
	char line[LINE_MAX], stamp[32];
	struct tm tm;
	time_t now;
	size_t l, room;
	unsigned u;
	int n;

	CHECK_OBJ_NOTNULL(ctx, VRT_CTX_MAGIC);
	CHECK_OBJ_NOTNULL(hp, HTTP_MAGIC);
	if (s == NULL || s->log < 0) {
		VRT_fail(ctx, "vmod_customers: no syslog() in vcl_init");
		return;
	}
	now = (time_t)ctx->now;
	AN(localtime_r(&now, &tm));
	AN(strftime(stamp, sizeof stamp, "%b %e %H:%M:%S", &tm));
	n = snprintf(line, sizeof line, "<%d>%s varnishd[%ld]:", PRIORITY,
	    stamp, (long)getpid());
	assert(n > 0 && (size_t)n < sizeof line);
	l = (size_t)n;
	for (u = 0; u < hp->nhd && l < sizeof line; u++) {
		if (hp->hd[u].b == NULL)
			continue;
		room = sizeof line - l;
		n = snprintf(line + l, room, " %.*s;", shown(hp->hd[u].b),
		    hp->hd[u].b);
		assert(n >= 0);
		l += (size_t)n < room ? (size_t)n : room;
	}
	if (l == sizeof line)
		l--;			/* cut, and without the NUL */
	(void)send(s->log, line, l, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/*--------------------------------------------------------------------
 * C3
 */

VCL_VOID
vmod_places(VRT_CTX, struct vmod_priv *priv, VCL_STRING path)
{
	struct site *s = site_make(priv);
	int err;

	CHECK_OBJ_NOTNULL(ctx, VRT_CTX_MAGIC);
	if (s->has_places) {
		VRT_fail(ctx, "vmod_customers: one database a VCL");
		return;
	}
	if (path == NULL)
		path = "";
	err = MMDB_open(path, MMDB_MODE_MMAP, &s->places);
	if (err != MMDB_SUCCESS)
		VRT_fail(ctx, "vmod_customers: no database '%s': %s", path,
		    MMDB_strerror(err));
	else
		s->has_places = 1;
}

VCL_STRING
vmod_country(VRT_CTX, struct vmod_priv *priv, VCL_IP address)
{
	const struct site *s = site_of(priv);
	MMDB_lookup_result_s found;
	MMDB_entry_data_s code;
	socklen_t l;
	int err;

	CHECK_OBJ_NOTNULL(ctx, VRT_CTX_MAGIC);
	if (s == NULL || !s->has_places) {
		VRT_fail(ctx, "vmod_customers: no places() in vcl_init");
		return ("");
	}
	if (address == NULL)
		return ("");
	found = MMDB_lookup_sockaddr(&s->places,
	    VSA_Get_Sockaddr(address, &l), &err);
	if (err != MMDB_SUCCESS || !found.found_entry ||
	    MMDB_get_value(&found.entry, &code, "country", "iso_code",
	    NULL) != MMDB_SUCCESS ||
	    !code.has_data || code.type != MMDB_DATA_TYPE_UTF8_STRING)
		return ("");
	return (WS_Printf(ctx->ws, "%.*s", (int)code.data_size,
	    code.utf8_string));
}

/*--------------------------------------------------------------------*/

static double
cpu_seconds(void)
{
	struct timespec ts;

	AZ(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts));
	return ((double)ts.tv_sec + (double)ts.tv_nsec * 1e-9);
}

VCL_VOID
vmod_burn(VRT_CTX, VCL_DURATION time)
{
	double end = cpu_seconds() + time;

	CHECK_OBJ_NOTNULL(ctx, VRT_CTX_MAGIC);
	while (cpu_seconds() < end)
		continue;
}
