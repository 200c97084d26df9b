/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Memory by tenant: the victim on cases, and against a search of all tenants;
 * and the bytes that tenants have after a long time against max-min shares.
 */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "memory/shares.h"
#include "splitmix.h"

#define STEP		1.0443		/* 2^(1/SHARES_STEPS), rounded up */
#define TENANTS		40
#define GROUPS		4
#define STEPS		200000
#define MB		1000000ULL

static uint64_t seed;

static unsigned
draw(unsigned n)
{

	return ((unsigned)(splitmix_next(&seed) % n));
}

struct world {
	struct shares		all;
	struct shares		of_group[GROUPS];
	struct share		group[GROUPS], tenant[TENANTS];
};

/* The first tenants are members of the groups in turn, the other ones of none
 */
static void
world_begin(struct world *w, unsigned members)
{
	unsigned u, g;

	SHARES_Init(&w->all);
	for (u = 0; u < GROUPS; u++) {
		SHARES_Init(&w->of_group[u]);
		SHARE_Init(&w->group[u], NULL, &w->of_group[u]);
	}
	for (u = 0; u < TENANTS; u++) {
		g = u % GROUPS;
		if (u < members)
			SHARE_Init(&w->tenant[u], &w->group[g], NULL);
		else
			SHARE_Init(&w->tenant[u], NULL, NULL);
	}
}

static struct share *
victim(struct world *w, struct share *taker, uint64_t bytes)
{
	struct share_search search;

	return (SHARES_Victim(&search, &w->all, taker, bytes));
}

/*--------------------------------------------------------------------
 * Cases
 */

static void
test_nobody(void **state)
{
	struct world w;

	(void)state;
	world_begin(&w, 0);
	assert_null(victim(&w, NULL, 0));
	assert_null(victim(&w, &w.tenant[0], MB));
	SHARE_Charge(&w.all, &w.tenant[0], MB);
	SHARE_Release(&w.all, &w.tenant[0], MB);
	assert_null(victim(&w, NULL, 0));
}

static void
test_most_bytes_per_weight(void **state)
{
	struct world w;

	(void)state;
	world_begin(&w, 0);
	SHARE_Charge(&w.all, &w.tenant[0], 3 * MB);
	SHARE_Charge(&w.all, &w.tenant[1], 4 * MB);
	assert_ptr_equal(victim(&w, NULL, 0), &w.tenant[1]);
	SHARE_Set(&w.all, &w.tenant[1], 2, 0, 0);
	assert_ptr_equal(victim(&w, NULL, 0), &w.tenant[0]);
	SHARE_Set(&w.all, &w.tenant[0], 1024, 0, 0);
	SHARE_Set(&w.all, &w.tenant[1], 0.001, 0, 0);
	assert_ptr_equal(victim(&w, NULL, 0), &w.tenant[1]);
}

static void
test_the_taker_counts_with_what_it_takes(void **state)
{
	struct world w;

	(void)state;
	world_begin(&w, 0);
	SHARE_Charge(&w.all, &w.tenant[0], 3 * MB);
	SHARE_Charge(&w.all, &w.tenant[1], 4 * MB);
	assert_ptr_equal(victim(&w, &w.tenant[0], MB / 2),
	    &w.tenant[1]);
	assert_ptr_equal(victim(&w, &w.tenant[0], 2 * MB),
	    &w.tenant[0]);
	/* It has nothing that could go */
	assert_ptr_equal(victim(&w, &w.tenant[2], 9 * MB),
	    &w.tenant[1]);
}

/* It needs no more than one byte, and goes before others of its level. */
static void
test_a_taker_of_the_same_level(void **state)
{
	struct world w;

	(void)state;
	world_begin(&w, 0);
	SHARE_Charge(&w.all, &w.tenant[0], 1);
	SHARE_Charge(&w.all, &w.tenant[1], 1);
	assert_ptr_equal(victim(&w, &w.tenant[0], 0), &w.tenant[0]);
	assert_ptr_equal(victim(&w, &w.tenant[1], 0), &w.tenant[1]);
}

/* From 2^53.75 bytes per weight on there is one level.  It is below that of
 * owners above their limit. */
