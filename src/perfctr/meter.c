/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The laps of meter.h.  A lap is the difference of two values of a clock: the
 * source's last reading (base) plus the TSC since.  The TSC counts while
 * rseq_cs holds the pointer that meter_arm() stored.  The kernel clears rseq_cs
 * when the thread returns to user space after it lost its core or got a signal.
 * The pointer names a critical section without instructions, so nothing is
 * ever restarted.
 *
 * Invariant: the sum of all laps, also of dropped ones, is the clock at the
 * last lap.  Each reading sets the clock to the source, so errors never add up.
 */

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <perfmon/pfmlib_perf_event.h>

#include "meter.h"

#if defined(__x86_64__) && defined(__has_include)
#  if __has_include(<sys/rseq.h>)
#    include <sys/rseq.h>
#    define METER_HAVE_RSEQ 1
#  endif
#endif

#define METER_CALIBRATE	10000000	/* ns */

/* perf_event_mmap_page.capabilities: Linux's cap_user_rdpmc.  libpfm4's copy of
 * the header has another name for it. */
#define METER_CAP_RDPMC	(1U << 2)

static int64_t
meter_clock(clockid_t id)
{
	struct timespec ts;

	if (clock_gettime(id, &ts) != 0)
		return (-1);
	return ((int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec);
}

int64_t
METER_Now(void)
{

	return (meter_clock(CLOCK_MONOTONIC));
}

int64_t
METER_Process(void)
{

	return (meter_clock(CLOCK_PROCESS_CPUTIME_ID));
}

/*--------------------------------------------------------------------
 * The time stamp counter
 */

#ifdef __x86_64__

#include <cpuid.h>

static inline uint64_t
meter_tsc(void)
{

	return (__builtin_ia32_rdtsc());
}

/* Is the TSC invariant?  CPUID's bit is Linux's constant_tsc and
 * nonstop_tsc. */
static int
meter_tsc_invariant(void)
{
	unsigned a, b, c, d;

	return (__get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1U << 8)));
}

/* Read both clocks at one time: the closest of 16 pairs, so that an interrupt
 * between the two reads does not count */
static void
meter_pair(uint64_t *tsc, int64_t *ns)
{
	uint64_t t0, t1, best = UINT64_MAX;
	int64_t c;
	int i;

	*tsc = 0;
	*ns = 0;
	for (i = 0; i < 16; i++) {
		t0 = meter_tsc();
		c = meter_clock(CLOCK_MONOTONIC_RAW);
		t1 = meter_tsc();
		if (t1 - t0 < best) {
			best = t1 - t0;
			*tsc = t0 + best / 2;
			*ns = c;
		}
	}
}

static double
meter_ns_per_tsc(void)
{
	uint64_t t0, t1;
	int64_t n0, n1;

	if (!meter_tsc_invariant())
		return (0);
	meter_pair(&t0, &n0);
	do
		meter_pair(&t1, &n1);
	while (n1 - n0 < METER_CALIBRATE);
	return ((double)(n1 - n0) / (double)(t1 - t0));
}

static inline uint64_t
meter_rdpmc(uint32_t idx)
{

	return (__builtin_ia32_rdpmc((int)idx));
}

#else

static inline uint64_t
meter_tsc(void)
{

	return (0);
}

static double
meter_ns_per_tsc(void)
{

	return (0);
}

#endif

/*--------------------------------------------------------------------
 * Restartable sequences: has this thread left its core?
 */

#ifdef METER_HAVE_RSEQ

/* The abort address of the section.  No thread is ever inside the section, so
 * none gets here.  The kernel checks the signature in front (RSEQ_SIG). */
__asm__(
	".pushsection .text\n"
	".balign 8\n"
	".long 0x53053053\n"
	"sandpaper_meter_abort:\n"
	"	ud2\n"
	".popsection\n"
);

extern const char sandpaper_meter_abort[]
    __attribute__((visibility("hidden")));

static struct rseq_cs meter_cs = {
	.start_ip = (uintptr_t)sandpaper_meter_abort,
	.post_commit_offset = 0,
	.abort_ip = (uintptr_t)sandpaper_meter_abort,
};

static inline volatile struct rseq *
meter_rseq(void)
{

	return ((volatile struct rseq *)(void *)
	    ((char *)__builtin_thread_pointer() + __rseq_offset));
}

/* Has the C library registered this thread? */
static int
meter_rseq_registered(void)
{

	return (__rseq_size > 0 && (int32_t)meter_rseq()->cpu_id >= 0);
}

static inline void
meter_arm(void)
{

	meter_rseq()->rseq_cs = (uintptr_t)&meter_cs;
	__asm__ volatile("" ::: "memory");
}

