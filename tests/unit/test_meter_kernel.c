/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The meter on a kernel that the test plays: it says what clocks and counters
 * say, and which calls fail.  A counter is a file: its first page is what
 * perf_event maps, after it are the answers of read().
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "perfctr/meter.h"

#define RDPMC		4		/* capabilities: cap_user_rdpmc */
#define NOTE		256

static struct {
	int			on;		/* else the real kernel */
	int64_t			clock;		/* ns, thread; -1: refused */
	int64_t			now;		/* ns, monotonic */
	unsigned		asked;		/* readings of the thread's */
	int			refuse;		/* errno of perf_event_open */
	int			fd;		/* what it gave last */
	int			no_sleep;	/* nanosleep does not wait */
	unsigned		thread_takes;	/* cycles, before and after */
	unsigned		raw_takes;	/* the same; only of the first
						 * RAW_FIRST readings */
	int			real_raw;	/* the raw clock is the real one */
	unsigned		raw, slow;	/* readings of the raw clock; one
						 * in `slow` is fast, 0: all */
	struct perf_event_attr	attr;		/* it was asked for */
	int			pid, cpu, group;
	unsigned long		flags;
	struct perf_event_mmap_page page;	/* what it will give */
} kernel;

static int
perf_event_open(const struct perf_event_attr *attr, int pid, int cpu,
    int group, unsigned long flags)
{
	long size = sysconf(_SC_PAGESIZE);

	kernel.attr = *attr;
	kernel.pid = pid;
	kernel.cpu = cpu;
	kernel.group = group;
	kernel.flags = flags;
	if (kernel.refuse != 0) {
		errno = kernel.refuse;
		return (-1);
	}
	kernel.fd = memfd_create("counter", MFD_CLOEXEC);
	if (kernel.fd < 0 || ftruncate(kernel.fd, size) != 0 ||
	    pwrite(kernel.fd, &kernel.page, sizeof kernel.page, 0) !=
	    (ssize_t)sizeof kernel.page ||
	    lseek(kernel.fd, size, SEEK_SET) != size)
		abort();
	return (kernel.fd);
}

/* As in the C library, it reads six arguments, however many there are */
__attribute__((no_sanitize("address")))
long
syscall(long number, ...)
{
	static long (*real)(long, ...);
	long a[6];
	va_list ap;
	int i;

	va_start(ap, number);
	for (i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (kernel.on && number == SYS_perf_event_open)
		return (perf_event_open((const void *)a[0], (int)a[1],
		    (int)a[2], (int)a[3], (unsigned long)a[4]));
	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "syscall");
	return (real(number, a[0], a[1], a[2], a[3], a[4], a[5]));
}

static int
clock_is(int64_t ns, struct timespec *ts)
{

	if (ns < 0) {
		errno = EINVAL;
		return (-1);
	}
	ts->tv_sec = (time_t)(ns / 1000000000);
	ts->tv_nsec = (long)(ns % 1000000000);
	return (0);
}

static void spin(uint64_t cycles);

static int
thread_clock(struct timespec *ts)
{
	int e;

	spin(kernel.thread_takes);
	e = clock_is(kernel.clock, ts);
	spin(kernel.thread_takes);
	return (e);
}

#ifdef __x86_64__

#define RAW_NS		16		/* of a cycle: calibration is short */
#define RAW_FIRST	16

static void
spin(uint64_t cycles)
{
	uint64_t until = __builtin_ia32_rdtsc() + cycles;

	while (__builtin_ia32_rdtsc() < until)
		continue;
}

/* An exact clock.  With kernel.slow, the thread is held up before most readings */
static int
raw_clock(struct timespec *ts)
{
	unsigned takes = kernel.raw < RAW_FIRST ? kernel.raw_takes : 0;
	uint64_t ns;

	spin(takes);
	if (kernel.slow != 0 && ++kernel.raw % kernel.slow != 0)
		spin(20000 + kernel.raw * 7919 % 190000);
	else
		kernel.raw += kernel.raw_takes != 0;
	ns = __builtin_ia32_rdtsc() % (UINT64_C(1) << 56) * RAW_NS;
	spin(takes);
	ts->tv_sec = (time_t)(ns / 1000000000);
	ts->tv_nsec = (long)(ns % 1000000000);
	return (0);
}

#else

