/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Preloaded into varnishd: another thread always has the lock that is tried.
 */

#include <errno.h>
#include <pthread.h>

int
pthread_mutex_trylock(pthread_mutex_t *m)
{
	(void)m;
	return (EBUSY);
}
