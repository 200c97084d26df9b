/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The state of the process, `spd`, and the state of this thread, `spd_me`.
 *
 * The state is in groups, by who may write it.  Only spd.h includes this file,
 * after spd_types.h.
 */

#define SPD_SLOTS_MAX		16384		/* bits in spd.slots */
#define SPD_HARVEST		200000		/* ns between two looks, at least */
#define SPD_NAP			1000000		/* ns, a sleep of the deputy */

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
	uint64_t		fail_next;	/* debug.sandpaper.fail: bit 0
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
