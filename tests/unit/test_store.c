/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * One store: the lists of owners and the common one, on cases; owners that end,
 * change their group, or begin in the entry of another one, also in that of a
 * group; and a long random run, in which the bytes of all must stay right.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "memory/store.h"
#include "no_memory.h"
#include "splitmix.h"

#define MB		1000000ULL
#define OWNERS		20
#define STEPS		200000

struct world {
	struct owners		*owners;
	struct store		*store;
	struct store_search	search;
};

static void
world_begin(struct world *w, uint32_t max)
{

	w->owners = OWN_New(max);
	assert_non_null(w->owners);
	w->store = STORE_New(w->owners);
	assert_non_null(w->store);
}

static void
world_end(struct world *w)
{

	STORE_Destroy(&w->store);
	OWN_Destroy(&w->owners);
	assert_null(w->store);
	assert_null(w->owners);
}

static unsigned
victim(struct world *w, uint32_t taker, int own)
{

	return (STORE_Victim(&w->search, w->store, taker, 0, own));
}

static void
add(struct world *w, uint32_t owner, uint64_t bytes)
{

	STORE_Add(w->store, owner, bytes, 1);
}

/*--------------------------------------------------------------------
 * Owners
 */

static void
test_owners_begin_and_end(void **state)
{
	struct world w;
	uint32_t a, b;

	(void)state;
	world_begin(&w, 2);
	a = OWN_Begin(w.owners);
	b = OWN_Begin(w.owners);
	assert_int_not_equal(a, OWN_OTHER);
	assert_int_not_equal(b, OWN_OTHER);
	assert_int_not_equal(a, b);
	assert_true(b < OWN_Room(w.owners));
	assert_int_equal(OWN_Begin(w.owners), OWN_OTHER);
	/* An entry with an object is not free */
	OWN_Ref(w.owners, a);
	OWN_End(w.owners, a);
	assert_int_equal(OWN_Begin(w.owners), OWN_OTHER);
	assert_int_equal(OWN_Begun(w.owners, a), 1);
	OWN_Unref(w.owners, a);
	assert_int_equal(OWN_Begin(w.owners), a);
	assert_int_equal(OWN_Begun(w.owners, a), 2);
	/* Two have ended: the one without objects is free */
	OWN_Ref(w.owners, a);
	OWN_End(w.owners, a);
	OWN_End(w.owners, b);
	assert_int_equal(OWN_Begin(w.owners), b);
	OWN_End(w.owners, OWN_OTHER);
	assert_int_equal(OWN_Begin(w.owners), OWN_OTHER);
	world_end(&w);
}

/* For one new owner, eight of the entries that wait are looked at. */
static void
test_entries_that_wait(void **state)
{
	struct world w;
	uint32_t n;

	(void)state;
	world_begin(&w, 9);
	for (n = 1; n <= 9; n++) {
		assert_int_equal(OWN_Begin(w.owners), n);
		OWN_Ref(w.owners, n);
	}
	for (n = 1; n <= 9; n++)
		OWN_End(w.owners, n);
	/* The ninth one is free: the first call stops before it */
	OWN_Unref(w.owners, 9);
	assert_int_equal(OWN_Begin(w.owners), OWN_OTHER);
	assert_int_equal(OWN_Begin(w.owners), 9);
	/* The eighth one is free.  The first one is 1 again. */
	OWN_Unref(w.owners, 8);
	assert_int_equal(OWN_Begin(w.owners), 8);
	world_end(&w);
}