static inline int
meter_armed(void)
{

	__asm__ volatile("" ::: "memory");
	return (meter_rseq()->rseq_cs == (uintptr_t)&meter_cs);
}

static void
meter_disarm(void)
{

	if (meter_armed())
		meter_rseq()->rseq_cs = 0;
}

/*
 * Does the kernel clear rseq_cs of a thread that waited in a system call? 
 * Linux always has, but need not: no critical section contains a system call. 
 * Without that, a lap cannot use the TSC.
 */
static int
meter_rseq_works(void)
{
	const struct timespec ts = { .tv_nsec = 20000 };
	int i, cleared = 0;

	if (!meter_rseq_registered())
		return (0);
	for (i = 0; i < 3 && !cleared; i++) {
		meter_arm();
		(void)nanosleep(&ts, NULL);
		cleared = !meter_armed();
	}
	meter_disarm();
	return (cleared);
}

#else

static int meter_rseq_registered(void) { return (0); }
static int meter_rseq_works(void) { return (0); }
static inline void meter_arm(void) { }
static inline int meter_armed(void) { return (0); }
static void meter_disarm(void) { }

#endif

/*--------------------------------------------------------------------
 * perf_event
 */

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

/* Open a counter of the calling thread, on any core; -1: see errno */
static int
meter_perf_open(const struct meter_source *src)
{
	struct perf_event_attr attr;

	meter_attr(src, &attr);
	return ((int)syscall(SYS_perf_event_open, &attr, 0, -1, -1,
	    PERF_FLAG_FD_CLOEXEC));
}

static void *
meter_perf_map(int fd)
{
	void *p;

	p = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED,
	    fd, 0);
	return (p == MAP_FAILED ? NULL : p);
}

static void
meter_perf_unmap(void *page)
{

	if (page != NULL)
		(void)munmap(page, (size_t)sysconf(_SC_PAGESIZE));
}

static int
meter_perf_rdpmc(const volatile struct perf_event_mmap_page *pc)
{
#ifdef __x86_64__
	return (pc != NULL && (pc->capabilities & METER_CAP_RDPMC) != 0);
#else
	(void)pc;
	return (0);
#endif
}

uint64_t
METER_PageCount(int64_t offset, uint64_t pmc, unsigned width)
{
	unsigned shift;

	assert(width > 0 && width <= 64);
	shift = 64 - width;
	return ((uint64_t)offset +
	    (uint64_t)((int64_t)(pmc << shift) >> shift));
}

/* Read the counter by rdpmc; 0: not now (off the PMU, or multiplexed) */
static int
meter_perf_page(const void *page, uint64_t *count)
{
#ifdef __x86_64__
	const volatile struct perf_event_mmap_page *pc = page;
	uint32_t seq, idx;
	int ok;

	do {
		seq = pc->lock;
		__asm__ volatile("" ::: "memory");
		idx = pc->index;
		ok = idx != 0 && meter_perf_rdpmc(pc) &&
		    pc->time_enabled == pc->time_running;
		if (ok)
			*count = METER_PageCount(pc->offset,
			    meter_rdpmc(idx - 1), pc->pmc_width);
		__asm__ volatile("" ::: "memory");
	} while (pc->lock != seq);
	return (ok);
#else
	(void)page;
	(void)count;
	return (0);
#endif
}

/* Read the counter by a system call, scaled up if the PMU was multiplexed */
static int
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

/*--------------------------------------------------------------------
 * The choice of a source
 */

static void __attribute__((format(printf, 3, 4)))
meter_note(char *note, size_t len, const char *fmt, ...)
{
	size_t used;
	va_list ap;

	if (note == NULL || len == 0)
		return;
	used = strlen(note);
	if (used > 0 && used + 2 < len) {
		(void)strcpy(note + used, "; ");
		used += 2;
	}
	va_start(ap, fmt);
	(void)vsnprintf(note + used, len - used, fmt, ap);
	va_end(ap);
}

static pthread_once_t meter_pfm_once = PTHREAD_ONCE_INIT;
static int meter_pfm_error;

static void
meter_pfm_init(void)
{

	meter_pfm_error = pfm_initialize();
}

/* Encode the event of that name, by libpfm4.  User and kernel, except if the
 * name says otherwise ("instructions:u").  Returns a PFM_ code. */
