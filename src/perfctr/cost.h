/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * From measurements to charges: the net formula (paper, section 3.2), the
 * dominant cost, estimators, and the residual.
 *
 * No clock and no I/O.  All values are integers: ns, bytes, bits/s.
 */

#ifndef COST_H_INCLUDED
#define COST_H_INCLUDED

#include <stdint.h>

/*
 * Return the cost of a response on net, ns: b/T + (h/T) x ceil(b / (MTU - h)).
 * bytes: b, without the headers h of the packets.  rate: T, bits/s, > 0.  mtu >
 * header, both in bytes.  The result is exact, rounded up once, so a byte
 * always costs something.  At most INT64_MAX.
 */
int64_t COST_Net(uint64_t bytes, uint64_t rate, unsigned mtu, unsigned header);
/* Return the bytes on the wire of b bytes: the same formula without T.  At most
 * UINT64_MAX. */
uint64_t COST_Wire(uint64_t bytes, unsigned mtu, unsigned header);

/*
 * Return the dominant cost of a request, ns (Ghodsi et al., DRF, section 4): by
 * how much the request raises the larger of the tenant's two sums, of cpu and
 * of net.
 *
 * cpu, net: ns, >= 0.  The result is between the two.  *net_minus_cpu: the
 * sum of net minus that of cpu, ns, 0 for a new tenant, at most
 * COST_HYSTERESIS from zero.  So a tenant has COST_HYSTERESIS of its less used
 * resource for nothing.
 */
#define COST_HYSTERESIS		4000000		/* ns */
int64_t COST_Dominant(int64_t *net_minus_cpu, int64_t cpu, int64_t net);

/*--------------------------------------------------------------------
 * Estimators: what will the next request cost?
 */

struct est {			/* one for each tenant and resource */
	int64_t			value;		/* ns or bytes, as sampled */
	uint64_t		samples;
	int64_t			aux;		/* fraction of value, Q16 */
};

/* The mean of all tenants' samples: the value of a tenant without samples */
struct est_mean {
	int64_t			value;		/* ns or bytes; newest 1/64 */
	uint64_t		samples;
	int64_t			aux;		/* fraction of value, Q16 */
};

unsigned EST_Kinds(void);
const char *EST_Name(unsigned);
int EST_ByName(const char *);

/*
 * EST_Sample(): add a sample, in ns or bytes, >= 0.  alpha, Q16, 0 to 65536, is
 * the weight of the newest sample ("ewma", Sandpaper Fig. 8) or of the old
 * maximum ("decaying-max", 2DFQ^E, section 5).  "last" and "oracle" ignore it.
 * The first sample is the value.  For "oracle" the sample is the cost of the
 * next request: the simulator adds it before the enqueue, and none later.
 *
 * EST_Value(): return the value.  Without samples it is the mean, or 0.
 *
 * EST_MeanSample(): add a sample to the mean.  The first 64 count equally, each
 * later one 1/64.
 */
void EST_Sample(unsigned kind, struct est *, int64_t sample, uint32_t alpha);
int64_t EST_Value(const struct est *, const struct est_mean *);
void EST_MeanSample(struct est_mean *, int64_t sample);

/*--------------------------------------------------------------------
 * The residual: the CPU time for each request of the threads that are no
 * workers (waiter, acceptor, herder).  After each second with a busy core,
 *	r += (clamp((P - S)/N, 0, 100 us) - r) / 8
 * In that second, P is the CPU time of the process, S the sum of the threads'
 * laps as measured (not the charges), N the number of requests.
 */

struct residual {
	int64_t			r;		/* ns for each request */
	int64_t			p, s;		/* ns, at the last update */
	uint64_t		n;
	int64_t			t;		/* ns, last update; 0: none */
};

#define RESIDUAL_MAX		100000		/* ns */

/*
 * Update the residual and return r, ns.
 *
 * process_cpu and lap_sum, ns, and requests count from the start of the
 * process.  A core was busy if the process used 0.9 of a core since the last
 * update.  A call within a second of the last update changes nothing.
 */
int64_t RESIDUAL_Update(struct residual *, int64_t now, int64_t process_cpu,
    int64_t lap_sum, uint64_t requests);

#endif
