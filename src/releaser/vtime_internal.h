/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * What vtime.c and vtime_choice.c share, and a policy does not see.
 */

#ifndef VTIME_INTERNAL_H_INCLUDED
#define VTIME_INTERNAL_H_INCLUDED

#include "vtime.h"

#define V_MAX		(INT64_C(1) << 60)	/* above it, rebase */

static inline struct vt_tree *
tree_of(struct vt *p, const struct vt_tenant *n)
{
	return (n->place == VT_GPS_BUSY ? &p->gps_busy : &p->tree[n->dominant]);
}

static inline int64_t
start_tag(const struct vt *p, const struct vt_tenant *n)
{
	if (n->place == VT_GPS_BUSY)
		return (n->s);
	return (n->s + p->tree[n->dominant].offset);
}

/* Bring r up to now: each running request is served as fast as the clock */
static inline void
serve(const struct vt *p, struct vt_tenant *n)
{
	int64_t past = p->now - n->since;

	n->since = p->now;
	if (past > 0 && n->ahead > 0)
		n->ahead -= least(n->ahead, within((__int128)past *
		    n->tenant->running, VIRTUAL_NS_MAX));
}

/*--------------------------------------------------------------------
 * vtime_choice.c
 */

/* Return the tenant that goes in this slot, or NULL if all is closed.  No slot
 * idles: if no tenant is eligible, the machine is faster than v, so v moves. */
struct vt_tenant *vt_choose(const struct rel *, struct vt *, unsigned slot);

#endif
