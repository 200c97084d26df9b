/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Whose request is this?  The Host header, as VCL will see it, in lower
 * case and without port and trailing dot, gives a name; the active VCL's
 * map (sp_map.c) may say that it is another's; the table of names
 * (releaser/tenants.h) gives the tenant.  All of that happens before the
 * releaser's lock is taken; only a name that was never seen takes it.
 */

#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sp.h"

#include "vrnd.h"

/*--------------------------------------------------------------------
 * A tenant's record: ours, then the releaser's
 */

static size_t
spd_own_size(void)
{

	return ((sizeof(struct spd_tenant) + 63) & ~(size_t)63);
}

struct spd_tenant *
spd_tenant_rel(struct rel_tenant *rel)
{
	struct spd_tenant *t;

	t = (void *)((char *)rel - spd_own_size());
	CHECK_OBJ_NOTNULL(t, SPD_TENANT_MAGIC);
	return (t);
}

const char *
spd_name(const struct spd_tenant *t)
{

	return (TEN_OfHost(TRUST_ME(t))->name);
}

/*
 * Nothing waits, runs, is fetched or owed, and no connection waits to be
 * parsed.  A Host that is proven stays so, however many others are invented,
 * and a Host with evidence keeps it.
 * (Connections that only remember it look at its generation.)
 */
static int v_matchproto_(ten_idle_f)
spd_tenant_idle(void *priv, struct ten_record *r)
{
	struct spd_tenant *t = TEN_Host(r);

	AZ(priv);
	SPD_LOCKED();
	return (REL_TenantIdle(spd.rel, t->rel) && VTAILQ_EMPTY(&t->ready) &&
	    t->writers == 0 && t->fetches == 0 && !spd_new_stays(t));
}

static void v_matchproto_(ten_life_f)
spd_tenant_born(void *priv, struct ten_record *r)
{
	struct spd_tenant *t = TEN_Host(r);

	AZ(priv);
	INIT_OBJ(t, SPD_TENANT_MAGIC);
	VTAILQ_INIT(&t->ready);
	t->rel = REL_TenantInit(spd.rel, (char *)t + spd_own_size(),
	    REL_WEIGHT_ONE);
	spd_estimate(t);
	spd_new_begin(t);
	spd.vsc->tenants_created++;
}

static void v_matchproto_(ten_life_f)
spd_tenant_died(void *priv, struct ten_record *r)
{
	struct spd_tenant *t = TEN_Host(r);

	AZ(priv);
	spd_new_end(t);
	REL_TenantFini(spd.rel, t->rel);
	FINI_OBJ(t);
	spd.vsc->tenants_evicted++;
}

/*--------------------------------------------------------------------
 * What its next request will cost: the releaser wants to know.  The CPU is
 * divided by the cores, bytes by the rate that the link has now.  Which of the
 * two counts is account.c's.
 */

void
spd_estimate(struct spd_tenant *t)
{
	int64_t e[REL__RESOURCES], cpu;

	SPD_LOCKED();
	cpu = ACC_Value(&spd.costs, &t->key, REL_CPU);
	atomic_store_explicit(&t->cpu_next, cpu, memory_order_relaxed);
	e[REL_CPU] = cpu / spd.cores;
	e[REL_NET] = spd_net(ACC_Value(&spd.costs, &t->key, REL_NET));
	ACC_Next(&t->account, e);
	if (t->fixed[REL_CPU] + t->fixed[REL_NET] > 0)
		memcpy(e, t->fixed, sizeof e);
	REL_SetEstimate(spd.rel, t->rel, e);
}

/*--------------------------------------------------------------------
 * The name of a request's tenant
 */

static size_t
spd_host(const struct req *req, char *name)
{
	const char *h, *e, *p;
	size_t l = 0;

	/* Names in parentheses are ours */
	if (!http_GetHdr(req->http, H_Host, &h) || *h == '\0' || *h == '(') {
		memcpy(name, SPD_NOHOST, sizeof SPD_NOHOST);
		return (sizeof SPD_NOHOST - 1);
	}
	/* Without a port, which is digits.  Some read a:80@b as a, some as b:
	 * it is neither one's */
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
		memcpy(name, SPD_NOHOST, sizeof SPD_NOHOST);
		l = sizeof SPD_NOHOST - 1;
	}
	name[l] = '\0';
	return (l);
}

size_t
spd_tenant_name(const struct req *req, char *name)
{
	char host[TEN_NAME_MAX + 1];
	size_t l;

	l = spd_host(req, host);
	return (spd_map_name(host, l, name));
}

/* Without the lock; NULL: never seen.  Look again under the lock. */
struct spd_tenant *
spd_tenant_find(const char *name, size_t l)
{
	struct ten_record *r;

	r = TEN_Find(spd.tenants, name, l);
	return (r == NULL ? NULL : TEN_Host(r));
}

