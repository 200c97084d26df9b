/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Preloaded into varnishd: whenever a thread asks for its CPU time, it has used
 * $CPU_STEP_NS since it asked last.  The process always uses one core.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

typedef int clock_gettime_f(clockid_t, struct timespec *);

int
clock_gettime(clockid_t clock, struct timespec *ts)
{
	static clock_gettime_f *real;
	static __thread long long ns;

	if (clock == CLOCK_THREAD_CPUTIME_ID) {
		ns += atoll(getenv("CPU_STEP_NS"));
		ts->tv_sec = ns / 1000000000;
		ts->tv_nsec = ns % 1000000000;
		return (0);
	}
	if (real == NULL)
		real = (clock_gettime_f *)dlsym(RTLD_NEXT, "clock_gettime");
	if (clock == CLOCK_PROCESS_CPUTIME_ID)
		clock = CLOCK_MONOTONIC;
	return (real(clock, ts));
}
