/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Memory by tenant: an input is a sequence of objects that come and leave, of
 * settings, of owners that end and begin, and of objects in transit.
 *
 * Plain numbers beside it say what each owner has.  After each call:
 *  - an owner has the bytes that it should have;
 *  - a search names each list that has bytes once, and no other;
 *  - of the owners outside of groups, the first that is named is above its
 *    limit if any is, and within its reservation only if all are. Otherwise
 *    it has about the most bytes per weight;
 *  - an owner above its limit has to lose an object;
 *  - each owner that is not within a reservation is looked at in turn;
 *  - an object may be in transit if there is room, by the rule of owners.h.
 */

#include "fuzz.h"

#include "memory/store.h"

#define OWNERS		12
#define OBJECTS		64
#define NEAR		.957		/* 2^(-1/16), see memory/shares.h */

struct thing {				/* an object */
	unsigned		owner;		/* a place in `who` */
	uint64_t		bytes;		/* 0: there is none */
	int			own;
};

struct who {
	uint32_t		n;		/* OWN_OTHER: it is no owner */
	int			is_group;
	struct own_settings	set;
	uint64_t		bytes[2];	/* of each kind of list */
	uint64_t		transit;	/* bytes */
};

struct fuzz {
	struct fuzz_in		in;
	struct owners		*owners;
	struct store		*store;
	struct who		who[OWNERS];
	struct thing		thing[OBJECTS];
	struct thing		moving[OBJECTS];	/* in transit */
	uint64_t		transit, limit;	/* bytes */
};

static struct who *
some_owner(struct fuzz *f)
{

	return (&f->who[fuzz_below(&f->in, OWNERS)]);
}

/* A size.  OBJECTS of them are 8 TiB at most (memory/shares.h). */
static uint64_t
some_bytes(struct fuzz *f)
{

	return (1 + (uint64_t)fuzz_number_to(&f->in, INT64_C(1) << 37));
}

/*--------------------------------------------------------------------
 * Calls
 */

static void
come(struct fuzz *f)
{
	struct thing *o = &f->thing[fuzz_below(&f->in, OBJECTS)];
	struct who *w = some_owner(f);

	if (o->bytes > 0 || w->is_group || w->n == OWN_OTHER)
		return;
	o->owner = (unsigned)(w - f->who);
	o->bytes = some_bytes(f);
	o->own = (int)fuzz_below(&f->in, 2);
	w->bytes[o->own] += o->bytes;
	OWN_Ref(f->owners, w->n);
	STORE_Add(f->store, w->n, o->bytes, o->own);
}

static void
leave(struct fuzz *f, struct thing *o)
{
	struct who *w = &f->who[o->owner];

	if (o->bytes == 0)
		return;
	w->bytes[o->own] -= o->bytes;
	if (fuzz_below(&f->in, 2) == 0)
		STORE_Remove(f->store, w->n, o->bytes, o->own);
	else {				/* evicted: its objcore goes later */
		STORE_Empty(f->store, w->n, o->bytes, o->own);
		STORE_Remove(f->store, w->n, 0, o->own);
	}
	OWN_Unref(f->owners, w->n);
	o->bytes = 0;
}

static void
set(struct fuzz *f)
{
	struct who *w = some_owner(f), *group = some_owner(f);
	struct own_settings *s = &w->set;

	if (w->n == OWN_OTHER)
		return;
	s->weight = .001 + 4 * fuzz_byte(&f->in);
	s->reservation = fuzz_below(&f->in, 2) ? some_bytes(f) : 0;
	s->limit = fuzz_below(&f->in, 2) ? some_bytes(f) : 0;
	s->group = !w->is_group && group->is_group && group->n != OWN_OTHER ?
	    group->n : OWN_NONE;
	OWN_Set(f->owners, w->n, s->weight, s->reservation, s->limit,
	    s->group);
}

/* An owner without objects ends, and another one begins. */
static void
begin(struct fuzz *f, struct who *w)
{
	const struct thing *o;
	struct who *u;

	if (w->bytes[0] + w->bytes[1] + w->transit > 0)
		return;
	for (o = f->thing; o < f->thing + OBJECTS; o++)
		assert(o->bytes == 0 || &f->who[o->owner] != w);
	for (u = f->who; u < f->who + OWNERS && w->is_group; u++)
		if (u->set.group == w->n && u->n != OWN_OTHER) {
			u->set.group = OWN_NONE;
			OWN_Set(f->owners, u->n, u->set.weight,
			    u->set.reservation, u->set.limit, OWN_NONE);
		}
	if (w->n != OWN_OTHER)
		OWN_End(f->owners, w->n);
	memset(w, 0, sizeof *w);
	w->n = OWN_Begin(f->owners);
	w->set.weight = 1;
	w->set.group = OWN_NONE;
	w->is_group = fuzz_below(&f->in, 4) == 0;
}

static void
transit(struct fuzz *f)
{
	struct thing *o = &f->moving[fuzz_below(&f->in, OBJECTS)];
	struct who *w = o->bytes > 0 ? &f->who[o->owner] : some_owner(f);
	uint64_t bytes = some_bytes(f);
	int room;

	if (w->n == OWN_OTHER || w->is_group)
		return;
	if (o->bytes > 0) {
		OWN_Transited(f->owners, w->n, o->bytes);
		f->transit -= o->bytes;
		w->transit -= o->bytes;
		o->bytes = 0;
	} else {
		room = bytes <= f->limit - f->transit &&
		    w->transit <= f->limit - f->transit;
		assert(OWN_Transit(f->owners, w->n, bytes, f->limit) == room);
		o->owner = (unsigned)(w - f->who);
		o->bytes = room ? bytes : 0;
		f->transit += o->bytes;
		w->transit += o->bytes;
	}
	assert(OWN_InTransit(f->owners, w->n) == w->transit);
	assert(OWN_AllInTransit(f->owners) == f->transit);
}

