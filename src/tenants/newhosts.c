/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The lists of newhosts.h.  Each Host is in the list of its state.  EVIDENT and
 * PROVEN are ordered by `last`, so only the first Host of a list can be too
 * old.
 */

#include <assert.h>
#include <stddef.h>

#include "newhosts.h"
#include "releaser/list.h"

#define SECOND		INT64_C(1000000000)	/* ns */
#define TOKEN		1000U

static struct newhost *
first(const struct rel_link *l)
{
	return (LIST_OF(l->next, struct newhost, age));
}

/* Append the Host to the list of its new state */
static void
enter(struct newhosts *nh, struct newhost *h, enum new_state state)
{
	struct rel_link * const list[] = {
		[NEW_QUIET] = &nh->quiet,
		[NEW_EVIDENT] = &nh->evident,
		[NEW_PROVEN] = &nh->proven,
	};

	list_remove(&h->age);
	nh->nnew -= (unsigned)NEW_Is(h);
	nh->nevident -= h->state == NEW_EVIDENT;
	nh->nproven -= h->state == NEW_PROVEN;
	h->state = state;
	nh->nnew += (unsigned)NEW_Is(h);
	nh->nevident += h->state == NEW_EVIDENT;
	nh->nproven += h->state == NEW_PROVEN;
	if (state != NEW_EVIDENT)
		list_remove(&h->asks);
	if (state != NEW_NONE)
		list_append(list[state], &h->age);
}

void
NEW_Init(struct newhosts *nh, int64_t now)
{
	*nh = (struct newhosts){
		.ticked = now / SECOND,
		.tokens = NEW_FEW * TOKEN
	};
	list_init(&nh->quiet);
	list_init(&nh->evident);
	list_init(&nh->proven);
	list_init(&nh->asks);
}

void
NEW_Start(struct newhosts *nh, int64_t now)
{
	nh->open = now / SECOND + NEW_START;
}

void
NEW_Begin(struct newhosts *nh, struct newhost *h, int64_t now)
{
	assert(h->state == NEW_NONE);
	list_init(&h->age);
	list_init(&h->asks);
	h->evidence = 0;
	h->last = h->since = now / SECOND;
	enter(nh, h, NEW_QUIET);
}

void
NEW_End(struct newhosts *nh, struct newhost *h)
{
	if (h->state != NEW_NONE)
		enter(nh, h, NEW_NONE);
}

/* Return the evidence as seen from second s */
static uint64_t
evidence_at(const struct newhost *h, int64_t s)
{
	int64_t past = s - h->last;

	if (past >= NEW_WINDOW)
		return (0);
	if (past < 0)			/* another thread read a later now */
		past = 0;
	return (h->evidence << past & ((UINT64_C(1) << NEW_WINDOW) - 1));
}

unsigned
NEW_Seconds(const struct newhost *h, int64_t now)
{
	if (!NEW_Is(h))
		return (0);
	return ((unsigned)__builtin_popcountll(evidence_at(h, now / SECOND)));
}

int
NEW_Crowded(const struct newhosts *nh)
{
	return (nh->nevident > NEW_FEW);
}

/* Make at most `some` Hosts quiet whose evidence is too old */
static void
expire(struct newhosts *nh, int64_t s, unsigned some)
{
	struct newhost *h;

	for (; some > 0 && !list_empty(&nh->evident); some--) {
		h = first(&nh->evident);
		if (s - h->last < NEW_WINDOW)
			return;
		enter(nh, h, NEW_QUIET);
	}
}

void
NEW_Answer(struct newhosts *nh, struct newhost *h, int good, int64_t now)
{
	int64_t s = now / SECOND;

	if (h->state == NEW_PROVEN && s > h->last) {
		h->last = s;
		enter(nh, h, NEW_PROVEN);
	}
	if (!NEW_Is(h) || !good)
		return;
	if (h->state == NEW_EVIDENT && s <= h->last)
		return;			/* this second has evidence already */
	expire(nh, s, 2);
	h->evidence = evidence_at(h, s) | 1;
	h->last = s;
	enter(nh, h, NEW_EVIDENT);
	if (list_empty(&h->asks) && NEW_Seconds(h, now) >= NEW_PROOF)
		list_append(&nh->asks, &h->asks);
}

static void
add_tokens(struct newhosts *nh, int64_t s)
{
	unsigned a_second, most = NEW_FEW * TOKEN;
	int64_t past = s - nh->ticked;

	if (past <= 0)
		return;
	nh->ticked = s;
	a_second = nh->nproven * (TOKEN / 1000);
	if (a_second < TOKEN / NEW_EVERY)
		a_second = TOKEN / NEW_EVERY;
	if (NEW_Crowded(nh))
		most = TOKEN;
	if (a_second > most)
		most = a_second;
	past = past * a_second + nh->tokens;
	nh->tokens = past > most ? most : (unsigned)past;
}

/* Return the first Host that has proof now, if it may be proven, or NULL */
static struct newhost *
next_proven(struct newhosts *nh, int64_t now)
{
	struct newhost *h;
	unsigned u;

	for (u = 0; u < NEW_STEPS && !list_empty(&nh->asks); u++) {
		h = LIST_OF(nh->asks.next, struct newhost, asks);
		if (NEW_Seconds(h, now) < NEW_PROOF) {
			list_remove(&h->asks);	/* until it has proof again */
			continue;
		}
		if (now / SECOND < nh->open)
			return (h);
		if (nh->tokens < TOKEN || (NEW_Crowded(nh) &&
		    now / SECOND - h->since < NEW_AGE))
			return (NULL);
		nh->tokens -= TOKEN;
		return (h);
	}
	return (NULL);
}

struct newhost *
NEW_Next(struct newhosts *nh, int64_t now)
{
	struct newhost *h;
	int64_t s = now / SECOND;

	add_tokens(nh, s);
	expire(nh, s, NEW_STEPS);
	h = next_proven(nh, now);
	if (h != NULL) {
		h->last = s;
		enter(nh, h, NEW_PROVEN);
		return (h);
	}
	if (list_empty(&nh->proven))
		return (NULL);
	h = first(&nh->proven);
	if (s - h->last < NEW_IDLE)
		return (NULL);
	h->since = s;
	enter(nh, h, NEW_QUIET);
	return (h);
}