static int
meter_encode(const char *name, struct meter_source *src)
{
	struct perf_event_attr attr;
	pfm_perf_encode_arg_t arg;
	int e;

	(void)pthread_once(&meter_pfm_once, meter_pfm_init);
	if (meter_pfm_error != PFM_SUCCESS)
		return (meter_pfm_error);
	memset(&attr, 0, sizeof attr);
	memset(&arg, 0, sizeof arg);
	arg.attr = &attr;
	arg.size = sizeof arg;
	e = pfm_get_os_event_encoding(name, PFM_PLM0 | PFM_PLM3,
	    PFM_OS_PERF_EVENT_EXT, &arg);
	if (e != PFM_SUCCESS)
		return (e);
	src->type = attr.type;
	src->config = attr.config;
	src->config1 = attr.config1;
	src->config2 = attr.config2;
	src->no_user = attr.exclude_user;
	src->no_kernel = attr.exclude_kernel;
	return (PFM_SUCCESS);
}

/* Parse spec, without asking the kernel; -1: unknown */
static int
meter_parse(const char *spec, struct meter_source *src, char *note,
    size_t len)
{
	const char *event = spec;
	int e;

	memset(src, 0, sizeof *src);
	src->magic = METER_SOURCE_MAGIC;
	src->kind = METER_EVENT;
	if (strlen(spec) >= sizeof src->name) {
		meter_note(note, len, "the counter's name has %zu characters: "
		    "use at most %zu", strlen(spec), sizeof src->name - 1);
		return (-1);
	}
	if (!strcmp(spec, "thread-clock")) {
		src->kind = METER_THREAD_CLOCK;
		(void)strcpy(src->name, spec);
		return (0);
	}
	if (!strcmp(spec, "auto"))
		event = "cycles";
	e = meter_encode(event, src);
	if (e == PFM_SUCCESS) {
		(void)strcpy(src->name, event);
		return (0);
	}
	if (event != spec || !strcmp(spec, "cycles") ||
	    !strcmp(spec, "instructions")) {
		/* A known name that libpfm4 cannot encode on this machine */
		meter_note(note, len, "libpfm4 cannot count %s here (%s)",
		    event, pfm_strerror(e));
		src->kind = METER_THREAD_CLOCK;
		return (0);
	}
	meter_note(note, len, "\"%s\" is not a counter (%s): use auto, "
	    "thread-clock, cycles, instructions, or an event that libpfm4 "
	    "knows, such as task-clock or perf::page-faults", spec,
	    pfm_strerror(e));
	return (-1);
}

int
METER_Check(const char *spec, char *note, size_t len)
{
	struct meter_source src;

	assert(spec != NULL);
	if (note != NULL && len > 0)
		note[0] = '\0';
	if (meter_parse(spec, &src, note, len) != 0)
		return (-1);
	if (note != NULL && len > 0)
		note[0] = '\0';
	return (0);
}

/* Return the ns of one cycle of the nominal clock; 0: not known */
static double
meter_ns_per_cycle(const struct meter_source *src)
{
	double khz = 0;
	FILE *f;

	if (src->ns_per_tsc > 0)
		return (src->ns_per_tsc);
	f = fopen("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq",
	    "r");
	if (f != NULL) {
		if (fscanf(f, "%lf", &khz) != 1)
			khz = 0;
		(void)fclose(f);
	}
	return (khz > 0 ? 1e6 / khz : 0);
}

/* May this process count the event?  If not, note says why. */
static int
meter_try_event(struct meter_source *src, char *note, size_t len)
{
	void *page;
	int fd;

	src->ns_per_count = src->type == PERF_TYPE_SOFTWARE ? 1 :
	    meter_ns_per_cycle(src);
	if (!(src->ns_per_count > 0)) {
		meter_note(note, len, "%s cannot be used: the CPU's clock rate "
		    "is not known", src->name);
		return (0);
	}
	fd = meter_perf_open(src);
	if (fd < 0) {
		meter_note(note, len, "%s cannot be counted (%s)", src->name,
		    errno == ENOENT || errno == ENODEV || errno == EOPNOTSUPP ?
		    "no performance counter for it" : strerror(errno));
		return (0);
	}
	page = meter_perf_map(fd);
	src->rdpmc = meter_perf_rdpmc(page);
	meter_perf_unmap(page);
	(void)close(fd);
	return (1);
}

/* Fall back to the thread clock, or to wall time if even that is refused */
static void
meter_fall_back(struct meter_source *src, char *note, size_t len)
{

	if (meter_clock(CLOCK_THREAD_CPUTIME_ID) >= 0) {
		src->kind = METER_THREAD_CLOCK;
		(void)strcpy(src->name, "thread-clock");
	} else {
		src->kind = METER_WALL;
		(void)strcpy(src->name, "wall");
		src->rseq = 0;
	}
	meter_note(note, len, "using %s instead", src->name);
}

