/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Sandpaper inside varnishd: what its files share.  Nobody else includes
 * this.
 *
 * Locks, in the order in which they may be taken (doc/internals/locking):
 *
 *	cli, vcl, sess, boc  ->  sandpaper  ->  (none)
 *	sandpaper is never held over Pool_Task(), VSL or a system call, but
 *	for the one that sets the timer (spd_timer())
 *
 * A connection between two requests has no thread and is in one of the
 * states below; a request that waits for its release is in the releaser; a
 * request that runs holds one slot through its worker.
 *
 *	          park                    event
 *	BUSY  ---------->  PARKED  ------------------>  READY
 *	  ^                   | linger over                | a worker parses
 *	  |                   v                            v
 *	  |               Varnish's waiter               BUSY
 *	  |        begin                 gate              |
 *	  '-------------------  QUEUED  <------------------'
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

#define SPD_SLOTS_MAX		16384		/* bits in the map of slots */
#define SPD_HARVEST		200000		/* ns between two looks */
#define SPD_NAP			1000000		/* ns, of the deputy */

/*--------------------------------------------------------------------
 * A tenant: what the releaser does not know of it.  All under the lock.
 */

struct spd_conn;

struct spd_tenant {
	unsigned		magic;
#define SPD_TENANT_MAGIC	0x5a9d7e4a
	unsigned		queue_limit;	/* 0: the parameter's */
	struct rel_tenant	*rel;
	struct spd_tenant	*group;		/* whose member it is, or NULL */
	const struct spd_map	*map;		/* that has pinned it, or NULL */
	struct newhost		newhost;	/* NONE: a map names it */
	struct account		account;
	struct acc_key		key;		/* ns of CPU; bytes on the wire */
	_Atomic int64_t		cpu_next;	/* ns, to read unlocked */
	int64_t			owed[REL__RESOURCES];	/* ns, see spd_charge() */
	int64_t			fixed[REL__RESOURCES];	/* ns, debug; 0: none */

	VTAILQ_HEAD(, spd_conn)	ready;		/* connections with bytes */
	VTAILQ_ENTRY(spd_tenant) readylist;
	/* Those of (new) are its members' at their beginning */
	unsigned		writers;	/* workers blocked in a write */
	unsigned		fetches;	/* that go on */
	int64_t			refusal;	/* ns, when its next stream may be
						 * refused */

	/* A group's are its members', too: SPD_COUNT() */
	uint64_t		requests;	/* done */
	uint64_t		refused;	/* queue full, or too long */
	uint64_t		gone;		/* reset while waiting */
	uint64_t		shed;		/* slow readers too many */
	int64_t			cpu_ns;		/* measured and estimated */
	uint64_t		bytes;		/* sent to clients */
	int64_t			wait_ns;
};

#define SPD_COUNT(t, field, n)					\
	do {							\
		(t)->field += (n);				\
		if ((t)->group != NULL)				\
			(t)->group->field += (n);		\
	} while (0)

/* A tenant's record is ours, then the releaser's */
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

/* Tenants without a name of their own, beside TEN_OTHER */
#define SPD_UNKNOWN	"(unknown)"	/* no tenant of the map's */
#define SPD_NEW		"(new)"		/* a group, see spd_new.c */
#define SPD_NOHOST	"(none)"	/* no Host, or one in parentheses */

/* A limit that a tenant has reached */
struct spd_excess {
	const char		*what;
	unsigned		value, limit;
	char			tenant[TEN_NAME_MAX + 1];
};

/*--------------------------------------------------------------------
 * A client's connection, by file descriptor
 */

enum spd_conn_state {
	SPD_BUSY = 0,		/* a worker has it, or Varnish's waiter */
	SPD_PARKED,		/* waits for bytes, in our epoll set */
	SPD_READY,		/* bytes came, waits to be parsed */
	SPD_QUEUED		/* its request waits in the releaser */
};

