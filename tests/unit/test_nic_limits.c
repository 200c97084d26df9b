/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The rules of nic.h at their limits, by hand: what B loses and is given back,
 * and what each kind of epoch does to T.  All epochs are exactly NIC_EPOCH,
 * unless a test says otherwise.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "perfctr/nic.h"

#define G		1000000000ULL
#define US		1000LL
#define MS		1000000LL
#define SEC		(1000 * MS)
#define PATIENCE	4		/* epochs */
#define BYTES(rate)	((rate) / 160)	/* in an epoch */
#define QUEUE		(UINT64_C(1) << 40)	/* bytes, that B does not know */
#define STANDS(rate)	((rate) / 8000 * 6)	/* bytes in NIC_STANDS */

static struct nic nic;
static int64_t now;
static uint64_t tx;

static void
begin(uint64_t rate)
{

	now = SEC;
	tx = 0;
	NIC_Init(&nic, rate, 0, now);
	assert_int_equal(NIC_Learn(&nic, tx, 0, now), 0);
}

static void
release(int64_t bytes)
{
	uint32_t one;

	for (; bytes > 0; bytes -= one) {
		one = bytes < NIC_SHARE ? (uint32_t)bytes : NIC_SHARE;
		assert_int_equal(NIC_Release(&nic, one, now), one);
	}
}

static int
learn(uint64_t sent, int standing)
{

	now += NIC_EPOCH;
	tx += BYTES(sent);
	return (NIC_Learn(&nic, tx, standing ? QUEUE : 0, now));
}

/* B is far above its limit all the time */
static int
held(uint64_t sent)
{

	release((int64_t)BYTES(nic.rate) * 3 - NIC_Backlog(&nic, now));
	return (learn(sent, 0));
}

/* A queue stands, and B is one, too */
static int
known(uint64_t sent)
{

	release((int64_t)BYTES(nic.rate) * 3 - NIC_Backlog(&nic, now));
	return (learn(sent, 1));
}

/* A queue stands, and B is empty */
static int
unknown(uint64_t sent)
{

	return (learn(sent, 1));
}

/* Held epochs until a probe begins, that one included */
static int
to_probe(void)
{
	uint64_t rate = NIC_Rate(&nic);
	int n = 1;

	while (!held(rate))
		assert_true(++n < 100);
	assert_int_equal(NIC_Rate(&nic), rate);
	assert_int_equal(nic.rate, rate + rate / 8);
	return (n);
}

/*--------------------------------------------------------------------
 * B.  At 1 Gbit/s it loses 122.5 bytes a us.
 */

/* What was lost before a change is lost at the rate before it */
static void
test_first_drained(void **state)
{
	uint32_t c;

	(void)state;
	NIC_Init(&nic, G, 0, SEC);
	c = NIC_Release(&nic, 1000, SEC);
	(void)NIC_Release(&nic, 700, SEC + MS);
	assert_int_equal(NIC_Backlog(&nic, SEC + MS), 700);
	(void)NIC_Correct(&nic, c, 3000, SEC + 2 * MS);
	assert_int_equal(NIC_Backlog(&nic, SEC + 2 * MS), 2000);
}

/* An empty B has no part of a byte to lose less */
static void
test_empty(void **state)
{
	int64_t t = SEC;
	uint32_t c;

	(void)state;
	NIC_Init(&nic, G, 0, t);
	(void)NIC_Release(&nic, 122, t);
	t += US;
	assert_int_equal(NIC_Backlog(&nic, t), 0);
	(void)NIC_Release(&nic, 123, t);
	t += US;
	assert_int_equal(NIC_Backlog(&nic, t), 1);

	/* Nor has one that was taken back, all or more than was left */
	NIC_Init(&nic, G, 0, t);
	c = NIC_Release(&nic, 200, t);
	t += US;
	assert_int_equal(NIC_Backlog(&nic, t), 78);
	assert_int_equal(NIC_Correct(&nic, c, 0, t), 0);
	(void)NIC_Release(&nic, 123, t);
	t += US;
	assert_int_equal(NIC_Backlog(&nic, t), 1);

	NIC_Init(&nic, G, 0, t);
	c = NIC_Release(&nic, 200, t);
	t += US;
	assert_int_equal(NIC_Correct(&nic, c, 122, t), 122);
	assert_int_equal(NIC_Backlog(&nic, t), 0);
	(void)NIC_Release(&nic, 123, t);
	t += US;
	assert_int_equal(NIC_Backlog(&nic, t), 1);
}

