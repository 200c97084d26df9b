/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The link to the clients, `net`: its interface, its rate T and its users.
 *
 * The interface is the one with the local address of the first client
 * connection that is not on loopback.  Until then loopback counts, since a
 * health check often comes first.  When the interface is gone, or the kernel
 * does not answer, the next new connection chooses again.  The keeper looks for
 * its interface SPD_AGAIN after the failure, at the earliest.
 *
 * Until an interface is found, T is what was learned before a restart, or
 * sandpaper_nic_rate.  A Unix socket has no interface.  Without any of these T
 * is unknown, and Sandpaper holds no request for net.
 *
 * The NIC and the address are under spd_lock(); rate_of_costs, address and
 * busy are also read without it.  Only the keeper measures.
 */

#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <net/if.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "perfctr/iface.h"
#include "spd.h"

#define SPD_RATE_UNKNOWN	10000000000ULL	/* bits/s, for costs while T
						 * is unknown */
#define SPD_BUSY	.75	/* of T: net counts as busy */
/* ns until the interface of another address is looked for: a search takes 20 ms
 * with a thousand interfaces */
#define SPD_AGAIN	INT64_C(1000000000)
/* ns without a request of another tenant: then one counts as alone on net */
#define SPD_SHARED_HOLD	INT64_C(10000000000)

/*
 * T as it was learned last.  It survives a restart of the child: the manager
 * maps this page before main(), and shares it with every child.
 */
