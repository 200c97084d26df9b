/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Names to tenants.
 *
 * A tenant's memory is one fixed-size record in a slab that only grows, up
 * to the limit, and is never given back: a stale pointer stays readable,
 * and the generation says whether it still means the same tenant.  Records
 * are found by a hash of the name under a secret seed, in a libcuckoo
 * table sized at start, without the caller's lock; the full name is
 * compared.  Changing the set (TEN_Add, TEN_Evict) is the caller's to
 * serialise.
 *
 * Past the limit everybody new is the shared tenant "(other)".  When the
 * table is full, an idle tenant that has not been seen for longest (clock
 * algorithm, bounded steps) makes room; one with work or debt never does.
 */

#ifndef TENANTS_TABLE_H_INCLUDED
#define TENANTS_TABLE_H_INCLUDED

#include <stddef.h>
#include <stdint.h>

#define TEN_NAME_MAX	255		/* bytes, without the NUL */
#define TEN_OTHER	"(other)"

struct ten_table;

struct ten_record {
	uint32_t		magic;
#define TEN_RECORD_MAGIC	0x7e4a4e17
	uint32_t		generation;	/* odd: in use */
	uint32_t		seen;		/* ticks of TEN_Tick() at last look-up */
	uint16_t		namelen;
	uint8_t			pinned;		/* never evicted: mapped, or (other) */
	uint8_t			pad;
	char			name[TEN_NAME_MAX + 1];
	/* the host's bytes follow, aligned to 64 */
};

/* May this record go?  Asked before eviction, under the caller's lock */
typedef int ten_idle_f(void *priv, struct ten_record *);
/* The record begins or ends its life as a tenant */
typedef void ten_life_f(void *priv, struct ten_record *);

struct ten_ops {
	size_t			host_size;	/* bytes of host data a record */
	ten_idle_f		*idle;
	ten_life_f		*born;
	ten_life_f		*died;
	void			*priv;
};

/* max: tenants with a record of their own, besides (other).  NULL: no memory */
struct ten_table *TEN_New(unsigned max, const struct ten_ops *,
    const uint8_t seed[16]);
void TEN_Destroy(struct ten_table **);
int TEN_SetMax(struct ten_table *, unsigned max);	/* -1: no memory */

/* Without a lock: the record of that name or NULL.  name need not end in NUL */
struct ten_record *TEN_Find(const struct ten_table *, const char *name,
    size_t len);

/* Is the record, of whatever time, that name's now?  With or without a lock;
 * under the caller's lock the answer lasts. */
int TEN_Is(const struct ten_record *, const char *name, size_t len);

/*
 * Serialised by the caller: the record of that name, made if there is
 * none; TEN_Other() if there is no room.  A name longer than TEN_NAME_MAX
 * is cut there.
 */
#define TEN_STEPS	32		/* candidates for one eviction */
struct ten_record *TEN_Add(struct ten_table *, const char *name, size_t len);
struct ten_record *TEN_Other(const struct ten_table *);
/*
 * A record of the host's own with this name, once a table: like (other) it is
 * never evicted and does not count.  NULL: no memory.
 */
struct ten_record *TEN_Reserve(struct ten_table *, const char *name);
int TEN_Evict(struct ten_table *, struct ten_record *);
				/* -1: not idle, or pinned */
void TEN_Pin(struct ten_table *, struct ten_record *, int pinned);
void TEN_Tick(struct ten_table *);

void *TEN_Host(struct ten_record *);
struct ten_record *TEN_OfHost(void *);
unsigned TEN_Count(const struct ten_table *);		/* without (other) */
uint64_t TEN_Overflows(const struct ten_table *);	/* times (other) was the answer */

/* Each record in use, (other) first, the reserved one last; i from 0 until
 * NULL */
struct ten_record *TEN_At(const struct ten_table *, unsigned i);

#endif
