/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * BBR, version 1 (N. Cardwell and others, ACM Queue 14, 2016; IETF draft
 * draft-cardwell-iccrg-bbr-congestion-control-00).
 *
 * The rate is the highest one at which packets arrived in ten rounds, the
 * round-trip time the lowest in ten seconds.  Their product is the path's
 * bandwidth-delay product.  Losses change nothing, except that a timeout begins
 * at a window of four packets.  The model leaves out long-term sampling
 * (policers), the packet conservation of a recovery's first round, and the rate
 * reduction by 1 %.
 */

#include <string.h>

#include "internal.h"

#define HIGH_GAIN	2.885	/* 2 / ln 2 */
#define CWND_GAIN	2.0
#define FULL_GROWTH	1.25
#define FULL_ROUNDS	3
#define LEAST		4.0	/* packets */
#define RTT_WINDOW	(10 * SECOND)
#define PROBE_TIME	(SECOND / 5)
#define PHASES		8

static const double phase_gain[PHASES] = { 1.25, .75, 1, 1, 1, 1, 1, 1 };

static double
product(const struct bbr *b)
{
	return (b->rate * (double)b->min_rtt);
}

static void
bbr_init(struct path *p)
{
	memset(&p->bbr, 0, sizeof p->bbr);
	p->cwnd = INITIAL_WINDOW;
	p->bbr.state = STARTUP;
	p->bbr.gain = HIGH_GAIN;
	p->bbr.min_rtt = NEVER;
}

static void
update_rate(struct path *p, const struct ack *a)
{
	struct bbr *b = &p->bbr;
	int64_t sending = a->sent->at - a->sent->first_at;
	int64_t interval = a->now - a->sent->delivered_at;
	double rate;
	int i;

	if (a->sent->delivered >= b->round_end) {
		b->round++;
		b->round_end = p->delivered;
		b->best[b->round % BBR_ROUNDS] = 0;
	}
	if (interval < sending)
		interval = sending;
	if (interval <= 0)
		return;
	rate = (double)(p->delivered - a->sent->delivered) / (double)interval;
	if (rate > b->best[b->round % BBR_ROUNDS])
		b->best[b->round % BBR_ROUNDS] = rate;
	b->rate = 0;
	for (i = 0; i < BBR_ROUNDS; i++)
		if (b->best[i] > b->rate)
			b->rate = b->best[i];
}

/* Is the pipe full: three rounds without 25 % more */
static void
check_full(struct bbr *b)
{
	if (b->filled)
		return;
	if (b->rate >= b->full_rate * FULL_GROWTH) {
		b->full_rate = b->rate;
		b->full_rounds = 0;
	} else if (++b->full_rounds >= FULL_ROUNDS)
		b->filled = 1;
}

static void
enter_probe_bw(struct path *p, int64_t now)
{
	struct bbr *b = &p->bbr;

	/* Not all flows at once: the phases after 0.75 */
	b->state = PROBE_BW;
	b->phase = 2 + (int)(p->number % (PHASES - 2));
	b->phase_at = now;
	b->gain = phase_gain[b->phase];
}

static void
cycle(struct path *p, const struct ack *a)
{
	struct bbr *b = &p->bbr;
	double gain = phase_gain[b->phase];
	int over = a->now - b->phase_at > b->min_rtt;

	if (gain > 1)
		over = over && (a->lost ||
		    (double)p->inflight >= gain * product(b));
	else if (gain < 1)
		over = over || (double)p->inflight <= product(b);
	if (!over)
		return;
	b->phase = (b->phase + 1) % PHASES;
	b->phase_at = a->now;
	b->gain = phase_gain[b->phase];
}

static void
probe_rtt(struct path *p, int64_t now)
{
	struct bbr *b = &p->bbr;

	if (b->probe_end == 0 && (double)p->inflight <= LEAST)
		b->probe_end = now + PROBE_TIME;
	if (b->probe_end == 0 || now < b->probe_end)
		return;
	b->min_rtt_at = now;
	p->cwnd = b->before;
	if (b->filled)
		enter_probe_bw(p, now);
	else {
		b->state = STARTUP;
		b->gain = HIGH_GAIN;
	}
}

static void
update_rtt(struct path *p, const struct ack *a)
{
	struct bbr *b = &p->bbr;
	int expired = b->min_rtt != NEVER &&
	    a->now - b->min_rtt_at > RTT_WINDOW;

	if (a->rtt <= b->min_rtt || expired) {
		b->min_rtt = a->rtt;
		b->min_rtt_at = a->now;
	}
	if (expired && b->state != PROBE_RTT) {
		b->state = PROBE_RTT;
		b->gain = 1;
		b->before = p->cwnd;
		b->probe_end = 0;
	}
}

static void
set_window(struct path *p)
{
	struct bbr *b = &p->bbr;
	double gain = b->filled ? CWND_GAIN : HIGH_GAIN;
	double target = gain * product(b);

	if (target < LEAST)
		target = LEAST;
	if (b->state == PROBE_RTT)
		p->cwnd = LEAST;
	else if (p->cwnd + 1 < target || p->delivered < INITIAL_WINDOW)
		p->cwnd += 1;
	else if (b->filled)
		p->cwnd = target;
	p->rate = b->gain * b->rate;
}

static void
bbr_ack(struct path *p, const struct ack *a)
{
	struct bbr *b = &p->bbr;
	int64_t round = b->round;

	update_rate(p, a);
	if (b->round != round)
		check_full(b);
	update_rtt(p, a);
	if (b->state == STARTUP && b->filled) {
		b->state = DRAIN;
		b->gain = 1 / HIGH_GAIN;
	}
	if (b->state == DRAIN && (double)p->inflight <= product(b))
		enter_probe_bw(p, a->now);
	if (b->state == PROBE_BW)
		cycle(p, a);
	else if (b->state == PROBE_RTT)
		probe_rtt(p, a->now);
	set_window(p);
}

static void
bbr_timeout(struct path *p, int64_t now)
{
	(void)now;
	p->cwnd = LEAST;
}

const struct sender sender_bbr = {
	.name =		"bbr",
	.summary =	"version 1: rate and round-trip time, not losses",
	.ignores =	1,
	.init =		bbr_init,
	.ack =		bbr_ack,
	.timeout =	bbr_timeout,
};
