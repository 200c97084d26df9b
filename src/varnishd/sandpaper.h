/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The functions that the VMOD calls.  None of them is called with Sandpaper's
 * lock held.  hooks.h has those that varnishd calls.
 */

#ifndef SANDPAPER_H_INCLUDED
#define SANDPAPER_H_INCLUDED

#include <stddef.h>
#include <stdint.h>

#include "spd_fields.h"

struct vcl;
struct req;
struct busyobj;
struct spd_map;

/*--------------------------------------------------------------------
 * The VCL's map: which Hosts belong to which tenant.  The map is made in
 * vcl_init and belongs to the VCL.  Requests use it while the VCL is active.
 *
 * A pattern is a host name, or "*." and a domain: all names below that domain.
 * The functions return NULL, or one line that says what is wrong.  The caller
 * does not free that line.
 */

struct spd_map *SPD_MapOf(const struct vcl *);	/* made by the first call */
void SPD_MapDrop(const struct vcl *);		/* the VCL is discarded */
/* A queue_limit of 0 means: the parameter sandpaper_queue_limit */
const char *SPD_MapTenant(struct spd_map *, const char *name,
    double weight, unsigned queue_limit);
const char *SPD_MapGroup(struct spd_map *, const char *name, double weight);
const char *SPD_MapMember(struct spd_map *, const char *name,
    const char *group);
/* Parts of the dominant resource.  0: no reservation.  1: no limit */
const char *SPD_MapLimits(struct spd_map *, const char *name,
    double reservation, double limit);
/* Bytes of each stevedore.  0: none */
const char *SPD_MapMemory(struct spd_map *, const char *name,
    int64_t reservation, int64_t limit);
/* 1: all objects of this tenant enter the cache */
const char *SPD_MapAdmission(struct spd_map *, const char *name, int all);
/* The longest wait, s */
const char *SPD_MapTarget(struct spd_map *, const char *name, double target);
const char *SPD_MapQueueTimeout(struct spd_map *, const char *name,
    double timeout);
/* What refused requests get.  status: 429, 503, or 0: sandpaper_status */
const char *SPD_MapFetchTarget(struct spd_map *, const char *name,
    double target);
const char *SPD_MapRefusal(struct spd_map *, const char *name, int64_t status,
    const char *body, const char *type, int vcl);
const char *SPD_MapHost(struct spd_map *, const char *name,
    const char *pattern);
/* Hosts that the map does not name.  0: all belong to the tenant "(unknown)".
 * 1: each is a new Host or a tenant, as without a map */
void SPD_MapUnknown(struct spd_map *, int own);
/* Requests that do not wait: tenants/exempt.h.  They need no tenants. */
const char *SPD_MapExempt(struct spd_map *, const char *url, const char *host,
    int64_t per_second);
/* Tenants in a file: tenants/file.h.  The answer has a line for each error, and
 * begins with a line feed. */
const char *SPD_MapFile(struct spd_map *, const char *path);

/* The object of this fetch enters the cache, of any size. */
void SPD_VclAdmits(struct busyobj *);

/*--------------------------------------------------------------------
 * Numbers of a tenant or a request
 */

/* Name of the request's tenant, in buf, or NULL: it passed no gate */
const char *SPD_ReqTenant(const struct req *, char *buf, size_t len);
double SPD_ReqWait(const struct req *);		/* s; 0: it passed no gate */
int SPD_Draining(void);		/* 1: varnishd is draining */
int SPD_Refused(const struct req *);	/* 1: vcl_synth answers a refusal */
double SPD_Congestion(int net);		/* 0: of cpu; 1: of net */
int SPD_Save(int net);			/* as SPD_Congestion() */
int SPD_Ask(const char *tenant, struct spd_fields *);	/* -1: unknown */

#endif
