/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The housekeeping thread: what has to happen by time and not by request.
 *
 *  - parameters take effect (Varnish does not tell the child)
 *  - lingering connections go to Varnish's waiter
 *  - every NIC_EPOCH: the link's rate is learned
 *  - every SPD_STILL_LOOK: waits that are too long, a queue or workers that
 *    stand still, and the tenants' counters
 *  - every second: the residual, the number of threads, who was not seen
 *  - somebody leads while slots are free
 *
 * It wakes every 50 ms, every 10 ms while connections linger.
 */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <net/if.h>
#include <sys/mman.h>

#include "sp.h"

#include "vtim.h"

#define SPD_RATE_UNKNOWN	10000000000ULL	/* bits/s, for costs only */
#define SPD_BUSY	.75	/* of T: the link is busy */

static pthread_t spd_keeper_thread;
static struct residual residual;
static struct poolmgr poolmgr;
static _Atomic unsigned threads;		/* a pool should have */

/*
 * The learned rate outlives the child: this page is the manager's, made
 * before main(), and shared with every child that it forks.
 */
struct spd_kept {
	uint64_t	rate;
	char		name[IF_NAMESIZE];	/* of the interface */
};
static struct spd_kept *kept;

static void __attribute__((constructor))
spd_keep(void)
{
	void *p;

	p = mmap(NULL, sizeof *kept, PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (p != MAP_FAILED)
		kept = p;
}

/*--------------------------------------------------------------------
 * Parameters
 */

#define SPD_NOTE	256

static char counter_note[SPD_NOTE];	/* locked */
static int logged;			/* locked */

/* Which counter is in use, and why not the one that was asked for */
static void
spd_log_counter(void)
{
	const struct meter_source *src = spd.source;
	char note[SPD_NOTE];

	spd_lock();
	memcpy(note, counter_note, sizeof note);
	spd_unlock();
	VSL(SLT_Debug, NO_VXID, "Sandpaper: CPU time is measured by %s%s",
	    src->name, src->rseq ? ", for every request" :
	    ", for a sample of requests");
	if (note[0] != '\0')
		VSL(SLT_Notice, NO_VXID, "Sandpaper: %s", note);
}

/* When the first VCL is used: before it, tests expect a quiet log */
void
spd_log_start(void)
{
	int log;

	spd_lock();
	log = !logged;
	logged = 1;
	spd_unlock();
	if (!log)
		return;
	spd_log_counter();
	/* By default vsl_mask hides Debug records, but no Notice */
	VSL(strcmp(SPD_SECURITY_PATCHES, "none") ? SLT_Debug : SLT_Notice,
	    NO_VXID, "Sandpaper: security patches: %s", SPD_SECURITY_PATCHES);
}

static void
spd_counter(void)
{
	static char asked[SANDPAPER_COUNTER_MAX];
	char now[SANDPAPER_COUNTER_MAX], note[SPD_NOTE] = "";
	/* Workers may still use an older one: none is ever freed */
	static struct source {
		struct meter_source	src[1];
		struct source		*older;
	} *newest;
	struct source *s;
	int log;

	memcpy(now, TRUST_ME(cache_param->sandpaper_counter.name), sizeof now);
	now[sizeof now - 1] = '\0';
	if (!strcmp(asked, now))
		return;
	memcpy(asked, now, sizeof asked);
	s = calloc(1, sizeof *s);
	AN(s);
	if (METER_Choose(s->src, now, note, sizeof note)) {
		/* METER_Check() in the manager let it pass */
		VSL(SLT_Error, NO_VXID, "Sandpaper: %s", note);
		free(s);
		return;
	}
	s->older = newest;
	newest = s;
	spd_lock();
	spd.source = s->src;
	memcpy(counter_note, note, sizeof counter_note);
	log = logged;
	spd_unlock();
	if (log)
		spd_log_counter();
}

/* Locked: what a byte costs from now on */
static void
spd_set_rate(void)
{
	uint64_t rate = NIC_DrainRate(spd.nic);

	spd.rate = rate != 0 ? rate : SPD_RATE_UNKNOWN;
}

static void
spd_costs(unsigned policy)
{
	static uint64_t bound;		/* SPD_Init() has set the first */
	const char *estimator;
	uint32_t alpha;

	estimator = REL_PolicyEstimator(policy, &alpha);
	if (estimator == NULL) {
		estimator = "ewma";
		alpha = (uint32_t)(cache_param->sandpaper_alpha * 65536 + .5);
	}
	spd.costs.estimator = (unsigned)EST_ByName(estimator);
	spd.costs.alpha = alpha;
	spd.sample = cache_param->sandpaper_sample;
	if (bound != cache_param->sandpaper_nic_rate) {
		bound = cache_param->sandpaper_nic_rate;
		NIC_SetBound(spd.nic, bound);
	}
	spd_set_rate();
}

void
spd_params(void)
{
	static unsigned tenants_max;
	enum spd_mode mode = cache_param->sandpaper;
	unsigned policy, limit, cores;
	int drain, failed = 0;

	spd_counter();
	cores = cache_param->sandpaper_cores;
	if (cores == 0)
		cores = POOLMGR_Cores("");
	limit = POOLMGR_Slots(cache_param->sandpaper_workers_per_core, cores);
	limit = vmin_t(unsigned, limit, SPD_SLOTS_MAX / 2);
	policy = cache_param->sandpaper_policy;
	if (mode != SPD_ON) {
		limit = SPD_SLOTS_MAX / 2;
		policy = (unsigned)REL_PolicyByName("fifo");
	}

	spd_lock();
	spd.cores = cores;
	spd.parsers_max = vmax_t(unsigned, 2, cores);
	spd_costs(policy);
	if (tenants_max != cache_param->sandpaper_tenants_max) {
		tenants_max = cache_param->sandpaper_tenants_max;
		failed = TEN_SetMax(spd.tenants, tenants_max);
	}
	spd_new_params();
	if (REL_GetPolicy(spd.rel) != policy)
		AZ(REL_SetPolicy(spd.rel, policy, METER_Now()));
	REL_SetOptions(spd.rel, mode == SPD_ON ? REL_OPT_ALL :
	    REL_OPT_ALL & ~REL_OPT_LIMITS);
	spd.synchronised = REL_Synchronised(spd.rel);
	REL_SetRound(spd.rel, (int64_t)(cache_param->sandpaper_round * 1e9));
	if (spd.limit != limit) {
		spd.limit = limit;
		REL_SetSlots(spd.rel, limit);
		spd.vsc->slots = limit;
	}
	if (mode != spd.mode && mode == SPD_OFF)
		spd_timer(METER_Now());		/* the leader goes home */
	spd.mode = mode;
	drain = mode == SPD_OFF && (REL_Waiting(spd.rel) > 0 ||
	    spd.nready > 0 || spd.nparked > 0 || spd.running > 0);
	spd.live = mode != SPD_OFF || drain;
	spd_unlock();
	if (failed)
		VSL(SLT_Error, NO_VXID, "Sandpaper: no memory for %u "
		    "tenants: the last limit stays in use, lower "
		    "sandpaper_tenants_max",
		    tenants_max);
	/* More slots, another order: what waits may go */
	spd_dispatch();
}

/*--------------------------------------------------------------------
 * The link
 */

static void
spd_nic_gauges(int64_t now)
{

	SPD_LOCKED();
	spd.vsc->nic_rate = NIC_Rate(spd.nic);
	spd.vsc->nic_backlog = (uint64_t)NIC_Backlog(spd.nic, now);
	spd.vsc->nic_closed_ns = (uint64_t)NIC_ClosedTime(spd.nic, now);
}

/* There is no link, or it is gone: the next client connection may say more */
static void
spd_no_link(int gone, int64_t now)
{

	spd_lock();
	if (gone)
		spd.address = SPD_ADDRESS_NONE;
	spd.link_busy = spd.nic->rate > 0;	/* for all we know */
	spd_nic_gauges(now);
	spd_unlock();
}

/* The link is another interface now.  0: its speed is not known. */
static void
spd_new_link(const char *name, uint64_t speed)
{
	uint64_t rate = speed;

	if (kept != NULL && kept->rate != 0 && !strcmp(kept->name, name))
		rate = kept->rate;
	spd_lock();
	NIC_SetRate(spd.nic, rate);
	spd_set_rate();
	rate = NIC_Rate(spd.nic);
	spd_unlock();
	VSL(SLT_Debug, NO_VXID, "Sandpaper: net is the interface %s, its rate "
	    "is %ju bits/s", name, (uintmax_t)rate);
}

static void
spd_learn(int64_t now)
{
	static uint64_t speed, last_tx;
	static int64_t last;
	static char name[IF_NAMESIZE];
	struct sockaddr_storage ss;
	char before[IF_NAMESIZE];
	uint64_t tx, backlog;
	double sent_rate;
	int known, paced, learned = 0;

	spd_lock();
	known = spd.address != SPD_ADDRESS_NONE;
	ss = spd.addr;
	spd_unlock();
	bprintf(before, "%s", name);
	if (!known || spd_link(&ss, &tx, &backlog, &paced, &speed, name,
	    sizeof name)) {
		last = 0;
		spd_no_link(known, now);
		return;
	}
	if (strcmp(name, before)) {
		spd_new_link(name, speed);
		last = 0;
	}
	if (last == 0 || now <= last) {
		last = now;
		last_tx = tx;
		return;
	}
	sent_rate = (double)(tx - last_tx) * 8e9 / (double)(now - last);
	last_tx = tx;
	last = now;
	spd_lock();
	if (paced)
		NIC_Stop(spd.nic);
	else
		learned = NIC_Learn(spd.nic, tx, backlog, now);
	if (learned) {
		spd.vsc->nic_learned++;
		if (kept != NULL) {
			kept->rate = NIC_Rate(spd.nic);
			bprintf(kept->name, "%s", name);
		}
	}
	spd.link_busy = spd.nic->stood || (spd.nic->rate > 0 &&
	    sent_rate >= SPD_BUSY * (double)spd.nic->rate);
	spd_nic_gauges(now);
	spd_set_rate();
	spd_unlock();
}

/*--------------------------------------------------------------------
 * A worker that holds a slot although its CPU clock stands still waits for
 * something that we have no hook for: a VMOD's I/O, a lock.  Its slot is
 * taken away, as if it had lent it.  But not if all that it waits for is a
 * core: on a loaded machine that may take as long.
 */

#define SPD_STILL	200000000	/* ns */
#define SPD_LONG	20000000	/* ns: who began later is not looked at */
#define SPD_LOOKED	256		/* slots a look, at most */

static int64_t
cpu_of(clockid_t clock)
{
	struct timespec ts;

	if (clock_gettime(clock, &ts))
		return (-1);		/* it has ended */
	return ((int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec);
}

/* Would this thread run if it had a core?  Where Linux does not say, 0. */
static int
spd_runnable(pid_t tid)
{
	char path[48], stat[128];
	const char *p;
	ssize_t l;
	int fd;

	bprintf(path, "/proc/self/task/%d/stat", (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return (0);
	l = read(fd, stat, sizeof stat - 1);
	(void)close(fd);
	stat[vmax_t(ssize_t, l, 0)] = '\0';
	p = strrchr(stat, ')');		/* the name's, which may have others */
	return (p != NULL && !strncmp(p, ") R", 3));
}

/* Locked.  1: it has stood still for too long */
static int
spd_still(struct spd_worker *w, int64_t cpu, int runnable, int64_t now)
{

	SPD_LOCKED();
	if (w->looked_began != w->began)
		w->first_cpu = cpu;
	if (w->looked_began != w->began || cpu < 0 || runnable ||
	    cpu - w->looked_cpu > 10000) {
		w->looked_began = w->began;
		w->looked_cpu = cpu;
		w->still = now;
		return (0);
	}
	return (now - w->still >= SPD_STILL);
}

/*
 * Locked.  A request that runs for long is charged what it has cost so far,
 * from the first look on (2DFQ's refresh charging, its section 5): else a
 * tenant whose requests have become dear has all slots before the first of
 * them completes.
 */
static void
spd_refresh(const struct spd_worker *w, int64_t cpu, int64_t now)
{
	struct rel_node *n = w->node;
	int64_t before, cost;

	SPD_LOCKED();
	if (n == NULL || cpu < 0 || w->looked_began != w->began)
		return;
	cost = ACC_SoFar(&spd_tenant_rel(n->tenant)->account,
	    (cpu - w->first_cpu) / spd.cores);
	before = n->charge;
	REL_Refresh(spd.rel, n, cost, now);
	spd.vsc->refreshed += n->charge != before;
}

/*--------------------------------------------------------------------
 * What stalls is reported, and shed: requests that have waited for too
 * long, and a queue that does not move.
 */

#define SPD_STUCK	INT64_C(5000000000)	/* ns */
#define SPD_LOOK_EVERY	100000000	/* ns */
#define SPD_LATE_BATCH	16

/*
 * Locked.  1: for SPD_STUCK requests have waited, and none was released.
 * Those behind a limit wait as they should.
 */
static int
spd_stuck(int64_t now)
{
	static uint64_t released, timed_out;
	static int64_t since;
	unsigned waiting = REL_Waiting(spd.rel) - REL_Shut(spd.rel);

	SPD_LOCKED();
	if (spd.vsc->released != released || spd.frozen ||
	    (waiting == 0 && spd.vsc->timed_out == timed_out)) {
		released = spd.vsc->released;
		timed_out = spd.vsc->timed_out;
		since = now;
	}
	if (now - since < SPD_STUCK || waiting == 0)
		return (0);
	since = now;
	spd.vsc->stuck++;
	return (1);
}

static void
spd_tell_stuck(int64_t now)
{
	unsigned waiting, running, lent;
	char until[32] = "";
	int64_t opens;
	int closed;

	spd_lock();
	waiting = REL_Waiting(spd.rel);
	running = spd.running;
	lent = spd.lent;
	closed = spd.mode == SPD_ON && NIC_Closed(spd.nic, now, &opens);
	spd_unlock();
	if (closed)
		bprintf(until, " for %.3f s", (double)(opens - now) * 1e-9);
	VSL(SLT_Error, NO_VXID, "Sandpaper: no request was released for %d s: "
	    "%u waiting, %u of %u slots in use, %u lent, net %s%s",
	    (int)(SPD_STUCK / 1000000000), waiting, running, spd.limit, lent,
	    closed ? "closed" : "open", until);
}

/* Takes the requests that have waited for too long out of the queue */
static void
spd_time_out(int64_t now)
{
	int64_t limit = (int64_t)(cache_param->sandpaper_queue_timeout * 1e9);
	struct req *req, *streams[SPD_LATE_BATCH];
	struct rel_node *n;
	unsigned found, u, nstreams;

	if (limit == 0)
		return;
	do {
		nstreams = 0;
		spd_lock();
		for (found = 0; found < SPD_LATE_BATCH; found++) {
			n = REL_First(spd.rel);
			if (n == NULL || now - n->arrival < limit)
				break;
			req = spd_req_of(n);
			SPD_COUNT(spd_tenant_rel(n->tenant), refused, 1);
			spd_take_out(n, now);
			spd.vsc->timed_out++;
			SPD_FLAGS(n) |= SPD_F_LATE;
			if (SPD_FLAGS(n) & SPD_F_H2)
				streams[nstreams++] = req;
			else
				spd_ready_push(spd_conn(req->sp));
		}
		spd_unlock();
		for (u = 0; u < nstreams; u++)
			AZ(Pool_Task(streams[u]->sp->pool,
			    SPD_TASK(streams[u]), TASK_QUEUE_RUSH));
		if (found > nstreams)
			spd_summon();
	} while (found == SPD_LATE_BATCH);
}

/* At the CPU clocks of the workers whose requests run for long */
static void
spd_watch(int64_t now)
{
	static unsigned at;		/* in the map: looks go around */
	int64_t cpu[SPD_LOOKED];
	clockid_t clock[SPD_LOOKED];
	pid_t tid[SPD_LOOKED];		/* 0: it is not asked if it runs */
	int slot[SPD_LOOKED], runnable[SPD_LOOKED], s;
	struct spd_worker *w;
	uint64_t taken;
	unsigned words, n = 0, u, owners = 0, stolen = 0;

	spd_lock();
	for (words = 0; words < SPD_SLOTS_MAX / 64 &&
	    owners + 64 <= SPD_LOOKED; words++) {
		taken = spd.slots[at];
		for (; taken != 0; taken &= taken - 1, owners++) {
			s = (int)at * 64 + __builtin_ctzll(taken);
			w = spd.owner[s];
			if (w == NULL || now - w->began < SPD_LONG)
				continue;
			slot[n] = s;
			tid[n] = w->looked_began == w->began &&
			    now - w->still >= SPD_STILL ? w->tid : 0;
			clock[n++] = w->clock;
		}
		at = (at + 1) % (SPD_SLOTS_MAX / 64);
	}
	spd_unlock();
	if (n == 0)
		return;
	for (u = 0; u < n; u++) {
		cpu[u] = cpu_of(clock[u]);
		runnable[u] = tid[u] != 0 && spd_runnable(tid[u]);
	}
	spd_lock();
	for (u = 0; u < n; spd_pause(u++)) {
		w = spd.owner[slot[u]];
		if (w == NULL || w->clock != clock[u])
			continue;		/* it has been given back */
		if (!spd_still(w, cpu[u], runnable[u], now)) {
			spd_refresh(w, cpu[u], now);
			continue;
		}
		spd_give(slot[u]);
		stolen++;
	}
	spd.vsc->stalled += stolen;
	spd_unlock();
	if (stolen)
		spd_dispatch();
}

static void
spd_look(int64_t now)
{
	int stuck;

	spd_lock();
	stuck = spd_stuck(now);
	spd.vsc->oldest_wait_ms = REL_Oldest(spd.rel) < 0 ? 0 :
	    (uint64_t)vmax_t(int64_t, 0, now - REL_Oldest(spd.rel)) / 1000000;
	spd_unlock();
	if (stuck)
		spd_tell_stuck(now);
	spd_time_out(now);
}

/*--------------------------------------------------------------------
 * Every second
 */

static void
spd_second(int64_t now)
{
	struct poolmgr_snapshot s;
	int64_t cpu;

	spd_part_limit();
	cpu = METER_Process();
	memset(&s, 0, sizeof s);
	spd_lock();
	spd.residual = RESIDUAL_Update(&residual, now, cpu, spd.lap_sum,
	    spd.nrequests);
	spd.vsc->residual_ns = (uint64_t)spd.residual;
	TEN_Tick(spd.tenants);
	spd.vsc->tenants = TEN_Count(spd.tenants);
	s.workers_per_core = cache_param->sandpaper_workers_per_core;
	s.cores = spd.cores;
	s.parsers = spd.parsers_max;
	s.acceptors = 1;
	s.lent = spd.lent;
	s.fetches = spd.fetches;
	s.h2_sessions = spd.h2_sessions;
	s.writers = spd.writers;
	s.pools = cache_param->wthread_pools;
	s.reserve = cache_param->wthread_reserve;
	s.min = cache_param->wthread_min;
	s.max = cache_param->wthread_max;
	spd_unlock();
	threads = POOLMGR_Threads(&poolmgr, &s, now);
	spd.vsc->threads_wanted = threads;
}

unsigned
SPD_Herd(const struct pool *pp, unsigned min)
{

	CHECK_OBJ_NOTNULL(pp, POOL_MAGIC);
	if (spd.mode != SPD_ON || DO_DEBUG(DBG_VTC_MODE))
		return (min);
	return (vmax_t(unsigned, min, threads));
}

/*--------------------------------------------------------------------*/

static void * v_matchproto_(bgthread_t)
spd_keeper(struct worker *wrk, void *priv)
{
	int64_t now, params = 0, epoch = 0, look = 0, second = 0;

	AZ(priv);
	while (1) {
		now = METER_Now();
		if (now - params >= 45000000) {
			params = now;
			spd_params();
		}
		if (spd.mode != SPD_OFF && now - epoch >= NIC_EPOCH) {
			epoch = now;
			spd_learn(now);
		}
		if (spd.mode != SPD_OFF)
			spd_watch(now);
		if (spd.mode != SPD_OFF && now - look >= SPD_LOOK_EVERY) {
			look = now;
			spd_look(now);
			spd_new_keep(now);
			spd_stat();
		}
		if (now - second >= 1000000000) {
			second = now;
			spd_second(now);
		}
		if (spd.live) {
			spd_expire(wrk, spd.mode == SPD_OFF ? INT64_MAX : now);
			if (spd_leaderless())
				spd_summon();
			spd_wake_leader();
			Pool_Sumstat(wrk);
		}
		VTIM_sleep(spd.nparked > 0 ? 0.010 : 0.050);
	}
	NEEDLESS(return (NULL));
}

static void
spd_assert_held(void *priv)
{

	AZ(priv);
	SPD_LOCKED();
}

void
SPD_Init(void)
{

	spd.magic = SPD_MAGIC;
	spd.vsc = VSC_sandpaper_New(NULL, NULL, "");
	AN(spd.vsc);
	spd_lock_init();
	PTOK(pthread_key_create(&spd_key, spd_thread_ends));
	spd.cores = 1;
	spd.rate = SPD_RATE_UNKNOWN;
	spd.limit = spd.vsc->slots = 1;
	spd.slots_max = SPD_SLOTS_MAX;
	spd.rel = REL_New(0, spd.limit, REL_OPT_ALL, spd_assert_held, NULL);
	AN(spd.rel);
	NIC_Init(spd.nic, kept != NULL ? kept->rate : 0,
	    cache_param->sandpaper_nic_rate, METER_Now());
	spd_ready_init();
	spd_lock();
	spd_tenants_init();
	spd_unlock();
	spd_params();
	spd_cli_init();
	WRK_BgThread(&spd_keeper_thread, "sandpaper", spd_keeper, NULL);
}