static void
test_transit(void **state)
{
	struct world w;
	uint32_t a, b;

	(void)state;
	world_begin(&w, 2);
	a = OWN_Begin(w.owners);
	b = OWN_Begin(w.owners);
	/* One owner may take all, in one object, but no second one then */
	assert_int_equal(OWN_Transit(w.owners, a, 101, 100), 0);
	assert_int_equal(OWN_Transit(w.owners, a, 100, 100), 1);
	assert_int_equal(OWN_Transit(w.owners, b, 1, 100), 0);
	OWN_Transited(w.owners, a, 100);
	/* In small ones it leaves half to others */
	assert_int_equal(OWN_Transit(w.owners, a, 50, 100), 1);
	assert_int_equal(OWN_Transit(w.owners, a, 1, 100), 1);
	assert_int_equal(OWN_Transit(w.owners, a, 1, 100), 0);
	assert_int_equal(OWN_Transit(w.owners, b, 30, 100), 1);
	assert_int_equal(OWN_Transit(w.owners, b, 1, 100), 0);
	assert_int_equal(OWN_InTransit(w.owners, a), 51);
	assert_int_equal(OWN_InTransit(w.owners, b), 30);
	assert_int_equal(OWN_AllInTransit(w.owners), 81);
	OWN_Transited(w.owners, a, 50);
	OWN_Transited(w.owners, a, 1);
	OWN_Transited(w.owners, b, 30);
	assert_int_equal(OWN_AllInTransit(w.owners), 0);
	world_end(&w);
}

static void
test_evictions(void **state)
{
	struct own_evictions e;
	struct world w;
	uint32_t a, b, c;
	unsigned u;

	(void)state;
	world_begin(&w, 3);
	a = OWN_Begin(w.owners);
	b = OWN_Begin(w.owners);
	c = OWN_Begin(w.owners);
	OWN_Evictions(w.owners, a, &e);
	assert_int_equal(e.own + e.others, 0);
	OWN_Evicted(w.owners, a, a);
	OWN_Evicted(w.owners, a, a);
	for (u = 0; u < 5; u++) {
		/* b was more than half of them, in any order */
		OWN_Evicted(w.owners, a, u < 3 ? b : c);
		OWN_Evicted(w.owners, a, u < 3 ? c : b);
	}
	OWN_Evicted(w.owners, a, b);
	OWN_Evictions(w.owners, a, &e);
	assert_int_equal(e.own, 2);
	assert_int_equal(e.others, 11);
	assert_int_equal(e.mostly, b);
	OWN_Evictions(w.owners, b, &e);
	assert_int_equal(e.own + e.others, 0);
	OWN_End(w.owners, a);
	assert_int_equal(OWN_Begin(w.owners), a);
	OWN_Evictions(w.owners, a, &e);
	assert_int_equal(e.own + e.others, 0);
	world_end(&w);
}

static void
evict(struct world *w, uint32_t n, uint32_t taker, unsigned times)
{

	while (times-- > 0)
		OWN_Evicted(w->owners, n, taker);
}

static uint32_t
mostly(struct world *w, uint32_t n)
{
	struct own_evictions e;

	OWN_Evictions(w->owners, n, &e);
	return (e.mostly);
}

/* The owner with more than half of the evictions, if they come in a row */
static void
test_who_evicts_most(void **state)
{
	struct world w;
	uint32_t a, b, c;

	(void)state;
	world_begin(&w, 3);
	a = OWN_Begin(w.owners);
	b = OWN_Begin(w.owners);
	c = OWN_Begin(w.owners);
	evict(&w, a, b, 1);
	assert_int_equal(mostly(&w, a), b);
	evict(&w, a, b, 2);
	evict(&w, a, c, 2);
	assert_int_equal(mostly(&w, a), b);
	evict(&w, a, c, 2);
	assert_int_equal(mostly(&w, a), c);
	evict(&w, a, b, 2);
	assert_int_equal(mostly(&w, a), b);
	world_end(&w);
}

static void
test_settings(void **state)
{
	struct world w;
	struct own_settings set;
	uint32_t a, g, serial;

	(void)state;
	world_begin(&w, 2);
	a = OWN_Begin(w.owners);
	g = OWN_Begin(w.owners);
	serial = OWN_Serial(w.owners, a);
	OWN_Set(w.owners, a, 2.5, MB, 2 * MB, g);
	assert_int_not_equal(OWN_Serial(w.owners, a), serial);
	OWN_Settings(w.owners, a, &set);
	assert_true(set.weight == 2.5);
	assert_int_equal(set.reservation, MB);
	assert_int_equal(set.limit, 2 * MB);
	assert_int_equal(set.group, g);
	/* If there was no entry for a tenant or its group, nothing changes */
	OWN_Set(w.owners, OWN_OTHER, 5, 0, 0, g);
	OWN_Settings(w.owners, OWN_OTHER, &set);
	assert_true(set.weight == 1 && set.group == OWN_NONE);
	OWN_Set(w.owners, a, 2.5, 0, 0, OWN_OTHER);
	OWN_Settings(w.owners, a, &set);
	assert_int_equal(set.group, OWN_NONE);
	/* A new owner in the entry does not get the old one's settings */
	OWN_End(w.owners, a);
	assert_int_equal(OWN_Begin(w.owners), a);
	OWN_Settings(w.owners, a, &set);
	assert_true(set.weight == 1);
	assert_int_equal(set.reservation + set.limit, 0);
	assert_int_equal(set.group, OWN_NONE);
	world_end(&w);
}

