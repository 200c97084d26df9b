/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The slab and the look-up of table.h.
 *
 * Chunk c of the slab holds FIRST << c slots, so the slab grows and no slot
 * moves.  One permutation of the slots is the list of used and of free ones:
 * the used come first.  TEN_Find() reads the generation before and after it
 * compares a name; the generation is even while the name changes.  A new name
 * whose hash equals that of another name belongs to (other).
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "map.h"
#include "name.h"
#include "siphash.h"
#include "table.h"

#define FIRST		64U		/* slots in the first chunk */
#define CHUNKS		26		/* almost 2^32 slots */
#define ALIGN		64U

struct slot {
	struct ten_record	rec;
	uint64_t		key;		/* hash of the name */
	uint32_t		position;	/* of this slot */
	uint32_t		at;		/* slot at this position */
};

struct ten_table {
	uint32_t		magic;
#define TEN_TABLE_MAGIC		0x7ab1e7e4
	unsigned		max;
	unsigned		slots;		/* in the slab */
	unsigned		made;		/* of these, ever used */
	unsigned		count;		/* in use: positions below */
	unsigned		hand;		/* of the clock, a position */
	uint32_t		tick;
	uint64_t		overflows;
	size_t			stride;
	struct ten_ops		ops;
	uint8_t			seed[16];
	ten_map			*map;
	struct slot		*other, *reserved;	/* reserved: or NULL */
	char			*chunk[CHUNKS];
	void			*memory[CHUNKS + 2];	/* of both above */
};

static size_t
host_offset(void)
{
	return ((sizeof(struct slot) + ALIGN - 1) & ~(size_t)(ALIGN - 1));
}

static void
check(const struct ten_table *t)
{
	assert(t != NULL);
	assert(t->magic == TEN_TABLE_MAGIC);
}

static struct slot *
slot_of(struct ten_record *r)
{
	assert(r != NULL);
	assert(r->magic == TEN_RECORD_MAGIC);
	return ((struct slot *)(void *)r);
}

static unsigned
load(const unsigned *p)
{
	return (__atomic_load_n(p, __ATOMIC_RELAXED));
}

static void
store(unsigned *p, unsigned v)
{
	__atomic_store_n(p, v, __ATOMIC_RELAXED);
}

/*--------------------------------------------------------------------
 * The slab
 */

static struct slot *
slot_at(const struct ten_table *t, unsigned i)
{
	unsigned c;

	c = 31U - (unsigned)__builtin_clz(i / FIRST + 1);
	i -= FIRST * ((1U << c) - 1);
	return ((struct slot *)(void *)(t->chunk[c] + i * t->stride));
}

/* Return n zeroed slots, or NULL.  They take no memory before use: as chunks
 * double, up to half of the slots are never used. */
static char *
new_slots(const struct ten_table *t, unsigned n, void **memory)
{
	uintptr_t p;

	*memory = calloc(n + 1, t->stride);	/* one more, to align */
	p = (uintptr_t)*memory;
	return (*memory == NULL ? NULL :
	    (char *)*memory + (-p & (ALIGN - 1)));
}

static int
grow(struct ten_table *t)
{
	unsigned c;

	c = 31U - (unsigned)__builtin_clz(t->slots / FIRST + 1);
	if (c >= CHUNKS)
		return (-1);
	t->chunk[c] = new_slots(t, FIRST << c, &t->memory[c]);
	if (t->chunk[c] == NULL)
		return (-1);
	t->slots += FIRST << c;
	return (0);
}

/* Return the slot at the first free position */
static struct slot *
next_slot(struct ten_table *t)
{
	struct slot *s;

	if (t->count == t->made) {
		s = slot_at(t, t->made);
		s->rec.magic = TEN_RECORD_MAGIC;
		s->position = s->at = t->made++;
	}
	return (slot_at(t, slot_at(t, t->count)->at));
}

static struct slot *
in_use(const struct ten_table *t, unsigned position)
{
	return (slot_at(t, slot_at(t, position)->at));
}

/* Swap what is at two positions */
static void
swap(const struct ten_table *t, unsigned p, unsigned q)
{
	uint32_t a = slot_at(t, p)->at, b = slot_at(t, q)->at;

	slot_at(t, p)->at = b;
	slot_at(t, q)->at = a;
	slot_at(t, b)->position = p;
	slot_at(t, a)->position = q;
}

