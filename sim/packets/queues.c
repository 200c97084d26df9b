/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Queues in front of a CPU, as in "Sharing CPUs via endpoint congestion
 * control" (L. Vasilescu, V. Olteanu and C. Raiciu, KBNets 2017).
 *
 * RED_4 drops a packet of cost c with p (c / c_min)^2, where p is RED's
 * probability for the cheapest flow (section 4; S. De Cnodder, O. Elloumi and
 * K. Pauwels, ISCC 2000).  Then c times the window is the same for all flows.
 *
 * FQ and MQ have a ring of each path, as a network card has.  Rings take
 * turns.  A turn is a batch: the packets that are in the ring when the turn
 * begins, at most `batch` of them (section 3.1: poll() returns these).  It ends
 * early if the process has used its quantum.
 *
 * The paper does not say these, so they are choices.  A buffer counts packets
 * that wait, not bytes and not their costs.  A ring of FQ and MQ has the whole
 * capacity.  RED compares an average length (S. Floyd and V. Jacobson, 1993),
 * and drops or marks all packets at the high threshold and above.
 */

#include <stdlib.h>

#include "internal.h"
#include "splitmix.h"

static int
by_path(const struct queue *q)
{
	return (q->o.kind == PKT_FQ || q->o.kind == PKT_MQ);
}

static int
is_red(const struct queue *q)
{
	return (q->o.kind == PKT_RED || q->o.kind == PKT_RED4 ||
	    q->o.kind == PKT_MQ);
}

int
queue_prepare(struct queue *q)
{
	uint32_t i;

	if (!by_path(q))
		q->rings = 1;
	if (q->rings == 0)
		return (0);
	q->ring = calloc(q->rings, sizeof *q->ring);
	q->order = calloc(q->rings, sizeof *q->order);
	q->served = calloc(ORDER, sizeof *q->served);
	if (q->ring == NULL || q->order == NULL || q->served == NULL)
		return (-1);
	for (i = 0; i < q->rings; i++) {
		q->ring[i].size = q->o.capacity;
		q->ring[i].packet = calloc(q->o.capacity,
		    sizeof *q->ring[i].packet);
		if (q->ring[i].packet == NULL)
			return (-1);
	}
	return (0);
}

void
queue_free(struct queue *q)
{
	uint32_t i;

	for (i = 0; q->ring != NULL && i < q->rings; i++)
		free(q->ring[i].packet);
	free(q->ring);
	free(q->order);
	free(q->served);
	free(q);
}

/*--------------------------------------------------------------------
 * Drops
 */

double
pkt_red(const struct pkt_queue *o, double average, double factor)
{
	double p;

	if (average < o->low)
		return (0);
	if (average >= o->high)
		return (1);
	p = o->p_max * (average - o->low) / (o->high - o->low) * factor;
	return (p < 1 ? p : 1);
}

/* Packets that wait, or what they cost, in packets of the cheapest path */
static double
length(const struct queue *q)
{
	if (q->o.by_work)
		return ((double)q->work / (double)q->cheapest);
	return (q->waiting);
}

static double
power(double x, uint64_t n)
{
	double y = 1;

	for (; n > 0; n /= 2, x *= x)
		if (n % 2)
			y *= x;
	return (y);
}

/* Floyd and Jacobson, 1993: while a queue is idle, the average falls as if
 * packets had come to an empty queue. */
static void
update_average(struct queue *q, int64_t now)
{
	if (!q->busy && q->o.weight < 1)
		q->average *= power(1 - q->o.weight,
		    (uint64_t)((now - q->idle) / q->cheapest));
	q->average += q->o.weight * (length(q) - q->average);
}

/* RED: 0 is to drop.  A packet that can be marked is not dropped */
static int
red_admits(struct pkt *net, struct queue *q, const struct hop *h,
    struct packet *p)
{
	double chance;

