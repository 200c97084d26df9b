/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * From a connection to the end of its request: all of src/varnishd except the CLI,
 * the counters and the interface, with a small Varnish of
 * ours around them.  Workers, the acceptor, the waiter and the keeper are
 * coroutines.  Each may be interrupted at unlocks and many calls, so an input is
 * a schedule, too.  An input is a sequence of: a client connects, sends a
 * request or half of one, closes or resets; an origin answers; time passes; a
 * parameter changes; a thread runs on.
 *
 * After each action:
 *  - the slots taken are those of workers and of granted requests;
 *  - as many connections are parked, ready and queued as are counted, and
 *    none of these is in Varnish's waiter;
 *  - those that lend, parse and lead are counted.
 * When no worker can go on, no connection is ready, and no request waits though
 * a slot is free, while a thread is idle.  When the keeper has looked, too:
 *  - while a thread is idle, no granted request waits for it;
 *  - while a slot is free, a thread leads, and no parked connection has bytes.
 * A connection whose bytes came while it lingered does not go to the waiter.
 * At the end, when clients have gone and origins have answered, nothing is
 * left: no request, session, slot, lending.
 *
 * tools/build-fuzz-varnishd compiles src/varnishd so that spd_me is *spd_me_p, which
 * is another one for each coroutine.  What is named __wrap_ here is called
 * instead of the function of Varnish or of the C library.
 */

#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <time.h>
#include <ucontext.h>

#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include "varnishd/spd.h"

#include "fuzz.h"

#ifdef FUZZ_NOTHING
/* Another series, or a sanitizer that does not know coroutines */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	(void)data;
	(void)size;
	return (0);
}
#else

#ifdef FUZZ_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

/* The state that is static in its file, see SPD_STATIC */
extern unsigned nopen, lent, parsers, nobodys, parts_ready, writers;
extern unsigned fetches;
extern _Atomic unsigned running, nready, nparked;
extern uint64_t slot_map[SPD_SLOTS_MAX / 64];
extern struct spd_worker *slot_owner[SPD_SLOTS_MAX];
extern int leader, deputy, summoned, timer_fd, epoll_fd;
extern int64_t lap_sum, timer_at;

#define POOLS		2
#define WORKERS		8
#define ACCEPTOR	WORKERS		/* threads that are no workers */
#define WAITER		(WORKERS + 1)
#define KEEPER		(WORKERS + 2)
#define THREADS		(WORKERS + 3)
#define CONNS		10
#define FD		100		/* of the first connection */
#define BYTES		32		/* of a connection, unread */
#define TENANTS		3
#define STACK		(256 * 1024)
#define STEPS		20000		/* until nobody can go on */
#define CLOCKS		100000		/* clockid_t of the first thread */

#define MS		INT64_C(1000000)	/* ns */
#define LAP		1000			/* ns, of a meter */
#define TURN		(5 * LAP)		/* ns, one in SAMPLE is measured */

enum state {
	RUNNABLE,
	IDLE,			/* a worker in its pool */
	EPOLL,			/* it leads */
	BLOCKED			/* until can_go_on() */
};

struct conn {
	int		open, proxy, accepted, served, fin, reset;
	char		bytes[BYTES];
	unsigned	n;
	int64_t		came;		/* ns, the first of bytes */
	int		in_set, event;	/* epoll */
	uint64_t	data;
	int		in_waiter;
	struct sess	*sp;
};

struct thread {
	struct spd_worker	me;
	struct worker		wrk[1];
	struct worker_priv	wpriv[1];
	struct VSC_main_wrk	stats;
	char			aws[512];
	enum state		state;
	struct conn		*bytes;		/* BLOCKED for these, */
	int			*flag;		/* or this, */
	int64_t			until;		/* ns, or until then */
	int64_t			cpu;		/* ns */
	ucontext_t		ctx;
	char			*stack;
	void			*fake;		/* ASan's stack */
	void			(*run)(struct thread *);
};

struct request {
	struct req	req;			/* first */
	struct http_conn htc;
	struct http	http;			/* without headers */
	int		parsed, sleeps, answered;
	unsigned	what;			/* its byte */
	char		ws[256];
	VTAILQ_ENTRY(request) list;
};

struct session {
	struct sess	sp;			/* first */
	char		ws[128];
};

static struct thread threads[THREADS];
static struct pool pools[POOLS];
static struct conn conns[CONNS];
static VTAILQ_HEAD(, request) sleepers = VTAILQ_HEAD_INITIALIZER(sleepers);
static struct thread *now_runs;		/* NULL: the fuzzer */
static ucontext_t fuzzer;
static struct spd_worker fuzzer_me;
static struct spd_conn *record[CONNS];	/* Sandpaper's, of each */
static struct params params;
static int64_t the_time = 1000000 * MS;
static uint64_t tasks;				/* that workers have begun */
static uint64_t polls;				/* of the epoll set, ended */
static int64_t laps;				/* ns, that meters have said */
static int64_t kept;				/* of these, the keeper's */
static int64_t timer;			/* ns, 0: not set */
static int timer_event;
static int locked, over;		/* over: nothing blocks any more */
static int changed;			/* a parameter, since the last rest */
static unsigned rate;			/* of 256 calls of interrupt() */
static uint64_t schedule;
static unsigned live;			/* sessions and requests */
static void *(*keeper)(struct worker *, void *);

static task_func_t h1_task, h1_new, h1_unwait, proxy_new;
static const struct transport h1 = {
	.magic = TRANSPORT_MAGIC,
	.name = "HTTP/1",
	.new_session = h1_new,
	.unwait = h1_unwait,
};
/* It takes a thread, until it is HTTP/1 */
static const struct transport proxy = {
	.magic = TRANSPORT_MAGIC,
	.name = "PROXY",
	.new_session = proxy_new,
};

/*--------------------------------------------------------------------
 * Coroutines
 */

static void
fiber_start(void **fake, const void *stack, size_t l)
{
#ifdef FUZZ_ASAN
	__sanitizer_start_switch_fiber(fake, stack, l);
#else
	(void)fake;
	(void)stack;
	(void)l;
#endif
}

static const void *fuzzer_stack;
static size_t fuzzer_size;

static void
fiber_finish(void *fake)
{
#ifdef FUZZ_ASAN
	if (now_runs != NULL)
		__sanitizer_finish_switch_fiber(fake, &fuzzer_stack,
		    &fuzzer_size);
	else
		__sanitizer_finish_switch_fiber(fake, NULL, NULL);
#else
	(void)fake;
#endif
}

