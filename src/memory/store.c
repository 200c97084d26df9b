/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The store of store.h: a share (shares.h) for each owner, which begins at
 * the first call for it.  When the settings of an owner or its group change,
 * the share gets them at the next call for that owner.
 */

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>

#include "store.h"

/* An owner in this store.  Zeros: it had no bytes yet. */
struct stored {
	struct share		share;
	uint32_t		serial;		/* of the settings in use */
	uint32_t		group;		/* by these */
};

/* A group in this store */
struct grouped {
	struct share		share;
	struct shares		members[1];
	uint32_t		serial;		/* of the settings in use */
};

struct store {
	struct owners		*owners;
	struct shares		all[1];
	struct grouped		**group;	/* of each owner, or NULL */
	uint64_t		common;		/* objects on that list */
	struct stored		stored[];
};

struct store *
STORE_New(struct owners *owners)
{
	struct store *s;
	size_t room = OWN_Room(owners);

	s = calloc(1, sizeof *s + room * sizeof *s->stored);
	if (s == NULL)
		return (NULL);
	s->group = calloc(room, sizeof *s->group);
	if (s->group == NULL) {
		free(s);
		return (NULL);
	}
	s->owners = owners;
	SHARES_Init(s->all);
	return (s);
}

void
STORE_Destroy(struct store **sp)
{
	struct store *s = *sp;
	uint32_t u;

	*sp = NULL;
	for (u = 0; u < OWN_Room(s->owners); u++)
		free(s->group[u]);
	free(s->group);
	free(s);
}

unsigned
STORE_List(uint32_t owner, int own)
{

	return (own ? owner + 1 : STORE_COMMON);
}

/*--------------------------------------------------------------------
 * Shares
 */

/* Return the group of this number with its settings of now.  NULL: there is no
 * memory. */
static struct grouped *
group_of(struct store *s, uint32_t n)
{
	struct grouped *g = s->group[n];
	uint32_t serial = OWN_Serial(s->owners, n);
	struct own_settings set;

	if (g == NULL) {
		g = calloc(1, sizeof *g);
		if (g == NULL)
			return (NULL);
		SHARES_Init(g->members);
		SHARE_Init(&g->share, NULL, g->members);
		g->serial = serial - 1;
		s->group[n] = g;
	}
	if (g->serial != serial) {
		g->serial = serial;
		OWN_Settings(s->owners, n, &set);
		SHARE_Set(s->all, &g->share, set.weight, set.reservation,
		    set.limit);
	}
	return (g);
}

/* Give a share its place, in a group or in none.  It keeps its bytes. */
static void
place(struct store *s, struct share *share, struct grouped *g)
{
	struct share *group = g == NULL ? NULL : &g->share;
	uint64_t bytes = share->bytes;

	if (share->weight > 0 && share->group == group)
		return;
	if (share->weight > 0)
		SHARE_Release(s->all, share, bytes);
	SHARE_Init(share, group, NULL);
	SHARE_Charge(s->all, share, bytes);
}

/* Return the share of an owner, with the settings of now, also of its group. */
static struct share *
share_of(struct store *s, uint32_t n)
{
	struct stored *o = &s->stored[n];
	uint32_t serial = OWN_Serial(s->owners, n);
	struct own_settings set;
	struct grouped *g = NULL;

	if (o->share.weight == 0 || o->serial != serial) {
		o->serial = serial;
		OWN_Settings(s->owners, n, &set);
		o->group = set.group;
		if (o->group != OWN_NONE)
			g = group_of(s, o->group);
		place(s, &o->share, g);
		SHARE_Set(s->all, &o->share, set.weight, set.reservation,
		    set.limit);
	} else if (o->group != OWN_NONE)
		(void)group_of(s, o->group);
	return (&o->share);
}

/*--------------------------------------------------------------------
 * Bytes
 */

void
STORE_Add(struct store *s, uint32_t owner, uint64_t bytes, int own)
{

	OWN_Add(s->owners, owner, bytes);
	if (own)
		SHARE_Charge(s->all, share_of(s, owner), bytes);
	else
		s->common++;
}

void
STORE_Remove(struct store *s, uint32_t owner, uint64_t bytes, int own)
{

	OWN_Remove(s->owners, owner, bytes);
	if (own)
		SHARE_Release(s->all, share_of(s, owner), bytes);
	else {
		assert(s->common > 0);
		s->common--;
	}
}

void
STORE_Empty(struct store *s, uint32_t owner, uint64_t bytes, int own)
{

	OWN_Remove(s->owners, owner, bytes);
	if (own)
		SHARE_Release(s->all, share_of(s, owner), bytes);
}

/*--------------------------------------------------------------------
 * The next object
 */

/* Return the list of a share, or STORE_END. */
static unsigned
list_of(const struct store *s, const struct share *share)
{
	const struct stored *o;

	if (share == NULL)
		return (STORE_END);
	o = (const void *)((const char *)share - offsetof(struct stored,
	    share));
	return (STORE_List((uint32_t)(o - s->stored), 1));
}

static unsigned
next_share(struct store_search *f)
{
	struct share *taker;

	if (f->begun)
		return (list_of(f->store, SHARES_Next(f->shares)));
	taker = share_of(f->store, f->taker);
	return (list_of(f->store, SHARES_Victim(f->shares, f->store->all,
	    taker, f->bytes)));
}

unsigned
STORE_Victim(struct store_search *f, struct store *s, uint32_t taker,
    uint64_t bytes, int own)
{

	f->store = s;
	f->taker = taker;
	f->bytes = bytes;
	f->own = own != 0;
	f->phase = 0;
	f->begun = 0;
	return (STORE_Next(f));
}

unsigned
STORE_Next(struct store_search *f)
{
	unsigned list = STORE_END;

	for (; f->phase < 2; f->phase++, f->begun = 0) {
		if ((int)f->phase == f->own)	/* the owners' lists */
			list = next_share(f);
		else if (!f->begun && f->store->common > 0)
			list = STORE_COMMON;
		if (list != STORE_END)
			break;
	}
	f->begun = 1;
	return (list);
}

unsigned
STORE_Look(struct store *s)
{
	unsigned list = list_of(s, SHARES_Look(s->all));

	/* An idle owner has no other calls that bring new settings. */
	return (list == STORE_END || SHARE_Kept(share_of(s, list - 1)) ?
	    STORE_END : list);
}

unsigned
STORE_Over(struct store *s, uint32_t owner, uint64_t more)
{

	return (list_of(s, SHARE_Over(share_of(s, owner), more)));
}
