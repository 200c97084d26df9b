/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * End-to-end synchronisation: what it promises, and the cores that it
 * leaves idle (paper, Figure 5): two cores, one link, both in order of
 * arrival, and a backlog of two tenants.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "rel_world.h"

#define US		1000
#define CORES		2
#define SLOTS		20
#define EACH		4		/* requests a tenant */

/* First come, first served: `servers` of them */
struct station {
	struct req	*queue[WORLD_REQS];
	unsigned	head, tail;
	unsigned	servers;
	struct req	*serves[CORES];
	int64_t		left[CORES];	/* us */
	unsigned	busy;		/* us, all servers */
};

struct machine {
	struct world	*w;
	struct station	cpu, link;
	unsigned	us;
};

/* us a request: on one core, and on the link */
static const int64_t on_core[] = { 4, 2 }, on_link[] = { 1, 2 };

static void
arrive(struct station *s, struct req *r)
{
	s->queue[s->tail++] = r;
}

/* A free server begins with the next request */
static struct req *
begin(struct station *s, const int64_t us[])
{
	unsigned i;

	for (i = 0; i < s->servers; i++)
		if (s->serves[i] == NULL && s->head < s->tail) {
			s->serves[i] = s->queue[s->head++];
			s->left[i] = us[s->serves[i]->tenant];
			return (s->serves[i]);
		}
	return (NULL);
}

/* One us later: a request that is served, or NULL */
static struct req *
end(struct station *s, unsigned i)
{
	struct req *r = s->serves[i];

	if (r == NULL)
		return (NULL);
	s->busy++;
	if (--s->left[i] > 0)
		return (NULL);
	s->serves[i] = NULL;
	return (r);
}

static void
tick(struct machine *m)
{
	struct req *r;
	unsigned i, changed;

	do {
		changed = 0;
		while (m->w->nrunning < SLOTS &&
		    (r = world_dequeue(m->w, 0, 0, NULL)) != NULL)
			arrive(&m->cpu, r);
		while (begin(&m->cpu, on_core) != NULL)
			changed = 1;
		while ((r = begin(&m->link, on_link)) != NULL) {
			REL_Progress(m->w->rel, &r->node, REL_NET, m->w->now);
			changed = 1;
		}
	} while (changed);
	m->us++;
	m->w->now += US;
	r = end(&m->link, 0);
	if (r != NULL)
		world_complete(m->w, r, -1, REL_SCALE_ONE);
	for (i = 0; i < CORES; i++) {
		r = end(&m->cpu, i);
		if (r != NULL)
			arrive(&m->link, r);
	}
}

static struct machine
machine(const char *policy)
{
	struct machine m = { .cpu.servers = CORES, .link.servers = 1 };
	unsigned i, t;

	m.w = world_new(REL_New((unsigned)REL_PolicyByName(policy), SLOTS,
	    REL_OPT_ALL, NULL, NULL), SLOTS, 1);
	for (t = 0; t < 2; t++) {
		(void)world_tenant(m.w, REL_WEIGHT_ONE);
		world_estimate(m.w, t, on_core[t] * US / CORES,
		    on_link[t] * US);
	}
	for (i = 0; i < EACH; i++)
		for (t = 0; t < 2; t++)
			(void)world_enqueue(m.w, t, 1);
	return (m);
}

/* us until all are served */
static unsigned
drain(struct machine *m)
{
	while (m->w->nwaiting + m->w->nrunning > 0)
		tick(m);
	assert_null(m->w->fault);
	world_free(&m->w);
	return (m->us);
}

/* 24 core-us of work: without synchronisation 12 us suffice */
static void
test_fig5(void **priv)
{
	static struct machine rs, mr3;

	(void)priv;
	rs = machine("mr3-rs");
	mr3 = machine("mr3");
	while (rs.us < 12) {
		tick(&rs);
		tick(&mr3);
	}
	print_message("core-us of 24 in 12 us: mr3-rs %u, mr3 %u\n",
	    rs.cpu.busy, mr3.cpu.busy);
	assert_int_equal(rs.cpu.busy, 24);
	assert_int_equal(mr3.cpu.busy, 18);
	assert_true(drain(&rs) < drain(&mr3));
}

