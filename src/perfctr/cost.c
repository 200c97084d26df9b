/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The arithmetic of cost.h.  Each product has 128 bits and is divided once.  So
 * a result is that of the formula, rounded, for all arguments.  An average
 * keeps the remainder of its division as a fraction.
 */

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "cost.h"

#define Q16	65536

typedef unsigned __int128 cost_u128;
typedef __int128 cost_s128;

static cost_u128
cost_wire(uint64_t bytes, unsigned mtu, unsigned header)
{
	unsigned payload;

	assert(mtu > header);
	payload = mtu - header;
	return (bytes + (cost_u128)header *
	    (bytes / payload + (bytes % payload != 0)));
}

uint64_t
COST_Wire(uint64_t bytes, unsigned mtu, unsigned header)
{
	cost_u128 w = cost_wire(bytes, mtu, header);

	return (w > UINT64_MAX ? UINT64_MAX : (uint64_t)w);
}

int64_t
COST_Net(uint64_t bytes, uint64_t rate, unsigned mtu, unsigned header)
{
	const uint64_t bit_ns = 8000000000ULL;
	cost_u128 w = cost_wire(bytes, mtu, header), ns;
	uint64_t x;

	assert(rate > 0);
	if (w <= (UINT64_MAX - rate) / bit_ns) {	/* the usual request */
		x = ((uint64_t)w * bit_ns + (rate - 1)) / rate;
		return (x > INT64_MAX ? INT64_MAX : (int64_t)x);
	}
	/* At most 2^95 x 2^33.  More bytes cost more than INT64_MAX at any
	 * rate. */
	if (w > (cost_u128)UINT64_MAX << 31)
		w = (cost_u128)UINT64_MAX << 31;
	ns = (w * bit_ns + (rate - 1)) / rate;
	return (ns > INT64_MAX ? INT64_MAX : (int64_t)ns);
}

int64_t
COST_Dominant(int64_t *net_minus_cpu, int64_t cpu, int64_t net)
{
	const int64_t most = INT64_MAX / 2;
	int64_t before, after;

	assert(*net_minus_cpu >= -COST_HYSTERESIS &&
	    *net_minus_cpu <= COST_HYSTERESIS);
	assert(cpu >= 0 && net >= 0);
	cpu = cpu < most ? cpu : most;
	net = net < most ? net : most;
	/* Take the sum of cpu as 0; then the sum of net is *net_minus_cpu */
	before = *net_minus_cpu > 0 ? *net_minus_cpu : 0;
	after = *net_minus_cpu + net > cpu ? *net_minus_cpu + net : cpu;
	*net_minus_cpu += net - cpu;
	if (*net_minus_cpu > COST_HYSTERESIS)
		*net_minus_cpu = COST_HYSTERESIS;
	if (*net_minus_cpu < -COST_HYSTERESIS)
		*net_minus_cpu = -COST_HYSTERESIS;
	return (after - before);
}

/*--------------------------------------------------------------------
 * Estimators
 */

/* Set value and fraction to (a x alpha + old x (one - alpha)) / one */
static void
est_mix(int64_t *value, int64_t *frac, int64_t a, uint64_t alpha,
    uint64_t one)
{
	cost_s128 v;

	v = (cost_s128)*value * Q16 + *frac;
	v = ((cost_s128)a * Q16 * (cost_s128)alpha +
	    v * (cost_s128)(one - alpha)) / (cost_s128)one;
	*value = (int64_t)(v / Q16);
	*frac = (int64_t)(v % Q16);
}

static void
est_set(struct est *e, int64_t sample)
{

	e->value = sample;
	e->aux = 0;
}

static void
est_ewma(struct est *e, int64_t sample, uint32_t alpha)
{

	if (e->samples == 0)
		est_set(e, sample);
	else
		est_mix(&e->value, &e->aux, sample, alpha, Q16);
}

static void
est_decaying_max(struct est *e, int64_t sample, uint32_t alpha)
{

	if (e->samples == 0 || sample > e->value)
		est_set(e, sample);
	else
		est_mix(&e->value, &e->aux, 0, Q16 - alpha, Q16);
}

static void
est_newest(struct est *e, int64_t sample, uint32_t alpha)
{

	(void)alpha;
	est_set(e, sample);
}

static const struct est_kind {
	const char		*name;
	void			(*sample)(struct est *, int64_t, uint32_t);
} est_kinds[] = {
	{ "ewma",		est_ewma },
	{ "decaying-max",	est_decaying_max },
	{ "last",		est_newest },
	{ "oracle",		est_newest },
};

unsigned
EST_Kinds(void)
{

	return (sizeof est_kinds / sizeof est_kinds[0]);
}

const char *
EST_Name(unsigned kind)
{

	assert(kind < EST_Kinds());
	return (est_kinds[kind].name);
}

int
EST_ByName(const char *name)
{
	unsigned u;

	assert(name != NULL);
	for (u = 0; u < EST_Kinds(); u++)
		if (!strcmp(name, est_kinds[u].name))
			return ((int)u);
	return (-1);
}

void
EST_Sample(unsigned kind, struct est *e, int64_t sample, uint32_t alpha)
{

	assert(e != NULL);
	assert(kind < EST_Kinds());
	assert(sample >= 0);
	assert(alpha <= Q16);
	est_kinds[kind].sample(e, sample, alpha);
	e->samples++;
}

int64_t
EST_Value(const struct est *e, const struct est_mean *mean)
{

	assert(e != NULL);
	if (e->samples > 0)
		return (e->value);
	return (mean == NULL ? 0 : mean->value);
}

void
EST_MeanSample(struct est_mean *mean, int64_t sample)
{

	assert(mean != NULL);
	assert(sample >= 0);
	mean->samples++;
	est_mix(&mean->value, &mean->aux, sample, 1,
	    mean->samples < 64 ? mean->samples : 64);
}

/*--------------------------------------------------------------------
 * Residual
 */

int64_t
RESIDUAL_Update(struct residual *res, int64_t now, int64_t process_cpu,
    int64_t lap_sum, uint64_t requests)
{
	int64_t dt, p, s, x;
	uint64_t n;

	assert(res != NULL);
	dt = now - res->t;
	if (res->t != 0 && dt < 1000000000)
		return (res->r);
	p = process_cpu - res->p;
	s = lap_sum - res->s;
	n = requests - res->n;
	if (res->t != 0 && requests > res->n && p * 10 >= dt * 9) {
		if (n > INT64_MAX)
			n = INT64_MAX;
		x = (p - s) / (int64_t)n;
		if (x < 0)
			x = 0;
		if (x > RESIDUAL_MAX)
			x = RESIDUAL_MAX;
		res->r += (x - res->r) / 8;
	}
	res->t = now;
	res->p = process_cpu;
	res->s = lap_sum;
	res->n = requests;
	return (res->r);
}
