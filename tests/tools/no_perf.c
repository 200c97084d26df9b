/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Preloaded into varnishd: perf_event_open(2) is refused, as seccomp or
 * perf_event_paranoid do it.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

long
syscall(long number, ...)
{
	long (*real)(long, ...), a[6];
	va_list ap;
	int i;

	if (number == SYS_perf_event_open) {
		errno = EACCES;
		return (-1);
	}
	va_start(ap, number);
	for (i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	return (real(number, a[0], a[1], a[2], a[3], a[4], a[5]));
}
