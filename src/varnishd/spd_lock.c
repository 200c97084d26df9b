/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The lock spd_lock(): one for the process.  It guards what requests of
 * several tenants share.  Every request takes it, unless Sandpaper is off.
 * So holds must be short: the aim is 100 us of the holder's CPU time.
 *
 * `debug.sandpaper.lock on` measures each hold on two clocks: the holder's CPU
 * clock and the wall clock.  Only the wall clock counts the time in which the
 * holder was preempted.  Both count interrupts.  The lock guards these
 * measurements, too.
 */

#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "spd.h"

#include "vcli_serve.h"

#define HOLD_BUCKETS	128		/* see hold_bucket() */
#define HOLD_HIGH	0.9999		/* the quantile to print */

/* The measurements on one clock */
struct hold_times {
	clockid_t	clock;
	int64_t		began;		/* ns, of the present hold */
	uint64_t	n[HOLD_BUCKETS];
	uint64_t	holds;
	int64_t		longest;	/* ns */
	const char	*by;		/* function that ended the longest */
};

__thread int spd_holds;

static struct lock lck;
static int wanted;			/* under lck */
static int timed;			/* this hold is measured; under lck */
static struct hold_times on_cpu = { .clock = CLOCK_THREAD_CPUTIME_ID };
static struct hold_times on_wall = { .clock = CLOCK_MONOTONIC };

static int64_t
hold_now(const struct hold_times *h)
{
	struct timespec ts;

	AZ(clock_gettime(h->clock, &ts));
	return ((int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec);
}

static void
hold_begins(void)
{

	timed = 1;
	on_cpu.began = hold_now(&on_cpu);
	on_wall.began = hold_now(&on_wall);
}

/*
 * Return the bucket of a hold.  0, 1, 2 and 3 ns have a bucket each.  Each
 * later bucket is a quarter of an octave.  The last one has all longer holds.
 */
static unsigned
hold_bucket(int64_t ns)
{
	unsigned octave;

	if (ns < 4)
		return ((unsigned)vmax_t(int64_t, ns, 0));
	octave = 63 - (unsigned)__builtin_clzll((uint64_t)ns);
	return (vmin_t(unsigned, HOLD_BUCKETS - 1,
	    (octave - 1) * 4 + ((unsigned)(ns >> (octave - 2)) & 3)));
}

/* Return the upper bound of a bucket, ns: its holds were shorter */
static int64_t
hold_bound(unsigned b)
{

	return (b < 4 ? b + 1 : (int64_t)(5 + b % 4) << (b / 4 - 1));
}

static void
hold_count(struct hold_times *h, int64_t ns, const char *by)
{

	h->n[hold_bucket(ns)]++;
	h->holds++;
	if (ns > h->longest) {
		h->longest = ns;
		h->by = by;
	}
}

/*
 * Count the hold that ends.  The CPU clock is read first and last.  So the CPU
 * time can be more than the wall time, and is cut to the wall time.
 */
static void
hold_ends(const char *by)
{
	int64_t wall = hold_now(&on_wall) - on_wall.began;
	int64_t cpu = hold_now(&on_cpu) - on_cpu.began;

	timed = 0;
	hold_count(&on_cpu, vmin(cpu, wall), by);
	hold_count(&on_wall, wall, by);
}

void
spd_lock_init(void)
{

	Lck_New(&lck, lck_sandpaper);
}

void
spd_lock_at(const char *func, int line)
{

	Lck__Lock(&lck, func, line);
	spd_holds = 1;
	if (wanted)
		hold_begins();
}

void
spd_unlock_at(const char *func, int line)
{

	if (timed)
		hold_ends(func);
	spd_holds = 0;
	Lck__Unlock(&lck, func, line);
}

/*
 * Let other threads have the lock, at every SPD_PAUSE-th step of a long loop.
 * Afterwards what the lock guards may have changed.  Caller holds spd_lock().
 */
void
spd_pause_at(unsigned step, const char *func, int line)
{

	SPD_LOCKED();
	if (step % SPD_PAUSE != SPD_PAUSE - 1)
		return;
	spd_unlock_at(func, line);
	spd_lock_at(func, line);
}

/*--------------------------------------------------------------------
 * debug.sandpaper.lock
 */

static void
hold_clear(struct hold_times *h)
{

	*h = (struct hold_times){ .clock = h->clock };
}

static void
hold_time(int on)
{

	spd_lock();
	if (on) {
		hold_clear(&on_cpu);
		hold_clear(&on_wall);
		timed = 0;		/* do not count this hold */
	}
	wanted = on;
	spd_unlock();
}

/*
 * Return an upper bound of the quantile q, us.  It is the bound of the bucket,
 * or the longest hold if that is shorter.
 */
static double
hold_quantile(const struct hold_times *h, double q)
{
	uint64_t left = h->holds - (uint64_t)(q * (double)h->holds);
	unsigned b = HOLD_BUCKETS;

	while (--b > 0 && left > h->n[b])
		left -= h->n[b];
	return ((double)vmin_t(int64_t, hold_bound(b), h->longest) * 1e-3);
}

static void
hold_print(struct cli *cli, const char *clock, const struct hold_times *h)
{
	unsigned b;

	VCLI_Out(cli, "%s: %ju holds", clock, (uintmax_t)h->holds);
	if (h->holds > 0)
		VCLI_Out(cli, ", the longest %.3f us by %s, %.2f %% up to "
		    "%.3f us", (double)h->longest * 1e-3, h->by,
		    HOLD_HIGH * 100, hold_quantile(h, HOLD_HIGH));
	VCLI_Out(cli, "\n");
	for (b = 0; b < HOLD_BUCKETS; b++)
		if (h->n[b] > 0)
			VCLI_Out(cli, "%14.3f us %ju\n",
			    (double)hold_bound(b) * 1e-3, (uintmax_t)h->n[b]);
}

static void
hold_show(struct cli *cli)
{
	struct hold_times cpu, wall;

	spd_lock();
	cpu = on_cpu;
	wall = on_wall;
	spd_unlock();
	hold_print(cli, "CPU time", &cpu);
	hold_print(cli, "wall clock", &wall);
}

static void v_matchproto_(cli_func_t)
cli_lock(struct cli *cli, const char * const *av, void *priv)
{

	(void)priv;
	if (av[2] == NULL)
		hold_show(cli);
	else if (!strcmp(av[2], "on") || !strcmp(av[2], "off"))
		hold_time(av[2][1] == 'n');
	else {
		VCLI_Out(cli, "Unknown state \"%s\": use on or off", av[2]);
		VCLI_SetResult(cli, CLIS_PARAM);
	}
}

static struct cli_proto lock_cmds[] = {
	{ CLICMD_DEBUG_SANDPAPER_LOCK,		"d", cli_lock },
	{ NULL }
};

void
spd_lock_cli(void)
{

	CLI_AddFuncs(lock_cmds);
}
