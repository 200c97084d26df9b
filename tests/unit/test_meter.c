/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The meter against the thread's CPU clock: every lap by itself, also while
 * another thread wants the same core and while the metered thread waits.
 * What is compared is the sum of the laps' errors, so that an error that a
 * later lap makes good is still counted.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "perfctr/meter.h"

static int64_t
clock_ns(clockid_t id)
{
	struct timespec ts;

	assert_int_equal(clock_gettime(id, &ts), 0);
	return ((int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec);
}

static int64_t
thread_ns(void)
{

	return (clock_ns(CLOCK_THREAD_CPUTIME_ID));
}

static void
burn(int64_t ns)
{
	int64_t until = thread_ns() + ns;

	while (thread_ns() < until)
		continue;
}

static void
spin(unsigned n)
{
	volatile unsigned i;

	for (i = 0; i < n; i++)
		continue;
}

/* The whole test runs on one core: every switch is one that we cause */
static int
pin(void **state)
{
	cpu_set_t all, one;
	int i;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
	CPU_ZERO(&one);
	for (i = 0; !CPU_ISSET(i, &all); i++)
		continue;
	CPU_SET(i, &one);
	return (sched_setaffinity(0, sizeof one, &one));
}

/* tools/check shows what is printed before a skip as its reason */
static void
no_events(void)
{

	print_message("not applicable: the kernel refuses perf events\n");
	skip();
}

static void
no_rseq(void)
{

	print_message("not applicable: no restartable sequences, or no TSC\n");
	skip();
}

static void
choose(struct meter_source *src, const char *spec)
{
	char note[256];

	if (METER_Choose(src, spec, note, sizeof note) != 0)
		fail_msg("%s: %s", spec, note);
}

/*--------------------------------------------------------------------*/

static void
test_names(void **state)
{
	static const char * const good[] = {
		"auto", "thread-clock", "cycles", "instructions",
		"task-clock", "perf::page-faults", "instructions:u"
	};
	static const char * const bad[] = {
		"", "nonsense", "cycles:zz", "perf::",
		"a-name-that-is-longer-than-any-event-that-libpfm4-would-"
		"accept-from-us"
	};
	struct meter_source src;
	char note[256];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof good / sizeof good[0]; i++) {
		assert_int_equal(METER_Check(good[i], note, sizeof note), 0);
		assert_string_equal(note, "");
	}
	for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		assert_int_equal(METER_Check(bad[i], note, sizeof note), -1);
		assert_true(strlen(note) > 0);
		assert_null(strchr(note, '\n'));
		assert_int_equal(METER_Choose(&src, bad[i], NULL, 0), -1);
	}
	assert_int_equal(METER_Check("nonsense", note, sizeof note), -1);
	assert_non_null(strstr(note, "nonsense"));
	assert_non_null(strstr(note, "thread-clock"));
	/* A short buffer is filled, not overrun */
	note[8] = 'x';
	assert_int_equal(METER_Check("nonsense", note, 8), -1);
	assert_int_equal(strlen(note), 7);
	assert_int_equal(note[8], 'x');
}

/* Encodings are libpfm4's; the numbers are the kernel's ABI */
static void
test_encodings(void **state)
{
	struct meter_source src;

	(void)state;
	choose(&src, "cycles");
	assert_int_equal(src.type, PERF_TYPE_HARDWARE);
	assert_int_equal(src.config, PERF_COUNT_HW_CPU_CYCLES);
	assert_false(src.no_kernel || src.no_user);
	choose(&src, "instructions");
	assert_int_equal(src.type, PERF_TYPE_HARDWARE);
	assert_int_equal(src.config, PERF_COUNT_HW_INSTRUCTIONS);
	choose(&src, "instructions:u");
	assert_true(src.no_kernel && !src.no_user);
	choose(&src, "task-clock");
	assert_int_equal(src.type, PERF_TYPE_SOFTWARE);
	assert_int_equal(src.config, PERF_COUNT_SW_TASK_CLOCK);
	assert_true(src.ns_per_count == 1);
	choose(&src, "thread-clock");
	assert_int_equal(src.kind, METER_THREAD_CLOCK);
	assert_string_equal(src.name, "thread-clock");
}

/*
 * Time that a hypervisor takes from the core is in the TSC, but not in the
 * thread's clock, so laps are too long, and too short when the clock is next
 * read.  It can only make a run worse: a run without it has to be close, and
 * of many short ones some have none.
 */
#define UNDISTURBED	100

