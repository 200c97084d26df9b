/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number
 * Generators", OOPSLA 2014): a hash of 64 bits, and a random generator.
 */

#ifndef SANDPAPER_SPLITMIX_H_INCLUDED
#define SANDPAPER_SPLITMIX_H_INCLUDED

#include <stdint.h>

#define SPLITMIX_STEP	UINT64_C(0x9e3779b97f4a7c15)

/* Return the hash of a number. */
static inline uint64_t
splitmix(uint64_t n)
{
	n += SPLITMIX_STEP;
	n = (n ^ n >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	n = (n ^ n >> 27) * UINT64_C(0x94d049bb133111eb);
	return (n ^ n >> 31);
}

/* Return the next random number. */
static inline uint64_t
splitmix_next(uint64_t *state)
{
	uint64_t n = splitmix(*state);

	*state += SPLITMIX_STEP;
	return (n);
}

/* Return a random number from 0 to 1, not 0 and not 1. */
static inline double
splitmix_draw(uint64_t *state)
{

	return (((double)(splitmix_next(state) >> 12) + .5) * 0x1p-52);
}

#endif
