/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Is varnishd draining?  Before it stops, each connection ends with its next
 * answer, so that clients go elsewhere and lose no request.
 */

#include "config.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "spd.h"

static _Atomic int draining;

/* Return 1 while varnishd is draining. */
int
SPD_Draining(void)
{

	return (atomic_load_explicit(&draining, memory_order_relaxed));
}

/* Begin to drain (1), or no longer (0). */
void
spd_drain(int on)
{

	draining = on;
}