struct spd_conn {
	VTAILQ_ENTRY(spd_conn)	list;		/* READY: of its tenant's;
						 * PARKED, partial: of all */
	unsigned		idx;		/* PARKED: in the heap */
	task_func_t		*func;		/* what to run when ready */
	void			*priv;
	struct sess		*sp;
	uint64_t		vxid;		/* of sp: tells reuse of the fd */
	struct spd_tenant	*tenant;	/* of its last request */
	uint32_t		generation;	/* of that tenant's record */
	int64_t			deadline;	/* ns, METER_Now() */
	vtim_real		t_first;	/* of a part of a request, or 0 */
	int			fd;
	uint8_t			state;		/* enum spd_conn_state */
	uint8_t			armed;		/* in the epoll set */
	_Atomic uint8_t		pending;	/* bytes came while it was BUSY */
	uint8_t			drained;	/* the last read emptied the socket */
	uint8_t			partial;	/* part of a request is here */
	uint8_t			expired;
	_Atomic uint8_t		hup;		/* the client has reset it */
	_Atomic uint8_t		fin;		/* the client sends no more */
	uint8_t			blocking;	/* resumed: the socket is that */
	char			*part;		/* of a request, see spd_part.c */
	size_t			part_len, part_size;	/* bytes, and room */
	htc_complete_f		*complete;	/* tells a part's end */
	/* from here on, kept when the fd is used again */
	_Atomic uint8_t		left;		/* orders two uses */
	uint32_t		serial;		/* of this use of the fd */
};

/*--------------------------------------------------------------------
 * A request: the releaser's node, 64 bytes in struct req
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

/* The host's words in it.  Once it runs, its arrival is how long it waited. */
#define SPD_FLAGS(n)	((n)->host[0])
#define SPD_CPU(n)	((n)->host[1])		/* so far, 16 ns */
#define SPD_WAIT(n)	((n)->arrival)		/* ns */

#define SPD_F_GRANTED	(1U << 0)	/* released, not yet begun */
#define SPD_F_DRAWN	(1U << 1)	/* its CPU is to be measured */
#define SPD_F_GONE	(1U << 2)	/* cancelled, the client has reset */
#define SPD_F_H2	(1U << 3)
#define SPD_F_SLOW	(1U << 4)	/* its client does not read */
#define SPD_F_SENDING	(1U << 5)	/* REL_Progress() knows */
#define SPD_F_LATE	(1U << 6)	/* cancelled, it waited for too long */
#define SPD_F_GOOD	(1U << 7)	/* answered: 200 to 399 */
#define SPD_COUNTED_SHIFT 8		/* wire bytes in the NIC's backlog */

/*--------------------------------------------------------------------
 * A worker, in thread-local memory: the slot is the worker's
 */

struct spd_worker {
	unsigned		magic;
#define SPD_WORKER_MAGIC	0x5a9d3042
	_Atomic int		slot;		/* -1: none */
	unsigned		lent;		/* slot given back while it waits */
	unsigned		parsing;
	unsigned		parsed;		/* in a row */
	unsigned		turns;		/* since its counters were summed */
	/* The request that runs here.  Whoever completes it clears this before
	 * the lock is released: with the lock, what is here runs. */
	_Atomic(struct rel_node *) node;
	int64_t			charge;		/* ns, its own at release */
	struct spd_conn		*conn;		/* that it read from last */
	struct spd_conn		*parks;		/* to be parked, or NULL */
	int64_t			parks_for;	/* ns */
	struct rel_node		*picked;	/* it took this itself, at began */
	unsigned		napped;		/* it was the deputy just now */
	unsigned		late;		/* nobody looked in its nap */
	uint64_t		nap_released;	/* by all, before its nap */
	const void		*impatient;	/* condition, or node whose
						 * body is read: lend at once */
	struct spd_tenant	*writer_of;	/* (new), while its request
						 * counts as a slow reader there */
	_Atomic int64_t		began;		/* ns, METER_Now() */
	int64_t			unmeasured;	/* ns charged since the last lap */
	int64_t			laps;		/* ns, not yet in lap_sum */
	/* Its CPU time that is no request's, see spd_cost.c */
	struct spd_tenant	*payer;		/* or NULL */
	uint32_t		payer_generation;
	unsigned		turn_drawn;	/* this turn is measured */
	int64_t			owed, unowned;	/* ns: the payer's, nobody's */
	uint64_t		sent;		/* bytes, by its request */
	/* A pipe, to its client: bytes, of these charged; ns charged */
	uint64_t		pipe_out, piped;
	int64_t			piped_cpu, piped_net, piped_at;
	int64_t			fresh;		/* ns, when it last got the core */
	int64_t			blocked;	/* ns, in this request's writes */
	uint64_t		rnd;
	struct meter		meter[1];
	/* The keeper's look at it */
	clockid_t		clock;		/* its CPU time */
	pid_t			tid;
	int64_t			looked_began, looked_cpu, still;	/* ns */
	int64_t			first_cpu;	/* ns, of this request's */
};

static inline void
spd_runs(struct spd_worker *me, struct rel_node *n)
{

	atomic_store_explicit(&me->node, n, memory_order_release);
}

/*--------------------------------------------------------------------
 * All of it
 */

