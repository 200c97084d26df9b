/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The pool's size on snapshots and a fake clock, and the cores of cgroup
 * trees that the test writes itself.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "poolmgr/poolmgr.h"

#define SEC		1000000000LL

/* The machine: its cores, and how many its kernel knows; 0: the real one */
static struct {
	unsigned	cores, known;
	int		error;
	unsigned	asked;
} machine;

int
sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
	unsigned u;

	CPU_ZERO_S(size, set);
	if (machine.known == 0)
		return (syscall(SYS_sched_getaffinity, pid, size, set) < 0 ?
		    -1 : 0);
	machine.asked++;
	assert_int_equal(pid, 0);
	if (machine.error != 0 || size * 8 < machine.known) {
		errno = machine.error != 0 ? machine.error : EINVAL;
		return (-1);
	}
	for (u = 0; u < machine.cores; u++)
		CPU_SET_S(u, size, set);
	return (0);
}

static const struct poolmgr_snapshot base = {
	.workers_per_core = 10,
	.cores = 4,
	.parsers = 4,
	.acceptors = 4,
	.pools = 2,
	.reserve = 5,
	.min = 10,
	.max = 500,
};

static void
test_slots(void **state)
{

	(void)state;
	assert_int_equal(POOLMGR_Slots(10, 8), 80);
	assert_int_equal(POOLMGR_Slots(1, 1), 1);
	assert_int_equal(POOLMGR_Slots(0, 8), 1);
	assert_int_equal(POOLMGR_Slots(UINT_MAX, UINT_MAX), UINT_MAX);
}

static void
test_size(void **state)
{
	struct poolmgr_snapshot s = base;
	struct poolmgr pm;

	(void)state;
	memset(&pm, 0, sizeof pm);
	/* 40 slots, 4 parsers, 5 in reserve, half of 4 acceptors */
	assert_int_equal(POOLMGR_Threads(&pm, &s, SEC), 51);
	/* Grows at once: half of 10 + 20 + 3 more, rounded up */
	s.lent = 10;
	s.fetches = 20;
	s.h2_sessions = 3;
	assert_int_equal(POOLMGR_Threads(&pm, &s, SEC), 40 + 4 + 5 + 19);
	s.fetches = 5000;
	assert_int_equal(POOLMGR_Threads(&pm, &s, SEC), 500);
	s.max = 300;		/* param.set below what there is */
	assert_int_equal(POOLMGR_Threads(&pm, &s, SEC), 300);
	s.lent = s.fetches = s.h2_sessions = UINT_MAX;
	s.max = UINT_MAX;
	s.pools = 1;
	assert_int_equal(POOLMGR_Threads(&pm, &s, SEC), UINT_MAX);
	s = base;
	s.min = 200;
	memset(&pm, 0, sizeof pm);
	assert_int_equal(POOLMGR_Threads(&pm, &s, SEC), 200);
}

static void
test_shrinks_slowly(void **state)
{
	struct poolmgr_snapshot s = base;
	struct poolmgr pm;
	unsigned n, last;
	int i;

	(void)state;
	memset(&pm, 0, sizeof pm);
	s.lent = 160;
	assert_int_equal(POOLMGR_Threads(&pm, &s, SEC), 131);
	s.lent = 0;
	assert_int_equal(POOLMGR_Threads(&pm, &s, 2 * SEC - 1), 131);
	/* an eighth of 80 */
	assert_int_equal(POOLMGR_Threads(&pm, &s, 2 * SEC), 121);
	assert_int_equal(POOLMGR_Threads(&pm, &s, 2 * SEC + 1), 121);
	/* needed again, and for another second */
	s.lent = 160;
	assert_int_equal(POOLMGR_Threads(&pm, &s, 3 * SEC), 131);
	s.lent = 0;
	assert_int_equal(POOLMGR_Threads(&pm, &s, 4 * SEC - 1), 131);
	last = 131;
	for (i = 0; i < 60; i++) {
		n = POOLMGR_Threads(&pm, &s, (4 + i) * SEC);
		assert_true(n <= last && last - n <= (last - 51 + 7) / 8);
		assert_true(n < last || n == 51);
		last = n;
	}
	assert_int_equal(last, 51);
}

