/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Groups, reservations and limits, under every policy: one CPU, shared by
 * whatever runs, on which all costs are spent.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "rel_conform.h"

#define US		1000
#define MS		INT64_C(1000000)
#define SLOTS		4
#define QUEUE		8		/* requests that a tenant has waiting */
#define LENGTH		(4000 * MS)
#define TENANTS		10
#define PART(x)		((uint32_t)((x) * REL_PART_ONE))

struct tenant {
	double		reservation, limit;	/* 0: none */
	double		cost, estimate;		/* ms; 0: 1; as it costs */
	double		weight;			/* 0: 1 */
	int		is_group;
	unsigned	group;			/* 1 + its index, or 0 */
	int64_t		from;			/* ns: idle before */
	double		least, most;		/* part that it has to have */
};

struct server {
	struct world	*w;
	unsigned	n;
	const struct tenant *t;
	double		had[TENANTS];		/* ns */
};

#define PLAIN	{ .limit = 0 }

static int64_t
cost_of(const struct tenant *t)
{
	return ((int64_t)((t->cost > 0 ? t->cost : 1) * (double)MS));
}

static uint32_t
weight_of(const struct tenant *t)
{
	return ((uint32_t)((t->weight > 0 ? t->weight : 1) * REL_WEIGHT_ONE));
}

static void
server_init(struct server *s, unsigned policy, unsigned n,
    const struct tenant *t)
{
	unsigned i;

	*s = (struct server){ .n = n, .t = t };
	s->w = world_new(REL_New(policy, SLOTS, REL_OPT_ALL, NULL, NULL),
	    SLOTS, 1);
	for (i = 0; i < n; i++) {
		assert_int_equal(world_tenant(s->w, weight_of(&t[i])), i);
		world_estimate(s->w, i, t[i].estimate > 0 ?
		    (int64_t)(t[i].estimate * (double)MS) : cost_of(&t[i]), 0);
		REL_SetLimits(s->w->rel, s->w->tenant[i],
		    PART(t[i].reservation), PART(t[i].limit), 0);
	}
	for (i = 0; i < n; i++)
		world_group(s->w, i, t[i].group);
}

/* Everybody asks for all there is; a slot is free only while nobody may go */
static void
fill(struct server *s)
{
	struct world *w = s->w;
	unsigned i;

	for (i = 0; i < s->n; i++)
		while (!s->t[i].is_group && w->now >= s->t[i].from &&
		    w->waiting[i] < QUEUE)
			(void)world_enqueue(w, i, cost_of(&s->t[i]));
	w->when = INT64_MAX;
	while (w->nrunning < SLOTS &&
	    world_dequeue(w, w->nrunning, 0, NULL) != NULL)
		w->when = INT64_MAX;
}

static void
serve(struct server *s, int64_t until)
{
	struct world *w = s->w;
	struct req *r;
	unsigned i;

	while (w->now < until) {
		fill(s);
		for (i = 0; i < s->n; i++)
			if (s->t[i].from > w->now && s->t[i].from < w->when)
				w->when = s->t[i].from;
		r = world_share(w, w->when < until ? w->when : until);
		if (r == NULL)
			continue;
		s->had[r->tenant] += (double)r->cost;
		world_complete(w, r, r->cost, REL_SCALE_ONE);
	}
	assert_null(w->fault);
}

static double
part(const struct server *s, unsigned tenant)
{
	return (s->had[tenant] / (double)s->w->now);
}

static void
assert_part(const struct server *s, unsigned policy, unsigned tenant,
    double least, double most)
{
	double got = part(s, tenant);

	if (got < least || got > most)
		fail_msg("%s: tenant %u has %.4f, not %.4f to %.4f",
		    REL_PolicyName(policy), tenant, got, least, most);
}

#define EACH_POLICY(u)	for (u = 0; u < REL_Policies(); u++)

/* Two policies charge nothing: there a reservation comes on top */
static int
charges(unsigned policy)
{
	return (strcmp(REL_PolicyName(policy), "fifo") &&
	    strcmp(REL_PolicyName(policy), "round-robin"));
}

/* What a burst and the requests that run may add, of LENGTH */
#define SLACK		0.005
#define ABOUT(x)	.least = (x) - SLACK, .most = (x) + SLACK

/* Each has the part that it has to have */
static void
judge(unsigned policy, unsigned n, const struct tenant *t)
{
	struct server s;
	unsigned i;

	server_init(&s, policy, n, t);
	serve(&s, LENGTH);
	for (i = 0; i < n; i++)
		if (t[i].most > 0)
			assert_part(&s, policy, i, t[i].least, t[i].most);
	world_free(&s.w);
}

static void
test_limit(void **state)
{
	static const struct tenant t[] = {
		{ .limit = .25, ABOUT(.25) },
		{ ABOUT(.75) },
	};
	unsigned u;

	(void)state;
	EACH_POLICY(u)
		judge(u, 2, t);
}

/* Alone it has no more, though slots are free */
static void
test_limit_alone(void **state)
{
	static const struct tenant t[] = {
		{ .limit = .25, .cost = .1, ABOUT(.25) },
	};
	unsigned u;

	(void)state;
	EACH_POLICY(u)
		judge(u, 1, t);
}

