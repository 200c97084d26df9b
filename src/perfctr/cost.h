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
 * side, rate in bits/s (> 0), mtu > header.
 */
int64_t COST_Net(uint64_t bytes, uint64_t rate, unsigned mtu, unsigned header);
/* Bytes on the wire for that payload: the same formula without T */
uint64_t COST_Wire(uint64_t bytes, unsigned mtu, unsigned header);

/*--------------------------------------------------------------------
 * Estimators: what will the next request cost?  One row a kind.
 */

struct est {			/* one a tenant and resource */
	int64_t			value;		/* ns */
	uint64_t		samples;
	int64_t			aux;		/* an estimator's own */
};

/* The mean over all tenants' samples, where a tenant never seen starts */
struct est_mean {
	int64_t			value;		/* ns, EWMA over all samples, 1/64 */
	uint64_t		samples;
};

unsigned EST_Kinds(void);
const char *EST_Name(unsigned);
int EST_ByName(const char *);

/* alpha: weight of the newest sample (ewma), of the old maximum (decaying
 * maximum, 2DFQ^E); both in Q16, 0..65536 */
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
	int64_t			t;		/* ns, of the last update, 0: none */
};

#define RESIDUAL_MAX		100000		/* ns */

/* busy: CPU used over the interval is at least 0.9 of a core.  Less than
 * a second since the last update: nothing happens.  Returns r, ns. */
int64_t RESIDUAL_Update(struct residual *, int64_t now, int64_t process_cpu,
    int64_t lap_sum, uint64_t requests);

#endif
