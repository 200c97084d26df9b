/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Preloaded into varnishd: there are no more threads while the file
 * $NO_THREADS exists.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

typedef int create_f(pthread_t *, const pthread_attr_t *,
    void *(*)(void *), void *);

int
pthread_create(pthread_t *thread, const pthread_attr_t *attr,
    void *(*func)(void *), void *priv)
{
	create_f *real;

	if (access(getenv("NO_THREADS"), F_OK) == 0)
		return (EAGAIN);
	real = (create_f *)dlsym(RTLD_NEXT, "pthread_create");
	return (real(thread, attr, func, priv));
}
