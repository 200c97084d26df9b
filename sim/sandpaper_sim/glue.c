/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The simulator's host of the releaser: see glue.h.
 *
 * Tenants and requests never move, since the releaser links them.
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "account.h"
#include "glue.h"
#include "list.h"
#include "newhosts.h"
#include "releaser.h"

struct tenant {
	struct rel_tenant	*rel;
	struct account		account;
	struct acc_key		key;
	int			begun;		/* the releaser has an estimate */
	struct newhost		host;
	int			good;		/* its answers are evidence */
	int32_t			number;
};

struct request {
	struct rel_node		node;
	int64_t			cost[REL__RESOURCES];	/* ns */
	int64_t			start;
	int32_t			slot;		/* a node's has fewer bits */
	int32_t			number;
	int32_t			tenant;
	int32_t			next_free;
};

struct sim {
	struct sim_answer	answer;
	struct rel		*rel;
	struct acc_costs	costs;
	int			oracle;		/* the estimator */
	int			by_request;
	struct tenant		**tenants;	/* newhosts links them */
	int32_t			ntenants;
	struct newhosts		newhosts;
	struct tenant		*new_group;	/* NULL: no Host is new */
	struct request		**requests;
	int32_t			nrequests;
	int32_t			free;		/* first, or -1 */
	int			keep;
	struct sim_record	*records;
	int64_t			nrecords, room;
};

/*--------------------------------------------------------------------*/

struct sim *
sim_new(const char *policy, unsigned slots, unsigned options,
    const char *estimator, uint32_t alpha, int keep)
{
	int p = REL_PolicyByName(policy), e = EST_ByName(estimator);
	struct sim *s = calloc(1, sizeof *s);

	assert(p >= 0 && e >= 0);
	if (s == NULL)
		return (NULL);
	s->rel = REL_New((unsigned)p, slots, options, NULL, NULL);
	if (s->rel == NULL) {
		free(s);
		return (NULL);
	}
	s->costs.estimator = (unsigned)e;
	s->oracle = strcmp(estimator, "oracle") == 0;
	s->costs.alpha = alpha;
	s->keep = keep;
	s->free = -1;
	return (s);
}

static struct request *
request_of(const struct sim *s, int32_t q)
{
	assert(q >= 0 && q < s->nrequests);
	return (s->requests[q]);
}

static void
abandon(struct sim *s, struct request *q)
{
	if (REL_IsBacklogged(&q->node))
		REL_Cancel(s->rel, &q->node, 0);
	else if (q->node.state == REL_RUNNING)
		REL_Complete(s->rel, &q->node, -1, 0, 0);
}

void
sim_free(struct sim *s)
{
	int32_t i;

	for (i = 0; i < s->nrequests; i++) {
		abandon(s, s->requests[i]);
		free(s->requests[i]);
	}
	for (i = 0; i < s->ntenants; i++)
		REL_SetGroup(s->rel, s->tenants[i]->rel, NULL, 0);
	for (i = 0; i < s->ntenants; i++) {
		REL_TenantFini(s->rel, s->tenants[i]->rel);
		free(s->tenants[i]->rel);
		free(s->tenants[i]);
	}
	free(s->tenants);
	free(s->requests);
	free(s->records);
	REL_Destroy(&s->rel);
	free(s);
}

void
sim_by_request(struct sim *s)
{
	s->by_request = 1;
}

struct sim_answer *
sim_answer(struct sim *s)
{
	return (&s->answer);
}

struct rel *
sim_rel(struct sim *s)
{
	return (s->rel);
}

/*--------------------------------------------------------------------
 * Tenants and what their requests are thought to cost
 */

static struct tenant *
tenant_of(const struct sim *s, int32_t t)
{
	assert(t >= 0 && t < s->ntenants);
	return (s->tenants[t]);
}

int32_t
sim_tenant(struct sim *s, uint32_t weight)
{
	size_t size = (REL_TenantSize() + 63) & ~(size_t)63;
	struct tenant **all, *t;
	void *mem;

	all = realloc(s->tenants, ((size_t)s->ntenants + 1) * sizeof *all);
	if (all == NULL)
		return (-1);
	s->tenants = all;
	t = calloc(1, sizeof *t);
	mem = aligned_alloc(64, size);
	if (t == NULL || mem == NULL) {
		free(t);
		free(mem);
		return (-1);
	}
	t->rel = REL_TenantInit(s->rel, mem, weight);
	t->number = s->ntenants;
	all[s->ntenants] = t;
	return (s->ntenants++);
}

struct rel_tenant *
sim_rel_tenant(struct sim *s, int32_t t)
{
	return (tenant_of(s, t)->rel);
}