/* A pool that breathes faster than a second keeps its threads */
static void
test_no_churn(void **state)
{
	struct poolmgr_snapshot s = base;
	struct poolmgr pm;
	int i;

	(void)state;
	memset(&pm, 0, sizeof pm);
	s.lent = 100;
	assert_int_equal(POOLMGR_Threads(&pm, &s, SEC), 101);
	for (i = 0; i < 1000; i++) {
		s.lent = i % 9 == 0 ? 100 : 0;
		assert_int_equal(POOLMGR_Threads(&pm, &s,
		    SEC + i * (SEC / 10)), 101);
	}
}

/* The clock and the last answer are all that it remembers */
static void
test_pure(void **state)
{
	struct poolmgr_snapshot s = base;
	struct poolmgr a, b;
	uint64_t x = 1;
	int i;

	(void)state;
	memset(&a, 0, sizeof a);
	for (i = 0; i < 10000; i++) {
		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
		s.lent = (unsigned)(x >> 40) % 400;
		s.cores = 1 + (unsigned)(x >> 50) % 16;
		b = a;
		assert_int_equal(POOLMGR_Threads(&a, &s, i * (SEC / 3)),
		    POOLMGR_Threads(&b, &s, i * (SEC / 3)));
		assert_in_range(a.threads, s.min, s.max);
		assert_true(a.threads >=
		    POOLMGR_Slots(s.workers_per_core, s.cores));
	}
}

/*--------------------------------------------------------------------
 * Open slots: W = 40 on 4 cores
 */

static int64_t doubled;

static unsigned
load(unsigned open, int full, unsigned busy, int64_t now)
{
	const struct poolmgr_load l = {
		.slots = 40, .cores = 4, .open = open, .full = full,
		.busy = busy
	};

	return (POOLMGR_Open(&l, &doubled, now));
}

static void
test_open_halves_while_busy(void **state)
{

	(void)state;
	doubled = 0;
	assert_int_equal(load(40, 1, 94, SEC), 40);
	assert_int_equal(load(40, 1, 95, SEC), 20);
	assert_int_equal(load(20, 0, 100, SEC), 10);
	assert_int_equal(load(10, 1, 100, SEC), 8);	/* POOLMGR_OPEN */
	assert_int_equal(load(8, 1, 400, SEC), 8);
}

static void
test_open_doubles_while_blocked(void **state)
{

	(void)state;
	doubled = 0;
	assert_int_equal(load(8, 0, 0, SEC), 8);	/* not all are taken */
	assert_int_equal(load(8, 1, 90, SEC), 8);
	assert_int_equal(load(8, 1, 89, SEC), 16);
	assert_int_equal(load(32, 1, 0, 3 * SEC), 40);	/* W */
	/* What blocked may do so again */
	assert_int_equal(load(40, 1, 100, 3 * SEC + POOLMGR_KEEP - 1), 40);
	assert_int_equal(load(40, 1, 100, 3 * SEC + POOLMGR_KEEP), 20);
}

static void
test_open_limits(void **state)
{
	struct poolmgr_load l = { .slots = 3, .cores = 4, .open = 9 };

	(void)state;
	doubled = 0;
	/* W is less than POOLMGR_OPEN per core, or has changed */
	assert_int_equal(POOLMGR_Open(&l, &doubled, SEC), 3);
	l.slots = 40;
	l.open = 3;
	assert_int_equal(POOLMGR_Open(&l, &doubled, SEC), 8);
	/* Much more than there can be */
	l.slots = l.cores = l.open = l.busy = UINT_MAX;
	assert_int_equal(POOLMGR_Open(&l, &doubled, 4 * SEC), UINT_MAX);
	l.busy = 0;
	l.full = 1;
	assert_int_equal(POOLMGR_Open(&l, &doubled, 4 * SEC), UINT_MAX);
}

