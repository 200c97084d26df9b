/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * What a host map has: for those who fill it, and who pin its tenants.
 */

struct map_tenant {
	VSTAILQ_ENTRY(map_tenant) list;
	char			name[TEN_NAME_MAX + 1];
	size_t			len;
	uint32_t		weight;
	unsigned		queue_limit;
	double			reservation, limit;	/* 0: none */
	int			is_group;
	struct map_tenant	*group;		/* whose member it is, or NULL */
	/* Its record while the map is in force; written under spd_lock() */
	struct spd_tenant	*_Atomic pinned;
};

struct map_host {
	const char		*host;		/* without "*." */
	size_t			len;
	int			wild;
	struct map_tenant	*tenant;
};

struct spd_map {
	unsigned		magic;
#define SPD_MAP_MAGIC		0x5a9d3a95
	VTAILQ_ENTRY(spd_map)	list;
	const struct vcl	*vcl;
	VSTAILQ_HEAD(, map_tenant) tenants;
	struct map_host		*host;
	size_t			nhost, space;
	int			own;
};

/* The VCL's map, or NULL.  Only the CLI's thread may ask */
struct spd_map *spd_map_of(const struct vcl *);
/* It is in force from now on.  Returns the last one; NULL: none */
struct spd_map *spd_map_publish(struct spd_map *);
