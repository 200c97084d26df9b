/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The types, variables and functions that the files of src/varnishd share.
 *
 * The state is one `struct spd` for the process and one `struct spd_worker` for
 * each thread.  Each connection has one `struct spd_conn`.
 *
 * A thread that holds a lock of Varnish may take the lock `sandpaper`.  A
 * thread that holds `sandpaper` takes no other lock
 * (doc/internals/locking.md):
 *
 *	cli, sess, busyobj  ->  sandpaper  ->  (none)
 *
 * Under `sandpaper` no thread calls Pool_Task(), writes a log record or makes
 * a system call.  locking.md lists the exceptions.  A comment "locked" means:
 * the caller holds spd_lock().
 *
 * A connection between two requests has no thread.  A request that waits is
 * in the releaser.  A request that runs holds one slot, through its worker.
 * The states of a connection are:
 *
 *	          park                    event
 *	BUSY  ---------->  PARKED  ------------------>  READY
 *	  ^                   | linger over                | a worker parses
 *	  |                   v                            v
 *	  |               Varnish's waiter               BUSY
 *	  |        begin                 gate              |
 *	  '-------------------  QUEUED  <------------------'
 *
 * "Linger over" is for a connection without a part of a request.  With a part,
 * the deadline moves it from PARKED to READY.  A reset by the client, or a wait
 * of sandpaper_queue_timeout, moves it from QUEUED to READY.
 */

#include <stdatomic.h>
#include <stddef.h>

#include <sys/uio.h>

#include "cache/cache_varnishd.h"
#include "cache/cache_pool.h"
#include "cache/cache_transport.h"

#include "vqueue.h"

#include "varnishd/compat.h"

#include "perfctr/account.h"
#include "perfctr/meter.h"
#include "perfctr/nic.h"
#include "poolmgr/poolmgr.h"
#include "releaser/releaser.h"
#include "tenants/newhosts.h"
#include "tenants/table.h"

#include "varnishd/sandpaper.h"
#include "varnishd/spd_names.h"

#include "VSC_sandpaper.h"

#define SPD_SLOTS_MAX		16384		/* bits in spd.slots */
#define SPD_HARVEST		200000		/* ns between two looks */
#define SPD_NAP			1000000		/* ns, a sleep of the deputy */

/*--------------------------------------------------------------------
 * A tenant: the fields that the releaser does not need.  The lock guards all
 * of them.  Only cpu_next may be read without the lock.
 */

struct spd_conn;

struct spd_tenant {
	unsigned		magic;
#define SPD_TENANT_MAGIC	0x5a9d7e4a
	unsigned		queue_limit;	/* requests; 0: the parameter
						 * sandpaper_queue_limit */
	struct rel_tenant	*rel;		/* in the same record */
	struct spd_tenant	*group;		/* NULL: in no group */
	const struct spd_map	*map;		/* the VCL's map that pins the
						 * tenant, or NULL */
	struct newhost		newhost;	/* NONE: neither new nor
						 * proven */
	struct account		account;
	struct acc_key		key;		/* ns of CPU; bytes on net */
	_Atomic int64_t		cpu_next;	/* ns of CPU, the estimate */
	int64_t			owed[REL__RESOURCES];	/* ns: spd_charge() */
	int64_t			fixed[REL__RESOURCES];	/* ns; 0: not fixed by
							 * debug.sandpaper.cost
							 */

	VTAILQ_HEAD(, spd_conn)	ready;		/* connections to parse */
	VTAILQ_ENTRY(spd_tenant) readylist;	/* in spd.readylist */
	/* In the record of (new): those of all members.  Each counts there
	 * until it ends, even if the tenant leaves (new) before. */
	unsigned		writers;	/* workers with a slow reader */
	unsigned		fetches;	/* waiting for a thread, or
						 * running */
	int64_t			refusal;	/* ns, when the next stream may
						 * be refused */

	/* In a group's record: the sum over its members, see SPD_COUNT() */
	uint64_t		requests;	/* done */
	uint64_t		refused;	/* queue full, waited too long,
						 * or a fetch over the limit */
	uint64_t		gone;		/* reset before they began */
	uint64_t		shed;		/* too many slow readers */
	int64_t			cpu_ns;		/* measured or estimated */
	uint64_t		bytes;		/* sent to clients */
	int64_t			wait_ns;	/* in the queue */
};

