/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The dry run: the parts of tenants, and what it says next to a machine that
 * has slots and refuses.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "overload/dryrun.h"

#define COST		20.		/* ns, of each request */

#define same(is, wanted) assert_float_equal(is, wanted, 1e-9)

static void
near(double is, double wanted, double part)
{

	if (is < wanted * (1 - part) || is > wanted * (1 + part))
		fail_msg("%g is not near %g", is, wanted);
}

static struct dry_right
right(uint32_t weight, double limit)
{

	return ((struct dry_right){ .weight = weight, .limit = limit });
}

/* Let the others' time go on. */
static void
advance_some(struct dry *d, int64_t at)
{
	struct dry_queue *q;
	unsigned left = DRY_LOOKS;

	while (left > 0 && (q = DRY_Next(d)) != NULL) {
		DRY_Advance(d, q, at);
		left -= q->work > 0;
	}
}

/* n requests come. */
static void
come(struct dry *d, struct dry_queue *q, int64_t at, unsigned n,
    uint32_t weight, struct dry_group *g, uint32_t group_weight)
{

	while (n-- > 0)
		DRY_Add(d, q, at, REL_CPU, COST, right(weight, 1), g,
		    right(group_weight, 1));
}

static double
waiting(struct dry *d, struct dry_queue *q, int64_t now)
{

	DRY_Advance(d, q, now);
	advance_some(d, now);
	return (DRY_View(d, q, COST).waiting);
}

static void
test_work_above_the_slots_waits(void **state)
{
	struct dry d = { .slots = 10 };
	struct dry_queue q = { 0 };
	struct dry_view v;

	(void)state;
	come(&d, &q, 0, 10, 1, NULL, 1);
	same(waiting(&d, &q, 0), 0);
	come(&d, &q, 0, 30, 1, NULL, 1);
	v = DRY_View(&d, &q, COST);
	same(v.waiting, 30);
	same(v.wait, 30 * COST);
	same(v.slots, 10);
	same(waiting(&d, &q, 200), 20);
	same(waiting(&d, &q, 100), 20);		/* time does not go back */
	same(waiting(&d, &q, 799), 0);
	assert_non_null(d.look);
	same(waiting(&d, &q, 800), 0);
	assert_null(d.look);
	assert_int_equal(d.server[REL_CPU].weights, 0);
	same(d.server[REL_CPU].work, 0);
	/* It begins anew */
	come(&d, &q, 800, 15, 1, NULL, 1);
	same(waiting(&d, &q, 900), 0);
	DRY_Forget(&d, &q);
	assert_null(d.look);
	DRY_Forget(&d, &q);
	same(d.server[REL_CPU].work, 0);
}

static void
test_parts_are_by_weight_and_group(void **state)
{
	struct dry d = { .slots = 40 };
	struct dry_queue a = { 0 }, b = { 0 }, c = { 0 };
	struct dry_group g = { .right.weight = 0 };

	(void)state;
	come(&d, &a, 0, 100, 3, NULL, 1);
	come(&d, &b, 0, 100, 1, &g, 1);
	come(&d, &c, 0, 100, 4, &g, 1);
	same(DRY_Waiting(&d, &g, COST), 200 - 10);
	same(DRY_Waiting(&d, NULL, COST), 300 - 40);
	same(waiting(&d, &a, 0), 100 - 30);
	same(waiting(&d, &b, 0), 100 - 2);
	same(waiting(&d, &c, 0), 100 - 8);
	/* 1000 ns are 50 requests: 37.5, 2.5 and 10 of them */
	same(waiting(&d, &a, 1000), 70 - 37.5);
	same(waiting(&d, &b, 1000), 98 - 2.5);
	same(waiting(&d, &c, 1000), 92 - 10);
	same(DRY_Waiting(&d, &g, COST), 190 - 12.5);
	same(DRY_Waiting(&d, NULL, COST), 260 - 50);
	DRY_Forget(&d, &a);		/* all is the group's now */
	same(waiting(&d, &c, 1000), 90 - 32);
	same(waiting(&d, &c, 2000), 58 - 40);
	DRY_Forget(&d, &c);
	same(waiting(&d, &b, 2000), 97.5 - 10 - 40);
	DRY_Forget(&d, &b);
	assert_int_equal(g.server[REL_CPU].weights, 0);
	assert_int_equal(d.server[REL_CPU].weights, 0);
	same(DRY_Waiting(&d, &g, COST), 0);
	same(DRY_Waiting(&d, NULL, COST), 0);
}

