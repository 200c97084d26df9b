/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * See pace.h.
 */

#include "pace.h"

static void
add(struct pace *p, int64_t time)
{

	p->credit += time;
	if (p->credit > PACE_MOST)
		p->credit = PACE_MOST;
	if (p->credit < -PACE_MOST)
		p->credit = -PACE_MOST;
}

void
PACE_Ran(struct pace *p, int64_t cpu)
{

	if (cpu > 0)
		add(p, cpu / PACE_RAN);
}

void
PACE_Refused(struct pace *p)
{

	add(p, -PACE_COST);
}

int
PACE_Spent(struct pace *p, int64_t now)
{
	int64_t paid = (now - p->at) / PACE_TIME;

	add(p, paid);
	p->at += paid * PACE_TIME;
	return (p->credit < 0);
}
