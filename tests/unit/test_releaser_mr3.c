/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * End-to-end synchronisation: what it promises, and the cores that it
 * leaves idle (paper, Figure 5): two cores, one link, both in order of
 * arrival, and a backlog of two tenants.  With virtual flows (mr3-vf; section
 * 6.3) it leaves less of them idle.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "rel_conform.h"

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
machine(const char *policy, unsigned alpha)
{
	struct machine m = { .cpu.servers = CORES, .link.servers = 1 };
	unsigned i, t;

	m.w = world_new(REL_New((unsigned)REL_PolicyByName(policy), SLOTS,
	    REL_OPT_ALL, NULL, NULL), SLOTS, 1);
	REL_SetFlows(m.w->rel, alpha);
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
	rs = machine("mr3-rs", 1);
	mr3 = machine("mr3", 1);
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

/* A turn does not wait for what ran before its tenant came into a group */
static void
test_moved(void **priv)
{
	struct req *a, *b;
	struct world *w;
	unsigned epoch, t;

	(void)priv;
	w = world_new(REL_New((unsigned)REL_PolicyByName("mr3"), SLOTS,
	    REL_OPT_ALL, NULL, NULL), SLOTS, 1);
	for (t = 0; t < 3; t++) {
		(void)world_tenant(w, REL_WEIGHT_ONE);
		world_estimate(w, t, 1000, 1000);
	}
	for (t = 0; t < 2; t++) {
		(void)world_enqueue(w, t, 1);
		(void)world_enqueue(w, t, 1);
	}
	a = world_dequeue(w, 0, 0, NULL);
	b = world_dequeue(w, 0, 0, NULL);
	assert_null(world_dequeue(w, 0, 0, NULL));
	epoch = w->rel->epoch;
	world_group(w, 0, 3);
	world_group(w, 1, 3);
	REL_Progress(w->rel, &a->node, REL_NET, w->now);
	REL_Progress(w->rel, &b->node, REL_NET, w->now);
	assert_non_null(a = world_dequeue(w, 0, 0, NULL));
	/* Both moves together begin a new order */
	assert_int_equal(w->rel->epoch, epoch + 1);
	assert_null(world_dequeue(w, 0, 0, NULL));
	REL_Progress(w->rel, &a->node, REL_NET, w->now);
	assert_non_null(world_dequeue(w, 0, 0, NULL));
	assert_int_equal(w->nwaiting, 0);
	assert_null(w->fault);
	world_free(&w);
}

/*--------------------------------------------------------------------
 * Virtual flows
 */

/* With one flow as mr3; here two suffice to be as without synchronisation */
static void
test_fig5_flows(void **priv)
{
	static const unsigned alpha[] = { 1, 2, 3 }, busy[] = { 18, 24, 24 };
	struct machine m;
	unsigned i;

	(void)priv;
	for (i = 0; i < 3; i++) {
		m = machine("mr3-vf", alpha[i]);
		while (m.us < 12)
			tick(&m);
		print_message("core-us of 24 in 12 us: mr3-vf, alpha %u: %u\n",
		    alpha[i], m.cpu.busy);
		assert_int_equal(m.cpu.busy, busy[i]);
		(void)drain(&m);
	}
}

static struct world *
world_vf(unsigned alpha, unsigned options)
{
	struct world *w;

	w = world_new(REL_New((unsigned)REL_PolicyByName("mr3-vf"), SLOTS,
	    options, NULL, NULL), SLOTS, 1);
	REL_SetFlows(w->rel, alpha);
	return (w);
}

/* These, and then nobody; r: the requests */
static void
releases(struct world *w, const char *order, struct req **r)
{
	for (; *order != '\0'; order++, r++) {
		*r = world_dequeue(w, 0, 0, NULL);
		assert_non_null(*r);
		assert_int_equal((*r)->tenant + 'a', *order);
	}
	assert_null(world_dequeue(w, 0, 0, NULL));
}

static void
sent(struct world *w, struct req *r)
{
	REL_Progress(w->rel, &r->node, REL_NET, w->now);
}

/*
 * Two flows each; A's requests cost 3, B's 1.  In a group's first round all
 * have one; then u = 3, less 1 ns, and in a turn A has one and B three.  A turn
 * waits for its own flow's last one, and all wait for it.
 */
static void
test_flows(void **priv)
{
	struct world *w = world_vf(2, REL_OPT_ALL);
	struct req *r[16];
	unsigned t, i;

	(void)priv;
	for (t = 0; t < 2; t++) {
		(void)world_tenant(w, REL_WEIGHT_ONE);
		world_estimate(w, t, t == 0 ? 3000 : 1000, 0);
		for (i = 0; i < 20; i++)
			(void)world_enqueue(w, t, 1);
	}
	releases(w, "abab", r);
	sent(w, r[2]);			/* A's second flow */
	releases(w, "", NULL);
	sent(w, r[0]);
	releases(w, "a", r + 4);
	sent(w, r[1]);
	releases(w, "bbba", r + 5);	/* the second group's round begins */
	sent(w, r[3]);
	releases(w, "bbb", r + 9);
	sent(w, r[4]);
	releases(w, "a", r + 12);
	sent(w, r[3]);			/* again, of a turn long over */
	sent(w, r[1]);
	releases(w, "", NULL);
	world_complete(w, r[6], -1, REL_SCALE_ONE);	/* any of its three */
	releases(w, "bbb", r + 13);
	assert_null(w->fault);
	world_free(&w);
}

/* What a request cost more is paid by the flow that released it */
static void
test_flow_pays(void **priv)
{
	struct rel_tenant_stat st;
	struct world *w = world_vf(2, REL_OPT_ALL);
	struct req *r[8];
	unsigned t, i;

	(void)priv;
	for (t = 0; t < 2; t++) {
		(void)world_tenant(w, REL_WEIGHT_ONE);
		world_estimate(w, t, 1000, 0);
		for (i = 0; i < 20; i++)
			(void)world_enqueue(w, t, 1);
	}
	releases(w, "abab", r);
	sent(w, r[1]);
	sent(w, r[2]);
	sent(w, r[3]);
	world_complete(w, r[0], 3000, REL_SCALE_ONE);
	REL_TenantStat(w->rel, w->tenant[0], &st);
	assert_int_equal(st.account, 2999 + 999);
	/* u + 1 = 1000: A's first flow has no turn, B's and the second ones
	 * have; then u + 1 = 2000, and it has, but B's waits for r[4] */
	releases(w, "baba", r + 4);
	assert_null(w->fault);
	world_free(&w);
}

/* One flow, the paper's options: mr3, whatever happens */
static uint64_t
one_flow(const char *policy, unsigned alpha, uint64_t seed)
{
	struct world *w;
	unsigned i, t;
	uint64_t hash;

	w = world_new(REL_New((unsigned)REL_PolicyByName(policy), SLOTS,
	    REL_OPT_PAPER, NULL, NULL), SLOTS, seed);
	REL_SetFlows(w->rel, alpha);
	for (t = 0; t < 5; t++)
		(void)world_tenant(w, 1 + (uint32_t)rng_below(&w->rng, 4096));
	for (i = 0; i < 4000; i++) {
		t = (unsigned)rng_below(&w->rng, 5);
		switch (rng_below(&w->rng, 7)) {
		case 0:
		case 1:
			(void)world_enqueue(w, t, 1);
			break;
		case 2:
			world_estimate(w, t, (int64_t)rng_below(&w->rng, 9000),
			    (int64_t)rng_below(&w->rng, 9000));
			break;
		case 3:
			if (w->nrunning > 0)
				world_complete(w, w->running[0], -1,
				    REL_SCALE_ONE);
			break;
		case 4:
			if (w->nrunning > 0)
				sent(w, w->running[rng_below(&w->rng,
				    w->nrunning)]);
			break;
		default:
			if (w->nrunning < SLOTS)
				(void)world_dequeue(w, 0, 0, NULL);
			break;
		}
	}
	assert_null(w->fault);
	hash = w->hash;
	world_free(&w);
	return (hash);
}

static void
test_one_flow(void **priv)
{
	uint64_t seed;

	(void)priv;
	for (seed = 0; seed < 50; seed++)
		assert_true(one_flow("mr3-vf", 1, seed) ==
		    one_flow("mr3", 1, seed));
	assert_false(one_flow("mr3-vf", 2, 1) == one_flow("mr3", 2, 1));
}

/* Another number of flows while requests wait and run: nothing is lost */
static void
test_set_flows(void **priv)
{
	struct world *w = world_vf(REL_FLOWS_MAX, REL_OPT_ALL);
	unsigned i, t;

	(void)priv;
	for (t = 0; t < 3; t++)
		(void)world_tenant(w, REL_WEIGHT_ONE);
	for (i = 0; i < 2000; i++) {
		t = (unsigned)rng_below(&w->rng, 3);
		world_estimate(w, t, (int64_t)rng_below(&w->rng, 9000), 10);
		(void)world_enqueue(w, t, 1);
		if (w->nrunning == SLOTS)
			world_complete(w, w->running[rng_below(&w->rng,
			    SLOTS)], 5000, REL_SCALE_ONE);
		(void)world_dequeue(w, 0, 0, NULL);
		if (i % 7 == 0)
			REL_SetFlows(w->rel, 1 + (unsigned)rng_below(&w->rng,
			    REL_FLOWS_MAX));
	}
	conform_drain(w);
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
		cmocka_unit_test(test_moved),
		cmocka_unit_test(test_fig5_flows),
		cmocka_unit_test(test_flows),
		cmocka_unit_test(test_flow_pays),
		cmocka_unit_test(test_one_flow),
		cmocka_unit_test(test_set_flows),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
