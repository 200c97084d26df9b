/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * From what was measured to what is charged: the NIC formula (paper,
 * section 3.2), estimators, and the residual.
 *
 * No clock, no I/O, integers only (ns, bytes, bits a second).
 */

#ifndef COST_H_INCLUDED
#define COST_H_INCLUDED

#include <stdint.h>

/*
 * b/T + (h/T) x ceil(b / (MTU - h)), in ns.  bytes on the wire's payload
 * side, rate in bits/s (> 0), mtu > header.  Exact, and rounded up once, at
 * the end: a byte is never free.  At most INT64_MAX.
 */
int64_t COST_Net(uint64_t bytes, uint64_t rate, unsigned mtu, unsigned header);
/* Bytes on the wire for that payload: the same formula without T; at most
 * UINT64_MAX */
uint64_t COST_Wire(uint64_t bytes, unsigned mtu, unsigned header);

/*
 * The dominant cost of a request, ns: by how much it raises the larger of what
 * its tenant has used of the CPU and of the link in all (Ghodsi et al., DRF,
 * section 4).  cpu, net: ns, >= 0.  The answer is between the two.
 * *lead: the link's sum less the CPU's, ns, 0 for a new tenant.  It is COST_LEAD
 * at most, either way: so much of the resource that it uses less a tenant has
 * for nothing.
 */
#define COST_LEAD		4000000		/* ns */
int64_t COST_Dominant(int64_t *lead, int64_t cpu, int64_t net);

/*--------------------------------------------------------------------
 * Estimators: what will the next request cost?  One row a kind.
 */

struct est {			/* one a tenant and resource */
	int64_t			value;		/* ns */
	uint64_t		samples;
	int64_t			aux;		/* value's fraction, Q16 */
};

/* The mean over all tenants' samples, where a tenant never seen starts */
struct est_mean {
	int64_t			value;		/* ns, EWMA, newest 1/64 */
	uint64_t		samples;
	int64_t			aux;		/* value's fraction, Q16 */
};

unsigned EST_Kinds(void);
const char *EST_Name(unsigned);
int EST_ByName(const char *);

/*
 * sample: ns, >= 0.  alpha, Q16, 0..65536: of the newest sample ("ewma",
 * Sandpaper Fig. 8), of the old maximum ("decaying-max", 2DFQ^E, section 5);
 * "last" and "oracle" don't use it.  A tenant's first sample is its value.
 *
 * "oracle": the sample is what the next request will cost.  Only who knows
 * that can use it: the simulator hands it in before the request is enqueued,
 * and none on completion.
 *
 * EST_Value(): ns; without samples the mean of all, 0 if there is none.
 * EST_MeanSample(): a plain mean of the first 64 samples, then 1/64 each.
 */
void EST_Sample(unsigned kind, struct est *, int64_t sample, uint32_t alpha);
int64_t EST_Value(const struct est *, const struct est_mean *);
void EST_MeanSample(struct est_mean *, int64_t sample);

/*--------------------------------------------------------------------
 * The residual: what the other threads of the process (waiter, acceptor,
 * herder) use for each request.  Each second with a busy core,
 *	r += (clamp((P - S)/N, 0, 100 us) - r) / 8
 * P: the process's CPU clock, S: the sum of the raw thread laps (never the
 * charges), N: requests, all over that second.
 */

struct residual {
	int64_t			r;		/* ns a request */
	int64_t			p, s;		/* at the last update */
	uint64_t		n;
	int64_t			t;		/* ns, last update, 0: none */
};

#define RESIDUAL_MAX		100000		/* ns */

/*
 * process_cpu, lap_sum (ns) and requests count from the start of the
 * process.  busy: CPU used over the interval is at least 0.9 of a core.  Less
 * than a second since the last update: nothing happens.  Returns r, ns.
 */
int64_t RESIDUAL_Update(struct residual *, int64_t now, int64_t process_cpu,
    int64_t lap_sum, uint64_t requests);

#endif
