/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The dry run, as dryrun.h says: a sum of work and a sum of weights for the
 * machine and for each group, and a ring of the tenants that have work.
 */

#include <assert.h>
#include <stddef.h>

#include "dryrun.h"

#define LOOKS	2		/* at other tenants, for each request */

/* Return the part of a resource that a group has. */
static double
part_of_group(const struct dry *d, const struct dry_group *g,
    enum rel_resource resource)
{
	double part;

	if (g->server[resource].weights == 0)
		return (0);
	part = g->right.weight / (double)d->server[resource].weights;
	return (part < g->right.limit ? part : g->right.limit);
}

/* Return the part of its resource that a tenant with work has. */
static double
part_of(const struct dry *d, const struct dry_queue *q)
{
	const struct dry_server *s = &d->server[q->resource];
	double part = 1;

	if (q->group != NULL) {
		part = part_of_group(d, q->group, q->resource);
		s = &q->group->server[q->resource];
	}
	part *= q->right.weight / (double)s->weights;
	return (part < q->right.limit ? part : q->right.limit);
}

/* Add to a tenant's work, and to that of those above it. */
static void
add(struct dry *d, struct dry_queue *q, double work)
{

	q->work += work;
	d->server[q->resource].work += work;
	if (q->group != NULL)
		q->group->server[q->resource].work += work;
}

/* The tenant has work from now on. */
static void
begin(struct dry *d, struct dry_queue *q)
{
	struct dry_server *s = &d->server[q->resource];

	if (q->group == NULL)
		s->weights += q->right.weight;
	else {
		if (q->group->server[q->resource].weights == 0)
			s->weights += q->group->right.weight;
		q->group->server[q->resource].weights += q->right.weight;
	}
	if (d->look == NULL) {
		d->look = q->next = q->prev = q;
		return;
	}
	q->next = d->look;
	q->prev = d->look->prev;
	q->next->prev = q->prev->next = q;
}

/* The tenant has no work from now on. */
static void
end(struct dry *d, struct dry_queue *q)
{
	struct dry_server *s = &d->server[q->resource];

	add(d, q, -q->work);
	if (q->group == NULL)
		s->weights -= q->right.weight;
	else {
		q->group->server[q->resource].weights -= q->right.weight;
		if (q->group->server[q->resource].weights == 0)
			s->weights -= q->group->right.weight;
	}
	if (d->look == q)
		d->look = q->next == q ? NULL : q->next;
	q->next->prev = q->prev;
	q->prev->next = q->next;
	q->next = q->prev = NULL;
}

void
DRY_Advance(struct dry *d, struct dry_queue *q, int64_t at)
{

	if (q->work <= 0 || at <= q->at)
		return;
	add(d, q, -part_of(d, q) * (double)(at - q->at));
	q->at = at;
	if (q->work <= 0)
		end(d, q);
}

void
DRY_AdvanceSome(struct dry *d, int64_t at)
{
	unsigned u;

	for (u = 0; u < LOOKS && d->look != NULL; u++) {
		d->look = d->look->next;
		DRY_Advance(d, d->look, at);
	}
}

/* Return how much of this work waits, with such a part of the machine.  cost:
 * of a request. */
static double
over(const struct dry *d, enum rel_resource resource, double work,
    double part, double cost)
{

	work -= part * (resource == REL_NET ? d->backlog : d->slots * cost);
	return (work > 0 ? work : 0);
}

double
DRY_Waiting(const struct dry *d, const struct dry_group *g, double cost)
{
	double work = 0;
	unsigned u;

	assert(cost > 0);
	for (u = 0; u < REL__RESOURCES; u++)
		work += g == NULL ? over(d, u, d->server[u].work, 1, cost) :
		    over(d, u, g->server[u].work, part_of_group(d, g, u),
		    cost);
	return (work / cost);
}

struct dry_view
DRY_View(const struct dry *d, const struct dry_queue *q, double cost)
{
	struct dry_view view = { 0 };
	double part, waits;

	assert(cost > 0);
	if (q->work <= 0)
		return (view);
	part = part_of(d, q);
	waits = over(d, q->resource, q->work, part, cost);
	view.slots = d->slots * part;
	view.waiting = waits / cost;
	view.wait = waits / part;
	return (view);
}

void
DRY_Add(struct dry *d, struct dry_queue *q, int64_t at,
    enum rel_resource resource, double cost, struct dry_right right,
    struct dry_group *group, struct dry_right of_group)
{

	assert(cost > 0 && right.weight > 0 && right.limit > 0);
	if (q->work <= 0) {
		q->resource = resource;
		q->right = right;
		q->group = group;
		if (group != NULL && group->server[REL_CPU].weights == 0 &&
		    group->server[REL_NET].weights == 0) {
			assert(of_group.weight > 0 && of_group.limit > 0);
			group->right = of_group;
		}
		q->at = at;
		begin(d, q);
	}
	add(d, q, cost);
}

void
DRY_Forget(struct dry *d, struct dry_queue *q)
{

	if (q->work > 0)
		end(d, q);
}
