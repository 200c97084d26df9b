/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The types, variables and functions that the files of src/varnishd share.  The
 * types are in spd_types.h, the shared variables in spd_base.h, the functions
 * here.
 *
 * All other state is static in its file, behind functions.  Each thread has one
 * `struct spd_worker`, each connection one `struct spd_conn`.
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

#include <sys/uio.h>

#include "varnishd/compat.h"

#include "vqueue.h"

#include "cache/cache_pool.h"
#include "cache/cache_transport.h"

#include "admission/curve.h"
#include "memory/owners.h"
#include "overload/dryrun.h"
#include "overload/fetches.h"
#include "overload/overload.h"
#include "overload/pace.h"
#include "overload/pressure.h"
#include "perfctr/account.h"
#include "perfctr/meter.h"
#include "perfctr/nic.h"
#include "poolmgr/poolmgr.h"
#include "price/price.h"
#include "releaser/releaser.h"
#include "tenants/hostmap.h"
#include "tenants/newhosts.h"
#include "tenants/recent.h"
#include "tenants/table.h"

#include "varnishd/sandpaper.h"
#include "varnishd/spd_names.h"

#include "VSC_sandpaper.h"

#include "varnishd/spd_types.h"
#include "varnishd/spd_base.h"

/*--------------------------------------------------------------------
 * The files, in the order of FLOORS.  A file calls only functions of floors
 * below its own.
 */

/* spd_ban.c, spd_drain.c, spd_heap.c */
void spd_ban_pay(int64_t now);	/* locked */
void spd_drain(int on);
void spd_heap_init(void);

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

/* spd_owner.c */
struct owners *spd_owners(void);
uint32_t spd_oc_owner(const struct objcore *);
void spd_oc_set_owner(struct objcore *, uint32_t owner);
uint64_t spd_oc_bytes(const struct objcore *);
uint64_t spd_oc_size(uint64_t bytes);
void spd_oc_set_bytes(struct objcore *, uint64_t bytes);
int spd_oc_in_transit(const struct objcore *);
void spd_oc_pass(struct objcore *);
int spd_oc_passed(const struct objcore *);
int spd_oc_listed(const struct objcore *);
void spd_oc_set_listed(struct objcore *, int listed);
int spd_oc_transit(struct objcore *, uint64_t bytes, uint64_t limit);
void spd_oc_forget(struct objcore *);
void spd_oc_free(struct objcore *);

/* spd_tuner.c */
void spd_tuner_init(void);
uint64_t spd_digest(const struct objcore *);
void spd_tuner_see(uint64_t digest, uint64_t bytes, uint32_t owner);
uint64_t spd_tuner_draw(uint64_t digest, struct spd_worker *);
void spd_admission_count(enum spd_admission, uint64_t bytes);
void spd_cache_stat(struct spd_cache_stat *, int may_wait);
void spd_cache_curve(uint32_t owner, struct curve *);
uint64_t spd_transit_limit(void);
int spd_transient_is_limited(void);
void spd_capacity(void);

/* spd_thread.c */
struct spd_worker *spd_self(void);
void spd_thread_ends(void *);
int64_t spd_lap(struct spd_worker *, int wanted);
double spd_draw(struct spd_worker *);
int spd_sampled(struct spd_worker *);
void spd_tell_start(void);
void spd_counter(void);
const struct meter_source *spd_source(void);

/* spd_slot.c */
int spd_take(void);				/* locked */
int spd_take_extra(void);			/* locked */
void spd_extra_ends(const struct rel_node *);	/* locked */
void spd_own(struct spd_worker *, int slot);	/* locked */
void spd_retake(struct spd_worker *);		/* locked */
void spd_give(int slot);			/* locked */
int spd_slot_revoked(const struct spd_worker *);	/* locked */
void spd_give_mine(struct spd_worker *);	/* locked */
int spd_holds_slot(void);
unsigned spd_slots(void);
unsigned spd_running(void);
/* The following are locked */
void spd_set_slots(unsigned);
void spd_cap_slots(unsigned);
int spd_slots_full(void);
int spd_slots_exceeded(void);
unsigned spd_slots_open(void);
void spd_open_slots(unsigned);
unsigned spd_lent(void);
uint64_t spd_slots_taken(unsigned word);
struct spd_worker *spd_owner(int slot);
void spd_begin_loan(struct spd_worker *);
void spd_end_loan(struct spd_worker *);

