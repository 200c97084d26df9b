/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The resources that a request is charged for (paper, section 3.2), and the
 * units that more than one library has.
 */

#ifndef SANDPAPER_RESOURCE_H_INCLUDED
#define SANDPAPER_RESOURCE_H_INCLUDED

enum rel_resource {
	REL_CPU,
	REL_NET,
	REL__RESOURCES
};
#define REL_MASK(r)	(1U << (r))

/* A settlement factor of 1/p in fixed point: see REL_Complete() */
#define REL_SCALE_ONE		65536U

#endif