static void
spin(uint64_t cycles)
{

	(void)cycles;
}

#endif

int
clock_gettime(clockid_t id, struct timespec *ts)
{
	static int (*real)(clockid_t, struct timespec *);

	if (kernel.on && id == CLOCK_THREAD_CPUTIME_ID) {
		kernel.asked++;
		return (thread_clock(ts));
	}
	if (kernel.on && id == CLOCK_MONOTONIC)
		return (clock_is(kernel.now, ts));
#ifdef __x86_64__
	if (kernel.on && !kernel.real_raw && id == CLOCK_MONOTONIC_RAW)
		return (raw_clock(ts));
#endif
	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
	return (real(id, ts));
}

int
nanosleep(const struct timespec *ts, struct timespec *left)
{
	static int (*real)(const struct timespec *, struct timespec *);

	if (kernel.on && kernel.no_sleep)
		return (0);
	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "nanosleep");
	return (real(ts, left));
}

/* What the next read() of the counter says */
static void
counts(uint64_t count, uint64_t enabled, uint64_t running)
{
	uint64_t v[3] = { count, enabled, running };
	off_t at = lseek(kernel.fd, 0, SEEK_CUR);

	assert_int_equal(pwrite(kernel.fd, v, sizeof v, at), sizeof v);
}

static int
is_open(int fd)
{

	return (fcntl(fd, F_GETFD) != -1);
}

static int
is_mapped(void *page)
{

	return (msync(page, (size_t)sysconf(_SC_PAGESIZE), MS_ASYNC) == 0);
}

/* Is any counter's page still mapped? */
static int
any_mapped(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	int found = 0;

	assert_non_null(f);
	while (fgets(line, sizeof line, f) != NULL)
		found |= strstr(line, "memfd:counter") != NULL;
	assert_int_equal(fclose(f), 0);
	return (found);
}

static int
start(void **state)
{

	(void)state;
	memset(&kernel, 0, sizeof kernel);
	kernel.on = 1;
	kernel.clock = kernel.now = 1000;
	kernel.fd = -1;
	return (0);
}

static int
end(void **state)
{

	(void)state;
	kernel.on = 0;
	return (0);
}

static void
choose(struct meter_source *src, const char *spec)
{
	char note[NOTE];

	assert_int_equal(METER_Choose(src, spec, note, sizeof note), 0);
	if (src->kind == METER_EVENT)
		assert_string_equal(note, "");
}

/* A meter on a counter that says 0 */
static void
open_counter(struct meter *m, struct meter_source *src)
{

	choose(src, "task-clock");
	assert_int_equal(src->kind, METER_EVENT);
	METER_Open(m, src);
	assert_int_equal(m->fd, kernel.fd);
}

/*--------------------------------------------------------------------
 * Choice
 */

/* A counter of this thread, wherever it runs, user and kernel, in time */
static void
test_what_is_asked_for(void **state)
{
	struct perf_event_attr want;
	struct meter_source src;
	struct meter m;

	(void)state;
	memset(&want, 0, sizeof want);
	want.size = sizeof want;
	want.exclude_hv = 1;
	want.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
	    PERF_FORMAT_TOTAL_TIME_RUNNING;
	memset(&src, 0xff, sizeof src);
	choose(&src, "task-clock");
	assert_int_equal(src.kind, METER_EVENT);
	assert_string_equal(src.name, "task-clock");
	assert_true(src.ns_per_count == 1);
	want.type = PERF_TYPE_SOFTWARE;
	want.config = PERF_COUNT_SW_TASK_CLOCK;
	assert_memory_equal(&kernel.attr, &want, sizeof want);
	assert_int_equal(kernel.pid, 0);
	assert_int_equal(kernel.cpu, -1);
	assert_int_equal(kernel.group, -1);
	assert_int_equal(kernel.flags, PERF_FLAG_FD_CLOEXEC);
	choose(&src, "instructions:u");
	assert_int_equal(kernel.attr.type, PERF_TYPE_HARDWARE);
	assert_int_equal(kernel.attr.config, PERF_COUNT_HW_INSTRUCTIONS);
	assert_int_equal(kernel.attr.exclude_user, 0);
	assert_int_equal(kernel.attr.exclude_kernel, 1);
	choose(&src, "instructions:k");
	assert_int_equal(kernel.attr.exclude_user, 1);
	assert_int_equal(kernel.attr.exclude_kernel, 0);
	assert_int_equal(src.config1, 0);
	assert_int_equal(src.config2, 0);
	/* Events of some machines have more to say */
	src.config1 = 5;
	src.config2 = 6;
	METER_Open(&m, &src);
	assert_int_equal(kernel.attr.config1, 5);
	assert_int_equal(kernel.attr.config2, 6);
	METER_Close(&m);
}

