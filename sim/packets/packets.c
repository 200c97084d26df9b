/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The network: how it is made, and its loop.  See packets.h.
 *
 * All memory is taken before the first event.  A packet goes from queue to
 * queue at once.  The delay of its path, and a jitter, come after the last one,
 * for packet and ACK together.  The jitter is at random: without it, flows with
 * equal round trips lose packets in turn or never (S. Floyd and V. Jacobson,
 * "On traffic phase effects in packet-switched gateways", 1992).
 */

#include <math.h>
#include <stdlib.h>

#include "internal.h"
#include "splitmix.h"

#define EVENTS_PATH	3	/* arrive, timer, pace */

/*--------------------------------------------------------------------
 * The table of senders
 */

uint32_t
pkt_senders(void)
{
	return (nsenders);
}

const char *
pkt_sender_name(uint32_t n)
{
	assert(n < nsenders);
	return (senders[n]->name);
}

const char *
pkt_sender_summary(uint32_t n)
{
	assert(n < nsenders);
	return (senders[n]->summary);
}

/*--------------------------------------------------------------------
 * Making a network
 */

struct pkt *
pkt_new(uint64_t seed)
{
	struct pkt *net = calloc(1, sizeof *net);

	if (net != NULL)
		net->random = splitmix(seed);
	return (net);
}

static void
path_free(struct path *p)
{
	free(p->hop);
	free(p->sent);
	free(p->line);
	free(p);
}

void
pkt_free(struct pkt *net)
{
	int32_t i;

	for (i = 0; i < net->npaths; i++)
		path_free(net->paths[i]);
	for (i = 0; i < net->nqueues; i++)
		queue_free(net->queues[i]);
	for (i = 0; i < net->nflows; i++)
		free(net->flows[i]);
	free(net->paths);
	free(net->queues);
	free(net->flows);
	free(net->events.heap);
	free(net);
}

/* Room for one more pointer in a list; NULL: no memory, the list stays */
static void *
one_more(void *list, int32_t n)
{
	return (realloc(list, ((size_t)n + 1) * sizeof(void *)));
}

int32_t
pkt_add_queue(struct pkt *net, const struct pkt_queue *o)
{
	struct queue *q, **list;

	assert(!net->running);
	assert(o->kind <= PKT_MQ && o->capacity > 0 && o->batch > 0);
	assert(o->quantum >= 0 && o->low >= 0 && o->low < o->high);
	assert(o->p_max >= 0 && o->p_max <= 1);
	assert(o->weight > 0 && o->weight <= 1);
	list = one_more(net->queues, net->nqueues);
	if (list == NULL)
		return (-1);
	net->queues = list;
	q = calloc(1, sizeof *q);
	if (q == NULL)
		return (-1);
	q->o = *o;
	q->cheapest = NEVER;
	event_init(&q->done, queue_done, q);
	list[net->nqueues] = q;
	return (net->nqueues++);
}

int32_t
pkt_add_flow(struct pkt *net, uint32_t sender)
{
	struct flow *f, **list;

	assert(!net->running && sender < nsenders);
	list = one_more(net->flows, net->nflows);
	if (list == NULL)
		return (-1);
	net->flows = list;
	f = calloc(1, sizeof *f);
	if (f == NULL)
		return (-1);
	f->sender = senders[sender];
	list[net->nflows] = f;
	return (net->nflows++);
}

static void
first_send(struct pkt *net, void *owner)
{
	struct path *p = owner;

	p->pace.fire = path_pace;
	path_start(net, p);
}

static struct path *
path_new(const struct pkt_path *o)
{
	struct path *p = calloc(1, sizeof *p);
	uint32_t size = 16;

	if (p == NULL)
		return (NULL);
	while (size < o->window + GROUP + 1)
		size *= 2;
	p->o = *o;
	p->mask = size - 1;
	p->deadline = NEVER;
	p->hop = calloc((size_t)o->hops, sizeof *p->hop);
	p->sent = calloc(size, sizeof *p->sent);
	p->line = calloc(size, sizeof *p->line);
	event_init(&p->arrive, path_arrive, p);
	event_init(&p->timer, path_timer, p);
	event_init(&p->pace, first_send, p);
	if (p->hop == NULL || p->sent == NULL || p->line == NULL) {
		path_free(p);
		return (NULL);
	}
	return (p);
}

static void
set_hops(struct pkt *net, struct path *p, const int32_t *queues,
    const int64_t *costs)
{
	struct queue *q;
	int32_t i;

	for (i = 0; i < p->o.hops; i++) {
		assert(queues[i] >= 0 && queues[i] < net->nqueues);
		assert(costs[i] > 0);
		q = net->queues[queues[i]];
		p->hop[i].queue = q;
		p->hop[i].cost = costs[i];
		if (q->o.kind == PKT_FQ || q->o.kind == PKT_MQ)
			p->hop[i].ring = q->rings++;
		if (costs[i] < q->cheapest)
			q->cheapest = costs[i];
	}
}