/* It is closed above the limit, not at it */
static void
test_at_the_limit(void **state)
{

	(void)state;
	NIC_Init(&nic, G, 0, SEC);
	now = SEC;
	release(250122);
	assert_int_equal(NIC_Backlog(&nic, SEC + US), 250000);
	/* 122 bytes take 996 ns */
	assert_int_equal(NIC_ClosedTime(&nic, SEC + US), 996);
	assert_int_equal(NIC_ClosedTime(&nic, SEC + 2 * US), 996);
}

/* The slowest rate of all has a B as well; nobody waits more than an hour
 * for its next look */
static void
test_slowest(void **state)
{
	int64_t when;

	(void)state;
	NIC_Init(&nic, 1, 0, SEC);
	(void)NIC_Release(&nic, 200000, SEC);
	assert_int_equal(NIC_Busy(&nic, SEC), 1);
	assert_int_equal(NIC_Closed(&nic, SEC, &when), 1);
	assert_int_equal(when, 3601 * SEC);
	/* 0.98 bit/s */
	assert_int_equal(NIC_Backlog(&nic, 8001 * SEC), 200000 - 980);
}

static void
test_first_rate(void **state)
{

	(void)state;
	NIC_Init(&nic, 0, G, SEC);
	assert_int_equal(NIC_Rate(&nic), G);
	NIC_SetRate(&nic, 2 * G);
	assert_int_equal(NIC_Rate(&nic), G);
	/* Faster than that, the drain of a ns would not fit */
	NIC_Init(&nic, UINT64_MAX, 0, SEC);
	assert_int_equal(NIC_Rate(&nic), UINT64_MAX / 98);
}

/* A request that is taken back after its bytes left B did not use the link:
 * the epoch's loss is what others sent */
static void
test_taken_back(void **state)
{
	uint32_t c;

	(void)state;
	begin(G);
	release(100000);
	now += 10 * MS;
	assert_int_equal(NIC_Backlog(&nic, now), 0);
	c = NIC_Release(&nic, NIC_SHARE, now);
	now += MS;
	assert_int_equal(NIC_Backlog(&nic, now), NIC_SHARE - 122500);
	assert_int_equal(NIC_Correct(&nic, c, 0, now), 0);
	now -= 11 * MS;
	/* 100,000 lost, 60,000 sent: 40,000 are still to be sent */
	(void)learn(60000 * 160, 1);
	assert_int_equal(NIC_Backlog(&nic, now), 40000);
	/* More than the epoch's loss cannot be taken back */
	begin(G);
	c = NIC_Release(&nic, NIC_SHARE, now);
	now += NIC_EPOCH;
	(void)NIC_Learn(&nic, tx, 0, now);
	assert_int_equal(NIC_Correct(&nic, c, 0, now), 0);
	release(5000);
	(void)learn(1000 * 160, 1);
	assert_int_equal(NIC_Backlog(&nic, now), 4000);
}

/* Under a standing queue B lost what was sent, no more: the rest is put back,
 * up to 200 ms of it */
static void
test_refill(void **state)
{

	(void)state;
	begin(G);
	release(400000);
	(void)learn(50000 * 160, 1);		/* 8 Mbit/s: at most 200,000 */
	assert_int_equal(NIC_Backlog(&nic, now), 200000);

	begin(G);
	release(150000);
	(void)learn(50000 * 160, 1);
	assert_int_equal(NIC_Backlog(&nic, now), 100000);

	/* What is left of it counts: 20,000, and all 230,000 come back */
	begin(G);
	release(280000);
	now += 40 * MS;
	assert_int_equal(NIC_Backlog(&nic, now), 0);
	release(20000 + 1225000);
	now -= 40 * MS;
	(void)learn(1275000 * 160, 1);
	assert_int_equal(NIC_Backlog(&nic, now), 250000);
	begin(G / 10);
	release(612500 + 20000);
	(void)learn(50000 * 160, 1);
	assert_int_equal(NIC_Backlog(&nic, now), 200000);
	begin(G / 10);
	release(612500 + 150000);
	(void)learn(450000 * 160, 1);
	assert_int_equal(NIC_Backlog(&nic, now), 312500);
	begin(G / 100);
	release(61250 + 20000);
	(void)learn(10000 * 160, 1);		/* at most 40,000 */
	assert_int_equal(NIC_Backlog(&nic, now), 40000);

	/* If it lost less than was sent, it keeps what it has */
	begin(G / 100);
	release(61250 + 80000);
	(void)learn(70000 * 160, 1);
	assert_int_equal(NIC_Backlog(&nic, now), 80000);
	/* Or is so much of the link that a queue stands */
	begin(G / 100);
	(void)learn(70000 * 160, 1);
	assert_int_equal(NIC_Backlog(&nic, now), STANDS(70000 * 160));
}