/* Add n to a counter of the tenant, and to that of its group.  Locked. */
#define SPD_COUNT(t, field, n)					\
	do {							\
		(t)->field += (n);				\
		if ((t)->group != NULL)				\
			(t)->group->field += (n);		\
	} while (0)

/*
 * Return the size of struct spd_tenant in a tenant's record, in bytes.  The
 * releaser's part of the record follows it, aligned to 64 bytes.
 */
static inline size_t
spd_own_size(void)
{

	return ((sizeof(struct spd_tenant) + 63) & ~(size_t)63);
}

static inline struct spd_tenant *
spd_tenant_rel(struct rel_tenant *rel)
{
	struct spd_tenant *t;

	t = (void *)((char *)rel - spd_own_size());
	CHECK_OBJ_NOTNULL(t, SPD_TENANT_MAGIC);
	return (t);
}

static inline const char *
spd_name(const struct spd_tenant *t)
{

	return (TEN_OfHost(TRUST_ME(t))->name);
}

/* Sandpaper's own tenants and groups.  TEN_OTHER, "(other)", is one more. */
#define SPD_UNKNOWN	"(unknown)"	/* Hosts that the VCL's map does not
					 * name */
#define SPD_NEW		"(new)"		/* a group, see spd_new.c */
#define SPD_NOHOST	"(none)"	/* requests without a Host, or with one
					 * that is empty or begins with "(" */

/* A limit that a tenant has reached, for the log */
struct spd_excess {
	const char		*what;
	unsigned		value, limit;
	char			tenant[TEN_NAME_MAX + 1];
};

/*--------------------------------------------------------------------
 * A client's connection.  The table of spd_conn.c has one record for each file
 * descriptor.  In state BUSY the fields belong to the worker that reads from
 * the connection.  In all other states the lock guards them.  The thread that
 * harvests the epoll set writes pending, hup and fin in any state.
 */

enum spd_conn_state {
	SPD_BUSY = 0,		/* a worker or Varnish's waiter owns it */
	SPD_PARKED,		/* waits for bytes, without a thread */
	SPD_READY,		/* waits to be parsed, or ended */
	SPD_QUEUED		/* its request waits in the releaser */
};

struct spd_conn {
	VTAILQ_ENTRY(spd_conn)	list;		/* READY: of its tenant's list;
						 * PARKED, partial: of parts */
	unsigned		idx;		/* PARKED: in the heap */
	task_func_t		*func;		/* the task, when READY */
	void			*priv;
	struct sess		*sp;
	uint64_t		vxid;		/* of sp: shows reuse of fd */
	struct spd_tenant	*tenant;	/* of its last request */
	uint32_t		generation;	/* of that tenant's record */
	int64_t			deadline;	/* ns, METER_Now() */
	vtim_real		t_first;	/* s, when the first part of a
						 * request came; 0: no part */
	int			fd;
	uint8_t			state;		/* enum spd_conn_state */
	uint8_t			armed;		/* in the epoll set */
	_Atomic uint8_t		pending;	/* event while not PARKED */
	uint8_t			drained;	/* the socket was read empty */
	uint8_t			partial;	/* has a part of a request */
	uint8_t			expired;	/* a part's deadline passed */
	_Atomic uint8_t		hup;		/* the client has reset it */
	_Atomic uint8_t		fin;		/* the client sends no more */
	uint8_t			blocking;	/* the socket is blocking */
	char			*part;		/* of a request: spd_part.c */
	size_t			part_len, part_size;	/* bytes; room, bytes */
	htc_complete_f		*complete;	/* is the part a request? */
	/* The fields from here on survive a reuse of the fd. */
	_Atomic uint8_t		left;		/* orders two uses of the fd */
	uint32_t		serial;		/* of this use of the fd */
};

/*--------------------------------------------------------------------
 * A request: the releaser's node, at most 64 bytes in struct req.  While the
 * request waits, the releaser owns the node.  While the request runs, its
 * worker does.
 */

#define SPD_NODE(req)	((struct rel_node *)(void *)(req)->sandpaper)
_Static_assert(sizeof(struct rel_node) <=
    sizeof ((struct req *)0)->sandpaper, "a node fits into a request");

static inline struct req *
spd_req_of(struct rel_node *node)
{
	struct req *req;

	req = (void *)((char *)node - offsetof(struct req, sandpaper));
	CHECK_OBJ_NOTNULL(req, REQ_MAGIC);
	return (req);
}