/* An instruction counts as a cycle of the nominal clock */
static void
test_unit_of_hardware(void **state)
{
	struct meter_source src;

	(void)state;
	kernel.real_raw = 1;
	choose(&src, "instructions");
	if (src.ns_per_tsc == 0) {
		print_message("not applicable: no invariant TSC\n");
		skip();
	}
	assert_int_equal(src.kind, METER_EVENT);
	assert_true(src.ns_per_count == src.ns_per_tsc);
}

/* The choice keeps no descriptor, and knows whether laps will be cheap */
static void
test_choice_leaves_nothing(void **state)
{
	struct meter_source src;

	(void)state;
	choose(&src, "task-clock");
	assert_true(kernel.fd >= 0);
	assert_false(is_open(kernel.fd));
	assert_int_equal(src.rdpmc, 0);
	kernel.page.capabilities = RDPMC;
	choose(&src, "task-clock");
	assert_false(is_open(kernel.fd));
	assert_int_equal(src.rdpmc, 1);
	kernel.page.capabilities = ~(uint64_t)RDPMC;
	choose(&src, "task-clock");
	assert_int_equal(src.rdpmc, 0);
	assert_false(any_mapped());
}

/* The rest of the note, behind why the counter cannot be had */
static void
refused(int e, const char *spec, const char *why)
{
	struct meter_source src;
	char note[NOTE], want[NOTE];

	kernel.refuse = e;
	assert_int_equal(METER_Choose(&src, spec, note, sizeof note), 0);
	assert_int_equal(src.kind, METER_THREAD_CLOCK);
	assert_string_equal(src.name, "thread-clock");
	(void)snprintf(want, sizeof want, "%s cannot be counted (%s); "
	    "using thread-clock instead%s", spec, why, src.rseq ? "" :
	    src.ns_per_tsc > 0 ?
	    "; no rseq: only a sample of the requests is measured" :
	    "; no invariant TSC: only a sample of the requests is measured");
	assert_string_equal(note, want);
}

static void
test_refused(void **state)
{

	(void)state;
	refused(ENOENT, "task-clock", "no performance counter for it");
	refused(ENODEV, "task-clock", "no performance counter for it");
	refused(EOPNOTSUPP, "page-faults", "no performance counter for it");
	refused(EACCES, "page-faults", strerror(EACCES));
}

/* The thread clock is refused, too: wall time is all that there is */
static void
test_no_clock(void **state)
{
	struct meter_source src;
	struct meter m;
	char note[NOTE];

	(void)state;
	kernel.clock = -1;
	assert_int_equal(METER_Choose(&src, "thread-clock", note,
	    sizeof note), 0);
	assert_int_equal(src.kind, METER_WALL);
	assert_string_equal(src.name, "wall");
	assert_int_equal(src.rseq, 0);
	assert_ptr_equal(strstr(note, "using wall instead"), note);
	METER_Open(&m, &src);
	assert_int_equal(METER_Cheap(&m), 1);
	kernel.now += 70;
	assert_int_equal(METER_LapIf(&m, 0), 70);
	kernel.now += 30;
	METER_Drop(&m);
	assert_int_equal(METER_Lap(&m), 0);
	METER_Close(&m);
	/* A clock that says 0 works */
	kernel.clock = 0;
	assert_int_equal(METER_Choose(&src, "thread-clock", note,
	    sizeof note), 0);
	assert_int_equal(src.kind, METER_THREAD_CLOCK);
	assert_null(strstr(note, "instead"));
	kernel.refuse = EACCES;
	choose(&src, "task-clock");
	assert_int_equal(src.kind, METER_THREAD_CLOCK);
	assert_int_equal(METER_Now(), kernel.now);
}