static void
run_on(struct thread *t)
{
	void *fake = NULL;

	assert(now_runs == NULL && t->state == RUNNABLE);
	now_runs = t;
	spd_me_p = &t->me;
	t->cpu += 20000;
	fiber_start(&fake, t->stack, STACK);
	AZ(swapcontext(&fuzzer, &t->ctx));
	now_runs = NULL;
	spd_me_p = &fuzzer_me;
	fiber_finish(fake);
	assert(!locked);
}

static void
switch_out(enum state state)
{
	struct thread *t = now_runs;

	assert(t != NULL && !locked);
	t->state = state;
	fiber_start(&t->fake, fuzzer_stack, fuzzer_size);
	AZ(swapcontext(&t->ctx, &fuzzer));
	fiber_finish(t->fake);
	assert(now_runs == t);
}

static void
thread_begins(void)
{
	fiber_finish(NULL);
	now_runs->run(now_runs);
	abort();
}

/* Others may run here */
static void
interrupt(void)
{
	if (now_runs == NULL)
		return;
	schedule ^= schedule << 13;
	schedule ^= schedule >> 7;
	schedule ^= schedule << 17;
	if ((schedule >> 32) % 256 < rate)
		switch_out(RUNNABLE);
}

static int
has_event(void)
{
	unsigned i;

	if (timer != 0 && timer <= the_time) {
		timer = 0;
		timer_event = 1;
	}
	for (i = 0; i < CONNS; i++)
		if (conns[i].event)
			return (1);
	return (timer_event);
}

static int
readable(const struct conn *c)
{
	return (c->n > 0 || c->fin || c->reset);
}

static int
can_go_on(struct thread *t)
{
	unsigned i;

	if (t->state == EPOLL && has_event())
		t->state = RUNNABLE;
	if (t == &threads[ACCEPTOR] && t->state == BLOCKED &&
	    t->until == INT64_MAX)	/* else it naps */
		for (i = 0; i < CONNS; i++)
			if (conns[i].open && !conns[i].accepted)
				t->state = RUNNABLE;
	if (t == &threads[WAITER] && t->state == BLOCKED)
		for (i = 0; i < CONNS; i++)
			if (conns[i].in_waiter && readable(&conns[i]))
				t->state = RUNNABLE;
	if (t->state == BLOCKED && ((t->bytes != NULL &&
	    readable(t->bytes)) || (t->flag != NULL && *t->flag) ||
	    t->until <= the_time ||
	    (over && (t->bytes != NULL || t->flag != NULL))))
		t->state = RUNNABLE;
	return (t->state == RUNNABLE);
}

static void
block(struct conn *bytes, int *flag, int64_t until)
{
	struct thread *t = now_runs;

	t->bytes = bytes;
	t->flag = flag;
	t->until = until;
	switch_out(BLOCKED);
	t->bytes = NULL;
	t->flag = NULL;
}

/*--------------------------------------------------------------------
 * Varnish, as far as it is called
 */

void __wrap_Lck__New(struct lock *, struct VSC_lck *, const char *);
void __wrap_Lck__Lock(struct lock *, const char *, int);
void __wrap_Lck__Unlock(struct lock *, const char *, int);
int __wrap_Lck__Held(const struct lock *);
int __wrap_Lck__Owned(const struct lock *);
int __wrap_Lck_CondWaitTimeout(pthread_cond_t *, struct lock *, vtim_dur);
int64_t __wrap_METER_Now(void);
int64_t __wrap_METER_Process(void);
int __wrap_METER_Choose(struct meter_source *, const char *, char *, size_t);
void __wrap_METER_Open(struct meter *, const struct meter_source *);
void __wrap_METER_Close(struct meter *);
int64_t __wrap_METER_LapIf(struct meter *, int);
void __wrap_METER_Drop(struct meter *);
int __wrap_METER_Cheap(const struct meter *);
vtim_real __wrap_VTIM_real(void);
void __wrap_VTIM_sleep(vtim_dur);
int __wrap_clock_gettime(clockid_t, struct timespec *);
int __real_clock_gettime(clockid_t, struct timespec *);
int __wrap_pthread_getcpuclockid(pthread_t, clockid_t *);
int __wrap_pthread_setspecific(pthread_key_t, const void *);
int __real_pthread_setspecific(pthread_key_t, const void *);
int __wrap_VRND_RandomCrypto(void *, size_t);
struct VSC_sandpaper *__wrap_VSC_sandpaper_New(void);
void __wrap_spd_cli_list_init(void);
void __wrap_spd_cli_show_init(void);
void __wrap_spd_cli_map_init(void);
void __wrap_spd_cli_drain_init(void);
void __wrap_spd_cli_cache_init(void);
void __wrap_spd_cli_debug_init(void);
void __wrap_spd_tuner_init(void);
void __wrap_spd_stat(void);
void __wrap_spd_stat_cache(void);
void __wrap_spd_link_seen(const struct sess *);
int __wrap_IFACE_Read(void);
size_t __wrap_spd_tenant_name(const struct req *, char *,
    enum exempt_answer *);
void __wrap_VSL(enum VSL_tag_e, vxid_t, const char *, ...);
void __wrap_VSLb(struct vsl_log *, enum VSL_tag_e, const char *, ...);
void __wrap_VSLbs(struct vsl_log *, enum VSL_tag_e, const struct strands *);
const char *__wrap_Req_LogStart(const struct worker *, struct req *);
void __wrap_Req_Release(struct req *);
void __wrap_SES_Close(struct sess *, stream_close_t);
void __wrap_SES_Delete(struct sess *, stream_close_t, vtim_real);
void __wrap_SES_Wait(struct sess *, const struct transport *);
const struct transport *__wrap_XPORT_ByNumber(uint16_t);
void __wrap_Pool_Sumstat(const struct worker *);
int __wrap_Pool_TrySumstat(const struct worker *);
int __wrap_Pool_Task(struct pool *, struct pool_task *, enum task_prio);
int __wrap_spd_pool_run(struct pool *, const struct pool_task *);
int __wrap_spd_pool_take(struct worker *);
void __wrap_WRK_BgThread(pthread_t *, const char *, bgthread_t *, void *);
int __wrap_epoll_ctl(int, int, int, struct epoll_event *);
int __wrap_epoll_wait(int, struct epoll_event *, int, int);
int __wrap_timerfd_settime(int, int, const struct itimerspec *,
    struct itimerspec *);
