/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The map of a VCL, for the files that publish it and pin its tenants.
 *
 * A map is filled in vcl_init, before it is in force.  Later only `user` of its
 * tenants changes: the tenant's record while the map is in force, written
 * under spd_lock().  Only the CLI's thread fills and publishes maps.
 */

struct spd_map {
	unsigned		magic;
#define SPD_MAP_MAGIC		0x5a9d3a96
	VTAILQ_ENTRY(spd_map)	list;
	const struct vcl	*vcl;
	struct hostmap		map[1];
};

/* Return the VCL's map, or NULL.  Only the CLI's thread may call it: no lock */
struct spd_map *spd_map_of(const struct vcl *);
/* Put a map into force, or none (NULL).  Return the last one, or NULL */
struct spd_map *spd_map_publish(struct spd_map *);