enum spd_address {			/* a better one is larger */
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
	int			timer;		/* in the epoll set: the NIC opens */

	/* Written by the keeper, read by all */
	_Atomic(const struct meter_source *) source;
	_Atomic enum spd_mode	mode;
	_Atomic int		live;		/* on, or not yet drained */
	_Atomic int64_t		residual;	/* ns a request */
	_Atomic unsigned	cores;
	_Atomic uint64_t	rate;		/* bits/s, for costs */
	_Atomic unsigned	parsers_max;	/* P */
	_Atomic double		sample;		/* p */
	_Atomic int		synchronised;	/* REL_Synchronised() */
	_Atomic int		link_busy;	/* as far as known */
	_Atomic int64_t		harvested;	/* ns, last look */

	/* Under the lock */
	struct rel		*rel;
	struct ten_table	*tenants;
	struct spd_tenant	*new_group;	/* (new), or NULL: no such rule */
	struct nic		nic[1];
	const struct spd_tenant	*asked;		/* who did last */
	int64_t			shared;		/* ns, others have: until */
	struct acc_costs	costs;
	unsigned		limit;		/* slots; more in `observe` */
	_Atomic unsigned	running;	/* slots taken */
	unsigned		lent;
	unsigned		parsers;
	int			leader;		/* a worker sleeps in epoll_wait */
	int			deputy;		/* a worker naps */
	int			summoned;	/* a call for one is under way */
	int			frozen;
	unsigned		steps;
	uint64_t		refuse;		/* debug.sandpaper.fail */
	int64_t			timer_at;	/* ns, 0: not set */
	unsigned		slots_max;	/* in the map: a multiple of 64 */
	uint64_t		slots[SPD_SLOTS_MAX / 64];
	_Atomic(struct spd_worker *) owner[SPD_SLOTS_MAX];
	VTAILQ_HEAD(, spd_tenant) readylist;
	_Atomic unsigned	nready;
	_Atomic unsigned	nparked;
	unsigned		parts_ready;	/* of nready: with a part */
	unsigned		nobodys;	/* of nready: without a tenant */
	int64_t			lap_sum;	/* ns, raw laps of all workers */
	int64_t			nobody;		/* ns of CPU, see spd_cost.c */
	int64_t			nobody_at;	/* ns, when that was added to */
	uint64_t		nrequests;	/* and fetches */
	_Atomic enum spd_address address;	/* what addr is */
	struct sockaddr_storage	addr;		/* ours, that a client has used */
	unsigned		h2_sessions;
	unsigned		fetches;
	unsigned		writers;
};

extern struct spd spd;
extern __thread struct spd_worker spd_me;
extern pthread_key_t spd_key;

/* Time of the link, ns, for bytes on the wire */
static inline int64_t
spd_net(int64_t wire)
{

	return ((int64_t)((double)wire * 8e9 / (double)spd.rate));
}

/*--------------------------------------------------------------------
 * The files, from the ground up: each calls what is below its own, never what is
 * above.
 */

/* spd_lock.c */
#define SPD_PAUSE	8		/* steps of a long loop in one hold */
extern __thread int spd_holds;	/* this thread has the lock */
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
int spd_take(void);				/* a slot's index, locked */
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
/* All of them locked */
void spd_charge(struct spd_tenant *, int64_t cpu, int64_t net, int64_t now);
void spd_pay(struct spd_tenant *, int64_t now);
void spd_sum_laps(struct spd_worker *);
void spd_pays(struct spd_worker *, struct spd_tenant *);
void spd_turn_to(struct spd_worker *, struct spd_tenant *, int64_t now);
int spd_nobody_may(int64_t now);
void spd_estimate(struct spd_tenant *);
void spd_costs(unsigned policy);
void spd_refresh(const struct spd_worker *, int64_t cpu, int64_t now);

/* spd_new.c, all but spd_new_keep() locked */
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
struct spd_mapped {			/* a tenant of the map in force */
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

/* spd_ready.c, all but spd_ready_init() locked */
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
void spd_summon(void);				/* a worker, once */
void spd_run(struct req *);			/* it is granted */
struct pool_task *spd_stranded(void);		/* locked */

/* spd_leader.c */
int spd_unwatched(void);			/* locked */
int spd_leaderless(void);
void spd_look_now(struct spd_worker *, int64_t now);
void spd_sleep(struct worker *);		/* locked, returns unlocked */
void spd_nap(struct worker *, struct spd_worker *, int64_t now);	/* the same */
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

/* spd_watch.c, spd_stat.c, spd_params.c, spd_keeper.c */
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
