/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * A map from Host to tenant, and what is declared of its tenants.
 *
 * If the name of a tenant begins with "*", each Host that matches its patterns
 * is a tenant of its own, with the name of the Host, and with all that is
 * declared.  They are in a group, so Hosts that a client invents take no share
 * of cpu and net from others.
 *
 * First a map is filled, then it is looked up.  A map that is filled does not
 * change, except for `user`.  So lookups need no lock.  Filling aborts when
 * there is no memory.
 */

#ifndef TENANTS_HOSTMAP_H_INCLUDED
#define TENANTS_HOSTMAP_H_INCLUDED

#include <stddef.h>

#include "exempt.h"
#include "page.h"
#include "table.h"

/* Times of a tenant */
enum map_time {
	MAP_TARGET,		/* its requests should wait for less; 0.001 to
				 * 10 s */
	MAP_QUEUE_TIMEOUT,	/* what waits for longer does not run; 0.001 to
				 * 86400 s */
	MAP_FETCH_TARGET,	/* its origins should answer in less; 0.001 to
				 * 3600 s */
	MAP_TIMES
};

struct map_tenant {			/* a tenant, or a group */
	struct map_tenant	*next;
	char			name[TEN_NAME_MAX + 1];
	size_t			len;
	double			weight;		/* 0.001 to 1024 */
	unsigned		queue_limit;	/* requests, 0: not set */
	double			reservation, limit;	/* 0 to 1; 0 in both: none */
	uint64_t		memory_reservation, memory_limit;	/* bytes;
								 * 0: none */
	int			admit_all;	/* objects into the cache */
	double			time[MAP_TIMES];	/* s; 0: not set */
	struct page		*refusal;	/* NULL: not set */
	int			is_group;
	struct map_tenant	*group;		/* that it is in, or NULL */
	void			*_Atomic user;	/* the caller's */
};

struct hostmap {
	unsigned		magic;
#define HOSTMAP_MAGIC		0x5a9d3a95
	struct map_tenant	*first, **end;	/* in order of declaration */
	unsigned		tenants;	/* of them, and groups */
	void			*names;		/* of them: a tree of search.h */
	uint8_t			key[16];	/* of its hash */
	struct map_host		**host;		/* a hash table, or NULL */
	size_t			nhost, space;	/* used, allocated: 0 or a power
						 * of two */
	double			reserved;	/* sum of the reservations */
	int			own;		/* see MAP_Unknown() */
	int			each;		/* a pattern has a MAP_IsEach() */
	struct exempt		*exempt;	/* its rules, or NULL */
};

/* Is each of its Hosts a tenant? */
static inline int
MAP_IsEach(const struct map_tenant *t)
{

	return (t->name[0] == '*');
}

void MAP_Init(struct hostmap *);
void MAP_Fini(struct hostmap *);

/*
 * Fill.  A function that can fail returns NULL, or an error text: what is
 * wrong, and what is allowed.
 */

/* queue_limit: requests, 0: not set.  name: TEN_UNKNOWN, too */
const char *MAP_Tenant(struct hostmap *, const char *name, double weight,
    unsigned queue_limit);
const char *MAP_Group(struct hostmap *, const char *name, double weight);
/* group: its name without parentheses */
const char *MAP_Member(struct hostmap *, const char *name, const char *group);
/* Parts of the dominant resource.  A reservation of 0 is none, and a limit of 1
 * is none: it is stored as 0. */
const char *MAP_Limits(struct hostmap *, const char *name, double reservation,
    double limit);
/* Bytes of each store of the cache.  0 is none in both. */
const char *MAP_Memory(struct hostmap *, const char *name, int64_t reservation,
    int64_t limit);
/* all: 1: each object of the tenant enters the cache; 0: admission decides. */
const char *MAP_Admission(struct hostmap *, const char *name, int all);
/* Set a time of a tenant or a group, s.  A member without one has that of its
 * group. */
const char *MAP_Time(struct hostmap *, const char *name, enum map_time, double);
/* What refused requests get, see page.h.  A member without a refusal has that
 * of its group. */
const char *MAP_Refusal(struct hostmap *, const char *name, int64_t status,
    const char *body, const char *type, int vcl);
const char *MAP_Host(struct hostmap *, const char *name, const char *pattern);
/* Hosts that match no pattern.  0: their tenant is (unknown); 1: each has its
 * own. */
void MAP_Unknown(struct hostmap *, int own);

/*
 * Write the name of a Host's tenant, with its NUL, and return its length.
 * host: lower case, len bytes and a NUL.  name: TEN_NAME_MAX + 1 bytes.
 */
size_t MAP_Name(const struct hostmap *, const char *host, size_t len,
    char *name);

/* If the Host is a tenant of its own by a pattern, return what is declared for
 * it, else NULL. */
struct map_tenant *MAP_Each(const struct hostmap *, const char *host,
    size_t len);

#endif