/*--------------------------------------------------------------------
 * Look-up
 */

int
TEN_Is(const struct ten_record *r, const char *name, size_t len)
{
	uint32_t g;

	assert(r != NULL && name != NULL);
	g = __atomic_load_n(&r->generation, __ATOMIC_ACQUIRE);
	return ((g & 1) && same_name(r, name, cut(len)) &&
	    __atomic_load_n(&r->generation, __ATOMIC_ACQUIRE) == g);
}

struct ten_record *
TEN_Find(const struct ten_table *t, const char *name, size_t len)
{
	struct ten_record *r;
	uint64_t key;

	check(t);
	assert(name != NULL);
	len = cut(len);
	key = siphash(t->seed, name, len);
	if (!ten_map_find(t->map, &key, &r) || !TEN_Is(r, name, len))
		return (NULL);
	store(&r->seen, load(&t->tick));
	return (r);
}

/*--------------------------------------------------------------------
 * The set
 */

static void
born(struct ten_table *t, struct slot *s, const char *name, size_t len)
{
	memset(TEN_Data(&s->rec), 0, t->ops.host_size);
	store(&s->rec.seen, load(&t->tick));
	set_name(&s->rec, name, len);
	if (t->ops.born != NULL)
		t->ops.born(t->ops.priv, &s->rec);
}

static void
died(struct ten_table *t, struct slot *s)
{
	if (t->ops.died != NULL)
		t->ops.died(t->ops.priv, &s->rec);
	assert(s->rec.generation & 1);
	__atomic_store_n(&s->rec.generation, s->rec.generation + 1,
	    __ATOMIC_RELEASE);
	s->rec.pinned = 0;
}

static int
may_go(const struct ten_table *t, struct slot *s)
{
	return (!s->rec.pinned &&
	    (t->ops.idle == NULL || t->ops.idle(t->ops.priv, &s->rec)));
}

static void
evict(struct ten_table *t, struct slot *s)
{
	assert(s->position < t->count);
	(void)ten_map_erase(t->map, &s->key);
	died(t, s);
	swap(t, s->position, t->count - 1);
	store(&t->count, t->count - 1);
}

/* Evict the least recently seen of TEN_STEPS candidates.  -1: none is idle. */
static int
make_room(struct ten_table *t)
{
	struct slot *s, *oldest = NULL;
	unsigned i;

	for (i = 0; i < TEN_STEPS && i < t->count; i++) {
		if (t->hand >= t->count)
			t->hand = 0;
		s = in_use(t, t->hand++);
		if (oldest != NULL && (int32_t)(load(&s->rec.seen) -
		    load(&oldest->rec.seen)) >= 0)
			continue;
		if (may_go(t, s))
			oldest = s;
	}
	if (oldest == NULL)
		return (-1);
	evict(t, oldest);
	return (0);
}

static struct ten_record *
overflow(struct ten_table *t)
{
	__atomic_fetch_add(&t->overflows, 1, __ATOMIC_RELAXED);
	return (&t->other->rec);
}

/* Evict at most two for each new name, so that a lowered max is reached */
static int
have_room(struct ten_table *t)
{
	unsigned i;

	for (i = 0; i < 2 && t->count >= t->max; i++)
		if (make_room(t))
			break;
	if (t->count >= t->max)
		return (0);
	return (t->count < t->slots || grow(t) == 0);
}

struct ten_record *
TEN_Add(struct ten_table *t, const char *name, size_t len)
{
	struct ten_record *r;
	struct slot *s;
	uint64_t key;

	r = TEN_Find(t, name, len);
	if (r != NULL)
		return (r);
	len = cut(len);
	key = siphash(t->seed, name, len);
	if (ten_map_contains(t->map, &key) || !have_room(t))
		return (overflow(t));
	s = next_slot(t);
	r = &s->rec;
	if (!ten_map_insert(t->map, &key, &r))
		return (overflow(t));
	s->key = key;
	store(&t->count, t->count + 1);
	born(t, s, name, len);
	return (r);
}

int
TEN_Evict(struct ten_table *t, struct ten_record *r)
{
	check(t);
	assert(r->generation & 1);
	if (!may_go(t, slot_of(r)))
		return (-1);
	evict(t, slot_of(r));
	return (0);
}