/*--------------------------------------------------------------------
 * A standing queue
 */

/* T is known after four epochs in a row, as the most that was sent */
static void
test_first_t(void **state)
{
	int i;

	(void)state;
	begin(0);
	for (i = 0; i < PATIENCE - 1; i++)
		assert_int_equal(unknown(2 * G), 0);
	assert_int_equal(learn(2 * G, 0), 0);		/* none stands */
	for (i = 0; i < PATIENCE - 1; i++)
		assert_int_equal(unknown(3 * G), 0);
	assert_int_equal(unknown(0), 0);		/* nothing is sent */
	assert_int_equal(unknown(G / 2), 0);
	assert_int_equal(unknown(G), 0);
	assert_int_equal(unknown(G / 2), 0);
	assert_int_equal(NIC_Rate(&nic), 0);
	assert_int_equal(unknown(G / 2), 1);
	assert_int_equal(NIC_Rate(&nic), G);
	/* A fast link, to the bit */
	begin(0);
	for (i = 0; i < PATIENCE; i++)
		(void)unknown(100 * G);
	assert_int_equal(NIC_Rate(&nic), 100 * G);
	/* A byte is something, but no rate */
	begin(0);
	for (i = 0; i < PATIENCE; i++)
		(void)unknown(160);
	assert_int_equal(NIC_Rate(&nic), NIC_RATE_MIN);
}

/* Every fourth epoch a 16th less, and never less than half */
static void
test_lower(void **state)
{
	uint64_t want = G;
	int i, n;

	(void)state;
	begin(G);
	for (n = 0; n < 11; n++) {
		for (i = 0; i < PATIENCE - 1; i++)
			assert_int_equal(unknown(G), 0);
		assert_int_equal(unknown(G), 1);
		want -= want / 16;
		if (want < G / 2)
			want = G / 2;
		assert_int_equal(nic.rate, want);
	}
	assert_int_equal(want, G / 2);
	/* No queue of ours: back, and left alone for 30 s, which are 600
	 * epochs */
	for (i = 0; i < PATIENCE - 1; i++)
		assert_int_equal(unknown(G), 0);
	assert_int_equal(unknown(G), 1);
	assert_int_equal(nic.rate, G);
	for (i = 0; i < 599; i++)
		assert_int_equal(unknown(G), 0);
	assert_int_equal(NIC_Backlog(&nic, now), 0);
	assert_int_equal(unknown(G), 0);
	assert_int_equal(NIC_Backlog(&nic, now), STANDS(G));
	for (i = 0; i < PATIENCE - 2; i++)
		assert_int_equal(unknown(G), 0);
	assert_int_equal(unknown(G), 1);
	assert_int_equal(nic.rate, G - G / 16);
	/* A 16th less than this is less than half */
	begin(532000000);
	for (i = 0; i < PATIENCE; i++)
		(void)unknown(G);
	assert_int_equal(nic.rate, G / 2);
}

/* A queue that B explains lowers nothing; NIC_STANDS of B do explain it */
static void
test_explained(void **state)
{
	int i;

	(void)state;
	begin(G);
	for (i = 0; i < 3 * PATIENCE; i++) {
		release(6125000 + (int64_t)STANDS(G) -
		    NIC_Backlog(&nic, now));
		assert_int_equal(learn(G, 1), 0);
		assert_int_equal(NIC_Backlog(&nic, now), STANDS(G));
	}
	assert_int_equal(nic.rate, G);
}

