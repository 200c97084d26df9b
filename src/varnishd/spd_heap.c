/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * Freed memory of large objects is used again.
 *
 * By default jemalloc gives freed memory of 8 MB or more back to the kernel at
 * once, although it keeps smaller parts for 10 s.  Then the kernel clears each
 * page of the next large object first.  A fetch of a large object can take
 * longer to get its memory than to copy its bytes.
 *
 * So here large parts are kept for 10 s, too.  An operator can set another
 * size: MALLOC_CONF="oversize_threshold:BYTES".
 */

#include "config.h"

#include <limits.h>
#include <stddef.h>

#include "spd.h"

/* jemalloc reads this at the start, and then MALLOC_CONF.  0: parts of each size
 * are kept. */
const char *malloc_conf = "oversize_threshold:0";

/* Of jemalloc, if it is linked */
int mallctl(const char *, void *, size_t *, void *, size_t)
    __attribute__((weak));

/* jemalloc's first arena begins before jemalloc reads its options.  So this
 * arena gets the option here. */
void
spd_heap_init(void)
{
	size_t bytes, l = sizeof bytes;

	if (mallctl == NULL ||
	    mallctl("opt.oversize_threshold", &bytes, &l, NULL, 0) != 0)
		return;
	if (bytes == 0)
		bytes = SSIZE_MAX;
	(void)mallctl("arena.0.oversize_threshold", NULL, NULL, &bytes,
	    sizeof bytes);
}
