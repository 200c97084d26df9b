/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The table of tenants, by name.
 *
 * A tenant has one record of fixed size, with user data of ops->host_size
 * bytes.  Records are in a slab that only grows, so a stale pointer stays
 * readable.  The generation says whether the pointer still means the same
 * tenant.  TEN_Find() needs no lock: it looks up a hash of the name, under a
 * secret seed, in a libcuckoo map, and compares the whole name.  The caller
 * serialises all functions that change the set, such as TEN_Add() and
 * TEN_Evict().
 *
 * If the table is full, an idle tenant makes room: of TEN_STEPS candidates the
 * one seen least recently (clock algorithm).  A tenant with work or debt is not
 * idle.  If no tenant is idle, the new name belongs to the tenant "(other)".
 */

#ifndef TENANTS_TABLE_H_INCLUDED
#define TENANTS_TABLE_H_INCLUDED

#include <stddef.h>
#include <stdint.h>

#define TEN_NAME_MAX	255		/* bytes, without the NUL */

/* Names of Sandpaper's own tenants and groups.  No Host has parentheses. */
#define TEN_OTHER	"(other)"	/* the table is full */
#define TEN_UNKNOWN	"(unknown)"	/* Hosts that a map does not name */
#define TEN_NEW		"(new)"		/* the group of new Hosts */
#define TEN_NONE	"(none)"	/* requests without a Host, or with one
					 * that is empty or begins with "(" */

struct ten_table;

struct ten_record {
	uint32_t		magic;
#define TEN_RECORD_MAGIC	0x7e4a4e17
	uint32_t		generation;	/* odd: in use */
	uint32_t		seen;		/* tick of the last look-up */
	uint16_t		namelen;
	uint8_t			pinned;		/* never evicted */
	uint8_t			pad;
	char			name[TEN_NAME_MAX + 1];
	/* user data follows, aligned to 64 bytes */
};

/* May this record be evicted?  Called under the caller's lock. */
typedef int ten_idle_f(void *priv, struct ten_record *);
/* A tenant begins, or ends, in this record */
typedef void ten_life_f(void *priv, struct ten_record *);

struct ten_ops {
	size_t			host_size;	/* bytes of user data */
	ten_idle_f		*idle;
	ten_life_f		*born;
	ten_life_f		*died;
	void			*priv;
};

/* max: tenants without (other) and the reserved one.  NULL: no memory. */
struct ten_table *TEN_New(unsigned max, const struct ten_ops *,
    const uint8_t seed[16]);
void TEN_Destroy(struct ten_table **);
int TEN_SetMax(struct ten_table *, unsigned max);	/* -1: no memory */

/* Return the record of that name, or NULL.  Needs no lock.  The name needs no
 * final NUL. */
struct ten_record *TEN_Find(const struct ten_table *, const char *name,
    size_t len);

/* Does the record have that name now?  The record may be stale.  Needs no lock;
 * under the caller's lock the answer stays true. */
int TEN_Is(const struct ten_record *, const char *name, size_t len);

/*
 * Return the record of that name, a new one if there is none, or TEN_Other() if
 * there is no room.  The caller serialises.  A name is cut at TEN_NAME_MAX.
 */
#define TEN_STEPS	32		/* candidates for one eviction */
struct ten_record *TEN_Add(struct ten_table *, const char *name, size_t len);
struct ten_record *TEN_Other(const struct ten_table *);
/*
 * Make a record of the caller's own with this name, once for a table.  Like
 * (other), it is never evicted and does not count.  NULL: no memory.
 */
struct ten_record *TEN_Reserve(struct ten_table *, const char *name);
int TEN_Evict(struct ten_table *, struct ten_record *);
				/* -1: not idle, or pinned */
void TEN_Pin(struct ten_table *, struct ten_record *, int pinned);
void TEN_Tick(struct ten_table *);

void *TEN_Data(struct ten_record *);
struct ten_record *TEN_OfData(void *);
unsigned TEN_Count(const struct ten_table *);		/* without (other) */
uint64_t TEN_Overflows(const struct ten_table *);	/* answers (other) */

/* Return record i in use, or NULL after the last.  0 is (other), and the last
 * is the reserved one. */
struct ten_record *TEN_At(const struct ten_table *, unsigned i);

#endif
