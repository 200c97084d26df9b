/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * What the sources that are preloaded into varnishd share: the function that a
 * hook replaces, the files that a test makes, and whose thread runs.
 */

#define _GNU_SOURCE
#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define S_NS		INT64_C(1000000000)
#define REAL(f)		((__typeof__(&(f)))dlsym(RTLD_NEXT, #f))

typedef int timedwait_f(pthread_cond_t *, pthread_mutex_t *,
    const struct timespec *);

/* Is there the file that this variable of the environment names? */
static inline int
is_there(const char *variable)
{
	const char *file = getenv(variable);

	return (file != NULL && access(file, F_OK) == 0);
}

static inline int
in_worker(void)
{
	char name[16] = "";

	(void)pthread_getname_np(pthread_self(), name, sizeof name);
	return (strcmp(name, "cache-worker") == 0);
}

/* Some libcs have an older one of the same name, too. */
static inline timedwait_f *
real_timedwait(void)
{
	timedwait_f *real = (timedwait_f *)dlvsym(RTLD_NEXT,
	    "pthread_cond_timedwait", "GLIBC_2.3.2");

	return (real != NULL ? real : REAL(pthread_cond_timedwait));
}
