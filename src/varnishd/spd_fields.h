/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * A copy of a tenant's fields, for all who show or ask: CLI, counters, VCL.
 */

#ifndef SPD_FIELDS_H_INCLUDED
#define SPD_FIELDS_H_INCLUDED

#include <stdint.h>

/* The type of each kind of field. */
#define TYPE_NAME(m)	char m[256]		/* "": it has none */
#define TYPE_WORD(m)	const char *m		/* NULL: none */
#define TYPE_NUMBER(m)	uint64_t m
#define TYPE_REAL(m)	double m
#define TYPE_PART(m)	double m		/* 0 to 1 */
#define TYPE_COST(m)	int64_t m		/* ns, of one request */
#define TYPE_TIME(m)	int64_t m		/* ns, in all */
#define TYPE_PROOF(m)	int m			/* s; -1: not a new Host */

struct spd_fields {
	TYPE_NAME(tenant);
#define TENANT_FIELD(kind, name, key, label, counter, value) TYPE_##kind(name);
#include "tenant_fields.h"
};

#undef TYPE_NAME
#undef TYPE_WORD
#undef TYPE_NUMBER
#undef TYPE_REAL
#undef TYPE_PART
#undef TYPE_COST
#undef TYPE_TIME
#undef TYPE_PROOF

#endif