/* A limit above its share changes nothing */
static void
test_limit_above(void **state)
{
	static const struct tenant t[] = {
		{ .limit = .75, .least = .5 - 2 * SLACK, .most = .5 + SLACK },
		PLAIN,
	};

	(void)state;
	judge(0, 2, t);
}

static void
test_reservation(void **state)
{
	static const struct tenant t[TENANTS] = { { .reservation = .5 } };
	struct server s;
	unsigned u, i;

	(void)state;
	EACH_POLICY(u) {
		server_init(&s, u, TENANTS, t);
		serve(&s, LENGTH);
		assert_part(&s, u, 0, .5 - SLACK,
		    charges(u) ? .5 + 2 * SLACK : .55 + SLACK);
		/* Without U others' turns are as long as what it owes */
		for (i = 1; i < TENANTS &&
		    strcmp(REL_PolicyName(u), "mr3-vf"); i++)
			assert_part(&s, u, i, (charges(u) ? .5 : .45) / 9 -
			    SLACK, .5 / 9 + SLACK);
		world_free(&s.w);
	}
}

/* The larger of reservation and share, not the sum */
static void
test_share_is_larger(void **state)
{
	static const struct tenant t[] = {
		{ .reservation = .25, ABOUT(.5) },
		PLAIN,
	};
	unsigned u;

	(void)state;
	EACH_POLICY(u)
		if (charges(u))
			judge(u, 2, t);
}

/* Requests of 1 ms that look like 0.25 or 4: what they cost counts */
static void
test_settled(void **state)
{
	static const struct tenant t[] = {
		{ .limit = .2, .estimate = .25, .most = .2 + SLACK },
		{ .reservation = .5, .estimate = 4,
		    .least = .5 - 2 * SLACK, .most = 1 },
		PLAIN, PLAIN, PLAIN, PLAIN,
	};
	unsigned u;

	(void)state;
	EACH_POLICY(u)
		judge(u, 6, t);
}

/* Not used, it is lent; it comes back at once, and was not saved */
static void
test_lent(void **state)
{
	static const struct tenant t[TENANTS] = {
		{ .reservation = .5, .from = LENGTH / 2 } };
	struct server s;
	unsigned u;
	double ms;

	(void)state;
	EACH_POLICY(u) {
		server_init(&s, u, TENANTS, t);
		serve(&s, LENGTH / 2);
		assert_part(&s, u, 1, 1. / 9 - SLACK, 1. / 9 + SLACK);
		assert_true(s.had[0] == 0);
		serve(&s, LENGTH / 2 + 100 * MS);
		ms = s.had[0] / (double)MS;
		if (ms < 50 - 2 * SLOTS || ms > 50 + 10 + 2 * SLOTS)
			fail_msg("%s: %.1f ms of the first 100",
			    REL_PolicyName(u), ms);
		world_free(&s.w);
	}
}

/* More than there is: each has less, nobody more than another */
static void
test_oversubscribed(void **state)
{
	static const struct tenant t[] = {
		{ .reservation = .8, ABOUT(.5) },
		{ .reservation = .8, ABOUT(.5) },
	};
	unsigned u;

	(void)state;
	EACH_POLICY(u)
		judge(u, 2, t);
}

/* When it may go on is said to the ns */
static void
test_when(void **state)
{
	static const struct tenant t[] = { { .limit = .25, .cost = 4 } };
	enum rel_answer a;
	struct server s;
	struct req *r;

	(void)state;
	server_init(&s, 0, 1, t);
	s.w->now = 100 * MS;
	(void)world_enqueue(s.w, 0, 4 * MS);
	(void)world_enqueue(s.w, 0, 4 * MS);
	assert_non_null(r = world_dequeue(s.w, 0, 0, NULL));
	assert_null(world_dequeue(s.w, 1, 0, &a));
	assert_int_equal(a, REL_NOT_YET);
	assert_int_equal(s.w->when, 100 * MS - MCLOCK_BURST + 16 * MS);
	/* It cost twice as much: twice as long */
	world_complete(s.w, r, 8 * MS, REL_SCALE_ONE);
	s.w->now = s.w->when;
	assert_null(world_dequeue(s.w, 1, 0, &a));
	assert_int_equal(s.w->when, 100 * MS - MCLOCK_BURST + 32 * MS);
	s.w->now = s.w->when - 1;
	assert_null(world_dequeue(s.w, 1, 0, &a));
	s.w->now++;
	assert_non_null(world_dequeue(s.w, 1, 0, &a));
	world_free(&s.w);
}