static void
test_net_is_a_machine_of_its_own(void **state)
{
	struct dry d = { .slots = 1, .backlog = 100 };
	struct dry_queue big = { 0 }, busy = { 0 };
	struct dry_view v;

	(void)state;
	DRY_Add(&d, &big, 0, REL_NET, 1000, right(1, 1), NULL, right(1, 1));
	come(&d, &busy, 0, 50, 1, NULL, 1);
	v = DRY_View(&d, &big, 1000);
	same(v.waiting, .9);
	same(v.wait, 900);
	same(waiting(&d, &busy, 0), 49);
	/* Each one has its resource alone */
	DRY_Advance(&d, &big, 500);
	same(DRY_View(&d, &big, 1000).waiting, .4);
	same(waiting(&d, &busy, 500), 24);
}

/* A tenant whose requests are looked at late keeps its work until then. */
static void
test_each_tenant_has_a_time_of_its_own(void **state)
{
	struct dry d = { .slots = 10 };
	struct dry_queue late = { 0 }, soon = { 0 };

	(void)state;
	come(&d, &late, 0, 20, 1, NULL, 1);
	come(&d, &soon, 1000, 20, 1, NULL, 1);
	DRY_Advance(&d, &soon, 1400);
	advance_some(&d, 0);
	same(DRY_View(&d, &soon, COST).waiting, 20 - 5 - 10);
	same(DRY_View(&d, &late, COST).waiting, 20 - 5);
	DRY_Advance(&d, &late, 40);
	same(DRY_View(&d, &late, COST).waiting, 20 - 5 - 1);
}

/* A tenant or a group does not get more than its limit, even alone. */
static void
test_a_limit_holds(void **state)
{
	struct dry d = { .slots = 40 };
	struct dry_queue q = { 0 }, member = { 0 };
	struct dry_group g = { .right.weight = 0 };
	unsigned u;

	(void)state;
	for (u = 0; u < 100; u++)
		DRY_Add(&d, &q, 0, REL_CPU, COST, right(1, .25), NULL,
		    right(1, 1));
	same(waiting(&d, &q, 0), 100 - 10);
	same(waiting(&d, &q, 400), 90 - 5);
	same(d.server[REL_CPU].work, 95 * COST);
	DRY_Forget(&d, &q);
	same(d.server[REL_CPU].work, 0);

	for (u = 0; u < 100; u++)
		DRY_Add(&d, &member, 0, REL_CPU, COST, right(1, 1), &g,
		    right(1, .5));
	same(waiting(&d, &member, 0), 100 - 20);
	same(waiting(&d, &member, 400), 80 - 10);
	same(g.server[REL_CPU].work, 90 * COST);
	same(d.server[REL_CPU].work, 90 * COST);
	DRY_Forget(&d, &member);
	same(d.server[REL_CPU].work, 0);
}

/* A tenant that never comes again does not keep its part for long. */
static void
test_who_has_no_work_is_found(void **state)
{
	struct dry d = { .slots = 1 };
	struct dry_queue q[100];
	unsigned u;

	(void)state;
	memset(q, 0, sizeof q);
	for (u = 0; u < 100; u++)
		come(&d, &q[u], 0, 1, 1, NULL, 1);
	assert_int_equal(d.server[REL_CPU].weights, 100);
	assert_int_equal(DRY_Busy(&d), 100);
	advance_some(&d, 100000);
	assert_int_equal(DRY_Busy(&d), 0);
	assert_int_equal(d.server[REL_CPU].weights, 0);
	assert_null(d.look);
}

/* Tenants 0 and 1 are in no group. */
#define WITHOUT		2U
#define ALL		8U
#define GROUPS		2U

static void
check_sums(const struct dry *d, const struct dry_queue *q,
    const struct dry_group *g, enum rel_resource r)
{
	uint64_t weights = 0, members;
	double work = 0;
	unsigned t, u;

	for (u = 0; u < ALL; u++)
		if (q[u].work > 0 && q[u].resource == r) {
			work += q[u].work;
			weights += u < WITHOUT ? q[u].right.weight : 0;
		}
	for (t = 0; t < GROUPS; t++) {
		members = 0;
		for (u = WITHOUT + t; u < ALL; u += GROUPS)
			if (q[u].work > 0 && q[u].resource == r)
				members += q[u].right.weight;
		assert_int_equal(g[t].server[r].weights, members);
		weights += members > 0 ? g[t].right.weight : 0;
	}
	assert_int_equal(d->server[r].weights, weights);
	assert_float_equal(d->server[r].work, work, 1e-3);
}

