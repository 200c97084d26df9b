/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * What every file uses: settings, counters, and the libraries' objects.  Also
 * the state of this thread, which spd_thread.c makes.  All other state of the
 * process is static in its file, behind functions.
 *
 * Only spd.h includes this file, after spd_types.h.
 */

/* Static, except in a fuzz target, which checks the state. */
#ifndef SPD_STATIC
#define SPD_STATIC		static
#endif

#define SPD_SLOTS_MAX		16384		/* slots there can be */
#define SPD_HARVEST		200000		/* ns between two looks at the
						 * epoll set, at least */
#define SPD_NAP			1000000		/* ns, a sleep of the deputy: so
						 * long a request is left to
						 * the workers that run */

/* The keeper writes these.  All threads read them without the lock. */
struct spd_settings {
	_Atomic enum spd_mode	mode;
	_Atomic int		live;		/* 0: off, and drained */
	_Atomic unsigned	cores;
	_Atomic unsigned	parsers;	/* P, workers that may parse */
	_Atomic double		sample;		/* p, 0 to 1 */
	_Atomic int		synchronised;	/* REL_Synchronised() */
	_Atomic unsigned	overload;	/* number of the controller */
	_Atomic int64_t		target;		/* ns; 0: none */
	_Atomic int64_t		standing;	/* ns */
};

extern struct spd_settings spd_set;
extern struct VSC_sandpaper *spd_vsc;	/* counters; set at start.  The lock
					 * guards them */
extern struct rel *spd_rel;		/* the releaser, locked */
extern struct ten_table *spd_tenants;	/* the tenants; TEN_Find() needs no
					 * lock, the other functions do */

extern __thread struct spd_worker spd_me;
extern pthread_key_t spd_key;
