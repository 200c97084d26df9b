/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The NIC's backlog by hand and against a slow oracle, and the learned rate
 * on a simulated link: a first-in-first-out queue and a token bucket (tbf), a
 * releaser that holds while the NIC is closed, and closed-loop connections.
 * Everything runs on a fake clock in ticks of 100 us.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "perfctr/nic.h"

#define G		1000000000ULL
#define MS		1000000LL
#define SEC		(1000 * MS)
#define QUEUE		(UINT64_C(1) << 40)	/* bytes, that B does not know */

static uint64_t seed;

static uint64_t
rnd(uint64_t n)
{

	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return ((seed >> 33) % n);
}

/*--------------------------------------------------------------------
 * B by hand.  At 1 Gbit/s 2 ms are 250,000 bytes; 0.98 T drains 122.5
 * bytes a us.
 */

static void
test_backlog_by_hand(void **state)
{
	struct nic nic;
	int64_t when;

	(void)state;
	NIC_Init(&nic, G, 0, SEC);
	assert_int_equal(NIC_Closed(&nic, SEC, &when), 0);
	assert_int_equal(when, SEC);
	assert_int_equal(NIC_Release(&nic, 200000, SEC), 200000);
	assert_int_equal(NIC_Release(&nic, 50000, SEC), 50000);
	assert_int_equal(NIC_Closed(&nic, SEC, NULL), 0);
	assert_int_equal(NIC_Release(&nic, 122500, SEC), 122500);
	assert_int_equal(NIC_Backlog(&nic, SEC), 372500);
	assert_int_equal(NIC_Closed(&nic, SEC, &when), 1);
	assert_int_equal(when, SEC + MS);
	assert_int_equal(NIC_Closed(&nic, SEC + MS - 1, &when), 1);
	assert_int_equal(when, SEC + MS);
	assert_int_equal(NIC_Busy(&nic, SEC + MS - 1), 1);
	assert_int_equal(NIC_Closed(&nic, SEC + MS, &when), 0);
	assert_int_equal(NIC_Busy(&nic, SEC + MS), 0);
	assert_int_equal(NIC_Backlog(&nic, SEC + MS), 250000);
	/* It was closed for that ms, whoever looked and when */
	assert_int_equal(NIC_ClosedTime(&nic, 2 * SEC), MS);
	assert_int_equal(NIC_Backlog(&nic, 2 * SEC), 0);
	/* A clock that went back drains nothing and breaks nothing */
	NIC_Release(&nic, 1000, 2 * SEC);
	assert_int_equal(NIC_Backlog(&nic, SEC), 1000);
}

static void
test_correct(void **state)
{
	struct nic nic;
	uint32_t c;

	(void)state;
	NIC_Init(&nic, G, 0, SEC);
	/* One request's share is capped, also when it turns out larger */
	c = NIC_Release(&nic, 10000000, SEC);
	assert_int_equal(c, NIC_SHARE);
	c = NIC_Correct(&nic, c, UINT64_MAX, SEC);
	assert_int_equal(c, NIC_SHARE);
	assert_int_equal(NIC_Backlog(&nic, SEC), NIC_SHARE);
	assert_int_equal(NIC_Closed(&nic, SEC, NULL), 1);
	/* Reset after 1 KB: taken back, and nobody is held for it */
	c = NIC_Correct(&nic, c, 1000, SEC);
	assert_int_equal(c, 1000);
	assert_int_equal(NIC_Backlog(&nic, SEC), 1000);
	assert_int_equal(NIC_Closed(&nic, SEC, NULL), 0);
	c = NIC_Correct(&nic, c, 0, SEC);
	assert_int_equal(c, 0);
	assert_int_equal(NIC_Backlog(&nic, SEC), 0);
	/* Taken back after it was drained: never below zero, no credit */
	c = NIC_Release(&nic, 100000, SEC);
	assert_int_equal(NIC_Correct(&nic, c, 0, 2 * SEC), 0);
	assert_int_equal(NIC_Backlog(&nic, 2 * SEC), 0);
	NIC_Release(&nic, 5000, 2 * SEC);
	assert_int_equal(NIC_Backlog(&nic, 2 * SEC), 5000);
}