/* Words of the node that the releaser leaves to varnishd.  When a released
 * request begins, its waiting time replaces its arrival time. */
#define SPD_FLAGS(n)	((n)->host[0])
#define SPD_CPU(n)	((n)->host[1])		/* CPU so far, in 16 ns */
#define SPD_WAIT(n)	((n)->arrival)		/* ns */

#define SPD_F_GRANTED	(1U << 0)	/* released, not yet begun */
#define SPD_F_DRAWN	(1U << 1)	/* drawn: its CPU is to be measured */
#define SPD_F_GONE	(1U << 2)	/* cancelled: reset by the client */
#define SPD_F_H2	(1U << 3)	/* an HTTP/2 stream */
#define SPD_F_SLOW	(1U << 4)	/* its client is a slow reader */
#define SPD_F_SENDING	(1U << 5)	/* REL_Progress() was called for net */
#define SPD_F_LATE	(1U << 6)	/* cancelled: waited for too long */
#define SPD_F_GOOD	(1U << 7)	/* its status is 200 to 399 */
#define SPD_COUNTED_SHIFT 8		/* upper 24 bits: its wire bytes in the
					 * backlog of net */

/*--------------------------------------------------------------------
 * A worker, in thread-local memory.  A slot belongs to the worker, not to its
 * request.  Only the worker's thread writes the fields.  The exception is the
 * last block: the keeper writes that under the lock.
 */

struct spd_worker {
	unsigned		magic;
#define SPD_WORKER_MAGIC	0x5a9d3042
	_Atomic int		slot;		/* -1: none */
	unsigned		lent;		/* its slot, while it waits */
	unsigned		parsing;	/* counted in spd.parsers */
	unsigned		parsed;		/* connections, in a row */
	unsigned		turns;		/* tasks since Pool_Sumstat() */
	/* The node of the request that runs here, or NULL.  For a thread that
	 * holds the lock: this request is running.  The thread that completes
	 * the request clears this field in the same hold of the lock. */
	_Atomic(struct rel_node *) node;
	int64_t			charge;		/* ns, of the request, at its
						 * release */
	struct spd_conn		*conn;		/* read from last, or NULL */
	struct spd_conn		*parks;		/* to be parked, or NULL */
	int64_t			parks_for;	/* ns, timeout of parks */
	struct rel_node		*picked;	/* released by this worker for
						 * itself, at `began` */
	unsigned		napped;		/* it was the deputy just now */
	unsigned		late;		/* no worker looked at the set
						 * during its nap */
	uint64_t		nap_released;	/* vsc->released before a nap */
	const void		*impatient;	/* condition variable, or node
						 * that reads a body: the next
						 * wait for it lends at once */
	struct spd_tenant	*writer_of;	/* (new), while its request
						 * counts there as a writer */
	_Atomic int64_t		began;		/* ns, start of its request */
	int64_t			unmeasured;	/* ns of CPU, estimated since
						 * the last lap */
	int64_t			laps;		/* ns, not yet in spd.lap_sum */
	/* CPU time outside of requests, see spd_cost.c */
	struct spd_tenant	*payer;		/* NULL: no tenant pays */
	uint32_t		payer_generation;
	unsigned		turn_drawn;	/* this turn is measured */
	int64_t			owed, unowned;	/* ns: by the payer; by none */
	uint64_t		sent;		/* bytes, of its request */
	/* A pipe's bytes to the client, and how many of them were charged */
	uint64_t		pipe_out, piped;
	/* ns: charged for the pipe so far; when it was last charged */
	int64_t			piped_cpu, piped_net, piped_at;
	int64_t			fresh;		/* ns, when it last woke up or
						 * yielded */
	int64_t			blocked;	/* ns, in its writes */
	uint64_t		rnd;		/* state of spd_drawn() */
	struct meter		meter[1];
	/* Constant, for the keeper */
	clockid_t		clock;		/* its CPU clock */
	pid_t			tid;
	/* The keeper's: `began` and CPU clock at the last progress, and when
	 * that was, ns */
	int64_t			looked_began, looked_cpu, still;
	int64_t			first_cpu;	/* ns, CPU clock at the first
						 * look at this request */
};