ssize_t __wrap_recv(int, void *, size_t, int);
ssize_t __wrap_send(int, const void *, size_t, int);
int __wrap_poll(struct pollfd *, nfds_t, int);
int __wrap_shutdown(int, int);
int __wrap_sched_yield(void);

void
__wrap_Lck__New(struct lock *l, struct VSC_lck *stat, const char *name)
{
	(void)l;
	(void)stat;
	(void)name;
}

/*
 * While requests wait, or parts are many, connections without a tenant take a
 * quarter of the cores' time and SPD_BURST at most.  What each thread has begun
 * before comes on top of that.
 */
static void
watch_nobody(void)
{
	static int64_t since, before;
	static struct VSC_sandpaper *of;
	int64_t most, took;

	if (spd_vsc == NULL || spd_rel == NULL)
		return;
	took = (int64_t)spd_vsc->cpu_unowned_ns - kept;
	if (of != spd_vsc || spd_set.mode != SPD_ON || (REL_Waiting(spd_rel) ==
	    REL_Throttled(spd_rel) &&
	    spd_vsc->parts + parts_ready < SPD_PARTS)) {
		of = spd_vsc;
		since = the_time;
		before = took;
		return;
	}
	/* The acceptor and the keeper do not parse */
	most = SPD_BURST + (the_time - since) * spd_set.cores / 4 +
	    (spd_set.parsers + 2) * TURN;
	assert(took - before <= most);
}

void
__wrap_Lck__Lock(struct lock *l, const char *where, int line)
{
	(void)where;
	(void)line;
	assert(!locked);
	locked = 1;
}

void
__wrap_Lck__Unlock(struct lock *l, const char *where, int line)
{
	(void)where;
	(void)line;
	assert(locked);
	watch_nobody();
	locked = 0;
	interrupt();
}

int
__wrap_Lck__Held(const struct lock *l)
{
	(void)l;
	return (locked);
}

int
__wrap_Lck__Owned(const struct lock *l)
{
	(void)l;
	return (locked);
}

/* A request waits for its origin */
int
__wrap_Lck_CondWaitTimeout(pthread_cond_t *cond, struct lock *l, vtim_dur tmo)
{
	int *answered = (int *)(void *)l;

	(void)cond;
	if (!*answered && !over)
		block(NULL, answered, isinf(tmo) ? INT64_MAX :
		    the_time + (int64_t)(tmo * 1e9));
	return (*answered || over ? 0 : ETIMEDOUT);
}

int64_t
__wrap_METER_Now(void)
{
	return (the_time++);
}

int64_t
__wrap_METER_Process(void)
{
	return (the_time);
}

int
__wrap_METER_Choose(struct meter_source *s, const char *spec, char *note,
    size_t l)
{
	(void)spec;
	(void)note;
	(void)l;
	s->magic = METER_SOURCE_MAGIC;
	return (0);
}

void
__wrap_METER_Open(struct meter *m, const struct meter_source *s)
{
	m->src = s;
}

void
__wrap_METER_Close(struct meter *m)
{
	(void)m;
}

int64_t
__wrap_METER_LapIf(struct meter *m, int wanted)
{
	(void)m;
	laps += wanted ? LAP : 0;
	if (wanted && now_runs == &threads[KEEPER])
		kept += LAP;
	return (wanted ? LAP : -1);
}

void
__wrap_METER_Drop(struct meter *m)
{
	(void)m;
}

int
__wrap_METER_Cheap(const struct meter *m)
{
	(void)m;
	return (0);
}

vtim_real
__wrap_VTIM_real(void)
{
	return ((double)the_time * 1e-9);
}

/* The keeper's */
void
__wrap_VTIM_sleep(vtim_dur d)
{
	block(NULL, NULL, the_time + (int64_t)(d * 1e9));
}

int
__wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	int64_t t;

	if (clock < CLOCKS || clock >= CLOCKS + THREADS)
		return (__real_clock_gettime(clock, ts));
	t = threads[clock - CLOCKS].cpu;
	ts->tv_sec = t / 1000000000;
	ts->tv_nsec = t % 1000000000;
	return (0);
}

int
__wrap_pthread_getcpuclockid(pthread_t thread, clockid_t *clock)
{
	(void)thread;
	*clock = now_runs == NULL ? CLOCKS + KEEPER :
	    CLOCKS + (clockid_t)(now_runs - threads);
	return (0);
}

int
__wrap_pthread_setspecific(pthread_key_t key, const void *p)
{
	return (p == spd_me_p && p != NULL ? 0 :
	    __real_pthread_setspecific(key, p));
}

int
__wrap_VRND_RandomCrypto(void *p, size_t len)
{
	memset(p, 7, len);
	return (0);
}

struct VSC_sandpaper *
__wrap_VSC_sandpaper_New(void)
{
	static struct VSC_sandpaper vsc;

	return (&vsc);
}

void
__wrap_spd_cli_list_init(void)
{
}

void
__wrap_spd_cli_show_init(void)
{
}

void
__wrap_spd_cli_map_init(void)
{
}

void
__wrap_spd_cli_drain_init(void)
{
}

void
__wrap_spd_cli_cache_init(void)
{
}

void
__wrap_spd_cli_debug_init(void)
{
}

void
__wrap_spd_tuner_init(void)
{
}

void
__wrap_spd_stat_cache(void)
{
}

void
__wrap_spd_stat(void)
{
}

void
__wrap_spd_link_seen(const struct sess *sp)
{
	(void)sp;
}

int
__wrap_IFACE_Read(void)
{
	return (-1);
}

size_t
__wrap_spd_tenant_name(const struct req *req, char *name,
    enum exempt_answer *exempt)
{
	const struct request *r = (const void *)req;

	if (exempt != NULL)
		*exempt = r->what % 16 == 15 ? EXEMPT_NOW : EXEMPT_NO;
	name[0] = (char)('a' + r->what % TENANTS);
	name[1] = '\0';
	return (1);
}

void
__wrap_VSL(enum VSL_tag_e tag, vxid_t vxid, const char *fmt, ...)
{
	(void)tag;
	(void)vxid;
	(void)fmt;
}

