/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The resources that a request pays for (paper, section 3.2), and the units
 * that several libraries share.
 */

#ifndef SANDPAPER_RESOURCE_H_INCLUDED
#define SANDPAPER_RESOURCE_H_INCLUDED

enum rel_resource {
	REL_CPU,
	REL_NET,
	REL__RESOURCES
};
#define REL_MASK(r)	(1U << (r))

/* 1.0 as the factor of a settlement, fixed point: see REL_Complete() */
#define REL_SCALE_ONE		65536U

#endif
