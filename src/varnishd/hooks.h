/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The hooks: the functions of ours that Varnish's own code calls.  None of them
 * is called with Sandpaper's lock held.  cache_varnishd.h includes this file,
 * except for VMODs, which may include that one.
 * SPD_VclAdmits() and SPD_Draining() are in sandpaper.h, since the VMOD calls
 * them, too.
 */

#ifndef SANDPAPER_HOOKS_H_INCLUDED
#define SANDPAPER_HOOKS_H_INCLUDED

#include "../memory/store.h"
#include "sandpaper.h"

/* The tenant that made a ban */
struct spd_ban {
	void			*tenant;	/* NULL: none */
	uint32_t		generation;
};

/* Start Sandpaper, once. */
void SPD_Init(void);
/* Make this VCL's map the active one. */
void SPD_VclUse(const struct vcl *);

/*--------------------------------------------------------------------
 * Connections
 */

/* Take an accepted connection.  1: taken.  0: Sandpaper is off. */
int SPD_Accept(struct worker *, task_func_t *, const void *, size_t);
/* Take a connection with bytes from Varnish's waiter.  1: taken.  0: stock must
 * run the task. */
int SPD_Ready(struct sess *, struct pool_task *);
/* 1: the connection was parked, so its socket is in blocking mode already */
int SPD_Resumed(const struct sess *);
/* Read an HTTP/1 request.  1: the connection waits without this thread: return.
 * 0: a request is there, or stock's code reads on. */
int SPD_Rx(struct worker *, struct req *, htc_complete_f *);
/* Set t_first: when the first byte of that request came. */
void SPD_First(struct req *);

/*--------------------------------------------------------------------
 * Requests
 */

enum spd_gate {
	SPD_GATE_OPEN,		/* go on: Sandpaper is off, or the request is
				 * refused and VCL answers */
	SPD_GATE_QUEUED,	/* it waits: return to the pool */
	SPD_GATE_REFUSED	/* answered: clean up */
};

/* Queue or refuse a complete HTTP/1 request, before any VCL. */
enum spd_gate SPD_Gate(struct worker *, struct req *);
/* The same for an HTTP/2 stream.  0: a worker will run it.  Else: refuse it.
 * Before a refusal the session's thread may sleep, to slow its client. */
int SPD_Stream(struct worker *, struct req *, enum task_prio);
/* Write the answer of a stream that is refused, an HPACK block of at most
 * SPD_REFUSAL bytes, and return its length.  0: reset the stream instead. */
#define SPD_REFUSAL 80
size_t SPD_Refusal(struct req *, char *);
/* A stream is reset.  1: it waited, and the caller owns it again.  0: a worker
 * has it.  The session's lock is held. */
int SPD_Cancel(struct req *);
/* Begin a released or woken request.  1: the client has reset, or the request
 * waited for too long: clean up. */
int SPD_Begin(struct worker *, struct req *);
/* The request leaves its worker for a waiting list. */
void SPD_Disembark(struct req *);
/* 1: the request is refused, and VCL answers: go on with vcl_synth. */
int SPD_Synth(struct req *);
/* The same question, in vcl_synth: such a request may not restart. */
int SPD_Refused(const struct req *);
/* The answer is to be sent, with this status. */
void SPD_Answer(struct req *, uint16_t status);
/* The request is done: settle its cost. */
void SPD_Done(struct worker *, struct req *);
/* The worker is free: find its next task. */
void SPD_Next(struct worker *);

/*--------------------------------------------------------------------
 * Waits, which lend the slot
 */

/* Lend the slot before a pipe. */
void SPD_Pipe(const struct req *);
/* Charge a pipe: so many bytes went to the client, in all. */
void SPD_Piped(const struct req *, uint64_t bytes);
/* Retake a lent slot at once, even if all slots are taken. */
void SPD_Rejoin(void);
/* Like Lck_CondWait(), Lck_CondWaitTimeout() (s) and pthread_cond_wait().  The
 * first call of a loop keeps the slot and may return early, as if woken.  The
 * next one lends it. */
int SPD_CondWait(pthread_cond_t *, struct lock *);
int SPD_CondWaitTimeout(pthread_cond_t *, struct lock *, vtim_dur);
int SPD_CondWaitMutex(pthread_cond_t *, pthread_mutex_t *);
/* The same, for an HTTP/2 window to open.  ETIMEDOUT at once: the tenant has as
 * many slow readers as it may. */
