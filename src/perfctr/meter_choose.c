/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The choice of a source of CPU time: METER_Choose() and METER_Check().  If the
 * kernel or the CPU refuses a source, METER_Choose() takes a simpler one.  The
 * note says which one, and why.
 */

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <perfmon/pfmlib_perf_event.h>

#include "clock.h"
#include "meter.h"
#include "perf_event.h"
#include "rseq.h"
#include "tsc.h"

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

	if (METER_Thread() >= 0) {
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
	    METER_Thread() < 0)
		meter_fall_back(src, note, len);
	if (!src->rseq)
		meter_note(note, len, "no %s: only a sample of the requests is "
		    "measured", src->ns_per_tsc > 0 ? "rseq" :
		    "invariant TSC");
	return (0);
}