/* A kernel that keeps its mark through a wait cannot be used for laps */
static void
test_rseq_does_not_work(void **state)
{
	struct meter_source src;
	char note[NOTE];
	int i;

	(void)state;
	kernel.no_sleep = 1;
	kernel.real_raw = 1;
	for (i = 0; i < 1000; i++) {	/* until nobody takes the core */
		assert_int_equal(METER_Choose(&src, "thread-clock", note,
		    sizeof note), 0);
		if (!src.rseq)
			break;
	}
	assert_int_equal(src.rseq, 0);
	if (src.ns_per_tsc > 0)
		assert_string_equal(note, "no rseq: only a sample of the "
		    "requests is measured");
	else
		assert_string_equal(note, "no invariant TSC: only a sample "
		    "of the requests is measured");
}

/* The note is cut where the buffer ends, whatever its length */
static void
test_short_notes(void **state)
{
	struct meter_source src;
	char all[NOTE], note[NOTE];
	size_t n, len, first;

	(void)state;
	kernel.refuse = EACCES;
	assert_int_equal(METER_Choose(&src, "task-clock", all, sizeof all), 0);
	len = strlen(all);
	assert_true(len < NOTE - 1);
	first = (size_t)(strstr(all, "; ") - all);
	for (n = 1; n <= len + 1; n++) {
		memset(note, '#', sizeof note);
		assert_int_equal(METER_Choose(&src, "task-clock", note, n), 0);
		assert_true(strlen(note) <= n - 1);
		assert_int_equal(note[n], '#');
		if (n != first + 2)	/* half of the "; " does not fit */
			assert_memory_equal(note, all, n - 1);
	}
	memset(note, '#', sizeof note);
	assert_int_equal(METER_Choose(&src, "task-clock", note, 0), 0);
	assert_int_equal(METER_Check("nonsense", note, 0), -1);
	assert_int_equal(METER_Check("cycles", note, 0), 0);
	assert_int_equal(note[0], '#');
	assert_int_equal(METER_Check("cycles", note, 1), 0);
	assert_string_equal(note, "");
	assert_int_equal(note[1], '#');
	note[0] = '#';
	assert_int_equal(METER_Check("nonsense", note, 1), -1);
	assert_string_equal(note, "");
	assert_int_equal(note[1], '#');
	assert_int_equal(METER_Choose(&src, "task-clock", NULL, 9), 0);
	assert_int_equal(METER_Check("nonsense", NULL, 9), -1);
	assert_int_equal(METER_Check("cycles", NULL, 9), 0);
}

/* A name has to fit into the source */
static void
test_long_names(void **state)
{
	char name[sizeof ((struct meter_source *)NULL)->name + 1];
	char note[NOTE];

	(void)state;
	memset(name, 'x', sizeof name);
	name[sizeof name - 1] = '\0';
	assert_int_equal(METER_Check(name, note, sizeof note), -1);
	assert_string_equal(note, "the counter's name has 64 characters: "
	    "use at most 63");
	name[sizeof name - 2] = '\0';
	assert_int_equal(METER_Check(name, note, sizeof note), -1);
	assert_non_null(strstr(note, "is not a counter"));
}

/*--------------------------------------------------------------------
 * Laps of a counter
 */

static void
test_laps(void **state)
{
	struct meter_source src;
	struct meter m;

	(void)state;
	open_counter(&m, &src);
	assert_int_equal(METER_Cheap(&m), 0);
	counts(100, 5, 5);
	assert_int_equal(METER_Lap(&m), 100);
	counts(130, 6, 6);
	METER_Drop(&m);
	counts(150, 7, 7);
	assert_int_equal(METER_LapIf(&m, 0), -1);
	assert_int_equal(METER_LapIf(&m, 1), 20);
	METER_Close(&m);
}

/* An event that shared the PMU is scaled by the time that it had it */
static void
test_multiplexed(void **state)
{
	struct meter_source src;
	struct meter m;

	(void)state;
	open_counter(&m, &src);
	counts(100, 200, 50);
	assert_int_equal(METER_Lap(&m), 400);
	counts(1000, 300, 300);
	assert_int_equal(METER_Lap(&m), 600);
	counts(1500, 400, 0);		/* it never had it */
	assert_int_equal(METER_Lap(&m), 500);
	counts(UINT64_C(1) << 50, UINT64_C(1) << 50, UINT64_C(1) << 49);
	assert_int_equal(METER_Lap(&m), (INT64_C(1) << 51) - 1500);
	counts((UINT64_C(1) << 51) + 9, 400, 500);	/* the kernel's error */
	assert_int_equal(METER_Lap(&m), 9);
	METER_Close(&m);
}

