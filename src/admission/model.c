/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The model of model.h: the forms, the equation for T, and the search for c.
 *
 * With x = rate x T, q = e^-x and the probability p of admission, an object is
 * in the cache with probability
 *
 *	p (1 - q) / (q + p (1 - q))		(Theorem 1)
 *
 * which is written so that no term overflows.  The expected bytes in the cache
 * grow with T.  So regula falsi in ln T, with the Illinois rule, finds T.
 *
 * The hit ratio has several maxima in c.  So the search looks at each power of
 * 2, and then, by golden section, between the neighbours of the best one.  Of
 * equal ones the largest c is chosen: it admits more.
 */

#include <assert.h>
#include <math.h>

#include "model.h"

#define C_LEAST		64.		/* bytes */
#define C_MOST		8.		/* of the capacity */
#define T_MOST		1e12		/* windows: at this T all objects that
					 * may be admitted are in */
#define NEVER		1e-9		/* a probability that counts as 0 */
#define STEPS		200		/* of a search that ends sooner */
#define GOLDEN		.381966011250105	/* 2 - the golden ratio */
#define NARROW		.05		/* octaves: the search ends */
#define TRIES		128		/* of a search: 59 powers of 2 at most,
					 * and 12 between them */

const char *
ADM_FormName(unsigned form)
{
	static const char *const name[ADM_FORMS] = {
		"pade", "exact", "transient"
	};

	return (form < ADM_FORMS ? name[form] : NULL);
}

/*--------------------------------------------------------------------
 * The forms
 */

static double
exact(double x, double p)
{
	double in = p * -expm1(-x);

	return (p > 0 ? in / (exp(-x) + in) : 0);
}

static double
pade(double x, double p)
{
	const double x2 = x * x, x3 = x2 * x;
	double above, below;

	above = x * p * (840 + 60 * x + 20 * x2 + x3);
	below = 840 + 120 * x * (7 * p - 3) + 60 * x2 * (1 + p) +
	    4 * x3 * (5 * p - 1) + p * x2 * x2;
	if (below <= 0)
		return (0);
	return (fmin(above / below, 1));
}

/*
 * Return the expected hits of one object: of its n requests in the window,
 * after h requests before it.  The first request of all is a miss.
 */
static double
transient(double x, double p, double n, double h)
{
	double comes = p * -expm1(-x), leaves = exp(-x) + comes, l;

	if (n <= 0 || leaves < NEVER)
		return (0);
	if (leaves >= 1)
		return (comes * fmax(0, n - (h > 0 ? 0 : 1)));
	l = log1p(-leaves);
	return (comes / leaves * fmax(0, n + exp(h * l) * expm1(n * l) /
	    leaves));
}

/*--------------------------------------------------------------------
 * T
 */

static void
set_admitted(struct adm_model *m, double c)
{
	struct adm_cell *k;

	assert(c > 0);
	for (k = m->cell; k < m->cell + m->ncell; k++)
		k->admitted = k->size > m->capacity ? 0 :
		    k->size <= ADM_SMALL ? 1 : exp(-k->size /
		    (m->frequency ? c * fmax(1, k->rate) : c));
}

/* Return the bytes that are expected in the cache, less its capacity. */
static double
excess(const struct adm_model *m, double log_time)
{
	const struct adm_cell *k;
	double time = exp(log_time), sum = 0;

	for (k = m->cell; k < m->cell + m->ncell; k++)
		sum += k->objects * k->size * exact(k->rate * time,
		    k->admitted);
	return (sum - m->capacity);
}

/* Return T for the probabilities that are set. */
static double
solve(const struct adm_model *m)
{
	const double near = ADM_ERROR * m->capacity;
	double low, high, below, above, at, is;
	int step, side = 0;

	low = 0;
	high = log(T_MOST);
	above = excess(m, high);
	if (above <= 0)
		return (INFINITY);
	for (below = excess(m, low); below > 0; below = excess(m, low)) {
		high = low;
		above = below;
		low -= 8;
	}
	at = low;
	is = below;
	for (step = 0; step < STEPS && fabs(is) > near; step++) {
		at = (low * above - high * below) / (above - below);
		is = excess(m, at);
		if (is < 0) {
			low = at;
			below = is;
			if (side < 0)
				above /= 2;
			side = -1;
		} else {
			high = at;
			above = is;
			if (side > 0)
				below /= 2;
			side = 1;
		}
	}
	return (exp(at));
}