/* The four epochs are in a row: what ends the row begins it anew */
static void
test_lower_in_a_row(void **state)
{
	int i;

	(void)state;
	begin(G);
	for (i = 0; i < PATIENCE - 1; i++)
		assert_int_equal(unknown(G), 0);
	assert_int_equal(learn(G, 0), 0);		/* none stands */
	for (i = 0; i < PATIENCE - 1; i++)
		assert_int_equal(unknown(G), 0);
	NIC_SetRate(&nic, G);				/* T is set */
	for (i = 0; i < PATIENCE - 1; i++)
		assert_int_equal(unknown(G), 0);
	NIC_SetRate(&nic, G);
	for (i = 0; i < PATIENCE - 2; i++)
		assert_int_equal(unknown(G), 0);
	assert_int_equal(unknown(900000000), 0);
	assert_int_equal(unknown(900000000), 1);	/* T was too high */
	assert_int_equal(nic.rate, 900000000);
	for (i = 0; i < PATIENCE - 1; i++)
		assert_int_equal(unknown(900000000), 0);
	assert_int_equal(unknown(900000000), 1);
	assert_int_equal(nic.rate, 900000000 - 900000000 / 16);
}

/* What was sent is T within a 128th */
static void
test_too_high(void **state)
{

	(void)state;
	begin(G + G / 128);
	(void)known(G);
	assert_int_equal(known(G), 0);
	begin(1007800000);
	(void)known(G);
	assert_int_equal(known(G), 0);
	begin(G + G / 128 + 2);
	(void)known(G);
	assert_int_equal(known(G), 1);
	assert_int_equal(nic.rate, G + G / 256 + 1);
}

/* The rate goes half of the way down if the queue stood at both ends of the epoch;
 * after two such epochs all of it, to the larger one of what was sent */
static void
test_how_far(void **state)
{

	(void)state;
	begin(9 * G);
	assert_int_equal(known(3 * G), 0);
	assert_int_equal(known(3 * G), 1);
	assert_int_equal(nic.rate, 6 * G);
	assert_int_equal(learn(G, 0), 0);
	NIC_SetRate(&nic, 9 * G);
	assert_int_equal(known(G), 0);
	assert_int_equal(known(G), 1);
	assert_int_equal(nic.rate, 5 * G);
	assert_int_equal(known(2 * G), 1);
	assert_int_equal(nic.rate, 2 * G);
	/* An epoch that was not seen in full says nothing of the queue */
	nic.rate = 9 * G;
	now += SEC;
	assert_int_equal(NIC_Learn(&nic, tx, QUEUE, now), 0);
	assert_int_equal(known(G), 0);
	assert_int_equal(known(G), 1);
	assert_int_equal(nic.rate, 5 * G);
	/* One byte under the queue says that the link was busy */
	begin(9 * G);
	(void)known(160);
	assert_int_equal(known(G), 1);
	assert_int_equal(nic.rate, 5 * G);
	/* Up, if T is not even half */
	begin(400000000);
	assert_int_equal(known(G), 1);
	assert_int_equal(nic.rate, 700000000);
	begin(500000000);
	assert_int_equal(known(G), 0);
}

/* A queue stands from the byte on with which it takes more than NIC_STANDS at
 * the rate of what was sent, and is more than 5/4 of B */
static void
test_standing(void **state)
{
	static const struct {
		int64_t		b;		/* bytes, at the end */
		uint64_t	queued;
	} most[] = { { 0, 75000 }, { 1000000, 1250000 } };
	unsigned i;

	(void)state;
	for (i = 0; i < 4; i++) {
		begin(G);
		release(i / 2 * (6125000 + most[i / 2].b));
		now += NIC_EPOCH;
		tx += BYTES(100000000);
		assert_int_equal(NIC_Backlog(&nic, now), most[i / 2].b);
		assert_int_equal(NIC_Learn(&nic, tx, most[i / 2].queued +
		    i % 2, now), 0);
		assert_int_equal(nic.backlogged_epochs, i % 2);
	}
	/* What B expects is no reason to try a higher T either: epochs with such a
	 * queue do not count as held */
	begin(G);
	for (i = 0; i < 3 * PATIENCE; i++) {
		release(6125000 + 1000000 - NIC_Backlog(&nic, now));
		now += NIC_EPOCH;
		tx += BYTES(G);
		assert_int_equal(NIC_Learn(&nic, tx, 1250000, now), 0);
	}
	assert_int_equal(nic.probing, 0);
	assert_int_equal(nic.held, 0);
	/* Nothing was sent: the link is down */
	begin(G);
	assert_int_equal(learn(0, 1), 0);
	assert_int_equal(nic.backlogged_epochs, 0);
}

/*--------------------------------------------------------------------
 * Probes
 */

/* An epoch is held if the link was closed for a quarter of it, and half of T
 * was sent at least */
