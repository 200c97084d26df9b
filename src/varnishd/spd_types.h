/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The types of Sandpaper: a tenant, a client's connection, a request, a worker.
 *
 * Each part says who may read and write its fields.  Only spd.h includes this
 * file, after all that the file needs.
 */

/*--------------------------------------------------------------------
 * A tenant: the fields that the releaser does not need.  The lock guards all
 * of them.  Only cpu_next may be read without the lock.
 */

struct spd_conn;

/* What `on` would do, while sandpaper is `observe`: see spd_dry.c */
struct spd_dry {
	struct dry_queue	queue;		/* its work */
	struct dry_group	members;	/* a group's */
	unsigned		run;		/* the rest is of this one */
	int64_t			came;		/* ns, its last request */
	int64_t			replayed;	/* ns: releases up to then are
						 * known to the controller */
	unsigned		before;		/* requests that would wait,
						 * before its last one came */
	double			each;		/* ns, between releases then */
	/* What would wait, at its last request */
	struct dry_view		view;
	double			group, all;	/* requests: of its group, of
						 * all tenants */
	unsigned		busy;		/* tenants and groups */
};

struct spd_tenant {
	unsigned		magic;
#define SPD_TENANT_MAGIC	0x5a9d7e4a
	unsigned		queue_limit;	/* requests; 0: the parameter
						 * sandpaper_queue_limit */
	int64_t			queue_timeout;	/* ns; 0: none of its own */
	int64_t			target;		/* ns; 0: the parameter
						 * sandpaper_target */
	int64_t			fetch_target;	/* ns; 0: none */
	struct rel_tenant	*rel;		/* in the same record */
	struct spd_tenant	*group;		/* NULL: in no group */
	const struct spd_map	*map;		/* the VCL's map that gives it
						 * settings, or NULL */
	struct newhost		newhost;	/* NONE: neither new nor
						 * proven */
	struct account		account;
	struct acc_key		key;		/* ns of CPU; bytes on net */
	_Atomic int64_t		cpu_next;	/* ns of CPU, the estimate */
	int64_t			owed[REL__RESOURCES];	/* ns: spd_charge() */
	int64_t			fixed[REL__RESOURCES];	/* ns; 0: not fixed by
							 * debug.sandpaper.cost
							 */

	VTAILQ_HEAD(spd_conns, spd_conn) ready;	/* connections to parse */
	VTAILQ_ENTRY(spd_tenant) readylist;	/* in the list of spd_ready.c */
	/* In the record of (new): those of all members.  Each counts there
	 * until it ends, even if the tenant leaves (new) before. */
	unsigned		writers;	/* workers with a slow reader */
	unsigned		fetches;	/* waiting for a thread, or
						 * running */
	unsigned		dry_fetches;	/* of these: `on` would have
						 * refused them */
	int64_t			estimate[REL__RESOURCES];	/* ns, as the
							 * releaser has it */
	int64_t			fetched;	/* ns of CPU over the cores, by
						 * fetches, since a request was
						 * done */
	int64_t			fetch_each;	/* the mean of these, per
						 * request */
	int64_t			fetch_mean;	/* the same, per fetch */
	struct price_part	price;		/* of its queue */
	struct ovl		overload;	/* of its queue */
	struct ovl_fetches	origins;	/* how fast they answer */
	struct ovl_pressure	pressure;	/* of its queue */
	struct spd_dry		dry;
	int64_t			cut;		/* ns, last refusal by overload
						 * control; 0: none */
	int			newest;		/* its last turn to parse took
						 * the newest connection */
	int64_t			next_refusal;	/* ns, when the next stream may
						 * be refused */
	uint32_t		owner;		/* of objects in the cache, see
						 * memory/owners.h */
	int			admit_all;	/* of these objects */
	int			by_hand;	/* sandpaper.set since the map was
						 * read */
	struct page		*refusal;	/* what its refused requests
						 * get, or NULL */

	/* In a group's record: the sum over its members, see SPD_COUNT() */
	uint64_t		completed;	/* requests */
	uint64_t		hits, hit_bytes, misses, miss_bytes;
	uint64_t		refused_full;	/* its queue, or the whole one */
	uint64_t		refused_target;	/* by overload control */
	uint64_t		refused_late;	/* waited too long */
	uint64_t		refused_fetch;	/* fetches over the limit */
	/* What `on` would have refused, while sandpaper is `observe` */
	uint64_t		would_refuse_full, would_refuse_target;
	uint64_t		would_refuse_late, would_refuse_fetch;
	uint64_t		would_shed;
	uint64_t		cancelled;	/* before they ran */
	uint64_t		shed;		/* too many slow readers */
	int64_t			cpu_ns;		/* measured or estimated */
	int64_t			net_ns;		/* of the client-side link */
	uint64_t		bytes;		/* sent to clients */
	int64_t			wait_ns;	/* in the queue */
	uint64_t		waits[WAITS];	/* of these, by length */
	struct recent		*recent;	/* NULL: see spd_recent.c */
	int			without_recent;	/* it used something without */
};

