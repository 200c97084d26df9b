/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The levels of shares.h.  A level is a list of shares.  The bit of a level is
 * set while its list is not empty.  A share moves when its bytes change its
 * level.
 */

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "shares.h"

enum {
	LEVEL_NONE = 0,		/* no bytes: in no list */
	LEVEL_KEPT,		/* at most its reservation */
	LEVEL_LEAST,
	LEVEL_FIRST = SHARES_LEVELS - 1	/* above its limit */
};

#define WEIGHTS		10	/* log2 of the largest weight */

static void
share_assert(const struct share *s)
{

	assert(s != NULL && s->weight > 0);
}

void
SHARES_Init(struct shares *in)
{

	assert(in != NULL);
	memset(in, 0, sizeof *in);
	in->magic = SHARES_MAGIC;
}

void
SHARE_Init(struct share *s, struct share *group, struct shares *members)
{

	assert(s != NULL);
	assert(group == NULL || (group->members != NULL && members == NULL));
	memset(s, 0, sizeof *s);
	s->group = group;
	s->members = members;
	s->weight = 1;
}

/* Return the level of a share if it had so many bytes. */
static unsigned
share_level(const struct share *s, uint64_t bytes)
{
	double level;

	if (bytes == 0)
		return (LEVEL_NONE);
	if (s->limit != 0 && bytes > s->limit)
		return (LEVEL_FIRST);
	if (bytes <= s->reservation)
		return (LEVEL_KEPT);
	level = floor((log2((double)bytes) + WEIGHTS - log2((double)s->weight)) *
	    SHARES_STEPS) + LEVEL_LEAST;
	return (level < LEVEL_FIRST - 1 ? (unsigned)level : LEVEL_FIRST - 1);
}

/*--------------------------------------------------------------------
 * Owners in the order of their levels, the highest first
 */

/* Return the first share of the highest level below this one, or NULL. */
static struct share *
shares_below(const struct shares *in, unsigned level)
{
	unsigned u = level / 64;
	uint64_t used;

	assert(in != NULL && in->magic == SHARES_MAGIC);
	used = level % 64 == 0 ? 0 :
	    in->used[u] << (64 - level % 64) >> (64 - level % 64);
	while (used == 0) {
		if (u == 0)
			return (NULL);
		used = in->used[--u];
	}
	return (in->level[u * 64 + 63 - (unsigned)__builtin_clzll(used)]);
}

static struct share *
shares_top(const struct shares *in)
{

	return (shares_below(in, LEVEL_FIRST + 1));
}

/* Return the set that a share competes in. */
static struct shares *
shares_of(struct shares *all, const struct share *s)
{

	return (s->group == NULL ? all : s->group->members);
}

/* Return the owner after this one, or NULL.  After NULL comes the first one. */
static struct share *
shares_walk(struct shares *all, const struct share *s)
{
	struct share *next;

	if (s == NULL)
		next = shares_top(all);
	else if (s->next != NULL)
		next = s->next;
	else
		next = shares_below(shares_of(all, s), s->level);
	if (next == NULL && s != NULL && s->group != NULL)
		return (shares_walk(all, s->group));
	if (next != NULL && next->members != NULL)
		next = shares_top(next->members);
	return (next);
}

/*--------------------------------------------------------------------
 * Bytes and settings
 */

static void
share_unlink(struct shares *all, struct share *s)
{
	struct shares *in = shares_of(all, s);

	if (all->look == s)
		all->look = shares_walk(all, s);
	*s->link = s->next;
	if (s->next != NULL)
		s->next->link = s->link;
	if (in->level[s->level] == NULL)
		in->used[s->level / 64] &= ~(UINT64_C(1) << s->level % 64);
}

/* Move a share to the level of its bytes.  If it moves, it is the first one
 * there. */
static void
share_settle(struct shares *all, struct share *s)
{
	struct shares *in = shares_of(all, s);
	unsigned level = share_level(s, s->bytes);

	if (level == s->level)
		return;
	if (s->level != LEVEL_NONE)
		share_unlink(all, s);
	s->level = level;
	if (level == LEVEL_NONE)
		return;
	s->next = in->level[level];
	if (s->next != NULL)
		s->next->link = &s->next;
	s->link = &in->level[level];
	in->level[level] = s;
	in->used[level / 64] |= UINT64_C(1) << level % 64;
}

void
SHARE_Set(struct shares *all, struct share *s, double weight,
    uint64_t reservation, uint64_t limit)
{

	share_assert(s);
	assert(weight >= .001 && weight <= 1 << WEIGHTS);
	s->weight = (float)weight;
	s->reservation = reservation;
	s->limit = limit;
	share_settle(all, s);
}

void
SHARE_Charge(struct shares *all, struct share *s, uint64_t bytes)
{

	share_assert(s);
	assert(s->members == NULL);
	for (; s != NULL; s = s->group) {
		s->bytes += bytes;
		share_settle(all, s);
	}
}

void
SHARE_Release(struct shares *all, struct share *s, uint64_t bytes)
{

	share_assert(s);
	assert(s->members == NULL);
	for (; s != NULL; s = s->group) {
		assert(bytes <= s->bytes);
		s->bytes -= bytes;
		share_settle(all, s);
	}
}

/*--------------------------------------------------------------------
 * The victim
 */

/* Return the victim among these, or NULL.  taker is one of them, or NULL. */
static struct share *
shares_pick(const struct shares *in, struct share *taker, uint64_t bytes)
{
	struct share *top = shares_top(in);

	if (top != NULL && taker != NULL && taker->bytes > 0 &&
	    share_level(taker, taker->bytes + bytes) >= top->level)
		return (taker);
	return (top);
}

static int
over(const struct share *s, uint64_t more)
{

	return (s->limit != 0 && s->bytes + more > s->limit);
}

struct share *
SHARE_Over(struct share *s, uint64_t more)
{

	share_assert(s);
	if (over(s, more) && s->bytes > 0)
		return (s);
	if (s->group != NULL && over(s->group, more))
		return (shares_pick(s->group->members, s, more));
	return (NULL);
}

struct share *
SHARES_Victim(struct share_search *search, struct shares *all,
    struct share *taker, uint64_t bytes)
{
	struct share *s = taker;

	if (s != NULL) {
		share_assert(s);
		assert(s->members == NULL);
		if (s->group != NULL)
			s = s->group;
	}
	s = shares_pick(all, s, bytes);
	if (s != NULL && s->members != NULL)
		s = shares_pick(s->members, taker != NULL &&
		    taker->group == s ? taker : NULL, bytes);
	search->all = all;
	search->first = s;
	search->at = NULL;
	return (s);
}

struct share *
SHARES_Next(struct share_search *search)
{

	if (search->first == NULL)
		return (NULL);
	do
		search->at = shares_walk(search->all, search->at);
	while (search->at != NULL && search->at == search->first);
	return (search->at);
}

/*--------------------------------------------------------------------
 * Idle objects
 */

int
SHARE_Kept(const struct share *s)
{

	return (s->level == LEVEL_KEPT ||
	    (s->group != NULL && s->group->level == LEVEL_KEPT));
}

struct share *
SHARES_Look(struct shares *all)
{
	struct share *s = all->look;

	assert(all->magic == SHARES_MAGIC);
	if (s == NULL)
		s = shares_walk(all, NULL);
	if (s != NULL)
		all->look = shares_walk(all, s);
	return (s);
}
