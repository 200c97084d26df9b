/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * A perf_event counter of the calling thread: see perf_event.h.  A counter goes
 * with its thread from core to core.
 */

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "perf_event.h"

static void
meter_attr(const struct meter_source *src, struct perf_event_attr *attr)
{

	memset(attr, 0, sizeof *attr);
	attr->size = sizeof *attr;
	attr->type = src->type;
	attr->config = src->config;
	attr->config1 = src->config1;
	attr->config2 = src->config2;
	attr->exclude_user = src->no_user;
	attr->exclude_kernel = src->no_kernel;
	attr->exclude_hv = 1;
	attr->read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
	    PERF_FORMAT_TOTAL_TIME_RUNNING;
}

int
meter_perf_open(const struct meter_source *src)
{
	struct perf_event_attr attr;

	meter_attr(src, &attr);
	return ((int)syscall(SYS_perf_event_open, &attr, 0, -1, -1,
	    PERF_FLAG_FD_CLOEXEC));
}

void *
meter_perf_map(int fd)
{
	void *p;

	p = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED,
	    fd, 0);
	return (p == MAP_FAILED ? NULL : p);
}

void
meter_perf_unmap(void *page)
{

	if (page != NULL)
		(void)munmap(page, (size_t)sysconf(_SC_PAGESIZE));
}

int
meter_perf_read(int fd, uint64_t *count)
{
	uint64_t v[3];		/* count, time enabled, time running */

	if (read(fd, v, sizeof v) != (ssize_t)sizeof v)
		return (0);
	*count = v[0];
	if (v[2] != 0 && v[2] < v[1])
		*count = (uint64_t)((unsigned __int128)v[0] * v[1] / v[2]);
	return (1);
}
