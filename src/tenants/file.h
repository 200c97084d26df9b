/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Tenants in a file: a line each.
 *
 *	# Our customers
 *	(gold)  weight=4 limit=0.5
 *	shop    shop.example *.shop.example weight=2 group=gold target=200ms
 *
 * The first word of a line is the name of a tenant, or of a group in
 * parentheses.  Each other word is a setting, NAME=VALUE, or a pattern of
 * Hosts.  A group may come after its members.  From # on the line is a comment.
 */

#ifndef TENANTS_FILE_H_INCLUDED
#define TENANTS_FILE_H_INCLUDED

#include "hostmap.h"

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

#endif