/* Many limits end at once: a decision opens a few, the next ones the others */
static void
test_many_due(void **state)
{
	struct tenant t[WORLD_TENANTS];
	struct server s;
	enum rel_answer a;
	unsigned i, shut;

	(void)state;
	for (i = 0; i < WORLD_TENANTS; i++)
		t[i] = (struct tenant){ .limit = .001, .cost = 1 };
	server_init(&s, 0, WORLD_TENANTS, t);
	for (i = 0; i < WORLD_TENANTS; i++) {
		(void)world_enqueue(s.w, i, MS);
		(void)world_enqueue(s.w, i, MS);
	}
	REL_SetSlots(s.w->rel, 2 * WORLD_TENANTS);
	s.w->nslots = 2 * WORLD_TENANTS;
	for (i = 0; i < WORLD_TENANTS; i++)
		assert_non_null(world_dequeue(s.w, i, 0, NULL));
	assert_null(world_dequeue(s.w, i, 0, &a));
	assert_int_equal(a, REL_NOT_YET);
	shut = REL_Throttled(s.w->rel);
	assert_int_equal(shut, WORLD_TENANTS);
	s.w->now += 10000 * MS;
	for (; i < 2 * WORLD_TENANTS; i++) {
		assert_non_null(world_dequeue(s.w, i, 0, NULL));
		assert_in_range(shut - REL_Throttled(s.w->rel), 0, 16);
		shut = REL_Throttled(s.w->rel);
	}
	assert_int_equal(shut, 0);
	/* Those that are left are due, and not before now: the first 16 need a
	 * resource that is closed */
	for (i = 0; i < WORLD_TENANTS; i++) {
		(void)world_enqueue(s.w, i, MS);
		world_estimate(s.w, i, 0, MS);
	}
	s.w->now += 10000 * MS;
	assert_null(world_dequeue(s.w, 0, REL_MASK(REL_NET), &a));
	assert_int_equal(a, REL_NOT_YET);
	assert_int_equal(s.w->when, s.w->now);
	assert_null(s.w->fault);
	world_free(&s.w);
}

/*--------------------------------------------------------------------
 * Groups
 */

/* Under the policies that have shares */
static void
judge_shares(unsigned n, const struct tenant *t)
{
	unsigned u;

	EACH_POLICY(u)
		if (charges(u))
			judge(u, n, t);
}

/* A group has what its weight says, however many its members are, and each
 * of them what its weight says of that */
static void
test_group(void **state)
{
	static const struct tenant t[] = {
		{ .is_group = 1, .weight = 2 },
		{ .is_group = 1 },
		{ .group = 1, ABOUT(.3) },
		{ .group = 1, .weight = .5, ABOUT(.15) },
		{ .group = 1, .weight = .1666, ABOUT(.05) },
		{ .group = 2, ABOUT(.25) },
		{ ABOUT(.25) },
	};

	(void)state;
	judge_shares(7, t);
}

/* Costs differ, and estimates are wrong */
static void
test_group_settled(void **state)
{
	static const struct tenant t[] = {
		{ .is_group = 1 },
		{ .group = 1, .cost = 2, .estimate = .5, ABOUT(.25) },
		{ .group = 1, .cost = .25, .estimate = 4, ABOUT(.25) },
		{ .least = .5 - 2 * SLACK, .most = .5 + 2 * SLACK },
	};

	(void)state;
	judge_shares(4, t);
}

/* What a member does not use is its siblings', what a group does not use is
 * the others'; and it comes back */
static void
test_group_lent(void **state)
{
	static const struct tenant t[] = {
		{ .is_group = 1 },
		{ .is_group = 1 },
		{ .group = 1, ABOUT(.5 / 2 + .25 / 2) },
		{ .group = 1, .from = LENGTH / 2, ABOUT(.25 / 2) },
		{ .group = 2, ABOUT(.5) },
	}, u[] = {
		{ .is_group = 1 },
		{ .is_group = 1 },
		{ .group = 1, ABOUT(.5 / 2 + .25 / 2) },
		{ .group = 1, ABOUT(.5 / 2 + .25 / 2) },
		{ .group = 2, .from = LENGTH / 2, ABOUT(.5 / 2) },
	};

	(void)state;
	judge_shares(5, t);
	judge_shares(5, u);
}

/* Of a group, of a member, and of both */
static void
test_group_limits(void **state)
{
	static const struct tenant t[] = {
		{ .is_group = 1, .limit = .25 },
		{ .group = 1, ABOUT(.125) },
		{ .group = 1, ABOUT(.125) },
		{ ABOUT(.75) },
	}, u[] = {
		{ .is_group = 1 },
		{ .group = 1, .limit = .125, ABOUT(.125) },
		{ .group = 1, ABOUT(.375) },
		{ ABOUT(.5) },
	}, v[] = {
		{ .is_group = 1, .limit = .5 },
		{ .group = 1, .limit = .125, ABOUT(.125) },
		{ .group = 1, ABOUT(.375) },
	};

	(void)state;
	judge_shares(4, t);
	judge_shares(4, u);
	judge_shares(3, v);
}

static void
test_group_reservations(void **state)
{
	static const struct tenant t[] = {
		{ .is_group = 1, .reservation = .5 },
		{ .group = 1, ABOUT(.25) },
		{ .group = 1, ABOUT(.25) },
		PLAIN, PLAIN, PLAIN, PLAIN,
	}, u[] = {
		{ .is_group = 1 },
		{ .group = 1, .reservation = .375, ABOUT(.375) },
		{ .group = 1, ABOUT(.125) },
		{ ABOUT(.5) },
	};
	unsigned p;

	(void)state;
	EACH_POLICY(p) {
		/* Without U others' turns are as long as what it owes */
		if (!charges(p) || !strcmp(REL_PolicyName(p), "mr3-vf"))
			continue;
		judge(p, 7, t);
		judge(p, 4, u);
	}
}