/* Set the request that runs on this worker, or NULL. */
static inline void
spd_runs(struct spd_worker *me, struct rel_node *n)
{

	atomic_store_explicit(&me->node, n, memory_order_release);
}

/*--------------------------------------------------------------------
 * The state of the process
 */

enum spd_address {			/* a better address is larger */
	SPD_ADDRESS_NONE = 0,
	SPD_ADDRESS_LOOPBACK,
	SPD_ADDRESS_OUTSIDE
};

struct spd {
	unsigned		magic;
#define SPD_MAGIC		0x5a9d9a9e
	/* Set at start */
	struct VSC_sandpaper	*vsc;
	int			epoll;
	int			timer;		/* in the epoll set: wakes the
						 * leader, see spd_timer() */

	/* Written by the keeper.  Read by all threads without the lock. */
	_Atomic(const struct meter_source *) source;
	_Atomic enum spd_mode	mode;
	_Atomic int		live;		/* 0: off, and drained */
	_Atomic int64_t		residual;	/* ns of CPU, a request */
	_Atomic unsigned	cores;
	_Atomic uint64_t	rate;		/* bits/s, for costs of net */
	_Atomic unsigned	parsers_max;	/* P */
	_Atomic double		sample;		/* p, 0 to 1 */
	_Atomic int		synchronised;	/* REL_Synchronised() */
	_Atomic int		link_busy;	/* net, in the last epoch */
	/* The same, but written by the worker that looks */
	_Atomic int64_t		harvested;	/* ns, last look at the set */

	/* Guarded by the lock.  The _Atomic fields are also read without it. */
	struct rel		*rel;
	struct ten_table	*tenants;
	struct spd_tenant	*new_group;	/* (new); NULL: new Hosts are
						 * tenants */
	struct nic		nic[1];
	const struct spd_tenant	*asked;		/* tenant of the last request */
	int64_t			shared;		/* ns, until then net counts as
						 * used by several tenants */
	struct acc_costs	costs;
	unsigned		limit;		/* slots: W if on, else
						 * SPD_SLOTS_MAX / 2 */
	_Atomic unsigned	running;	/* slots taken */
	unsigned		lent;		/* slots lent */
	unsigned		parsers;	/* workers that parse */
	int			leader;		/* a worker is in epoll_wait */
	int			deputy;		/* a worker naps */
	int			summoned;	/* a worker was called and has
						 * not come yet */
	int			frozen;		/* debug.sandpaper.freeze */
	unsigned		steps;		/* releases while frozen */
	uint64_t		refuse;		/* debug.sandpaper.fail: bit 0
						 * is for the next request */
	int64_t			timer_at;	/* ns, 0: not set */
	unsigned		slots_max;	/* slots there can be; only
						 * whole words of 64 count */
	uint64_t		slots[SPD_SLOTS_MAX / 64];	/* bit: taken */
	_Atomic(struct spd_worker *) owner[SPD_SLOTS_MAX];
	VTAILQ_HEAD(, spd_tenant) readylist;	/* with READY connections */
	_Atomic unsigned	nready;		/* connections READY */
	_Atomic unsigned	nparked;	/* connections PARKED */
	unsigned		parts_ready;	/* of nready: with a part */
	unsigned		nobodys;	/* of nready: without tenant */
	int64_t			lap_sum;	/* ns, laps of all threads */
	int64_t			nobody;		/* ns of CPU, a token bucket:
						 * spd_nobody_may() */
	int64_t			nobody_at;	/* ns, last change of nobody */
	uint64_t		nrequests;	/* requests and fetches done */
	_Atomic enum spd_address address;	/* kind of addr */
	struct sockaddr_storage	addr;		/* local address that a client
						 * has connected to */
	unsigned		h2_sessions;
	unsigned		fetches;
	unsigned		writers;	/* workers with a slow reader */
};

extern struct spd spd;
extern __thread struct spd_worker spd_me;
extern pthread_key_t spd_key;

/* Return the time on net, ns, of bytes on the wire. */
static inline int64_t
spd_net(int64_t wire)
{

	return ((int64_t)((double)wire * 8e9 / (double)spd.rate));
}

/*--------------------------------------------------------------------
 * The files, in the order of FLOORS.  A file calls only functions of floors
 * below its own.
 */