int
TEN_SetMax(struct ten_table *t, unsigned max)
{
	struct slot *s;
	unsigned i;

	check(t);
	if (ten_map_capacity(t->map) < (size_t)max + 2 &&
	    !ten_map_reserve(t->map, (size_t)max + 2))
		return (-1);
	t->max = max;
	for (i = t->count; i-- > 0 && t->count > max; ) {
		s = in_use(t, i);
		if (may_go(t, s))
			evict(t, s);
	}
	return (0);
}

void
TEN_Pin(struct ten_table *t, struct ten_record *r, int pinned)
{
	check(t);
	assert(slot_of(r) != t->other && slot_of(r) != t->reserved);
	r->pinned = pinned != 0;
}

void
TEN_Tick(struct ten_table *t)
{
	check(t);
	store(&t->tick, t->tick + 1);
}

/*--------------------------------------------------------------------*/

struct ten_record *
TEN_Other(const struct ten_table *t)
{
	check(t);
	return (&t->other->rec);
}

void *
TEN_Data(struct ten_record *r)
{
	return ((char *)slot_of(r) + host_offset());
}

struct ten_record *
TEN_OfData(void *host)
{
	struct ten_record *r;

	assert(host != NULL);
	r = (struct ten_record *)(void *)((char *)host - host_offset());
	assert(r->magic == TEN_RECORD_MAGIC);
	return (r);
}

unsigned
TEN_Count(const struct ten_table *t)
{
	check(t);
	return (load(&t->count));
}

uint64_t
TEN_Overflows(const struct ten_table *t)
{
	check(t);
	return (__atomic_load_n(&t->overflows, __ATOMIC_RELAXED));
}

struct ten_record *
TEN_At(const struct ten_table *t, unsigned i)
{
	check(t);
	if (i == 0)
		return (&t->other->rec);
	if (i == t->count + 1 && t->reserved != NULL)
		return (&t->reserved->rec);
	return (i <= t->count ? &in_use(t, i - 1)->rec : NULL);
}

/*--------------------------------------------------------------------*/

/* Make a record outside of the slab; -1: no memory */
static int
new_record(struct ten_table *t, const char *name, struct slot **slot,
    void **memory)
{
	struct ten_record *r;
	struct slot *s;
	size_t len = strlen(name);

	s = (void *)new_slots(t, 1, memory);
	if (s == NULL)
		return (-1);
	r = &s->rec;
	r->magic = TEN_RECORD_MAGIC;
	s->key = siphash(t->seed, name, len);
	if (!ten_map_insert(t->map, &s->key, &r))
		return (-1);
	r->pinned = 1;
	*slot = s;
	born(t, s, name, len);
	return (0);
}

struct ten_record *
TEN_Reserve(struct ten_table *t, const char *name)
{
	check(t);
	assert(t->reserved == NULL);
	if (new_record(t, name, &t->reserved, &t->memory[CHUNKS + 1]))
		return (NULL);
	return (&t->reserved->rec);
}

static void
release(struct ten_table *t)
{
	unsigned c;

	for (c = 0; c < CHUNKS + 2; c++)
		free(t->memory[c]);
	if (t->map != NULL)
		ten_map_free(t->map);
	t->magic = 0;
	free(t);
}

struct ten_table *
TEN_New(unsigned max, const struct ten_ops *ops, const uint8_t seed[16])
{
	struct ten_table *t;

	assert(ops != NULL);
	t = calloc(1, sizeof *t);
	if (t == NULL)
		return (NULL);
	t->magic = TEN_TABLE_MAGIC;
	t->max = max;
	t->ops = *ops;
	memcpy(t->seed, seed, sizeof t->seed);
	t->stride = host_offset() +
	    ((ops->host_size + ALIGN - 1) & ~(size_t)(ALIGN - 1));
	t->map = ten_map_init((size_t)max + 2);
	if (t->map == NULL ||
	    new_record(t, TEN_OTHER, &t->other, &t->memory[CHUNKS])) {
		release(t);
		return (NULL);
	}
	return (t);
}

void
TEN_Destroy(struct ten_table **tp)
{
	struct ten_table *t;

	assert(tp != NULL);
	t = *tp;
	*tp = NULL;
	check(t);
	while (t->count > 0)
		evict(t, in_use(t, t->count - 1));
	if (t->reserved != NULL)
		died(t, t->reserved);
	died(t, t->other);
	release(t);
}
