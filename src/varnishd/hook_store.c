/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Hooks of a stevedore: from which owner is an object evicted for a new one?
 *
 * Stock keeps the objects of a stevedore on one LRU list.  Here they are on
 * that list while sandpaper_memory is off, and on a list of their owner while
 * it is on. memory/store.h says how objects move when it changes.  The objects
 * of all new Hosts belong to the group (new).
 *
 * Each eviction first looks at one owner, in turn.  If nobody has asked for its
 * first object for sandpaper_memory_idle, that object goes.  If the wall clock
 * steps forward by as much, all objects are idle, until clients ask for them.
 *
 * The lock of the stevedore's LRU guards the lists and bytes.  Nothing here
 * takes spd_lock().
 */

#include "config.h"

#include <stdlib.h>

#include "spd.h"

#include "storage/storage.h"
#include "vtim.h"

#define TRIES		8		/* busy objects to try in one list */

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

	return (cache_param->sandpaper_memory != 0);
}

/*--------------------------------------------------------------------
 * Begin and end a store.  No other thread uses it then.
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
 * Objects come to a list, and leave it.  The LRU's lock is held.
 */

/* Return the list of this number (memory/store.h). */
static struct spd_list *
list_at(const struct spd_store *s, unsigned n)
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
list_of(const struct spd_store *s, const struct objcore *oc)
{

	return (list_at(s, STORE_List(spd_oc_owner(oc), spd_oc_listed(oc))));
}

/* Add an object at the end of the current list. */
void
SPD_StoreAdd(struct spd_store *s, struct objcore *oc)
{

	CHECK_OBJ_NOTNULL(s, SPD_STORE_MAGIC);
	if (spd_oc_bytes(oc) == 0)	/* VCL made it, or it was evicted */
		spd_oc_set_bytes(oc, spd_oc_size(0));
	spd_oc_set_listed(oc, memory_is_shared());
	VTAILQ_INSERT_TAIL(list_of(s, oc), oc, lru_list);
	STORE_Add(s->store, spd_oc_owner(oc), spd_oc_bytes(oc),
	    spd_oc_listed(oc));
}

void
SPD_StoreRemove(struct spd_store *s, struct objcore *oc)
{

	CHECK_OBJ_NOTNULL(s, SPD_STORE_MAGIC);
	STORE_Remove(s->store, spd_oc_owner(oc), spd_oc_bytes(oc),
	    spd_oc_listed(oc));
	VTAILQ_REMOVE(list_of(s, oc), oc, lru_list);
}

/* Move an object to the end of its list. */
static void
move_last(const struct spd_store *s, struct objcore *oc)
{
	struct spd_list *list = list_of(s, oc);

	VTAILQ_REMOVE(list, oc, lru_list);
	VTAILQ_INSERT_TAIL(list, oc, lru_list);
}

/* A client asks for an object: move it to the end of the current list. */
void
SPD_StoreTouch(struct spd_store *s, struct objcore *oc)
{

	CHECK_OBJ_NOTNULL(s, SPD_STORE_MAGIC);
	if (spd_oc_listed(oc) == memory_is_shared()) {
		move_last(s, oc);
		return;
	}
	SPD_StoreRemove(s, oc);
	SPD_StoreAdd(s, oc);
}

/*--------------------------------------------------------------------
 * Which object is evicted?  The LRU's lock is held.
 */

/* Return the first object of this list, or of the next one in the search that
 * is not empty. */
static struct objcore *
first_of(struct spd_victim *v, unsigned list)
{
	struct objcore *oc = NULL;

	v->tries = 0;
	for (; list != STORE_END; list = STORE_Next(v->search)) {
		oc = VTAILQ_FIRST(list_at(v->store, list));
		if (oc != NULL)
			break;
	}
	return (oc);
}

static struct objcore *
search(struct spd_victim *v)
{

	return (first_of(v, STORE_Victim(v->search, v->store->store,
	    v->fetch.owner, v->fetch.bytes, v->own)));
}

/* Idle objects may be small: they take at most half of what a fetch may evict
 * (nuke_limit). */
static int
may_evict_idle(void)
{
	const struct busyobj *bo = THR_GetBusyobj();

	return (cache_param->sandpaper_memory_idle > 0 && bo != NULL &&
	    bo->wrk->strangelove >= (int)cache_param->nuke_limit / 2);
}

/* Return the first object of the owner that is next in turn, if it is idle.
 * Else NULL.  A hit is noted once in lru_interval. */
