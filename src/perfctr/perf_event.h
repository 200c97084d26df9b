/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * A perf_event counter of the calling thread: the system calls.
 */

#ifndef PERF_EVENT_H_INCLUDED
#define PERF_EVENT_H_INCLUDED

#include <stddef.h>
#include <stdint.h>

#include <perfmon/pfmlib_perf_event.h>

#include "meter.h"

/* perf_event_mmap_page.capabilities: Linux's cap_user_rdpmc.  libpfm4's copy of
 * the header has another name for it. */
#define METER_CAP_RDPMC	(1U << 2)

/* Open a counter of the calling thread, on any core; -1: see errno */
int meter_perf_open(const struct meter_source *);
/* Read the counter by a system call, scaled up if the PMU was multiplexed.
 * Returns 0 if that fails. */
int meter_perf_read(int fd, uint64_t *count);
/* Map the counter's page, for reading; NULL: not possible.  Unmap it; NULL is
 * allowed. */
void *meter_perf_map(int fd);
void meter_perf_unmap(void *page);

/* May user space read the counter by rdpmc?  No, if there is no page. */
static inline int
meter_perf_rdpmc(const volatile struct perf_event_mmap_page *pc)
{
#ifdef __x86_64__
	return (pc != NULL && (pc->capabilities & METER_CAP_RDPMC) != 0);
#else
	(void)pc;
	return (0);
#endif
}

#endif
