/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The map of a VCL, for the files that fill it, publish it and pin its tenants.
 *
 * A map is filled in vcl_init, before it is in force.  Later only `user` of its
 * tenants changes: the tenant's record while the map is in force, written
 * under spd_lock().  Only the CLI's thread fills and publishes maps.
 */

struct spd_step;

struct spd_map {
	unsigned		magic;
#define SPD_MAP_MAGIC		0x5a9d3a96
	VTAILQ_ENTRY(spd_map)	list;
	const struct vcl	*vcl;
	struct hostmap		map[1];
	int			names;		/* it is not only rules of
						 * exempt.h */
	/* What filled it */
	VSTAILQ_HEAD(, spd_step) steps;
};

/* Return the VCL's map, or NULL.  Only the CLI's thread may call it: no lock */
struct spd_map *spd_map_of(const struct vcl *);
/* Put a map into force, or none (NULL).  Return the last one, or NULL */
struct spd_map *spd_map_publish(struct spd_map *);
struct spd_map *spd_map_again(const char **error);
void spd_map_replace(struct spd_map *old, struct spd_map *);

/* A tenant that the active VCL's map names */
struct spd_mapped {
	struct spd_tenant	*tenant;
	uint32_t		generation;	/* of its record */
	char			name[TEN_NAME_MAX + 1];
};
unsigned spd_map_tenants(struct spd_mapped **, unsigned *);

/* hook_vcl.c */
const char *spd_map_reload(unsigned *tenants, unsigned *left);

/* spd_settings.c: the last four are locked */
uint32_t spd_map_part(double);
uint32_t spd_map_weight(double);
int64_t spd_map_target(const struct map_tenant *);
void spd_settings(struct spd_tenant *, const struct spd_map *,
    const struct map_tenant *);
void spd_settings_none(struct spd_tenant *);
void spd_settings_from(const struct spd_map *);
int spd_settings_each(struct spd_tenant *);

/* spd_steps.c */
int spd_steps_have_file(const struct spd_map *);
const char *spd_steps_again(struct spd_map *, const struct spd_map *from);
void spd_steps_free(struct spd_map *);
