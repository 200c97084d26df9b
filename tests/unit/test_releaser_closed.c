/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Closed resources: one CPU that all who run share, one NIC with a backlog,
 * and a host that closes the NIC while the backlog exceeds 2 ms of it.
 * Rates are compared with progressive filling (drf_rates).
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "rel_oracle.h"
#include "rel_world.h"

#define US		1000
#define MS		1000000
#define SLOTS		10
#define HOLD		(2 * MS)
#define LENGTH		(INT64_C(5000) * MS)

struct load {
	unsigned	n;
	int64_t		cpu[4], net[4];		/* ns, a request */
};

struct host {
	struct world	*w;
	int64_t		backlog;		/* ns of the NIC */
	int64_t		drained;		/* when */
	int64_t		cpu_busy, nic_busy;	/* ns */
	double		service[4];		/* ns, dominant */
};

static void
drain(struct host *h)
{
	int64_t ns = h->w->now - h->drained;

	if (ns > h->backlog)
		ns = h->backlog;
	h->backlog -= ns;
	h->nic_busy += ns;
	h->drained = h->w->now;
}

static void
fill(struct host *h, const struct load *l)
{
	struct world *w = h->w;
	struct req *r;
	unsigned t;

	while (w->nrunning < SLOTS) {
		for (t = 0; t < l->n; t++)
			while (w->waiting[t] < 3)
				(void)world_enqueue(w, t, l->cpu[t]);
		r = world_dequeue(w, w->nrunning,
		    h->backlog > HOLD ? REL_MASK(REL_NET) : 0, NULL);
		if (r == NULL)
			return;
		h->backlog += l->net[r->tenant];
	}
}

static void
serve(struct host *h, const struct load *l)
{
	struct world *w = h->w;
	int64_t until = INT64_MAX, before = w->now, cost;
	struct req *r;
	unsigned t;

	if (h->backlog > HOLD)
		until = w->now + h->backlog - HOLD;
	if (w->nrunning > 0 && until < w->now + w->nrunning)
		until = w->now + w->nrunning;
	else if (w->nrunning == 0)
		assert_true(until < INT64_MAX);
	t = w->nrunning;
	r = world_share(w, until);
	if (t > 0)
		h->cpu_busy += w->now - before;
	drain(h);
	if (r == NULL)
		return;
	t = r->tenant;
	cost = l->cpu[t] > l->net[t] ? l->cpu[t] : l->net[t];
	h->service[t] += (double)cost;
	world_complete(w, r, cost, REL_SCALE_ONE);
}

static void
run(struct host *h, const struct load *l, unsigned options)
{
	unsigned t;

	*h = (struct host){ .w = world_new(REL_New(0, SLOTS, options, NULL,
	    NULL), SLOTS, 1) };
	for (t = 0; t < l->n; t++) {
		(void)world_tenant(h->w, REL_WEIGHT_ONE);
		world_estimate(h->w, t, l->cpu[t], l->net[t]);
	}
	while (h->w->now < LENGTH) {
		fill(h, l);
		serve(h, l);
	}
	assert_null(h->w->fault);
	world_free(&h->w);
}

/* Each tenant's rate within a part of progressive filling's */
static void
compare(const struct load *l, double least)
{
	double use[4][ORACLE_RES], rate[4], got, max;
	struct host h;
	unsigned t;

	for (t = 0; t < l->n; t++) {
		max = (double)(l->cpu[t] > l->net[t] ? l->cpu[t] : l->net[t]);
		use[t][REL_CPU] = (double)l->cpu[t] / max;
		use[t][REL_NET] = (double)l->net[t] / max;
	}
	drf_rates(l->n, (const void *)use, rate);
	run(&h, l, REL_OPT_ALL);
	for (t = 0; t < l->n; t++) {
		got = h.service[t] / (double)LENGTH;
		print_message("cpu %jd us, net %jd us: rate %.3f of %.3f\n",
		    (intmax_t)l->cpu[t] / US, (intmax_t)l->net[t] / US, got,
		    rate[t]);
		assert_true(got >= least * rate[t]);
		assert_true(got <= rate[t] / least);
	}
}

/* c1 is CPU-bound, c3 NIC-bound: c1 uses the NIC, so it is frozen with c3 */
static void
test_c1_c3(void **priv)
{
	const struct load l = { 2, { 440 * US, 250 * US },
	    { 180 * US, 750 * US } };
	struct host h;

	(void)priv;
	compare(&l, .97);
	/* Without, the hold is not heeded and the NIC's backlog runs off */
	run(&h, &l, REL_OPT_ALL & ~REL_OPT_CLOSED);
	assert_true(h.backlog > 100 * MS);
}

/* Two that the NIC limits, of different size */
static void
test_two_nic(void **priv)
{
	const struct load l = { 2, { 250 * US, 195 * US },
	    { 750 * US, 300 * US } };

	(void)priv;
	compare(&l, .97);
}

/* A third one that needs no NIC takes the CPU that is idle */
static void
test_pure_cpu(void **priv)
{
	const struct load l = { 3, { 250 * US, 195 * US, 440 * US },
	    { 750 * US, 700 * US, 0 } };
	struct host h;

	(void)priv;
	compare(&l, .97);
	run(&h, &l, REL_OPT_ALL);
	assert_true((double)h.cpu_busy > .999 * (double)LENGTH);
	assert_true((double)h.nic_busy > .99 * (double)LENGTH);
}

