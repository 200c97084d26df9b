/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The arithmetic of poolmgr.h, and the number of cores.
 *
 * A pool must have a thread for each slot that it can get.  A request runs in
 * the pool of its session, and one pool may get all of W at a time.  So each
 * pool has W and the parsing tasks in full, and its even part of all other
 * threads.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "poolmgr.h"

static unsigned
pm_sat(uint64_t n)
{

	return (n > UINT_MAX ? UINT_MAX : (unsigned)n);
}

unsigned
POOLMGR_Slots(unsigned workers_per_core, unsigned cores)
{
	uint64_t w = (uint64_t)workers_per_core * cores;

	return (w == 0 ? 1 : pm_sat(w));
}

/* Return how many threads a pool needs now */
static unsigned
pm_need(const struct poolmgr_snapshot *s)
{
	uint64_t all, beside;

	all = (uint64_t)POOLMGR_Slots(s->workers_per_core, s->cores) +
	    s->parsers + s->reserve;
	beside = (uint64_t)s->acceptors + s->lent + s->fetches +
	    s->h2_sessions;
	all += (beside + s->pools - 1) / s->pools;
	if (all < s->min)
		all = s->min;
	if (all > s->max)
		all = s->max;
	return (pm_sat(all));
}

unsigned
POOLMGR_Threads(struct poolmgr *pm, const struct poolmgr_snapshot *s,
    int64_t now)
{
	unsigned need;

	assert(pm != NULL && s != NULL);
	assert(s->pools >= 1);
	need = pm_need(s);
	if (pm->threads > s->max)		/* max was lowered */
		pm->threads = s->max;
	if (need >= pm->threads) {
		pm->threads = need;
		pm->needed = now;
	} else if (now - pm->needed >= POOLMGR_SHRINK) {
		pm->threads -= (pm->threads - need + 7) / 8;
		pm->needed = now;
	}
	return (pm->threads);
}

unsigned
POOLMGR_Open(const struct poolmgr_load *load, int64_t *doubled, int64_t now)
{
	uint64_t n = load->open, least = (uint64_t)load->cores * POOLMGR_OPEN;

	if (load->full && load->busy < 90) {
		n *= 2;
		*doubled = now;
	} else if (load->busy >= 95 && now - *doubled >= POOLMGR_KEEP) {
		n /= 2;
	}
	if (n < least)
		n = least;
	return (n > load->slots ? load->slots : (unsigned)n);
}

double
POOLMGR_Expected(double lambda, double p_miss, double fetch_seconds)
{

	return (lambda * p_miss * fetch_seconds);
}

/*--------------------------------------------------------------------
 * Cores
 */

static unsigned
pm_affinity(void)
{
	cpu_set_t *set;
	size_t size;
	unsigned n = 0;
	int cpus;

	/* EINVAL: the kernel has more cores than the set has room for */
	for (cpus = CPU_SETSIZE; n == 0 && cpus <= 1 << 20; cpus *= 2) {
		set = CPU_ALLOC(cpus);
		if (set == NULL)
			break;
		size = CPU_ALLOC_SIZE(cpus);
		if (sched_getaffinity(0, size, set) == 0)
			n = (unsigned)CPU_COUNT_S(size, set);
		else if (errno != EINVAL)
			cpus = 1 << 20;
		CPU_FREE(set);
	}
	return (n == 0 ? 1 : n);
}

/* Read the first line of a file; 0: there is none */
static int
pm_line(char *line, size_t len, const char *dir, const char *name)
{
	char path[PATH_MAX];
	FILE *f;
	char *p;
	int n;

	n = snprintf(path, sizeof path, "%s/%s", dir, name);
	if (n < 0 || (size_t)n >= sizeof path)
		return (0);
	f = fopen(path, "r");
	if (f == NULL)
		return (0);
	p = fgets(line, (int)len, f);
	(void)fclose(f);
	return (p != NULL);
}

/* Return quota us of each period us as cores, rounded up; 0: no limit */
static unsigned
pm_cores(long long quota, long long period)
{

	if (quota <= 0 || period <= 0)
		return (0);
	return (pm_sat((uint64_t)(quota / period + (quota % period != 0))));
}

