/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The model of admission against an LRU cache that the test simulates, against
 * a search of all c, and on cases with a known answer.
 */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "admission/model.h"
#include "splitmix.h"

#define CELLS		2000
#define KB		1024.
#define MB		(1024 * KB)

static uint64_t seed;

static void
assert_near(double is, double expected, double within)
{

	if (!(fabs(is - expected) <= within))
		fail_msg("%.6f, not %.6f", is, expected);
}

struct world {
	struct adm_model	model;
	struct adm_cell		cell[CELLS];
};

static struct world *
world(double capacity, enum adm_form form)
{
	static struct world w;

	memset(&w, 0, sizeof w);
	w.model.cell = w.cell;
	w.model.capacity = capacity;
	w.model.form = form;
	return (&w);
}

/* Objects that are asked for so often in this window and in the one before */
static void
add(struct world *w, double objects, double size, double rate)
{
	struct adm_cell *k = &w->cell[w->model.ncell++];

	assert_true(w->model.ncell <= CELLS);
	k->objects = objects;
	k->size = size;
	k->rate = k->requests = k->before = rate;
}

/* Objects of one cell each, by Zipf's law, of 1 KB to 1 MB */
static void
add_zipf(struct world *w, unsigned n, double exponent, double requests)
{
	double sum = 0;
	unsigned u;

	for (u = 0; u < n; u++)
		sum += pow(u + 1, -exponent);
	for (u = 0; u < n; u++)
		add(w, 1, floor(KB * exp2(10 * splitmix_draw(&seed))),
		    requests * pow(u + 1, -exponent) / sum);
}

/*--------------------------------------------------------------------
 * Cases
 */

static void
test_nobody_asks(void **state)
{
	struct world *w = world(MB, ADM_PADE);
	struct adm_hits h;

	(void)state;
	assert_true(isinf(ADM_Time(&w->model, KB)));
	assert_true(isinf(ADM_Choose(&w->model, &h)));
	assert_near(h.objects, 0, 0);
	assert_near(h.bytes, 0, 0);
	add(w, 10, 0, 0);
	assert_true(isinf(ADM_Choose(&w->model, &h)));
	assert_near(h.objects, 0, 0);
	assert_near(h.bytes, 0, 0);
}

static void
test_all_fit(void **state)
{
	struct world *w;
	struct adm_hits h;
	unsigned form;

	(void)state;
	for (form = 0; form < ADM_FORMS; form++) {
		w = world(MB, (enum adm_form)form);
		add(w, 10, 10 * KB, 4);
		assert_true(isinf(ADM_Time(&w->model, INFINITY)));
		assert_true(isinf(ADM_Choose(&w->model, &h)));
		assert_near(h.objects, 1, 1e-9);
		assert_near(h.bytes, 1, 1e-9);
	}
}

/* Half of the objects are in the cache: 1 - e^(-rT) = 1/2 */
static void
test_time(void **state)
{
	struct world *w = world(50 * KB, ADM_EXACT);

	(void)state;
	add(w, 100, KB, 4);
	assert_near(ADM_Time(&w->model, INFINITY), log(2) / 4, 1e-3);
	assert_near(ADM_Predict(&w->model, INFINITY).objects, .5, 1e-3);
}

/* Few bytes, all of them, one more than fit, and T of just one window */
static void
test_time_of_few_bytes(void **state)
{
	struct world *w = world(10, ADM_EXACT);

	(void)state;
	add(w, 20, 1, 1);
	assert_near(ADM_Time(&w->model, INFINITY), log(2), 2e-3);
	w->cell[0].objects = 10;
	assert_true(isinf(ADM_Time(&w->model, INFINITY)));
	w->cell[0].objects = 11;
	assert_near(ADM_Time(&w->model, INFINITY), log(11), .02);
	w->cell[0].objects = 1000;
	w->model.capacity = 1000 * (1 - exp(-1)) + .1;
	assert_near(ADM_Time(&w->model, INFINITY), 1, 0);
}

/* A large or small part of the bytes is in the cache, of objects that are asked
 * for often or seldom. */