static void
test_most_bytes_that_count(void **state)
{
	struct world w;

	(void)state;
	world_begin(&w, 0);
	SHARE_Set(&w.all, &w.tenant[0], 1, 0, 1);
	SHARE_Charge(&w.all, &w.tenant[0], 2);
	SHARE_Charge(&w.all, &w.tenant[1], (uint64_t)exp2(53.85));
	assert_ptr_equal(victim(&w, NULL, 0), &w.tenant[0]);
	SHARE_Charge(&w.all, &w.tenant[2], UINT64_C(1) << 62);
	assert_ptr_equal(victim(&w, NULL, 0), &w.tenant[0]);
	SHARE_Release(&w.all, &w.tenant[0], 2);
	assert_ptr_equal(victim(&w, &w.tenant[1], 0), &w.tenant[1]);
	assert_ptr_equal(victim(&w, &w.tenant[2], 0), &w.tenant[2]);
}

static void
test_reservation(void **state)
{
	struct world w;

	(void)state;
	world_begin(&w, 0);
	SHARE_Set(&w.all, &w.tenant[0], 1, 5 * MB, 0);
	SHARE_Charge(&w.all, &w.tenant[0], 5 * MB);
	SHARE_Charge(&w.all, &w.tenant[1], MB);
	assert_ptr_equal(victim(&w, NULL, 0), &w.tenant[1]);
	SHARE_Charge(&w.all, &w.tenant[0], 1);
	assert_ptr_equal(victim(&w, NULL, 0), &w.tenant[0]);
	/* All have at most their reservation */
	SHARE_Release(&w.all, &w.tenant[0], 1);
	SHARE_Release(&w.all, &w.tenant[1], MB);
	assert_ptr_equal(victim(&w, NULL, 0), &w.tenant[0]);
}

static void
test_limit(void **state)
{
	struct world w;

	(void)state;
	world_begin(&w, 0);
	SHARE_Set(&w.all, &w.tenant[0], 1, 0, MB);
	SHARE_Charge(&w.all, &w.tenant[0], MB);
	SHARE_Charge(&w.all, &w.tenant[1], 9 * MB);
	assert_null(SHARE_Over(&w.tenant[0], 0));
	assert_null(SHARE_Over(&w.tenant[1], 100 * MB));
	assert_ptr_equal(SHARE_Over(&w.tenant[0], 1), &w.tenant[0]);
	assert_ptr_equal(victim(&w, NULL, 0), &w.tenant[1]);
	SHARE_Charge(&w.all, &w.tenant[0], 3);
	assert_ptr_equal(SHARE_Over(&w.tenant[0], 0), &w.tenant[0]);
	assert_ptr_equal(victim(&w, NULL, 0), &w.tenant[0]);
	/* It has to lose its last byte, and then it has none */
	SHARE_Release(&w.all, &w.tenant[0], MB + 2);
	assert_ptr_equal(SHARE_Over(&w.tenant[0], MB), &w.tenant[0]);
	SHARE_Release(&w.all, &w.tenant[0], 1);
	assert_null(SHARE_Over(&w.tenant[0], 9 * MB));
}

static void
test_group(void **state)
{
	struct world w;

	(void)state;
	world_begin(&w, 2 * GROUPS);
	SHARE_Charge(&w.all, &w.tenant[0], 2 * MB);		/* of group 0 */
	SHARE_Charge(&w.all, &w.tenant[GROUPS], 3 * MB);	/* of group 0 */
	SHARE_Charge(&w.all, &w.tenant[2 * GROUPS], 4 * MB);	/* of none */
	assert_int_equal(w.group[0].bytes, 5 * MB);
	assert_ptr_equal(victim(&w, NULL, 0), &w.tenant[GROUPS]);
	/* Within the group, too, the taker counts with what it takes */
	assert_ptr_equal(victim(&w, &w.tenant[0], 2 * MB),
	    &w.tenant[0]);
	/* One of no group does not count there */
	assert_ptr_equal(victim(&w, &w.tenant[2 * GROUPS], MB / 2),
	    &w.tenant[GROUPS]);
	SHARE_Set(&w.all, &w.group[0], 2, 0, 0);
	assert_ptr_equal(victim(&w, NULL, 0), &w.tenant[2 * GROUPS]);
	SHARE_Set(&w.all, &w.group[0], 2, 0, 4 * MB);
	/* Who fetches makes room only if it has most of the group */
	assert_ptr_equal(SHARE_Over(&w.tenant[0], 0), &w.tenant[GROUPS]);
	assert_ptr_equal(SHARE_Over(&w.tenant[0], 2 * MB), &w.tenant[0]);
	assert_ptr_equal(SHARE_Over(&w.tenant[GROUPS], 0), &w.tenant[GROUPS]);
	assert_ptr_equal(victim(&w, NULL, 0), &w.tenant[GROUPS]);
}

