/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * New Hosts: proof, the crowd, the bucket, and a random run against books
 * that are kept in another way.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rel_world.h"
#include "tenants/newhosts.h"

#define S	INT64_C(1000000000)	/* ns */
#define MANY	400

struct site {
	struct newhosts	nh;
	struct newhost	host[MANY];
	int64_t		s;			/* now */
};

static void
site_init(struct site *x, unsigned hosts)
{
	unsigned i;

	memset(x, 0, sizeof *x);
	x->s = 1000;
	NEW_Init(&x->nh, x->s * S);
	for (i = 0; i < hosts; i++)
		NEW_Begin(&x->nh, &x->host[i], x->s * S);
}

/* The clock moves by some seconds; in each, these Hosts have an answer */
static void
answers(struct site *x, unsigned from, unsigned to, unsigned status,
    unsigned seconds)
{
	unsigned i;

	for (; seconds > 0; seconds--, x->s++)
		for (i = from; i < to; i++)
			NEW_Answer(&x->nh, &x->host[i], NEW_Good(status),
			    x->s * S);
}

/* How many Hosts' states change now */
static unsigned
changes(struct site *x)
{
	unsigned n = 0;

	while (NEW_Next(&x->nh, x->s * S) != NULL)
		n++;
	return (n);
}

static void
test_proof(void **state)
{
	struct site x;

	(void)state;
	site_init(&x, 2);
	answers(&x, 0, 2, 200, NEW_PROOF - 1);
	assert_int_equal(changes(&x), 0);
	NEW_Answer(&x.nh, &x.host[1], 1, x.s * S);
	NEW_Answer(&x.nh, &x.host[1], 1, x.s * S);
	assert_int_equal(NEW_Seconds(&x.host[1], x.s * S), NEW_PROOF);
	assert_ptr_equal(NEW_Next(&x.nh, x.s * S), &x.host[1]);
	assert_int_equal(x.host[1].state, NEW_PROVEN);
	assert_int_equal(changes(&x), 0);
	assert_int_equal(x.nh.nnew, 1);
	assert_int_equal(x.nh.nproven, 1);
}

/* Many answers in one second, errors and pipes are no proof */
static void
test_no_proof(void **state)
{
	static const unsigned status[] = { 0, 100, 400, 404, 503 };
	struct site x;
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof status / sizeof status[0]; i++) {
		site_init(&x, 1);
		answers(&x, 0, 1, status[i], 5 * NEW_WINDOW);
		assert_int_equal(changes(&x), 0);
		assert_int_equal(x.host[0].state, NEW_QUIET);
	}
	site_init(&x, 1);
	for (i = 0; i < 1000; i++)
		NEW_Answer(&x.nh, &x.host[0], 1, x.s * S);
	assert_int_equal(NEW_Seconds(&x.host[0], x.s * S), 1);
}

/* Evidence counts for NEW_WINDOW seconds, in pieces, too */
static void
test_window(void **state)
{
	struct site x;

	(void)state;
	site_init(&x, 1);
	answers(&x, 0, 1, 200, NEW_PROOF - 1);
	x.s += NEW_WINDOW - NEW_PROOF;
	NEW_Answer(&x.nh, &x.host[0], 1, x.s * S);
	assert_int_equal(NEW_Seconds(&x.host[0], x.s * S), NEW_PROOF);
	x.s++;
	assert_int_equal(NEW_Seconds(&x.host[0], x.s * S), NEW_PROOF - 1);
	assert_int_equal(changes(&x), 0);	/* it asked, too late */
	x.s++;
	NEW_Answer(&x.nh, &x.host[0], 1, x.s * S);
	assert_int_equal(changes(&x), 0);
	x.s += NEW_WINDOW;
	assert_int_equal(changes(&x), 0);
	assert_int_equal(x.host[0].state, NEW_QUIET);
	answers(&x, 0, 1, 200, NEW_PROOF);
	assert_int_equal(changes(&x), 1);
}

/* A site that lasts is proven among any number of Hosts without evidence */
static void
test_errors_are_no_crowd(void **state)
{
	struct site x;
	unsigned i;

	(void)state;
	site_init(&x, MANY);
	for (i = 0; i < NEW_PROOF; i++) {
		answers(&x, 1, MANY, 404, 1);
		x.s--;
		answers(&x, 0, 1, 200, 1);
	}
	assert_int_equal(changes(&x), 1);
	assert_int_equal(x.host[0].state, NEW_PROVEN);
}

