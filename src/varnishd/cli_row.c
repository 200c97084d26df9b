/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * One tenant, as sandpaper.list and sandpaper.show print it.
 *
 * The text of sandpaper.show and JSON have the same names and units.  The columns
 * of sandpaper.list have shorter names.  JSON leaves out what a tenant does not
 * have.  A key is the number of a field of tenant_fields.h, or after those the
 * number of a field of last_fields.h.  A table of JSON has the keys once.
 */

#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "spd.h"
#include "cli.h"

#include "vcli_serve.h"

enum key {
#define TENANT_FIELD(kind, name, key, counter, value)	KEY_##name,
#include "tenant_fields.h"
#define LAST_FIELD(name, value)				KEY_##name,
#include "last_fields.h"
	KEY__N
};

static const char * const keys[KEY__N] = {
#define TENANT_FIELD(kind, name, key, counter, value)	key,
#include "tenant_fields.h"
#define LAST_FIELD(name, value)				#name,
#include "last_fields.h"
};

/* A mask has a bit for each field of tenant_fields.h */
_Static_assert(KEY_completed_per_s <= 64, "too many fields");
#define MASK(key)	(UINT64_C(1) << (key))

/* Return the number of a key, or -1. */
int
spd_row_key(const char *key, size_t len)
{
	int i;

	for (i = 0; i < KEY__N; i++)
		if (strlen(keys[i]) == len && !strncmp(keys[i], key, len))
			return (i);
	return (-1);
}

/* Return a key's name, NULL after the last one. */
const char *
spd_row_name(unsigned key)
{

	return (key < KEY__N ? keys[key] : NULL);
}

/* Return the mask of a key, 0 if it is one of the last seconds. */
uint64_t
spd_row_mask(int key)
{

	return (key < (int)KEY_completed_per_s ? MASK(key) : 0);
}

/* Return what spd_fields() has to copy to print these keys, and to sort by one.
 * sort: -1: none. */
unsigned
spd_row_parts(uint64_t mask, int sort)
{
	unsigned parts = 0;

	if (sort >= 0 && spd_row_mask(sort) == 0)
		parts |= SPD_FIELDS_LAST;
	if (sort >= 0)
		mask |= spd_row_mask(sort);
	if (mask & (MASK(KEY_waits_for) | MASK(KEY_oldest_wait_ns)))
		parts |= SPD_FIELDS_WHY;
	if (mask & MASK(KEY_last))
		parts |= SPD_FIELDS_LAST;
	return (parts);
}

/*--------------------------------------------------------------------
 * Values, to sort by.  A word counts as 1 if there is one.
 */

#define value_NUMBER(v)		((double)(v))
#define value_REAL(v)		(v)
#define value_PART(v)		(v)
#define value_TIME(v)		((double)(v))
#define value_COST(v)		((double)(v))
#define value_FLAG(v)		((double)(v))
#define value_MEMBERS(v)	((double)(v))
#define value_PROOF(v)		((double)(v))
#define value_WORD(v)		((v) != NULL)
#define value_NAME(v)		((v).text[0] != '\0')
#define value_WAITS(v)		0
#define value_LAST(v)		0

/* Return the value of a key.  last: index of SPD_LAST_S. */
double
spd_row_value(const struct spd_fields *r, int key, unsigned last)
{

	switch (key) {
#define TENANT_FIELD(kind, name, key, counter, value)	\
	case KEY_##name: return (value_##kind(r->name));
#include "tenant_fields.h"
#define LAST_FIELD(name, value)				\
	case KEY_##name: return (r->last.of[last].name);
#include "last_fields.h"
	default:
		WRONG("no such key");
	}
}

/*--------------------------------------------------------------------
 * Print each kind of field as text
 */

#define TEXT(c, key, form, v)	VCLI_Out(c, "%-22s " form "\n", key, v)
#define SECONDS(ns)		((double)(ns) * 1e-9)

#define text_NUMBER(c, key, v)	TEXT(c, key, "%ju", (uintmax_t)(v))
#define text_REAL(c, key, v)	TEXT(c, key, "%.6g", v)
#define text_PART(c, key, v)	TEXT(c, key, "%.3f", v)
#define text_TIME(c, key, ns)	TEXT(c, key, "%.6f", SECONDS(ns))
#define text_COST(c, key, ns)	TEXT(c, key, "%.9f", SECONDS(ns))
#define text_FLAG(c, key, v)	TEXT(c, key, "%s", (v) ? "true" : "false")
#define text_NAME(c, key, v)	text_WORD(c, key, (v).text)
#define text_WAITS(c, key, v)	(void)(v)
#define text_LAST(c, key, v)	text_last(c, &(v))

static void
text_WORD(struct cli *cli, const char *key, const char *v)
{

	TEXT(cli, key, "%s", v != NULL && *v != '\0' ? v : "-");
}

static void
text_PROOF(struct cli *cli, const char *key, int s)
{

	if (s >= 0)
		VCLI_Out(cli, "%-22s %d of %d s in the last %d s\n", key, s,
		    NEW_PROOF, NEW_WINDOW);
}

static void
text_MEMBERS(struct cli *cli, const char *key, unsigned n)
{

	if (n > 0)
		TEXT(cli, key, "%u", n);
}

static const unsigned seconds[SPD_LAST] = SPD_LAST_S;