/* Its reserved turns do not move the others' clock: one that comes late has its
 * turn as soon as one that always asks */
static void
test_group_late(void **state)
{
	static const struct tenant t[] = {
		{ .is_group = 1 }, { .group = 1, .reservation = .8 },
		{ .group = 1 }, { .group = 1 },
	};
	struct server s;
	struct req *r;
	unsigned u, i;

	(void)state;
	EACH_POLICY(u) {
		if (!strcmp(REL_PolicyName(u), "fifo"))
			continue;	/* it heeds no groups */
		server_init(&s, u, 4, t);
		for (i = 0; i < 1000 + 20; i++) {
			while (s.w->waiting[1] < 2)
				(void)world_enqueue(s.w, 1, MS);
			while (s.w->waiting[2] < 2)
				(void)world_enqueue(s.w, 2, MS);
			if (i == 1000)
				(void)world_enqueue(s.w, 3, MS);
			r = world_dequeue(s.w, 0, 0, NULL);
			assert_non_null(r);
			s.w->now += MS;
			world_complete(s.w, r, MS, REL_SCALE_ONE);
		}
		assert_int_equal(s.w->waiting[3], 0);
		world_free(&s.w);
	}
}

/* A member's own limit, also under a policy that heeds no groups */
static void
test_member_limit(void **state)
{
	static const struct tenant t[] = {
		{ .is_group = 1 }, { .group = 1, .limit = .1 },
	};
	struct server s;
	unsigned u, i;

	(void)state;
	EACH_POLICY(u) {
		server_init(&s, u, 2, t);
		REL_SetSlots(s.w->rel, 100);
		s.w->nslots = 100;
		s.w->now = 1000 * MS;
		for (i = 0; i < 100; i++)
			(void)world_enqueue(s.w, 1, MS);
		/* 10 ms of burst, at 10 ms a request */
		for (i = 0; world_dequeue(s.w, i, 0, NULL) != NULL; i++)
			continue;
		assert_in_range(i, 1, 2);
		world_free(&s.w);
	}
}

/* While the link is closed another member has the turn */
static void
test_group_closed(void **state)
{
	static const struct tenant t[] = {
		{ .is_group = 1 }, { .group = 1 }, { .group = 1 },
	};
	enum rel_answer a;
	struct server s;
	struct req *r;
	unsigned u, i;

	(void)state;
	EACH_POLICY(u) {
		if (!strcmp(REL_PolicyName(u), "fifo"))
			continue;	/* it heeds no closed resource */
		server_init(&s, u, 3, t);
		world_estimate(s.w, 1, MS / 100, MS);
		for (i = 0; i < 2; i++) {
			(void)world_enqueue(s.w, 1, MS);
			(void)world_enqueue(s.w, 2, MS);
		}
		for (i = 0; i < 2; i++) {
			r = world_dequeue(s.w, i, REL_MASK(REL_NET), NULL);
			assert_non_null(r);
			assert_int_equal(r->tenant, 2);
			REL_Progress(s.w->rel, &r->node, REL_NET, 0);
		}
		assert_null(world_dequeue(s.w, 2, REL_MASK(REL_NET), &a));
		assert_int_equal(a, REL_NOT_YET);
		for (i = 2; i < 4; i++) {
			r = world_dequeue(s.w, i, 0, NULL);
			assert_non_null(r);
			assert_int_equal(r->tenant, 1);
			world_complete(s.w, r, MS, REL_SCALE_ONE);
		}
		assert_null(s.w->fault);
		world_free(&s.w);
	}
}

/* Serve one request, and return its tenant's number.  Before it, the tenants 1
 * to n have so many waiting requests, which cost so many ms */
static unsigned
serve_costs(struct server *s, unsigned closed, unsigned wait, unsigned n,
    const int64_t ms[])
{
	struct req *r;
	unsigned t;

	for (t = 1; t <= n; t++)
		while (s->w->waiting[t] < wait)
			(void)world_enqueue(s->w, t, ms[t] * MS);
	r = world_dequeue(s->w, 0, closed, NULL);
	assert_non_null(r);
	t = r->tenant;
	s->w->now += ms[t] * MS;
	world_complete(s->w, r, ms[t] * MS, REL_SCALE_ONE);
	return (t);
}

/* Two tenants' requests, and those of others that wait already */
static unsigned
serve_of(struct server *s, unsigned closed, unsigned wait)
{
	static const int64_t ms[] = { 0, 1, 1, 1 };

	return (serve_costs(s, closed, wait, 2, ms));
}

static unsigned
serve_one(struct server *s, unsigned closed)
{
	return (serve_of(s, closed, 2));
}

/* What the link's members missed while it was closed: a little of it is made
 * up for, at nobody's cost for long */
