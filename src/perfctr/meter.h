/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The CPU time of the calling thread, lap by lap.
 *
 * A lap lasts from one reading to the next: a worker reads its meter when it
 * enqueues a request, and when it has done one.
 * Reading the thread's CPU clock costs 400 ns.  Restartable sequences (rseq)
 * make most laps cheaper: the kernel clears rseq_cs when the thread leaves its
 * core.  If rseq_cs is not cleared, the difference of the time stamp counter
 * (TSC) is the CPU time, for 20 ns.  Else the clock is read, and the laps that
 * the TSC has counted since the last reading are subtracted.
 */

#ifndef METER_H_INCLUDED
#define METER_H_INCLUDED

#include <stddef.h>
#include <stdint.h>

enum meter_kind {
	METER_THREAD_CLOCK,	/* CLOCK_THREAD_CPUTIME_ID */
	METER_EVENT,		/* a perf_event counter: rdpmc or read() */
	METER_WALL		/* nothing else works: CLOCK_MONOTONIC */
};

/* The source of all threads' meters, see METER_Choose() */
struct meter_source {
	unsigned		magic;
#define METER_SOURCE_MAGIC	0x3e7e550c
	enum meter_kind		kind;
	int			rseq;		/* laps are cheap */
	int			rdpmc;
	uint32_t		type;		/* perf_event_attr.type */
	uint64_t		config;		/* perf_event_attr.config */
	uint64_t		config1, config2;
	int			no_user;	/* attr.exclude_user */
	int			no_kernel;	/* attr.exclude_kernel */
	double			ns_per_count;	/* event: see METER_Choose() */
	double			ns_per_tsc;	/* 0: no invariant TSC */
	char			name[64];	/* of the source in use */
};

struct meter {
	unsigned		magic;
#define METER_MAGIC		0x3e7e50ab
	const struct meter_source *src;
	int			rseq;		/* this thread uses rseq */
	int			fd;		/* perf_event; -1: none */
	void			*page;		/* its mmap page, or NULL */
	uint64_t		tsc;		/* at the last reading */
	int64_t			base;		/* ns, source, last reading */
	int64_t			clock;		/* ns, base + TSC since */
	int64_t			last;		/* ns, clock at the last lap */
};

/* Trust the TSC for this long, ns; then read the source.  So less than this is
 * charged for what the TSC counts and the thread clock does not: a hypervisor
 * that took the core away, or interrupts that are accounted apart. */
#define METER_TRUST		4000000

/*
 * Choose a source.
 *
 * spec: "auto", "thread-clock", "cycles", "instructions" or an event name that
 * libpfm4 knows.  Returns 0; a note that is not empty says in one line what
 * cannot be used, and what is used instead.  Returns -1 if the name is unknown;
 * note says so, and what is allowed.
 *
 * A hardware event counts as one cycle of the TSC, or of the core's nominal
 * clock.  So one instruction is one cycle, as in the paper's section 3.2.  A
 * software event counts as 1 ns: right for task-clock and cpu-clock, arbitrary
 * for page faults.  The call keeps its thread busy for up to 20 ms.
 */
int METER_Choose(struct meter_source *, const char *spec,
    char *note, size_t notelen);
/* Check spec in the same way, without asking the kernel: for param.set */
int METER_Check(const char *spec, char *note, size_t notelen);

/* Open a meter of the calling thread.  Never fails: the thread clock is the
 * last resort. */
void METER_Open(struct meter *, const struct meter_source *);
void METER_Close(struct meter *);

/*
 * METER_Lap(): return the ns of CPU of this thread since the last lap, or since
 * METER_Open().
 *
 * METER_LapIf(): the same if METER_Cheap(), or if `wanted`.  Else return -1,
 * and the lap goes on: its time is in the next lap.
 *
 * METER_Drop(): forget this lap and begin a new one.
 */
int64_t METER_Lap(struct meter *);
int64_t METER_LapIf(struct meter *, int wanted);
int METER_Cheap(const struct meter *);
void METER_Drop(struct meter *);

int64_t METER_Process(void);	/* CPU of the process, ns */
int64_t METER_Thread(void);	/* CPU of this thread, ns, or -1 */
int64_t METER_Now(void);	/* CLOCK_MONOTONIC, ns */

/* Return a counter from its mmap page: the kernel's offset plus the `width` low
 * bits of the register, sign-extended (perf_event_mmap_page, pmc_width) */
uint64_t METER_PageCount(int64_t offset, uint64_t pmc, unsigned width);

#endif