/* Whatever the machine has, auto gives a source that counts */
static void
test_auto(void **state)
{
	struct meter_source src;
	struct meter m;
	char note[256];
	int64_t lap, t;
	int i;

	(void)state;
	assert_int_equal(METER_Choose(&src, "auto", note, sizeof note), 0);
	assert_int_not_equal(src.kind, METER_WALL);
	if (src.kind == METER_THREAD_CLOCK) {
		assert_string_equal(src.name, "thread-clock");
		assert_non_null(strstr(note, "cycles"));
		assert_non_null(strstr(note, "using thread-clock"));
	} else
		assert_string_equal(src.name, "cycles");
	METER_Open(&m, &src);
	for (i = 0; i < UNDISTURBED; i++) {
		(void)METER_Lap(&m);
		t = thread_ns();
		burn(2000000);
		lap = METER_Lap(&m);
		t = thread_ns() - t;
		assert_true(lap >= 0);
		if (lap >= 2000000 && lap <= t + 100000)
			break;
	}
	if (src.kind == METER_THREAD_CLOCK)
		assert_in_range(lap, 2000000, t + 100000);
	METER_Close(&m);
}

/* The counter's width: values from the text of perf_event_mmap_page */
static void
test_page_count(void **state)
{

	(void)state;
	assert_int_equal(METER_PageCount(0, 5, 48), 5);
	assert_int_equal(METER_PageCount(1000, 5, 48), 1005);
	/* The kernel starts a 48-bit counter at -2^47 and moves offset */
	assert_int_equal(METER_PageCount((int64_t)1 << 47,
	    ((uint64_t)1 << 47) + 7, 48), 7);
	assert_int_equal(METER_PageCount(0, 0xffffffffffffULL, 48),
	    UINT64_MAX);
	assert_int_equal(METER_PageCount(1, UINT64_MAX, 64), 0);
	/* Bits above the width say nothing */
	assert_int_equal(METER_PageCount(0, 0xabcd000000000003ULL, 48), 3);
}

/* What the meter's counter should say, by a counter of our own */
static int64_t
own_count(int fd)
{
	uint64_t v;

	assert_int_equal(read(fd, &v, sizeof v), sizeof v);
	return ((int64_t)v);
}

/* A counter that is time, through perf_event */
static void
test_task_clock(void **state)
{
	struct perf_event_attr attr;
	struct meter_source src;
	struct meter m;
	int64_t lap, t0, t1, t2, t3;
	int fd;

	(void)state;
	choose(&src, "task-clock");
	if (src.kind != METER_EVENT)
		no_events();
	memset(&attr, 0, sizeof attr);
	attr.size = sizeof attr;
	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_TASK_CLOCK;
	fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	assert_true(fd >= 0);
	t0 = own_count(fd);
	METER_Open(&m, &src);
	t1 = own_count(fd);
	assert_true(m.fd >= 0);
	assert_int_equal(METER_LapIf(&m, 0), -1);
	burn(3000000);
	t2 = own_count(fd);
	lap = METER_Lap(&m);
	t3 = own_count(fd);
	assert_in_range(lap, t2 - t1, t3 - t0);
	assert_true(lap > 1500000);
	METER_Close(&m);
	assert_int_equal(m.fd, -1);
	assert_int_equal(close(fd), 0);
}

/* Faults that are not by our hand: code seen first, a sanitizer's shadow */
#define FEW	16

#define PAGES	64

/* One fault a page: TSan's shadow of each would have two more */
static void __attribute__((no_sanitize("thread")))
touch(volatile char *p, size_t page)
{
	size_t i;

	for (i = 0; i < PAGES; i++)
		p[i * page] = 1;
}

/* A counter that is no time: as many units as faults, by our own hand */
static void
test_page_faults(void **state)
{
	struct meter_source src;
	struct meter m;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	volatile char *p;
	int64_t lap;

	(void)state;
	choose(&src, "page-faults");
	if (src.kind != METER_EVENT)
		no_events();
	p = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(p != MAP_FAILED);
	(void)madvise((void *)p, PAGES * page, MADV_NOHUGEPAGE);
	METER_Open(&m, &src);
	(void)METER_Lap(&m);
	assert_in_range(METER_Lap(&m), 0, FEW);
	touch(p, page);
	lap = METER_Lap(&m);
	assert_in_range(lap, PAGES, PAGES + FEW);
	touch(p, page);
	METER_Drop(&m);
	assert_in_range(METER_Lap(&m), 0, FEW);
	METER_Close(&m);
	assert_int_equal(munmap((void *)p, PAGES * page), 0);
}