/* Alone nobody is held; who comes then waits for 10 ms of B at most */
static void
test_alone(void **state)
{
	struct nic nic;
	int64_t when;
	int i;

	(void)state;
	NIC_Init(&nic, G, 0, SEC);
	NIC_SetAlone(&nic, 1, SEC);
	for (i = 0; i < 100; i++) {
		NIC_Release(&nic, 100000, SEC);
		assert_int_equal(NIC_Closed(&nic, SEC, &when), 0);
		assert_int_equal(when, SEC);
	}
	assert_int_equal(NIC_Backlog(&nic, SEC), 1500000);
	assert_int_equal(NIC_Busy(&nic, SEC), 1);
	/* Nor by what turns out larger */
	assert_int_equal(NIC_Correct(&nic, 1000, 200000, SEC), 200000);
	assert_int_equal(NIC_Backlog(&nic, SEC), 1500000);
	/* 122,500 bytes drain in a ms; it was not closed */
	assert_int_equal(NIC_Backlog(&nic, SEC + MS), 1377500);
	assert_int_equal(NIC_ClosedTime(&nic, SEC + MS), 0);
	NIC_SetAlone(&nic, 0, SEC + 2 * MS);
	assert_int_equal(NIC_Closed(&nic, SEC + 2 * MS, &when), 1);
	assert_in_range(when, SEC + 10 * MS, SEC + 11 * MS);
	assert_int_equal(NIC_ClosedTime(&nic, SEC + 3 * MS), MS);
}

static void
test_unknown_and_bound(void **state)
{
	struct nic nic;
	int i;

	(void)state;
	NIC_Init(&nic, 0, 0, SEC);
	assert_int_equal(NIC_Busy(&nic, SEC), 0);
	for (i = 0; i < 1000; i++)
		assert_int_equal(NIC_Release(&nic, 200000, SEC), 200000);
	assert_int_equal(NIC_Closed(&nic, SEC, NULL), 0);
	assert_int_equal(NIC_Backlog(&nic, SEC), 0);
	assert_int_equal(NIC_Correct(&nic, 200000, 5000, SEC), 5000);
	NIC_SetBound(&nic, G);
	assert_int_equal(nic.rate, G);
	NIC_SetRate(&nic, 2 * G);
	assert_int_equal(nic.rate, G);
	NIC_SetBound(&nic, 0);
	assert_int_equal(nic.rate, G);
	NIC_SetRate(&nic, 2 * G);
	assert_int_equal(nic.rate, 2 * G);
	NIC_SetBound(&nic, G / 2);
	assert_int_equal(nic.rate, G / 2);
	NIC_Release(&nic, 200000, SEC);
	NIC_SetBound(&nic, 0);
	NIC_SetRate(&nic, 0);
	assert_int_equal(NIC_Closed(&nic, SEC, NULL), 0);
	NIC_SetRate(&nic, UINT64_MAX);
	NIC_Release(&nic, 200000, SEC);
	assert_int_equal(NIC_Backlog(&nic, 2 * SEC), 0);
}

/* The same calls at once and ns-exactly spread give the same B; `when` is
 * the first ns at which it is open */
static void
test_backlog_random(void **state)
{
	struct nic a, b;
	int64_t now = SEC, when, t;
	uint32_t bytes;
	int i, j;

	(void)state;
	seed = 7;
	NIC_Init(&a, 1234567891, 0, now);
	b = a;
	for (i = 0; i < 20000; i++) {
		bytes = (uint32_t)rnd(150000);
		assert_int_equal(NIC_Release(&a, bytes, now), bytes);
		assert_int_equal(NIC_Release(&b, bytes, now), bytes);
		if (NIC_Closed(&a, now, &when)) {
			assert_true(when > now);
			struct nic c = a;
			assert_int_equal(NIC_Closed(&c, when - 1, NULL), 1);
			assert_int_equal(NIC_Closed(&c, when, NULL), 0);
		}
		t = now + (int64_t)rnd(1000000);
		for (j = 0; j < 5; j++)
			(void)NIC_Backlog(&b, now + (t - now) * j / 5);
		now = t;
		assert_int_equal(NIC_Backlog(&a, now), NIC_Backlog(&b, now));
		assert_in_range(a.closed_ns - b.closed_ns + 5 * (i + 1), 0,
		    10 * (i + 1));
	}
	assert_true(a.closed_ns > SEC);
}