static void
test_group_opens(void **state)
{
	static const struct tenant t[] = {
		{ .is_group = 1 }, { .group = 1 }, { .group = 1 },
	};
	struct server s;
	unsigned u, i, n;

	(void)state;
	EACH_POLICY(u) for (unsigned wait = 1; wait <= 2; wait++) {
		if (!strcmp(REL_PolicyName(u), "fifo"))
			continue;	/* it heeds no closed resource */
		server_init(&s, u, 3, t);
		world_estimate(s.w, 1, MS / 100, MS);
		for (i = 0; i < 1000; i++)
			assert_int_equal(serve_of(&s, REL_MASK(REL_NET), wait),
			    2);
		for (i = n = 0; i < 100; i++)
			n += serve_one(&s, 0) == 2;
		print_message("%s: %u of 100\n", REL_PolicyName(u), n);
		assert_in_range(n, 45, 50);
		world_free(&s.w);
	}
}

/* A member that comes late to a link that is closed most of the time does not
 * wait for what others of the link missed */
static void
test_group_closed_late(void **state)
{
	static const struct tenant t[] = {
		{ .is_group = 1 }, { .group = 1 }, { .group = 1 }, { .group = 1 },
	};
	struct server s;
	unsigned u, i;

	(void)state;
	EACH_POLICY(u) {
		if (!strcmp(REL_PolicyName(u), "fifo"))
			continue;	/* it heeds no closed resource */
		server_init(&s, u, 4, t);
		world_estimate(s.w, 1, MS / 100, MS);
		world_estimate(s.w, 3, MS / 100, MS);
		for (i = 0; i < 8 * 100; i++)
			(void)serve_one(&s, i % 8 < 6 ? REL_MASK(REL_NET) : 0);
		(void)world_enqueue(s.w, 3, MS);
		for (i = 0; s.w->waiting[3] > 0; i++)
			(void)serve_one(&s, i % 8 < 6 ? REL_MASK(REL_NET) : 0);
		print_message("%s: %u cycles\n", REL_PolicyName(u), (i + 7) / 8);
		assert_in_range((i + 7) / 8, 1, 3);
		world_free(&s.w);
	}
}

/* The link's member asks for much at a time: it is not behind the other one for
 * what that had while the link was closed, and has its turn when it opens.
 * With a group and without */
static void
judge_large(unsigned policy, const struct tenant *t)
{
	static const int64_t ms[] = { 0, 20, 1 };
	unsigned closed = 0, i, n = 0;
	struct server s;

	server_init(&s, policy, 3, t);
	world_estimate(s.w, 1, MS / 100, 20 * MS);
	for (i = 0; i < 2300; i++) {
		if (serve_costs(&s, closed > 0 ? REL_MASK(REL_NET) : 0, 2, 2,
		    ms) == 1) {
			closed = 20;
			n++;
		} else
			closed -= closed > 0;
	}
	print_message("%s: %u of 2300\n", REL_PolicyName(policy), n);
	assert_in_range(n, 98, 2300 / 21 + 1);
	world_free(&s.w);
}

static void
test_closed_large(void **state)
{
	static const struct tenant t[] = {
		{ .is_group = 1 }, { .group = 1 }, { .group = 1 },
	};
	static const struct tenant top[] = { PLAIN, PLAIN, PLAIN };
	unsigned u;

	(void)state;
	EACH_POLICY(u) {
		if (!strcmp(REL_PolicyName(u), "fifo"))
			continue;	/* it heeds no closed resource */
		judge_large(u, t);
		judge_large(u, top);
	}
}

/* The link is closed for a moment.  The sibling, whose requests cost 100 times as
 * much, gains what it has in such moments, but nothing where a tenant outside
 * has them */
static void
test_group_blink(void **state)
{
	static const struct tenant t[] = {
		{ .is_group = 1 }, { .group = 1 }, { .group = 1 }, PLAIN,
	};
	static const int64_t ms[] = { 0, 1, 100, 1 };
	unsigned u, i, n[4];
	struct server s;

	(void)state;
	EACH_POLICY(u) {
		if (!charges(u) || !strcmp(REL_PolicyName(u), "mr3-vf"))
			continue;
		server_init(&s, u, 4, t);
		world_estimate(s.w, 1, MS / 100, MS);
		world_estimate(s.w, 2, 100 * MS, 0);
		memset(n, 0, sizeof n);
		for (i = 0; i < 20000; i++)
			n[serve_costs(&s, i % 50 == 0 ? REL_MASK(REL_NET) : 0,
			    2, 3, ms)]++;
		print_message("%s: %u, %u and %u\n", REL_PolicyName(u), n[1],
		    n[2], n[3]);
		assert_in_range(n[1], n[2] * 40, n[2] * 110);
		world_free(&s.w);
	}
}

/* A group with a member of each kind has no more than tenants that are of one
 * kind, though it is among these while the link is open, among those while it
 * is closed */