int SPD_CondWaitWindow(pthread_cond_t *, struct lock *, vtim_dur);
/* Like read(2), lending the slot while no byte comes */
ssize_t SPD_Read(int, void *, size_t);
/* Like write(2), for short answers and for a pipe.  A worker that
 * parses, or has a slot but no request, does not block. */
ssize_t SPD_Write(int, const void *, size_t);
/* Like writev(2), lending the slot to a slow reader */
ssize_t SPD_Writev(int, const struct iovec *, int);

/*--------------------------------------------------------------------
 * Bans
 */

/* Note who makes a ban. */
void SPD_BanMade(struct spd_ban *);
/* Measure a test: Test() returns when it begins, for Tested(). */
int64_t SPD_BanTest(const struct spd_ban *);
void SPD_BanTested(const struct spd_ban *, int64_t);
/* Charge what was measured.  A request does that when it is done. */
void SPD_BanPay(void);

/*--------------------------------------------------------------------
 * Fetches and threads
 */

/* Like Pool_Task(), for a fetch.  It also fails at the tenant's limit.  The
 * fetch counts until SPD_FetchEnd(). */
int SPD_FetchTask(struct pool *, struct busyobj *, struct pool_task *,
    enum task_prio);
/* A fetch begins on its thread. */
void SPD_FetchBegin(void);
/* A fetch ends: charge its CPU time. */
void SPD_FetchEnd(struct busyobj *);
/* An HTTP/2 session's thread begins (1) or ends (-1). */
void SPD_H2Session(int);
/* A pool of threads begins (1) or ends (0). */
void SPD_Pool(struct pool *, int begins);
/* Return how many threads a pool should have, at least Varnish's minimum. */
unsigned SPD_Herd(const struct pool *, unsigned minimum);

/*--------------------------------------------------------------------
 * The LRU of a stevedore.  Its lock is held.
 */

/* The account of a stevedore.  common: the head of Varnish's own LRU list */
struct spd_store;
struct spd_store *SPD_StoreNew(void *common);
void SPD_StoreFree(struct spd_store **);
void SPD_StoreAdd(struct spd_store *, struct objcore *);
void SPD_StoreRemove(struct spd_store *, struct objcore *);
void SPD_StoreTouch(struct spd_store *, struct objcore *);

/* What this thread fetches.  All 0: it fetches nothing */
struct spd_fetch_look {
	uint64_t		flags, bytes;	/* SPD_FETCH_*; of the body so
						 * far */
	uint32_t		owner;
};

/* A search for an object to evict.  SPD_StoreVictim() begins it.  If that
 * object is busy, SPD_StoreNext() returns the next one. */
struct spd_victim {
	struct spd_store	*store;
	struct spd_fetch_look	fetch;
	struct store_search	search[1];
	unsigned		tries;		/* of one list */
	int			own, idle, patient;
};
struct objcore *SPD_StoreVictim(struct spd_victim *, struct spd_store *);
struct objcore *SPD_StoreNext(struct spd_victim *, struct objcore *);
void SPD_StoreEvict(struct spd_store *, struct objcore *);

/*--------------------------------------------------------------------
 * Admission
 */

/* VCL has seen the answer of the backend: decide if the cache admits the
 * object. */
void SPD_Admit(struct busyobj *);
/* A try of a fetch has failed. */
void SPD_Failed(struct busyobj *);
/* A fetch is complete.  Called before BOS_FINISHED. */
void SPD_Fetched(struct busyobj *);
/* The same, called after BOS_FINISHED. */
void SPD_Stored(struct busyobj *);
/* An objcore is freed. */
void SPD_Freed(struct objcore *);
/* A client has its answer, or has left. */
void SPD_Asked(const struct req *);

/*--------------------------------------------------------------------
 * Of cache_wrk.c, for spd_pool.c: static in stock
 */

extern uintmax_t reqpoolfail;	/* debug.reqpool.fail.  Bit 0 is for the next
				 * task.  1: it fails */
unsigned pool_reserve(void);
struct worker *pool_getidleworker(struct pool *, enum task_prio);

#endif