/*--------------------------------------------------------------------
 * T by hand: epochs in which B never runs empty
 */

static int
epoch(struct nic *nic, int64_t *now, uint64_t *tx, uint64_t rate,
    int standing)
{

	while (NIC_Backlog(nic, *now) < 20000000)
		(void)NIC_Release(nic, NIC_SHARE, *now);
	*now += NIC_EPOCH;
	*tx += rate / 160;		/* bytes in 50 ms */
	return (NIC_Learn(nic, *tx, standing ? QUEUE : 0, *now));
}

/* Held, no queue: the fourth epoch's end begins a probe */
static void
begin_probe(struct nic *nic, int64_t *now, uint64_t *tx)
{
	int i;

	NIC_Init(nic, G, 0, *now);
	assert_int_equal(NIC_Learn(nic, *tx, 0, *now), 0);
	for (i = 0; i < 3; i++)
		assert_int_equal(epoch(nic, now, tx, G, 0), 0);
	assert_int_equal(epoch(nic, now, tx, G, 0), 1);
	assert_int_equal(nic->rate, G * 9 / 8);
}

static void
test_probe_by_hand(void **state)
{
	uint64_t tx = 0;
	int64_t now = SEC;
	struct nic nic;
	int i;

	(void)state;
	begin_probe(&nic, &now, &tx);
	assert_int_equal(NIC_Rate(&nic), G);
	assert_int_equal(NIC_DrainRate(&nic), G / 100 * 98);
	/* All of it left, in the second epoch too: kept, and the next one
	 * begins an epoch later */
	assert_int_equal(epoch(&nic, &now, &tx, G * 9 / 8, 0), 0);
	assert_int_equal(epoch(&nic, &now, &tx, G * 9 / 8, 0), 0);
	assert_int_equal(NIC_Rate(&nic), G * 9 / 8);
	assert_int_equal(epoch(&nic, &now, &tx, G * 9 / 8, 0), 1);
	assert_int_equal(nic.rate, G * 81 / 64);
	/* What was saved leaves in the first; the second counts, and leaves
	 * room */
	assert_int_equal(epoch(&nic, &now, &tx, G * 81 / 64, 0), 0);
	assert_int_equal(epoch(&nic, &now, &tx, G * 99 / 80, 0), 1);
	assert_int_equal(nic.rate, G * 99 / 80 / 100 * 98);
	NIC_SetRate(&nic, G);
	/* A queue at the end of the first: nothing is known but that */
	for (i = 0; i < 4; i++)
		(void)epoch(&nic, &now, &tx, G, 0);
	assert_int_equal(nic.rate, G * 9 / 8);
	assert_int_equal(epoch(&nic, &now, &tx, G / 100 * 103, 1), 1);
	assert_int_equal(nic.rate, G);
	/* At the end of the second: the rate is what was sent, and the next
	 * probe is twice as far */
	for (i = 0; i < 7; i++)
		assert_int_equal(epoch(&nic, &now, &tx, G, 0), 0);
	assert_int_equal(epoch(&nic, &now, &tx, G, 0), 1);
	assert_int_equal(nic.rate, G * 9 / 8);
	assert_int_equal(epoch(&nic, &now, &tx, G, 0), 0);
	assert_int_equal(epoch(&nic, &now, &tx, G, 1), 1);
	assert_int_equal(nic.rate, G / 100 * 98);
}

/* A new bound ends a probe, and what was probed is not kept */
static void
test_bound_within_a_probe(void **state)
{
	uint64_t tx = 0;
	int64_t now = SEC;
	struct nic nic;

	(void)state;
	begin_probe(&nic, &now, &tx);
	NIC_SetBound(&nic, 10 * G);
	assert_int_equal(nic.probing, 0);
	assert_int_equal(nic.rate, G);
}