/* A little of the NIC, less than an eighth, does not count as use */
static void
test_little_use(void **priv)
{
	const struct load l = { 2, { 100 * US, 440 * US },
	    { 750 * US, 40 * US } };
	struct host h;

	(void)priv;
	run(&h, &l, REL_OPT_ALL);
	assert_true((double)h.cpu_busy > .999 * (double)LENGTH);
	assert_true(h.service[1] / h.service[0] > .9);
}

/*--------------------------------------------------------------------
 * Step by step
 */

static struct world *
three(void)
{
	static const int64_t net[] = { 1000, 500, 0 };
	static const int64_t cpu[] = { 100, 1000, 1000 };
	struct world *w;
	unsigned t, i;

	w = world_new(REL_New(0, SLOTS, REL_OPT_ALL, NULL, NULL), SLOTS, 1);
	for (t = 0; t < 3; t++) {
		(void)world_tenant(w, REL_WEIGHT_ONE);
		world_estimate(w, t, cpu[t], net[t]);
		for (i = 0; i < 8; i++)
			(void)world_enqueue(w, t, 1);
	}
	return (w);
}

/* Held: 0.  With its turn: 1.  Passes as long as it likes: 2 */
static void
test_steps(void **priv)
{
	const unsigned nic = REL_MASK(REL_NET);
	struct world *w = three();
	enum rel_answer a;
	unsigned i;

	(void)priv;
	assert_int_equal(world_dequeue(w, 0, nic, NULL)->tenant, 1);
	for (i = 0; i < 8; i++)
		assert_int_equal(world_dequeue(w, 0, nic, NULL)->tenant, 2);
	assert_null(world_dequeue(w, 0, nic, &a));
	assert_int_equal(a, REL_NOT_YET);
	/* It opens: 0 has its turn of the first round, then all go on */
	assert_int_equal(world_dequeue(w, 0, 0, NULL)->tenant, 0);
	assert_int_equal(world_dequeue(w, 0, 0, NULL)->tenant, 1);
	assert_int_equal(w->waiting[2], 0);
	assert_null(w->fault);
	world_free(&w);
}

/* The held one goes away, or needs the NIC no more: the others go on */
static void
test_held_leaves(void **priv)
{
	const unsigned nic = REL_MASK(REL_NET);
	struct world *w = three();
	unsigned i;

	(void)priv;
	for (i = 0; i < 9; i++)
		(void)world_dequeue(w, 0, nic, NULL);
	assert_null(world_dequeue(w, 0, nic, NULL));
	for (i = 0; i < WORLD_REQS; i++)
		if (w->reqs[i].state == REL_WAITING && w->reqs[i].tenant == 0)
			world_cancel(w, &w->reqs[i]);
	assert_int_equal(world_dequeue(w, 0, nic, NULL)->tenant, 1);
	world_free(&w);

	w = three();
	for (i = 0; i < 9; i++)
		(void)world_dequeue(w, 0, nic, NULL);
	assert_null(world_dequeue(w, 0, nic, NULL));
	world_estimate(w, 0, 1000, 0);
	assert_int_equal(world_dequeue(w, 0, nic, NULL)->tenant, 0);
	assert_null(w->fault);
	world_free(&w);
}

/* However long others passed: the held one's credit is U and a quantum */
static void
test_credit(void **priv)
{
	struct rel_tenant_stat st;
	struct world *w = three();
	unsigned i;

	(void)priv;
	for (i = 0; i < 100000; i++) {
		(void)world_enqueue(w, 2, 1);
		world_complete(w, world_dequeue(w, 0, REL_MASK(REL_NET),
		    NULL), MS, REL_SCALE_ONE);
	}
	for (i = 0; i < 16; i++) {
		(void)world_dequeue(w, 0, 0, NULL);
		REL_TenantStat(w->rel, w->tenant[0], &st);
		assert_true(st.account >= -9 * MS);
	}
	assert_null(w->fault);
	world_free(&w);
}

/* A round in which all are held: nobody has a deficit without end from it */
static void
test_drr_all_held(void **priv)
{
	const unsigned nic = REL_MASK(REL_NET);
	struct world *w;
	unsigned t, i, first = 0;

	(void)priv;
	w = world_new(REL_New(0, SLOTS, REL_OPT_ALL, NULL, NULL), SLOTS, 1);
	assert_int_equal(0, REL_SetPolicy(w->rel,
	    (unsigned)REL_PolicyByName("drr"), 0));
	for (t = 0; t < 3; t++) {
		(void)world_tenant(w, REL_WEIGHT_ONE);
		world_estimate(w, t, 1000, t == 0 ? 2000 : 0);
	}
	(void)world_enqueue(w, 0, 1000);
	assert_null(world_dequeue(w, 0, nic, NULL));
	for (t = 1; t < 3; t++)
		for (i = 0; i < 8; i++)
			(void)world_enqueue(w, t, 1000);
	for (i = 0; i < 8; i++)
		first += world_dequeue(w, 0, nic, NULL)->tenant == 1;
	assert_int_equal(first, 4);
	assert_null(w->fault);
	world_free(&w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_c1_c3),
		cmocka_unit_test(test_two_nic),
		cmocka_unit_test(test_pure_cpu),
		cmocka_unit_test(test_little_use),
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_held_leaves),
		cmocka_unit_test(test_credit),
		cmocka_unit_test(test_drr_all_held),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
