/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * What the fuzz targets share: an input is read as a sequence of calls and
 * their arguments, and what is missing at its end is zero.
 *
 * A target is one file with LLVMFuzzerTestOneInput(), which aborts on a
 * finding.  With libFuzzer (make fuzz) inputs are invented, with replay.c
 * (make check) those in the corpus are run again.
 */

#ifndef FUZZ_H_INCLUDED
#define FUZZ_H_INCLUDED

#undef NDEBUG
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

struct fuzz_in {
	const uint8_t		*p;
	size_t			left;
};

static inline uint8_t
fuzz_byte(struct fuzz_in *in)
{
	if (in->left == 0)
		return (0);
	in->left--;
	return (*in->p++);
}

/* 0 to n - 1, for n to 256 */
static inline unsigned
fuzz_below(struct fuzz_in *in, size_t n)
{
	return ((unsigned)(fuzz_byte(in) % n));
}

/* A number of any size, from two bytes; 0 to 2^63 - 1.  The limits of the
 * code under test are among them, and what is beside them. */
static inline int64_t
fuzz_number(struct fuzz_in *in)
{
	static const int64_t limit[] = {
		256 * 1024, 4000000, 50000000, 1000000000,
		INT64_C(1) << 42, INT64_MAX - 1,
	};
	unsigned bits = fuzz_below(in, 64), i;
	uint64_t n = fuzz_byte(in);

	if (bits == 0) {
		i = (unsigned)n / 4 % (sizeof limit / sizeof limit[0]);
		return (n < 128 ? (int64_t)n :
		    limit[i] + ((int64_t)(n % 4) % 3 - 1));
	}
	n |= 0x100;
	return ((int64_t)(bits > 9 ? n << (bits - 9) : n >> (9 - bits)));
}

/* The same, at most max */
static inline int64_t
fuzz_number_to(struct fuzz_in *in, int64_t max)
{
	int64_t n = fuzz_number(in);

	return (n > max ? max : n);
}

/* Memory that the code under test must not touch, and may again */
#if defined(__SANITIZE_ADDRESS__)
#define FUZZ_ASAN	1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FUZZ_ASAN	1
#endif
#endif

#ifdef FUZZ_ASAN
#include <sanitizer/asan_interface.h>
#define FUZZ_FENCE(p, n)	ASAN_POISON_MEMORY_REGION(p, n)
#define FUZZ_OPEN(p, n)		ASAN_UNPOISON_MEMORY_REGION(p, n)
#else
#define FUZZ_FENCE(p, n)	((void)(p), (void)(n))
#define FUZZ_OPEN(p, n)		((void)(p), (void)(n))
#endif

#endif
