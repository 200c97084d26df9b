/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The name of a record, which a thread reads without a lock.
 *
 * Stores release and loads acquire, byte by byte.  A thread that reads a byte
 * of a new name then also sees the new generation.
 */

#ifndef TENANTS_NAME_H_INCLUDED
#define TENANTS_NAME_H_INCLUDED

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "table.h"

static inline void
set_name(struct ten_record *r, const char *name, size_t len)
{
	uint32_t g = r->generation + 1;
	size_t i;

	assert(g & 1);
	__atomic_store_n(&r->namelen, (uint16_t)len, __ATOMIC_RELEASE);
	for (i = 0; i < len; i++)
		__atomic_store_n(&r->name[i], name[i], __ATOMIC_RELEASE);
	__atomic_store_n(&r->name[len], '\0', __ATOMIC_RELEASE);
	__atomic_store_n(&r->generation, g, __ATOMIC_RELEASE);
}

static inline int
same_name(const struct ten_record *r, const char *name, size_t len)
{
	size_t i;

	if (__atomic_load_n(&r->namelen, __ATOMIC_ACQUIRE) != len)
		return (0);
	for (i = 0; i < len; i++)
		if (__atomic_load_n(&r->name[i], __ATOMIC_ACQUIRE) != name[i])
			return (0);
	return (1);
}

static inline size_t
cut(size_t len)
{
	return (len > TEN_NAME_MAX ? TEN_NAME_MAX : len);
}

#endif