void
sim_charge(struct sim *s, int32_t t, int64_t cost, int64_t now)
{
	struct tenant *x = tenant_of(s, t);

	if (!s->by_request)
		cost = ACC_Charge(&x->account, cost, 0);
	REL_Charge(s->rel, x->rel, cost, now);
}

/* Estimate the next request.  The oracle has the cost of `q`, the first. */
static void
estimate(struct sim *s, struct tenant *t, const struct request *q)
{
	int64_t ns[REL__RESOURCES];
	unsigned r;

	for (r = 0; r < REL__RESOURCES; r++) {
		if (s->oracle)
			EST_Sample(s->costs.estimator, &t->key.est[r],
			    q->cost[r], s->costs.alpha);
		ns[r] = ACC_Value(&s->costs, &t->key, r);
	}
	if (!s->by_request)
		ACC_Next(&t->account, ns);
	REL_SetEstimate(s->rel, t->rel, ns);
	t->begun = 1;
}

/* The oracle has to know which request is the first */
static void
estimate_first(struct sim *s, struct tenant *t)
{
	const struct rel_node *n = REL_TenantFirst(t->rel);

	if (n != NULL && s->oracle)
		estimate(s, t, LIST_OF(n, const struct request, node));
}

/*--------------------------------------------------------------------
 * New Hosts, as in varnishd's spd_new.c
 */

void
sim_new_hosts(struct sim *s, int32_t group, int64_t now)
{
	assert(s->new_group == NULL);
	s->new_group = tenant_of(s, group);
	NEW_Init(&s->newhosts, now);
}

void
sim_host(struct sim *s, int32_t tenant, int good, int64_t now)
{
	struct tenant *t = tenant_of(s, tenant);

	t->good = good;
	if (s->new_group == NULL)
		return;
	NEW_Begin(&s->newhosts, &t->host, now);
	REL_SetGroup(s->rel, t->rel, s->new_group->rel, now);
}

int
sim_another_host(struct sim *s, int32_t tenant, int good, int64_t now)
{
	struct tenant *t = tenant_of(s, tenant);

	if (!REL_TenantIdle(s->rel, t->rel) || t->host.state == NEW_PROVEN)
		return (0);
	if (s->new_group != NULL)
		NEW_End(&s->newhosts, &t->host);
	REL_SetGroup(s->rel, t->rel, NULL, now);
	REL_TenantFini(s->rel, t->rel);
	t->rel = REL_TenantInit(s->rel, t->rel, REL_WEIGHT_ONE);
	memset(&t->key, 0, sizeof t->key);
	memset(&t->account, 0, sizeof t->account);
	t->begun = 0;
	sim_host(s, tenant, good, now);
	return (1);
}

int32_t
sim_new_next(struct sim *s, int64_t now)
{
	struct newhost *h = NEW_Next(&s->newhosts, now);
	struct tenant *t;

	assert(s->new_group != NULL);
	if (h == NULL)
		return (-1);
	t = LIST_OF(h, struct tenant, host);
	REL_SetGroup(s->rel, t->rel, NEW_Is(h) ? s->new_group->rel : NULL,
	    now);
	return (t->number);
}

int
sim_new_is(const struct sim *s, int32_t tenant)
{
	return (NEW_Is(&tenant_of(s, tenant)->host));
}

/*--------------------------------------------------------------------
 * Requests
 */

static int
more_requests(struct sim *s)
{
	struct request **all, *q;

	all = realloc(s->requests, ((size_t)s->nrequests + 1) * sizeof *all);
	if (all == NULL)
		return (-1);
	s->requests = all;
	q = calloc(1, sizeof *q);
	if (q == NULL)
		return (-1);
	q->number = s->nrequests;
	q->next_free = s->free;
	s->free = q->number;
	all[s->nrequests++] = q;
	return (0);
}

int32_t
sim_enqueue(struct sim *s, int32_t tenant, int64_t cpu, int64_t net,
    int64_t now)
{
	struct tenant *t = tenant_of(s, tenant);
	struct request *q;

	assert(cpu >= 0 && net >= 0);
	if (s->free < 0 && more_requests(s))
		return (-1);
	q = request_of(s, s->free);
	s->free = q->next_free;
	q->tenant = tenant;
	q->cost[REL_CPU] = cpu;
	q->cost[REL_NET] = net;
	if (!t->begun || (s->oracle && REL_TenantWaiting(t->rel) == 0))
		estimate(s, t, q);
	REL_Enqueue(s->rel, t->rel, &q->node, now);
	return (q->number);
}