/*--------------------------------------------------------------------
 * Lists
 */

static void
test_lists(void **state)
{
	struct world w;
	uint32_t a, b;

	(void)state;
	world_begin(&w, 2);
	a = OWN_Begin(w.owners);
	b = OWN_Begin(w.owners);
	assert_int_equal(victim(&w, a, 0), STORE_END);
	assert_int_equal(victim(&w, a, 1), STORE_END);
	STORE_Add(w.store, a, MB / 2, 0);
	add(&w, a, 2 * MB);
	add(&w, b, 3 * MB);
	assert_int_equal(OWN_Bytes(w.owners, a), 5 * MB / 2);
	/* The owner of objects without a tenant has a list, too */
	assert_int_not_equal(STORE_List(OWN_OTHER, 1), STORE_COMMON);
	/* The list that is not in use goes first */
	assert_int_equal(victim(&w, a, 1), STORE_COMMON);
	assert_int_equal(STORE_Next(&w.search), STORE_List(b, 1));
	assert_int_equal(STORE_Next(&w.search), STORE_List(a, 1));
	assert_int_equal(STORE_Next(&w.search), STORE_END);
	assert_int_equal(victim(&w, a, 0), STORE_List(b, 1));
	assert_int_equal(STORE_Next(&w.search), STORE_List(a, 1));
	assert_int_equal(STORE_Next(&w.search), STORE_COMMON);
	assert_int_equal(STORE_Next(&w.search), STORE_END);
	/* A client asks for the object on the common list */
	STORE_Remove(w.store, a, MB / 2, 0);
	add(&w, a, MB / 2);
	assert_int_equal(victim(&w, OWN_OTHER, 1), STORE_List(b, 1));
	STORE_Remove(w.store, b, 3 * MB, 1);
	assert_int_equal(victim(&w, OWN_OTHER, 1), STORE_List(a, 1));
	STORE_Remove(w.store, a, 2 * MB, 1);
	STORE_Remove(w.store, a, MB / 2, 1);
	assert_int_equal(victim(&w, OWN_OTHER, 1), STORE_END);
	assert_int_equal(OWN_Bytes(w.owners, a), 0);
	world_end(&w);
}

/* What is reserved stays, until the reservation goes: no other call brings the
 * new settings of an owner without requests. */
static void
test_look(void **state)
{
	struct world w;
	uint32_t a, b;

	(void)state;
	world_begin(&w, 2);
	a = OWN_Begin(w.owners);
	b = OWN_Begin(w.owners);
	assert_int_equal(STORE_Look(w.store), STORE_END);
	OWN_Set(w.owners, a, 1, 3 * MB, 0, OWN_NONE);
	add(&w, a, 2 * MB);
	add(&w, b, 3 * MB);
	assert_int_equal(STORE_Look(w.store), STORE_List(b, 1));
	assert_int_equal(STORE_Look(w.store), STORE_END);
	OWN_Set(w.owners, a, 1, 0, 0, OWN_NONE);
	assert_int_equal(STORE_Look(w.store), STORE_List(b, 1));
	assert_int_equal(STORE_Look(w.store), STORE_List(a, 1));
	world_end(&w);
}