int
METER_Choose(struct meter_source *src, const char *spec, char *note,
    size_t len)
{

	assert(src != NULL && spec != NULL);
	if (note != NULL && len > 0)
		note[0] = '\0';
	if (meter_parse(spec, src, note, len) != 0)
		return (-1);
	src->ns_per_tsc = meter_ns_per_tsc();
	src->rseq = src->ns_per_tsc > 0 && meter_rseq_works();
	if (src->kind == METER_EVENT && meter_try_event(src, note, len))
		return (0);
	if (src->kind != METER_THREAD_CLOCK || src->name[0] == '\0' ||
	    meter_clock(CLOCK_THREAD_CPUTIME_ID) < 0)
		meter_fall_back(src, note, len);
	if (!src->rseq)
		meter_note(note, len, "no %s: only a sample of the requests is "
		    "measured", src->ns_per_tsc > 0 ? "rseq" :
		    "invariant TSC");
	return (0);
}

/*--------------------------------------------------------------------
 * One thread's meter
 */

/* Return the source's time, ns */
static int64_t
meter_source_read(const struct meter *m)
{
	uint64_t count;

	if (m->fd >= 0 && ((m->page != NULL && meter_perf_page(m->page,
	    &count)) || meter_perf_read(m->fd, &count)))
		return ((int64_t)((double)count * m->src->ns_per_count));
	if (m->fd >= 0)
		return (m->clock);	/* off the PMU: no change */
	if (m->src->kind == METER_WALL)
		return (METER_Now());
	return (meter_clock(CLOCK_THREAD_CPUTIME_ID));
}

/*
 * Read the source, and start the TSC there.  meter_arm() comes first: a switch
 * from then on clears rseq_cs, and the next lap reads the source again.  So a
 * pair of TSC and source that does not match is never used.
 */
static void
meter_read(struct meter *m)
{
	uint64_t t;

	if (!m->rseq) {
		m->base = m->clock = meter_source_read(m);
		return;
	}
	meter_arm();
	t = meter_tsc();
	m->base = m->clock = meter_source_read(m);
	m->tsc = t + (meter_tsc() - t) / 2;
}

/* Bring m->clock up to now.  The TSC is read before rseq_cs is checked.  A
 * switch between the two makes the check fail, which is safe. */
static void
meter_update(struct meter *m)
{
	uint64_t t;
	double ns;

	if (m->rseq) {
		t = meter_tsc();
		if (meter_armed()) {
			ns = (double)(t - m->tsc) * m->src->ns_per_tsc;
			if (t >= m->tsc && ns < METER_TRUST) {
				m->clock = m->base + (int64_t)ns;
				return;
			}
		}
	}
	meter_read(m);
}

void
METER_Open(struct meter *m, const struct meter_source *src)
{

	assert(m != NULL);
	assert(src != NULL && src->magic == METER_SOURCE_MAGIC);
	memset(m, 0, sizeof *m);
	m->magic = METER_MAGIC;
	m->src = src;
	m->fd = -1;
	if (src->kind == METER_EVENT) {
		m->fd = meter_perf_open(src);
		if (m->fd >= 0)
			m->page = meter_perf_map(m->fd);
		if (!meter_perf_rdpmc(m->page)) {
			meter_perf_unmap(m->page);
			m->page = NULL;
		}
	}
	m->rseq = src->rseq && m->fd < 0 && meter_rseq_registered();
	meter_read(m);
	m->last = m->clock;
}

void
METER_Close(struct meter *m)
{

	assert(m != NULL && m->magic == METER_MAGIC);
	if (m->rseq)
		meter_disarm();
	meter_perf_unmap(m->page);
	if (m->fd >= 0)
		(void)close(m->fd);
	memset(m, 0, sizeof *m);
	m->fd = -1;
}

int
METER_Cheap(const struct meter *m)
{

	assert(m != NULL && m->magic == METER_MAGIC);
	return (m->rseq || m->page != NULL || m->src->kind == METER_WALL);
}

int64_t
METER_Lap(struct meter *m)
{
	int64_t lap;

	assert(m != NULL && m->magic == METER_MAGIC);
	meter_update(m);
	lap = m->clock - m->last;
	if (lap < 0)		/* the TSC was ahead: later laps pay */
		return (0);
	m->last = m->clock;
	return (lap);
}

int64_t
METER_LapIf(struct meter *m, int wanted)
{

	if (!wanted && !METER_Cheap(m))
		return (-1);
	return (METER_Lap(m));
}

void
METER_Drop(struct meter *m)
{

	assert(m != NULL && m->magic == METER_MAGIC);
	meter_update(m);
	m->last = m->clock;
}