/* The next victims, each once: first by the taker's claim, then in order */
static void
test_next(void **state)
{
	struct world w;
	struct share_search search;
	struct share *taker = &w.tenant[0];

	(void)state;
	world_begin(&w, 2 * GROUPS);
	assert_null(SHARES_Victim(&search, &w.all, taker, MB));
	assert_null(SHARES_Next(&search));
	SHARE_Charge(&w.all, &w.tenant[0], MB);			/* of group 0 */
	SHARE_Charge(&w.all, &w.tenant[GROUPS], 3 * MB);	/* of group 0 */
	SHARE_Charge(&w.all, &w.tenant[1], MB);			/* of group 1 */
	SHARE_Charge(&w.all, &w.tenant[2 * GROUPS], 2 * MB);	/* of none */
	SHARE_Charge(&w.all, &w.tenant[2 * GROUPS + 1], 9 * MB);
	SHARE_Set(&w.all, &w.tenant[2 * GROUPS + 1], 1, 9 * MB, 0);
	assert_ptr_equal(SHARES_Victim(&search, &w.all, taker, 5 * MB), taker);
	assert_ptr_equal(SHARES_Next(&search), &w.tenant[GROUPS]);
	assert_ptr_equal(SHARES_Next(&search), &w.tenant[2 * GROUPS]);
	assert_ptr_equal(SHARES_Next(&search), &w.tenant[1]);
	assert_ptr_equal(SHARES_Next(&search), &w.tenant[2 * GROUPS + 1]);
	assert_null(SHARES_Next(&search));
}

/* The owners with bytes, in turn, also when the next one loses its bytes */
static void
test_look(void **state)
{
	struct world w;

	(void)state;
	world_begin(&w, 2 * GROUPS);
	assert_null(SHARES_Look(&w.all));
	SHARE_Charge(&w.all, &w.tenant[0], MB);			/* of group 0 */
	assert_ptr_equal(SHARES_Look(&w.all), &w.tenant[0]);
	assert_ptr_equal(SHARES_Look(&w.all), &w.tenant[0]);
	SHARE_Charge(&w.all, &w.tenant[GROUPS], 2 * MB);	/* of group 0 */
	SHARE_Charge(&w.all, &w.tenant[2 * GROUPS], 9 * MB);	/* of none */
	SHARE_Charge(&w.all, &w.tenant[2 * GROUPS + 1], MB);
	assert_ptr_equal(SHARES_Look(&w.all), &w.tenant[2 * GROUPS]);
	assert_ptr_equal(SHARES_Look(&w.all), &w.tenant[GROUPS]);
	assert_ptr_equal(SHARES_Look(&w.all), &w.tenant[0]);
	assert_ptr_equal(SHARES_Look(&w.all), &w.tenant[2 * GROUPS + 1]);
	assert_ptr_equal(SHARES_Look(&w.all), &w.tenant[2 * GROUPS]);
	/* The next two are gone */
	SHARE_Release(&w.all, &w.tenant[GROUPS], 2 * MB);
	SHARE_Release(&w.all, &w.tenant[0], MB);
	assert_ptr_equal(SHARES_Look(&w.all), &w.tenant[2 * GROUPS + 1]);
	/* The next one is the last one, and is gone */
	SHARE_Release(&w.all, &w.tenant[2 * GROUPS], 9 * MB);
	SHARE_Release(&w.all, &w.tenant[2 * GROUPS + 1], MB);
	assert_null(SHARES_Look(&w.all));
}

