/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Find the tenant of a request.
 *
 * The Host header gives a name, in lower case, without port and final dot.
 * VCL's map (spd_hostmap.c) may give another name for it.  The table of names
 * (tenants/table.h) gives the tenant.  All this needs no spd_lock().  Under the
 * lock the answer is checked, and an unknown name gets a record.
 * The records are under spd_lock().
 */

#include "config.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "spd.h"
#include "spd_hostmap.h"

#include "vrnd.h"

/*--------------------------------------------------------------------
 * A tenant's record: struct spd_tenant, then the releaser's part
 */

/*
 * Return 1 if the record may go to another tenant.  The record stays while a
 * request waits or runs, or a fetch goes on.  It stays while a connection
 * waits to be parsed, or a slow reader holds a worker.  It also stays with
 * debt, with members, or by spd_new_stays().  A connection that only
 * remembers the tenant compares the generation.  Caller holds spd_lock().
 */
static int v_matchproto_(ten_idle_f)
spd_tenant_idle(void *priv, struct ten_record *r)
{
	struct spd_tenant *t = TEN_Data(r);

	AZ(priv);
	SPD_LOCKED();
	return (REL_TenantIdle(spd_rel, t->rel) && VTAILQ_EMPTY(&t->ready) &&
	    t->writers == 0 && t->fetches == 0 && !t->by_hand &&
	    !spd_new_stays(t));
}

/* Begin a tenant in a record of zeros.  Caller holds spd_lock(). */
static void v_matchproto_(ten_life_f)
spd_tenant_born(void *priv, struct ten_record *r)
{
	struct spd_tenant *t = TEN_Data(r);

	AZ(priv);
	INIT_OBJ(t, SPD_TENANT_MAGIC);
	VTAILQ_INIT(&t->ready);
	t->rel = REL_TenantInit(spd_rel, (char *)t + spd_own_size(),
	    REL_WEIGHT_ONE);
	t->owner = strcmp(r->name, TEN_OTHER) ? OWN_Begin(spd_owners()) :
	    OWN_OTHER;
	spd_estimate(t);
	if (!spd_settings_each(t))
		spd_new_begin(t);
	spd_vsc->tenants_created++;
}

/* End a tenant: its record may go to another one.  Caller holds spd_lock(). */
static void v_matchproto_(ten_life_f)
spd_tenant_died(void *priv, struct ten_record *r)
{
	struct spd_tenant *t = TEN_Data(r);

	AZ(priv);
	spd_new_end(t);
	spd_dry_forget(t);
	spd_recent_end(t);
	REL_TenantFini(spd_rel, t->rel);
	PAGE_Unref(t->refusal);
	OWN_End(spd_owners(), t->owner);
	FINI_OBJ(t);
	spd_vsc->tenants_evicted++;
}

/*--------------------------------------------------------------------
 * The name of a request's tenant
 */

/* Write the Host of a request, or (none), and return its length */
static size_t
spd_host(const struct req *req, char *name)
{
	const char *h, *e, *p;
	size_t l = 0;

	/* Names in parentheses are Sandpaper's own */
	if (!http_GetHdr(req->http, H_Host, &h) || *h == '\0' || *h == '(') {
		memcpy(name, TEN_NONE, sizeof TEN_NONE);
		return (sizeof TEN_NONE - 1);
	}
	/* Remove the port: a colon and digits at the end.  Some programs read
	 * a:80@b as a, others as b: here it is a Host of its own */
	e = p = strchr(h, '\0');
	while (p > h && isdigit((unsigned char)p[-1]))
		p--;
	if (p > h && p[-1] == ':')
		e = p - 1;
	for (; h < e && l < TEN_NAME_MAX; h++)
		name[l++] = (char)tolower((unsigned char)*h);
	if (l > 1 && name[l - 1] == '.')
		l--;
	if (l == 0) {
		memcpy(name, TEN_NONE, sizeof TEN_NONE);
		l = sizeof TEN_NONE - 1;
	}
	name[l] = '\0';
	return (l);
}