/* Held, but little or nothing leaves: no reason to believe in a faster link */
static void
test_no_probe_without_sending(void **state)
{
	uint64_t tx = 0;
	int64_t now = SEC;
	struct nic nic;
	int i;

	(void)state;
	NIC_Init(&nic, G, 0, now);
	assert_int_equal(NIC_Learn(&nic, tx, 0, now), 0);
	for (i = 0; i < 20; i++)
		assert_int_equal(epoch(&nic, &now, &tx, i % 2 * G / 3, 0), 0);
	/* The link goes down within a probe */
	for (i = 0; i < 4; i++)
		(void)epoch(&nic, &now, &tx, G, 0);
	assert_int_equal(nic.rate, G * 9 / 8);
	assert_int_equal(epoch(&nic, &now, &tx, 0, 0), 0);
	assert_int_equal(epoch(&nic, &now, &tx, 0, 0), 1);
	assert_int_equal(nic.rate, G);
}

/* A queue stands and far more than T was sent: up, but only near it */
static void
test_up_by_hand(void **state)
{
	uint64_t tx = 0;
	int64_t now = SEC;
	struct nic nic;

	(void)state;
	NIC_Init(&nic, G / 4, 0, now);
	assert_int_equal(NIC_Learn(&nic, tx, QUEUE, now), 0);
	assert_int_equal(epoch(&nic, &now, &tx, G, 1), 1);
	assert_int_equal(nic.rate, G * 5 / 8);
	assert_int_equal(epoch(&nic, &now, &tx, G, 1), 0);
	/* And down: not by one look, then half of the way, then all of it to the
	 * better of two */
	NIC_SetRate(&nic, 9 * G);
	assert_int_equal(epoch(&nic, &now, &tx, G, 1), 0);
	assert_int_equal(epoch(&nic, &now, &tx, G, 1), 1);
	assert_int_equal(nic.rate, 5 * G);
	assert_int_equal(epoch(&nic, &now, &tx, G / 2, 1), 1);
	assert_int_equal(nic.rate, G);
	/* After a quiet epoch from the beginning */
	NIC_SetRate(&nic, 9 * G);
	(void)epoch(&nic, &now, &tx, G, 1);
	(void)epoch(&nic, &now, &tx, G, 0);
	assert_int_equal(epoch(&nic, &now, &tx, G, 1), 0);
	assert_int_equal(epoch(&nic, &now, &tx, G, 1), 1);
	assert_int_equal(nic.rate, 5 * G);
}

/*--------------------------------------------------------------------
 * The link
 */

#define TICK		(MS / 10)
#define CONNS		200
#define QLEN		(1 << 16)
#define BURST		262144		/* bytes, of the token bucket */

struct packet {
	int			conn;		/* -1: somebody else's */
	uint32_t		counted;
	uint64_t		bytes;		/* left */
};

struct sim {
	struct nic		nic;
	uint64_t		link;		/* bits/s */
	uint64_t		other;		/* bits/s, not ours */
	uint64_t		tx_percent;	/* of our bytes, in tx */
	int			conns;
	int			abusers;	/* of them: ask, then reset */
	uint32_t		size[CONNS];	/* 0: 20 KB to 120 KB */
	int			ready[CONNS], nready;
	int64_t			think[CONNS];	/* ns, when ready; 0: no */
	struct packet		q[QLEN];	/* behind the releaser */
	unsigned		head, tail;
	uint64_t		queued;		/* bytes in q */
	uint64_t		frac;		/* of the link's credit */
	uint64_t		tokens;		/* bytes, saved while it idled */
	uint64_t		other_frac;
	uint64_t		tx;		/* bytes */
	uint64_t		own;		/* bytes that were ours */
	int64_t			now, learn;
	int64_t			worst;		/* ns, longest queue */
	double			mean;		/* of T over the link's rate */
};

static void
sim_init(struct sim *s, uint64_t link, uint64_t rate, int conns)
{
	int i;

	memset(s, 0, sizeof *s);
	seed = 42;
	s->now = SEC;
	s->link = link;
	s->conns = conns;
	s->tx_percent = 100;
	NIC_Init(&s->nic, rate, 0, s->now);
	for (i = 0; i < conns; i++)
		s->ready[s->nready++] = i;
}