static void
test_kept(void **state)
{
	struct world w;

	(void)state;
	world_begin(&w, 2 * GROUPS);
	SHARE_Set(&w.all, &w.tenant[2 * GROUPS], 1, MB, 0);
	SHARE_Charge(&w.all, &w.tenant[2 * GROUPS], MB);
	assert_int_equal(SHARE_Kept(&w.tenant[2 * GROUPS]), 1);
	SHARE_Charge(&w.all, &w.tenant[2 * GROUPS], 1);
	assert_int_equal(SHARE_Kept(&w.tenant[2 * GROUPS]), 0);
	SHARE_Charge(&w.all, &w.tenant[0], MB);		/* of group 0 */
	SHARE_Set(&w.all, &w.group[0], 1, 2 * MB, 0);
	assert_int_equal(SHARE_Kept(&w.tenant[0]), 1);
	SHARE_Charge(&w.all, &w.tenant[GROUPS], 2 * MB);	/* of group 0 */
	assert_int_equal(SHARE_Kept(&w.tenant[0]), 0);
	SHARE_Set(&w.all, &w.tenant[GROUPS], 1, 3 * MB, 0);
	assert_int_equal(SHARE_Kept(&w.tenant[GROUPS]), 1);
}

/*--------------------------------------------------------------------
 * Against a search
 */

/* What decides, in this order */
struct key {
	int			first;	/* above its limit */
	int			above;	/* its reservation */
	double			per_weight;
};

static struct key
key_of(const struct share *s, uint64_t more)
{
	uint64_t bytes = s->bytes + more;
	struct key k;

	k.first = s->limit != 0 && bytes > s->limit;
	k.above = bytes > s->reservation;
	k.per_weight = (double)bytes / (double)s->weight;
	return (k);
}

/* May a be the victim although b could be? */
static int
may_go_before(struct key a, struct key b)
{

	if (a.first || b.first)
		return (a.first);
	if (a.above != b.above)
		return (a.above);
	return (!a.above || a.per_weight * STEP >= b.per_weight);
}

static void
judge(const struct share *victim, const struct share *other,
    const struct share *taker, uint64_t bytes)
{

	if (other->bytes == 0)
		return;
	assert_true(may_go_before(
	    key_of(victim, victim == taker ? bytes : 0),
	    key_of(other, other == taker ? bytes : 0)));
}

static void
judge_victim(struct world *w, unsigned members, struct share *taker,
    uint64_t bytes)
{
	struct share *v = victim(w, taker, bytes);
	struct share *top, *from;
	unsigned u;

	if (v == NULL) {
		for (u = 0; u < TENANTS; u++)
			assert_int_equal(w->tenant[u].bytes, 0);
		return;
	}
	assert_true(v->bytes > 0);
	top = v->group != NULL ? v->group : v;
	from = taker->group != NULL ? taker->group : taker;
	for (u = 0; u < GROUPS; u++)
		judge(top, &w->group[u], from, bytes);
	for (u = members; u < TENANTS; u++)
		judge(top, &w->tenant[u], from, bytes);
	for (u = 0; u < members; u++)
		if (w->tenant[u].group == v->group)
			judge(v, &w->tenant[u], taker, bytes);
}

static void
change_one(struct world *w, struct share *s)
{
	uint64_t bytes = draw(4) == 0 ? draw(100) : draw(1000 * MB);

	switch (draw(8)) {
	case 0:
		SHARE_Set(&w->all, s, (double)(1 + draw(1024000)) / 1000,
		    draw(2) ? draw(500 * MB) : 0,
		    draw(4) ? 0 : 1 + draw(2000 * MB));
		break;
	case 1:
	case 2:
	case 3:
	case 4:
		if (s->members == NULL)
			SHARE_Release(&w->all, s, bytes < s->bytes ? bytes :
			    s->bytes);
		break;
	default:
		if (s->members == NULL)
			SHARE_Charge(&w->all, s, bytes);
	}
}