void
__wrap_VSLb(struct vsl_log *vsl, enum VSL_tag_e tag, const char *fmt, ...)
{
	(void)vsl;
	(void)tag;
	(void)fmt;
}

void
__wrap_VSLbs(struct vsl_log *vsl, enum VSL_tag_e tag, const struct strands *s)
{
	(void)vsl;
	(void)tag;
	(void)s;
}

const char *
__wrap_Req_LogStart(const struct worker *wrk, struct req *req)
{
	(void)wrk;
	(void)req;
	return (NULL);
}

static struct conn *
conn_of(int fd)
{
	assert(fd >= FD && fd < FD + CONNS && conns[fd - FD].served);
	return (&conns[fd - FD]);
}

static struct request *
new_request(struct sess *sp)
{
	struct request *r = calloc(1, sizeof *r);

	AN(r);
	live++;
	INIT_OBJ(&r->req, REQ_MAGIC);
	r->req.sp = sp;
	r->req.transport = &h1;
	r->req.doclose = SC_NULL;
	r->req.http = &r->http;
	INIT_OBJ(&r->http, HTTP_MAGIC);
	r->http.ws = r->req.ws;
	r->http.nhd = HTTP_HDR_FIRST;
	r->http.protover = 11;
	r->req.htc = &r->htc;
	INIT_OBJ(&r->htc, HTTP_CONN_MAGIC);
	WS_Init(r->req.ws, "req", r->ws, sizeof r->ws);
	r->htc.ws = r->req.ws;
	r->htc.body_status = BS_NONE;
	AN(WS_ReserveAll(r->htc.ws));
	r->htc.rxbuf_b = r->htc.rxbuf_e = WS_Reservation(r->htc.ws);
	return (r);
}

void
__wrap_Req_Release(struct req *req)
{
	struct request *r = (void *)req;

	CHECK_OBJ_NOTNULL(req, REQ_MAGIC);
	assert(!REL_IsBacklogged(SPD_NODE(req)));
	req->magic = 0;
	free(r);
	live--;
}

void
__wrap_SES_Close(struct sess *sp, stream_close_t why)
{
	struct conn *c = conn_of(sp->fd);

	(void)why;
	assert(c->sp == sp && !c->in_waiter);
	memset(c, 0, sizeof *c);
	sp->fd = -1;
	interrupt();
}

void
__wrap_SES_Delete(struct sess *sp, stream_close_t why, vtim_real now)
{
	(void)now;
	CHECK_OBJ_NOTNULL(sp, SESS_MAGIC);
	if (sp->fd >= 0)
		__wrap_SES_Close(sp, why);
	sp->magic = 0;
	free(sp);
	live--;
}

void
__wrap_SES_Wait(struct sess *sp, const struct transport *xp)
{
	struct conn *c = conn_of(sp->fd);

	assert(xp == &h1 && c->sp == sp && !c->in_waiter);
	/* It has lingered */
	assert(over || spd_set.mode == SPD_OFF ||
	    __wrap_VTIM_real() >= sp->t_idle + params.timeout_linger);
	/* Nothing came while it lingered, also if nobody looked meanwhile */
	if (now_runs == &threads[KEEPER] && spd_set.mode != SPD_OFF)
		assert(c->n == 0 || c->reset ||
		    c->came >= spd_conn_fd(sp->fd)->deadline);
	AN(WS_ReserveAll(sp->ws));
	c->in_waiter = 1;
	interrupt();
}

const struct transport *
__wrap_XPORT_ByNumber(uint16_t n)
{
	(void)n;
	return (&h1);
}

void
__wrap_Pool_Sumstat(const struct worker *wrk)
{
	(void)wrk;
}

int
__wrap_Pool_TrySumstat(const struct worker *wrk)
{
	(void)wrk;
	return (1);
}

/* Idle threads that are kept for tasks that are more urgent */
static unsigned
reserved(unsigned prio)
{
	return (prio);			/* of TASK_QUEUE_RESERVE */
}

static int
give_idle(struct pool *pp, const struct pool_task *task, unsigned prio)
{
	struct thread *t;

	AN(task->func);
	if (pp == NULL || pp->nidle <= reserved(prio))
		return (-1);
	for (t = threads; t < &threads[WORKERS]; t++) {
		if (t->state != IDLE || t->wrk->pool != pp)
			continue;
		t->wrk->task->func = task->func;
		t->wrk->task->priv = task->priv;
		t->state = RUNNABLE;
		AN(pp->nidle);
		pp->nidle--;
		interrupt();
		return (0);
	}
	return (-1);
}

int
__wrap_spd_pool_run(struct pool *pp, const struct pool_task *task)
{
	return (give_idle(pp, task, TASK_QUEUE_RUSH));
}

/* The next task for a worker of this pool, from the queues, or NULL */
static struct pool_task *
next_task(struct pool *pp)
{
	struct pool_task *task = NULL;
	unsigned q;

	for (q = 0; q < TASK_QUEUE_RESERVE && pp->nidle >= reserved(q); q++) {
		task = VTAILQ_FIRST(&pp->queues[q]);
		if (task == NULL)
			continue;
		VTAILQ_REMOVE(&pp->queues[q], task, list);
		pp->lqueue--;
		break;
	}
	return (task);
}

int
__wrap_spd_pool_take(struct worker *wrk)
{
	struct pool_task *task;

	AZ(wrk->task->func);
	task = next_task(wrk->pool);
	if (task != NULL)
		*wrk->task = *task;
	interrupt();
	return (task != NULL);
}

int
__wrap_Pool_Task(struct pool *pp, struct pool_task *task, enum task_prio prio)
{
	if (give_idle(pp, task, prio) == 0)
		return (0);
	VTAILQ_INSERT_TAIL(&pp->queues[prio], task, list);
	pp->lqueue++;
	interrupt();
	return (0);
}

void
__wrap_WRK_BgThread(pthread_t *thread, const char *name, bgthread_t *func,
    void *priv)
{
	(void)thread;
	(void)name;
	AZ(priv);
	keeper = func;
}

/*--------------------------------------------------------------------
 * The kernel: edge-triggered events, sockets
 */

