/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The oracles of rel_oracle.h.  They are tested on cases worked out by
 * hand (test_releaser_oracle.c).
 */

#include <assert.h>
#include <string.h>

#include "rel_oracle.h"

/* Until one runs dry, or for ns; the time that went by */
static double
fluid_step(struct fluid *f, double ns)
{
	double weights = 0, part;
	unsigned i;

	for (i = 0; i < f->n; i++)
		if (f->work[i] > 0)
			weights += f->weight[i];
	if (weights <= 0)
		return (ns);
	for (i = 0; i < f->n; i++)
		if (f->work[i] > 0 &&
		    f->work[i] * weights / f->weight[i] < ns)
			ns = f->work[i] * weights / f->weight[i];
	for (i = 0; i < f->n; i++) {
		if (f->work[i] <= 0)
			continue;
		part = ns * f->weight[i] / weights;
		f->served[i] += part;
		f->work[i] -= part;
		if (f->work[i] < 1e-6)
			f->work[i] = 0;
	}
	return (ns);
}

void
fluid_advance(struct fluid *f, double ns)
{
	while (ns > 1e-6)
		ns -= fluid_step(f, ns);
}

void
drf_rates(unsigned n, const double use[][ORACLE_RES], double rate[])
{
	double left[ORACLE_RES], need, up;
	int frozen[ORACLE_TENANTS] = { 0 };
	unsigned i, r, full, live = n;

	for (r = 0; r < ORACLE_RES; r++)
		left[r] = 1;
	for (i = 0; i < n; i++)
		rate[i] = 0;
	while (live > 0) {
		up = 2;
		full = 0;
		for (r = 0; r < ORACLE_RES; r++) {
			for (need = 0, i = 0; i < n; i++)
				need += frozen[i] ? 0 : use[i][r];
			if (need > 0 && left[r] / need < up) {
				up = left[r] / need;
				full = r;
			}
		}
		for (i = 0; i < n; i++) {
			if (frozen[i])
				continue;
			rate[i] += up;
			for (r = 0; r < ORACLE_RES; r++)
				left[r] -= up * use[i][r];
		}
		for (i = 0; i < n; i++)
			if (!frozen[i] && use[i][full] > 0) {
				frozen[i] = 1;
				live--;
			}
	}
}

/*--------------------------------------------------------------------*/

void
fig8_init(struct fig8 *f)
{
	memset(f, 0, sizeof *f);
	f->n = -1;
}

/* Lines 4-6.  Q_ac is a set: who has the turn is in it */
void
fig8_enqueue(struct fig8 *f, unsigned c)
{
	if (f->waiting[c] == 0 && f->n != (int)c)
		f->order[f->active++] = c;
	f->waiting[c]++;
}

static unsigned
fig8_remove_head(struct fig8 *f)
{
	unsigned n = f->order[0];

	assert(f->active > 0);
	memmove(f->order, f->order + 1, --f->active * sizeof f->order[0]);
	return (n);
}

/* Lines 27-32 */
static void
fig8_end(struct fig8 *f)
{
	unsigned n = (unsigned)f->n;

	if (f->waiting[n] > 0)
		f->order[f->active++] = n;
	else
		f->s[n] = 0;
	if (f->s[n] > f->s_max)
		f->s_max = f->s[n];
	f->left--;
	f->n = -1;
}

int
fig8_dequeue(struct fig8 *f)
{
	unsigned n;

	if (f->n < 0 && f->active == 0)
		return (-1);
	for (;;) {				/* 15 */
		if (f->n < 0) {
			if (f->left == 0) {	/* 16-19 */
				f->left = f->active;
				f->u = f->s_max;
				f->s_max = 0;
			}
			f->n = (int)fig8_remove_head(f);	/* 20 */
			f->s[f->n] -= f->u + 1;			/* 21 */
		}
		n = (unsigned)f->n;
		if (f->s[n] < 0 && f->waiting[n] > 0) {		/* 22 */
			f->waiting[n]--;			/* 24, 25 */
			f->s[n] += f->k[n];			/* 26 */
			if (!(f->s[n] < 0 && f->waiting[n] > 0))
				fig8_end(f);
			return ((int)n);
		}
		fig8_end(f);
	}
}