/* spd_recent.c */
void spd_recent_init(void);
void spd_recent_second(int64_t now);
void spd_recent_end(struct spd_tenant *);	/* locked */
int64_t spd_recent(const struct spd_tenant *, unsigned last,
    double grown[REC__COUNTERS]);		/* locked */

/* spd_stage.c */
#define SPD_PROFILE_S	10		/* s, "the last seconds" */
enum spd_stage {
	SPD_PARSES,
	SPD_RUNS,
	SPD_FETCHES,
	SPD_DELIVERS,
	SPD_STAGES
};
struct spd_profile {
	int64_t			at;		/* ns, see spd_stage.c */
	struct {
		uint64_t	done;		/* have left the stage */
		int64_t		wait, in_it;	/* ns, of all of them */
	}			stage[SPD_STAGES];
};
void spd_stage_init(void);
void spd_stage_sends(struct spd_worker *);
/* The following are locked */
void spd_stage(enum spd_stage, int64_t wait, int64_t in_it);
void spd_stage_done(const struct spd_worker *, int64_t waited, int64_t now);
void spd_stage_second(int64_t now);
void spd_stage_all(struct spd_profile *);
void spd_stage_last(struct spd_profile *, int64_t now);

/* spd_link.c */
void spd_link_init(void);
void spd_link_seen(const struct sess *);
void spd_learn(int64_t now);
int64_t spd_link_backlog(int64_t now);			/* locked */
double spd_link_used(void);				/* locked */
void spd_pretend_link_used(double part);		/* locked */
int spd_link_busy(int64_t now);
int64_t spd_net(int64_t wire);
/* The following are locked */
struct spd_link_stat {
	uint64_t		rate;		/* bits/s */
	int64_t			backlog;	/* bytes */
	int64_t			closed_ns;	/* in all */
};
void spd_note_user(const struct spd_tenant *, int64_t now);
void spd_link_bound(uint64_t);
uint32_t spd_link_release(int64_t wire, int64_t now);
void spd_link_correct(const struct rel_node *, uint64_t wire, int64_t now);
int spd_link_closed(int64_t now, int64_t *opens);
void spd_link_stat(struct spd_link_stat *, int64_t now);

/* spd_part.c */
void spd_part_limit(void);
void spd_part_parked(struct spd_conn *, int parked);	/* locked */
struct spd_conn *spd_part_excess(void);		/* locked */
int spd_many_parts(void);			/* locked */
void spd_part_ready(const struct spd_conn *, int);	/* locked */
ssize_t spd_recv(struct spd_conn *, char *, size_t);
int spd_part_keep(struct worker *, struct spd_conn *);
int spd_part_grows(struct spd_conn *);
void spd_part_again(struct worker *, struct spd_conn *);

/* spd_refuse.c */
void spd_refuse(struct req *);
int spd_refuse_in_vcl(struct req *);
void spd_refusal_synth(const struct spd_worker *, struct req *);
void spd_by_vcl_ends(struct spd_worker *);
void spd_refusal_of(struct spd_worker *,
    const struct spd_tenant *);			/* locked */
size_t spd_page_bytes(const struct spd_worker *, const struct req *);

/* spd_cost.c */
void spd_unowned(struct spd_worker *);
void spd_unowned_now(struct spd_worker *);
void spd_owe(struct spd_worker *);
int64_t spd_take_owed(struct spd_worker *);
int64_t spd_residual(void);
/* The following are locked */
void spd_charge(struct spd_tenant *, int64_t cpu, int64_t net, int64_t now);
void spd_charge_apart(struct spd_tenant *, int64_t cpu, int64_t now);
void spd_pay_debt(struct spd_tenant *, int64_t now);
void spd_sum_laps(struct spd_worker *);
void spd_set_payer(struct spd_worker *, struct spd_tenant *);
void spd_turn_to(struct spd_worker *, struct spd_tenant *, int64_t now);
int spd_nobody_may(int64_t now);
void spd_estimate(struct spd_tenant *);
void spd_costs(unsigned policy);
void spd_refresh(const struct spd_worker *, int64_t cpu, int64_t now);
int64_t spd_wire(const struct spd_tenant *);
void spd_sample(struct spd_tenant *, int64_t cpu, int64_t wire);
void spd_residual_count(void);
void spd_residual_measure(int64_t cpu, int64_t now);

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
size_t spd_map_name(const char *host, size_t, const char *url, char *name,
    enum exempt_answer *);
