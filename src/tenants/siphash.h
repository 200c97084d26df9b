/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * SipHash-2-4 (Aumasson and Bernstein, 2012), a keyed hash for short strings.
 * Without the key a client cannot choose two names that collide.
 */

#ifndef SIPHASH_H_INCLUDED
#define SIPHASH_H_INCLUDED

#include <stddef.h>
#include <stdint.h>

struct siphash_state {
	uint64_t		v0, v1, v2, v3;
};

static inline uint64_t
siphash_rotl(uint64_t x, unsigned b)
{
	return ((x << b) | (x >> (64 - b)));
}

/* Load n <= 8 bytes, little-endian */
static inline uint64_t
siphash_load(const uint8_t *p, size_t n)
{
	uint64_t x = 0;

	while (n-- > 0)
		x = (x << 8) | p[n];
	return (x);
}

static inline void
siphash_rounds(struct siphash_state *s, unsigned n)
{
	while (n-- > 0) {
		s->v0 += s->v1;
		s->v1 = siphash_rotl(s->v1, 13) ^ s->v0;
		s->v0 = siphash_rotl(s->v0, 32);
		s->v2 += s->v3;
		s->v3 = siphash_rotl(s->v3, 16) ^ s->v2;
		s->v0 += s->v3;
		s->v3 = siphash_rotl(s->v3, 21) ^ s->v0;
		s->v2 += s->v1;
		s->v1 = siphash_rotl(s->v1, 17) ^ s->v2;
		s->v2 = siphash_rotl(s->v2, 32);
	}
}

static inline void
siphash_word(struct siphash_state *s, uint64_t m)
{
	s->v3 ^= m;
	siphash_rounds(s, 2);
	s->v0 ^= m;
}

static inline uint64_t
siphash(const uint8_t key[16], const void *data, size_t len)
{
	const uint8_t *p = data;
	uint64_t k0 = siphash_load(key, 8), k1 = siphash_load(key + 8, 8);
	struct siphash_state s;
	size_t n;

	s.v0 = k0 ^ UINT64_C(0x736f6d6570736575);
	s.v1 = k1 ^ UINT64_C(0x646f72616e646f6d);
	s.v2 = k0 ^ UINT64_C(0x6c7967656e657261);
	s.v3 = k1 ^ UINT64_C(0x7465646279746573);
	for (n = len; n >= 8; n -= 8, p += 8)
		siphash_word(&s, siphash_load(p, 8));
	siphash_word(&s, siphash_load(p, n) | (uint64_t)len << 56);
	s.v2 ^= 0xff;
	siphash_rounds(&s, 4);
	return (s.v0 ^ s.v1 ^ s.v2 ^ s.v3);
}

#endif
