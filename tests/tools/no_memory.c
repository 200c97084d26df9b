/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Preloaded into varnishd: while the file $NO_MEMORY exists there is none for
 * Sandpaper's tables, which grow with traffic: calloc() of 1024 connections,
 * and of a multiple of 64 tenants and one.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define CONNECTIONS	1024
#define TENANTS		64

typedef void *alloc_f(size_t, size_t);

static int
none(void)
{
	const char *file = getenv("NO_MEMORY");

	if (file == NULL || access(file, F_OK) != 0)
		return (0);
	errno = ENOMEM;
	return (1);
}

void *
calloc(size_t n, size_t size)
{
	static alloc_f *real;

	if ((n == CONNECTIONS || (n > TENANTS && n % TENANTS == 1)) && none())
		return (NULL);
	if (real == NULL)
		real = (alloc_f *)dlsym(RTLD_NEXT, "calloc");
	return (real(n, size));
}
