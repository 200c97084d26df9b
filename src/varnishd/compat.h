/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * All differences between the Varnish series.
 *
 * Our code uses the names of 7.7, which 9.0 has, too.  For 6.0 this header
 * defines them.  If one expression cannot mean the same in all series, each
 * has a macro of ours, named SPD_...
 *
 * A VMOD includes this header after Varnish's cache/cache.h.  For varnishd this
 * header includes cache.h, too.
 */

#ifdef NOT_IN_A_VMOD
#if __has_include("cache/cache_vinyld.h")	/* 9.0 */
#include "cache/cache_vinyld.h"
#else
#include "cache/cache_varnishd.h"
#endif
#include "common/heritage.h"	/* 6.0 has no guard: include it only here */
#endif

#if VRT_MAJOR_VERSION >= 21U		/* 7.7, 9.0 */

#define SPD_TASK(x)		((x)->task)
#define SPD_TOPREQ(req)		((req)->top->topreq)
#define SPD_WORKER_VCL(wrk)	((wrk)->wpriv->vcl)
#define SPD_LINGER(sp)		SESS_TMO(sp, timeout_linger)
#define SPD_FETCHED(boc)	((uint64_t)(boc)->fetched_so_far)
#define SPD_FILTERS(bo)		((bo)->vfp_filter_list)
#define SPD_PASS_BUFFER(boc, n)	((boc)->transit_buffer = (n))
#define SPD_DOCLOSE(http)	http_DoConnection(http, SC_REQ_CLOSE)

/* Release a request without complete headers, before its session waits */
#define SPD_IDLE_REQ(wrk, req)	Req_Release(req)

/* Take a worker from its pool's idle ones: pool_getidleworker() has done it */
#define SPD_NOT_IDLE(pp, wrk)	(void)(pp)

#ifdef NOT_IN_A_VMOD
#include "vbh.h"
#endif

#else					/* 6.0 */

#define SPD_TASK(x)		(&(x)->task)
#define SPD_TOPREQ(req)		((req)->top)
#define SPD_WORKER_VCL(wrk)	((wrk)->vcl)
#define SPD_LINGER(sp)		((void)(sp), cache_param->timeout_linger)
#define SPD_FETCHED(boc)	((uint64_t)(boc)->len_so_far)
#define SPD_FILTERS(bo)		((void)(bo), (const char *)NULL)
#define SPD_PASS_BUFFER(boc, n)	0U
#define SPD_DOCLOSE(http)	http_DoConnection(http)

#define SPD_IDLE_REQ(wrk, req)				\
	do {						\
		Req_Cleanup((req)->sp, wrk, req);	\
		Req_Release(req);			\
	} while (0)

#define SPD_NOT_IDLE(pp, wrk)				\
	do {						\
		VTAILQ_REMOVE(&(pp)->idle_queue,	\
		    SPD_TASK(wrk), list);		\
		(pp)->nidle--;				\
	} while (0)

/* As many queues of a pool, most urgent first */
#define TASK_QUEUE_RESERVE	TASK_QUEUE__END

/* From Varnish's include/ */

#include <errno.h>

#define PTOK(call)					\
	do {						\
		errno = (call);				\
		AZ(errno);				\
	} while (0)

#define FINI_OBJ(to)					\
	do {						\
		(to)->magic = 0;			\
		(to) = NULL;				\
	} while (0)

/* The log */

#define NO_VXID			0
#define TOSTRAND(s)		(s)
#define VSLbs(vsl, tag, s)	VSLb(vsl, tag, "%s", s)

/* Workspaces */

#define WS_Reservation(ws)	((void *)(ws)->f)
#define WS_ReservationSize(ws)	((ws)->r - (ws)->f)
#define WS_Rollback(ws, u)	WS_Reset(ws, u)

/* VMODs */

#define VRT_handled(ctx)				\
	((ctx)->handling != NULL && *(ctx)->handling != 0)
#define VENUM(a)		vmod_enum_##a
#define vmod_event		event

#ifdef NOT_IN_A_VMOD
#include "vtim.h"

/* The heap of deadlines has other names */

#include "binary_heap.h"
#define vbh			binheap
#define vbh_cmp_t		binheap_cmp_t
#define vbh_update_t		binheap_update_t
#define VBH_new			binheap_new
#define VBH_insert		binheap_insert
#define VBH_delete		binheap_delete
#define VBH_root		binheap_root

/* Wait for a condition variable.  tmo: s, or INFINITY.  In 6.0 the last
 * argument of Lck_CondWait() is a time of day, and 0 means no timeout. */
static inline int
Lck_CondWaitTimeout(pthread_cond_t *cond, struct lock *lck, vtim_dur tmo)
{

	return (Lck_CondWait(cond, lck, isinf(tmo) ? 0 : VTIM_real() + tmo));
}

/* Log the client of a request that no VCL has seen. */
static inline void
Req_LogStart(const struct worker *wrk, struct req *req)
{

	(void)wrk;
	VSLb(req->vsl, SLT_ReqStart, "%s %s %s",
	    SES_Get_String_Attr(req->sp, SA_CLIENT_IP),
	    SES_Get_String_Attr(req->sp, SA_CLIENT_PORT),
	    req->sp->listen_sock->name);
}
#endif

#endif
