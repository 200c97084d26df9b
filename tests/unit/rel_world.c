/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The books of rel_world.h, and the processor-sharing CPU.
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "rel_world.h"
#include "splitmix.h"

uint64_t
rng_below(uint64_t *s, uint64_t n)
{
	return (splitmix_next(s) % n);
}

static void
fault(struct world *w, const char *what)
{
	if (w->fault == NULL)
		w->fault = what;
}

struct world *
world_new(struct rel *rel, unsigned nslots, uint64_t seed)
{
	struct world *w = calloc(1, sizeof *w);
	unsigned i;

	assert(w != NULL && rel != NULL);
	w->reqs = calloc(WORLD_REQS, sizeof *w->reqs);
	assert(w->reqs != NULL);
	w->rel = rel;
	w->nslots = nslots;
	w->rng = seed;
	for (i = 0; i < WORLD_REQS; i++)
		w->free[i] = &w->reqs[i];
	w->nfree = WORLD_REQS;
	return (w);
}

void
world_free(struct world **wp)
{
	struct world *w = *wp;
	unsigned i;

	*wp = NULL;
	for (i = 0; i < WORLD_REQS; i++)
		if (w->reqs[i].state == REL_WAITING)
			world_cancel(w, &w->reqs[i]);
	while (w->nrunning > 0)
		world_complete(w, w->running[0], -1, REL_SCALE_ONE);
	for (i = 0; i < w->ntenants; i++)
		world_group(w, i, 0);
	for (i = 0; i < w->ntenants; i++) {
		REL_TenantFini(w->rel, w->tenant[i]);
		free(w->tenant[i]);
	}
	REL_Destroy(&w->rel);
	free(w->reqs);
	free(w);
}

unsigned
world_tenant(struct world *w, uint32_t weight)
{
	unsigned t = w->ntenants++;
	size_t sz = (REL_TenantSize() + 63) & ~(size_t)63;
	void *mem = aligned_alloc(64, sz);

	assert(t < WORLD_TENANTS && mem != NULL);
	w->weight[t] = weight;
	w->tenant[t] = REL_TenantInit(w->rel, mem, weight);
	return (t);
}

void
world_renew(struct world *w, unsigned t, uint32_t weight)
{
	assert(t < w->ntenants);
	REL_TenantFini(w->rel, w->tenant[t]);
	memset(w->tenant[t], 0xa5, REL_TenantSize());
	memset(w->estimate[t], 0, sizeof w->estimate[t]);
	w->weight[t] = weight;
	w->enqueued[t] = w->next_out[t] = 0;
	w->tenant[t] = REL_TenantInit(w->rel, w->tenant[t], weight);
}

void
world_estimate(struct world *w, unsigned t, int64_t cpu, int64_t net)
{
	w->estimate[t][REL_CPU] = cpu;
	w->estimate[t][REL_NET] = net;
	REL_SetEstimate(w->rel, w->tenant[t], w->estimate[t]);
}

void
world_group(struct world *w, unsigned t, unsigned group)
{
	w->group[t] = group;
	REL_SetGroup(w->rel, w->tenant[t],
	    group > 0 ? w->tenant[group - 1] : NULL, w->now);
}

static struct req *
world_request(struct world *w, unsigned t, int64_t cost)
{
	struct req *r;

	assert(w->nfree > 0);
	r = w->free[--w->nfree];
	assert(r->state == REL_IDLE);
	memset(r, 0, sizeof *r);
	r->tenant = t;
	r->serial = w->enqueued[t]++;
	r->cost = r->left = cost;
	return (r);
}

static void
runs(struct world *w, struct req *r)
{
	r->state = REL_RUNNING;
	r->place = w->nrunning;
	w->running[w->nrunning++] = r;
}

struct req *
world_run(struct world *w, unsigned t, int64_t cost)
{
	struct req *r = world_request(w, t, cost);

	runs(w, r);
	REL_Run(w->rel, w->tenant[t], &r->node, 0, w->now);
	return (r);
}

struct req *
world_enqueue(struct world *w, unsigned t, int64_t cost)
{
	struct req *r = world_request(w, t, cost);

	r->state = REL_WAITING;
	w->waiting[t]++;
	w->nwaiting++;
	REL_Enqueue(w->rel, w->tenant[t], &r->node, w->now);
	return (r);
}

/* The serial of a tenant's first waiting request, cancelled ones left out */
static uint64_t
first_serial(const struct world *w, unsigned t, uint64_t from)
{
	uint64_t first = UINT64_MAX;
	unsigned i;

	for (i = 0; i < WORLD_REQS; i++)
		if (w->reqs[i].state == REL_WAITING &&
		    w->reqs[i].tenant == t && w->reqs[i].serial >= from &&
		    w->reqs[i].serial < first)
			first = w->reqs[i].serial;
	return (first);
}

static int
judge_release(struct world *w, struct req *r)
{
	if (r->state != REL_WAITING) {
		fault(w, "served twice");
		return (-1);
	}
	if (r->serial != w->next_out[r->tenant] &&
	    r->serial != first_serial(w, r->tenant, 0))
		fault(w, "order within a tenant");
	w->next_out[r->tenant] = r->serial + 1;
	return (0);
}

struct req *
world_dequeue(struct world *w, unsigned slot, unsigned closed,
    enum rel_answer *answer)
{
	struct rel_node *n;
	enum rel_answer a;
	struct req *r = NULL;

	a = REL_Dequeue(w->rel, w->now, slot, closed, &n, &w->when);
	if ((a == REL_RELEASED) != (n != NULL))
		fault(w, "an answer and a node that disagree");
	if ((a == REL_EMPTY) != (w->nwaiting == 0))
		fault(w, "lost");
	if (n != NULL) {
		r = LIST_OF(n, struct req, node);
		if (judge_release(w, r))
			return (NULL);
		w->waiting[r->tenant]--;
		w->nwaiting--;
		runs(w, r);
		w->hash = (w->hash ^ (r->tenant + 1)) *
		    UINT64_C(0x100000001b3) + r->serial;
	}
	w->hash = w->hash * 31 + a;
	if (answer != NULL)
		*answer = a;
	return (r);
}

void
world_complete(struct world *w, struct req *r, int64_t cost, uint32_t scale)
{
	assert(r->state == REL_RUNNING);
	REL_Complete(w->rel, &r->node, cost, scale, w->now);
	r->state = REL_IDLE;
	w->running[r->place] = w->running[--w->nrunning];
	w->running[r->place]->place = r->place;
	w->free[w->nfree++] = r;
}

void
world_cancel(struct world *w, struct req *r)
{
	assert(r->state == REL_WAITING);
	REL_Cancel(w->rel, &r->node, w->now);
	r->state = REL_IDLE;
	w->waiting[r->tenant]--;
	w->nwaiting--;
	w->free[w->nfree++] = r;
}

struct req *
world_share(struct world *w, int64_t until)
{
	struct req *first = NULL;
	int64_t n = w->nrunning, each;
	unsigned i;

	for (i = 0; i < w->nrunning; i++)
		if (first == NULL || w->running[i]->left < first->left)
			first = w->running[i];
	if (first == NULL) {
		w->now = until;
		return (NULL);
	}
	each = (until - w->now) / n;
	if (each < first->left) {
		w->now = until;
		first = NULL;
	} else {
		each = first->left;
		w->now += each * n;
	}
	for (i = 0; i < w->nrunning; i++)
		w->running[i]->left -= each;
	return (first);
}