/* As many as are few, at once; one more, and they wait to be NEW_AGE old */
static void
test_crowd(void **state)
{
	struct site x;

	(void)state;
	site_init(&x, NEW_FEW);
	answers(&x, 0, NEW_FEW, 200, NEW_PROOF);
	assert_int_equal(changes(&x), NEW_FEW);

	site_init(&x, NEW_FEW + 1);
	answers(&x, 0, NEW_FEW + 1, 200, NEW_AGE);
	assert_int_equal(changes(&x), 1);	/* then they are few, without a
						 * token */
	x.s += NEW_EVERY;
	assert_int_equal(changes(&x), 1);
	site_init(&x, NEW_FEW + 1);
	answers(&x, 0, NEW_FEW + 1, 200, NEW_AGE - 1);
	assert_true(NEW_Crowded(&x.nh));
	assert_int_equal(changes(&x), 0);
}

/* The bound of doc/security: 400 Hosts that last, and the same in waves that
 * are never a crowd */
static void
test_bound(void **state)
{
	struct site x;
	unsigned wave, i, n;

	(void)state;
	site_init(&x, MANY);
	for (i = 0; i < 600; i++) {
		answers(&x, 0, MANY, 200, 1);
		(void)changes(&x);
		if (i < NEW_AGE - 1)
			assert_int_equal(x.nh.nproven, 0);
	}
	assert_in_range(x.nh.nproven, 1 + 53, 1 + 54);

	site_init(&x, MANY);
	n = 0;
	for (wave = 0; wave < 6; wave++) {
		answers(&x, wave * NEW_FEW, (wave + 1) * NEW_FEW, 200,
		    NEW_PROOF);
		n += changes(&x);
	}
	assert_in_range(n, NEW_FEW, NEW_FEW + 2 * 6);
}

/* At the start all Hosts that last are proven; after NEW_START, by the rule */
static void
test_start(void **state)
{
	struct site x;

	(void)state;
	site_init(&x, MANY);
	NEW_Start(&x.nh, x.s * S);
	answers(&x, 0, MANY - 30, 200, NEW_PROOF - 1);
	assert_int_equal(changes(&x), 0);
	answers(&x, 0, MANY - 30, 200, 1);
	assert_int_equal(changes(&x), MANY - 30);
	x.s = 1000 + NEW_START - NEW_PROOF + 1;
	answers(&x, MANY - 30, MANY, 200, NEW_PROOF);
	assert_true(NEW_Crowded(&x.nh));
	assert_int_equal(changes(&x), 1);
}

static void
test_growth(void **state)
{
	struct site x;

	(void)state;
	site_init(&x, 0);
	x.nh.nproven = 1000;
	x.nh.tokens = 0;
	assert_null(NEW_Next(&x.nh, (x.s + 1) * S));
	assert_int_equal(x.nh.tokens, 1000);
	x.nh.nproven = 5;
	assert_null(NEW_Next(&x.nh, (x.s + 11) * S));
	assert_int_equal(x.nh.tokens, 2000);
	assert_null(NEW_Next(&x.nh, (x.s + 100000) * S));
	assert_int_equal(x.nh.tokens, NEW_FEW * 1000);
}

static void
test_idle(void **state)
{
	struct site x;

	(void)state;
	site_init(&x, 2);
	answers(&x, 0, 2, 200, NEW_PROOF);
	assert_int_equal(changes(&x), 2);
	x.s += NEW_IDLE - 1;
	NEW_Answer(&x.nh, &x.host[1], 0, x.s * S);
	assert_int_equal(changes(&x), 0);
	x.s++;
	assert_ptr_equal(NEW_Next(&x.nh, x.s * S), &x.host[0]);
	assert_int_equal(x.host[0].state, NEW_QUIET);
	assert_int_equal(NEW_Seconds(&x.host[0], x.s * S), 0);
	assert_int_equal(changes(&x), 0);
	assert_int_equal(x.host[1].state, NEW_PROVEN);
}

/* A proven Host with an answer comes behind those that had none since */
static void
test_idle_order(void **state)
{
	struct site x;

	(void)state;
	site_init(&x, 2);
	answers(&x, 0, 1, 200, NEW_PROOF);
	assert_int_equal(changes(&x), 1);
	answers(&x, 1, 2, 200, NEW_PROOF);
	assert_int_equal(changes(&x), 1);
	answers(&x, 0, 1, 404, 1);
	x.s += NEW_IDLE - 1;
	assert_ptr_equal(NEW_Next(&x.nh, x.s * S), &x.host[1]);
	assert_int_equal(changes(&x), 1);
}

