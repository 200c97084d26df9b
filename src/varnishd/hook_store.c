/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Hooks of the storage: the bytes of each tenant, and whose object makes room.
 *
 * Varnish keeps the objects of a stevedore on one list, oldest first.  Here they
 * are on that list while sandpaper_memory is off or observe, and on a list of
 * their tenant while it is on (memory/store.h).  An object goes to the list in
 * use when it comes, and when a client asks for it.
 *
 * An object belongs to the tenant whose request fetched it.  The objects of all
 * new hosts belong to (new).
 *
 * The lock of the stevedore's LRU guards the lists and bytes.  Nothing here takes
 * spd_lock().
 */

#include "config.h"

#include <stdlib.h>

#include "spd.h"

#include "storage/storage.h"

#define TRIES		8		/* objects in use, of one list */

VTAILQ_HEAD(spd_list, objcore);

struct spd_store {
	unsigned		magic;
#define SPD_STORE_MAGIC		0x5a9d5704
	struct store		*store;
	struct spd_list		*common;	/* Varnish's own list */
	struct spd_list		*own;		/* one for each owner */
};

static int
memory_is_shared(void)
{

	return (cache_param->sandpaper_memory == SPD_ON);
}

/*--------------------------------------------------------------------
 * A store begins and ends, without other threads
 */

struct spd_store *
SPD_StoreNew(void *common)
{
	struct spd_store *s;

	ALLOC_OBJ(s, SPD_STORE_MAGIC);
	AN(s);
	s->store = STORE_New(spd_owners());
	AN(s->store);
	s->common = common;
	s->own = calloc(OWN_Room(spd_owners()), sizeof *s->own);
	AN(s->own);
	return (s);
}

void
SPD_StoreFree(struct spd_store **sp)
{
	struct spd_store *s;

	TAKE_OBJ_NOTNULL(s, sp, SPD_STORE_MAGIC);
	STORE_Destroy(&s->store);
	free(s->own);
	FREE_OBJ(s);
}

/*--------------------------------------------------------------------
 * Objects come and go.  The LRU's lock is held.
 */

/* Return the list of this number (memory/store.h). */
static struct spd_list *
spd_store_list(const struct spd_store *s, unsigned n)
{
	struct spd_list *list;

	if (n == STORE_COMMON)
		return (s->common);
	list = &s->own[n - 1];
	if (list->vtqh_last == NULL)
		VTAILQ_INIT(list);
	return (list);
}

static struct spd_list *
spd_store_list_of(const struct spd_store *s, const struct objcore *oc)
{

	return (spd_store_list(s, STORE_List(spd_oc_owner(oc),
	    spd_oc_listed(oc))));
}

/* An object becomes the newest one of the list that is in use. */
void
SPD_StoreAdd(struct spd_store *s, struct objcore *oc)
{

	CHECK_OBJ_NOTNULL(s, SPD_STORE_MAGIC);
	if (spd_oc_bytes(oc) == 0)		/* VCL made it, or a file has it */
		spd_oc_set_bytes(oc, spd_oc_size(0));
	spd_oc_set_listed(oc, memory_is_shared());
	VTAILQ_INSERT_TAIL(spd_store_list_of(s, oc), oc, lru_list);
	STORE_Add(s->store, spd_oc_owner(oc), spd_oc_bytes(oc),
	    spd_oc_listed(oc));
}

void
SPD_StoreRemove(struct spd_store *s, struct objcore *oc)
{

	CHECK_OBJ_NOTNULL(s, SPD_STORE_MAGIC);
	STORE_Remove(s->store, spd_oc_owner(oc), spd_oc_bytes(oc),
	    spd_oc_listed(oc));
	VTAILQ_REMOVE(spd_store_list_of(s, oc), oc, lru_list);
}

/* A client asks for an object: it is the newest one now. */
void
SPD_StoreTouch(struct spd_store *s, struct objcore *oc)
{
	struct spd_list *list;

	CHECK_OBJ_NOTNULL(s, SPD_STORE_MAGIC);
	if (spd_oc_listed(oc) != memory_is_shared()) {
		SPD_StoreRemove(s, oc);
		SPD_StoreAdd(s, oc);
		return;
	}
	list = spd_store_list_of(s, oc);
	VTAILQ_REMOVE(list, oc, lru_list);
	VTAILQ_INSERT_TAIL(list, oc, lru_list);
}

