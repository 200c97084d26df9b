/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Preloaded into a program: the wall clock is off by as many ns as the file
 * $CLOCK_STEP says, an int64_t.  A wait until a time of that clock is cut
 * into short ones, so that it ends by the new time.
 */

#include "preload.h"

#include <sys/mman.h>
#include <sys/time.h>

#define CUT_NS		(10 * S_NS / 1000)
#define EPOCH_S		1000000000	/* in 2001: no computer is up for so long */

static volatile const int64_t *step;
static int (*real_gettime)(clockid_t, struct timespec *);

static void __attribute__((constructor))
begin(void)
{
	int fd;

	real_gettime = REAL(clock_gettime);
	fd = open(getenv("CLOCK_STEP"), O_RDONLY);
	assert(fd >= 0);
	step = mmap(NULL, sizeof *step, PROT_READ, MAP_SHARED, fd, 0);
	assert(step != MAP_FAILED);
	(void)close(fd);
}

static int64_t
real_now(void)
{
	struct timespec ts;

	(void)real_gettime(CLOCK_REALTIME, &ts);
	return (ts.tv_sec * S_NS + ts.tv_nsec);
}

int
clock_gettime(clockid_t id, struct timespec *ts)
{
	int64_t now;

	if (real_gettime == NULL)
		begin();
	if (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE)
		return (real_gettime(id, ts));
	now = real_now() + *step;
	ts->tv_sec = now / S_NS;
	ts->tv_nsec = now % S_NS;
	return (0);
}

int
gettimeofday(struct timeval *tv, void *zone)
{
	struct timespec ts;

	(void)zone;
	(void)clock_gettime(CLOCK_REALTIME, &ts);
	tv->tv_sec = ts.tv_sec;
	tv->tv_usec = ts.tv_nsec / 1000;
	return (0);
}

time_t
time(time_t *t)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_REALTIME, &ts);
	if (t != NULL)
		*t = ts.tv_sec;
	return (ts.tv_sec);
}

int
pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mtx,
    const struct timespec *until)
{
	struct timespec ts;
	int64_t end, cut = real_now() + CUT_NS;
	int r;

	if (until->tv_sec < EPOCH_S)	/* by the time since the boot */
		return (real_timedwait()(cond, mtx, until));
	end = until->tv_sec * S_NS + until->tv_nsec - *step;
	if (end > cut)
		end = cut;
	ts.tv_sec = end / S_NS;
	ts.tv_nsec = end % S_NS;
	r = real_timedwait()(cond, mtx, &ts);
	/* Cut: as if it had been woken for nothing */
	return (r == ETIMEDOUT && end == cut ? 0 : r);
}
