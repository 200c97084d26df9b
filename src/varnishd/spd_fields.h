/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * A copy of a tenant's fields.  The CLI prints it, and VCL functions read it.
 */

#ifndef SPD_FIELDS_H_INCLUDED
#define SPD_FIELDS_H_INCLUDED

#include <stdint.h>

/* The type of each kind of field. */
typedef struct { char text[256]; } field_NAME;	/* "": it has none */
typedef const char *field_WORD;		/* NULL: none */
typedef uint64_t field_NUMBER;
typedef double field_REAL;
typedef double field_PART;		/* 0 to 1 */
typedef int64_t field_COST;		/* ns, of one request */
typedef int64_t field_TIME;		/* ns, in all */
typedef int field_PROOF;		/* s; -1: not a new Host */
typedef int field_FLAG;			/* 1: true */
typedef unsigned field_MEMBERS;		/* 0: it is no group */
typedef struct { uint64_t count[17]; } field_WAITS;	/* tenants/recent.h */

/* What the last seconds were.  A tenant has those of each SPD_LAST_S. */
#define SPD_LAST	3
#define SPD_LAST_S	{ 1, 10, 60 }
struct spd_last {
#define LAST_FIELD(name, value)	double name;
#include "last_fields.h"
};
typedef struct { struct spd_last of[SPD_LAST]; } field_LAST;

struct spd_fields {
	uint32_t owner;			/* memory/owners.h */
	field_NAME tenant;
#define TENANT_FIELD(kind, name, key, counter, value) field_##kind name;
#include "tenant_fields.h"
};

/* The sums over all tenants since the start */
struct spd_sums {
#define SUMS_SUM(kind, name)	field_##kind name;
#define SUMS_VSC(kind, name)
#define SUMS_NO(kind, name)
#define TENANT_FIELD(kind, name, key, counter, value) SUMS_##counter(kind, name)
#include "tenant_fields.h"
};

#endif
