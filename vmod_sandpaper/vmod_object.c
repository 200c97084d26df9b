/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * A tenant as an object of VCL: its methods are the functions of
 * vmod_sandpaper.c, with the object's name.
 */

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "cache/cache.h"

#include "vcl.h"

#include "vcc_sandpaper_if.h"

#include "tenants/table.h"
#include "varnishd/compat.h"
#include "varnishd/sandpaper.h"

struct vmod_sandpaper_tenant_object {
	unsigned		magic;
#define TENANT_OBJECT_MAGIC	0x5a9d7e4a
	char			*name;
};

VCL_VOID
vmod_tenant_object__init(VRT_CTX, struct vmod_sandpaper_tenant_object **op,
    const char *vcl_name, VCL_STRING name, VCL_REAL weight, VCL_INT queue_limit,
    VCL_STRING group)
{
	struct vmod_sandpaper_tenant_object *o;

	CHECK_OBJ_NOTNULL(ctx, VRT_CTX_MAGIC);
	ALLOC_OBJ(o, TENANT_OBJECT_MAGIC);
	AN(o);
	o->name = strdup(name == NULL || *name == '\0' ? vcl_name : name);
	AN(o->name);
	*op = o;
	vmod_tenant(ctx, o->name, weight, queue_limit);
	if (group != NULL && *group != '\0')
		vmod_member(ctx, o->name, group);
}

VCL_VOID
vmod_tenant_object__fini(struct vmod_sandpaper_tenant_object **op)
{
	struct vmod_sandpaper_tenant_object *o;

	TAKE_OBJ_NOTNULL(o, op, TENANT_OBJECT_MAGIC);
	free(o->name);
	FREE_OBJ(o);
}

#define OBJECT	struct vmod_sandpaper_tenant_object *o
#define METHOD(method, function, arguments, ...)			\
VCL_VOID								\
vmod_tenant_object_##method arguments					\
{									\
									\
	CHECK_OBJ_NOTNULL(o, TENANT_OBJECT_MAGIC);			\
	vmod_##function(ctx, o->name, __VA_ARGS__);			\
}

METHOD(add_host, host, (VRT_CTX, OBJECT, VCL_STRING pattern), pattern)
METHOD(limits, limits, (VRT_CTX, OBJECT, VCL_REAL reservation, VCL_REAL limit),
    reservation, limit)
METHOD(memory, memory, (VRT_CTX, OBJECT, VCL_BYTES reservation,
    VCL_BYTES limit), reservation, limit)
METHOD(admission, admission, (VRT_CTX, OBJECT, VCL_ENUM objects), objects)
METHOD(target, target, (VRT_CTX, OBJECT, VCL_DURATION wait), wait)
METHOD(queue_timeout, queue_timeout, (VRT_CTX, OBJECT, VCL_DURATION wait), wait)
METHOD(fetch_target, fetch_target, (VRT_CTX, OBJECT, VCL_DURATION target),
    target)
METHOD(refusal, refusal, (VRT_CTX, OBJECT, VCL_INT status, VCL_STRING body,
    VCL_STRING type, VCL_BOOL vcl), status, body, type, vcl)

VCL_BOOL
vmod_tenant_object_is_me(VRT_CTX, OBJECT)
{
	char buf[TEN_NAME_MAX + 1];
	const char *name;

	CHECK_OBJ_NOTNULL(ctx, VRT_CTX_MAGIC);
	CHECK_OBJ_NOTNULL(o, TENANT_OBJECT_MAGIC);
	if (ctx->req == NULL)
		return (0);
	name = SPD_ReqTenant(SPD_TOPREQ(ctx->req), buf, sizeof buf);
	return (name != NULL && !strcmp(name, o->name));
}