static void
sim_push(struct sim *s, int conn, uint32_t counted, uint64_t bytes)
{

	s->q[s->tail++ % QLEN] = (struct packet){ conn, counted, bytes };
	assert_in_range(s->tail - s->head, 0, QLEN);
	s->queued += bytes;
}

/* An estimate that is right on average, corrected when it was sent */
static void
sim_release(struct sim *s, int conn)
{
	uint32_t bytes = s->size[conn], counted;

	if (bytes == 0)
		bytes = 20000 + (uint32_t)rnd(100000);
	counted = NIC_Release(&s->nic,
	    bytes - bytes / 5 + (uint32_t)rnd(2 * (bytes / 5) + 1), s->now);
	if (conn < s->abusers) {
		(void)NIC_Correct(&s->nic, counted, 1000, s->now);
		sim_push(s, conn, 1000, 1000);
	} else
		sim_push(s, conn, counted, bytes);
}

static void
sim_send(struct sim *s)
{
	uint64_t credit, n;
	struct packet *p;

	s->frac += s->link * TICK;
	credit = s->tokens + s->frac / 8000000000ULL;
	s->frac %= 8000000000ULL;
	s->tokens = 0;
	while (credit > 0 && s->head != s->tail) {
		p = &s->q[s->head % QLEN];
		n = p->bytes < credit ? p->bytes : credit;
		credit -= n;
		p->bytes -= n;
		s->queued -= n;
		s->tx += n * s->tx_percent / 100;
		if (p->conn >= 0)
			s->own += n;
		if (p->bytes > 0)
			break;
		if (p->conn >= 0)
			s->think[p->conn] = s->now + MS;
		s->head++;
	}
	s->tokens = credit < BURST ? credit : BURST;
}

static void
sim_tick(struct sim *s)
{
	int64_t delay;
	uint64_t n;
	int i;

	for (i = 0; i < s->conns; i++)
		if (s->think[i] != 0 && s->think[i] <= s->now) {
			s->think[i] = 0;
			s->ready[s->nready++] = i;
		}
	for (i = 0; i < s->nready && !NIC_Closed(&s->nic, s->now, NULL); i++)
		sim_release(s, s->ready[i]);
	s->nready -= i;
	memmove(s->ready, s->ready + i, (size_t)s->nready * sizeof s->ready[0]);
	s->other_frac += s->other * TICK;
	n = s->other_frac / 8000000000ULL;
	s->other_frac %= 8000000000ULL;
	if (n > 0)
		sim_push(s, -1, 0, n);
	sim_send(s);
	s->now += TICK;
	delay = (int64_t)(s->queued * 8 * G / s->link);
	if (delay > s->worst)
		s->worst = delay;
	if (s->now >= s->learn) {
		s->learn = s->now + NIC_EPOCH;
		(void)NIC_Learn(&s->nic, s->tx, s->queued, s->now);
	}
}

/* Run for so long; what part of the link was ours, and the worst queue */
static double
sim_run(struct sim *s, int64_t ns)
{
	int64_t until = s->now + ns;
	uint64_t own = s->own;
	double sum = 0;
	int64_t n = 0;

	s->worst = 0;
	for (; s->now < until; n++) {
		sim_tick(s);
		sum += (double)NIC_Rate(&s->nic) / (double)s->link;
	}
	s->mean = sum / (double)n;
	return ((double)(s->own - own) * 8e9 / (double)ns / (double)s->link);
}

static double
sim_rate(const struct sim *s)
{

	return ((double)s->nic.rate / (double)s->link);
}

/* Within 5 % of the link's rate: T, or what is tried now */
static int
sim_right(const struct sim *s)
{
	double tried = sim_rate(s);
	double t = (double)NIC_Rate(&s->nic) / (double)s->link;

	return ((t > 0.95 && t < 1.05) || (tried > 0.95 && tried < 1.05));
}

#define SAY(s, what, u)	print_message("    %s: use %.3f of the link, " \
	"T %.3f of it (mean %.3f), worst queue %.1f ms\n", what, u, \
	sim_rate(s), (s)->mean, (double)(s)->worst / 1e6)