/* With it: is this still that tenant?  If not, find or make it. */
struct spd_tenant *
spd_tenant_check(struct spd_tenant *t, const char *name, size_t l)
{
	struct ten_record *r;

	SPD_LOCKED();
	if (t != NULL && TEN_Is(TEN_OfHost(t), name, l))
		return (t);
	r = TEN_Add(spd.tenants, name, l);
	spd.vsc->tenants = TEN_Count(spd.tenants);
	spd.vsc->tenants_overflow = TEN_Overflows(spd.tenants);
	t = TEN_Host(r);
	CHECK_OBJ_NOTNULL(t, SPD_TENANT_MAGIC);
	return (t);
}

/*--------------------------------------------------------------------
 * Limits
 */

/* Has a tenant as many of these as it may?  If so, *e is for the log. */
int
spd_exceeds(struct spd_excess *e, const struct spd_tenant *t,
    const char *what, unsigned value, unsigned limit)
{

	SPD_LOCKED();
	if (value < limit)
		return (0);
	e->what = what;
	e->value = value;
	e->limit = limit;
	bprintf(e->tenant, "%s", spd_name(t));
	return (1);
}

/*
 * The same, where `all` is what (new) has: all new Hosts have the limit of one
 * tenant, and one of them has half of it, so that there is some for the others.
 */
int
spd_exceeds_new(struct spd_excess *e, struct spd_tenant *t, const char *what,
    unsigned own, unsigned all, unsigned limit)
{
	const struct spd_tenant *liable = spd_new_liable(t);

	if (liable == t)
		return (spd_exceeds(e, t, what, own, limit));
	return (spd_exceeds(e, t, what, own, limit / 2 + limit % 2) ||
	    spd_exceeds(e, liable, what, all, limit));
}

void
spd_log_excess(struct vsl_log *vsl, const struct spd_excess *e)
{

	VSLb(vsl, SLT_Error, "Sandpaper: limit reached: tenant %s has %u of at "
	    "most %u %s", e->tenant, e->value, e->limit, e->what);
}

#define SPD_WAITING	"waiting requests (see sandpaper_queue_limit)"

/* Requests */
unsigned
spd_queue_limit(const struct spd_tenant *t)
{

	return (t->queue_limit ? t->queue_limit :
	    cache_param->sandpaper_queue_limit);
}

/*
 * Locked.  All new Hosts have one queue limit.  Past it, a new Host may have its
 * part of that many waiting; past twice the limit, none.
 */
static int
spd_new_full(const struct spd_tenant *t, const struct spd_tenant *group,
    struct spd_excess *e)
{
	unsigned waiting = REL_TenantWaiting(group->rel);
	unsigned limit = spd_queue_limit(group);

	return (spd_exceeds(e, group, SPD_WAITING, waiting, 2 * limit) ||
	    (REL_TenantWaiting(t->rel) >= REL_GroupPart(t->rel, limit) &&
	    spd_exceeds(e, group, SPD_WAITING, waiting, limit)));
}

/*
 * By its own limit, or since too many wait in all and it has a part of them:
 * of a common buffer, each who waits can have as much as every other, and a
 * group as much as a tenant without.  And of those that were released, so many
 * may wait on: for origins, and on waiting lists.
 */
int
spd_queue_full(struct spd_tenant *t, struct spd_excess *e)
{
	const struct spd_tenant *liable = spd_new_liable(t);
	unsigned waiting = REL_TenantWaiting(t->rel);
	unsigned all = cache_param->sandpaper_queue_total;

	SPD_LOCKED();
	if (liable != t && spd_new_full(t, liable, e))
		return (1);
	if (spd_exceeds(e, t, SPD_WAITING, waiting, spd_queue_limit(t)) ||
	    spd_exceeds_new(e, t, "released requests "
	    "(see sandpaper_queue_total)",
	    REL_TenantRunning(t->rel), REL_TenantRunning(liable->rel), all))
		return (1);
	return ((waiting > 0 || liable != t) && REL_Waiting(spd.rel) >= all &&
	    spd_exceeds(e, t, "requests in the full queue "
	    "(see sandpaper_queue_total)",
	    REL_GroupWaiting(t->rel), all / REL_Backlogged(spd.rel)));
}

int
SPD_Ask(const char *name, struct spd_answer *a)
{
	struct rel_tenant_stat st;
	struct spd_tenant *t;

	memset(a, 0, sizeof *a);
	spd_lock();
	t = spd_tenant_find(name, strlen(name));
	if (t == NULL) {
		spd_unlock();
		return (-1);
	}
	REL_TenantStat(spd.rel, t->rel, &st);
	a->cpu = (double)st.estimate[REL_CPU] * 1e-9;
	a->net = (double)st.estimate[REL_NET] * 1e-9;
	a->waiting = st.waiting;
	a->running = st.running;
	a->weight = (double)st.weight / REL_WEIGHT_ONE;
	a->share = REL_Share(spd.rel, t->rel);
	a->used_cpu = (double)t->cpu_ns * 1e-9;
	a->bytes = t->bytes;
	a->waited = (double)t->wait_ns * 1e-9;
	a->requests = t->requests;
	spd_unlock();
	return (0);
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
	spd.tenants = TEN_New(cache_param->sandpaper_tenants_max, &o, seed);
	AN(spd.tenants);
}
