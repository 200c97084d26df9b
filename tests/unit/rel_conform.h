/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * What every release policy has to keep, on random workloads.
 */

#ifndef REL_CONFORM_H_INCLUDED
#define REL_CONFORM_H_INCLUDED

#include "rel_world.h"

/* What a row of the policy table is excused from */
#define CONFORM_IGNORES_CLOSED	(1U << 0)
#define CONFORM_UNFAIR		(1U << 1)	/* no bound of lag */
#define CONFORM_SYNCHRONISED	(1U << 2)	/* may idle while any run */
/* The caller's, who has set limits: may idle till a time to come */
#define CONFORM_LIMITED		(1U << 3)

/* Of that row: all but those named in rel_conform.c are excused from nothing */
unsigned conform_flags(unsigned policy);

/* world_dequeue(), and whether it had to release, and to whom */
struct req *conform_dequeue(struct world *, unsigned flags, unsigned slot,
    unsigned closed);
/* Do the releaser's counts agree with the world's? */
void conform_counts(struct world *);
/* All that waits has to come out when nothing is closed; all of it ends */
void conform_drain(struct world *);

/* A fresh releaser under test, nslots slots */
typedef struct rel *conform_new_f(const void *priv, unsigned nslots);

/*
 * `steps` random calls of everything that releaser.h has.  NULL, or the
 * property that broke.  hash: of the trace of answers.
 */
const char *conform_random(conform_new_f *, const void *priv, unsigned flags,
    uint64_t seed, unsigned steps, uint64_t *hash);

/*
 * Random arrivals of weighted tenants at a shared CPU, beside the fluid.
 * NULL, or what broke; worst: the largest lag over its bound
 * 2(W+1)M + 2U (in ns over weight), so at most 1.
 */
const char *conform_lag(conform_new_f *, const void *priv, unsigned flags,
    uint64_t seed, double *worst);

#endif