static struct objcore *
search_idle(const struct spd_victim *v)
{
	double most = cache_param->sandpaper_memory_idle +
	    cache_param->lru_interval;
	struct objcore *oc;
	unsigned list;

	if (!v->own || !may_evict_idle())
		return (NULL);
	list = STORE_Look(v->store->store);
	if (list == STORE_END)
		return (NULL);
	oc = VTAILQ_FIRST(list_at(v->store, list));
	return (oc != NULL && VTIM_real() - oc->last_lru > most ? oc : NULL);
}

/* Return the first object that has to go if the owner of the fetch, or its
 * group, is above its limit with the object that it fetches. */
static struct objcore *
search_over(const struct spd_victim *v)
{
	unsigned list;

	list = STORE_Over(v->store->store, v->fetch.owner, v->fetch.bytes);
	return (list == STORE_END ? NULL : VTAILQ_FIRST(list_at(v->store,
	    list)));
}

/* Return the object to evict first.  NULL: there is none.  If the fetch has the
 * flag SPD_FETCH_LIMIT, only its owner's limit, and its group's, count. */
struct objcore *
SPD_StoreVictim(struct spd_victim *v, struct spd_store *s)
{
	struct objcore *oc;

	CHECK_OBJ_NOTNULL(s, SPD_STORE_MAGIC);
	spd_fetch_look(&v->fetch);
	v->store = s;
	v->own = memory_is_shared();
	v->patient = !v->own;
	v->tries = 0;
	v->idle = 0;
	if (v->fetch.flags & SPD_FETCH_LIMIT)
		return (search_over(v));
	oc = search_idle(v);
	v->idle = oc != NULL;
	return (v->idle ? oc : search(v));
}

/*
 * That object is busy: return the next one to try, or NULL.
 *
 * While memory is shared, the first search tries TRIES objects of each list.
 * It moves those that are busy to the end of their list: else a tenant with
 * TRIES slow clients would lose nothing.  If all were busy, a second, patient
 * search tries all objects.
 */
struct objcore *
SPD_StoreNext(struct spd_victim *v, struct objcore *oc)
{
	struct objcore *next = VTAILQ_NEXT(oc, lru_list);

	if (v->idle) {
		v->idle = 0;
		move_last(v->store, oc);
		return (search(v));
	}
	if (v->patient && next != NULL)
		return (next);
	if (!v->patient) {
		move_last(v->store, oc);
		if (next != NULL && ++v->tries < TRIES)
			return (next);
	}
	if (v->fetch.flags & SPD_FETCH_LIMIT)
		return (NULL);
	next = first_of(v, STORE_Next(v->search));
	if (next == NULL && !v->patient) {
		v->patient = 1;
		next = search(v);
	}
	return (next);
}

/*
 * Evict an object.  Its body is freed now, its objcore later.  So it has no
 * bytes from now on (in transit it keeps them), and moves to the end of its
 * list, where no search comes first.
 */
void
SPD_StoreEvict(struct spd_store *s, struct objcore *oc)
{
	struct spd_fetch_look fetch;

	spd_fetch_look(&fetch);
	OWN_Evicted(spd_owners(), spd_oc_owner(oc), fetch.owner);
	if (!spd_oc_in_transit(oc)) {
		STORE_Empty(s->store, spd_oc_owner(oc), spd_oc_bytes(oc),
		    spd_oc_listed(oc));
		spd_oc_set_bytes(oc, 0);
	}
	move_last(s, oc);
}

/*--------------------------------------------------------------------
 * A fetch is complete.  Not locked.
 */

/* With so many bytes more, may this owner or its group be above a limit?  The
 * bytes of a group are known only under the lock. */
static int
may_be_over(uint32_t owner, uint64_t more)
{
	struct own_settings set;

	OWN_Settings(spd_owners(), owner, &set);
	if (set.limit != 0 && OWN_Bytes(spd_owners(), owner) + more > set.limit)
		return (1);
	if (set.group == OWN_NONE)
		return (0);
	OWN_Settings(spd_owners(), set.group, &set);
	return (set.limit != 0);
}

/* Evict objects while the owner of this fetch, or its group, is above its
 * limit.  At most nuke_limit objects are evicted, so it may stay above. */
void
spd_enforce_limit(struct busyobj *bo)
{
	const struct objcore *oc = bo->fetch_objcore;
	struct lru *lru = oc->stobj->stevedore->lru;

	if (!memory_is_shared() || lru == NULL ||
	    !may_be_over(spd_oc_owner(oc), spd_oc_bytes(oc)))
		return;
	bo->sandpaper[2] |= SPD_FETCH_LIMIT;
	bo->wrk->strangelove = (int)cache_param->nuke_limit;
	while (LRU_NukeOne(bo->wrk, lru))
		continue;
	bo->sandpaper[2] &= ~(uint64_t)SPD_FETCH_LIMIT;
}