static void
test_time_is_found_anywhere(void **state)
{
	const double part[] = { 1e-6, 1e-4, .01, .5, .9, .99, .998 };
	const double rate[] = { 1e-9, 1e-3, 1, 1e3, 1e6 };
	struct world *w;
	unsigned u, v;
	double time;

	(void)state;
	for (u = 0; u < sizeof part / sizeof *part; u++)
		for (v = 0; v < sizeof rate / sizeof *rate; v++) {
			w = world(1000, ADM_EXACT);
			add(w, 1000 / part[u], 1, rate[v]);
			time = ADM_Time(&w->model, INFINITY);
			assert_near(-expm1(-rate[v] * time) / part[u], 1,
			    1.0001 * ADM_ERROR);
		}
}

/* Cells behind the last one do not count. */
static void
test_number_of_cells(void **state)
{
	struct world *w = world(50 * KB, ADM_EXACT);
	struct adm_hits h;
	double time;

	(void)state;
	add(w, 100, KB, 4);
	time = ADM_Time(&w->model, INFINITY);
	h = ADM_Predict(&w->model, INFINITY);
	add(w, 1e6, KB, 9);
	w->cell[1].admitted = .5;
	w->model.ncell--;
	assert_near(ADM_Time(&w->model, INFINITY), time, 0);
	assert_near(ADM_Predict(&w->model, INFINITY).objects, h.objects, 0);
	assert_near(w->cell[1].admitted, .5, 0);
}

/* With `frequency`, c counts as often as the object is asked for, and at least
 * once.  An object that is admitted with p is in with 1/2 if p (e^x - 1) = 1.
 */
static void
test_frequency(void **state)
{
	struct world *w = world(5000 * KB, ADM_EXACT);

	(void)state;
	w->model.frequency = 1;
	add(w, 100, 100 * KB, 4);
	assert_near(ADM_Time(&w->model, 100 * KB), log1p(exp(1 / 4.)) / 4,
	    1e-3);
	w->cell[0].rate = .5;
	assert_near(ADM_Time(&w->model, 100 * KB), log1p(exp(1)) / .5, 1e-2);
}

/* Up to x = 1, the approximant is as good as Theorem 1. */
static void
test_pade_is_near_exact(void **state)
{
	const double p[] = { .3, .5, .7, 1 };
	struct world *w = world(200 * KB, ADM_EXACT);
	double c, exact;
	unsigned u, v;

	(void)state;
	add(w, 100, 10 * KB, 1);
	for (u = 0; u < sizeof p / sizeof *p; u++)
		for (v = 1; v <= 3; v++) {
			w->model.capacity = v * 100 * KB;
			c = p[u] < 1 ? -10 * KB / log(p[u]) : INFINITY;
			w->model.form = ADM_EXACT;
			exact = ADM_Predict(&w->model, c).objects;
			assert_near(exact, v / 10., 1e-3);
			w->model.form = ADM_PADE;
			assert_near(ADM_Predict(&w->model, c).objects, exact,
			    1e-6);
		}
}

/* If objects are rarely admitted, it is negative, and counts as 0. */
static void
test_pade_of_a_rare_object(void **state)
{
	struct world *w = world(50 * KB, ADM_PADE);
	const double rate = 8 / log(2);

	(void)state;
	add(w, 100, KB, 1);
	add(w, 1, 40 * KB, rate);
	assert_near(ADM_Predict(&w->model, 3 * KB).objects, 50 / (100 + rate),
	    3e-3);
}

/* The forms use the rate of an object.  Only ADM_TRANSIENT also uses its
 * requests. */
static void
test_what_is_asked_for(void **state)
{
	struct world *w;
	unsigned form;

	(void)state;
	for (form = 0; form < ADM_FORMS; form++) {
		w = world(MB, (enum adm_form)form);
		add(w, 1, KB, 1);
		add(w, 1, 2 * MB, 9);
		w->cell[0].requests = 9;
		w->cell[1].requests = 1;
		assert_near(ADM_Predict(&w->model, INFINITY).objects,
		    form == ADM_TRANSIENT ? .9 : .1, 1e-9);
	}
}