int
__wrap_epoll_ctl(int set, int op, int fd, struct epoll_event *ev)
{
	struct conn *c;

	if (fd == timer_fd)
		return (0);
	assert(set == epoll_fd && !locked);
	c = conn_of(fd);
	if (op == EPOLL_CTL_DEL) {
		assert(c->in_set);
		c->in_set = c->event = 0;
		return (0);
	}
	assert(op == EPOLL_CTL_ADD && !c->in_set);
	c->in_set = 1;
	c->event = readable(c);
	c->data = ev->data.u64;
	interrupt();
	return (0);
}

int
__wrap_epoll_wait(int set, struct epoll_event *ev, int max, int ms)
{
	unsigned i;
	int n = 0;

	assert(set == epoll_fd && !locked && max > CONNS);
	interrupt();
	while (!has_event() && ms < 0)
		switch_out(EPOLL);
	if (timer_event) {
		ev[n].events = EPOLLIN;
		ev[n++].data.u64 = UINT64_MAX;
		timer_event = 0;
	}
	for (i = 0; i < CONNS; i++) {
		if (!conns[i].event)
			continue;
		ev[n].events = (uint32_t)((conns[i].n > 0 ? EPOLLIN : 0) |
		    (conns[i].fin ? EPOLLIN | EPOLLRDHUP : 0) |
		    (conns[i].reset ? EPOLLHUP | EPOLLERR | EPOLLRDHUP : 0));
		ev[n++].data.u64 = conns[i].data;
		conns[i].event = 0;
	}
	polls++;
	interrupt();
	return (n);
}

int
__wrap_timerfd_settime(int fd, int how, const struct itimerspec *its,
    struct itimerspec *old)
{
	assert(fd == timer_fd && how == TFD_TIMER_ABSTIME && old == NULL);
	timer_event = 0;
	timer = its->it_value.tv_sec * 1000000000 + its->it_value.tv_nsec;
	return (0);
}

ssize_t
__wrap_recv(int fd, void *p, size_t len, int flags)
{
	struct conn *c = conn_of(fd);
	size_t l = c->n < len ? c->n : len;

	assert(flags & MSG_DONTWAIT && !locked);
	interrupt();
	errno = c->reset ? ECONNRESET : EAGAIN;
	if (c->reset || (c->n == 0 && !c->fin))
		return (-1);
	memcpy(p, c->bytes, l);
	if (flags & MSG_PEEK)
		return ((ssize_t)l);
	c->n -= (unsigned)l;
	memmove(c->bytes, c->bytes + l, c->n);
	interrupt();
	return ((ssize_t)l);
}

ssize_t
__wrap_send(int fd, const void *p, size_t len, int flags)
{
	(void)p;
	(void)flags;
	assert(!locked);
	return (conn_of(fd)->reset ? -1 : (ssize_t)len);
}

int
__wrap_poll(struct pollfd *p, nfds_t n, int ms)
{
	assert(n == 1 && ms == 0 && !locked);
	p->revents = conn_of(p->fd)->reset ? POLLHUP : 0;
	return (p->revents != 0);
}

int
__wrap_shutdown(int fd, int how)
{
	(void)how;
	conn_of(fd)->fin = 1;
	return (0);
}

int
__wrap_sched_yield(void)
{
	interrupt();
	return (0);
}

/*--------------------------------------------------------------------
 * HTTP/1: a request is a byte and a newline.  As http1_fsm.c calls us.
 */

static enum htc_status_e
complete(struct http_conn *htc)
{
	ssize_t l = htc->rxbuf_e - htc->rxbuf_b;

	return (l == 0 ? HTC_S_EMPTY : l == 1 ? HTC_S_MORE : HTC_S_COMPLETE);
}

/* As HTC_RxStuff(), with a thread: 1: a request, 0: end, -1: time-out */
static int
receive(struct req *req)
{
	struct http_conn *htc = req->htc;
	struct conn *c = conn_of(req->sp->fd);
	ssize_t l;
	int64_t until = (int64_t)((req->sp->t_idle +
	    (complete(htc) == HTC_S_EMPTY ? SESS_TMO(req->sp, timeout_linger) :
	    SESS_TMO(req->sp, timeout_idle))) * 1e9);

	while (complete(htc) != HTC_S_COMPLETE) {
		if (c->reset || (c->fin && c->n == 0))
			return (0);
		if (c->n == 0 && (the_time >= until || over))
			return (-1);
		if (c->n == 0) {
			block(c, NULL, until);
			continue;
		}
		l = __wrap_recv(req->sp->fd, htc->rxbuf_e, 2, MSG_DONTWAIT);
		if (l > 0)
			htc->rxbuf_e += l;
	}
	return (1);
}

static void
h1_end(struct req *req)
{
	struct sess *sp = req->sp;

	if (sp->fd >= 0)
		__wrap_SES_Close(sp, SC_REM_CLOSE);
	__wrap_Req_Release(req);
	__wrap_SES_Delete(sp, SC_REM_CLOSE, 0);
}

/* 1: it has left for a waiting list */
static int
h1_run(struct request *r)
{
	pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

	interrupt();
	switch (r->what / TENANTS % 4) {
	case 1:
		while (!r->answered && !over)
			(void)SPD_CondWait(&cond,
			    (struct lock *)(void *)&r->answered);
		break;
	case 2:
		if (r->sleeps || over)
			break;
		r->sleeps = 1;
		SPD_Disembark(&r->req);
		VTAILQ_INSERT_TAIL(&sleepers, r, list);
		return (1);
	case 3:
		/* Something that has no hook */
		if (!over)
			block(NULL, &r->answered, the_time + 300 * MS);
		break;
	default:
		break;
	}
	SPD_Answer(&r->req, 200);
	return (0);
}

/* Prepare for the next request of the connection.  Returns 0 if it closes. */
static int
h1_next(struct request *r)
{
	struct http_conn *htc = r->req.htc;
	size_t left;

	if (r->req.doclose != SC_NULL) {
		h1_end(&r->req);
		return (0);
	}
	r->parsed = 0;
	r->req.sp->t_idle = __wrap_VTIM_real();
	left = (size_t)(htc->rxbuf_e - htc->rxbuf_b) - 2;
	memmove(htc->rxbuf_b, htc->rxbuf_b + 2, left);
	htc->rxbuf_e = htc->rxbuf_b + left;
	return (1);
}