/* A Host that is new again has to last again, where that is asked */
static void
test_idle_age(void **state)
{
	struct site x;
	int i;

	(void)state;
	site_init(&x, 1);
	answers(&x, 0, 1, 200, NEW_PROOF);
	assert_int_equal(changes(&x), 1);
	x.s += NEW_IDLE;
	assert_int_equal(changes(&x), 1);
	assert_int_equal(x.host[0].state, NEW_QUIET);
	for (i = 1; i <= NEW_FEW; i++)
		NEW_Begin(&x.nh, &x.host[i], x.s * S);
	answers(&x, 0, NEW_FEW + 1, 200, NEW_AGE - 1);
	assert_true(NEW_Crowded(&x.nh));
	assert_int_equal(changes(&x), 0);
	answers(&x, 0, NEW_FEW + 1, 200, 1);
	assert_true(changes(&x) > 0);
}

/* No Host that ended is looked at, whatever it had */
static void
test_end(void **state)
{
	struct site x;

	(void)state;
	site_init(&x, 2);
	answers(&x, 0, 2, 200, NEW_PROOF);
	NEW_End(&x.nh, &x.host[0]);
	assert_int_equal(x.host[0].state, NEW_NONE);
	assert_int_equal(x.nh.nnew, 1);
	assert_int_equal(x.nh.nevident, 1);
	memset(&x.host[0], 0, sizeof x.host[0]);
	assert_ptr_equal(NEW_Next(&x.nh, x.s * S), &x.host[1]);
	assert_int_equal(changes(&x), 0);
	/* It begins anew, also in the same memory */
	NEW_End(&x.nh, &x.host[1]);
	assert_int_equal(x.nh.nproven, 0);
	NEW_Begin(&x.nh, &x.host[1], x.s * S);
	assert_int_equal(NEW_Seconds(&x.host[1], x.s * S), 0);
}

/* A reader whose clock was read first sees the window as it is */
static void
test_read_first(void **state)
{
	struct site x;

	(void)state;
	site_init(&x, 1);
	NEW_Answer(&x.nh, &x.host[0], 1, x.s * S);
	x.s += NEW_WINDOW - 1;
	NEW_Answer(&x.nh, &x.host[0], 1, x.s * S);
	assert_int_equal(NEW_Seconds(&x.host[0], x.s * S), 2);
	assert_int_equal(NEW_Seconds(&x.host[0], (x.s - 1) * S), 2);
	answers(&x, 0, 1, 200, NEW_PROOF);
	assert_int_equal(changes(&x), 1);
	assert_int_equal(NEW_Seconds(&x.host[0], x.s * S), 0);
}

/* Evidence that is too old counts no more: each answer looks at few Hosts, a
 * step at NEW_STEPS */
static void
test_old_evidence(void **state)
{
	struct site x;
	unsigned had;

	(void)state;
	site_init(&x, 201);
	answers(&x, 0, 200, 200, 1);
	assert_int_equal(x.nh.nevident, 200);
	x.s += NEW_WINDOW - 2;
	NEW_Answer(&x.nh, &x.host[200], 1, x.s * S);
	assert_int_equal(x.nh.nevident, 201);
	x.s++;
	NEW_Answer(&x.nh, &x.host[200], 1, x.s * S);
	had = x.nh.nevident;
	assert_in_range(had, 201 - NEW_STEPS + 1, 200);
	assert_null(NEW_Next(&x.nh, x.s * S));
	assert_int_equal(x.nh.nevident, had - NEW_STEPS);
}

/* Hosts that asked too late are passed over, NEW_STEPS of them in a call */
static void
test_asked_too_late(void **state)
{
	const unsigned late = NEW_STEPS + NEW_STEPS / 2;
	struct site x;

	(void)state;
	site_init(&x, late + 1);
	NEW_Start(&x.nh, x.s * S);
	answers(&x, 0, late, 200, NEW_PROOF);
	x.s += NEW_WINDOW - 2 * NEW_PROOF;
	answers(&x, late, late + 1, 200, NEW_PROOF);
	x.nh.open = x.s + 1;
	assert_int_equal(NEW_Seconds(&x.host[0], x.s * S), NEW_PROOF - 1);
	assert_null(NEW_Next(&x.nh, x.s * S));
	assert_ptr_equal(NEW_Next(&x.nh, x.s * S), &x.host[late]);
}