/*--------------------------------------------------------------------*/

static struct sim *sim;

/* T is right a second after saturation, and the link is used */
static void
converges(uint64_t link, uint64_t rate, int conns)
{
	double u;

	sim_init(sim, link, rate, conns);
	u = sim_run(sim, SEC);
	SAY(sim, "first second", u);
	assert_true(u >= 0.95);
	assert_true(sim_right(sim));
	u = sim_run(sim, 5 * SEC);
	SAY(sim, "then", u);
	assert_true(u >= 0.95);
	assert_true(sim_rate(sim) > 0.95 && sim_rate(sim) < 1.15);
	assert_true(sim->mean > 0.98 && sim->mean < 1.02);
	assert_true(sim->worst < 16 * MS);
}

static void
test_from_10g(void **state)
{

	(void)state;
	converges(1250000000, 10 * G, 200);
}

static void
test_from_twice(void **state)
{

	(void)state;
	converges(1250000000, 2500000000, 200);
	converges(G, 2 * G, 100);
}

static void
test_from_right(void **state)
{

	(void)state;
	converges(1250000000, 1250000000, 200);
}

static void
test_from_6_percent(void **state)
{

	(void)state;
	converges(1250000000, 1325000000, 200);
}

static void
test_from_unknown(void **state)
{

	(void)state;
	converges(1250000000, 0, 200);
}

/* Too low: probed up within a few seconds */
static void
test_from_low(void **state)
{
	double u;

	(void)state;
	sim_init(sim, 1250000000, 625000000, 200);
	u = sim_run(sim, 2 * SEC);
	SAY(sim, "from half, 2 s", u);
	u = sim_run(sim, 3 * SEC);
	SAY(sim, "then", u);
	assert_true(u >= 0.95);
	sim_init(sim, 1250000000, 125000000, 200);
	u = sim_run(sim, 5 * SEC);
	SAY(sim, "from a tenth, 5 s", u);
	u = sim_run(sim, 3 * SEC);
	SAY(sim, "then", u);
	assert_true(u >= 0.95);
}

static void
test_link_changes(void **state)
{
	double u;

	(void)state;
	sim_init(sim, 1250000000, 10 * G, 200);
	(void)sim_run(sim, 10 * SEC);
	sim->link *= 2;
	u = sim_run(sim, 3 * SEC);
	SAY(sim, "doubled, 3 s", u);
	u = sim_run(sim, 3 * SEC);
	SAY(sim, "then", u);
	assert_true(u >= 0.95);
	sim->link /= 4;
	u = sim_run(sim, SEC);
	SAY(sim, "a quarter, 1 s", u);
	u = sim_run(sim, 5 * SEC);
	SAY(sim, "then", u);
	assert_true(u >= 0.95);
	assert_true(sim_rate(sim) < 1.15);
	assert_true(sim->worst < 20 * MS);
}

/* A steady 30 % of the link is somebody else's: the queue does not stand,
 * and we get the rest */
static void
test_others_bytes(void **state)
{
	int64_t stood = 0, t;
	double u;

	(void)state;
	sim_init(sim, 1250000000, 10 * G, 200);
	sim->other = sim->link * 3 / 10;
	u = sim_run(sim, 5 * SEC);
	SAY(sim, "30 % others, 5 s", u);
	u = sim_run(sim, 5 * SEC);
	SAY(sim, "then", u);
	assert_true(u >= 0.95 * 0.7);
	for (t = 0; t < 100; t++) {
		(void)sim_run(sim, NIC_EPOCH);
		stood += sim->queued * 8 * G / sim->link > NIC_STANDS;
	}
	print_message("    stood in %d of 100 epochs\n", (int)stood);
	assert_true(stood < 50);
}

