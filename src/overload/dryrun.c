/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The dry run, as dryrun.h says: a sum of work and a sum of weights for the
 * machine and for each group, and a ring of the tenants that have work.
 */

#include <assert.h>
#include <stddef.h>

#include "dryrun.h"

/* Return a part by weight, within the reservation and the limit. */
static double
within(double part, const struct dry_right *r)
{

	part = part > r->reservation ? part : r->reservation;
	return (part < r->limit ? part : r->limit);
}

/* Return the part of a resource that a group has. */
static double
part_of_group(const struct dry *d, const struct dry_group *g,
    enum rel_resource resource)
{
	double part;

	if (g->server[resource].weights == 0)
		return (0);
	part = g->right.weight / (double)d->server[resource].weights;
	return (within(part, &g->right));
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
	return (within(part, &q->right));
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

static void
serves(struct dry_server *s, uint32_t weight)
{

	s->weights += weight;
	s->busy++;
}

static void
serves_no_more(struct dry_server *s, uint32_t weight)
{

	s->weights -= weight;
	s->busy--;
}

/* The tenant has work from now on. */
static void
begin(struct dry *d, struct dry_queue *q)
{
	struct dry_server *s = &d->server[q->resource], *g;

	if (q->group != NULL) {
		g = &q->group->server[q->resource];
		if (g->busy == 0)
			serves(s, q->group->right.weight);
		s = g;
	}
	serves(s, q->right.weight);
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
	struct dry_server *s = &d->server[q->resource], *g;

	add(d, q, -q->work);
	if (q->group != NULL) {
		g = &q->group->server[q->resource];
		serves_no_more(g, q->right.weight);
		if (g->busy == 0)
			serves_no_more(s, q->group->right.weight);
	} else
		serves_no_more(s, q->right.weight);
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

struct dry_queue *
DRY_Next(struct dry *d)
{

	if (d->look != NULL)
		d->look = d->look->next;
	return (d->look);
}

unsigned
DRY_Busy(const struct dry *d)
{

	return (d->server[REL_CPU].busy + d->server[REL_NET].busy);
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
	struct dry_view view = { .of_group = 1 };
	double part, waits;

	assert(cost > 0);
	if (q->work <= 0)
		return (view);
	if (q->group != NULL)
		view.of_group = q->right.weight /
		    (double)q->group->server[q->resource].weights;
	part = part_of(d, q);
	waits = over(d, q->resource, q->work, part, cost);
	view.slots = d->slots * part;
	view.waiting = waits / cost;
	view.wait = waits / part;
	return (view);
}

/* Set what a group may have. */
static void
set_right(struct dry *d, struct dry_group *g, const struct dry_right *right)
{
	unsigned u;

	for (u = 0; u < REL__RESOURCES; u++)
		if (g->server[u].busy > 0)
			d->server[u].weights += (uint64_t)right->weight -
			    g->right.weight;
	g->right = *right;
}

void
DRY_Add(struct dry *d, struct dry_queue *q, int64_t at,
    enum rel_resource resource, double cost, struct dry_right right,
    struct dry_group *group, struct dry_right of_group)
{
	double work = q->work > 0 ? q->work : 0;

	assert(cost > 0 && right.weight > 0 && right.limit > 0);
	if (group != NULL) {
		assert(of_group.weight > 0 && of_group.limit > 0);
		set_right(d, group, &of_group);
	}
	if (work > 0 && (q->resource != resource ||
	    q->right.weight != right.weight)) {
		assert(q->group == group);
		end(d, q);
	}
	if (q->work <= 0) {
		q->resource = resource;
		q->right.weight = right.weight;
		q->group = group;
		q->at = at;
		begin(d, q);
		add(d, q, work);
	}
	q->right = right;
	add(d, q, cost);
}

void
DRY_Forget(struct dry *d, struct dry_queue *q)
{

	if (q->work > 0)
		end(d, q);
}