/* A thread that gets no descriptor still has a clock */
static void
test_no_descriptor(void **state)
{
	struct meter_source src;
	struct meter m;
	int64_t t;

	(void)state;
	choose(&src, "task-clock");
	if (src.kind != METER_EVENT)
		no_events();
	src.type = UINT32_MAX;		/* no such PMU */
	METER_Open(&m, &src);
	assert_int_equal(m.fd, -1);
	t = thread_ns();
	burn(1000000);
	assert_true(METER_Lap(&m) >= 1000000);
	assert_true(METER_Lap(&m) < thread_ns() - t);
	METER_Close(&m);
}

static void
test_wall(void **state)
{
	struct meter_source src;
	struct meter m;
	int64_t t0, t1, t2, t3, lap;

	(void)state;
	choose(&src, "thread-clock");
	src.kind = METER_WALL;
	src.rseq = 0;
	t0 = METER_Now();
	METER_Open(&m, &src);
	t1 = METER_Now();
	spin(10000);
	t2 = METER_Now();
	lap = METER_LapIf(&m, 0);
	t3 = METER_Now();
	assert_in_range(lap, t2 - t1, t3 - t0);
	METER_Close(&m);
}

/* Laps that were not wanted are in the next one */
static void
test_nothing_lost(void **state)
{
	struct meter_source src;
	struct meter m;
	int64_t t0, t1, lap;
	int i;

	(void)state;
	choose(&src, "thread-clock");
	src.rseq = 0;
	METER_Open(&m, &src);
	assert_int_equal(METER_Cheap(&m), 0);
	t0 = thread_ns();
	for (i = 0; i < 10; i++) {
		burn(100000);
		assert_int_equal(METER_LapIf(&m, 0), -1);
	}
	t1 = thread_ns();
	lap = METER_LapIf(&m, 1);
	assert_true(lap >= t1 - t0);
	assert_true(lap < t1 - t0 + 1000000);
	burn(1000000);
	METER_Drop(&m);
	t0 = thread_ns();
	assert_true(METER_Lap(&m) <= thread_ns() - t0 + 100000);
	METER_Close(&m);
}

static void
test_process(void **state)
{
	int64_t p0, p1;

	(void)state;
	p0 = METER_Process();
	burn(1000000);
	p1 = METER_Process();
	assert_true(p1 - p0 >= 1000000);
}

/*--------------------------------------------------------------------
 * rseq
 */

struct other {
	pthread_t		thread;
	atomic_int		stop;
	int			ask[2], answer[2];
};

/* Wants the core all the time */
static void *
hog(void *priv)
{
	struct other *o = priv;

	while (!atomic_load(&o->stop))
		spin(1000);
	return (NULL);
}

/* Answers each byte after 200 us of its own work */
static void *
answerer(void *priv)
{
	struct other *o = priv;
	char c;

	while (read(o->ask[0], &c, 1) == 1) {
		burn(200000);
		if (write(o->answer[1], &c, 1) != 1)
			abort();
	}
	return (NULL);
}

static void
other_start(struct other *o, void *(*func)(void *))
{

	memset(o, 0, sizeof *o);
	assert_int_equal(pipe(o->ask), 0);
	assert_int_equal(pipe(o->answer), 0);
	assert_int_equal(pthread_create(&o->thread, NULL, func, o), 0);
}

static void
other_stop(struct other *o)
{

	atomic_store(&o->stop, 1);
	assert_int_equal(close(o->ask[1]), 0);
	assert_int_equal(pthread_join(o->thread, NULL), 0);
	(void)close(o->ask[0]);
	(void)close(o->answer[0]);
	(void)close(o->answer[1]);
}

/* Block until the other thread has had 200 us of the core */
static void
ask(struct other *o, char c)
{

	assert_int_equal(write(o->ask[1], &c, 1), 1);
	assert_int_equal(read(o->answer[0], &c, 1), 1);
}

struct sums {
	int64_t			laps, clock, wall, error;
	unsigned		n;
};

/* One lap of the meter beside one of the thread clock */
static void
lap(struct meter *m, struct sums *s, int64_t *t)
{
	int64_t l, now, d;

	l = METER_Lap(m);
	now = thread_ns();
	d = now - *t;
	*t = now;
	assert_true(l >= 0);
	s->laps += l;
	s->clock += d;
	s->error += l > d ? l - d : d - l;
	s->n++;
}

static void
laps_spinning(struct meter *m, struct sums *s, int64_t wall)
{
	int64_t t, start = METER_Now();

	memset(s, 0, sizeof *s);
	METER_Drop(m);
	t = thread_ns();
	while ((s->wall = METER_Now() - start) < wall) {
		spin(150000);
		lap(m, s, &t);
	}
}

