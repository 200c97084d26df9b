/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * A table of the cache: what admission does, what each tenant has in the cache,
 * and what it would gain with more memory or with its fair share.
 */

#ifndef SPD_TABLE_H_INCLUDED
#define SPD_TABLE_H_INCLUDED

#include "varnishd/spd_fields.h"

#define SPD_TABLE_MORE	.1		/* more memory, as a part of the
					 * storages */

struct spd_row {			/* of a tenant */
	struct spd_fields	*f;
	struct own_evictions	evicted;
	struct curve		curve;		/* of all its requests */
	const char		*by;		/* a name, or "-" */
	/* By how much its hit ratio would rise, or NAN */
	double			gain;		/* with SPD_TABLE_MORE */
	double			fair_gain;	/* with `share` */
	double			share;		/* bytes that it would have with
						 * sandpaper_memory=on */
};

struct spd_table {
	struct spd_cache_stat	stat;
	unsigned		rows;
	struct spd_fields	*fields;
	struct spd_row		*row;		/* who gains most hits is
						 * first */
	double			fair_gain;	/* of all requests, or NAN */
};

/* Copy all numbers.  The caller frees them. */
void spd_table(struct spd_table *);
void spd_table_free(struct spd_table *);
double spd_row_requests(const struct spd_row *);

#endif
