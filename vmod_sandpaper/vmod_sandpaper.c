/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * VCL's way to Sandpaper: it fills the VCL's host map, and asks.
 *
 * All state is varnishd's, since a VMOD can be unloaded while requests that
 * wait refer to it.  Answers are snapshots.  Units, ranges and errors of the
 * functions are in vmod_sandpaper.vcc.
 */

#include "config.h"

#include <limits.h>
#include <string.h>

#include "cache/cache.h"

#include "vcl.h"

#include "vcc_sandpaper_if.h"

#include "tenants/table.h"
#include "varnishd/compat.h"
#include "varnishd/sandpaper.h"

int v_matchproto_(vmod_event_f)
vmod_event(VRT_CTX, struct vmod_priv *priv, enum vcl_event_e e)
{

	CHECK_OBJ_NOTNULL(ctx, VRT_CTX_MAGIC);
	(void)priv;
	if (e == VCL_EVENT_DISCARD)
		SPD_MapDrop(ctx->vcl);
	return (0);
}

/*
 * The .vcc says by $Restrict where a function may be called; the compiler
 * of Varnish 6.0 does not know that word.
 */
static int
misplaced(VRT_CTX, unsigned methods, const char *what)
{

	CHECK_OBJ_NOTNULL(ctx, VRT_CTX_MAGIC);
	if (ctx->method & methods)
		return (0);
	if (ctx->vsl != NULL || ctx->msg != NULL)
		VRT_fail(ctx, "vmod_sandpaper: %s", what);
	return (1);
}

#define NOT_INIT(ctx)						\
	misplaced(ctx, VCL_MET_INIT,				\
	    "Call this function in vcl_init only")
#define NOT_CLIENT(ctx)						\
	misplaced(ctx, VCL_MET_TASK_C,				\
	    "Call this function in client subroutines only")

/*--------------------------------------------------------------------
 * The map, in vcl_init
 */

static const char *
shown(VCL_STRING s)
{

	return (s == NULL ? "" : s);
}

VCL_VOID
vmod_tenant(VRT_CTX, VCL_STRING name, VCL_REAL weight, VCL_INT queue_limit)
{
	const char *err;
	unsigned limit;

	if (NOT_INIT(ctx) || VRT_handled(ctx))
		return;
	/* The map counts in unsigned, VCL does not: refuse what it can't hold */
	limit = UINT_MAX;
	if (queue_limit >= 0 && queue_limit < UINT_MAX)
		limit = (unsigned)queue_limit;
	err = SPD_MapTenant(SPD_MapOf(ctx->vcl), name, weight, limit);
	if (err != NULL)
		VRT_fail(ctx, "sandpaper.tenant(\"%s\", %.6g, %jd): %s",
		    shown(name), weight, (intmax_t)queue_limit, err);
}

VCL_VOID
vmod_group(VRT_CTX, VCL_STRING name, VCL_REAL weight)
{
	const char *err;

	if (NOT_INIT(ctx) || VRT_handled(ctx))
		return;
	err = SPD_MapGroup(SPD_MapOf(ctx->vcl), name, weight);
	if (err != NULL)
		VRT_fail(ctx, "sandpaper.group(\"%s\", %.6g): %s",
		    shown(name), weight, err);
}

VCL_VOID
vmod_member(VRT_CTX, VCL_STRING tenant, VCL_STRING group)
{
	const char *err;

	if (NOT_INIT(ctx) || VRT_handled(ctx))
		return;
	err = SPD_MapMember(SPD_MapOf(ctx->vcl), tenant, group);
	if (err != NULL)
		VRT_fail(ctx, "sandpaper.member(\"%s\", \"%s\"): %s",
		    shown(tenant), shown(group), err);
}

VCL_VOID
vmod_limits(VRT_CTX, VCL_STRING tenant, VCL_REAL reservation, VCL_REAL limit)
{
	const char *err;

	if (NOT_INIT(ctx) || VRT_handled(ctx))
		return;
	err = SPD_MapLimits(SPD_MapOf(ctx->vcl), tenant, reservation, limit);
	if (err != NULL)
		VRT_fail(ctx, "sandpaper.limits(\"%s\", %.6g, %.6g): %s",
		    shown(tenant), reservation, limit, err);
}

VCL_VOID
vmod_memory(VRT_CTX, VCL_STRING tenant, VCL_BYTES reservation, VCL_BYTES limit)
{
	const char *err;

	if (NOT_INIT(ctx) || VRT_handled(ctx))
		return;
	err = SPD_MapMemory(SPD_MapOf(ctx->vcl), tenant, reservation, limit);
	if (err != NULL)
		VRT_fail(ctx, "sandpaper.memory(\"%s\", %jdB, %jdB): %s",
		    shown(tenant), (intmax_t)reservation, (intmax_t)limit, err);
}

