/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Reads a clock of the kernel.
 */

#ifndef CLOCK_H_INCLUDED
#define CLOCK_H_INCLUDED

#include <stdint.h>
#include <time.h>

/* Return the clock's time, ns; -1: the kernel refuses this clock */
static inline int64_t
meter_clock(clockid_t id)
{
	struct timespec ts;

	if (clock_gettime(id, &ts) != 0)
		return (-1);
	return ((int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec);
}

#endif
