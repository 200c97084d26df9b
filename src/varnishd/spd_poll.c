/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The epoll set and its timer.
 */

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <sys/epoll.h>
#include <sys/timerfd.h>

#include "spd.h"

#define SPD_EVENTS	64
#define SPD_LOOKS	16		/* at the events that are there, at most */

static void
spd_event(struct spd_conn *c, uint32_t events)
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
		spd_ready_push(c);
		break;
	case SPD_QUEUED:
		c->pending = 1;
		if (!hup)
			break;
		/* Nobody waits for the answer any more */
		CAST_OBJ_NOTNULL(req, c->priv, REQ_MAGIC);
		n = SPD_NODE(req);
		if (!REL_Waits(n))
			break;
		SPD_COUNT(spd_tenant_rel(n->tenant), gone, 1);
		spd_take_out(n, METER_Now());
		SPD_FLAGS(n) |= SPD_F_GONE;
		spd_ready_push(c);
		break;
	default:
		c->pending = 1;
		break;
	}
}

/* Returns how many events there were */
static int
spd_harvest_some(int timeout_ms)
{
	struct epoll_event ev[SPD_EVENTS];
	struct spd_conn *c;
	int i, n;

	n = epoll_wait(spd.epoll, ev, SPD_EVENTS, timeout_ms);
	spd_lock();
	spd.vsc->harvests++;
	for (i = 0; i < n; i++) {
		if (ev[i].data.u64 == UINT64_MAX) {
			spd.timer_at = 0;
			continue;
		}
		c = spd_conn_fd((int)(uint32_t)ev[i].data.u64);
		AN(c);
		if (c->serial == ev[i].data.u64 >> 32)
			spd_event(c, ev[i].events);
	}
	spd_unlock();
	return (n);
}

/* The kernel's list is in order of arrival: whoever comes behind a thousand
 * others is not to wait for as many looks */
void
spd_harvest(int timeout_ms)
{
	int i;

	for (i = 0; i < SPD_LOOKS; i++)
		if (spd_harvest_some(i == 0 ? timeout_ms : 0) < SPD_EVENTS)
			break;
}

/* Somebody must look again at this time, ns */
void
spd_timer(int64_t when)
{
	struct itimerspec its;

	SPD_LOCKED();
	if (when == INT64_MAX || (spd.timer_at != 0 && spd.timer_at <= when))
		return;
	spd.timer_at = when;
	memset(&its, 0, sizeof its);
	its.it_value.tv_sec = when / 1000000000;
	its.it_value.tv_nsec = when % 1000000000;
	AZ(timerfd_settime(spd.timer, TFD_TIMER_ABSTIME, &its, NULL));
}

void
spd_poll_init(void)
{
	struct epoll_event ev;

	spd.epoll = epoll_create1(EPOLL_CLOEXEC);
	assert(spd.epoll >= 0);
	spd.timer = timerfd_create(CLOCK_MONOTONIC,
	    TFD_NONBLOCK | TFD_CLOEXEC);
	assert(spd.timer >= 0);
	ev.events = EPOLLIN | EPOLLET;
	ev.data.u64 = UINT64_MAX;
	AZ(epoll_ctl(spd.epoll, EPOLL_CTL_ADD, spd.timer, &ev));
}
