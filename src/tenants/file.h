/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Tenants in a file: a line each.
 *
 *	# Our customers
 *	(gold)  weight=4 limit=0.5
 *	shop    shop.example *.shop.example weight=2 group=gold target=200ms
 *	*sites  *.sites.example group=gold
 *
 * The first word of a line is the name of a tenant, or of a group in
 * parentheses.  Each other word is a setting, NAME=VALUE, or a pattern of
 * Hosts.  If the name begins with "*", each Host is a tenant (hostmap.h).  The
 * name (unknown) is that of the tenant of all other Hosts.  A group may come
 * after its members.  From # on the line is a comment.
 */

#ifndef TENANTS_FILE_H_INCLUDED
#define TENANTS_FILE_H_INCLUDED

#include "hostmap.h"

enum file_setting {
	FILE_WEIGHT,
	FILE_QUEUE_LIMIT,
	FILE_RESERVATION,
	FILE_LIMIT,
	FILE_MEMORY_RESERVATION,
	FILE_MEMORY_LIMIT,
	FILE_TARGET,
	FILE_QUEUE_TIMEOUT,
	FILE_FETCH_TARGET,
	FILE_STATUS,
	FILE_NUMBERS,			/* the others have words */
	FILE_GROUP = FILE_NUMBERS,
	FILE_ADMISSION,
	FILE_SETTINGS
};

/* Tell of an error.  line: from 1 on; 0: of the file as a whole.  why: what is
 * wrong, and what is allowed; for this call only. */
typedef void file_error_f(void *priv, unsigned line, const char *why);

/*
 * Add the tenants of a file to a map.  Returns how many errors there are, and
 * tells of each.  After an error the map has a part of the file: the caller
 * should not use it.
 */
unsigned FILE_Read(struct hostmap *, const char *path, file_error_f *,
    void *priv);

/* The same for one line, which begins with a name.  *given: a bit for each of
 * its settings, 1U << enum file_setting. */
unsigned FILE_Line(struct hostmap *, const char *line, unsigned *given,
    file_error_f *, void *priv);

#endif