static void
test_expected(void **state)
{

	(void)state;
	/* 1000/s, a tenth misses, 50 ms each: five extra workers */
	assert_true(POOLMGR_Expected(1000, 0.1, 0.05) > 4.999);
	assert_true(POOLMGR_Expected(1000, 0.1, 0.05) < 5.001);
	assert_true(POOLMGR_Expected(1000, 0, 0.05) == 0);
}

/*--------------------------------------------------------------------*/

static char root[] = "/tmp/test_poolmgr.XXXXXX";

static void
put(const char *name, const char *text)
{
	char path[PATH_MAX], *p;
	FILE *f;

	assert_true(snprintf(path, sizeof path, "%s/%s", root, name) <
	    (int)sizeof path);
	for (p = strchr(path + strlen(root) + 1, '/'); p != NULL;
	    p = strchr(p + 1, '/')) {
		*p = '\0';
		assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
		*p = '/';
	}
	f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void
test_no_quota(void **state)
{
	cpu_set_t set;

	(void)state;
	assert_int_equal(POOLMGR_Quota(root), 0);
	assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
	assert_int_equal(POOLMGR_Cores(root), CPU_COUNT(&set));
	put("proc/self/cgroup", "0::/\n");
	assert_int_equal(POOLMGR_Quota(root), 0);
	put("sys/fs/cgroup/cpu.max", "max 100000\n");
	assert_int_equal(POOLMGR_Quota(root), 0);
	put("proc/self/cgroup", "nonsense\n12:cpu\n\n");
	assert_int_equal(POOLMGR_Quota(root), 0);
}

static void
test_quota_v2(void **state)
{

	(void)state;
	put("proc/self/cgroup", "0::/a/b\n");
	put("sys/fs/cgroup/a/cpu.max", "max 100000\n");
	put("sys/fs/cgroup/a/b/cpu.max", "250000 100000\n");
	assert_int_equal(POOLMGR_Quota(root), 3);
	put("sys/fs/cgroup/a/b/cpu.max", "300000 100000\n");
	assert_int_equal(POOLMGR_Quota(root), 3);
	/* The least one on the way up holds */
	put("sys/fs/cgroup/a/cpu.max", "200000 100000\n");
	assert_int_equal(POOLMGR_Quota(root), 2);
	put("sys/fs/cgroup/a/b/cpu.max", "1000 100000\n");
	assert_int_equal(POOLMGR_Quota(root), 1);
	assert_int_equal(POOLMGR_Cores(root), 1);
	put("sys/fs/cgroup/a/b/cpu.max", "0 0\n");
	assert_int_equal(POOLMGR_Quota(root), 2);
	/* The host's path in a container: its own cgroup is the mount */
	put("proc/self/cgroup", "0::/docker/0123456789ab\n");
	put("sys/fs/cgroup/cpu.max", "400000 100000\n");
	assert_int_equal(POOLMGR_Quota(root), 4);
	put("sys/fs/cgroup/cpu.max", "max 100000\n");
}

/* us of each period, of a cgroup of version 1 */
static void
put_v1(const char *cgroup, const char *quota, const char *period)
{
	char name[PATH_MAX];

	(void)snprintf(name, sizeof name, "sys/fs/cgroup/%s/cpu.cfs_quota_us",
	    cgroup);
	put(name, quota);
	(void)snprintf(name, sizeof name, "sys/fs/cgroup/%s/cpu.cfs_period_us",
	    cgroup);
	put(name, period);
}

static void
test_quota_v1(void **state)
{

	(void)state;
	put("proc/self/cgroup",
	    "9:name=systemd:/\n5:cpuset:/\n4:cpu,cpuacct:/x\n0::/\n");
	put_v1("cpu,cpuacct/x", "-1", "100000");
	assert_int_equal(POOLMGR_Quota(root), 0);
	put("sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us", "450000\n");
	assert_int_equal(POOLMGR_Quota(root), 5);
	put("proc/self/cgroup", "1:cpu:/y\n2:cpuacct:/x\n");
	put_v1("cpu/y", "150000", "50000");
	assert_int_equal(POOLMGR_Quota(root), 3);
	/* cpuset and cpuacct are no cpu */
	put("proc/self/cgroup", "1:cpuset,cpuacct:/y\n");
	assert_int_equal(POOLMGR_Quota(root), 0);
}

/* Only whole names in the list of controllers count, wherever they are */
static void
test_controllers(void **state)
{

	(void)state;
	put_v1("cpu/z", "700000", "100000");
	put("proc/self/cgroup", "3:cpuacct,cpu:/z\n");
	assert_int_equal(POOLMGR_Quota(root), 7);
	put("proc/self/cgroup", "3:net_cls,cpu,cpuacct:/z\n");
	assert_int_equal(POOLMGR_Quota(root), 7);
	put("proc/self/cgroup", "3:xpu,cpuset:/z\n");
	assert_int_equal(POOLMGR_Quota(root), 0);
	/* The least of all lines and mounts holds, blank ones say nothing */
	put("proc/self/cgroup", "\n3:cpu:/z\n0::/u\n");
	put("sys/fs/cgroup/unified/u/cpu.max", "800000 100000\n");
	assert_int_equal(POOLMGR_Quota(root), 7);
	put("sys/fs/cgroup/unified/u/cpu.max", "600000 100000\n");
	assert_int_equal(POOLMGR_Quota(root), 6);
	/* Without a newline at its end, too */
	put("proc/self/cgroup", "3:cpu:/z");
	assert_int_equal(POOLMGR_Quota(root), 7);
}

/* The smallest quota is a core, half a one is one, odd files are none */
static void
test_odd_quotas(void **state)
{

	(void)state;
	put("proc/self/cgroup", "0::/odd\n");
	put("sys/fs/cgroup/odd/cpu.max", "1 100000\n");
	assert_int_equal(POOLMGR_Quota(root), 1);
	put("sys/fs/cgroup/odd/cpu.max", "2 1\n");
	assert_int_equal(POOLMGR_Quota(root), 2);
	put("sys/fs/cgroup/odd/cpu.max", "200000 0\n");
	assert_int_equal(POOLMGR_Quota(root), 0);
	put("sys/fs/cgroup/odd/cpu.max", "-3 -1\n");
	assert_int_equal(POOLMGR_Quota(root), 0);
	/* An empty file says nothing, so that the older ones do */
	put("sys/fs/cgroup/odd/cpu.max", "");
	put("sys/fs/cgroup/odd/cpu.cfs_quota_us", "200000");
	assert_int_equal(POOLMGR_Quota(root), 0);
	put("sys/fs/cgroup/odd/cpu.cfs_period_us", "100000");
	assert_int_equal(POOLMGR_Quota(root), 2);
}

/* Nothing above the mount is a cgroup */
static void
test_above_the_mount(void **state)
{

	(void)state;
	put("proc/self/cgroup", "0::/m\n");
	put("sys/fs/cpu.max", "100000 100000\n");
	put("sys/cpu.max", "100000 100000\n");
	put("cpu.max", "100000 100000\n");
	assert_int_equal(POOLMGR_Quota(root), 0);
}

/* A root of that many characters that is the same folder */
static char *
padded(size_t len)
{
	static char path[2 * PATH_MAX];
	size_t n = strlen(root);

	assert_true(len < sizeof path && len > n);
	(void)strcpy(path, root);
	while (n < len)
		path[n++] = '/';
	path[n] = '\0';
	return (path);
}

/* A path that does not fit is not cut: no other file is read for it */
static void
test_long_paths(void **state)
{
	size_t most = PATH_MAX - 1;

	(void)state;
	put("proc/self/cgroup", "0::/long\n");
	put("proc/self/cgrou", "0::/short\n");
	put("sys/fs/cgroup/cpu.max", "max 100000\n");
	put("sys/fs/cgroup/long/cpu.max", "300000 100000\n");
	put("sys/fs/cgroup/short/cpu.max", "300000 100000\n");
	/* .../sys/fs/cgroup/long/cpu.max fits, or is one too long */
	assert_int_equal(POOLMGR_Quota(padded(most - 27)), 3);
	put("sys/fs/cgroup/long/cpu.ma", "100000 100000\n");
	assert_int_equal(POOLMGR_Quota(padded(most - 26)), 0);
	/* The folder fits, but not its file, or is one too long itself */
	put("proc/self/cgroup", "0::/long/and/one/more\n");
	put("sys/fs/cgroup/long/and/one/mor/cpu.max", "100000 100000\n");
	put("sys/fs/cgroup/cpu.max", "200000 100000\n");
	assert_int_equal(POOLMGR_Quota(padded(most - 32)), 2);
	assert_int_equal(POOLMGR_Quota(padded(most - 31)), 0);
	/* .../proc/self/cgroup is one too long */
	put("sys/fs/cgroup/cpu.max", "max 100000\n");
	put("proc/self/cgrou", "0::/\n");
	assert_int_equal(POOLMGR_Quota(padded(most - 17)), 0);
}

/* A look leaves no descriptor and no memory behind */
static void
test_nothing_left(void **state)
{
	struct mallinfo2 before, after;
	int fd, i;

	(void)state;
	put("proc/self/cgroup", "0::/left\n");
	put("sys/fs/cgroup/left/cpu.max", "300000 100000\n");
	(void)POOLMGR_Cores(root);
	fd = open("/dev/null", O_RDONLY);
	assert_int_equal(close(fd), 0);
	before = mallinfo2();
	for (i = 0; i < 100; i++)
		(void)POOLMGR_Cores(root);
	after = mallinfo2();
	assert_true(after.uordblks < before.uordblks + 100);
	i = open("/dev/null", O_RDONLY);
	assert_int_equal(i, fd);
	assert_int_equal(close(fd), 0);
}

/* A machine with more cores than a cpu_set_t has room for */
static void
test_large_machine(void **state)
{
	static char none[] = "/nonexistent";

	(void)state;
	machine.known = 16;
	machine.cores = 12;
	machine.error = 0;
	machine.asked = 0;
	assert_int_equal(POOLMGR_Cores(none), 12);
	assert_int_equal(machine.asked, 1);
	machine.known = 1 << 20;
	machine.cores = 1500;
	assert_int_equal(POOLMGR_Cores(none), 1500);
	assert_int_equal(machine.asked, 1 + 11);
	/* Beyond a million it gives up, and so it does when it may not know */
	machine.known = 1 << 21;
	assert_int_equal(POOLMGR_Cores(none), 1);
	machine.known = 16;
	machine.error = EPERM;
	machine.asked = 0;
	assert_int_equal(POOLMGR_Cores(none), 1);
	assert_int_equal(machine.asked, 1);
	machine.known = 0;
}

static int
setup(void **state)
{

	(void)state;
	return (mkdtemp(root) == NULL);
}

static int
teardown(void **state)
{
	char cmd[PATH_MAX];

	(void)state;
	(void)snprintf(cmd, sizeof cmd, "rm -r '%s'", root);
	return (system(cmd));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_size),
		cmocka_unit_test(test_shrinks_slowly),
		cmocka_unit_test(test_no_churn),
		cmocka_unit_test(test_pure),
		cmocka_unit_test(test_open_halves_while_busy),
		cmocka_unit_test(test_open_doubles_while_blocked),
		cmocka_unit_test(test_open_limits),
		cmocka_unit_test(test_expected),
		cmocka_unit_test(test_no_quota),
		cmocka_unit_test(test_quota_v2),
		cmocka_unit_test(test_quota_v1),
		cmocka_unit_test(test_controllers),
		cmocka_unit_test(test_odd_quotas),
		cmocka_unit_test(test_above_the_mount),
		cmocka_unit_test(test_long_paths),
		cmocka_unit_test(test_nothing_left),
		cmocka_unit_test(test_large_machine),
	};

	return (cmocka_run_group_tests(tests, setup, teardown));
}