static void
test_search(void **state)
{
	const unsigned members = TENANTS / 2;
	struct world w;
	unsigned u, n, run;

	(void)state;
	for (run = 0; run < 3; run++) {
		seed = run;
		world_begin(&w, members);
		for (u = 0; u < STEPS; u++) {
			n = draw(TENANTS + GROUPS);
			change_one(&w, n < TENANTS ? &w.tenant[n] :
			    &w.group[n - TENANTS]);
			judge_victim(&w, members, &w.tenant[draw(TENANTS)],
			    draw(100 * MB));
		}
	}
}

/*--------------------------------------------------------------------
 * Max-min
 */

#define STORE		100000		/* bytes, of objects of one byte */

/* Let tenants ask for objects of one byte until the store is full of them. */
static void
fill(struct world *w, const unsigned *asks, unsigned n, unsigned times)
{
	struct share *s, *v;
	uint64_t used = 0;
	unsigned u, all = 0, at;

	for (u = 0; u < n; u++) {
		all += asks[u];
		used += w->tenant[u].bytes;
	}
	while (times-- > 0) {
		at = draw(all);
		for (u = 0; at >= asks[u]; u++)
			at -= asks[u];
		s = &w->tenant[u];
		if (used == STORE) {
			v = victim(w, s, 1);
			SHARE_Release(&w->all, v, 1);
			used--;
		}
		SHARE_Charge(&w->all, s, 1);
		used++;
	}
}

static void
assert_near(uint64_t is, double expected)
{

	assert_true(fabs((double)is - expected) <= expected * (STEP - 1) + 1);
}

static void
test_max_min(void **state)
{
	const unsigned asks[] = { 1, 10, 100 };
	struct world w;

	(void)state;
	seed = 7;
	world_begin(&w, 0);
	SHARE_Set(&w.all, &w.tenant[1], 2, 0, 0);
	SHARE_Set(&w.all, &w.tenant[2], 1, 0, 0);
	fill(&w, asks, 3, 40 * STORE);
	assert_near(w.tenant[0].bytes, STORE / 4.);
	assert_near(w.tenant[1].bytes, STORE / 2.);
	assert_near(w.tenant[2].bytes, STORE / 4.);
}

static void
test_lent_until_asked_for(void **state)
{
	const unsigned alone[] = { 0, 1 }, both[] = { 1, 1 };
	struct world w;

	(void)state;
	seed = 8;
	world_begin(&w, 0);
	fill(&w, alone, 2, 2 * STORE);
	assert_int_equal(w.tenant[1].bytes, STORE);
	fill(&w, both, 2, 2 * STORE);
	assert_near(w.tenant[0].bytes, STORE / 2.);
	/* Tenant 1 replaces its own objects */
	fill(&w, alone, 2, 2 * STORE);
	assert_near(w.tenant[0].bytes, STORE / 2.);
}

static void
test_shares_with_a_reservation_and_a_group(void **state)
{
	const unsigned asks[] = { 1, 1, 1, 1, 5, 1 };
	struct world w;

	(void)state;
	seed = 9;
	world_begin(&w, 5);	/* 0 and 4 in group 0; 1 to 3 alone in theirs */
	SHARE_Set(&w.all, &w.tenant[5], 1, STORE / 2, 0);
	fill(&w, asks, 6, 40 * STORE);
	assert_near(w.tenant[5].bytes, STORE / 2.);
	assert_near(w.tenant[0].bytes, STORE / 16.);
	assert_near(w.tenant[4].bytes, STORE / 16.);
	assert_near(w.tenant[1].bytes, STORE / 8.);
	assert_near(w.tenant[2].bytes, STORE / 8.);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nobody),
		cmocka_unit_test(test_most_bytes_per_weight),
		cmocka_unit_test(test_the_taker_counts_with_what_it_takes),
		cmocka_unit_test(test_a_taker_of_the_same_level),
		cmocka_unit_test(test_most_bytes_that_count),
		cmocka_unit_test(test_reservation),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_group),
		cmocka_unit_test(test_next),
		cmocka_unit_test(test_look),
		cmocka_unit_test(test_kept),
		cmocka_unit_test(test_search),
		cmocka_unit_test(test_max_min),
		cmocka_unit_test(test_lent_until_asked_for),
		cmocka_unit_test(test_shares_with_a_reservation_and_a_group),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
