/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * What nic.c and nic_learn.c share, and a caller does not see: units, and the
 * drain of B.
 */

#ifndef NIC_INTERNAL_H_INCLUDED
#define NIC_INTERNAL_H_INCLUDED

#include <stdint.h>

#include "nic.h"

#define NIC_RATE_MAX	(UINT64_MAX / NIC_PERCENT)	/* 188 Pbit/s */
#define NIC_PATIENCE	4		/* epochs */

typedef unsigned __int128 nic_u128;

/* Bring B up to now */
void nic_drain(struct nic *, int64_t now);

/* Return the bytes that leave in ns at that rate, in bits/s */
static inline int64_t
nic_bytes(uint64_t rate, int64_t ns)
{

	return ((int64_t)((nic_u128)rate * (uint64_t)ns / 8000000000ULL));
}

#endif