struct spd_kept {
	uint64_t	rate;			/* bits/s, 0: none */
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

enum address {				/* a better address is larger */
	ADDRESS_NONE = 0,
	ADDRESS_LOOPBACK,
	ADDRESS_OUTSIDE
};

static struct iface iface[1];		/* of net; only the keeper's */
static struct nic nic[1];		/* locked */
static const struct spd_tenant *last_user;	/* of net; locked */
static int64_t shared_until;		/* ns: net has several users until
					 * then; locked */
static struct sockaddr_storage addr;	/* local, of a client; locked */
static _Atomic enum address address;	/* kind of addr */
static _Atomic int seen;		/* a client connection */
static _Atomic uint64_t rate_of_costs = SPD_RATE_UNKNOWN;	/* bits/s */
static _Atomic int busy;		/* net, in the last epoch */
static double used = -1;		/* parts of T that were sent, a mean of
					 * some epochs; -1: not known; locked */
static double pretended = -1;		/* the same for tests; -1: as measured */

void
spd_link_init(void)
{

	IFACE_Init(iface);
	NIC_Init(nic, kept != NULL ? kept->rate : 0,
	    cache_param->sandpaper_nic_rate, METER_Now());
}

/*--------------------------------------------------------------------
 * The address of net
 */

static int
is_loopback(const struct sockaddr_storage *ss)
{
	const struct sockaddr_in *a4 = (const void *)ss;
	const struct sockaddr_in6 *a6 = (const void *)ss;

	if (ss->ss_family == AF_INET)
		return (ntohl(a4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET);
	return (IN6_IS_ADDR_LOOPBACK(&a6->sin6_addr));
}

/*
 * Note the local address of a client connection, if net has no address yet.
 * An address that is not on loopback replaces one on loopback.
 */
void
spd_link_seen(const struct sess *sp)
{
	struct sockaddr_storage ss;
	socklen_t l = sizeof ss;
	enum address is;

	if (address == ADDRESS_OUTSIDE || sp->fd < 0)
		return;
	memset(&ss, 0, sizeof ss);
	if (getsockname(sp->fd, (void *)&ss, &l) ||
	    (ss.ss_family != AF_INET && ss.ss_family != AF_INET6)) {
		seen = 1;
		return;
	}
	is = is_loopback(&ss) ? ADDRESS_LOOPBACK : ADDRESS_OUTSIDE;
	spd_lock();
	if (is > address) {
		addr = ss;
		address = is;
	}
	spd_unlock();
	seen = 1;
}

/*--------------------------------------------------------------------
 * The rate of net
 */

/* Set the rate by which bytes are charged.  Caller holds spd_lock(). */
static void
spd_set_rate(void)
{
	uint64_t rate = NIC_DrainRate(nic);

	rate_of_costs = rate != 0 ? rate : SPD_RATE_UNKNOWN;
}

/* Copy the state of net to the counters.  Caller holds spd_lock(). */
static void
spd_nic_gauges(int64_t now)
{

	SPD_LOCKED();
	spd_vsc->nic_rate_bps = NIC_Rate(nic);
	spd_vsc->nic_backlog_bytes = (uint64_t)NIC_Backlog(nic, now);
	spd_vsc->nic_closed_ns = (uint64_t)NIC_ClosedTime(nic, now);
}

/* Return the part of T that is sent, a mean of about 0.1 s; -1: it is not
 * measured, or T is not known. */
double
spd_link_used(void)
{

	SPD_LOCKED();
	return (pretended >= 0 ? pretended : used);
}

/* For tests: let this part of T seem to be sent.  -1: as measured. */
void
spd_pretend_link_used(double part)
{

	SPD_LOCKED();
	pretended = part;
}

/* Note that net was not measured.  With forget, the next client connection
 * chooses its interface. */
static void
spd_link_missing(int forget, int64_t now)
{

	spd_lock();
	if (forget)
		address = ADDRESS_NONE;
	busy = nic->rate > 0;	/* not measured: assume so */
	used = -1;
	spd_nic_gauges(now);
	spd_unlock();
}

/*
 * Begin with another interface.  T is its nominal speed, or what an earlier
 * measurement of the same interface has learned.
 */
static void
spd_link_changed(void)
{
	uint64_t rate = iface->speed;

	if (kept != NULL && kept->rate != 0 && !strcmp(kept->name, iface->name))
		rate = kept->rate;
	spd_lock();
	NIC_SetRate(nic, rate);
	spd_set_rate();
	rate = NIC_Rate(nic);
	spd_unlock();
	VSL(SLT_Debug, NO_VXID, "Sandpaper: net is the interface %s, its rate "
	    "is %ju bits/s", iface->name, (uintmax_t)rate);
}

/* If clients come, and T is unknown, say so once. */
static void
spd_tell_unknown(void)
{
	static int told;
	uint64_t rate;

	spd_lock();
	rate = NIC_Rate(nic);
	spd_unlock();
	if (!seen || told || rate > 0)
		return;
	told = 1;
	VSL(SLT_Notice, NO_VXID, "Sandpaper: the rate of net is not known, so "
	    "only cpu is shared. Set sandpaper_nic_rate, unless all clients "
	    "are on this machine");
}

/* Measure net and learn T.  The keeper calls it every NIC_EPOCH; now: ns. */
void
spd_learn(int64_t now)
{
	static unsigned measured;	/* index of the interface; 0: none */
	static int64_t again;		/* do not look for one before */
	static uint64_t last_tx;
	static int64_t last;
	struct sockaddr_storage ss;
	struct iface_stat st;
	double sent_rate, part;
	int known, learned = 0;

	spd_lock();
	known = address != ADDRESS_NONE;
	ss = addr;
	spd_unlock();
	if (!known || now < again) {
		spd_link_missing(0, now);
		spd_tell_unknown();
		return;
	}
	if (IFACE_Read(iface, &ss, &st)) {
		measured = 0;
		again = now + SPD_AGAIN;
		spd_link_missing(1, now);
		return;
	}
	if (measured != iface->index) {
		measured = iface->index;
		spd_link_changed();
		spd_tell_unknown();
		last = now;
		last_tx = st.tx_bytes;
		return;
	}
	sent_rate = (double)(st.tx_bytes - last_tx) * 8e9 /
	    (double)(now - last);
	last_tx = st.tx_bytes;
	last = now;
	spd_lock();
	if (st.paced)
		NIC_Stop(nic);
	else
		learned = NIC_Learn(nic, st.tx_bytes, st.backlog, now);
	if (learned) {
		spd_vsc->nic_learned++;
		if (kept != NULL) {
			kept->rate = NIC_Rate(nic);
			bprintf(kept->name, "%s", iface->name);
		}
	}
	part = nic->rate > 0 ? sent_rate / (double)nic->rate : -1;
	used = part < 0 || used < 0 ? part : (used + part) / 2;
	busy = nic->backlogged_epochs || part >= SPD_BUSY;
	spd_nic_gauges(now);
	spd_set_rate();
	spd_unlock();
}

/*--------------------------------------------------------------------
 * The users of net
 */

/*
 * Note that a tenant enqueues a request now (ns).  If no other tenant has
 * enqueued one for SPD_SHARED_HOLD, net does not close.  To close it would cost
 * this tenant throughput and wake-ups, and help no other tenant.
 * Caller holds spd_lock().
 */
void
spd_note_user(const struct spd_tenant *t, int64_t now)
{

	SPD_LOCKED();
	if (last_user != t) {
		if (last_user != NULL)
			shared_until = now + SPD_SHARED_HOLD;
		last_user = t;
	}
	NIC_SetAlone(nic, now >= shared_until, now);
}

/*
 * Return 1 if net is busy: it was in the last epoch, or what has been released
 * fills it.  Takes spd_lock() if it was not busy in the last epoch.
 */
int
spd_link_busy(int64_t now)
{
	int is = busy;

	if (!is) {
		spd_lock();
		is = NIC_Busy(nic, now);
		spd_unlock();
	}
	return (is);
}

/*
 * Return the time on net, ns, of so many bytes on the wire.  While the rate is
 * not known, it counts as SPD_RATE_UNKNOWN.
 */
int64_t
spd_net(int64_t wire)
{

	return ((int64_t)((double)wire * 8e9 / (double)rate_of_costs));
}

/*--------------------------------------------------------------------
 * The backlog of net: NIC_*() for the other files.  Caller holds spd_lock().
 */

/* Return the time that net needs for what is released and not sent, ns. */
int64_t
spd_link_backlog(int64_t now)
{

	SPD_LOCKED();
	return (spd_net(NIC_Backlog(nic, now)));
}

/* Set the upper bound of the rate, bits/s, if it has changed.  0: none. */
void
spd_link_bound(uint64_t bound)
{
	static uint64_t last;

	SPD_LOCKED();
	if (bound != last)
		NIC_SetBound(nic, bound);
	last = bound;
	spd_set_rate();
}

/*
 * Count bytes that are about to be sent.  Returns how many were counted, for
 * spd_link_correct().
 */
uint32_t
spd_link_release(int64_t wire, int64_t now)
{

	SPD_LOCKED();
	return (NIC_Release(nic, (uint32_t)vmin_t(int64_t, wire,
	    SPD_COUNTED_MAX), now));
}

/* Correct the backlog: `wire` bytes were sent, not those that the request's
 * release counted. */
void
spd_link_correct(const struct rel_node *n, uint64_t wire, int64_t now)
{

	SPD_LOCKED();
	(void)NIC_Correct(nic, ((const struct spd_request *)n)->counted, wire,
	    now);
}

/* Return 1 if net is closed, until *opens, ns.  Only mode `on` closes it. */
int
spd_link_closed(int64_t now, int64_t *opens)
{

	SPD_LOCKED();
	return (spd_set.mode == SPD_ON && NIC_Closed(nic, now, opens));
}

void
spd_link_stat(struct spd_link_stat *st, int64_t now)
{

	SPD_LOCKED();
	st->rate = NIC_Rate(nic);
	st->backlog = NIC_Backlog(nic, now);
	st->closed_ns = NIC_ClosedTime(nic, now);
}