int32_t
sim_dequeue(struct sim *s, unsigned slot, unsigned closed, int64_t now)
{
	static const int32_t no[] = {
		[REL_EMPTY] = SIM_EMPTY,
		[REL_NO_SLOT] = SIM_NO_SLOT,
		[REL_NOT_YET] = SIM_NOT_YET,
	};
	enum rel_answer answer;
	struct rel_node *n;
	struct request *q;

	answer = REL_Dequeue(s->rel, now, slot, closed, &n, &s->answer.when);
	if (answer != REL_RELEASED)
		return (no[answer]);
	q = LIST_OF(n, struct request, node);
	q->start = now;
	q->slot = (int32_t)slot;
	s->answer.tenant = q->tenant;
	s->answer.cpu = q->cost[REL_CPU];
	s->answer.net = q->cost[REL_NET];
	s->answer.charge = n->charge;
	estimate_first(s, tenant_of(s, q->tenant));
	return (q->number);
}

void
sim_progress(struct sim *s, int32_t request, unsigned resource, int64_t now)
{
	REL_Progress(s->rel, &request_of(s, request)->node, resource, now);
}

void
sim_refresh(struct sim *s, int32_t request, int64_t cost, int64_t now)
{
	struct request *q = request_of(s, request);

	if (!s->by_request)
		cost = ACC_SoFar(&tenant_of(s, q->tenant)->account, cost);
	REL_Refresh(s->rel, &q->node, cost, now);
}

static struct sim_record
as_record(const struct request *q)
{
	int running = q->node.state == REL_RUNNING;

	return ((struct sim_record){
		.arrival = q->node.arrival,
		.start = running ? q->start : -1,
		.end = -1,
		.cpu = q->cost[REL_CPU],
		.net = q->cost[REL_NET],
		.tenant = q->tenant,
		.slot = running ? q->slot : -1,
	});
}

static void
record(struct sim *s, const struct request *q, int64_t now)
{
	struct sim_record *r;
	int64_t room;

	if (s->nrecords == s->room) {
		room = s->room == 0 ? 4096 : 2 * s->room;
		r = realloc(s->records, (size_t)room * sizeof *r);
		assert(r != NULL);
		s->records = r;
		s->room = room;
	}
	s->records[s->nrecords] = as_record(q);
	s->records[s->nrecords++].end = now;
}

static void
give_back(struct sim *s, struct request *q)
{
	q->next_free = s->free;
	s->free = q->number;
}

/* Figure 8, line 10; a request that was not measured is not settled */
static void
settle_by_request(struct sim *s, struct request *q, uint32_t scale, int64_t now)
{
	int64_t cost = q->cost[REL_NET] > q->cost[REL_CPU] ?
	    q->cost[REL_NET] : q->cost[REL_CPU];

	REL_Complete(s->rel, &q->node, scale == 0 ? -1 : cost, scale, now);
}

static void
settle(struct sim *s, struct tenant *t, struct request *q, uint32_t scale,
    int64_t now)
{
	int64_t cost, cpu = q->cost[REL_CPU];

	if (scale == 0) {
		scale = REL_SCALE_ONE;
		if (!s->oracle)
			cpu = ACC_Value(&s->costs, &t->key, REL_CPU);
	}
	cost = ACC_Settle(&t->account, cpu, q->cost[REL_NET]);
	REL_Complete(s->rel, &q->node, cost, ACC_Scale(&t->account, scale),
	    now);
}

static void
learn(struct sim *s, struct tenant *t, const struct request *q, int measured)
{
	if (s->oracle)
		return;
	if (measured)
		ACC_Sample(&s->costs, &t->key, REL_CPU, q->cost[REL_CPU]);
	ACC_Sample(&s->costs, &t->key, REL_NET, q->cost[REL_NET]);
}

void
sim_complete(struct sim *s, int32_t request, uint32_t scale, int64_t now)
{
	struct request *q = request_of(s, request);
	struct tenant *t = tenant_of(s, q->tenant);

	if (s->keep)
		record(s, q, now);
	if (s->by_request)
		settle_by_request(s, q, scale, now);
	else
		settle(s, t, q, scale, now);
	if (s->new_group != NULL)
		NEW_Answer(&s->newhosts, &t->host, t->good, now);
	learn(s, t, q, scale != 0);
	if (s->oracle)
		estimate_first(s, t);
	else
		estimate(s, t, q);
	give_back(s, q);
}

void
sim_cancel(struct sim *s, int32_t request, int64_t now)
{
	struct request *q = request_of(s, request);

	REL_Cancel(s->rel, &q->node, now);
	estimate_first(s, tenant_of(s, q->tenant));
	give_back(s, q);
}

const struct sim_record *
sim_records(const struct sim *s, int64_t *n)
{
	*n = s->nrecords;
	return (s->records);
}

int64_t
sim_open(const struct sim *s, struct sim_record *rows, int64_t room)
{
	const struct request *q;
	int64_t n = 0;
	int32_t i;

	for (i = 0; i < s->nrequests; i++) {
		q = s->requests[i];
		if (q->node.state == REL_IDLE)
			continue;
		if (n < room)
			rows[n] = as_record(q);
		n++;
	}
	return (n);
}
