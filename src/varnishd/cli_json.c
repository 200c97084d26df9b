/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * JSON values for the CLI.
 *
 * sandpaper.list may print some hundred thousand numbers, and printf() is slow.
 * So most of them are formatted here.  The text is collected in a buffer.  When
 * that is full, the CLI gets it.
 */

#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spd.h"
#include "cli.h"

#include "vcli_serve.h"
#include "vsb.h"

/* The longest value is a string: each of its bytes may need six, for \u00xx */
#define VALUE_MAX	(6 * TEN_NAME_MAX + 2)

_Static_assert(sizeof ((struct spd_json *)NULL)->text >= 2 * VALUE_MAX,
    "a value must fit");

void
spd_json_begin(struct spd_json *j, struct cli *cli)
{

	j->cli = cli;
	j->n = 0;
}

/* Give the CLI what is in the buffer.  If the answer has no more room, drop it and
 * mark the answer as cut.  Call this after the last value. */
void
spd_json_flush(struct spd_json *j)
{

	if ((size_t)VSB_len(j->cli->sb) < *j->cli->limit)
		(void)VSB_bcat(j->cli->sb, j->text, (ssize_t)j->n);
	else
		VCLI_Out(j->cli, "%s", "");	/* marks it */
	j->n = 0;
}

/* Return where the next value begins, with room for VALUE_MAX bytes. */
static char *
room(struct spd_json *j)
{

	if (j->n > sizeof j->text - VALUE_MAX)
		spd_json_flush(j);
	return (j->text + j->n);
}

/* Print a text as it is, at most VALUE_MAX bytes. */
void
spd_json_text(struct spd_json *j, const char *p)
{
	size_t l = strlen(p);

	assert(l <= VALUE_MAX);
	memcpy(room(j), p, l);
	j->n += l;
}

/* Print a string of at most TEN_NAME_MAX bytes. */
void
spd_json_string(struct spd_json *j, const char *p)
{
	char *q = room(j);

	assert(strlen(p) <= TEN_NAME_MAX);
	*q++ = '"';
	for (; *p != '\0'; p++) {
		if (*p == '"' || *p == '\\')
			*q++ = '\\';
		if ((unsigned char)*p < ' ')
			q += sprintf(q, "\\u%04x", (unsigned char)*p);
		else
			*q++ = *p;
	}
	*q++ = '"';
	j->n = (size_t)(q - j->text);
}

/* Print u / 10^places after what is at q.  Returns the end. */
static char *
digits(char *q, uint64_t u, unsigned places)
{
	char digit[20];
	unsigned n = 0;

	do
		digit[n++] = (char)('0' + u % 10);
	while ((u /= 10) > 0 || n <= places);
	while (n > 0) {
		*q++ = digit[--n];
		if (n == places && n > 0)
			*q++ = '.';
	}
	return (q);
}

/* Print the number v / 10^places with so many decimal places, at most 9. */
void
spd_json_decimal(struct spd_json *j, int64_t v, unsigned places)
{
	char *q = room(j);

	assert(places <= 9);
	if (v < 0)
		*q++ = '-';
	q = digits(q, v < 0 ? -(uint64_t)v : (uint64_t)v, places);
	j->n = (size_t)(q - j->text);
}

/* Print a whole number. */
void
spd_json_number(struct spd_json *j, uint64_t v)
{

	j->n = (size_t)(digits(room(j), v, 0) - j->text);
}

/* Print a real number with six significant digits. */
void
spd_json_real(struct spd_json *j, double v)
{

	if (v >= 0 && v < 1e6 && v == (double)(uint64_t)v)
		spd_json_number(j, (uint64_t)v);
	else
		j->n += (size_t)sprintf(room(j), "%.6g", v);
}

/* Print a string of at most TEN_NAME_MAX bytes at once.  VCLI_JSON_str() of
 * Varnish 6.0 writes octal escapes, which JSON does not have. */
void
spd_cli_string(struct cli *cli, const char *p)
{
	struct spd_json j;

	spd_json_begin(&j, cli);
	spd_json_string(&j, p);
	spd_json_flush(&j);
}
