/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * What varnishd and the VMOD call.  The hooks' prototypes are in
 * cache_varnishd.h (patches/); what they do:
 *
 * SPD_Accept	a connection was accepted: 1: made a session here and parked
 * SPD_Ready	bytes on a connection in Varnish's waiter: 1: taken
 * SPD_Resumed	1: this session's socket is already in blocking mode
 * SPD_Rx	HTTP/1 wants to read a request: 0: one (or an end) is there,
 *		1: the connection is parked, return to the pool
 * SPD_First	when that request's first byte came
 * SPD_Gate	an HTTP/1 request is complete, no VCL has run: see spd_gate
 * SPD_Stream	the same for an HTTP/2 stream: 0: it will run as a pool task,
 *		-1: refuse it, after it has waited for its tenant's turn of that
 * SPD_Cancel	an HTTP/2 stream is reset: 1: it waited, and is yours
 * SPD_Begin	a released or woken request runs on this worker; 1: its
 *		client has gone, or it waited too long, clean up
 * SPD_Disembark	the request leaves its worker for a waiting list
 * SPD_Answer	the request is about to be answered with this status
 * SPD_Done	the request is answered: its cost is known
 * SPD_Next	the worker is free: it parses, or runs the next release
 * SPD_Pipe	the worker is about to pipe: its slot goes back
 * SPD_Piped	so many bytes went to the client, since the pipe began
 * SPD_Rejoin	it has piped: the slot is retaken at once, even above W
 * SPD_CondWait	like Lck_CondWait(), lending after a millisecond
 * SPD_CondWaitWindow	the same, for an h2 window to open: ETIMEDOUT at once
 *		when as many of the tenant's workers as may be wait for
 *		slow readers
 * SPD_Read	like read(2), lending while nothing comes
 * SPD_Write	like write(2), of an answer without VCL: a worker that parses,
 *		or has a slot but no request, does not wait
 * SPD_Writev	like writev(2), lending to slow readers only
 * SPD_FetchTask	like Pool_Task() for a backend fetch: not above its tenant's
 *		limit, and counted until SPD_FetchEnd()
 * SPD_FetchBegin	its thread begins, SPD_FetchEnd() ends
 * SPD_H2Session	an HTTP/2 session's thread begins (1) or ends (-1)
 * SPD_Pool	a pool of threads begins (1) or ends (0)
 * SPD_Herd	threads that a pool should have, given Varnish's minimum
 * SPD_VclUse	this VCL becomes the active one
 */

#ifndef SANDPAPER_H_INCLUDED
#define SANDPAPER_H_INCLUDED

#include <stddef.h>
#include <stdint.h>

struct vcl;
struct req;
struct spd_map;

/*--------------------------------------------------------------------
 * The host map: which hosts are which tenant.  Made in vcl_init, belongs
 * to the VCL, in force while that VCL is the active one.
 *
 * A pattern is a host name, or "*." and a domain: all names below it.
 * The functions return NULL, or what is wrong in one line (static).
 */

struct spd_map *SPD_MapOf(const struct vcl *);	/* made when first asked */
void SPD_MapDrop(const struct vcl *);		/* the VCL is discarded */
const char *SPD_MapTenant(struct spd_map *, const char *name,
    double weight, unsigned queue_limit);
/* Parts of the dominant resource; a reservation of 0 and a limit of 1: none */
const char *SPD_MapGroup(struct spd_map *, const char *name, double weight);
const char *SPD_MapMember(struct spd_map *, const char *name,
    const char *group);
const char *SPD_MapLimits(struct spd_map *, const char *name,
    double reservation, double limit);
const char *SPD_MapHost(struct spd_map *, const char *name,
    const char *pattern);
/* Unmapped hosts: 0: one tenant "(unknown)", 1: each its own */
void SPD_MapUnknown(struct spd_map *, int own);

/*--------------------------------------------------------------------
 * Questions
 */

struct spd_answer {
	double		cpu;		/* s, estimate */
	double		net;		/* s, estimate */
	unsigned	waiting;	/* requests */
	unsigned	running;	/* requests */
	double		weight;
	double		share;		/* of the weight of all that are backlogged */
	double		used_cpu;	/* s, since it was first seen */
	uint64_t	bytes;
	double		waited;		/* s */
	uint64_t	requests;
};

/* The tenant of this request, or NULL: it did not pass the gate */
const char *SPD_ReqTenant(const struct req *, char *buf, size_t len);
double SPD_ReqWait(const struct req *);		/* s */
int SPD_Ask(const char *tenant, struct spd_answer *);	/* -1: unknown */

#endif