unsigned spd_map_serial(void);

/* spd_tenant.c: all but the first three are locked */
void spd_tenants_init(void);
size_t spd_tenant_name(const struct req *, char *name, enum exempt_answer *);
struct spd_tenant *spd_tenant_find(const char *, size_t);
struct spd_tenant *spd_tenant_check(struct spd_tenant *, const char *, size_t);
int64_t spd_queue_timeout(const struct spd_tenant *);
int64_t spd_target(const struct spd_tenant *);
void spd_set_least_target(int64_t);
void spd_lower_least_target(int64_t);
int64_t spd_least_target(void);

/* spd_log.c */
void spd_timestamp(struct req *, const char *event, vtim_real now);
void spd_log(struct req *, struct spd_tenant *, const int64_t v[4],
    uint64_t bytes, int measured);
void spd_log_limit(struct vsl_log *, const struct spd_verdict *);

/* spd_dry.c: all locked */
void spd_dry_params(unsigned slots, int changed);
int64_t spd_dry_look(struct spd_tenant *, int64_t came, int64_t unknown);
void spd_dry_add(struct spd_tenant *, int64_t came);
void spd_dry_forget(struct spd_tenant *);
unsigned spd_dry_waiting(const struct spd_tenant *);
unsigned spd_dry_group(const struct spd_tenant *);
unsigned spd_dry_all(const struct spd_tenant *);

/* spd_admit.c */
unsigned spd_waiting(const struct spd_tenant *);
unsigned spd_waiting_limit(const struct spd_tenant *);
unsigned spd_fetch_limit(void);
void spd_verdict(struct spd_verdict *, const struct spd_tenant *,
    const char *what, unsigned value, unsigned limit,
    int64_t target);				/* locked */
int spd_limit_reached(struct spd_verdict *, const struct spd_tenant *,
    const char *what, unsigned value, unsigned limit);	/* locked */
int spd_limit_reached_new(struct spd_verdict *, struct spd_tenant *,
    const char *what, unsigned own, unsigned all, unsigned limit); /* locked */
int spd_admit_full(struct spd_tenant *, struct spd_verdict *);	/* locked */
int64_t spd_refusal_delay(struct spd_tenant *, int64_t now);	/* locked */
int spd_writer_begins(struct spd_tenant *);
void spd_writer_ends(struct spd_tenant *);

/* spd_conn.c */
void spd_conn_init(void);
struct spd_conn *spd_conn_fd(int fd);
int spd_conn_of(struct spd_conn *, const struct sess *);
struct spd_conn *spd_conn(const struct sess *);
void spd_conn_leave(struct spd_conn *);
void spd_conn_to(struct spd_conn *, enum spd_conn_state);	/* locked */
int spd_arm(struct spd_conn *);
void spd_disarm(struct spd_conn *);
int spd_park_locked(struct spd_conn *, int64_t deadline, int partial);
void spd_unpark_locked(struct spd_conn *);
struct spd_conn *spd_expired(int64_t now);	/* locked */
int spd_epoll(void);
unsigned spd_nparked(void);
int64_t spd_ns(double timeout);
double spd_conn_linger(const struct sess *);
double spd_left(const struct sess *, double timeout);

/* spd_ready.c: the first three are not locked */
void spd_ready_init(void);
unsigned spd_nready(void);
int spd_many_idle(void);
void spd_ready_push(struct spd_conn *, int64_t now);
struct spd_conn *spd_ready_pop(int64_t now, int spare);
int spd_parse_later(int64_t now);
int spd_may_parse(void);
int64_t spd_unknown_since(int64_t now);		/* locked */

/* spd_overload.c: all locked */
int spd_overloaded(struct spd_tenant *, int64_t age, int64_t now,
    struct spd_verdict *);
const char *spd_overload_word(const struct spd_tenant *, int64_t now);
void spd_overload_refused(struct spd_tenant *, int64_t now);
void spd_overload_released(struct spd_tenant *, int64_t wait, int64_t now);
void spd_overload_dry(struct spd_tenant *, int64_t came);

/* spd_price.c */
void spd_price_busy(unsigned percent);				/* locked */
void spd_price_queue(struct spd_tenant *, int64_t now);		/* locked */
void spd_price_fetched(struct spd_tenant *, int64_t cpu);	/* locked */
void spd_price_done(struct spd_tenant *);			/* locked */
double spd_congestion(enum rel_resource, int64_t now);		/* locked */
double spd_lean(int64_t now);					/* locked */
double spd_price(const struct spd_tenant *, enum rel_resource,
    int64_t now);						/* locked */