VCL_VOID
vmod_admission(VRT_CTX, VCL_STRING tenant, VCL_ENUM objects)
{
	const char *err;

	if (NOT_INIT(ctx) || VRT_handled(ctx))
		return;
	err = SPD_MapAdmission(SPD_MapOf(ctx->vcl), tenant,
	    objects == VENUM(ALL));
	if (err != NULL)
		VRT_fail(ctx, "sandpaper.admission(\"%s\", %s): %s",
		    shown(tenant), objects, err);
}

VCL_VOID
vmod_target(VRT_CTX, VCL_STRING tenant, VCL_DURATION target)
{
	const char *err;

	if (NOT_INIT(ctx) || VRT_handled(ctx))
		return;
	err = SPD_MapTarget(SPD_MapOf(ctx->vcl), tenant, target);
	if (err != NULL)
		VRT_fail(ctx, "sandpaper.target(\"%s\", %.6gs): %s",
		    shown(tenant), target, err);
}

VCL_VOID
vmod_queue_timeout(VRT_CTX, VCL_STRING tenant, VCL_DURATION wait)
{
	const char *err;

	if (NOT_INIT(ctx) || VRT_handled(ctx))
		return;
	err = SPD_MapQueueTimeout(SPD_MapOf(ctx->vcl), tenant, wait);
	if (err != NULL)
		VRT_fail(ctx, "sandpaper.queue_timeout(\"%s\", %.6gs): %s",
		    shown(tenant), wait, err);
}

VCL_VOID
vmod_fetch_target(VRT_CTX, VCL_STRING tenant, VCL_DURATION target)
{
	const char *err;

	if (NOT_INIT(ctx) || VRT_handled(ctx))
		return;
	err = SPD_MapFetchTarget(SPD_MapOf(ctx->vcl), tenant, target);
	if (err != NULL)
		VRT_fail(ctx, "sandpaper.fetch_target(\"%s\", %.6gs): %s",
		    shown(tenant), target, err);
}

VCL_VOID
vmod_refusal(VRT_CTX, VCL_STRING tenant, VCL_INT status, VCL_STRING body,
    VCL_STRING type, VCL_BOOL vcl)
{
	const char *err;

	if (NOT_INIT(ctx) || VRT_handled(ctx))
		return;
	err = SPD_MapRefusal(SPD_MapOf(ctx->vcl), tenant, status, body, type,
	    (int)vcl);
	if (err != NULL)
		VRT_fail(ctx, "sandpaper.refusal(\"%s\", %jd): %s",
		    shown(tenant), (intmax_t)status, err);
}

VCL_VOID
vmod_host(VRT_CTX, VCL_STRING tenant, VCL_STRING pattern)
{
	const char *err;

	if (NOT_INIT(ctx) || VRT_handled(ctx))
		return;
	err = SPD_MapHost(SPD_MapOf(ctx->vcl), tenant, pattern);
	if (err != NULL)
		VRT_fail(ctx, "sandpaper.host(\"%s\", \"%s\"): %s",
		    shown(tenant), shown(pattern), err);
}

VCL_VOID
vmod_tenants_file(VRT_CTX, VCL_STRING path)
{
	const char *err;

	if (NOT_INIT(ctx) || VRT_handled(ctx))
		return;
	err = path == NULL || *path != '/' ? "the path is not absolute: use "
	    "one that begins with /" : SPD_MapFile(SPD_MapOf(ctx->vcl), path);
	if (err != NULL)
		VRT_fail(ctx, "sandpaper.tenants_file(\"%s\"): %s",
		    shown(path), err);
}

VCL_VOID
vmod_unknown(VRT_CTX, VCL_ENUM tenant)
{

	if (!NOT_INIT(ctx))
		SPD_MapUnknown(SPD_MapOf(ctx->vcl), tenant == VENUM(OWN));
}

VCL_VOID
vmod_exempt(VRT_CTX, VCL_STRING url, VCL_STRING host, VCL_INT per_second)
{
	const char *err;

	if (NOT_INIT(ctx) || VRT_handled(ctx))
		return;
	err = SPD_MapExempt(SPD_MapOf(ctx->vcl), url, host, per_second);
	if (err != NULL)
		VRT_fail(ctx, "sandpaper.exempt(\"%s\", \"%s\", %jd): %s",
		    shown(url), shown(host), (intmax_t)per_second, err);
}

/*--------------------------------------------------------------------
 * A fetch
 */

VCL_VOID
vmod_admit(VRT_CTX)
{

	if (!misplaced(ctx, VCL_MET_BACKEND_RESPONSE,
	    "Call this function in vcl_backend_response only"))
		SPD_VclAdmits(ctx->bo);
}

/*--------------------------------------------------------------------
 * Questions.  What VCL asks about an ESI part is answered for its parent,
 * the only one of them that passed the gate.
 */

