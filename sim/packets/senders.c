/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Windows, in packets.  One table entry is one sender.
 *
 * reno		RFC 5681: one packet more per round trip, half after a loss
 * lia		RFC 6356: Reno on each path, with a coupled increase
 * coupled	D. Wischik and others, NSDI 2011, section 2.2: fully coupled.
 *		Half of the sum of all windows goes from the path with the loss.
 * cubic	RFC 9438
 * dctcp	RFC 8257.  An unmarked ACK always grows the window, also in the
 *		window after a reduction.
 * constant	a rate, whatever is lost
 *
 * Each packet is acknowledged: there are no delayed ACKs.  Then Reno's window
 * is about sqrt(2 / p), as the paper has it.
 */

#include <stddef.h>

#include "internal.h"

static double
most(double a, double b)
{
	return (a > b ? a : b);
}

static int
slow_start(struct path *p)
{
	if (p->cwnd >= p->ssthresh)
		return (0);
	p->cwnd += 1;
	return (1);
}

static void
keep(struct path *p, double part)
{
	p->ssthresh = most(p->cwnd * part, 2);
	p->cwnd = p->ssthresh;
}

/*--------------------------------------------------------------------*/

static void
reno_init(struct path *p)
{
	p->cwnd = INITIAL_WINDOW;
	p->ssthresh = p->o.window;
}

static void
reno_ack(struct path *p, const struct ack *a)
{
	if (a->grows && !slow_start(p))
		p->cwnd += 1 / p->cwnd;
}

static void
reno_loss(struct path *p, int64_t now)
{
	(void)now;
	keep(p, .5);
}

void
reno_timeout(struct path *p, int64_t now)
{
	(void)now;
	/* After several timeouts the threshold stays */
	if (p->cwnd > WINDOW_MIN)
		p->ssthresh = most(p->cwnd / 2, 2);
	p->cwnd = WINDOW_MIN;
}

/*--------------------------------------------------------------------*/

static double
total_window(const struct path *p)
{
	const struct path *q;
	double sum = 0;

	for (q = p->flow->first; q != NULL; q = q->next)
		sum += q->cwnd;
	return (sum);
}

/* RFC 6356, 4.1: min(alpha / total, 1 / w).  It prints alpha as
 * total max(w / rtt^2) / (sum w / rtt)^2. */
static double
lia_increase(const struct path *p)
{
	const struct path *q;
	double best = 0, sum = 0, rtt, rise;

	for (q = p->flow->first; q != NULL; q = q->next) {
		rtt = q->srtt > 0 ? q->srtt : p->srtt;
		best = most(best, q->cwnd / (rtt * rtt));
		sum += q->cwnd / rtt;
	}
	rise = best / (sum * sum);
	return (rise < 1 / p->cwnd ? rise : 1 / p->cwnd);
}

static void
lia_ack(struct path *p, const struct ack *a)
{
	if (a->grows && !slow_start(p))
		p->cwnd += lia_increase(p);
}

static void
coupled_ack(struct path *p, const struct ack *a)
{
	if (a->grows && !slow_start(p))
		p->cwnd += 1 / total_window(p);
}

static void
coupled_loss(struct path *p, int64_t now)
{
	(void)now;
	p->cwnd = most(p->cwnd - total_window(p) / 2, WINDOW_MIN);
	p->ssthresh = p->cwnd;
}

/*--------------------------------------------------------------------*/

#define CUBIC_C		.4
#define CUBIC_BETA	.7
#define CUBIC_ALPHA	(3 * (1 - CUBIC_BETA) / (1 + CUBIC_BETA))

/* Newton's method: the same digits on each machine */
static double
cube_root(double x)
{
	double r = x > 1 ? x : 1;
	int i;

	if (x <= 0)
		return (0);
	for (i = 0; i < 100; i++)
		r -= (r - x / (r * r)) / 3;
	return (r);
}

static void
cubic_init(struct path *p)
{
	reno_init(p);
	p->cubic = (struct cubic){ .epoch = NEVER };
}

static void
cubic_begin(struct path *p, int64_t now)
{
	struct cubic *c = &p->cubic;

	c->epoch = now;
	c->friendly = p->cwnd;
	c->origin = most(c->w_max, p->cwnd);
	c->k = cube_root((c->origin - p->cwnd) / CUBIC_C);
}