/* A queue that is not ours and never goes: we do not give way for ever */
static void
test_not_our_queue(void **state)
{
	int64_t now = SEC, low = 0, i;
	uint64_t tx = 0;
	struct nic nic;

	(void)state;
	NIC_Init(&nic, G, 0, now);
	for (i = 0; i < 20 * 60; i++) {
		tx += 125000000 / 20;
		now += NIC_EPOCH;
		(void)NIC_Learn(&nic, tx, QUEUE, now);
		assert_true(nic.rate >= G / 2);
		low += nic.rate < G * 95 / 100;
	}
	print_message("    lowered in %d of 1200 epochs\n", (int)low);
	assert_true(low > 0 && low < 1200 / 8);
}

/* tx counts fewer bytes than we do (segments without their headers) */
static void
test_units_differ(void **state)
{
	double u;

	(void)state;
	sim_init(sim, 1250000000, 10 * G, 200);
	sim->tx_percent = 95;
	(void)sim_run(sim, 3 * SEC);
	u = sim_run(sim, 5 * SEC);
	SAY(sim, "tx counts 0.95", u);
	assert_true(u >= 0.95);
	sim_init(sim, 1250000000, 10 * G, 200);
	sim->tx_percent = 105;
	(void)sim_run(sim, 3 * SEC);
	u = sim_run(sim, 5 * SEC);
	SAY(sim, "tx counts 1.05", u);
	assert_true(u >= 0.95);
}

/* 40 connections ask for 10 MB and reset after 1 KB, as fast as they can:
 * the others lose what is sent to these, not what was asked */
static void
test_resets(void **state)
{
	double u;
	int i;

	(void)state;
	sim_init(sim, 1250000000, 1250000000, 200);
	sim->abusers = 40;
	for (i = 0; i < sim->abusers; i++)
		sim->size[i] = 10000000;
	u = sim_run(sim, 5 * SEC);
	SAY(sim, "with resets", u);
	assert_true(u >= 0.95);
}

/* 10 MB responses, of which B knows 256 KB, beside small ones */
static void
test_huge_responses(void **state)
{
	double u;
	int i;

	(void)state;
	sim_init(sim, 1250000000, 10 * G, 100);
	for (i = 0; i < 5; i++)
		sim->size[i] = 10000000;
	(void)sim_run(sim, 2 * SEC);
	u = sim_run(sim, 10 * SEC);
	SAY(sim, "with 10 MB responses", u);
	assert_true(u >= 0.95);
	assert_true(sim_rate(sim) >= 0.5);
}

/* Little to do: T is left alone */
static void
test_idle(void **state)
{

	(void)state;
	sim_init(sim, 1250000000, 10 * G, 1);
	sim->size[0] = 20000;
	(void)sim_run(sim, 5 * SEC);
	assert_int_equal(sim->nic.rate, 10 * G);
	assert_int_equal(sim->nic.learned, 0);
}

/* At random times, 100 ms apart on average, 12 connections ask for 200 KB each.
 * What part of the link's rate T is: the least */
static double
sim_bursts(struct sim *s, uint64_t link, uint64_t rate)
{
	double min = 1e9;
	int i, j;

	sim_init(s, link, rate, 12);
	for (i = 0; i < 12; i++)
		s->size[i] = 200000;
	for (j = 0; j < 300; j++) {
		memset(s->think, 0, sizeof s->think);
		for (i = s->nready = 0; i < 12; i++)
			s->ready[s->nready++] = i;
		for (i = 1 + (int)rnd(200); i > 0; i--) {
			(void)sim_run(s, MS);
			memset(s->think, 0, sizeof s->think);
		}
		if (sim_rate(s) < min)
			min = sim_rate(s);
	}
	print_message("    bursts: T %.3f of the link, least %.3f\n",
	    sim_rate(s), min);
	return (min);
}

/* A link that is nearly idle: what stands for a moment is what B knows of */
static void
test_bursts(void **state)
{

	(void)state;
	assert_true(sim_bursts(sim, 1250000000, 1250000000) == 1);
	/* If T is too high, queues lower it, and not far below the link's rate */
	assert_true(sim_bursts(sim, 1250000000, 10 * G) > 0.7);
	assert_true(sim_rate(sim) < 2);
	assert_true(sim_bursts(sim, 1250000000, 2500000000) > 0.7);
	assert_true(sim_rate(sim) < 2);
}