/* A unit that is no ns */
static void
test_scale(void **state)
{
	struct meter_source src;
	struct meter m;

	(void)state;
	choose(&src, "task-clock");
	src.ns_per_count = 0.5;
	METER_Open(&m, &src);
	counts(100, 1, 1);
	assert_int_equal(METER_Lap(&m), 50);
	METER_Close(&m);
}

/* No answer is no news: the next one has it all */
static void
test_no_answer(void **state)
{
	struct meter_source src;
	struct meter m;

	(void)state;
	open_counter(&m, &src);
	counts(100, 5, 5);
	assert_int_equal(METER_Lap(&m), 100);
	kernel.clock += 1000000;
	assert_int_equal(METER_Lap(&m), 0);
	counts(160, 6, 6);
	assert_int_equal(METER_Lap(&m), 60);
	METER_Close(&m);
}

/* User code may read the register, but the event is not on the PMU, or was
 * not all the time: then the system call answers */
static void
test_mapped(void **state)
{
	struct meter_source src;
	struct meter m;
	void *page;
	int fd;

	(void)state;
	kernel.page.capabilities = RDPMC;
	kernel.page.pmc_width = 48;
	open_counter(&m, &src);
	assert_non_null(m.page);
	assert_true(is_mapped(m.page));
	assert_int_equal(METER_Cheap(&m), 1);
	counts(100, 5, 5);
	assert_int_equal(METER_LapIf(&m, 0), 100);
	kernel.page.index = 1;
	kernel.page.time_enabled = 7;
	kernel.page.time_running = 6;
	assert_int_equal(pwrite(kernel.fd, &kernel.page, sizeof kernel.page,
	    0), sizeof kernel.page);
	counts(150, 7, 7);
	assert_int_equal(METER_LapIf(&m, 0), 50);
	page = m.page;
	fd = m.fd;
	METER_Close(&m);
	assert_false(is_mapped(page));
	assert_false(is_open(fd));
	assert_int_equal(m.fd, -1);
	assert_null(m.page);
}

/* Without that the page is of no use, and the descriptor goes with Close */
static void
test_not_mapped(void **state)
{
	struct meter_source src;
	struct meter m;
	int fd;

	(void)state;
	open_counter(&m, &src);
	assert_null(m.page);
	fd = m.fd;
	assert_true(is_open(fd));
	assert_false(any_mapped());
	assert_int_equal(m.rseq, 0);
	METER_Close(&m);
	assert_false(is_open(fd));
	assert_int_equal(m.fd, -1);
}

/* Descriptor 0 is one as any */
static void
test_descriptor_0(void **state)
{
	struct meter_source src;
	struct meter m;
	int fd = dup(0);

	(void)state;
	assert_true(fd > 0);
	assert_int_equal(close(0), 0);
	open_counter(&m, &src);
	assert_int_equal(m.fd, 0);
	assert_int_equal(m.rseq, 0);
	counts(100, 5, 5);
	assert_int_equal(METER_Lap(&m), 100);
	kernel.clock += 5000;
	assert_int_equal(METER_Lap(&m), 0);
	METER_Close(&m);
	assert_false(is_open(0));
	kernel.page.capabilities = RDPMC;
	open_counter(&m, &src);
	assert_int_equal(METER_Cheap(&m), 1);
	METER_Close(&m);
	assert_false(is_open(0));
	assert_int_equal(dup2(fd, 0), 0);
	assert_int_equal(close(fd), 0);
}

/* A thread that gets no descriptor has its clock */
static void
test_thread_refused(void **state)
{
	struct meter_source src;
	struct meter m;

	(void)state;
	choose(&src, "task-clock");
	src.rseq = 0;
	kernel.refuse = EMFILE;
	METER_Open(&m, &src);
	assert_int_equal(m.fd, -1);
	assert_int_equal(METER_Cheap(&m), 0);
	kernel.clock += 80;
	assert_int_equal(METER_Lap(&m), 80);
	METER_Close(&m);
}

/*--------------------------------------------------------------------
 * Laps of the thread's clock
 */