static void
test_held(void **state)
{
	int i;

	(void)state;
	begin(G);
	for (i = 0; i < 8; i++) {		/* 11 ms */
		release(250000 + 11 * 122500 - NIC_Backlog(&nic, now));
		assert_int_equal(learn(G, 0), 0);
	}
	for (i = 0; i < 8; i++)
		assert_int_equal(held(400000000), 0);
	for (i = 0; i < PATIENCE; i++) {	/* 12.5 ms */
		release(250000 + 1531250 - NIC_Backlog(&nic, now));
		assert_int_equal(learn(G / 2, 0), i == PATIENCE - 1);
	}
	/* What held an earlier epoch holds no later one */
	begin(G);
	assert_int_equal(held(G), 0);
	now += 3 * NIC_EPOCH;
	for (i = 0; i < 8; i++)
		assert_int_equal(learn(G, 0), 0);
	assert_int_equal(nic.rate, G);
}

/* A new T: the held epochs before say nothing of it, and no probe goes on */
static void
test_set_while_held(void **state)
{
	int i;

	(void)state;
	begin(G);
	for (i = 0; i < PATIENCE - 1; i++)
		assert_int_equal(held(G), 0);
	NIC_SetRate(&nic, 2 * G);
	assert_int_equal(to_probe(), PATIENCE);
	NIC_SetRate(&nic, 3 * G);
	assert_int_equal(NIC_Rate(&nic), 3 * G);
	assert_int_equal(to_probe(), PATIENCE);
}

/* What left in the probe is compared with the mean of the held epochs */
static void
test_probe_mean(void **state)
{

	(void)state;
	begin(G);
	assert_int_equal(held(800000000), 0);
	assert_int_equal(held(1000000000), 0);
	assert_int_equal(held(800000000), 0);
	assert_int_equal(held(1000000000), 1);
	assert_int_equal(held(990000000), 0);
	assert_int_equal(held(990000000), 1);
	/* 0.99 of 0.9, and 0.98 of that */
	assert_int_equal(nic.rate, 1078000000);
}

/* sent in the second epoch of a probe from 1 Gbit/s; what T is then */
static uint64_t
probe(uint64_t sent, int standing)
{

	begin(G);
	(void)to_probe();
	assert_int_equal(held(sent), 0);
	if (standing)
		(void)known(sent);
	else
		(void)held(sent);
	assert_int_equal(NIC_Rate(&nic), nic.rate);
	return (nic.rate);
}

static void
test_probe_ends(void **state)
{

	(void)state;
	/* All but a 64th left: the link had room for it */
	assert_int_equal(probe(1107422080, 0), 1107422080);
	assert_int_equal(probe(1107499840, 0), 1107499840);
	assert_int_equal(probe(1107421760, 0), 1085273324);
	/* Never more than was probed */
	assert_int_equal(probe(1200000000, 0), 1125000000);
	/* Less than T is believed under a queue only, and not below a half */
	assert_int_equal(probe(900000000, 0), G);
	assert_int_equal(probe(900000000, 1), 882000000);
	assert_int_equal(probe(500000000, 1), 490000000);
	assert_int_equal(probe(400000000, 1), G);
}

/* 4, 8, 16, 16: a probe that failed makes the next one wait */
static void
test_probe_fails(void **state)
{
	static const int wait[] = { 4, 8, 16, 16, 16 };
	size_t i;

	(void)state;
	begin(G);
	for (i = 0; i < sizeof wait / sizeof wait[0]; i++) {
		assert_int_equal(to_probe(), wait[i]);
		(void)held(G);
		(void)held(G);
		assert_int_equal(nic.rate, G);
	}
}

/* One that gave more than half of what it tried goes on at once */
static void
test_probe_succeeds(void **state)
{
	const uint64_t rate = 1003520000;

	(void)state;
	begin(rate);
	(void)to_probe();
	(void)held(1088000000);
	(void)held(1088000000);
	assert_int_equal(nic.rate, rate + rate / 16);
	assert_int_equal(to_probe(), 2 * PATIENCE);
	begin(rate);
	(void)to_probe();
	(void)held(1075200000);
	(void)held(1075200000);
	assert_int_equal(nic.rate, 1053696000);
	assert_int_equal(to_probe(), 2 * PATIENCE);
	begin(rate);
	(void)to_probe();
	(void)held(1088000160);
	(void)held(1088000160);
	assert_int_equal(nic.rate, 1066240156);
	assert_int_equal(to_probe(), 1);
	/* And if that fails, the next one has to wait as in the beginning */
	(void)held(1066240000);
	(void)held(1066240000);
	assert_int_equal(to_probe(), PATIENCE);
}