static void
h1_session(struct worker *wrk, struct req *req)
{
	struct request *r = (void *)req;
	struct sess *sp = req->sp;
	int refused = 0;

	while (1) {
		req->task->func = h1_task;
		req->task->priv = req;
		if (!r->parsed) {
			(void)SPD_Resumed(sp);
			if (SPD_Rx(wrk, req, complete))
				return;
			/* Behind a refusal others have their turn first */
			assert(!refused || spd_set.mode == SPD_OFF ||
			    complete(req->htc) != HTC_S_COMPLETE);
			switch (receive(req)) {
			case 0:
				h1_end(req);
				return;
			case -1:
				if (complete(req->htc) != HTC_S_EMPTY) {
					h1_end(req);
					return;
				}
				WS_ReleaseP(req->htc->ws, req->htc->rxbuf_b);
				__wrap_Req_Release(req);
				__wrap_SES_Wait(sp, &h1);
				return;
			default:
				break;
			}
			SPD_First(req);
			r->what = (uint8_t)*req->htc->rxbuf_b;
			r->parsed = 1;
			r->sleeps = r->answered = 0;
			req->htc->body_status = r->what & 128 ? BS_LENGTH :
			    BS_NONE;
			switch (SPD_Gate(wrk, req)) {
			case SPD_GATE_QUEUED:
				return;
			case SPD_GATE_REFUSED:
				AN(spd_conn_fd(sp->fd)->tenant);
				SPD_Done(wrk, req);
				if (!h1_next(r))
					return;
				refused = 1;
				continue;
			default:
				break;
			}
		}
		if (!SPD_Begin(wrk, req) && h1_run(r))
			return;
		SPD_Done(wrk, req);
		if (!h1_next(r))
			return;
		refused = 0;
	}
}

static void
h1_task(struct worker *wrk, void *priv)
{
	struct req *req;

	CAST_OBJ_NOTNULL(req, priv, REQ_MAGIC);
	h1_session(wrk, req);
	SPD_Next(wrk);
}

static void
h1_new(struct worker *wrk, void *priv)
{
	wrk->task->func = h1_task;
	wrk->task->priv = priv;
}

static void
proxy_new(struct worker *wrk, void *priv)
{
	struct req *req;

	CAST_OBJ_NOTNULL(req, priv, REQ_MAGIC);
	interrupt();
	req->transport = &h1;
	wrk->task->func = h1_new;
	wrk->task->priv = req;
}

static void
h1_unwait(struct worker *wrk, void *priv)
{
	struct sess *sp;

	CAST_OBJ_NOTNULL(sp, priv, SESS_MAGIC);
	WS_Release(sp->ws, 0);
	wrk->task->func = h1_task;
	wrk->task->priv = new_request(sp);
}

/*--------------------------------------------------------------------
 * Threads
 */

static void
run_worker(struct thread *t)
{
	struct pool *pp = t->wrk->pool;
	struct pool_task *p, task;

	while (1) {
		WS_Rollback(t->wrk->aws, 0);
		p = next_task(pp);
		if (p != NULL) {
			task = *p;
		} else {
			pp->nidle++;
			switch_out(IDLE);
			task = *t->wrk->task;
		}
		do {
			memset(t->wrk->task, 0, sizeof t->wrk->task);
			tasks++;
			task.func(t->wrk, task.priv);
			assert(!locked);
			task = *t->wrk->task;
		} while (task.func != NULL);
		assert(t->me.magic != SPD_WORKER_MAGIC || t->me.slot < 0);
	}
}

static void
make(struct worker *wrk, void *arg)
{
	static uint64_t vxid;
	struct conn *c = *(struct conn **)arg;
	struct session *s = calloc(1, sizeof *s);
	struct req *req;

	AN(s);
	if (WS_IsReserved(wrk->aws))
		WS_Release(wrk->aws, 0);
	live++;
	INIT_OBJ(&s->sp, SESS_MAGIC);
	s->sp.fd = FD + (int)(c - conns);
	s->sp.vxid.vxid = ++vxid;
	s->sp.pool = &pools[(c - conns) % POOLS];
	s->sp.t_idle = s->sp.t_open = __wrap_VTIM_real();
	s->sp.timeout_idle = s->sp.timeout_linger = NAN;
	WS_Init(s->sp.ws, "ses", s->ws, sizeof s->ws);
	c->sp = &s->sp;
	req = &new_request(&s->sp)->req;
	if (c->proxy)
		req->transport = &proxy;
	wrk->task->func = req->transport->new_session;
	wrk->task->priv = req;
}

static void
run_acceptor(struct thread *t)
{
	struct conn *c;
	struct req *req;
	unsigned i = 0, none = 0;

	while (1) {
		c = &conns[i++ % CONNS];
		if (!c->open || c->accepted) {
			if (++none == CONNS) {
				block(NULL, NULL, INT64_MAX);
				i = none = 0;
			}
			continue;
		}
		none = 0;
		c->accepted = c->served = 1;
		if (SPD_Accept(t->wrk, make, &c, sizeof c))
			continue;
		make(t->wrk, &c);
		CAST_OBJ_NOTNULL(req, t->wrk->task->priv, REQ_MAGIC);
		*req->task = *t->wrk->task;
		memset(t->wrk->task, 0, sizeof t->wrk->task);
		AZ(__wrap_Pool_Task(req->sp->pool, req->task, TASK_QUEUE_REQ));
	}
}

static void
run_waiter(struct thread *t)
{
	struct pool_task *task;
	struct sess *sp;
	struct conn *c;
	unsigned i = 0, none = 0;

	(void)t;
	while (1) {
		c = &conns[i++ % CONNS];
		if (!c->in_waiter || !readable(c)) {
			if (++none == CONNS) {
				block(NULL, NULL, INT64_MAX);
				i = none = 0;
			}
			continue;
		}
		none = 0;
		c->in_waiter = 0;
		sp = c->sp;
		task = WS_Reservation(sp->ws);
		task->func = h1_unwait;
		task->priv = sp;
		if (!SPD_Ready(sp, task))
			AZ(__wrap_Pool_Task(sp->pool, task, TASK_QUEUE_REQ));
	}
}

static void
run_keeper(struct thread *t)
{
	(void)keeper(t->wrk, NULL);
}

/*--------------------------------------------------------------------
 * Judgement
 */