/*
 * Write the name of a request's tenant, at most TEN_NAME_MAX bytes and a NUL.
 * Return its length.  exempt: NULL, or what a rule says of the request, see
 * EXEMPT_Use().  Takes the map lock.
 */
size_t
spd_tenant_name(const struct req *req, char *name, enum exempt_answer *exempt)
{
	char host[TEN_NAME_MAX + 1];
	size_t l;

	l = spd_host(req, host);
	return (spd_map_name(host, l, req->http->hd[HTTP_HDR_URL].b, name,
	    exempt));
}

/*
 * Find a tenant without spd_lock().  NULL: it has no record.  The answer may
 * be old: give it to spd_tenant_check().
 */
struct spd_tenant *
spd_tenant_find(const char *name, size_t l)
{
	struct ten_record *r;

	r = TEN_Find(spd_tenants, name, l);
	return (r == NULL ? NULL : TEN_Data(r));
}

/*
 * Return the tenant of a name.  t is the answer of spd_tenant_find().  If its
 * record is now another tenant's, find or make the right one.  (other): there
 * is no room.  Caller holds spd_lock().
 */
struct spd_tenant *
spd_tenant_check(struct spd_tenant *t, const char *name, size_t l)
{
	struct ten_record *r;

	SPD_LOCKED();
	if (t != NULL && TEN_Is(TEN_OfData(t), name, l))
		return (t);
	r = TEN_Add(spd_tenants, name, l);
	spd_vsc->tenants = TEN_Count(spd_tenants);
	spd_vsc->tenants_overflow = TEN_Overflows(spd_tenants);
	t = TEN_Data(r);
	CHECK_OBJ_NOTNULL(t, SPD_TENANT_MAGIC);
	return (t);
}

void
spd_tenants_init(void)
{
	static const struct ten_ops ops = {
		.idle = spd_tenant_idle,
		.born = spd_tenant_born,
		.died = spd_tenant_died,
	};
	struct ten_ops o = ops;
	uint8_t seed[16];

	AZ(VRND_RandomCrypto(seed, sizeof seed));
	o.host_size = spd_own_size() + REL_TenantSize();
	spd_tenants = TEN_New(cache_param->sandpaper_tenants_max, &o, seed);
	AN(spd_tenants);
}

/*--------------------------------------------------------------------
 * Timeouts and targets
 */

/* Return how long a request of the tenant may have waited when it is released,
 * ns: the shorter one of its own time and the parameter.  0: for ever.  Caller
 * holds spd_lock(). */
int64_t
spd_queue_timeout(const struct spd_tenant *t)
{
	int64_t all = (int64_t)(cache_param->sandpaper_queue_timeout * 1e9);

	SPD_LOCKED();
	if (t->queue_timeout == 0 || all == 0)
		return (vmax_t(int64_t, t->queue_timeout, all));
	return (vmin_t(int64_t, t->queue_timeout, all));
}

static int64_t least_of_map;		/* ns, the least one of the map's
					 * tenants; 0: none; locked */

/* Return the tenant's target, ns.  0: it has none.  Caller holds spd_lock(). */
int64_t
spd_target(const struct spd_tenant *t)
{

	SPD_LOCKED();
	return (t->target > 0 ? t->target : spd_set.target);
}

/* Set the least target of the map's tenants, ns.  0: none has one.  Caller
 * holds spd_lock(). */
void
spd_set_least_target(int64_t target)
{

	SPD_LOCKED();
	least_of_map = target;
}

/* A tenant of the map has this target now, ns.  Caller holds spd_lock(). */
void
spd_lower_least_target(int64_t target)
{

	SPD_LOCKED();
	if (least_of_map == 0 || target < least_of_map)
		least_of_map = target;
}

/* Return the least target of all tenants, ns.  0: none has one.  Caller holds
 * spd_lock(). */
int64_t
spd_least_target(void)
{

	SPD_LOCKED();
	if (least_of_map == 0 || spd_set.target == 0)
		return (vmax_t(int64_t, least_of_map, spd_set.target));
	return (vmin_t(int64_t, least_of_map, spd_set.target));
}