static void
test_group_mixed(void **state)
{
	static const struct tenant t[] = {
		{ .is_group = 1 }, { .group = 1 }, { .group = 1 }, PLAIN, PLAIN,
	};
	static const int64_t ms[] = { 0, 1, 1, 1, 1 };
	unsigned u, i, n[5];
	struct server s;

	(void)state;
	EACH_POLICY(u) {
		if (!charges(u) || !strcmp(REL_PolicyName(u), "mr3-vf"))
			continue;
		server_init(&s, u, 5, t);
		world_estimate(s.w, 1, MS / 100, MS);
		world_estimate(s.w, 3, MS / 100, MS);
		memset(n, 0, sizeof n);
		for (i = 0; i < 5000; i++)
			n[serve_costs(&s, i % 5 > 1 ? REL_MASK(REL_NET) : 0,
			    2, 4, ms)]++;
		print_message("%s: %u and %u, %u, %u\n", REL_PolicyName(u), n[1],
		    n[2], n[3], n[4]);
		assert_in_range(n[1] + n[2], 0, n[4] + n[4] / 5);
		world_free(&s.w);
	}
}

/* `observe`, then `on`: what was used meanwhile is nobody's debt */
static void
test_group_after_observe(void **state)
{
	static const struct tenant t[] = {
		{ .is_group = 1 }, { .group = 1 }, { .group = 1 },
	};
	struct server s;
	struct req *r;
	unsigned u, i, n;

	(void)state;
	EACH_POLICY(u) {
		if (!strcmp(REL_PolicyName(u), "fifo"))
			continue;	/* it heeds no groups */
		server_init(&s, u, 3, t);
		REL_SetOptions(s.w->rel, REL_OPT_ALL & ~REL_OPT_LIMITS);
		for (i = 0; i < 1000; i++) {
			(void)world_enqueue(s.w, 1, MS);
			r = world_dequeue(s.w, 0, 0, NULL);
			assert_non_null(r);
			s.w->now += MS;
			world_complete(s.w, r, MS, REL_SCALE_ONE);
		}
		REL_SetOptions(s.w->rel, REL_OPT_ALL);
		for (i = n = 0; i < 100; i++)
			n += serve_one(&s, 0) == 1;
		assert_in_range(n, 48, 52);
		world_free(&s.w);
	}
}

/* Without turns (`observe`, fifo) the order is that of arrival */
static void
test_group_fifo(void **state)
{
	static const struct tenant t[] = {
		{ .is_group = 1 }, { .group = 1 }, { .group = 1 }, PLAIN,
	};
	static const unsigned order[] = { 1, 1, 2, 3, 1, 2, 3, 3 };
	struct server s;
	struct req *r;
	unsigned i;

	(void)state;
	server_init(&s, (unsigned)REL_PolicyByName("fifo"), 4, t);
	for (i = 0; i < 8; i++)
		(void)world_enqueue(s.w, order[i], MS);
	for (i = 0; i < 8; i++) {
		r = world_dequeue(s.w, 0, 0, NULL);
		assert_non_null(r);
		assert_int_equal(r->tenant, order[i]);
		if (i == 3)	/* what waits is regrouped, and back */
			assert_int_equal(REL_SetPolicy(s.w->rel, 0, 0) +
			    REL_SetPolicy(s.w->rel, (unsigned)
			    REL_PolicyByName("fifo"), 0), 0);
	}
	world_free(&s.w);
}

/* A member that leaves its group, or joins one, while its requests wait and
 * run, has its new share from then on */
static void
test_group_move(void **state)
{
	static const struct tenant t[] = {
		{ .is_group = 1, .weight = .1 }, { .group = 1 }, { .group = 1 },
		PLAIN,
	};
	struct server s;
	unsigned u;

	(void)state;
	EACH_POLICY(u) {
		if (!charges(u))
			continue;
		server_init(&s, u, 4, t);
		serve(&s, LENGTH / 4);
		assert_part(&s, u, 1, .02, .07);
		assert_part(&s, u, 3, .86, .93);
		memset(s.had, 0, sizeof s.had);
		world_group(s.w, 1, 0);
		serve(&s, LENGTH / 2);
		/* Of the two quarters of LENGTH the second is looked at */
		assert_part(&s, u, 1, .46 / 2, .49 / 2);
		assert_part(&s, u, 2, .03 / 2, .07 / 2);
		assert_part(&s, u, 3, .46 / 2, .49 / 2);
		memset(s.had, 0, sizeof s.had);
		world_group(s.w, 1, 1);
		serve(&s, LENGTH);
		assert_part(&s, u, 1, .02 / 2, .07 / 2);
		assert_part(&s, u, 3, .86 / 2, .93 / 2);
		world_free(&s.w);
	}
}

/* Nobody else's account begins anew when a busy tenant moves */
static void
test_group_move_accounts(void **state)
{
	static const struct tenant t[] = {
		{ .is_group = 1 }, { .group = 1 }, PLAIN,
	};
	struct rel_tenant_stat before, after;
	struct server s;
	struct req *r;
	unsigned i;

	(void)state;
	server_init(&s, 0, 3, t);
	for (i = 0; i < 4; i++) {
		(void)world_enqueue(s.w, 1, MS);
		(void)world_enqueue(s.w, 2, MS);
	}
	for (i = 0; i < 4; i++)
		assert_non_null(world_dequeue(s.w, i, 0, NULL));
	for (i = 0; i < s.w->nrunning; i++) {
		r = s.w->running[i];
		if (r->tenant != 2)
			continue;
		world_complete(s.w, r, 9 * MS, REL_SCALE_ONE);
		break;
	}
	REL_TenantStat(s.w->rel, s.w->tenant[2], &before);
	assert_true(before.account > 0);
	world_group(s.w, 1, 0);
	REL_TenantStat(s.w->rel, s.w->tenant[2], &after);
	assert_true(after.account == before.account);
	assert_int_equal(REL_Oldest(s.w->rel), 0);
	world_free(&s.w);
}