/* Slots that a worker or a granted request has */
static uint64_t
slots_used(void)
{
	uint64_t used = 0;
	struct spd_worker *w;
	struct rel_node *n;
	unsigned s, i;

	for (s = 0; s < 64; s++) {
		w = slot_owner[s];
		if (w == NULL)
			continue;
		assert(w->slot == (int)s);
		used |= 1ULL << s;
	}
	for (i = 0; i < CONNS; i++) {
		if (!conns[i].served || record[i]->sp != conns[i].sp ||
		    record[i]->state != SPD_QUEUED)
			continue;
		n = SPD_NODE((struct req *)record[i]->priv);
		if (n->state == REL_RUNNING &&
		    SPD_REQUEST(n)->flags & SPD_F_GRANTED)
			used |= 1ULL << n->slot;
	}
	return (used);
}

static unsigned
in_state(enum spd_conn_state state)
{
	unsigned i, n = 0;

	for (i = 0; i < CONNS; i++)
		n += record[i]->state == state;
	return (n);
}

static void
judge(void)
{
	unsigned i, lends = 0, parsing = 0, leads = 0, taken = 0, waits = 0;
	int64_t measured = lap_sum;
	struct rel_node *n;

	assert(slots_used() == slot_map[0]);
	for (i = 0; i < SPD_SLOTS_MAX / 64; i++)
		taken += (unsigned)__builtin_popcountll(slot_map[i]);
	assert(taken == running && spd_vsc->running == taken);
	for (i = 0; i < WORKERS; i++) {
		lends += threads[i].me.lent;
		parsing += threads[i].me.parsing;
		leads += threads[i].state == EPOLL;
	}
	for (i = 0; i < THREADS; i++)
		measured += threads[i].me.laps;
	assert(measured == laps);
	assert(lends == lent && spd_vsc->lent == lent);
	assert((int64_t)spd_vsc->lendings >= lent);
	assert(parsing <= parsers);		/* it ends without the lock */
	assert(leads <= 1 && leader >= (int)leads);
	for (i = 0; i < CONNS; i++) {
		assert(record[i]->state == SPD_BUSY || (conns[i].served &&
		    conns[i].sp == record[i]->sp && !conns[i].in_waiter));
		if (record[i]->state != SPD_QUEUED)
			continue;
		n = SPD_NODE((struct req *)record[i]->priv);
		waits += REL_IsBacklogged(n);
	}
	assert(in_state(SPD_PARKED) == nparked);
	assert(spd_vsc->lingering == nparked);
	assert(in_state(SPD_READY) == nready);
	assert(spd_vsc->ready == nready);
	assert(waits == REL_Waiting(spd_rel));
	assert(spd_vsc->waiting == waits);
}

/* Threads that Sandpaper may have, and the leader */
static unsigned
free_threads(void)
{
	unsigned i, n = 0;

	for (i = 0; i < WORKERS; i++)
		n += threads[i].state == EPOLL;
	n += (unsigned)deputy;
	for (i = 0; i < POOLS; i++)
		n += pools[i].nidle > reserved(TASK_QUEUE_RUSH);
	return (n);
}

/* What is ready is nobody's, and somebody looks again soon */
static int
held_back(void)
{
	spd_lock();
	assert(nready == nobodys);
	spd_unlock();
	return (deputy || (timer_at > 0 &&
	    timer_at <= the_time + SPD_NAP));
}

/* No worker can go on.  This must hold before the keeper looks, unless it is at
 * work, or a parameter has changed. */
static void
judge_early(void)
{
	if (threads[KEEPER].state != BLOCKED || changed ||
	    free_threads() == 0 || deputy)
		return;
	assert(nready == 0 || held_back());
	if (running >= nopen)
		return;
	assert(REL_Waiting(spd_rel) == 0);
	assert(leader || cache_param->sandpaper == SPD_OFF);
}

/* Nobody can go on, and the keeper has looked */
static void
judge_rest(void)
{
	unsigned i;

	changed = 0;
	assert(spd_vsc->harvests == polls);
	if (free_threads() == 0)
		return;
	assert(nready == 0 || held_back());
	assert(in_state(SPD_QUEUED) == REL_Waiting(spd_rel));
	if (cache_param->sandpaper != SPD_OFF)
		assert(leader || deputy);
	if (running >= nopen)
		return;
	assert(REL_Waiting(spd_rel) == 0);
	if (cache_param->sandpaper == SPD_OFF) {
		assert(nparked == 0);
		return;
	}
	for (i = 0; i < CONNS; i++)
		assert(record[i]->state != SPD_PARKED || !readable(&conns[i]));
}

/*--------------------------------------------------------------------
 * Actions
 */

/* One that can go on, the nth; 0: none */
static int
step(unsigned nth, unsigned of)
{
	struct thread *can[THREADS];
	unsigned i, n = 0;

	for (i = 0; i < of; i++)
		if (can_go_on(&threads[i]))
			can[n++] = &threads[i];
	if (n == 0)
		return (0);
	run_on(can[nth % n]);
	judge();
	return (1);
}

static void
settle(void)
{
	unsigned i, n = 0;
	uint64_t before;

	for (i = 0; i < 3; i++) {
		while (step(n, i == 0 ? KEEPER : THREADS))
			assert(++n < STEPS);
		if (i == 0)
			judge_early();
		the_time += 51 * MS;
	}
	/* What the deputy leaves to others is older after two naps than it waits.
	 * Nothing has happened in the last naps but these. */
	for (i = 0; i < 4; i++) {
		before = tasks;
		while (step(n, KEEPER))
			assert(++n < STEPS);
		if (tasks != before)
			i = 0;
		the_time += 2 * MS;
	}
	judge_rest();
}

static void
client(struct fuzz_in *in)
{
	struct conn *c = &conns[fuzz_below(in, CONNS)];
	uint8_t what = fuzz_byte(in);

	if (!c->open) {
		c->open = 1;
		c->proxy = what % 8 == 0;
		return;
	}
	if (c->fin || c->reset)
		return;
	if (c->n == 0)
		c->came = the_time;
	switch (what % 8) {
	case 0:
		c->fin = 1;
		break;
	case 1:
		c->reset = 1;
		break;
	case 2:
		if (c->n < BYTES)
			c->bytes[c->n++] = (char)fuzz_byte(in);
		break;
	default:
		if (c->n + 2 > BYTES)
			return;
		c->bytes[c->n++] = (char)fuzz_byte(in);
		c->bytes[c->n++] = '\n';
		break;
	}
	c->event |= c->in_set;
}