/*--------------------------------------------------------------------
 * Which object makes room?  The LRU's lock is held.
 */

/* Return the first object of this list, or of one after it in the search. */
static struct objcore *
spd_victim_list(struct spd_victim *v, unsigned list)
{
	struct objcore *oc = NULL;

	v->tries = 0;
	for (; list != STORE_END; list = STORE_Next(v->search)) {
		oc = VTAILQ_FIRST(spd_store_list(v->store, list));
		if (oc != NULL)
			break;
	}
	return (oc);
}

static struct objcore *
spd_victim_first(struct spd_victim *v)
{

	return (spd_victim_list(v, STORE_Victim(v->search, v->store->store,
	    spd_fetch_owner(), spd_fetch_bytes(), v->own)));
}

/* Return the first object of the owner that this thread fetches for, if it is
 * above its limit with that object. */
static struct objcore *
spd_victim_limit(const struct spd_victim *v)
{
	uint32_t owner = spd_fetch_owner();

	if (STORE_Excess(v->store->store, owner, spd_fetch_bytes()) == 0)
		return (NULL);
	return (VTAILQ_FIRST(spd_store_list(v->store, STORE_List(owner, 1))));
}

/* Return the oldest object of the tenant that has the most memory for its
 * weight, or NULL if there are no objects. */
struct objcore *
SPD_StoreVictim(struct spd_victim *v, struct spd_store *s)
{

	CHECK_OBJ_NOTNULL(s, SPD_STORE_MAGIC);
	v->store = s;
	v->own = memory_is_shared();
	v->patient = !v->own;
	v->tries = 0;
	v->limit = (spd_fetch_flags() & SPD_FETCH_LIMIT) != 0;
	if (v->limit)
		return (spd_victim_limit(v));
	return (spd_victim_first(v));
}

/*
 * That object is in use: return the next one, or NULL.
 *
 * After TRIES objects of one list the next list is searched.  If all these are
 * in use, a second search looks at all objects.
 */
struct objcore *
SPD_StoreNext(struct spd_victim *v, const struct objcore *oc)
{
	struct objcore *next = VTAILQ_NEXT(oc, lru_list);

	if (next != NULL && (v->patient || ++v->tries < TRIES))
		return (next);
	if (v->limit)
		return (NULL);
	next = spd_victim_list(v, STORE_Next(v->search));
	if (next == NULL && !v->patient) {
		v->patient = 1;
		next = spd_victim_first(v);
	}
	return (next);
}

/*
 * An object makes room.  Its body is freed at once, its objcore later: until
 * then it is an object without bytes, and the last one to be found again.
 */
void
SPD_StoreEvict(struct spd_store *s, struct objcore *oc)
{

	OWN_Evicted(spd_owners(), spd_oc_owner(oc), spd_fetch_owner());
	STORE_Remove(s->store, spd_oc_owner(oc), spd_oc_bytes(oc),
	    spd_oc_listed(oc));
	spd_oc_set_bytes(oc, 0);
	STORE_Add(s->store, spd_oc_owner(oc), spd_oc_bytes(oc),
	    spd_oc_listed(oc));
	SPD_StoreTouch(s, oc);
}

/*--------------------------------------------------------------------
 * A fetch is complete.  Not locked.
 */

/* Evict objects of the owner of this fetch until it is within its limit with
 * the new object. */
void
spd_enforce_limit(struct busyobj *bo)
{
	const struct objcore *oc = bo->fetch_objcore;
	struct lru *lru = oc->stobj->stevedore->lru;
	struct own_settings settings;

	if (!memory_is_shared() || lru == NULL)
		return;
	OWN_Settings(spd_owners(), spd_oc_owner(oc), &settings);
	if (settings.limit == 0 && settings.group == OWN_NONE)
		return;
	bo->sandpaper[2] |= SPD_FETCH_LIMIT;
	bo->wrk->strangelove = (int)cache_param->nuke_limit;
	while (LRU_NukeOne(bo->wrk, lru))
		continue;
	bo->sandpaper[2] &= ~(uint64_t)SPD_FETCH_LIMIT;
}
