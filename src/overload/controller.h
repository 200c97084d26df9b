/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * What a controller is: a row of the table in overload.c.
 */

#ifndef OVERLOAD_CONTROLLER_H_INCLUDED
#define OVERLOAD_CONTROLLER_H_INCLUDED

#include "overload.h"

#define OVL_MS		INT64_C(1000000)	/* ns */
#define OVL_SECOND	1e9			/* ns */

/* begin: may be NULL.  The state is all 0 then.  released: may be NULL. */
struct ovl_controller {
	const char		*name, *summary;
	void			(*begin)(struct ovl *, const struct ovl_queue *);
	int			(*admit)(struct ovl *,
				    const struct ovl_queue *);
	void			(*released)(struct ovl *,
				    const struct ovl_queue *, int64_t wait);
};

extern const struct ovl_controller ovl_limit, ovl_codel, ovl_seda,
    ovl_seda_scaled, ovl_gradient, ovl_credits, ovl_time;

#endif