/* An origin answers, or a waiting list is woken */
static void
answer(struct fuzz_in *in)
{
	struct thread *t = &threads[fuzz_below(in, WORKERS)];
	struct request *r = VTAILQ_FIRST(&sleepers);

	if (t->state == BLOCKED && t->flag != NULL && fuzz_byte(in) & 1) {
		*t->flag = 1;
	} else if (r != NULL) {
		VTAILQ_REMOVE(&sleepers, r, list);
		AZ(__wrap_Pool_Task(r->req.sp->pool, r->req.task,
		    TASK_QUEUE_REQ));
	}
}

static void
parameter(struct fuzz_in *in)
{
	unsigned what = fuzz_byte(in);

	changed = 1;
	switch (what % 8) {
	case 0:
		params.sandpaper = SPD_OFF;
		break;
	case 1:
		params.sandpaper = SPD_OBSERVE;
		break;
	case 2:
	case 3:
		params.sandpaper_workers_per_core = 1 + what / 8 % 3;
		break;
	case 4:
		params.sandpaper_queue_limit = 1 + what / 8 % 4;
		break;
	default:
		params.sandpaper = SPD_ON;
		break;
	}
}

static void
begin_thread(struct thread *t)
{
	unsigned i = (unsigned)(t - threads);

	INIT_OBJ(t->wrk, WORKER_MAGIC);
	INIT_OBJ(t->wpriv, WORKER_PRIV_MAGIC);
	t->wrk->wpriv = t->wpriv;
	t->wrk->stats = &t->stats;
	t->wrk->pool = &pools[i % POOLS];
	WS_Init(t->wrk->aws, "wrk", t->aws, sizeof t->aws);
	t->run = i < WORKERS ? run_worker : i == ACCEPTOR ? run_acceptor :
	    i == WAITER ? run_waiter : run_keeper;
	t->stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert(t->stack != MAP_FAILED);
	AZ(getcontext(&t->ctx));
	t->ctx.uc_stack.ss_sp = t->stack;
	t->ctx.uc_stack.ss_size = STACK;
	t->ctx.uc_link = NULL;
	makecontext(&t->ctx, thread_begins, 0);
}

static void
defaults(void)
{
	changed = 1;
	params.sandpaper = SPD_ON;
	params.sandpaper_workers_per_core = 2;
	params.sandpaper_queue_limit = 10;
}

static void
setup(void)
{
	struct sess sp = { .magic = SESS_MAGIC };
	unsigned i, q;

	over = 0;
	rate = 0;
	defaults();
	if (cache_param != NULL)
		return;
	cache_param = &params;
	params.sandpaper_policy = (unsigned)REL_PolicyByName("mr3-rs");
	params.sandpaper_cores = 1;
	params.sandpaper_mtu = 1500;
	params.sandpaper_header = 64;
	params.sandpaper_sample = .2;
	params.sandpaper_alpha = .9;
	params.sandpaper_tenants_max = 100;
	params.sandpaper_queue_total = 1000;
	params.sandpaper_queue_timeout = 2;
	params.sandpaper_overload = (unsigned)OVL_ByName("time");
	params.sandpaper_target = .05;
	params.sandpaper_standing = .02;
	params.sandpaper_retry_after = 30;
	params.sandpaper_new_hosts = SPD_NEW_TENANT;
	params.wthread_max = WORKERS;
	params.wthread_min = WORKERS;
	params.wthread_pools = POOLS;
	params.timeout_linger = .05;
	params.timeout_idle = 5;
	params.http_req_size = 16;
	strcpy(params.sandpaper_counter.name, "auto");
	spd_me_p = &fuzzer_me;
	for (i = 0; i < POOLS; i++) {
		INIT_OBJ(&pools[i], POOL_MAGIC);
		for (q = 0; q < TASK_QUEUE_RESERVE; q++)
			VTAILQ_INIT(&pools[i].queues[q]);
		SPD_Pool(&pools[i], 1);
	}
	HTTP_Init();
	SPD_Init();
	for (i = 0; i < THREADS; i++)
		begin_thread(&threads[i]);
	for (i = 0; i < CONNS; i++) {
		sp.fd = FD + (int)i;
		record[i] = spd_conn(&sp);
		AN(record[i]);
	}
}

/* Clients go, origins answer, all that can time out does */
static void
teardown(void)
{
	struct request *r;
	unsigned i, round;

	over = 1;
	defaults();
	rate = 0;
	for (round = 0; round < 8; round++) {
		for (i = 0; i < CONNS; i++) {
			if (!conns[i].open)
				continue;
			conns[i].fin = 1;
			conns[i].event = conns[i].in_set;
		}
		while ((r = VTAILQ_FIRST(&sleepers)) != NULL) {
			VTAILQ_REMOVE(&sleepers, r, list);
			AZ(__wrap_Pool_Task(r->req.sp->pool, r->req.task,
			    TASK_QUEUE_REQ));
		}
		settle();
		the_time += 1000 * MS;
	}
	assert(live == 0);
	assert(running == 0 && lent == 0 && parsers == 0);
	assert(nready == 0 && nparked == 0);
	assert(REL_Waiting(spd_rel) == 0 && REL_Running(spd_rel) == 0);
	assert(spd_vsc->enqueued ==
	    spd_vsc->completed + spd_vsc->cancelled);
	assert(writers == 0 && fetches == 0);
	for (i = 0; i < WORKERS; i++)
		assert(threads[i].state == IDLE || threads[i].state == EPOLL);
	/* The leader, too, goes home */
	params.sandpaper = SPD_OFF;
	settle();
	assert(leader == 0 && summoned == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const int64_t times[] = { MS / 10, MS, 20 * MS, 60 * MS,
	    250 * MS, 1100 * MS, 6000 * MS, 0 };
	struct fuzz_in in = { .p = data, .left = size };

	setup();
	rate = fuzz_byte(&in);
	schedule = 1 + fuzz_byte(&in);
	settle();
	while (in.left > 0) {
		switch (fuzz_below(&in, 16)) {
		case 0:
		case 1:
		case 2:
		case 3:
			client(&in);
			break;
		case 4:
			answer(&in);
			break;
		case 5:
			parameter(&in);
			break;
		case 6:
			the_time += times[fuzz_below(&in, 8)];
			break;
		case 7:
			settle();
			break;
		default:
			(void)step(fuzz_byte(&in), THREADS);
			break;
		}
		judge();
	}
	teardown();
	return (0);
}
#endif