/* NEW_START seconds are over when they are over */
static void
test_start_ends(void **state)
{
	struct site x;

	(void)state;
	site_init(&x, NEW_FEW + 10);
	NEW_Start(&x.nh, x.s * S);
	answers(&x, 0, NEW_FEW + 10, 200, NEW_START - 1);
	assert_ptr_equal(NEW_Next(&x.nh, x.s * S), &x.host[0]);
	answers(&x, 0, NEW_FEW + 10, 200, 1);
	assert_int_equal(changes(&x), 1);
}

/* With thousands of proven Hosts a crowd has a second's tokens, too */
static void
test_large(void **state)
{
	struct site x;

	(void)state;
	site_init(&x, NEW_FEW + 10);
	x.nh.nproven = 3000;
	answers(&x, 0, NEW_FEW + 10, 200, NEW_AGE);
	assert_true(NEW_Crowded(&x.nh));
	assert_int_equal(changes(&x), 3);
	x.s++;
	assert_int_equal(changes(&x), 3);
}

/*--------------------------------------------------------------------
 * A random run.  The books: per Host each second's evidence, in full.
 */

#define SECONDS	3000
#define FEW	40

static uint8_t had[FEW][SECONDS];

static unsigned
seconds_of(unsigned host, int64_t s, int64_t since)
{
	unsigned n = 0;
	int64_t i;

	for (i = s - NEW_WINDOW + 1; i <= s; i++)
		n += i >= since && i >= 0 && had[host][i];
	return (n);
}

static void
judge(const struct site *x, const int64_t since[FEW])
{
	unsigned i, fresh = 0, proven = 0, evident = 0;

	for (i = 0; i < FEW; i++) {
		fresh += (unsigned)NEW_Is(&x->host[i]);
		proven += x->host[i].state == NEW_PROVEN;
		evident += x->host[i].state == NEW_EVIDENT;
		if (NEW_Is(&x->host[i]))
			assert_int_equal(NEW_Seconds(&x->host[i], x->s * S),
			    seconds_of(i, x->s, since[i]));
	}
	assert_int_equal(fresh, x->nh.nnew);
	assert_int_equal(proven, x->nh.nproven);
	assert_int_equal(evident, x->nh.nevident);
}

static void
test_random(void **state)
{
	struct newhost *h;
	struct site x;
	int64_t since[FEW];
	uint64_t rng, seed;
	unsigned i, n, granted;

	(void)state;
	for (seed = 0; seed < 20; seed++) {
		rng = seed;
		memset(had, 0, sizeof had);
		site_init(&x, 0);
		x.s = 0;
		NEW_Init(&x.nh, 0);
		granted = 0;
		memset(since, 0, sizeof since);
		for (; x.s < SECONDS - 1; x.s++) {
			for (n = 0; n < FEW; n++) {
				i = (unsigned)rng_below(&rng, FEW);
				h = &x.host[i];
				switch (rng_below(&rng, 12)) {
				case 0:
					if (rng_below(&rng, 50) == 0)
						NEW_End(&x.nh, h);
					break;
				case 1:
					if (h->state != NEW_NONE)
						break;
					NEW_Begin(&x.nh, h, x.s * S);
					since[i] = x.s;
					memset(had[i], 0, sizeof had[i]);
					break;
				case 2:
				case 3:
					if (i % 2 == 0 && x.s % 1000 > 500)
						break;
					NEW_Answer(&x.nh, h, 1, x.s * S);
					if (NEW_Is(h))
						had[i][x.s] = 1;
					break;
				default:
					NEW_Answer(&x.nh, h, 0, x.s * S);
				}
			}
			judge(&x, since);
			while ((h = NEW_Next(&x.nh, x.s * S)) != NULL) {
				i = (unsigned)(h - x.host);
				if (h->state == NEW_PROVEN) {
					granted++;
					assert_true(seconds_of(i, x.s,
					    since[i]) >= NEW_PROOF);
				} else {
					since[i] = x.s;
					memset(had[i], 0, sizeof had[i]);
				}
				judge(&x, since);
			}
		}
		assert_in_range(granted, 1, NEW_FEW + SECONDS / NEW_EVERY);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_proof),
		cmocka_unit_test(test_no_proof),
		cmocka_unit_test(test_window),
		cmocka_unit_test(test_errors_are_no_crowd),
		cmocka_unit_test(test_crowd),
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_start),
		cmocka_unit_test(test_growth),
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_idle_order),
		cmocka_unit_test(test_idle_age),
		cmocka_unit_test(test_end),
		cmocka_unit_test(test_read_first),
		cmocka_unit_test(test_old_evidence),
		cmocka_unit_test(test_asked_too_late),
		cmocka_unit_test(test_start_ends),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_random),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