/* Half a request for one byte is a hit, too. */
static void
test_one_byte(void **state)
{
	struct world *w = world(MB, ADM_EXACT);
	struct adm_hits h;

	(void)state;
	add(w, 1, 1, .5);
	h = ADM_Predict(&w->model, INFINITY);
	assert_near(h.objects, 1, 1e-9);
	assert_near(h.bytes, 1, 1e-9);
}

static void
test_an_object_as_large_as_the_cache(void **state)
{
	struct world *w = world(MB, ADM_EXACT);

	(void)state;
	add(w, 1, MB, 1);
	assert_near(ADM_Predict(&w->model, INFINITY).objects, 1, 1e-9);
}

static void
test_an_object_larger_than_the_cache(void **state)
{
	struct world *w = world(MB, ADM_EXACT);

	(void)state;
	add(w, 1, 2 * MB, 100);
	add(w, 10, 10 * KB, 1);
	assert_near(ADM_Predict(&w->model, INFINITY).objects, 10 / 110., 1e-9);
}

/* The first request for an object is a miss, if nobody asked before */
static void
test_transient(void **state)
{
	struct world *w = world(MB, ADM_TRANSIENT);

	(void)state;
	add(w, 10, 10 * KB, 4);
	w->cell[0].before = 0;
	assert_near(ADM_Predict(&w->model, INFINITY).objects, 3 / 4., 1e-9);
	w->cell[0].before = 1;
	assert_near(ADM_Predict(&w->model, INFINITY).objects, 1, 1e-9);
	/* Each request is admitted with 1/2: 1/2 + 3/4 + 7/8 of three */
	w->cell[0].before = 0;
	assert_near(ADM_Predict(&w->model, 10 * KB / log(2)).objects,
	    (1 / 2. + 3 / 4. + 7 / 8.) / 4, 1e-3);
}

/* The same with one or two requests: how many of them are hits? */
static double
few_hits(double requests, double before, double p)
{
	struct world *w = world(MB, ADM_TRANSIENT);

	add(w, 10, 10 * KB, 1);
	w->cell[0].requests = requests;
	w->cell[0].before = before;
	return (ADM_Predict(&w->model, p < 1 ? -10 * KB / log(p) :
	    INFINITY).objects * requests);
}

static void
test_transient_of_few_requests(void **state)
{
	struct world *w;

	(void)state;
	assert_near(few_hits(1, 0, 1), 0, 1e-9);
	assert_near(few_hits(1, 1, 1), 1, 1e-9);
	assert_near(few_hits(1, 0, .5), 0, 1e-9);
	assert_near(few_hits(1, 1, .5), .5, 1e-9);
	assert_near(few_hits(1, 2, .5), .75, 1e-9);
	assert_near(few_hits(2, 0, .5), .5, 1e-9);
	/* Without a rate it has left the cache */
	w = world(MB, ADM_TRANSIENT);
	add(w, 10, 10 * KB, 0);
	w->cell[0].requests = w->cell[0].before = 1;
	assert_near(ADM_Predict(&w->model, INFINITY).objects, 0, 0);
}

/* The example of section 3: 9999 objects of 100 KiB, and one of 500 MiB */
static void
test_one_large_object(void **state)
{
	struct world *w;
	struct adm_hits h;
	unsigned form;

	(void)state;
	for (form = 0; form < ADM_FORMS; form++) {
		w = world(1024 * MB, (enum adm_form)form);
		add(w, 9999, 100 * KB, 5);
		add(w, 1, 500 * MB, 5);
		assert_true(ADM_Predict(&w->model, INFINITY).objects < .9);
		assert_true(ADM_Choose(&w->model, &h) < 500 * MB);
		assert_true(h.objects > .998);
	}
}