/* Add n to a counter of the tenant, and to that of its group.  Locked. */
#define SPD_COUNT_OWN(t, field, n)				\
	do {							\
		(t)->field += (n);				\
		if ((t)->group != NULL)				\
			(t)->group->field += (n);		\
	} while (0)

/* The same, and to the sum over all tenants */
#define SPD_COUNT(t, field, n)					\
	do {							\
		SPD_COUNT_OWN(t, field, n);			\
		spd_vsc->field += (uint64_t)(n);		\
	} while (0)

/* Count a refusal, and its cause.  Locked. */
#define SPD_REFUSED(t, cause)					\
	do {							\
		SPD_COUNT(t, refused_##cause, 1);		\
		spd_vsc->refused++;				\
	} while (0)

/* The same for what `on` would refuse */
#define SPD_WOULD_REFUSE(t, cause)				\
	do {							\
		SPD_COUNT(t, would_refuse_##cause, 1);		\
		spd_vsc->would_refuse++;			\
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

	return (TEN_OfData(TRUST_ME(t))->name);
}

/* A limit that a tenant has reached, for the log */
struct spd_verdict {
	const char		*what;
	unsigned		value, limit;
	int64_t			target;		/* ns.  Not 0: `what` is the
						 * controller that refuses */
	int64_t			age;		/* ns.  Not 0: it refuses since
						 * the request is late */
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
	int64_t			came;		/* ns, when its request came;
						 * 0: just now, or unknown */
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
 * A request: 64 bytes in struct req, with the releaser's node.  While the
 * request waits, the releaser owns the node.  While the request runs, its
 * worker does.
 */

struct spd_request {
	struct rel_node		node;		/* the first member */
	uint32_t		flags:8;	/* SPD_F_* */
	uint32_t		counted:24;	/* bytes on the wire, in the
						 * backlog of net */
	uint32_t		cpu_16ns;	/* CPU so far, in 16 ns */
};
_Static_assert(sizeof(struct spd_request) <=
    sizeof ((struct req *)0)->sandpaper, "it fits into a request");

#define SPD_NODE(req)	((struct rel_node *)(void *)(req)->sandpaper)
#define SPD_REQUEST(n)	((struct spd_request *)(n))
/* When a released request begins, its waiting time replaces its arrival. */
#define SPD_WAIT(n)	((n)->arrival)		/* ns */

#define SPD_COUNTED_MAX	((1U << 24) - 1)	/* bytes */

static inline struct req *
spd_req_of(struct rel_node *node)
{
	struct req *req;

	req = (void *)((char *)node - offsetof(struct req, sandpaper));
	CHECK_OBJ_NOTNULL(req, REQ_MAGIC);
	return (req);
}

#define SPD_F_GRANTED	(1U << 0)	/* released, not yet begun */
#define SPD_F_SAMPLED	(1U << 1)	/* drawn: its CPU is to be measured */
#define SPD_F_RESET	(1U << 2)	/* cancelled: reset by the client */
#define SPD_F_H2	(1U << 3)	/* an HTTP/2 stream */
#define SPD_F_SLOW	(1U << 4)	/* its client is a slow reader */
#define SPD_F_SENDING	(1U << 5)	/* REL_Progress() was called for net */
#define SPD_F_LATE	(1U << 6)	/* waited for too long: it must not
					 * run */
#define SPD_F_GOOD	(1U << 7)	/* its status is 200 to 399 */

/*--------------------------------------------------------------------
 * A worker, in thread-local memory.  A slot belongs to the worker, not to its
 * request.  Only the worker's thread writes the fields.  The exception is the
 * last block: the keeper writes that under the lock.
 */

struct spd_worker {
	unsigned		magic;
#define SPD_WORKER_MAGIC	0x5a9d3042
	_Atomic int		slot;		/* -1: none */
	unsigned		lent;		/* 1: it has lent its slot */
	unsigned		parsing;	/* counted in `parsers` */
	int64_t			parse_began;	/* ns */
	int64_t			parse_wait;	/* ns, of the connection that it
						 * parses */
	unsigned		parsed;		/* connections, in a row */
	struct spd_conn		*refused;	/* whose request it refused just
						 * now, or NULL */
	unsigned		turn_refused;	/* this turn refuses a request */
	struct page		*page;		/* of a request that it refuses,
						 * or NULL */
	const struct req	*answers;	/* a refused request that VCL
						 * answers here, or NULL */
	unsigned		turns;		/* tasks since Pool_Sumstat() */
	/* The node of the request that runs here, or NULL.  For a thread that
	 * holds the lock: this request is running.  The thread that completes
	 * the request clears this field in the same hold of the lock. */
	_Atomic(struct rel_node *) node;
	int64_t			charge;		/* ns, of the request, at its
						 * release */
	unsigned		charge_cores;	/* cores, if that is cpu, else
						 * 1: for the log */
	struct spd_conn		*conn;		/* read from last, or NULL */
	struct spd_conn		*parks;		/* to be parked, or NULL */
	int64_t			parks_for;	/* ns, timeout of parks */
	struct rel_node		*picked;	/* released by this worker for
						 * itself, at `began` */
	unsigned		napped;		/* it was the deputy just now */
	unsigned		unlooked;	/* no worker looked at the set
						 * during its nap */
	uint64_t		nap_released;	/* vsc->released before a nap */
	const void		*lend_next_wait; /* condition variable, or node
						 * that reads a body: the next
						 * wait for it lends at once */
	struct spd_tenant	*writer_of;	/* (new), while its request
						 * counts there as a writer */
	_Atomic int64_t		began;		/* ns, start of its request */
	int64_t			unmeasured;	/* ns of CPU, estimated since
						 * the last lap */
	int64_t			banned;		/* ns, tests of bans that other
						 * tenants pay for, since the
						 * last lap */
	int64_t			laps;		/* ns, not yet in `lap_sum` */
	/* CPU time outside of requests, see spd_cost.c */
	struct spd_tenant	*payer;		/* NULL: no tenant pays */
	uint32_t		payer_generation;
	unsigned		turn_drawn;	/* this turn is measured */
	int64_t			owed, unowned;	/* ns: by the payer; by none */
	uint64_t		sent;		/* bytes, of its request */
	uint64_t		hit_bytes, miss_bytes;	/* as the next two */
	uint32_t		hits, misses;	/* of its request and the ESI
						 * parts of that */
	/* A pipe's bytes to the client, and how many of them were charged */
	uint64_t		pipe_out, piped;
	/* ns: charged for the pipe so far; when it was last charged */
	int64_t			piped_cpu, piped_net, piped_at;
	int64_t			slice_start;	/* ns, when it last woke up or
						 * yielded */
	int64_t			fetch_began;	/* ns */
	int64_t			blocked;	/* ns, in its writes */
	/* Stages of its request, see spd_stage.c: when it sent its first byte,
	 * or 0; how long it ran before; how long its slot was lent, since that
	 * byte or before it; when it was lent last */
	int64_t			sends_at, ran, loaned, lent_at;	/* ns */
	uint64_t		rnd;		/* state of spd_draw() */
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

/* What is known of a fetch before its answer, in bo->sandpaper[2] */
#define SPD_FETCH_VCL		1	/* VCL admits the object, or has chosen
					 * its storage */
#define SPD_FETCH_ALL		2	/* its tenant admits all objects */
#define SPD_FETCH_PART		4	/* for an ESI part */
#define SPD_FETCH_LIMIT		8	/* a search counts only its owner's */
#define SPD_FETCH_STORED	16	/* its object stays in the cache */
#define SPD_FETCH_ASKS		32	/* it waits for the head of its answer */
#define SPD_FETCH_DRY		64	/* `on` would have refused it */

/* The largest size that is admitted, in bo->sandpaper[3].  If none was drawn,
 * it is SPD_SIZE_ALL. */
#define SPD_SIZE_ALL		UINT64_MAX
#define SPD_SIZE_MOST		(UINT64_MAX - 1)

/* The outcomes of a fetch, see hook_cache.c */
enum spd_admission {
	SPD_ADMITTED,
	SPD_REJECTED,
	SPD_LATE,
	SPD_PASSED,
	SPD_ADMISSIONS
};

#define SPD_OCTAVES	41	/* of sizes: 2^n bytes or more, the last one
				 * also all larger ones */

struct spd_cache_stat {
	double			c;		/* bytes, or INFINITY */
	double			predicted, measured, measured_all;	/* parts
								 * of hits */
	uint64_t		tunes, fallbacks;
	uint64_t		dropped;	/* requests, of the sample */
	double			capacity;	/* bytes */
	uint64_t		transit;	/* bytes */
	uint64_t		count[SPD_ADMISSIONS][SPD_OCTAVES];
};