static void
test_bound(void **state)
{
	int i;

	(void)state;
	sim_init(sim, 2500000000, 0, 200);
	NIC_SetBound(&sim->nic, G);
	for (i = 0; i < 100; i++) {
		(void)sim_run(sim, NIC_EPOCH);
		assert_true(sim->nic.rate <= G);
	}
	assert_int_equal(sim->nic.rate, G);
}

/* Calls that are early, late, or with a counter that went back */
static void
test_odd_calls(void **state)
{
	struct nic nic;

	(void)state;
	NIC_Init(&nic, 10 * G, 0, SEC);
	assert_int_equal(NIC_Learn(&nic, 1000, QUEUE, SEC), 0);
	assert_int_equal(NIC_Learn(&nic, 9000, QUEUE, SEC + NIC_EPOCH - 1), 0);
	assert_int_equal(nic.rate, 10 * G);
	/* The process was stopped for 5 s */
	assert_int_equal(NIC_Learn(&nic, 9000, QUEUE, 6 * SEC), 0);
	assert_int_equal(nic.rate, 10 * G);
	/* The interface was replaced */
	assert_int_equal(NIC_Learn(&nic, 10, QUEUE, 6 * SEC + NIC_EPOCH), 0);
	assert_int_equal(nic.rate, 10 * G);
	/* The link is down: nothing was sent, T says nothing of that */
	assert_int_equal(NIC_Learn(&nic, 10, QUEUE, 6 * SEC + 2 * NIC_EPOCH), 0);
	assert_int_equal(nic.rate, 10 * G);
	/* And two epochs that count: 62.5 MB are 10 Gbit/s, 6.25 MB are 1 */
	assert_int_equal(NIC_Learn(&nic, 10 + 6250000, QUEUE,
	    6 * SEC + 3 * NIC_EPOCH), 0);
	assert_int_equal(NIC_Learn(&nic, 10 + 12500000, QUEUE,
	    6 * SEC + 4 * NIC_EPOCH), 1);
	assert_int_equal(nic.rate, 5500000000ULL);
	assert_int_equal(nic.learned, 1);
}

/* An operator's T of next to nothing: half of it is 0, and nothing is sent */
static void
test_rate_of_one(void **state)
{
	struct nic nic;
	int64_t now = SEC;
	int i;

	(void)state;
	NIC_Init(&nic, 1, 0, now);
	assert_int_equal(NIC_DrainRate(&nic), 1);
	for (i = 0; i < 12; i++) {
		NIC_Release(&nic, 200000, now);
		now += NIC_EPOCH;
		(void)NIC_Learn(&nic, 0, 0, now);
		assert_int_equal(nic.probing, 0);
	}
	assert_int_equal(nic.rate, 1);
}

static int
setup(void **state)
{

	(void)state;
	sim = calloc(1, sizeof *sim);
	return (sim == NULL);
}

static int
teardown(void **state)
{

	(void)state;
	free(sim);
	return (0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_backlog_by_hand),
		cmocka_unit_test(test_correct),
		cmocka_unit_test(test_alone),
		cmocka_unit_test(test_unknown_and_bound),
		cmocka_unit_test(test_backlog_random),
		cmocka_unit_test(test_probe_by_hand),
		cmocka_unit_test(test_bound_within_a_probe),
		cmocka_unit_test(test_no_probe_without_sending),
		cmocka_unit_test(test_up_by_hand),
		cmocka_unit_test(test_from_10g),
		cmocka_unit_test(test_from_twice),
		cmocka_unit_test(test_from_right),
		cmocka_unit_test(test_from_6_percent),
		cmocka_unit_test(test_from_unknown),
		cmocka_unit_test(test_from_low),
		cmocka_unit_test(test_link_changes),
		cmocka_unit_test(test_others_bytes),
		cmocka_unit_test(test_not_our_queue),
		cmocka_unit_test(test_units_differ),
		cmocka_unit_test(test_resets),
		cmocka_unit_test(test_huge_responses),
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_bursts),
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_odd_calls),
		cmocka_unit_test(test_rate_of_one),
	};

	return (cmocka_run_group_tests(tests, setup, teardown));
}
