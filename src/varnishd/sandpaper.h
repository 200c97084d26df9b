/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The functions that varnishd and the VMOD call.  None of them is called with
 * Sandpaper's lock held.  The prototypes of varnishd's hooks are in
 * cache_varnishd.h (patches/).  The hooks are:
 *
 * SPD_Init	start Sandpaper, once
 * SPD_Accept	take an accepted connection.  0: Sandpaper is off
 * SPD_Ready	take a connection with bytes from Varnish's waiter.  0: stock
 *		must run the task
 * SPD_Resumed	1: this session's socket is in blocking mode already
 * SPD_Rx	read an HTTP/1 request.  0: a request is there, or stock's code
 *		reads on.  1: the connection waits without this thread: return
 * SPD_First	set when the first byte of that request came
 * SPD_Gate	queue or refuse a complete HTTP/1 request, before any VCL: see
 *		enum spd_gate
 * SPD_Stream	the same for an HTTP/2 stream.  0: a worker will run it.  Else:
 *		refuse it.  The session may have waited before the answer
 * SPD_Cancel	a stream is reset.  1: it waited, and the caller owns it again
 * SPD_Begin	begin a released or woken request.  1: the client has reset, or
 *		the request waited for too long: clean up
 * SPD_Disembark	the request leaves its worker for a waiting list
 * SPD_Answer	note the status of the request's answer
 * SPD_Done	the request is done: settle its cost
 * SPD_Next	the worker is free: find its next task
 * SPD_Pipe	lend the slot before a pipe
 * SPD_Piped	charge a pipe: so many bytes went to the client since it began
 * SPD_Rejoin	retake a lent slot at once, even above W
 * SPD_CondWait	like Lck_CondWait(), lending the slot after 1 ms
 * SPD_CondWaitTimeout	the same, like Lck_CondWaitTimeout()
 * SPD_CondWaitMutex	the same, like pthread_cond_wait()
 * SPD_CondWaitWindow	the same, for an HTTP/2 window to open.  ETIMEDOUT at
 *		once: the tenant has as many slow readers as it may
 * SPD_Read	like read(2), lending the slot while no byte comes
 * SPD_Write	like write(2), for an answer without VCL and for a pipe.  A
 *		worker that parses, or has a slot but no request, does not block
 * SPD_Writev	like writev(2), lending the slot to a slow reader
 * SPD_FetchTask	like Pool_Task(), for a fetch.  Not above the tenant's
 *		limit.  It counts until SPD_FetchEnd()
 * SPD_FetchBegin	a fetch begins on its thread
 * SPD_FetchEnd	a fetch ends: charge its CPU time
 * SPD_H2Session	an HTTP/2 session's thread begins (1) or ends (-1)
 * SPD_Pool	a pool of threads begins (1) or ends (0)
 * SPD_Herd	return how many threads a pool should have, at least Varnish's
 *		minimum
 * SPD_VclUse	make this VCL's map the active one
 */

#ifndef SANDPAPER_H_INCLUDED
#define SANDPAPER_H_INCLUDED

#include <stddef.h>
#include <stdint.h>

#include "spd_fields.h"

struct vcl;
struct req;
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
const char *SPD_MapHost(struct spd_map *, const char *name,
    const char *pattern);
/* Hosts that the map does not name.  0: all belong to the tenant "(unknown)".
 * 1: each is a new Host or a tenant, as without a map */
void SPD_MapUnknown(struct spd_map *, int own);

/*--------------------------------------------------------------------
 * Numbers of a tenant or a request
 */

/* Name of the request's tenant, in buf, or NULL: it passed no gate */
const char *SPD_ReqTenant(const struct req *, char *buf, size_t len);
double SPD_ReqWait(const struct req *);		/* s; 0: it passed no gate */
int SPD_Ask(const char *tenant, struct spd_fields *);	/* -1: unknown */

#endif