#define FRESH		10

/* Members that have one request each, and are gone, do not keep one that asks
 * again from its turn: it has its part among those that wait */
static void
test_group_fresh(void **state)
{
	struct tenant t[2 + FRESH] = { { .is_group = 1 }, { .group = 1 } };
	struct server s;
	struct req *r;
	unsigned i, n, had = 0;

	(void)state;
	for (i = 2; i < 2 + FRESH; i++)
		t[i] = (struct tenant){ .group = 1 };
	server_init(&s, 0, 2 + FRESH, t);
	for (i = 1; i < 2 + FRESH; i++)
		(void)world_enqueue(s.w, i, MS);
	(void)world_enqueue(s.w, 1, MS);
	for (n = 0; n < 50 * (FRESH + 1); n++) {
		s.w->now += MS;
		assert_non_null(r = world_dequeue(s.w, 0, 0, NULL));
		i = r->tenant;
		world_complete(s.w, r, MS, REL_SCALE_ONE);
		had += i == 1;
		if (i > 1) {
			world_group(s.w, i, 0);
			world_renew(s.w, i, REL_WEIGHT_ONE);
			world_estimate(s.w, i, MS, 0);
			world_group(s.w, i, 1);
		}
		(void)world_enqueue(s.w, i, MS);
	}
	assert_in_range(had, 49, 60);
	assert_null(s.w->fault);
	world_free(&s.w);
}

/* What a member may have of a buffer that it shares with its siblings */
static void
test_group_part(void **state)
{
	static const struct tenant t[] = {
		{ .is_group = 1 }, { .group = 1 }, { .group = 1 }, PLAIN,
	};
	struct server s;

	(void)state;
	server_init(&s, 0, 4, t);
	assert_int_equal(REL_GroupPart(s.w->tenant[3], 10), 10);
	assert_int_equal(REL_GroupPart(s.w->tenant[1], 10), 10);
	(void)world_enqueue(s.w, 2, MS);
	assert_int_equal(REL_GroupPart(s.w->tenant[1], 10), 5);
	assert_int_equal(REL_GroupPart(s.w->tenant[2], 10), 10);
	(void)world_enqueue(s.w, 1, MS);
	assert_int_equal(REL_GroupPart(s.w->tenant[2], 1), 1);
	world_free(&s.w);
}

/* Shares are of the group's, and of who waits */
static void
test_group_share(void **state)
{
	static const struct tenant t[] = {
		{ .is_group = 1, .weight = 3 },
		{ .group = 1 },
		{ .group = 1, .weight = 2 },
		PLAIN,
	};
	struct server s;

	(void)state;
	server_init(&s, 0, 4, t);
	assert_true(REL_Share(s.w->rel, s.w->tenant[1]) == 1);
	(void)world_enqueue(s.w, 3, MS);
	assert_true(REL_Share(s.w->rel, s.w->tenant[0]) == .75);
	assert_true(REL_Share(s.w->rel, s.w->tenant[1]) == .75);
	(void)world_enqueue(s.w, 2, MS);
	assert_true(REL_Share(s.w->rel, s.w->tenant[1]) == .25);
	assert_true(REL_Share(s.w->rel, s.w->tenant[2]) == .75);
	assert_true(REL_Share(s.w->rel, s.w->tenant[3]) == .25);
	assert_int_equal(REL_GroupWaiting(s.w->tenant[1]), 1);
	assert_int_equal(REL_Backlogged(s.w->rel), 2);
	world_free(&s.w);
}

/*--------------------------------------------------------------------*/

/* A closed resource is closed for reservations, too; others pass */
static void
test_closed(void **state)
{
	static const struct tenant t[] = { { .reservation = .5 },
	    { .reservation = .5 }, PLAIN };
	enum rel_answer a;
	struct server s;
	unsigned u, i;
	struct req *r;

	(void)state;
	EACH_POLICY(u) {
		if (!strcmp(REL_PolicyName(u), "fifo"))
			continue;	/* it heeds no closed resource */
		server_init(&s, u, 3, t);
		world_estimate(s.w, 0, MS / 100, MS);
		for (i = 0; i < 2; i++)
			(void)world_enqueue(s.w, i, MS);
		s.w->now = MS;
		assert_non_null(r = world_dequeue(s.w, 0, REL_MASK(REL_NET),
		    NULL));
		assert_int_equal(r->tenant, 1);
		assert_null(world_dequeue(s.w, 0, REL_MASK(REL_NET), &a));
		assert_int_equal(a, REL_NOT_YET);
		assert_non_null(r = world_dequeue(s.w, 0, 0, NULL));
		assert_int_equal(r->tenant, 0);
		world_free(&s.w);
	}
}

#define GROUPS		2