/* A lap is never negative: the next ones pay what the last had too much */
static void
test_runs_ahead(void **state)
{
	struct meter_source src;
	struct meter m;

	(void)state;
	memset(&src, 0xff, sizeof src);
	choose(&src, "thread-clock");
	assert_int_equal(src.rdpmc, 0);
	src.rseq = 0;
	METER_Open(&m, &src);
	kernel.clock = 7000001000;
	assert_int_equal(METER_Lap(&m), 7000000000);
	kernel.clock = 1000;
	METER_Drop(&m);
	kernel.clock = 1500;
	assert_int_equal(METER_Lap(&m), 500);
	kernel.clock = 1400;
	assert_int_equal(METER_Lap(&m), 0);
	kernel.clock = 1450;
	assert_int_equal(METER_LapIf(&m, 1), 0);
	kernel.clock = 1600;
	assert_int_equal(METER_Lap(&m), 100);
	/* A lap that is dropped is not paid */
	kernel.clock = 1550;
	METER_Drop(&m);
	kernel.clock = 1600;
	assert_int_equal(METER_Lap(&m), 50);
	METER_Close(&m);
}

#ifdef __x86_64__

#include <cpuid.h>
#include <sys/rseq.h>

#define UNDISTURBED	1000

static volatile struct rseq *
own_rseq(void)
{

	return ((volatile struct rseq *)(void *)
	    ((char *)__builtin_thread_pointer() + __rseq_offset));
}

/* Where the machine has all that it takes, laps are cheap; the choice leaves
 * no mark, whether the kernel takes it away or not */
static void
test_rseq_is_used(void **state)
{
	unsigned a, b, c, d = 0;
	struct meter_source src;
	struct meter m;

	(void)state;
	if (__rseq_size == 0 || (int32_t)own_rseq()->cpu_id < 0 ||
	    !__get_cpuid(0x80000007, &a, &b, &c, &d) || !(d & (1U << 8))) {
		print_message("not applicable: no restartable sequences, or "
		    "no TSC\n");
		skip();
	}
	kernel.real_raw = 1;
	choose(&src, "thread-clock");
	assert_true(src.ns_per_tsc > 0);
	assert_int_equal(src.rseq, 1);
	assert_int_equal(own_rseq()->rseq_cs, 0);
	METER_Open(&m, &src);
	assert_int_equal(METER_Cheap(&m), 1);
	METER_Close(&m);
	assert_int_equal(own_rseq()->rseq_cs, 0);
	kernel.no_sleep = 1;
	(void)METER_Choose(&src, "thread-clock", NULL, 0);
	assert_int_equal(own_rseq()->rseq_cs, 0);
}

static void
rseq_source(struct meter_source *src)
{

	choose(src, "thread-clock");
	if (!src->rseq) {
		print_message("not applicable: no restartable sequences, or "
		    "no TSC\n");
		skip();
	}
}

/* The number of a core may be 0 */
static void
test_first_core(void **state)
{
	struct meter_source src;
	cpu_set_t before, first;

	(void)state;
	rseq_source(&src);
	assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
	CPU_ZERO(&first);
	CPU_SET(0, &first);
	if (sched_setaffinity(0, sizeof first, &first)) {
		print_message("not applicable: core 0 is not for this process\n");
		skip();
	}
	assert_int_equal(own_rseq()->cpu_id, 0);
	choose(&src, "thread-clock");
	assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
	assert_int_equal(src.rseq, 1);
}

/* Laps on the TSC ask no clock for METER_TRUST ns */
static void
test_trust(void **state)
{
	struct meter_source src;
	struct meter m;
	int64_t lap = 0;
	int i;

	(void)state;
	rseq_source(&src);
	src.ns_per_tsc = 1;
	METER_Open(&m, &src);
	assert_int_equal(METER_Cheap(&m), 1);
	for (i = 0; i < UNDISTURBED; i++) {
		spin(METER_TRUST + 1);
		METER_Drop(&m);		/* reads the clock: a new beginning */
		kernel.asked = 0;
		spin(100000);
		lap = METER_LapIf(&m, 0);
		if (kernel.asked == 0 && lap < 1000000)
			break;
	}
	assert_int_equal(kernel.asked, 0);
	assert_in_range(lap, 100000, 1000000);
	for (i = 0; i < UNDISTURBED; i++) {
		spin(METER_TRUST + 1);
		METER_Drop(&m);
		kernel.asked = 0;
		spin(METER_TRUST * 3 / 4);
		lap = METER_LapIf(&m, 0);
		if (kernel.asked == 0)
			break;
	}
	assert_int_equal(kernel.asked, 0);
	assert_in_range(lap, METER_TRUST * 3 / 4, METER_TRUST);
	/* After that it is the clock that counts */
	for (i = 0; i < 50; i++) {
		METER_Drop(&m);
		spin(METER_TRUST + 1);
		kernel.clock += 90000000;
		kernel.asked = 0;
		(void)METER_LapIf(&m, 0);
		assert_int_equal(kernel.asked, 1);
	}
	METER_Close(&m);
}