static void
text_last(struct cli *cli, const field_LAST *l)
{
	unsigned u;

	VCLI_Out(cli, "%-22s", "in the last");
	for (u = 0; u < SPD_LAST; u++)
		VCLI_Out(cli, " %10u s", seconds[u]);
#define LAST_FIELD(name, value)						\
	VCLI_Out(cli, "\n%-22s", #name);				\
	for (u = 0; u < SPD_LAST; u++)					\
		VCLI_Out(cli, " %12.6g", l->of[u].name);
#include "last_fields.h"
	VCLI_Out(cli, "\n");
}

/*--------------------------------------------------------------------
 * Print each kind of field as JSON, after another one.  key: NULL: in a table.
 */

#define json_NUMBER(j, key, v)	(json_key(j, key), spd_json_number(j, v))
#define json_REAL(j, key, v)	(json_key(j, key), spd_json_real(j, v))
#define json_PART(j, key, v)	(json_key(j, key),			\
				spd_json_decimal(j, llround((v) * 1e6), 6))
#define json_TIME(j, key, ns)	(json_key(j, key), spd_json_decimal(j, ns, 9))
#define json_COST(j, key, ns)	json_TIME(j, key, ns)
#define json_FLAG(j, key, v)	(json_key(j, key),			\
				spd_json_text(j, (v) ? "true" : "false"))
#define json_NAME(j, key, v)	json_WORD(j, key, (v).text)
#define json_WAITS(j, key, v)	json_waits(j, key, &(v))
#define json_LAST(j, key, v)	json_last(j, key, &(v))

static void
json_key(struct spd_json *j, const char *key)
{

	spd_json_text(j, ", ");
	if (key == NULL)
		return;
	spd_json_text(j, "\"");
	spd_json_text(j, key);
	spd_json_text(j, "\": ");
}

/* The tenant does not have this field. */
static void
json_none(struct spd_json *j, const char *key)
{

	if (key == NULL)
		spd_json_text(j, ", null");
}

static void
json_WORD(struct spd_json *j, const char *key, const char *v)
{

	if (v == NULL || *v == '\0') {
		json_none(j, key);
		return;
	}
	json_key(j, key);
	spd_json_string(j, v);
}

static void
json_PROOF(struct spd_json *j, const char *key, int s)
{

	if (s >= 0)
		json_NUMBER(j, key, (unsigned)s);
	else
		json_none(j, key);
}

static void
json_MEMBERS(struct spd_json *j, const char *key, unsigned n)
{

	if (n > 0)
		json_NUMBER(j, key, n);
	else
		json_none(j, key);
}

static void
json_waits(struct spd_json *j, const char *key, const field_WAITS *w)
{
	unsigned u;

	json_key(j, key);
	spd_json_text(j, "[");
	for (u = 0; u < WAITS; u++) {
		if (u > 0)
			spd_json_text(j, ", ");
		spd_json_number(j, w->count[u]);
	}
	spd_json_text(j, "]");
}

static void
json_last(struct spd_json *j, const char *key, const field_LAST *l)
{
	unsigned u;

	json_key(j, key);
	spd_json_text(j, "[");
	for (u = 0; u < SPD_LAST; u++) {
		spd_json_text(j, u > 0 ? ", {\"s\": " : "{\"s\": ");
		spd_json_number(j, seconds[u]);
#define LAST_FIELD(name, value)	json_REAL(j, #name, l->of[u].name);
#include "last_fields.h"
		spd_json_text(j, "}");
	}
	spd_json_text(j, "]");
}

/*--------------------------------------------------------------------
 * Print a tenant
 */

/* Print the fields of a mask: of a table their values, else an object. */
void
spd_row_json(struct spd_json *j, const struct spd_fields *r, uint64_t mask,
    int table)
{

	spd_json_text(j, table ? "[" : "{\"tenant\": ");
	spd_json_string(j, r->tenant.text);
#define TENANT_FIELD(kind, name, key, counter, value)	\
	if (mask & MASK(KEY_##name))			\
		json_##kind(j, table ? NULL : key, r->name);
#include "tenant_fields.h"
	spd_json_text(j, table ? "]" : "}");
}

/* Print the keys of a table with the fields of a mask. */
void
spd_row_keys_json(struct spd_json *j, uint64_t mask)
{
	int key;

	spd_json_text(j, "[\"tenant\"");
	for (key = 0; spd_row_mask(key) != 0; key++)
		if (mask & spd_row_mask(key)) {
			spd_json_text(j, ", ");
			spd_json_string(j, keys[key]);
		}
	spd_json_text(j, "]");
}

/* Print all fields of a tenant, a line each. */
void
spd_row_text(struct cli *cli, const struct spd_fields *r)
{

	text_NAME(cli, "tenant", r->tenant);
#define TENANT_FIELD(kind, name, key, counter, value)	\
	text_##kind(cli, key, r->name);
#include "tenant_fields.h"
}

/* Print the sums over all tenants as JSON members, after another member. */
void
spd_sums_json(struct spd_json *j, const struct spd_sums *sums)
{

#define JSON_SUM(kind, name, key)	json_##kind(j, key, sums->name);
#define JSON_VSC(kind, name, key)
#define JSON_NO(kind, name, key)
#define TENANT_FIELD(kind, name, key, counter, value)	\
	JSON_##counter(kind, name, key)
#include "tenant_fields.h"
}