/* Return the limit of this cgroup's own files, in cores; 0: no limit */
static unsigned
pm_dir_quota(const char *dir)
{
	long long quota, period;
	char a[64], b[64];

	if (pm_line(a, sizeof a, dir, "cpu.max")) {	/* v2: "max 100000" */
		if (sscanf(a, "%lld %lld", &quota, &period) == 2)
			return (pm_cores(quota, period));
		return (0);
	}
	if (pm_line(a, sizeof a, dir, "cpu.cfs_quota_us") &&
	    pm_line(b, sizeof b, dir, "cpu.cfs_period_us"))
		return (pm_cores(atoll(a), atoll(b)));	/* v1: -1: none */
	return (0);
}

static unsigned
pm_least(unsigned a, unsigned b)
{

	if (a == 0 || b == 0)
		return (a == 0 ? b : a);
	return (a < b ? a : b);
}

/*
 * Return the least limit of a cgroup and all above it; 0: no limit.  In a
 * container without a cgroup namespace the path is that of the machine, and
 * does not exist.  The container's own cgroup is then the mount, the last one
 * tried.
 */
static unsigned
pm_path_quota(const char *mount, const char *cgroup)
{
	char dir[PATH_MAX];
	size_t top = strlen(mount);
	unsigned least = 0;
	char *slash;
	int n;

	n = snprintf(dir, sizeof dir, "%s%s", mount, cgroup);
	if (n < 0 || (size_t)n >= sizeof dir)
		return (0);
	for (;;) {
		least = pm_least(least, pm_dir_quota(dir));
		slash = strrchr(dir, '/');
		if (slash == NULL || slash < dir + top)
			return (least);
		*slash = '\0';
	}
}

/* Is "cpu" one of "cpu,cpuacct"? */
static int
pm_has_cpu(const char *controllers)
{
	const char *p = controllers;
	size_t n;

	for (;;) {
		n = strcspn(p, ",");
		if (n == 3 && !strncmp(p, "cpu", 3))
			return (1);
		if (p[n] == '\0')
			return (0);
		p += n + 1;
	}
}

/* Return the limit of one line of /proc/self/cgroup, "4:cpu,cpuacct:/a/b" or
 * "0::/a/b", under the mounts that distributions use; 0: no limit */
static unsigned
pm_cgroup_quota(const char *root, char *line)
{
	char mount[PATH_MAX];
	char *controllers, *path;
	const char *names[2];
	unsigned least = 0;
	int i, n;

	line[strcspn(line, "\n")] = '\0';
	controllers = strchr(line, ':');
	if (controllers == NULL)
		return (0);
	path = strchr(++controllers, ':');
	if (path == NULL)
		return (0);
	*path++ = '\0';
	if (*controllers == '\0') {
		names[0] = "";
		names[1] = "/unified";
	} else if (pm_has_cpu(controllers)) {
		names[0] = "/cpu,cpuacct";
		names[1] = "/cpu";
	} else
		return (0);
	for (i = 0; i < 2; i++) {
		n = snprintf(mount, sizeof mount, "%s/sys/fs/cgroup%s", root,
		    names[i]);
		if (n > 0 && (size_t)n < sizeof mount)
			least = pm_least(least, pm_path_quota(mount, path));
	}
	return (least);
}

unsigned
POOLMGR_Quota(const char *root)
{
	char path[PATH_MAX], *line = NULL;
	unsigned least = 0;
	size_t size = 0;
	FILE *f;
	int n;

	assert(root != NULL);
	n = snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
	if (n < 0 || (size_t)n >= sizeof path)
		return (0);
	f = fopen(path, "r");
	if (f == NULL)
		return (0);
	while (getline(&line, &size, f) > 0)
		least = pm_least(least, pm_cgroup_quota(root, line));
	free(line);
	(void)fclose(f);
	return (least);
}

unsigned
POOLMGR_Cores(const char *root)
{

	return (pm_least(pm_affinity(), POOLMGR_Quota(root)));
}