/* Whatever happens, the sums are those of the tenants. */
static void
test_sums_hold(void **state)
{
	struct dry d = { .slots = 10, .backlog = 100 };
	struct dry_queue q[ALL];
	struct dry_group g[GROUPS];
	unsigned n, t, seed = 1;

	(void)state;
	memset(q, 0, sizeof q);
	memset(g, 0, sizeof g);
	for (n = 0; n < 100000; n++) {
		seed = seed * 1103515245 + 12345;
		t = (seed >> 8) % ALL;
		DRY_Advance(&d, &q[t], n);
		advance_some(&d, n);
		if (seed >> 30 == 0)
			DRY_Add(&d, &q[t], n, (seed >> 12) & 1, 1 +
			    (seed >> 13) % 30, right(1 + (seed >> 20) % 4, .5),
			    t < WITHOUT ? NULL : &g[t % GROUPS], right(3, .7));
		else if ((seed >> 12) % 100 == 0)
			DRY_Forget(&d, &q[t]);
		check_sums(&d, q, g, REL_CPU);
		check_sums(&d, q, g, REL_NET);
	}
}

/*--------------------------------------------------------------------
 * A machine with slots: a ns of its time is a unit of work.
 */

#define TENANTS		2
#define MOST		1000		/* requests of a tenant, at once */
#define STEPS		400000		/* ns */
#define SLOTS		10

struct machine {			/* tenants have requests in a ring */
	int			came[TENANTS][MOST], left[TENANTS][MOST];
	unsigned		first[TENANTS], n[TENANTS], runs[TENANTS];
	unsigned		next, refused[TENANTS], dry[TENANTS];
	double			waited[TENANTS], dry_waited[TENANTS];
	unsigned		came_in[TENANTS];
};

/* Requests begin while slots are free, in equal parts; then one of those that
 * run gets its unit. */
static void
step(struct machine *m, int now)
{
	unsigned t, u, i, all;

	for (u = 0; u < 2 * TENANTS; u++) {
		t = (m->runs[0] > m->runs[1]) ^ (u & 1);
		if (m->runs[0] + m->runs[1] < SLOTS && m->runs[t] < m->n[t]) {
			i = (m->first[t] + m->runs[t]++) % MOST;
			m->waited[t] += now - m->came[t][i];
		}
	}
	all = m->runs[0] + m->runs[1];
	if (all == 0)
		return;
	m->next = (m->next + 1) % all;
	t = m->next >= m->runs[0];
	i = m->first[t];		/* first come, first done */
	if (--m->left[t][i] > 0)
		return;
	m->first[t] = (m->first[t] + 1) % MOST;
	m->n[t]--;
	m->runs[t]--;
}

/* load: of the machine, in parts of 1024, by each tenant.  A request is refused
 * if `limit` wait. */
static void
run(struct machine *m, const unsigned load[TENANTS], unsigned limit)
{
	struct dry d = { .slots = SLOTS };
	struct dry_queue q[TENANTS] = { { 0 } };
	struct dry_view v;
	unsigned t, i, seed = 1;
	int now;

	memset(m, 0, sizeof *m);
	for (now = 0; now < STEPS; step(m, now++)) {
		for (t = 0; t < TENANTS; t++) {
			seed = seed * 1103515245 + 12345;
			if ((seed >> 8) % (1024 * (unsigned)COST) >= load[t])
				continue;
			DRY_Advance(&d, &q[t], now);
			advance_some(&d, now);
			v = DRY_View(&d, &q[t], COST);
			if (v.waiting >= limit)
				m->dry[t]++;
			else {
				m->dry_waited[t] += v.wait;
				come(&d, &q[t], now, 1, 1, NULL, 1);
			}
			if (m->n[t] - m->runs[t] >= limit) {
				m->refused[t]++;
				continue;
			}
			i = (m->first[t] + m->n[t]++) % MOST;
			m->came[t][i] = now;
			m->left[t][i] = (int)COST;
			m->came_in[t]++;
		}
	}
}

