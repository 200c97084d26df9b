/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The laps of meter.h.  A lap is the difference of two values of a clock: the
 * source's last reading (base) plus the TSC since.  The TSC counts while rseq.h
 * says that this thread is still on its core.
 *
 * Invariant: the sum of all laps, also of dropped ones, is the clock at the
 * last lap.  Each reading sets the clock to the source, so errors never add up.
 */

#include <assert.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "meter.h"
#include "perf_event.h"
#include "rseq.h"
#include "tsc.h"

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

int64_t
METER_Thread(void)
{

	return (meter_clock(CLOCK_THREAD_CPUTIME_ID));
}

/*--------------------------------------------------------------------
 * The source's time
 */

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
	return (METER_Thread());
}

/*--------------------------------------------------------------------
 * One thread's meter
 */

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