double
ADM_Time(struct adm_model *m, double c)
{

	assert(m->capacity > 0);
	set_admitted(m, c);
	return (solve(m));
}

/*--------------------------------------------------------------------
 * Hits, and the search
 */

struct adm_hits
ADM_Predict(struct adm_model *m, double c)
{
	const struct adm_cell *k;
	double time = ADM_Time(m, c), asked = 0, asked_bytes = 0, n, hits, x;
	struct adm_hits h = { 0, 0 };

	for (k = m->cell; k < m->cell + m->ncell; k++) {
		x = k->rate > 0 ? fmin(k->rate * time, T_MOST) : 0;
		n = m->form == ADM_TRANSIENT ? k->requests : k->rate;
		if (m->form == ADM_TRANSIENT)
			hits = transient(x, k->admitted, n, k->before);
		else
			hits = n * (m->form == ADM_PADE ? pade : exact)(x,
			    k->admitted);
		asked += k->objects * n;
		asked_bytes += k->objects * n * k->size;
		h.objects += k->objects * hits;
		h.bytes += k->objects * hits * k->size;
	}
	if (asked > 0)
		h.objects /= asked;
	if (asked_bytes > 0)
		h.bytes /= asked_bytes;
	return (h);
}

/* What the search has looked at */
struct search {
	struct tried {
		double			c, value;
		struct adm_hits		hits;
	}			tried[TRIES];
	unsigned		n;
	double			best;		/* value */
};

/* Return the value of this c, and note it. */
static double
try(struct adm_model *m, double c, struct search *s)
{
	struct tried *t = &s->tried[s->n++];

	assert(s->n <= TRIES);
	t->c = c;
	t->hits = ADM_Predict(m, c);
	t->value = (1 - m->bytes) * t->hits.objects +
	    m->bytes * t->hits.bytes;
	s->best = fmax(s->best, t->value);
	return (t->value);
}

/* Return the largest c of the best ones. */
static const struct tried *
largest(const struct search *s)
{
	const struct tried *t, *found = NULL;

	for (t = s->tried; t < s->tried + s->n; t++)
		if (t->value >= s->best && (found == NULL || t->c > found->c))
			found = t;
	return (found);
}

/* Return the c of the best power of 2, or of infinity. */
static double
highest(const struct search *s)
{
	const struct tried *t;

	for (t = s->tried; t->value < s->best; t++)
		continue;
	return (t->c);
}

/* Search between 2^low and 2^high. */
static void
narrow(struct adm_model *m, double low, double high, struct search *s)
{
	double a = low + GOLDEN * (high - low);
	double b = high - GOLDEN * (high - low);
	double at_a = try(m, exp2(a), s), at_b = try(m, exp2(b), s);

	while (high - low > NARROW) {
		if (at_a > at_b) {
			high = b;
			b = a;
			at_b = at_a;
			a = low + GOLDEN * (high - low);
			at_a = try(m, exp2(a), s);
		} else {
			low = a;
			a = b;
			at_a = at_b;
			b = high - GOLDEN * (high - low);
			at_b = try(m, exp2(b), s);
		}
	}
}

double
ADM_Choose(struct adm_model *m, struct adm_hits *hits)
{
	struct search s = { .best = 0 };
	const struct tried *t;
	double c;

	assert(m->capacity > 0 && m->bytes >= 0 && m->bytes <= 1);
	if (isnan(try(m, INFINITY, &s)))
		return (NAN);
	for (c = C_LEAST; c < C_MOST * m->capacity; c *= 2)
		(void)try(m, c, &s);
	c = highest(&s);
	if (isfinite(c))
		narrow(m, log2(c) - 1, log2(c) + 1, &s);
	t = largest(&s);
	if (hits != NULL)
		*hits = t->hits;
	return (t->c);
}
