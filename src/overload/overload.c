/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The table of controllers, and what they have in common: without a target, and
 * below `least`, a request is admitted.  A late one is refused.
 */

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "controller.h"

/* A request is late after half of its target.  It is not late before LATE_LEAST:
 * a busy machine can need that long to look at all connections */
#define LATE_PART	2
#define LATE_LEAST	(20 * OVL_MS)

static const struct ovl_controller * const table[] = {
	&ovl_limit,
	&ovl_codel,
	&ovl_seda,
	&ovl_seda_scaled,
	&ovl_gradient,
	&ovl_credits,
	&ovl_time,
};

unsigned
OVL_Controllers(void)
{

	return (sizeof table / sizeof *table);
}

static const struct ovl_controller *
controller_of(unsigned n)
{

	assert(n < OVL_Controllers());
	return (table[n]);
}

int
OVL_ByName(const char *name)
{
	unsigned n;

	for (n = 0; n < OVL_Controllers(); n++)
		if (strcmp(table[n]->name, name) == 0)
			return ((int)n);
	return (-1);
}

const char *
OVL_Name(unsigned controller)
{

	return (controller_of(controller)->name);
}

const char *
OVL_Summary(unsigned controller)
{

	return (controller_of(controller)->summary);
}

/* Return 1 if there is a target.  Begin anew if the state is another
 * controller's, or nobody's. */
static int
begin(unsigned n, struct ovl *o, struct ovl_queue *q)
{

	assert(n < OVL_Controllers());
	if (q->target <= 0) {
		o->controller = 0;
		return (0);
	}
	if (q->standing <= 0 || q->standing > q->target)
		q->standing = q->target;
	if (o->controller == n + 1)
		return (1);
	memset(o, 0, sizeof *o);
	o->controller = n + 1;
	if (table[n]->begin != NULL)
		table[n]->begin(o, q);
	return (1);
}

int
OVL_Late(unsigned n, int64_t target, int64_t age)
{

	return (target > 0 && age > target / LATE_PART && age > LATE_LEAST &&
	    controller_of(n) != &ovl_limit);
}

int
OVL_Admit(unsigned n, struct ovl *o, const struct ovl_queue *q)
{
	struct ovl_queue mine = *q;

	if (!begin(n, o, &mine))
		return (1);
	if (OVL_Late(n, q->target, q->age))
		return (0);
	/* The controller comes first: some count what they admit */
	return (table[n]->admit(o, &mine) || q->waiting < q->least);
}

void
OVL_Released(unsigned n, struct ovl *o, const struct ovl_queue *q,
    int64_t wait)
{
	struct ovl_queue mine = *q;

	if (begin(n, o, &mine) && table[n]->released != NULL)
		table[n]->released(o, &mine, wait > 0 ? wait : 0);
}
