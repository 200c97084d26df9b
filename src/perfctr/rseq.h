/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Restartable sequences (rseq): has this thread left its core?
 *
 * meter_arm() stores a pointer in rseq_cs.  The kernel clears rseq_cs when the
 * thread returns to user space after it lost its core or got a signal.  The
 * pointer names a critical section without instructions, so nothing is ever
 * restarted.
 */

#ifndef RSEQ_H_INCLUDED
#define RSEQ_H_INCLUDED

#include <stdint.h>

#if defined(__x86_64__) && defined(__has_include)
#  if __has_include(<sys/rseq.h>)
#    include <sys/rseq.h>
#    define METER_HAVE_RSEQ 1
#  endif
#endif

/* Does rseq work on this machine?  Waits for some 20 us, and disarms. */
int meter_rseq_works(void);

#ifdef METER_HAVE_RSEQ

/* The critical section that meter_arm() stores */
extern struct rseq_cs meter_cs;

static inline volatile struct rseq *
meter_rseq(void)
{

	return ((volatile struct rseq *)(void *)
	    ((char *)__builtin_thread_pointer() + __rseq_offset));
}

/* Has the C library registered this thread? */
static inline int
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

static inline void
meter_disarm(void)
{

	if (meter_armed())
		meter_rseq()->rseq_cs = 0;
}

#else

static inline int meter_rseq_registered(void) { return (0); }
static inline void meter_arm(void) { }
static inline int meter_armed(void) { return (0); }
static inline void meter_disarm(void) { }

#endif

#endif
