/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * What policies are compared with: the weighted max-min fluid, and the
 * paper's Figure 8 word by word.
 */

#ifndef REL_ORACLE_H_INCLUDED
#define REL_ORACLE_H_INCLUDED

#include <stdint.h>

#define ORACLE_TENANTS	64

/*
 * One resource of rate 1 (ns of work a ns), given to those with work left
 * in proportion to their weights, as a fluid.
 */
struct fluid {
	unsigned	n;
	double		weight[ORACLE_TENANTS];
	double		work[ORACLE_TENANTS];	/* ns, left */
	double		served[ORACLE_TENANTS];	/* ns */
};

void fluid_advance(struct fluid *, double ns);

/*
 * Progressive filling for demands on several resources (DRF): dominant
 * rates, all raised together until a resource that the tenant uses is
 * full.  use[i][r] is tenant i's work on r for 1 ns of its dominant one.
 */
#define ORACLE_RES	2
void drf_rates(unsigned n, const double use[][ORACLE_RES], double rate[]);

/*
 * Figure 8, lines 3-6 and 14-32, one call of DEQUEUE for a worker that is
 * available, up to line 25: k is read there.  -1: nothing waits.
 */
struct fig8 {
	unsigned	order[ORACLE_TENANTS];	/* Q_ac: a list */
	unsigned	active;			/* its length */
	unsigned	waiting[ORACLE_TENANTS];	/* |q_n| */
	int64_t		s[ORACLE_TENANTS];
	int64_t		k[ORACLE_TENANTS];
	unsigned	left;			/* R */
	int64_t		u, s_max;
	int		n;			/* in its turn, or -1 */
};

void fig8_init(struct fig8 *);
void fig8_enqueue(struct fig8 *, unsigned tenant);
int fig8_dequeue(struct fig8 *);

#endif