/* Whatever changes meanwhile, nothing is lost, and all goes in its order */
static void
test_random(void **state)
{
	static const struct tenant t[TENANTS] = {
		{ .is_group = 1 }, { .is_group = 1 }, { .group = 1 },
		{ .group = 2 },
	};
	struct server s;
	uint64_t rng;
	unsigned seed, i, n;

	(void)state;
	for (seed = 0; seed < 80; seed++) {
		rng = seed;
		server_init(&s, seed % REL_Policies(), TENANTS, t);
		for (n = 0; n < 4000; n++) {
			i = (unsigned)rng_below(&rng, TENANTS);
			s.w->now += (int64_t)rng_below(&rng, MS);
			switch (rng_below(&rng, 9)) {
			case 0:
				REL_SetLimits(s.w->rel, s.w->tenant[i],
				    (uint32_t)rng_below(&rng, 3) * 9999,
				    (uint32_t)rng_below(&rng, 3) * 999,
				    s.w->now);
				break;
			case 1:
				if (rng_below(&rng, 20) == 0)
					(void)REL_SetPolicy(s.w->rel,
					    (unsigned)rng_below(&rng,
					    REL_Policies()), s.w->now);
				break;
			case 2:
				world_estimate(s.w, i,
				    (int64_t)rng_below(&rng, MS),
				    (int64_t)rng_below(&rng, MS));
				break;
			case 3:
				i = (unsigned)rng_below(&rng, WORLD_REQS);
				if (s.w->reqs[i].state == REL_WAITING)
					world_cancel(s.w, &s.w->reqs[i]);
				break;
			case 4:
			case 5:
				if (i >= GROUPS && s.w->nwaiting < 500)
					(void)world_enqueue(s.w, i, MS);
				break;
			case 7:
				if (i >= GROUPS && rng_below(&rng, 9) == 0)
					world_group(s.w, i, (unsigned)
					    rng_below(&rng, GROUPS + 1));
				break;
			case 6:
				(void)world_dequeue(s.w,
				    (unsigned)rng_below(&rng, SLOTS),
				    (unsigned)rng_below(&rng, 4), NULL);
				break;
			default:
				if (s.w->nrunning > 0)
					world_complete(s.w, s.w->running[0],
					    (int64_t)rng_below(&rng, 2 * MS),
					    REL_SCALE_ONE);
			}
			conform_counts(s.w);
			assert_null(s.w->fault);
		}
		/* Without limits all may go */
		for (i = 0; i < TENANTS; i++)
			REL_SetLimits(s.w->rel, s.w->tenant[i], 0, 0,
			    s.w->now);
		while (s.w->nwaiting > 0) {
			while (s.w->nrunning > 0)
				world_complete(s.w, s.w->running[0], 0,
				    REL_SCALE_ONE);
			assert_non_null(world_dequeue(s.w, 0, 0, NULL));
		}
		assert_null(s.w->fault);
		world_free(&s.w);
	}
}

/*--------------------------------------------------------------------*/

#define NODES 200

static void
test_heap(void **state)
{
	struct heap_node node[NODES], *heap = NULL;
	uint64_t rng = 1;
	int64_t least;
	unsigned n, i;

	(void)state;
	memset(node, 0, sizeof node);
	for (n = 0; n < 20000; n++) {
		i = (unsigned)rng_below(&rng, NODES);
		if (heap_has(&node[i]))
			heap_remove(&heap, &node[i]);
		else
			heap_insert(&heap, &node[i],
			    (int64_t)rng_below(&rng, 1000));
		least = INT64_MAX;
		for (i = 0; i < NODES; i++)
			if (heap_has(&node[i]) && node[i].key < least)
				least = node[i].key;
		assert_int_equal(heap == NULL ? INT64_MAX : heap->key, least);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_limit_alone),
		cmocka_unit_test(test_limit_above),
		cmocka_unit_test(test_reservation),
		cmocka_unit_test(test_share_is_larger),
		cmocka_unit_test(test_settled),
		cmocka_unit_test(test_lent),
		cmocka_unit_test(test_oversubscribed),
		cmocka_unit_test(test_when),
		cmocka_unit_test(test_closed),
		cmocka_unit_test(test_many_due),
		cmocka_unit_test(test_group),
		cmocka_unit_test(test_group_settled),
		cmocka_unit_test(test_group_lent),
		cmocka_unit_test(test_group_limits),
		cmocka_unit_test(test_group_reservations),
		cmocka_unit_test(test_group_late),
		cmocka_unit_test(test_member_limit),
		cmocka_unit_test(test_group_closed),
		cmocka_unit_test(test_group_opens),
		cmocka_unit_test(test_group_closed_late),
		cmocka_unit_test(test_closed_large),
		cmocka_unit_test(test_group_blink),
		cmocka_unit_test(test_group_mixed),
		cmocka_unit_test(test_group_after_observe),
		cmocka_unit_test(test_group_fifo),
		cmocka_unit_test(test_group_move),
		cmocka_unit_test(test_group_move_accounts),
		cmocka_unit_test(test_group_fresh),
		cmocka_unit_test(test_group_part),
		cmocka_unit_test(test_group_share),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_heap),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