static void
test_bytes(void **state)
{
	struct world *w = world(10 * MB, ADM_EXACT);
	struct adm_hits objects, bytes;
	double c;

	(void)state;
	add(w, 20000, KB, 1);
	add(w, 15, MB, 10);
	c = ADM_Choose(&w->model, &objects);
	w->model.bytes = 1;
	assert_true(ADM_Choose(&w->model, &bytes) > c);
	assert_true(bytes.bytes > objects.bytes);
	assert_true(bytes.objects < objects.objects);
}

static void
test_small_objects_are_admitted(void **state)
{
	struct world *w = world(MB, ADM_EXACT);

	(void)state;
	add(w, 10, ADM_SMALL, 1);
	add(w, 10, ADM_SMALL + 1, 1);
	assert_near(ADM_Predict(&w->model, 1).objects, .5, 1e-9);
}

static void
test_a_number_that_is_not_finite(void **state)
{
	struct world *w = world(MB, ADM_EXACT);

	(void)state;
	add(w, 10, 10 * KB, NAN);
	assert_true(isnan(ADM_Choose(&w->model, NULL)));
}

static void
test_names(void **state)
{

	(void)state;
	assert_string_equal(ADM_FormName(ADM_PADE), "pade");
	assert_string_equal(ADM_FormName(ADM_EXACT), "exact");
	assert_string_equal(ADM_FormName(ADM_TRANSIENT), "transient");
	assert_null(ADM_FormName(ADM_FORMS));
}

/*--------------------------------------------------------------------
 * Properties
 */

static double
expected_bytes(const struct world *w, double c, double time)
{
	double sum = 0, p, e;
	size_t i;

	for (i = 0; i < w->model.ncell; i++) {
		p = w->cell[i].size <= ADM_SMALL ? 1 :
		    exp(-w->cell[i].size / c);
		e = exp(w->cell[i].rate * time) - 1;
		if (p * e > 0)	/* Theorem 1 is pe / (1 + pe) */
			sum += w->cell[i].objects * w->cell[i].size /
			    (1 + 1 / (p * e));
	}
	return (sum);
}

static void
test_the_equation_is_solved(void **state)
{
	struct world *w = world(20 * MB, ADM_EXACT);
	double c, time;

	(void)state;
	seed = 1;
	add_zipf(w, CELLS, .9, 20000);
	for (c = KB; c < 8 * w->model.capacity; c *= 1.7) {
		time = ADM_Time(&w->model, c);
		if (isinf(time))
			continue;
		assert_near(expected_bytes(w, c, time) / w->model.capacity, 1,
		    ADM_ERROR);
	}
}

/* No c of a fine grid is better than what was chosen, beyond the errors of T.
 */
static void
test_the_search_finds_the_best(void **state)
{
	struct world *w;
	struct adm_hits h;
	unsigned form, run;
	double c;

	(void)state;
	for (form = 0; form < ADM_FORMS; form++)
		for (run = 0; run < 3; run++) {
			seed = run;
			w = world(exp2(20 + 6 * splitmix_draw(&seed)),
			    (enum adm_form)form);
			add_zipf(w, CELLS, .6 + .5 *
			    splitmix_draw(&seed), 20000);
			c = ADM_Choose(&w->model, &h);
			assert_near(ADM_Predict(&w->model, c).objects,
			    h.objects, 1e-12);
			for (c = 64; c < 16 * w->model.capacity; c *= 1.1)
				assert_true(ADM_Predict(&w->model, c).objects <
				    h.objects + .002);
		}
}

static void
test_hit_ratios_are_parts(void **state)
{
	struct world *w;
	struct adm_hits h;
	unsigned form;
	double c;

	(void)state;
	for (form = 0; form < ADM_FORMS; form++) {
		w = world(MB, (enum adm_form)form);
		seed = 20;
		add_zipf(w, CELLS / 2, 1, 1e6);
		add_zipf(w, CELLS / 2, 1, .01);
		for (c = 1e-9; c < 1e15; c *= 3) {
			h = ADM_Predict(&w->model, c);
			assert_true(h.objects >= 0 && h.objects <= 1 + 1e-9);
			assert_true(h.bytes >= 0 && h.bytes <= 1 + 1e-9);
		}
	}
}

