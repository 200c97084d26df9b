/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * A map from Host to tenant, and what is declared of its tenants.
 *
 * First a map is filled, then it is looked up.  A map that is filled does not
 * change, except for `user`.  So lookups need no lock.  Filling aborts when
 * there is no memory.
 */

#ifndef TENANTS_HOSTMAP_H_INCLUDED
#define TENANTS_HOSTMAP_H_INCLUDED

#include <stddef.h>

#include "page.h"
#include "table.h"

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
	double			target;		/* s, longest wait; 0: not set */
	double			queue_timeout;	/* s; 0: not set */
	struct page		*refusal;	/* NULL: not set */
	int			is_group;
	struct map_tenant	*group;		/* that it is in, or NULL */
	void			*_Atomic user;	/* the caller's */
};

struct hostmap {
	unsigned		magic;
#define HOSTMAP_MAGIC		0x5a9d3a95
	struct map_tenant	*first, **end;	/* in order of declaration */
	struct map_host		*host;		/* sorted */
	size_t			nhost, space;	/* used, allocated */
	int			own;		/* see MAP_Unknown() */
};

void MAP_Init(struct hostmap *);
void MAP_Fini(struct hostmap *);

/*
 * Fill.  A function that can fail returns NULL, or an error text: what is
 * wrong, and what is allowed.
 */

/* queue_limit: requests, 0: not set */
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
/* target: s, 0.001 to 10.  A member without a target has that of its group. */
const char *MAP_Target(struct hostmap *, const char *name, double target);
/* timeout: s, 0.001 to 86400.  The same for groups. */
const char *MAP_QueueTimeout(struct hostmap *, const char *name,
    double timeout);
/* What refused requests get, see page.h.  A member without a refusal has that
 * of its group. */
const char *MAP_Refusal(struct hostmap *, const char *name, int64_t status,
    const char *body, const char *type);
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

#endif
