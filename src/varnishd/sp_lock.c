/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The lock of all that requests of several tenants share.  Every request
 * takes it, so nobody may hold it for long: 100 us of CPU time.
 *
 * `debug.sandpaper.lock on` measures each hold, on the holder's CPU clock and
 * on the wall clock.  Only the wall clock counts the time in which the holder
 * was preempted.  Both count interrupts.
 */

#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sp.h"

#include "vcli_serve.h"

#define HOLD_BUCKETS	32		/* the n-th: less than 2^n ns */
#define HOLD_HIGH	0.9999

/* One clock's measurements */
struct hold_times {
	clockid_t	clock;
	int64_t		began;		/* ns, of the present hold */
	uint64_t	n[HOLD_BUCKETS];
	uint64_t	sum;
	int64_t		longest;	/* ns */
	const char	*by;		/* the function with the longest */
};

static struct lock lck;
static int wanted;			/* under lck */
static int timed;			/* the present hold is */
static struct hold_times times[2] = {
	{ .clock = CLOCK_THREAD_CPUTIME_ID },
	{ .clock = CLOCK_MONOTONIC },
};

static int64_t
hold_now(clockid_t clock)
{
	struct timespec ts;

	AZ(clock_gettime(clock, &ts));
	return ((int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec);
}

static void
hold_begins(void)
{
	size_t u;

	timed = 1;
	for (u = 0; u < sizeof times / sizeof times[0]; u++)
		times[u].began = hold_now(times[u].clock);
}

static void
hold_ends(const char *by)
{
	int64_t wall = hold_now(times[1].clock) - times[1].began;
	int64_t ns = hold_now(times[0].clock) - times[0].began;
	struct hold_times *h;
	unsigned b;
	size_t u;

	timed = 0;
	/* Both have the time of the hold, and either has more */
	for (u = 0; u < sizeof times / sizeof times[0]; u++, ns = wall) {
		ns = vmin_t(int64_t, ns, wall);
		h = &times[u];
		for (b = 0; b < HOLD_BUCKETS - 1 && ns >> b > 0; b++)
			continue;
		h->n[b]++;
		h->sum++;
		if (ns > h->longest) {
			h->longest = ns;
			h->by = by;
		}
	}
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
	if (wanted)
		hold_begins();
}

void
spd_unlock_at(const char *func, int line)
{

	if (timed)
		hold_ends(func);
	Lck__Unlock(&lck, func, line);
}

void
spd_assert_locked(void)
{

	Lck_AssertHeld(&lck);
}

/* A loop under the lock has made a step: now and then others may have it */
void
spd_pause_at(unsigned step, const char *func, int line)
{

	spd_assert_locked();
	if (step % SPD_PAUSE != SPD_PAUSE - 1)
		return;
	spd_unlock_at(func, line);
	spd_lock_at(func, line);
}

/*--------------------------------------------------------------------
 * debug.sandpaper.lock
 */

static void
hold_time(int on)
{
	size_t u;

	spd_lock();
	for (u = 0; on && u < sizeof times / sizeof times[0]; u++) {
		memset(times[u].n, 0, sizeof times[u].n);
		times[u].sum = 0;
		times[u].longest = 0;
		times[u].by = NULL;
	}
	wanted = on;
	spd_unlock();
}

/* At most this, us: the bound of the bucket that has the quantile */
static double
hold_quantile(const struct hold_times *h, double q)
{
	uint64_t left = h->sum - (uint64_t)(q * (double)h->sum);
	unsigned b = HOLD_BUCKETS;

	while (--b > 0 && left > h->n[b])
		left -= h->n[b];
	return ((double)vmin_t(int64_t, 1LL << b, h->longest) * 1e-3);
}

static void
hold_print(struct cli *cli, const char *clock, const struct hold_times *h)
{
	unsigned b;

	VCLI_Out(cli, "%s: %ju holds", clock, (uintmax_t)h->sum);
	if (h->sum > 0)
		VCLI_Out(cli, ", the longest %.3f us by %s, %.2f %% up to "
		    "%.3f us", (double)h->longest * 1e-3, h->by,
		    HOLD_HIGH * 100, hold_quantile(h, HOLD_HIGH));
	VCLI_Out(cli, "\n");
	for (b = 0; b < HOLD_BUCKETS; b++)
		if (h->n[b] > 0)
			VCLI_Out(cli, "%14.3f us %ju\n",
			    (double)(1ULL << b) * 1e-3, (uintmax_t)h->n[b]);
}

static void
hold_show(struct cli *cli)
{
	struct hold_times seen[2];

	spd_lock();
	memcpy(seen, times, sizeof seen);
	spd_unlock();
	hold_print(cli, "CPU time", &seen[0]);
	hold_print(cli, "wall clock", &seen[1]);
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