static void
test_settings_follow(void **state)
{
	struct world w;
	uint32_t a, b;

	(void)state;
	world_begin(&w, 2);
	a = OWN_Begin(w.owners);
	b = OWN_Begin(w.owners);
	add(&w, a, 2 * MB);
	add(&w, b, 3 * MB);
	OWN_Set(w.owners, b, 4, 0, 0, OWN_NONE);
	/* The share follows at the next call for b */
	add(&w, b, 1);
	assert_int_equal(victim(&w, a, 1), STORE_List(a, 1));
	OWN_Set(w.owners, b, 4, 0, MB, OWN_NONE);
	assert_int_equal(STORE_Over(w.store, b, 0), STORE_List(b, 1));
	assert_int_equal(STORE_Over(w.store, a, 0), STORE_END);
	assert_int_equal(victim(&w, a, 1), STORE_List(b, 1));
	world_end(&w);
}

/* The taker counts with what it needs */
static void
test_taker(void **state)
{
	struct world w;
	uint32_t a, b;

	(void)state;
	world_begin(&w, 2);
	a = OWN_Begin(w.owners);
	b = OWN_Begin(w.owners);
	add(&w, a, 2 * MB);
	add(&w, b, MB);
	assert_int_equal(STORE_Victim(&w.search, w.store, b, 5 * MB, 1),
	    STORE_List(b, 1));
	assert_int_equal(victim(&w, b, 1), STORE_List(a, 1));
	world_end(&w);
}

static void
test_groups(void **state)
{
	struct world w;
	uint32_t a, b, c, g;

	(void)state;
	world_begin(&w, 4);
	a = OWN_Begin(w.owners);
	b = OWN_Begin(w.owners);
	c = OWN_Begin(w.owners);
	g = OWN_Begin(w.owners);
	add(&w, a, 3 * MB);
	add(&w, b, 2 * MB);
	add(&w, c, 4 * MB);
	assert_int_equal(victim(&w, c, 1), STORE_List(c, 1));
	/* Both join with what they have */
	OWN_Set(w.owners, a, 1, 0, 0, g);
	OWN_Set(w.owners, b, 1, 0, 0, g);
	assert_int_equal(STORE_Over(w.store, a, 0), STORE_END);
	assert_int_equal(STORE_Over(w.store, b, 0), STORE_END);
	assert_int_equal(victim(&w, c, 1), STORE_List(a, 1));
	OWN_Set(w.owners, g, 2, 0, 0, OWN_NONE);
	assert_int_equal(STORE_Over(w.store, a, 0), STORE_END);
	assert_int_equal(victim(&w, c, 1), STORE_List(c, 1));
	/* A member that needs room gets it from the one that has most */
	OWN_Set(w.owners, g, 1, 0, 4 * MB, OWN_NONE);
	assert_int_equal(STORE_Over(w.store, b, 0), STORE_List(a, 1));
	/* One leaves */
	OWN_Set(w.owners, g, 1, 0, 2 * MB, OWN_NONE);
	OWN_Set(w.owners, b, 1, 0, 0, OWN_NONE);
	assert_int_equal(STORE_Over(w.store, b, 0), STORE_END);
	assert_int_equal(STORE_Over(w.store, a, 0), STORE_List(a, 1));
	STORE_Empty(w.store, a, MB, 1);
	assert_int_equal(OWN_Bytes(w.owners, a), 2 * MB);
	assert_int_equal(STORE_Over(w.store, a, 0), STORE_END);
	world_end(&w);
}

/* A group has its settings from its first member on. */
static void
test_a_new_group(void **state)
{
	struct world w;
	uint32_t a, b, g;

	(void)state;
	world_begin(&w, 3);
	a = OWN_Begin(w.owners);
	b = OWN_Begin(w.owners);
	g = OWN_Begin(w.owners);
	OWN_Set(w.owners, g, 2, 0, 0, OWN_NONE);
	OWN_Set(w.owners, a, 1, 0, 0, g);
	add(&w, a, 3 * MB);
	add(&w, b, 2 * MB);
	assert_int_equal(victim(&w, OWN_OTHER, 1), STORE_List(b, 1));
	world_end(&w);
}

/* Owners, stores and groups leave no memory behind, also if there is too little
 * for them. */
static void
test_no_memory(void **state)
{
	size_t before = 0;
	struct world w;
	uint32_t a, g;
	unsigned u;

	(void)state;
	for (u = 0; u < 102; u++) {
		if (u == 2)
			before = allocated();
		no_memory = 1;
		assert_null(OWN_New(100));
		world_begin(&w, 100);
		for (a = 1; a <= 2; a++) {
			no_memory = a;
			assert_null(STORE_New(w.owners));
		}
		a = OWN_Begin(w.owners);
		g = OWN_Begin(w.owners);
		OWN_Set(w.owners, a, 1, 0, 0, g);
		add(&w, a, MB);
		world_end(&w);
	}
	assert_true(allocated() < before + 1000);
}