int32_t
pkt_add_path(struct pkt *net, int32_t flow, const struct pkt_path *o,
    const int32_t *queues, const int64_t *costs)
{
	struct path *p, **end, **list;

	assert(!net->running && flow >= 0 && flow < net->nflows);
	assert(o->hops > 0 && o->window > 0 && o->delay > 0 && o->jitter >= 0);
	assert(o->start >= 0 && o->min_rto > 0);
	list = one_more(net->paths, net->npaths);
	if (list == NULL)
		return (-1);
	net->paths = list;
	p = path_new(o);
	if (p == NULL)
		return (-1);
	list[net->npaths] = p;
	p->number = (uint32_t)net->npaths;
	p->flow = net->flows[flow];
	for (end = &p->flow->first; *end != NULL; end = &(*end)->next)
		continue;
	*end = p;
	set_hops(net, p, queues, costs);
	p->flow->sender->init(p);
	return (net->npaths++);
}

/*--------------------------------------------------------------------
 * The way of a packet
 */

static void
network_drop(struct path *p)
{
	p->st.inside--;
	p->st.dropped++;
}

/* To the queue of its hop, or back after the last one */
void
network_next(struct pkt *net, struct packet *out)
{
	struct path *p = net->paths[out->path];
	struct queue *q;

	if (out->hop == p->o.hops) {
		network_return(net, out);
		return;
	}
	q = p->hop[out->hop].queue;
	if (!queue_put(net, q, out))
		network_drop(p);
}

void
network_return(struct pkt *net, const struct packet *out)
{
	struct path *p = net->paths[out->path];
	struct arrival *a = &p->line[(p->line_first + p->line_n) & p->mask];

	assert(p->line_n <= p->mask);
	a->when = net->now + p->o.delay;
	if (p->o.jitter > 0)
		a->when += (int64_t)(splitmix_draw(&net->random) *
		    (double)p->o.jitter);
	if (a->when < p->line_last)	/* a path keeps the order */
		a->when = p->line_last;
	p->line_last = a->when;
	a->number = out->number;
	a->marked = out->marked;
	if (p->line_n++ == 0)
		event_set(&net->events, &p->arrive, a->when);
}

/*--------------------------------------------------------------------
 * The loop
 */

static int
prepare(struct pkt *net)
{
	struct events *es = &net->events;
	struct path *p;
	int32_t i, k;

	es->room = net->nqueues + EVENTS_PATH * net->npaths;
	es->heap = calloc((size_t)es->room + 1, sizeof(struct event *));
	if (es->heap == NULL)
		return (-1);
	for (i = 0; i < net->nqueues; i++)
		if (queue_prepare(net->queues[i]) < 0)
			return (-1);
	for (i = 0; i < net->npaths; i++) {
		p = net->paths[i];
		for (k = 0; k < p->o.hops; k++)
			p->hop[k].factor = pow((double)p->hop[k].cost /
			    (double)p->hop[k].queue->cheapest,
			    p->hop[k].queue->o.exponent);
		event_set(es, &p->pace, p->o.start);
	}
	net->running = 1;
	return (0);
}

int32_t
pkt_run(struct pkt *net, int64_t until)
{
	struct events *es = &net->events;
	struct event *e;

	assert(until >= net->now);
	if (!net->running && prepare(net) < 0)
		return (-1);
	while (es->n > 0 && es->heap[0]->when <= until) {
		e = es->heap[0];
		assert(e->when >= net->now);
		net->now = e->when;
		event_clear(es, e);
		e->fire(net, e->owner);
		net->fired++;
	}
	net->now = until;
	return (0);
}

/*--------------------------------------------------------------------
 * What happened
 */

int64_t
pkt_events(const struct pkt *net)
{
	return (net->fired);
}

void
pkt_stat(const struct pkt *net, int32_t path, struct pkt_stat *st)
{
	const struct path *p = net->paths[path];

	assert(path >= 0 && path < net->npaths);
	*st = p->st;
	st->rtt = (int64_t)p->srtt;
	st->window = p->cwnd;
	if (p->head > 0)
		st->window_ns += p->cwnd * (double)(net->now - p->window_at);
}

int64_t
pkt_served(const struct pkt *net, int32_t path, int32_t hop)
{
	assert(path >= 0 && path < net->npaths);
	assert(hop >= 0 && hop < net->paths[path]->o.hops);
	return (net->paths[path]->hop[hop].served);
}

int64_t
pkt_busy(const struct pkt *net, int32_t queue)
{
	assert(queue >= 0 && queue < net->nqueues);
	return (net->queues[queue]->busy_ns);
}

int32_t
pkt_waiting(const struct pkt *net, int32_t queue)
{
	assert(queue >= 0 && queue < net->nqueues);
	return ((int32_t)net->queues[queue]->waiting);
}
