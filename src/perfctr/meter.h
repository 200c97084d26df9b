/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * What the calling thread has used of the CPU, lap by lap.
 *
 * A worker is charged from the end of its previous request to the end of
 * this one.  Reading the thread's CPU clock costs 400 ns, so it is avoided:
 * with restartable sequences (rseq) the kernel tells us, by clearing
 * rseq_cs, whether the thread has left its core since the last lap; if it
 * has not, the difference of the time stamp counter is its CPU time, for
 * 20 ns.  If it was switched out the thread clock is read, and the time
 * stamp counter's laps since the last reading are taken off.
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

/* What all threads' meters count, chosen once at start */
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
	char			name[64];	/* what is in use */
};

struct meter {
	unsigned		magic;
#define METER_MAGIC		0x3e7e50ab
	const struct meter_source *src;
	int			rseq;		/* this thread's laps use it */
	int			fd;		/* perf_event, or -1 */
	void			*page;		/* its mmap page, or NULL */
	uint64_t		tsc;		/* at the last reading */
	int64_t			base;		/* ns: source, last reading */
	int64_t			clock;		/* ns: base + TSC since */
	int64_t			last;		/* ns: clock at the last lap */
};

/* A lap believes the TSC for this long, then the source is read again (ns):
 * whatever the TSC counts and the thread clock does not (a hypervisor that
 * took the core away, interrupts accounted apart) stays below it. */
#define METER_TRUST		4000000

/*
 * Choose a source.  spec: "auto", "thread-clock", "cycles", "instructions"
 * or an event name that libpfm4 knows.  0: done, and note (if it is not
 * empty) says in one line what could not be had and what is used instead.
 * -1: the name is unknown, note says so and what is allowed.
 *
 * An event's count becomes time: hardware events as cycles of the TSC (or
 * the core's nominal clock), so that one instruction is one cycle as in the
 * paper's section 3.2; software events as they are, which is right for
 * task-clock and cpu-clock, and takes one page fault for one ns.
 * Keeps the calling thread busy for up to 20 ms.
 */
int METER_Choose(struct meter_source *, const char *spec,
    char *note, size_t notelen);
/* The same check, without choosing or touching the kernel: for param.set */
int METER_Check(const char *spec, char *note, size_t notelen);

/* In the thread that is to be metered; never fails: falls back to its clock */
void METER_Open(struct meter *, const struct meter_source *);
void METER_Close(struct meter *);

/*
 * METER_Lap(): ns of CPU of this thread since the last lap (or since Open).
 * METER_LapIf(): the same if it is cheap (rseq) or wanted, else -1 and the
 * lap goes on; lap times never get lost, they add to the next lap.
 * METER_Drop(): begin a new lap, forgetting this one, as cheaply as can be.
 */
int64_t METER_Lap(struct meter *);
int64_t METER_LapIf(struct meter *, int wanted);
int METER_Cheap(const struct meter *);
void METER_Drop(struct meter *);

int64_t METER_Process(void);	/* CPU of the process, ns */
int64_t METER_Now(void);	/* CLOCK_MONOTONIC, ns */

/* A counter as its mmap page says: the kernel's offset plus the register's
 * `width` low bits, sign-extended (perf_event_mmap_page, pmc_width) */
uint64_t METER_PageCount(int64_t offset, uint64_t pmc, unsigned width);

#endif