/* A TSC that went back, such as on a machine that was moved */
static void
test_tsc_back(void **state)
{
	struct meter_source src;
	struct meter m;

	(void)state;
	rseq_source(&src);
	src.ns_per_tsc = 1e-14;
	METER_Open(&m, &src);
	m.tsc += UINT64_C(1) << 60;
	kernel.clock += 12345;
	assert_int_equal(METER_Lap(&m), 12345);
	METER_Close(&m);
}

/* Close leaves no mark, so no lap of another meter trusts it */
static void
test_close_disarms(void **state)
{
	struct meter_source src;
	struct meter m, n;

	(void)state;
	rseq_source(&src);
	src.ns_per_tsc = 1e-12;
	METER_Open(&n, &src);
	METER_Open(&m, &src);
	METER_Close(&m);
	kernel.clock += 777;
	assert_int_equal(METER_Lap(&n), 777);
	METER_Close(&n);
}

#define TRIES		20

/* 1: the TSC's rate is right, up to this part of it */
static int
calibrated(double part)
{
	struct meter_source src;

	choose(&src, "thread-clock");
	if (src.ns_per_tsc == 0) {
		print_message("not applicable: no invariant TSC\n");
		skip();
	}
	return (src.ns_per_tsc > RAW_NS * (1 - part) &&
	    src.ns_per_tsc < RAW_NS * (1 + part));
}

/* The TSC's rate is that of the clock, though most readings are slow */
static void
test_rate(void **state)
{
	unsigned phase;
	int i;

	(void)state;
	kernel.slow = 16;
	for (phase = 0; phase < 16; phase += 7) {
		for (i = 0; i < TRIES; i++) {
			kernel.raw = phase;
			if (calibrated(0.0005))
				break;
		}
		assert_true(i < TRIES);
	}
}

/* A reading is of the middle of its call, be it long or short */
static void
test_rate_of_middle(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < UNDISTURBED; i++) {
		kernel.raw = 0;
		kernel.raw_takes = 100000;
		if (calibrated(0.005))
			break;
	}
	assert_true(i < UNDISTURBED);
}

/* So is the thread's clock: what came after it is in the next lap */
static void
test_lap_from_middle(void **state)
{
	struct meter_source src;
	struct meter m;
	int64_t lap = 0;
	int i;

	(void)state;
	rseq_source(&src);
	src.ns_per_tsc = 1;
	kernel.thread_takes = 500000;
	for (i = 0; i < UNDISTURBED; i++) {
		METER_Open(&m, &src);
		kernel.asked = 0;
		lap = METER_LapIf(&m, 0);
		METER_Close(&m);
		if (kernel.asked == 0 && lap > 450000 && lap < 550000)
			break;
	}
	assert_in_range(lap, 450000, 550000);
}

#endif

int
main(void)
{
#define T(t)	cmocka_unit_test_setup_teardown(t, start, end)
	const struct CMUnitTest tests[] = {
		T(test_what_is_asked_for),
		T(test_unit_of_hardware),
		T(test_choice_leaves_nothing),
		T(test_refused),
		T(test_no_clock),
		T(test_rseq_does_not_work),
		T(test_short_notes),
		T(test_long_names),
		T(test_laps),
		T(test_multiplexed),
		T(test_scale),
		T(test_no_answer),
		T(test_mapped),
		T(test_not_mapped),
		T(test_descriptor_0),
		T(test_thread_refused),
		T(test_runs_ahead),
#ifdef __x86_64__
		T(test_rseq_is_used),
		T(test_trust),
		T(test_tsc_back),
		T(test_close_disarms),
		T(test_rate),
		T(test_first_core),
		T(test_rate_of_middle),
		T(test_lap_from_middle),
#endif
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