/* A turn begins after one of the turn before has begun on the link */
static void
test_synchronised(void **priv)
{
	struct req *r;
	struct world *w;
	unsigned turn, i;

	(void)priv;
	w = world_new(REL_New((unsigned)REL_PolicyByName("mr3"), SLOTS,
	    REL_OPT_ALL, NULL, NULL), SLOTS, 1);
	assert_true(REL_Synchronised(w->rel));
	(void)world_tenant(w, REL_WEIGHT_ONE);
	world_estimate(w, 0, 1000, 1000);
	for (i = 0; i < 40; i++)
		(void)world_enqueue(w, 0, 1);
	for (turn = 0; w->nwaiting > 0; turn++) {
		r = world_dequeue(w, 0, 0, NULL);
		assert_non_null(r);
		while (world_dequeue(w, 0, 0, NULL) != NULL)
			continue;
		if (w->nwaiting == 0)
			break;
		/* The CPU alone lets nobody go */
		REL_Progress(w->rel, &r->node, REL_CPU, w->now);
		assert_null(world_dequeue(w, 0, 0, NULL));
		if (turn % 2 == 0)
			REL_Progress(w->rel, &r->node, REL_NET, w->now);
		else
			world_complete(w, r, -1, REL_SCALE_ONE);
	}
	assert_true(turn > 10);
	assert_null(w->fault);
	world_free(&w);
}

/* Nobody goes before the tenant whose turn it is */
static void
test_in_order(void **priv)
{
	struct req *a, *b;
	struct world *w;
	unsigned t;

	(void)priv;
	w = world_new(REL_New((unsigned)REL_PolicyByName("mr3"), SLOTS,
	    REL_OPT_ALL, NULL, NULL), SLOTS, 1);
	for (t = 0; t < 2; t++) {
		(void)world_tenant(w, REL_WEIGHT_ONE);
		world_estimate(w, t, 1000, 1000);
		(void)world_enqueue(w, t, 1);
		(void)world_enqueue(w, t, 1);
	}
	a = world_dequeue(w, 0, 0, NULL);
	b = world_dequeue(w, 0, 0, NULL);
	assert_int_equal(a->tenant, 0);
	assert_int_equal(b->tenant, 1);
	REL_Progress(w->rel, &b->node, REL_NET, w->now);
	assert_null(world_dequeue(w, 0, 0, NULL));
	REL_Progress(w->rel, &a->node, REL_NET, w->now);
	assert_int_equal(world_dequeue(w, 0, 0, NULL)->tenant, 0);
	assert_int_equal(world_dequeue(w, 0, 0, NULL)->tenant, 1);
	assert_null(w->fault);
	world_free(&w);
}

/* A queue that runs empty in a turn ends it */
static void
test_new_turn(void **priv)
{
	struct req *r;
	struct world *w;

	(void)priv;
	w = world_new(REL_New((unsigned)REL_PolicyByName("mr3"), SLOTS,
	    REL_OPT_ALL, NULL, NULL), SLOTS, 1);
	(void)world_tenant(w, REL_WEIGHT_ONE);
	world_estimate(w, 0, 1000, 1000);
	(void)world_enqueue(w, 0, 1);
	r = world_dequeue(w, 0, 0, NULL);
	(void)world_enqueue(w, 0, 1);
	assert_null(world_dequeue(w, 0, 0, NULL));
	REL_Progress(w->rel, &r->node, REL_NET, w->now);
	assert_non_null(world_dequeue(w, 0, 0, NULL));
	assert_null(w->fault);
	world_free(&w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fig5),
		cmocka_unit_test(test_synchronised),
		cmocka_unit_test(test_in_order),
		cmocka_unit_test(test_new_turn),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