/* So is one that can't be judged any more */
static void
test_probe_stop(void **state)
{

	(void)state;
	begin(G);
	assert_int_equal(to_probe(), PATIENCE);
	NIC_Stop(&nic);
	assert_int_equal(nic.rate, G);
	assert_int_equal(nic.probing, 0);
	/* An epoch begins with the next look */
	now += NIC_EPOCH;
	assert_int_equal(NIC_Learn(&nic, tx, QUEUE, now), 0);
	assert_int_equal(nic.rate, G);
}

/* A probe that was not seen in full is undone, and says nothing */
static void
test_probe_gap(void **state)
{

	(void)state;
	begin(G);
	assert_int_equal(to_probe(), PATIENCE);
	now += SEC;
	assert_int_equal(NIC_Learn(&nic, tx, 0, now), 1);
	assert_int_equal(nic.rate, G);
	assert_int_equal(NIC_Rate(&nic), G);
	assert_int_equal(to_probe(), PATIENCE);
}

/*--------------------------------------------------------------------
 * Epochs
 */

static void
test_epochs(void **state)
{

	(void)state;
	/* Four times as long counts, one ns more does not */
	begin(9 * G);
	now += 4 * NIC_EPOCH;
	assert_int_equal(NIC_Learn(&nic, 25000000, QUEUE, now), 0);
	assert_int_equal(nic.backlogged_epochs, 1);
	now += 4 * NIC_EPOCH + 1;
	assert_int_equal(NIC_Learn(&nic, 50000000, QUEUE, now), 0);
	assert_int_equal(nic.backlogged_epochs, 0);
	now += NIC_EPOCH;
	assert_int_equal(NIC_Learn(&nic, 56250000, QUEUE, now), 0);
	assert_int_equal(nic.backlogged_epochs, 1);
	/* The first call has nothing to compare with, however early */
	NIC_Init(&nic, 9 * G, 0, 60 * MS);
	assert_int_equal(NIC_Learn(&nic, 6250000, QUEUE, 60 * MS), 0);
	assert_int_equal(nic.backlogged_epochs, 0);
	assert_int_equal(NIC_Learn(&nic, 12500000, QUEUE, 110 * MS), 0);
	assert_int_equal(nic.backlogged_epochs, 1);
	/* And begins an epoch at any time */
	NIC_Init(&nic, 9 * G, 0, 1);
	assert_int_equal(NIC_Learn(&nic, 0, QUEUE, 1), 0);
	assert_int_equal(NIC_Learn(&nic, 5000000, QUEUE, NIC_EPOCH), 0);
	assert_int_equal(nic.backlogged_epochs, 0);
	assert_int_equal(NIC_Learn(&nic, 6250000, QUEUE, 1 + NIC_EPOCH), 0);
	assert_int_equal(nic.backlogged_epochs, 1);
	/* It counts to two */
	NIC_SetRate(&nic, 125000000);
	assert_int_equal(NIC_Learn(&nic, 7031250, QUEUE, 1 + 2 * NIC_EPOCH), 0);
	assert_int_equal(NIC_Learn(&nic, 7812500, QUEUE, 1 + 3 * NIC_EPOCH), 0);
	assert_int_equal(nic.backlogged_epochs, 2);
	assert_int_equal(NIC_Learn(&nic, 8593750, QUEUE, 1 + 4 * NIC_EPOCH), 0);
	assert_int_equal(nic.backlogged_epochs, 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_drained),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_at_the_limit),
		cmocka_unit_test(test_slowest),
		cmocka_unit_test(test_first_rate),
		cmocka_unit_test(test_taken_back),
		cmocka_unit_test(test_refill),
		cmocka_unit_test(test_first_t),
		cmocka_unit_test(test_lower),
		cmocka_unit_test(test_explained),
		cmocka_unit_test(test_lower_in_a_row),
		cmocka_unit_test(test_too_high),
		cmocka_unit_test(test_how_far),
		cmocka_unit_test(test_standing),
		cmocka_unit_test(test_held),
		cmocka_unit_test(test_set_while_held),
		cmocka_unit_test(test_probe_mean),
		cmocka_unit_test(test_probe_ends),
		cmocka_unit_test(test_probe_fails),
		cmocka_unit_test(test_probe_succeeds),
		cmocka_unit_test(test_probe_stop),
		cmocka_unit_test(test_probe_gap),
		cmocka_unit_test(test_epochs),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
