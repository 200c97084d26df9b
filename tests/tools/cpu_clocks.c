/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Preloaded into varnishd: whenever a thread asks for its CPU time, it has used
 * $CPU_STEP_NS since it asked last.  The process always uses one core.
 */

#include "preload.h"

int
clock_gettime(clockid_t clock, struct timespec *ts)
{
	static int (*real)(clockid_t, struct timespec *);
	static __thread long long ns;

	if (clock == CLOCK_THREAD_CPUTIME_ID) {
		ns += atoll(getenv("CPU_STEP_NS"));
		ts->tv_sec = ns / S_NS;
		ts->tv_nsec = ns % S_NS;
		return (0);
	}
	if (real == NULL)
		real = REAL(clock_gettime);
	if (clock == CLOCK_PROCESS_CPUTIME_ID)
		clock = CLOCK_MONOTONIC;
	return (real(clock, ts));
}
