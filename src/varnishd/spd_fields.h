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

struct spd_fields {
	uint32_t owner;			/* memory/owners.h */
	field_NAME tenant;
#define TENANT_FIELD(kind, name, key, label, counter, value) field_##kind name;
#include "tenant_fields.h"
};

#endif
