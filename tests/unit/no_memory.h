/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The calloc() of a test program.  One of its calls finds no memory, if the
 * test says so.  One source file of a program may include this.
 */

#ifndef NO_MEMORY_H_INCLUDED
#define NO_MEMORY_H_INCLUDED

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

static unsigned no_memory;	/* the next call that fails; 1: the first one
				 * from now on; 0: none */

/* ThreadSanitizer calls it for a thread that it does not know yet. */
__attribute__((no_sanitize("thread"))) void *
calloc(size_t n, size_t size)
{
	void *p;

	if (no_memory > 0 && --no_memory == 0)
		return (NULL);
	p = malloc(n * size);
	if (p != NULL)
		explicit_bzero(p, n * size);	/* memset(): gcc makes a call
						 * of calloc() from both */
	return (p);
}

/* Return the bytes that are allocated. */
static size_t
allocated(void)
{
	struct mallinfo2 m = mallinfo2();

	return (m.uordblks + m.hblkhd);
}

/* Begin and end something 100 times, and let each of its `calls` of calloc()
 * fail as often.  No memory may be left behind.  begin: returns 0, or -1. */
static inline void
assert_no_leak(int (*begin)(void), void (*end)(void), unsigned calls)
{
	size_t before = 0;
	unsigned round, call;

	for (round = 0; round < 100; round++) {
		if (round == 1)
			before = allocated();
		for (call = 1; call <= calls; call++) {
			no_memory = call;
			assert_int_equal(begin(), -1);
		}
		assert_int_equal(begin(), 0);
		end();
	}
	assert_true(allocated() < before + 1000);
}

#endif