/*--------------------------------------------------------------------
 * Against a cache
 */

#define REQUESTS	2000000

/* An LRU cache of the objects of cells */
struct cache {
	int			prev[CELLS + 1], next[CELLS + 1];
	int			in[CELLS];
	double			used;
};

static void
cache_move(struct cache *c, int i, int to_head)
{

	if (c->in[i]) {
		c->next[c->prev[i]] = c->next[i];
		c->prev[c->next[i]] = c->prev[i];
	}
	c->in[i] = to_head;
	if (!to_head)
		return;
	c->prev[i] = CELLS;
	c->next[i] = c->next[CELLS];
	c->prev[c->next[i]] = i;
	c->next[CELLS] = i;
}

/* Ask for an object.  Returns 1 if it was in the cache. */
static int
cache_ask(struct cache *c, const struct world *w, int i, double admission)
{
	int tail, hit = c->in[i];
	double size = w->cell[i].size;

	if (hit) {
		cache_move(c, i, 1);
		return (1);
	}
	if (size > w->model.capacity ||
	    splitmix_draw(&seed) >= exp(-size / admission))
		return (0);
	while (c->used + size > w->model.capacity) {
		tail = c->prev[CELLS];
		c->used -= w->cell[tail].size;
		cache_move(c, tail, 0);
	}
	c->used += size;
	cache_move(c, i, 1);
	return (0);
}

/* Return the object hit ratio of a cache after it was filled. */
static double
simulated(const struct world *w, double admission)
{
	static struct cache c;
	double below[CELLS], sum = 0, at;
	int n = (int)w->model.ncell, i, low, high, hits = 0, asked;

	memset(&c, 0, sizeof c);
	c.prev[CELLS] = c.next[CELLS] = CELLS;
	for (i = 0; i < n; i++)
		below[i] = sum += w->cell[i].rate;
	for (asked = 0; asked < 2 * REQUESTS; asked++) {
		at = splitmix_draw(&seed) * sum;
		for (low = 0, high = n - 1; low < high;) {
			i = (low + high) / 2;
			if (at < below[i])
				high = i;
			else
				low = i + 1;
		}
		i = cache_ask(&c, w, low, admission);
		hits += asked >= REQUESTS && i;
	}
	return ((double)hits / REQUESTS);
}

static void
test_exact_predicts_a_cache(void **state)
{
	struct world *w = world(20 * MB, ADM_EXACT);
	const double c[] = { 256 * KB, MB, 4 * MB, INFINITY };
	unsigned u;

	(void)state;
	seed = 30;
	add_zipf(w, CELLS, .9, 20000);
	for (u = 0; u < sizeof c / sizeof *c; u++)
		assert_near(ADM_Predict(&w->model, c[u]).objects,
		    simulated(w, c[u]), .01);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nobody_asks),
		cmocka_unit_test(test_all_fit),
		cmocka_unit_test(test_time),
		cmocka_unit_test(test_time_of_few_bytes),
		cmocka_unit_test(test_time_is_found_anywhere),
		cmocka_unit_test(test_number_of_cells),
		cmocka_unit_test(test_frequency),
		cmocka_unit_test(test_pade_is_near_exact),
		cmocka_unit_test(test_pade_of_a_rare_object),
		cmocka_unit_test(test_what_is_asked_for),
		cmocka_unit_test(test_one_byte),
		cmocka_unit_test(test_an_object_as_large_as_the_cache),
		cmocka_unit_test(test_an_object_larger_than_the_cache),
		cmocka_unit_test(test_transient),
		cmocka_unit_test(test_transient_of_few_requests),
		cmocka_unit_test(test_one_large_object),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_small_objects_are_admitted),
		cmocka_unit_test(test_a_number_that_is_not_finite),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_the_equation_is_solved),
		cmocka_unit_test(test_the_search_finds_the_best),
		cmocka_unit_test(test_hit_ratios_are_parts),
		cmocka_unit_test(test_exact_predicts_a_cache),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
