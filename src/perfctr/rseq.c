/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The critical section of rseq.h, and the check that rseq works.
 */

#include <stdint.h>
#include <time.h>

#include "rseq.h"

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

struct rseq_cs meter_cs = {
	.start_ip = (uintptr_t)sandpaper_meter_abort,
	.post_commit_offset = 0,
	.abort_ip = (uintptr_t)sandpaper_meter_abort,
};

/*
 * Does the kernel clear rseq_cs of a thread that waited in a system call?
 * Linux always has, but need not: no critical section contains a system call.
 * Without that, a lap cannot use the TSC.
 */
int
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

int meter_rseq_works(void) { return (0); }

#endif