/*--------------------------------------------------------------------
 * A random run
 */

static uint64_t seed;

static unsigned
draw(unsigned n)
{

	return ((unsigned)(splitmix_next(&seed) % n));
}

/* What a plain list knows of an owner */
struct plain {
	uint32_t		n;
	uint64_t		bytes[2], last[2];	/* last: one object */
};

/* The group ends, and a tenant begins in its place, or the other way round. */
static void
change_group(struct world *w, struct plain *all, uint32_t *group)
{
	struct plain *p = &all[1 + draw(OWNERS - 1)];
	uint32_t last = *group;
	unsigned u;

	if (p->bytes[0] + p->bytes[1] > 0)
		return;
	for (u = 1; u < OWNERS; u++)
		OWN_Set(w->owners, all[u].n, 1, 0, 0, OWN_NONE);
	OWN_End(w->owners, p->n);
	*group = OWN_Begin(w->owners);
	OWN_End(w->owners, last);
	p->n = OWN_Begin(w->owners);
	assert_int_not_equal(p->n, OWN_OTHER);
	p->last[0] = p->last[1] = 0;
}

static void
change(struct world *w, struct plain *p, uint32_t group)
{
	uint64_t bytes = 1 + draw(1000);
	int own = draw(2) == 0;

	switch (draw(5)) {
	case 0:
	case 1:
		/* The last object that came leaves, if it has not */
		bytes = p->last[own];
		if (bytes == 0)
			return;
		p->last[own] = 0;
		p->bytes[own] -= bytes;
		STORE_Remove(w->store, p->n, bytes, own);
		break;
	case 2:
		OWN_Set(w->owners, p->n, 1 + draw(9), 0,
		    draw(3) == 0 ? 1 + draw(5000) : 0,
		    draw(2) == 0 ? group : OWN_NONE);
		break;
	default:
		p->bytes[own] += bytes;
		p->last[own] = bytes;
		STORE_Add(w->store, p->n, bytes, own);
	}
}

/* A search answers each owner that has bytes of its own once. */
static void
judge(struct world *w, const struct plain *p, uint32_t taker)
{
	unsigned list, u, seen = 0, expected = 0;

	for (list = victim(w, taker, 1); list != STORE_END;
	    list = STORE_Next(&w->search))
		if (list != STORE_COMMON) {
			assert_false(seen & 1U << list);
			seen |= 1U << list;
		}
	for (u = 0; u < OWNERS; u++)
		if (p[u].bytes[1] > 0)
			expected |= 1U << STORE_List(p[u].n, 1);
	assert_int_equal(seen, expected);
}

static void
test_random(void **state)
{
	struct plain p[OWNERS] = { { 0 } };
	struct world w;
	uint32_t group;
	unsigned u, step;

	(void)state;
	seed = 5;
	world_begin(&w, OWNERS + 1);
	group = OWN_Begin(w.owners);
	for (u = 1; u < OWNERS; u++)
		p[u].n = OWN_Begin(w.owners);
	for (step = 0; step < STEPS; step++) {
		u = draw(OWNERS);
		if (u > 0)
			change(&w, &p[u], group);
		if (step % 50 == 0)
			change_group(&w, p, &group);
		assert_int_equal(OWN_Bytes(w.owners, p[u].n),
		    p[u].bytes[0] + p[u].bytes[1]);
		if (step % 16 == 0)
			judge(&w, p, p[draw(OWNERS)].n);
	}
	world_end(&w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_owners_begin_and_end),
		cmocka_unit_test(test_entries_that_wait),
		cmocka_unit_test(test_transit),
		cmocka_unit_test(test_evictions),
		cmocka_unit_test(test_who_evicts_most),
		cmocka_unit_test(test_settings),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_look),
		cmocka_unit_test(test_settings_follow),
		cmocka_unit_test(test_taker),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_a_new_group),
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_random),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