static const struct req *
top(VRT_CTX)
{

	CHECK_OBJ_NOTNULL(ctx, VRT_CTX_MAGIC);
	CHECK_OBJ_NOTNULL(ctx->req, REQ_MAGIC);
	CHECK_OBJ_NOTNULL(SPD_TOPREQ(ctx->req), REQ_MAGIC);
	return (SPD_TOPREQ(ctx->req));
}

/* All zero, and a note in the log, when there is no such tenant: -1 */
static int
ask(VRT_CTX, VCL_STRING tenant, struct spd_fields *f)
{
	char buf[TEN_NAME_MAX + 1];

	memset(f, 0, sizeof *f);
	if (NOT_CLIENT(ctx))
		return (-1);
	if (tenant == NULL || *tenant == '\0')
		tenant = SPD_ReqTenant(top(ctx), buf, sizeof buf);
	if (tenant == NULL) {
		VSLb(ctx->vsl, SLT_Notice,
		    "vmod_sandpaper: This request has no tenant");
		return (-1);
	}
	if (SPD_Ask(tenant, f) == 0)
		return (0);
	VSLb(ctx->vsl, SLT_Notice, "vmod_sandpaper: Tenant \"%s\" is not known",
	    tenant);
	return (-1);
}

VCL_STRING
vmod_me(VRT_CTX)
{
	char buf[TEN_NAME_MAX + 1];
	const char *name;

	if (NOT_CLIENT(ctx))
		return ("");
	name = SPD_ReqTenant(top(ctx), buf, sizeof buf);
	if (name == NULL)
		return ("");
	name = WS_Copy(ctx->ws, name, -1);
	if (name == NULL)
		VRT_fail(ctx, "sandpaper.me(): the client workspace is too "
		    "small: raise workspace_client");
	return (name);
}

VCL_BOOL
vmod_refused(VRT_CTX)
{

	return (!NOT_CLIENT(ctx) && SPD_Refused(top(ctx)));
}

VCL_BOOL
vmod_draining(VRT_CTX)
{

	return (!NOT_CLIENT(ctx) && SPD_Draining());
}

VCL_DURATION
vmod_wait(VRT_CTX)
{

	return (NOT_CLIENT(ctx) ? 0 : SPD_ReqWait(top(ctx)));
}

VCL_DURATION
vmod_estimate(VRT_CTX, VCL_STRING tenant, VCL_ENUM resource)
{
	struct spd_fields f;
	int64_t ns;

	(void)ask(ctx, tenant, &f);
	if (resource == VENUM(cpu))
		ns = f.estimate_cpu_ns;
	else if (resource == VENUM(net))
		ns = f.estimate_net_ns;
	else {
		assert(resource == VENUM(dominant));
		ns = vmax(f.estimate_cpu_ns, f.estimate_net_ns);
	}
	return ((double)ns * 1e-9);
}

VCL_STRING
vmod_dominant(VRT_CTX, VCL_STRING tenant)
{
	struct spd_fields f;

	if (ask(ctx, tenant, &f))
		return ("");
	return (f.estimate_net_ns > f.estimate_cpu_ns ? "net" : "cpu");
}

#define QUESTION(type, name, field, unit)			\
VCL_##type							\
vmod_##name(VRT_CTX, VCL_STRING tenant)				\
{								\
	struct spd_fields f;					\
								\
	(void)ask(ctx, tenant, &f);				\
	return ((VCL_##type)f.field * unit);			\
}

QUESTION(INT, waiting, waiting, 1)
QUESTION(INT, running, running, 1)
QUESTION(REAL, share, share, 1)
QUESTION(REAL, weight, weight, 1)
QUESTION(REAL, pressure, pressure, 1)
QUESTION(DURATION, used_cpu, cpu_ns, 1e-9)
QUESTION(BYTES, used_bytes, bytes, 1)
QUESTION(BYTES, cached, cached_bytes, 1)

VCL_REAL
vmod_price(VRT_CTX, VCL_ENUM resource, VCL_STRING tenant)
{
	struct spd_fields f;

	(void)ask(ctx, tenant, &f);
	return (resource == VENUM(cpu) ? f.price_cpu : f.price_net);
}

VCL_REAL
vmod_congestion(VRT_CTX, VCL_ENUM resource)
{

	return (NOT_CLIENT(ctx) ? 0 :
	    SPD_Congestion(resource == VENUM(net)));
}

VCL_BOOL
vmod_save(VRT_CTX, VCL_ENUM resource)
{

	return (NOT_CLIENT(ctx) ? 0 : SPD_Save(resource == VENUM(net)));
}

/* Without a tenant nothing is to be degraded: 1. */
VCL_REAL
vmod_quality(VRT_CTX, VCL_STRING tenant)
{
	struct spd_fields f;

	return (ask(ctx, tenant, &f) ? 1 : f.quality);
}