static void
cubic_ack(struct path *p, const struct ack *a)
{
	struct cubic *c = &p->cubic;
	double t, target;

	if (!a->grows || slow_start(p))
		return;
	if (c->epoch == NEVER)
		cubic_begin(p, a->now);
	c->friendly += (c->friendly < c->w_max ? CUBIC_ALPHA : 1) / p->cwnd;
	/* 4.2: where the window is to be after the next round trip */
	t = ((double)(a->now - c->epoch) + p->srtt) / SECOND - c->k;
	target = c->origin + CUBIC_C * t * t * t;
	if (target > 1.5 * p->cwnd)
		target = 1.5 * p->cwnd;
	if (target > p->cwnd)
		p->cwnd += (target - p->cwnd) / p->cwnd;
	if (c->friendly > p->cwnd)
		p->cwnd = c->friendly;
}

static void
cubic_loss(struct path *p, int64_t now)
{
	struct cubic *c = &p->cubic;

	(void)now;
	/* 4.7, fast convergence */
	if (p->cwnd < c->w_max)
		c->w_max = p->cwnd * (1 + CUBIC_BETA) / 2;
	else
		c->w_max = p->cwnd;
	c->epoch = NEVER;
	keep(p, CUBIC_BETA);
}

static void
cubic_timeout(struct path *p, int64_t now)
{
	if (p->cwnd > WINDOW_MIN)
		cubic_loss(p, now);
	p->cwnd = WINDOW_MIN;
}

/*--------------------------------------------------------------------*/

#define DCTCP_G		(1. / 16)

static void
dctcp_init(struct path *p)
{
	reno_init(p);
	p->dctcp = (struct dctcp){ .alpha = 1 };
}

static void
dctcp_ack(struct path *p, const struct ack *a)
{
	struct dctcp *d = &p->dctcp;

	d->seen++;
	d->marked += a->marked;
	if (a->number >= d->end) {	/* a window is over */
		d->alpha += DCTCP_G *
		    ((double)d->marked / (double)d->seen - d->alpha);
		d->seen = d->marked = 0;
		d->end = p->head;
	}
	if (a->marked && a->number >= d->cut) {
		d->cut = p->head;
		p->st.reductions++;
		keep(p, 1 - d->alpha / 2);
	} else if (!a->marked && a->number >= p->recovery && !slow_start(p))
		p->cwnd += 1 / p->cwnd;
}

/*--------------------------------------------------------------------*/

static void
constant_init(struct path *p)
{
	p->cwnd = p->o.window;
	p->rate = p->o.rate / SECOND;
	assert(p->rate > 0);
}

static void
constant_ack(struct path *p, const struct ack *a)
{
	(void)p;
	(void)a;
}

static void
constant_timeout(struct path *p, int64_t now)
{
	(void)p;
	(void)now;
}

/*--------------------------------------------------------------------*/

static const struct sender sender_reno = {
	.name =		"reno",
	.summary =	"half after a loss (RFC 5681)",
	.init =		reno_init,
	.ack =		reno_ack,
	.loss =		reno_loss,
};

static const struct sender sender_lia = {
	.name =		"lia",
	.summary =	"multipath, linked increases (RFC 6356)",
	.init =		reno_init,
	.ack =		lia_ack,
	.loss =		reno_loss,
};

static const struct sender sender_coupled = {
	.name =		"coupled",
	.summary =	"multipath, fully coupled",
	.init =		reno_init,
	.ack =		coupled_ack,
	.loss =		coupled_loss,
};

static const struct sender sender_cubic = {
	.name =		"cubic",
	.summary =	"RFC 9438",
	.init =		cubic_init,
	.ack =		cubic_ack,
	.loss =		cubic_loss,
	.timeout =	cubic_timeout,
};

static const struct sender sender_dctcp = {
	.name =		"dctcp",
	.summary =	"by the part that is marked (RFC 8257)",
	.marks =	1,
	.init =		dctcp_init,
	.ack =		dctcp_ack,
	.loss =		reno_loss,
};

static const struct sender sender_constant = {
	.name =		"constant",
	.summary =	"a constant rate, whatever is lost",
	.ignores =	1,
	.init =		constant_init,
	.ack =		constant_ack,
	.timeout =	constant_timeout,
};

const struct sender *const senders[] = {
	&sender_reno, &sender_lia, &sender_coupled, &sender_cubic,
	&sender_dctcp, &sender_bbr, &sender_constant,
};
const uint32_t nsenders = sizeof senders / sizeof senders[0];
