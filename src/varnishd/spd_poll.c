/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The epoll set of connections, and the timer in it.
 *
 * An event makes a parked connection READY.  For another connection it only
 * sets flags, or cancels a waiting request that the client has reset.  The
 * timer wakes the leader, for example when net opens.  The connections,
 * timer_at and `leader` are under spd_lock(); epoll_wait() is called without
 * it.
 */

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <sys/epoll.h>
#include <sys/timerfd.h>

#include "spd.h"

#define SPD_EVENTS	64		/* of one epoll_wait(), at most */
#define SPD_LOOKS	16		/* calls in one harvest, at most */

SPD_STATIC int timer_fd = -1;		/* in the epoll set; set at start */
SPD_STATIC int64_t timer_at;		/* ns, 0: not set; locked */
SPD_STATIC int leader;			/* a worker sleeps in epoll_wait();
					 * locked */

/* Handle the events of one connection.  Caller holds spd_lock(). */
static void
spd_event(struct spd_conn *c, uint32_t events, int64_t now)
{
	struct req *req;
	struct rel_node *n;
	int hup = (events & (EPOLLHUP | EPOLLERR)) != 0;

	SPD_LOCKED();
	if (hup)
		c->hup = 1;
	if (events & EPOLLRDHUP)
		c->fin = 1;
	switch (c->state) {
	case SPD_PARKED:
		spd_unpark_locked(c);
		c->drained = 0;
		spd_ready_push(c, now);
		break;
	case SPD_QUEUED:
		c->pending = 1;
		if (!hup)
			break;
		/* The client does not wait for the answer any longer */
		CAST_OBJ_NOTNULL(req, c->priv, REQ_MAGIC);
		n = SPD_NODE(req);
		if (!REL_IsBacklogged(n))
			break;
		spd_take_out(n, now);
		SPD_REQUEST(n)->flags |= SPD_F_RESET;
		spd_ready_push(c, now);
		break;
	default:
		c->pending = 1;
		break;
	}
}

/* Call epoll_wait() once.  Return the number of events.  Takes spd_lock(). */
static int
spd_harvest_some(int timeout_ms)
{
	struct epoll_event ev[SPD_EVENTS];
	struct spd_conn *c;
	int64_t now;
	int i, n;

	n = epoll_wait(spd_epoll(), ev, SPD_EVENTS, timeout_ms);
	now = METER_Now();
	spd_lock();
	spd_vsc->harvests++;
	for (i = 0; i < n; i++) {
		if (ev[i].data.u64 == UINT64_MAX) {
			timer_at = 0;	/* it was the timer */
			continue;
		}
		c = spd_conn_fd((int)(uint32_t)ev[i].data.u64);
		AN(c);
		/* Else the event is of an earlier use of the descriptor */
		if (c->serial == ev[i].data.u64 >> 32)
			spd_event(c, ev[i].events, now);
	}
	spd_unlock();
	return (n);
}

/*
 * Take all events, after a wait of timeout_ms for the first one (-1: no
 * limit).  The kernel lists them in order of arrival.  With one epoll_wait(),
 * an event behind a thousand others would come late.  Takes spd_lock().
 */
void
spd_harvest(int timeout_ms)
{
	int i;

	for (i = 0; i < SPD_LOOKS; i++)
		if (spd_harvest_some(i == 0 ? timeout_ms : 0) < SPD_EVENTS)
			break;
}

/*
 * Set the timer: a worker must look again at this time, ns.  If an earlier
 * time is set, that stays.  INT64_MAX sets no time.  Caller holds spd_lock().
 */
void
spd_timer(int64_t when)
{
	struct itimerspec its;

	SPD_LOCKED();
	if (when == INT64_MAX || (timer_at != 0 && timer_at <= when))
		return;
	timer_at = when;
	memset(&its, 0, sizeof its);
	its.it_value.tv_sec = when / 1000000000;
	its.it_value.tv_nsec = when % 1000000000;
	AZ(timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &its, NULL));
}

/* Note that a leader begins or ends to sleep in epoll_wait().  Caller holds
 * spd_lock(). */
void
spd_set_leader(int is)
{

	SPD_LOCKED();
	assert(leader != is);
	leader = is;
}

/* Return 1 if a leader sleeps.  Caller holds spd_lock(). */
int
spd_has_leader(void)
{

	SPD_LOCKED();
	return (leader);
}

/* Wake the leader, if there is one.  Caller holds spd_lock(). */
void
spd_wake(void)
{

	if (spd_has_leader())
		spd_timer(METER_Now());
}

void
spd_poll_init(void)
{
	struct epoll_event ev;

	timer_fd = timerfd_create(CLOCK_MONOTONIC,
	    TFD_NONBLOCK | TFD_CLOEXEC);
	assert(timer_fd >= 0);
	ev.events = EPOLLIN | EPOLLET;
	ev.data.u64 = UINT64_MAX;
	AZ(epoll_ctl(spd_epoll(), EPOLL_CTL_ADD, timer_fd, &ev));
}