/* spd_queue.c */
enum spd_in {
	SPD_IN_QUEUED,
	SPD_IN_GRANTED,		/* the caller calls spd_task_run() */
	SPD_IN_FULL
};
enum spd_in spd_enqueue(struct worker *, struct req *, struct spd_conn *,
    unsigned flags, struct spd_verdict *, int64_t *wait);
struct req *spd_release(int64_t now, int slot, int64_t *when);	/* locked */
void spd_take_out(struct rel_node *, int64_t now);	/* locked */
void spd_count_late(struct spd_tenant *, int64_t now);	/* locked */
void spd_charge_refusal(struct spd_worker *, struct spd_tenant *,
    const struct req *, int64_t cpu, int64_t now);	/* locked */
void spd_answered(struct spd_worker *, const struct req *);
int spd_enough_run(int64_t now);		/* locked */
void spd_freeze(int on);			/* locked */
void spd_step(unsigned);			/* locked */
int spd_frozen(void);				/* locked */
void spd_fail(uint64_t fail, uint64_t late);	/* locked */

/* spd_fields.c */
#define SPD_FIELDS_WHY		1U
#define SPD_FIELDS_LAST		2U
void spd_fields(struct spd_tenant *, unsigned parts, int64_t now,
    struct spd_fields *);			/* locked */
unsigned spd_fields_all(unsigned parts, struct spd_fields **);
unsigned spd_fields_after(unsigned parts, const char *after, const char *glob,
    unsigned most, struct spd_fields **);
void spd_sums(struct spd_sums *);		/* locked */

/* spd_poll.c */
void spd_poll_init(void);
void spd_harvest(int timeout_ms);
void spd_timer(int64_t when);			/* locked */
void spd_set_leader(int);			/* locked */
int spd_has_leader(void);			/* locked */
void spd_wake(void);				/* locked */

/* spd_pool.c */
int spd_pool_run(struct pool *, const struct pool_task *);
int spd_pool_take(struct worker *);
int spd_pool_has_task(const struct pool *);
int spd_pool_ends(const struct pool *);
int spd_pool_must_fail(void);

/* spd_task.c */
void spd_task_init(void (*work)(struct worker *));
void spd_summon(void);
void spd_task_run(struct req *);		/* a granted request */
struct pool_task *spd_stranded(void);		/* locked */
int spd_summoned(void);				/* locked */
void spd_summon_done(void);			/* locked */
void spd_summon_new_pools(void);

/* spd_leader.c */
int spd_unwatched(void);			/* locked */
int spd_leaderless(void);
int spd_has_deputy(void);			/* locked */
int64_t spd_harvested(void);
void spd_look_now(struct spd_worker *, int64_t now);
void spd_sleep(struct worker *);		/* locked, returns unlocked */
void spd_nap(struct worker *, struct spd_worker *, int64_t now);
						/* locked, returns unlocked */
void spd_wake_leader(void);

/* spd_run.c */
void spd_dispatch(void);
void spd_begin(struct spd_worker *, struct req *, int64_t now);	/* locked */
void spd_parsed(struct spd_conn *);
void spd_pace(int64_t cpu);					/* locked */
void spd_find_work(struct worker *);

/* spd_lend.c */
void spd_lend(void);

/* spd_linger.c */
void spd_wake_conn(struct spd_conn *);
int spd_park(struct spd_conn *, double timeout, int partial);
int spd_without_req(struct worker *, struct spd_conn *);
void spd_expire(struct worker *, int64_t now);

/* hook_store.c */
void spd_enforce_limit(struct busyobj *);

/* hook_fetch.c, hook_h2.c */
void spd_fetch_look(struct spd_fetch_look *);
unsigned spd_fetches(void);			/* locked */
void spd_fetch_answered(struct busyobj *);
unsigned spd_h2_sessions(void);			/* locked */

/* spd_open.c */
void spd_open(int64_t now);
void spd_pretend_busy(int percent);

/* spd_watch.c, spd_stat.c, spd_params.c, spd_keeper.c: called by the keeper */
void spd_watch(int64_t now);
void spd_watch_queue(int64_t now);
void spd_stat(void);
void spd_stat_cache(void);
void spd_stat_stages(int64_t now);
void spd_params(void);
void spd_keeper_init(void);
