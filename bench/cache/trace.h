/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * A trace of requests, as generate.cc writes it: libCacheSim's format
 * oracleGeneral.  The upper 16 bits of an object are its tenant.
 */

#ifndef CACHE_TRACE_H_INCLUDED
#define CACHE_TRACE_H_INCLUDED

#include <stddef.h>
#include <stdint.h>

struct record {
	uint32_t		time;		/* s */
	uint64_t		object;
	uint32_t		size;		/* bytes */
	int64_t			next;		/* the request that asks for it
						 * next, or -1 */
} __attribute__((packed));

/* Set before all else: errors name it. */
extern const char *program;

/* Print what is wrong, and exit. */
void fail(const char *what, const char *why) __attribute__((noreturn));
/* Return a number from low to high that an option has, or fail. */
double number(const char *option, const char *value, double low, double high);
/* Map a trace into memory.  Returns its records, *n of them, or fails. */
const struct record *trace_open(const char *path, size_t *n);

#endif
