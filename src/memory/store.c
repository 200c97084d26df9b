/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The store of store.h: a share (shares.h) for each owner, which begins with the
 * owner's first bytes.  When the owner's settings change, the share follows at
 * the next call for that owner.
 */

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>

#include "store.h"

/* An owner in this store.  Zeros: it had no bytes yet. */
struct stored {
	struct share		share;
	uint32_t		serial;		/* of the settings in use */
};

/* A group in this store: an owner whose members share one place.  Its own
 * objects, if it has any, are not the group's. */
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

/* Set a share to the settings of an owner. */
static void
set_share(struct store *s, struct share *share, uint32_t owner)
{
	struct own_settings set;

	OWN_Settings(s->owners, owner, &set);
	SHARE_Set(share, set.weight, set.reservation, set.limit);
}

/* Return the group of this number with its settings of now, or NULL if there is
 * no memory. */
static struct grouped *
group_of(struct store *s, uint32_t n)
{
	struct grouped *g = s->group[n];
	uint32_t serial = OWN_Serial(s->owners, n);

	if (g == NULL) {
		g = calloc(1, sizeof *g);
		if (g == NULL)
			return (NULL);
		SHARES_Init(g->members);
		SHARE_Init(&g->share, s->all, NULL, g->members);
		g->serial = serial - 1;
		s->group[n] = g;
	}
	if (g->serial != serial) {
		g->serial = serial;
		set_share(s, &g->share, n);
	}
	return (g);
}

/* Give a share its place, in a group or in none.  It keeps its bytes. */
static void
place(struct store *s, struct share *share, struct grouped *g)
{
	struct share *group = g == NULL ? NULL : &g->share;
	uint64_t bytes = share->bytes;

	if (share->magic == SHARE_MAGIC && share->group == group)
		return;
	if (share->magic == SHARE_MAGIC)
		SHARE_Release(share, bytes);
	SHARE_Init(share, g == NULL ? s->all : g->members, group, NULL);
	SHARE_Charge(share, bytes);
}

/* Return what an owner has in this store, with its settings of now, and with
 * those of its group. */
static struct stored *
stored(struct store *s, uint32_t n)
{
	struct stored *o = &s->stored[n];
	uint32_t serial = OWN_Serial(s->owners, n);
	struct own_settings set;
	struct grouped *g;

	OWN_Settings(s->owners, n, &set);
	g = set.group == OWN_NONE ? NULL : group_of(s, set.group);
	if (o->share.magic == SHARE_MAGIC && o->serial == serial)
		return (o);
	o->serial = serial;
	place(s, &o->share, g);
	set_share(s, &o->share, n);
	return (o);
}

/*--------------------------------------------------------------------
 * Bytes
 */

void
STORE_Add(struct store *s, uint32_t owner, uint64_t bytes, int own)
{

	OWN_Add(s->owners, owner, bytes);
	if (own)
		SHARE_Charge(&stored(s, owner)->share, bytes);
	else
		s->common++;
}

void
STORE_Remove(struct store *s, uint32_t owner, uint64_t bytes, int own)
{

	OWN_Remove(s->owners, owner, bytes);
	if (own)
		SHARE_Release(&stored(s, owner)->share, bytes);
	else {
		assert(s->common > 0);
		s->common--;
	}
}

uint64_t
STORE_Excess(struct store *s, uint32_t owner, uint64_t more)
{

	return (SHARE_Excess(&stored(s, owner)->share, more));
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
	taker = &stored(f->store, f->taker)->share;
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
	f->turn = 0;
	f->begun = 0;
	return (STORE_Next(f));
}

unsigned
STORE_Next(struct store_search *f)
{
	unsigned list = STORE_END;

	for (; f->turn < 2; f->turn++, f->begun = 0) {
		if ((int)f->turn == f->own)	/* the owners' lists */
			list = next_share(f);
		else if (!f->begun && f->store->common > 0)
			list = STORE_COMMON;
		if (list != STORE_END)
			break;
	}
	f->begun = 1;
	return (list);
}