/* spd_lock.c */
#define SPD_PAUSE	8		/* steps of a loop in one hold */
extern __thread int spd_holds;	/* this thread holds the lock */
#define SPD_LOCKED()	AN(spd_holds)
#define spd_lock()	spd_lock_at(__func__, __LINE__)
#define spd_unlock()	spd_unlock_at(__func__, __LINE__)
#define spd_pause(step)	spd_pause_at(step, __func__, __LINE__)
void spd_lock_init(void);
void spd_lock_at(const char *func, int line);
void spd_unlock_at(const char *func, int line);
void spd_pause_at(unsigned step, const char *func, int line);
void spd_lock_cli(void);

/* spd_thread.c */
struct spd_worker *spd_self(void);
void spd_thread_ends(void *);
int64_t spd_lap(struct spd_worker *, int wanted);
int spd_drawn(struct spd_worker *);
void spd_log_start(void);
void spd_counter(void);

/* spd_slot.c */
int spd_take(void);				/* locked */
void spd_own(struct spd_worker *, int slot);
void spd_retake(struct spd_worker *);		/* locked */
void spd_give(int slot);			/* locked */
int spd_robbed(const struct spd_worker *);	/* locked */
void spd_give_mine(struct spd_worker *);	/* locked */
int spd_holds_slot(void);

/* spd_iface.c */
int spd_link(const struct sockaddr_storage *, uint64_t *tx_bytes,
    uint64_t *backlog, int *paced, uint64_t *speed, char *name, size_t);

/* spd_link.c */
void spd_link_init(void);
void spd_link_seen(const struct sess *);
void spd_set_rate(void);			/* locked */
void spd_learn(int64_t now);
void spd_note_user(const struct spd_tenant *, int64_t now);	/* locked */
int spd_link_busy(int64_t now);

/* spd_part.c */
void spd_part_limit(void);
void spd_part_parked(struct spd_conn *, int parked);	/* locked */
struct spd_conn *spd_part_excess(void);		/* locked */
int spd_many_parts(void);			/* locked */
ssize_t spd_recv(struct spd_conn *, char *, size_t);
int spd_part_keep(struct worker *, struct spd_conn *);
int spd_part_grows(struct spd_conn *);
void spd_part_again(struct worker *, struct spd_conn *);

/* spd_cost.c */
void spd_unowned(struct spd_worker *);
void spd_unowned_now(struct spd_worker *);
void spd_owe(struct spd_worker *);
int64_t spd_take_owed(struct spd_worker *);
/* The following are locked */
void spd_charge(struct spd_tenant *, int64_t cpu, int64_t net, int64_t now);
void spd_pay(struct spd_tenant *, int64_t now);
void spd_sum_laps(struct spd_worker *);
void spd_pays(struct spd_worker *, struct spd_tenant *);
void spd_turn_to(struct spd_worker *, struct spd_tenant *, int64_t now);
int spd_nobody_may(int64_t now);
void spd_estimate(struct spd_tenant *);
void spd_costs(unsigned policy);
void spd_refresh(const struct spd_worker *, int64_t cpu, int64_t now);

/* spd_new.c: all locked, except spd_new_keep() */
struct spd_new_stat {
	unsigned		hosts, evident, proven;
	int			crowded;
};
void spd_new_begin(struct spd_tenant *);
void spd_new_end(struct spd_tenant *);
void spd_new_answer(struct spd_tenant *, int good, int64_t now);
struct spd_tenant *spd_new_liable(struct spd_tenant *);
int spd_new_stays(const struct spd_tenant *);
void spd_new_stat(struct spd_new_stat *);
unsigned spd_new_seconds(const struct spd_tenant *, int64_t now);
void spd_new_age(int64_t ns);
void spd_new_params(void);
void spd_new_keep(int64_t now);

/* spd_hostmap.c */
size_t spd_map_name(const char *host, size_t, char *name);
unsigned spd_map_serial(void);
struct spd_mapped {			/* a tenant that the active VCL's map
					 * names */
	struct spd_tenant	*tenant;
	uint32_t		generation;	/* of its record */
	char			name[TEN_NAME_MAX + 1];
};
unsigned spd_map_tenants(struct spd_mapped **, unsigned *);

/* spd_tenant.c */
void spd_tenants_init(void);
size_t spd_tenant_name(const struct req *, char *name);
struct spd_tenant *spd_tenant_find(const char *, size_t);
struct spd_tenant *spd_tenant_check(struct spd_tenant *, const char *,
    size_t);					/* locked */

