/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The structs of VCL's map, for the files that fill it and pin its tenants.
 *
 * A map is filled in vcl_init, before it is in force.  Later only `pinned`
 * changes.  Only the CLI's thread fills and publishes maps.
 */

struct map_tenant {
	VSTAILQ_ENTRY(map_tenant) list;
	char			name[TEN_NAME_MAX + 1];
	size_t			len;
	uint32_t		weight;		/* of REL_WEIGHT_ONE */
	unsigned		queue_limit;	/* requests, 0: not set */
	double			reservation, limit;	/* 0 to 1, 0: none */
	int			is_group;
	struct map_tenant	*group;		/* that it is in, or NULL */
	/* The record while the map is in force; written under spd_lock() */
	struct spd_tenant	*_Atomic pinned;
};

struct map_host {
	const char		*host;		/* without "*." */
	size_t			len;
	int			wild;		/* it had "*." */
	struct map_tenant	*tenant;
};

struct spd_map {
	unsigned		magic;
#define SPD_MAP_MAGIC		0x5a9d3a95
	VTAILQ_ENTRY(spd_map)	list;
	const struct vcl	*vcl;
	VSTAILQ_HEAD(, map_tenant) tenants;
	struct map_host		*host;
	size_t			nhost, space;	/* used, allocated */
	int			own;		/* 1: no (unknown) */
};

/* Return the VCL's map, or NULL.  Only the CLI's thread may call it: no lock */
struct spd_map *spd_map_of(const struct vcl *);
/* Put a map into force, or none (NULL).  Return the last one, or NULL */
struct spd_map *spd_map_publish(struct spd_map *);
