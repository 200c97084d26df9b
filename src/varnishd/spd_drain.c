/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Is varnishd draining?  Before it stops, an HTTP/1 connection ends with its next
 * answer, and an HTTP/2 client is asked to open no more streams.  So clients go
 * elsewhere.
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

/* Begin to drain (1), or end it (0). */
void
spd_drain(int on)
{

	draining = on;
}