/* spd_log.c */
void spd_timestamp(struct req *, const char *event, vtim_real now);
void spd_log(struct req *, struct spd_tenant *, const int64_t v[4],
    uint64_t bytes, int measured);
void spd_log_excess(struct vsl_log *, const struct spd_excess *);

/* spd_admit.c */
unsigned spd_queue_limit(const struct spd_tenant *);
unsigned spd_fetch_limit(void);
int spd_exceeds(struct spd_excess *, const struct spd_tenant *,
    const char *what, unsigned value, unsigned limit);	/* locked */
int spd_exceeds_new(struct spd_excess *, struct spd_tenant *,
    const char *what, unsigned own, unsigned all, unsigned limit); /* locked */
int spd_queue_full(struct spd_tenant *, struct spd_excess *);	/* locked */
int64_t spd_refusal(struct spd_tenant *, int64_t now);	/* locked */
int spd_writer_begins(struct spd_tenant *);
void spd_writer_ends(struct spd_tenant *);

/* spd_conn.c */
void spd_conn_init(void);
struct spd_conn *spd_conn_fd(int fd);
int spd_conn_of(struct spd_conn *, const struct sess *);
struct spd_conn *spd_conn(const struct sess *);
void spd_conn_leave(struct spd_conn *);
int spd_arm(struct spd_conn *);
void spd_disarm(struct spd_conn *);
int spd_park_locked(struct spd_conn *, int64_t deadline, int partial);
void spd_unpark_locked(struct spd_conn *);
struct spd_conn *spd_expired(int64_t now);	/* locked */
int spd_many_idle(void);
int64_t spd_ns(double timeout);
double spd_linger(const struct sess *);
double spd_left(const struct sess *, double timeout);

/* spd_ready.c: all locked, except spd_ready_init() */
void spd_ready_init(void);
void spd_ready_push(struct spd_conn *);
struct spd_conn *spd_ready_pop(int64_t now);
int spd_held_back(int64_t now);
int spd_may_parse(void);

/* spd_queue.c */
enum spd_in {
	SPD_IN_QUEUED,
	SPD_IN_FULL
};
enum spd_in spd_enqueue(struct worker *, struct req *, struct spd_conn *,
    unsigned flags, struct spd_excess *, int64_t *wait);
struct req *spd_release(int64_t now, int slot, int64_t *when);	/* locked */
void spd_take_out(struct rel_node *, int64_t now);	/* locked */
int spd_hold(int64_t now);			/* locked */

/* spd_poll.c */
void spd_poll_init(void);
void spd_harvest(int timeout_ms);
void spd_timer(int64_t when);			/* locked */

/* spd_task.c */
void spd_task_init(void (*work)(struct worker *));
int spd_pool_waits(const struct pool *);
int spd_pool_ends(const struct pool *);
void spd_summon(void);
void spd_run(struct req *);			/* a granted request */
struct pool_task *spd_stranded(void);		/* locked */

/* spd_leader.c */
int spd_unwatched(void);			/* locked */
int spd_leaderless(void);
void spd_look_now(struct spd_worker *, int64_t now);
void spd_sleep(struct worker *);		/* locked, returns unlocked */
void spd_nap(struct worker *, struct spd_worker *, int64_t now);
						/* locked, returns unlocked */
void spd_wake_leader(void);

/* spd_run.c */
void spd_dispatch(void);
void spd_lend(void);
void spd_begin(struct spd_worker *, struct req *, int64_t now);	/* locked */
void spd_parsed(void);
void spd_find_work(struct worker *);

/* spd_linger.c */
void spd_ready_now(struct spd_conn *);
int spd_park(struct spd_conn *, double timeout, int partial);
int spd_without_req(struct worker *, struct spd_conn *);
void spd_expire(struct worker *, int64_t now);

/* spd_watch.c, spd_stat.c, spd_params.c, spd_keeper.c: called by the keeper */
void spd_watch(int64_t now);
void spd_look(int64_t now);
void spd_stat(void);
void spd_params(void);
void spd_keeper_init(void);

/* cli_args.c, cli_show.c, cli_debug.c */
int spd_cli_number(struct cli *, const char *arg, unsigned long lo,
    unsigned long hi, unsigned long *);
int spd_cli_no_more(struct cli *, const char *arg);
void spd_cli_show_init(void);
void spd_cli_debug_init(void);