	update_average(q, net->now);
	chance = pkt_red(&q->o, q->average,
	    q->o.kind == PKT_RED ? 1 : h->factor);
	if (chance <= 0 || splitmix_draw(&net->random) >= chance)
		return (1);
	if (!q->o.ecn)
		return (0);
	p->marked = 1;
	return (1);
}

/*--------------------------------------------------------------------
 * Order
 */

static void
push(struct ring *r, const struct packet *p)
{
	uint32_t at = r->first + r->n;

	assert(r->n < r->size);
	r->packet[at < r->size ? at : at - r->size] = *p;
	r->n++;
}

static struct packet
pop(struct ring *r)
{
	struct packet p = r->packet[r->first];

	assert(r->n > 0);
	if (++r->first == r->size)
		r->first = 0;
	r->n--;
	return (p);
}

/* The ring waits for a turn, after all others */
static void
line_up(struct queue *q, uint32_t ring)
{
	assert(q->order_n < q->rings);
	q->order[(q->order_first + q->order_n++) % q->rings] = ring;
}

static void
end_turn(struct queue *q)
{
	uint32_t ring = q->order[q->order_first];

	q->in_turn = 0;
	q->order_first = (q->order_first + 1) % q->rings;
	q->order_n--;
	if (q->ring[ring].n > 0)
		line_up(q, ring);
}

/* The ring whose packet is next */
static struct ring *
turn(struct queue *q, int64_t now)
{
	struct ring *r;

	if (!by_path(q))
		return (&q->ring[0]);
	if (q->in_turn && (q->left == 0 || now >= q->turn_end))
		end_turn(q);
	assert(q->order_n > 0);
	r = &q->ring[q->order[q->order_first]];
	if (!q->in_turn) {
		q->in_turn = 1;
		q->left = r->n < q->o.batch ? r->n : q->o.batch;
		q->turn_end = q->o.quantum ? now + q->o.quantum : NEVER;
	}
	q->left--;
	return (r);
}

/* Work conserving: called when a packet waits, and none is in service */
static void
serve(struct pkt *net, struct queue *q)
{
	struct hop *h;

	assert(!q->busy && q->waiting > 0);
	q->serving = pop(turn(q, net->now));
	q->waiting--;
	q->busy = 1;
	h = &net->paths[q->serving.path]->hop[q->serving.hop];
	q->work -= h->cost;
	h->served += h->cost;
	q->busy_ns += h->cost;
	q->served[q->nserved++ % ORDER] = (int32_t)q->serving.path;
	event_set(&net->events, &q->done, net->now + h->cost);
}

int
queue_put(struct pkt *net, struct queue *q, struct packet *p)
{
	const struct hop *h = &net->paths[p->path]->hop[p->hop];
	struct ring *r = &q->ring[h->ring];

	if (is_red(q) && !red_admits(net, q, h, p))
		return (0);
	if (r->n == r->size)
		return (0);
	push(r, p);
	q->waiting++;
	q->work += h->cost;
	/* A ring in its turn is in the order already */
	if (by_path(q) && r->n == 1 &&
	    !(q->in_turn && q->order[q->order_first] == h->ring))
		line_up(q, h->ring);
	if (!q->busy)
		serve(net, q);
	return (1);
}

void
queue_done(struct pkt *net, void *owner)
{
	struct queue *q = owner;
	struct packet p = q->serving;

	assert(q->busy);
	q->busy = 0;
	if (q->waiting > 0)
		serve(net, q);
	else
		q->idle = net->now;
	p.hop++;
	network_next(net, &p);
}

int32_t
pkt_order(const struct pkt *net, int32_t queue, int32_t *paths, int32_t room)
{
	const struct queue *q = net->queues[queue];
	int32_t i, n = q->nserved < ORDER ? (int32_t)q->nserved : ORDER;

	if (n > room)
		n = room;
	for (i = 0; i < n; i++)
		paths[i] = q->served[(q->nserved - n + i) % ORDER];
	return (n);
}