/*--------------------------------------------------------------------
 * The judge
 */

/* 0: above its limit.  2: within its reservation.  1: neither. */
static int
class_of(const struct who *w)
{
	uint64_t bytes = w->bytes[1];

	if (w->set.limit > 0 && bytes > w->set.limit)
		return (0);
	return (bytes <= w->set.reservation ? 2 : 1);
}

static void
judge_pair(const struct who *first, const struct who *other)
{

	assert(class_of(first) <= class_of(other));
	if (class_of(first) == 1 && class_of(other) == 1)
		assert((double)first->bytes[1] / first->set.weight >=
		    NEAR * (double)other->bytes[1] / other->set.weight);
}

/* The owner of this list */
static const struct who *
owner_of(const struct fuzz *f, unsigned list)
{
	const struct who *w;

	for (w = f->who; w < f->who + OWNERS; w++)
		if (w->n != OWN_OTHER && !w->is_group &&
		    STORE_List(w->n, 1) == list)
			return (w);
	return (NULL);
}

static void
judge_search(struct fuzz *f)
{
	struct store_search search;
	const struct who *w, *first = NULL;
	unsigned list, seen = 0;
	int common = 0;

	for (list = STORE_Victim(&search, f->store, OWN_OTHER, 0, 1);
	    list != STORE_END; list = STORE_Next(&search)) {
		if (list == STORE_COMMON) {
			assert(common++ == 0 && seen == 0);
			continue;
		}
		w = owner_of(f, list);
		assert(w != NULL && w->bytes[1] > 0);
		assert((seen & 1U << (w - f->who)) == 0);
		seen |= 1U << (w - f->who);
		if (first == NULL)
			first = w;
	}
	for (w = f->who; w < f->who + OWNERS; w++) {
		assert((w->bytes[1] > 0) == ((seen >> (w - f->who)) & 1));
		if (w->bytes[1] > 0 && w->set.group == OWN_NONE &&
		    first->set.group == OWN_NONE)
			judge_pair(first, w);
	}
}

/* Is it within its reservation, or its group's? */
static int
is_kept(const struct fuzz *f, const struct who *w)
{
	const struct who *u, *group = NULL;
	uint64_t bytes = 0;

	if (class_of(w) == 2)
		return (1);
	if (w->set.group == OWN_NONE)
		return (0);
	for (u = f->who; u < f->who + OWNERS; u++) {
		if (u->n == OWN_OTHER)
			continue;
		if (u->is_group && u->n == w->set.group)
			group = u;
		else if (!u->is_group && u->set.group == w->set.group)
			bytes += u->bytes[1];
	}
	assert(group != NULL);
	return (group->set.limit == 0 || bytes <= group->set.limit ?
	    bytes <= group->set.reservation : 0);
}

static void
judge_look(struct fuzz *f)
{
	const struct who *w;
	unsigned list, seen = 0, u;

	for (u = 0; u < 2 * OWNERS; u++) {
		list = STORE_Look(f->store);
		if (list == STORE_END)
			continue;
		w = owner_of(f, list);
		assert(w != NULL && w->bytes[1] > 0 && !is_kept(f, w));
		seen |= 1U << (w - f->who);
	}
	for (w = f->who; w < f->who + OWNERS; w++)
		if (w->bytes[1] > 0 && !is_kept(f, w))
			assert(seen >> (w - f->who) & 1);
}

static void
judge(struct fuzz *f)
{
	const struct who *w, *loser;
	unsigned list;

	/* The shares of an owner follow its settings at the next call for it.  The
	 * bytes of a group are those of members that followed. */
	for (w = f->who; w < f->who + OWNERS; w++)
		if (w->n != OWN_OTHER && !w->is_group)
			(void)STORE_Over(f->store, w->n, 0);
	for (w = f->who; w < f->who + OWNERS; w++) {
		if (w->n == OWN_OTHER)
			continue;
		assert(w->is_group || OWN_Bytes(f->owners, w->n) ==
		    w->bytes[0] + w->bytes[1]);
		if (w->is_group)
			continue;
		list = STORE_Over(f->store, w->n, 0);
		if (list == STORE_END) {
			assert(w->bytes[1] == 0 || class_of(w) > 0);
			continue;
		}
		loser = owner_of(f, list);
		assert(loser == w || (loser != NULL &&
		    loser->set.group == w->set.group));
		assert(loser->bytes[1] > 0);
	}
	judge_search(f);
	judge_look(f);
}

static void
call(struct fuzz *f)
{

	switch (fuzz_below(&f->in, 16)) {
	case 0:
	case 1:
		set(f);
		break;
	case 2:
		begin(f, some_owner(f));
		break;
	case 3:
	case 4:
		transit(f);
		break;
	case 5:
	case 6:
	case 7:
	case 8:
		leave(f, &f->thing[fuzz_below(&f->in, OBJECTS)]);
		break;
	default:
		come(f);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fuzz f = { .in = { data, len } };
	unsigned u;

	f.owners = OWN_New(OWNERS - 2);		/* so two are refused */
	assert(f.owners != NULL);
	f.store = STORE_New(f.owners);
	assert(f.store != NULL);
	f.limit = some_bytes(&f);
	for (u = 0; u < OWNERS; u++)
		begin(&f, &f.who[u]);
	while (f.in.left > 0) {
		call(&f);
		judge(&f);
	}
	STORE_Destroy(&f.store);
	OWN_Destroy(&f.owners);
	return (0);
}