static int
is_close(const struct sums *s)
{

	return (llabs(s->laps - s->clock) * 200 <= s->clock &&
	    s->error * 50 <= s->clock);
}

static void
laps_undisturbed(struct meter *m, struct sums *s, int64_t wall)
{
	int i;

	for (i = 0; i < UNDISTURBED; i++) {
		laps_spinning(m, s, wall);
		if (is_close(s))
			return;
	}
}

static void
close_to(const struct sums *s)
{

	print_message("    %u laps, CPU %.3f s of %.3f s, sum %+.3f %%, "
	    "errors %.3f %%\n", s->n, (double)s->clock / 1e9,
	    (double)s->wall / 1e9,
	    100. * (double)(s->laps - s->clock) / (double)s->clock,
	    100. * (double)s->error / (double)s->clock);
	assert_true(is_close(s));
}

static int
rseq_source(struct meter_source *src)
{

	choose(src, "thread-clock");
	return (src->rseq);
}

static void
test_rseq_alone(void **state)
{
	struct meter_source src;
	struct meter m;
	struct sums s;

	(void)state;
	if (!rseq_source(&src))
		no_rseq();
	METER_Open(&m, &src);
	assert_int_equal(METER_Cheap(&m), 1);
	laps_undisturbed(&m, &s, 50000000);
	close_to(&s);
	METER_Close(&m);
}

/* Half of the time the core is the hog's: nothing of it may be in a lap */
static void
test_rseq_preempted(void **state)
{
	struct meter_source src;
	struct meter m;
	struct sums s;
	struct other o;

	(void)state;
	if (!rseq_source(&src))
		no_rseq();
	other_start(&o, hog);
	METER_Open(&m, &src);
	laps_undisturbed(&m, &s, 100000000);
	other_stop(&o);
	/* The hog had its part, or this shows nothing */
	assert_true(s.clock < s.wall * 3 / 4);
	close_to(&s);
	METER_Close(&m);
}

/* Waiting is no CPU time, though other threads use the core meanwhile */
static void
test_rseq_waiting(void **state)
{
	struct meter_source src;
	struct meter m;
	struct sums s;
	struct other o;
	int64_t t, start;
	char c = 'x';
	int i;

	(void)state;
	if (!rseq_source(&src))
		no_rseq();
	memset(&s, 0, sizeof s);
	other_start(&o, answerer);
	METER_Open(&m, &src);
	start = METER_Now();
	t = thread_ns();
	for (i = 0; i < 1000; i++) {
		spin(150000);
		ask(&o, c);
		lap(&m, &s, &t);
	}
	s.wall = METER_Now() - start;
	assert_true(s.wall - s.clock >= 1000 * 200000LL);
	close_to(&s);
	METER_Close(&m);
	other_stop(&o);
}

#ifdef __x86_64__

#include <sys/rseq.h>

/* The same, with the kernel's mark undone after each wait: the waits must
 * show, else the tests above prove nothing */
static void
test_rseq_blind(void **state)
{
	volatile struct rseq *rs;
	struct meter_source src;
	struct meter m;
	struct sums s;
	struct other o;
	uint64_t cs;
	int64_t t;
	char c = 'x';
	int i;

	(void)state;
	if (!rseq_source(&src))
		no_rseq();
	rs = (volatile struct rseq *)(void *)
	    ((char *)__builtin_thread_pointer() + __rseq_offset);
	memset(&s, 0, sizeof s);
	other_start(&o, answerer);
	METER_Open(&m, &src);
	cs = rs->rseq_cs;
	t = thread_ns();
	for (i = 0; i < 100; i++) {
		ask(&o, c);
		rs->rseq_cs = cs;
		lap(&m, &s, &t);
	}
	assert_true(s.error > s.clock);
	METER_Close(&m);
	other_stop(&o);
}

#endif

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_encodings),
		cmocka_unit_test(test_auto),
		cmocka_unit_test(test_page_count),
		cmocka_unit_test(test_task_clock),
		cmocka_unit_test(test_page_faults),
		cmocka_unit_test(test_no_descriptor),
		cmocka_unit_test(test_wall),
		cmocka_unit_test(test_nothing_lost),
		cmocka_unit_test(test_process),
		cmocka_unit_test(test_rseq_alone),
		cmocka_unit_test(test_rseq_preempted),
		cmocka_unit_test(test_rseq_waiting),
#ifdef __x86_64__
		cmocka_unit_test(test_rseq_blind),
#endif
	};

	return (cmocka_run_group_tests(tests, pin, NULL));
}