static void
test_it_says_what_is_refused(void **state)
{
	static const unsigned alone[] = { 3072, 0 }, equal[] = { 1024, 1024 },
	    next_to_a_small_one[] = { 2048, 300 };
	struct machine m;

	(void)state;
	run(&m, alone, 50);
	assert_true(m.refused[0] > 30000);
	near(m.dry[0], m.refused[0], .01);
	near(m.dry_waited[0], m.waited[0], .05);

	run(&m, equal, 50);
	near(m.dry[0], m.refused[0], .05);
	near(m.dry[1], m.refused[1], .05);

	run(&m, next_to_a_small_one, 50);
	near(m.dry[0], m.refused[0], .05);
	assert_int_equal(m.refused[1], 0);
	assert_int_equal(m.dry[1], 0);
}

/* Many small tenants next to one with half of the load of a machine that is not
 * full: their work is done soon, and few requests wait. */
static void
test_small_tenants_do_not_count_for_long(void **state)
{
	struct dry d = { .slots = SLOTS };
	struct dry_queue q[200], large = { 0 }, *one;
	unsigned seed = 1, u;
	int now;

	(void)state;
	memset(q, 0, sizeof q);
	for (now = 0; now < STEPS; now++) {
		seed = seed * 1103515245 + 12345;
		u = (seed >> 8) % (10 * (unsigned)COST);
		if (u >= 8)
			continue;	/* 0.8 of all */
		one = u < 4 ? &large : &q[(seed >> 16) % 200];
		DRY_Advance(&d, one, now);
		advance_some(&d, now);
		assert_true(DRY_View(&d, one, COST).waiting < 50);
		come(&d, one, now, 1, 1, NULL, 1);
	}
}

/* Rights and resource are those of the last request. */
static void
test_rights_change(void **state)
{
	struct dry d = { .slots = 40, .backlog = 0 };
	struct dry_queue a = { 0 }, b = { 0 };
	struct dry_group g = { .right.weight = 0 };

	(void)state;
	come(&d, &a, 0, 100, 1, NULL, 1);
	come(&d, &b, 0, 99, 1, &g, 1);
	same(DRY_View(&d, &a, COST).slots, 20);
	come(&d, &b, 0, 1, 1, &g, 3);
	same(DRY_View(&d, &a, COST).slots, 10);
	same(DRY_View(&d, &b, COST).slots, 30);
	come(&d, &a, 0, 1, 9, NULL, 1);
	same(DRY_View(&d, &a, COST).slots, 30);
	same(DRY_View(&d, &a, COST).waiting, 101 - 30);
	DRY_Add(&d, &a, 0, REL_CPU, COST, (struct dry_right){ .weight = 9,
	    .reservation = .9, .limit = 1 }, NULL, right(1, 1));
	same(DRY_View(&d, &a, COST).slots, 36);
	same(DRY_View(&d, &a, COST).of_group, 1);
	DRY_Add(&d, &a, 0, REL_NET, COST, right(9, 1), NULL, right(1, 1));
	same(d.server[REL_NET].work, 103 * COST);
	same(d.server[REL_CPU].work, 100 * COST);
	same(DRY_View(&d, &b, COST).slots, 40);
	assert_int_equal(DRY_Busy(&d), 2);
	DRY_Forget(&d, &a);
	DRY_Forget(&d, &b);
	assert_int_equal(d.server[REL_CPU].weights, 0);
	assert_int_equal(d.server[REL_NET].weights, 0);
	assert_int_equal(DRY_Busy(&d), 0);
}

static void
test_it_says_how_long_requests_wait(void **state)
{
	static const unsigned near_all[] = { 1000, 0 }, less[] = { 600, 0 };
	struct machine m;

	(void)state;
	run(&m, near_all, MOST);
	assert_true(m.waited[0] / m.came_in[0] > 5 * COST);
	near(m.dry_waited[0], m.waited[0], .1);

	run(&m, less, MOST);
	assert_true(m.waited[0] / m.came_in[0] < 1);
	assert_true(m.dry_waited[0] / m.came_in[0] < 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_work_above_the_slots_waits),
		cmocka_unit_test(test_parts_are_by_weight_and_group),
		cmocka_unit_test(test_net_is_a_machine_of_its_own),
		cmocka_unit_test(test_each_tenant_has_a_time_of_its_own),
		cmocka_unit_test(test_a_limit_holds),
		cmocka_unit_test(test_who_has_no_work_is_found),
		cmocka_unit_test(test_sums_hold),
		cmocka_unit_test(test_it_says_what_is_refused),
		cmocka_unit_test(test_small_tenants_do_not_count_for_long),
		cmocka_unit_test(test_rights_change),
		cmocka_unit_test(test_it_says_how_long_requests_wait),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
