/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * What a path sends, and when it calls a packet lost.
 *
 * Each packet that is sent has a new number, as in QUIC (RFC 9002), so a
 * number is delivered once.  A path keeps the order of its packets.  A packet
 * counts as lost when one that was sent GROUP packets later has arrived, as
 * with SACK (RFC 6675).  The first loss of a window is a reduction.  Then the
 * path sends whenever fewer packets than its window are under way.  So a window
 * of two or three packets does not need a timeout for one loss (RFC 3042).
 *
 * If nothing arrives for a retransmission timeout, all packets under way count
 * as lost, and the window is one packet.  RFC 6298 has the timeout, with a
 * minimum, and doubles it each time.
 *
 * All data are new or are needed again: a flow never ends.  So a delivered
 * packet is goodput, unless it was called lost before (spurious).
 */

#include <stddef.h>

#include "internal.h"
#include "splitmix.h"

#define BACKOFF_MOST	6	/* doublings: with 200 ms at most 13 s */

/*--------------------------------------------------------------------
 * Timer
 */

static int64_t
timeout_of(const struct path *p)
{
	double rto = SECOND;	/* RFC 6298, 2.1 */

	if (p->srtt > 0)
		rto = p->srtt + 4 * p->rttvar;
	if (rto < (double)p->o.min_rto)
		rto = (double)p->o.min_rto;
	return ((int64_t)rto << p->backoff);
}

/* The event is at the deadline or before it, so an ACK need not move it */
static void
set_timer(struct pkt *net, struct path *p)
{
	p->deadline = p->inflight > 0 ? net->now + timeout_of(p) : NEVER;
	if (p->deadline < p->timer.when)
		event_set(&net->events, &p->timer, p->deadline);
}

/* The sum of the window over time; call it before the window changes */
static void
sum_window(struct pkt *net, struct path *p)
{
	p->st.window_ns += p->cwnd * (double)(net->now - p->window_at);
	p->window_at = net->now;
}

void
path_timer(struct pkt *net, void *owner)
{
	struct path *p = owner;

	if (p->deadline > net->now) {
		if (p->deadline != NEVER)
			event_set(&net->events, &p->timer, p->deadline);
		return;
	}
	sum_window(net, p);
	p->st.timeouts++;
	p->st.lost += p->inflight;
	p->inflight = 0;
	p->resolved = p->recovery = p->head;
	if (p->backoff < BACKOFF_MOST)
		p->backoff++;
	if (p->flow->sender->timeout != NULL)
		p->flow->sender->timeout(p, net->now);
	else
		reno_timeout(p, net->now);
	p->deadline = NEVER;
	path_send(net, p);
}

static void
sample(struct path *p, double rtt)
{
	double off = p->srtt > rtt ? p->srtt - rtt : rtt - p->srtt;

	if (p->srtt <= 0) {
		p->srtt = rtt;
		p->rttvar = rtt / 2;
	} else {
		p->rttvar += (off - p->rttvar) / 4;
		p->srtt += (rtt - p->srtt) / 8;
	}
	p->st.rtt_sum += rtt;
	p->st.rtt_samples++;
}

/*--------------------------------------------------------------------
 * Sending
 */

static int
may_send(const struct path *p)
{
	return ((double)p->inflight + 1 <= p->cwnd &&
	    p->st.inside < p->o.window && p->head - p->resolved <= p->mask);
}

static void
transmit(struct pkt *net, struct path *p)
{
	struct packet out = {
		.number = p->head, .path = p->number, .hop = 0, .marked = 0
	};
	struct sent *s = &p->sent[p->head & p->mask];

	if (p->inflight == 0)	/* the rate begins anew after idle time */
		p->first_at = p->delivered_at = net->now;
	s->at = net->now;
	s->delivered = p->delivered;
	s->delivered_at = p->delivered_at;
	s->first_at = p->first_at;
	s->open = 1;
	p->head++;
	p->inflight++;
	p->st.sent++;
	if (p->deadline == NEVER)
		set_timer(net, p);
	if (p->o.loss > 0 && splitmix_draw(&net->random) < p->o.loss) {
		p->st.dropped++;
		return;
	}
	if (p->o.mark > 0 && splitmix_draw(&net->random) < p->o.mark)
		out.marked = 1;
	p->st.inside++;
	network_next(net, &out);
}

/* All that the window allows; at the path's rate, if it has one */
void
path_send(struct pkt *net, struct path *p)
{
	while (may_send(p)) {
		if (p->rate > 0) {
			if (p->next_send > net->now) {
				if (p->pace.at < 0)
					event_set(&net->events, &p->pace,
					    p->next_send);
				return;
			}
			p->next_send = net->now + (int64_t)(1 / p->rate);
		}
		transmit(net, p);
	}
}

void
path_pace(struct pkt *net, void *owner)
{
	path_send(net, owner);
}

/*--------------------------------------------------------------------
 * What comes back
 */

static void
reduce(struct path *p, int64_t now)
{
	p->recovery = p->head;
	p->st.reductions++;
	p->flow->sender->loss(p, now);
}

/* Packets that were sent GROUP or more before this one are lost */
static int
find_losses(struct path *p, int64_t number)
{
	int fresh = 0;

	for (; p->resolved + GROUP <= number; p->resolved++) {
		struct sent *s = &p->sent[p->resolved & p->mask];

		if (!s->open)
			continue;
		s->open = 0;
		p->inflight--;
		p->st.lost++;
		fresh |= p->resolved >= p->recovery;
	}
	return (fresh);
}

static void
acknowledge(struct pkt *net, struct path *p, int64_t number, int marked)
{
	const struct sender *sender = p->flow->sender;
	struct sent *s = &p->sent[number & p->mask];
	struct ack a = {
		.now = net->now, .rtt = net->now - s->at, .number = number,
		.marked = marked, .grows = number >= p->recovery, .sent = s
	};

	assert(s->open);
	s->open = 0;
	p->inflight--;
	p->delivered++;
	p->delivered_at = net->now;
	p->first_at = s->at;
	p->backoff = 0;
	sample(p, (double)a.rtt);
	a.lost = find_losses(p, number);
	if (!sender->ignores &&
	    (a.lost || (marked && a.grows && !sender->marks))) {
		reduce(p, net->now);
		a.grows = 0;
	}
	sender->ack(p, &a);
	if (p->cwnd > p->o.window)
		p->cwnd = p->o.window;
	set_timer(net, p);
}

void
path_arrive(struct pkt *net, void *owner)
{
	struct path *p = owner;
	struct arrival a = p->line[p->line_first];

	assert(p->line_n > 0 && a.when == net->now);
	p->line_first = (p->line_first + 1) & p->mask;
	if (--p->line_n > 0)
		event_set(&net->events, &p->arrive,
		    p->line[p->line_first].when);
	p->st.inside--;
	p->st.delivered++;
	p->st.marked += a.marked;
	sum_window(net, p);
	if (a.number < p->resolved)
		p->st.spurious++;
	else
		acknowledge(net, p, a.number, a.marked);
	path_send(net, p);
}

void
path_start(struct pkt *net, struct path *p)
{
	p->window_at = net->now;
	path_send(net, p);
}
