/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * A network of packets: senders, and queues in front of CPUs.
 *
 * A flow has one path, or several (multipath).  A path is a list of queues, a
 * delay, and the sender's state: window, recovery, timer.  A queue serves one
 * packet at a time.  The cost of a packet is a service time, by path and queue.
 * A flow always has data.  Each packet that arrives is acknowledged, and no
 * acknowledgement is lost.
 *
 * Times and costs are ns.  A network with one seed gives the same results each
 * time.  What is wrong in an argument is an assert here: packets.py checks what
 * a user can get wrong.  Lines with # are not for cffi.
 */

#ifndef PACKETS_H_INCLUDED
#define PACKETS_H_INCLUDED

#include <stdint.h>

enum pkt_kind {
	PKT_DROPTAIL,
	PKT_RED,	/* one probability for all flows */
	PKT_RED4,	/* times (c / c_min)^exponent */
	PKT_FQ,		/* a ring of each path, in turn, batches */
	PKT_MQ		/* rings as FQ; drops as RED4, by the sum of rings */
};

struct pkt_queue {
	uint32_t	kind;
	uint32_t	capacity;	/* packets; FQ and MQ: of each ring */
	uint32_t	batch;		/* packets of a turn */
	int32_t		ecn;		/* marks where RED would drop */
	int32_t		by_work;	/* RED's length is costs / c_min */
	int64_t		quantum;	/* of a turn; 0: no limit */
	double		low, high;	/* RED's thresholds, packets */
	double		p_max;		/* just below the high threshold */
	double		exponent;
	double		weight;		/* of the newest length */
};

struct pkt_path {
	int64_t		start;		/* when the flow begins */
	int64_t		delay;		/* the round trip without queues */
	int64_t		jitter;		/* 0 to this is added to the delay */
	int64_t		min_rto;
	double		rate;		/* packets/s of the sender `constant` */
	double		loss, mark;	/* of each packet, at random */
	uint32_t	window;		/* packets, the limit */
	int32_t		hops;
};

/* From the start.  A packet is sent, and then delivered or dropped.  lost: the
 * sender thinks so.  spurious: it thought so, but the packet was delivered. */
struct pkt_stat {
	int64_t		sent, delivered, dropped, marked, lost, spurious;
	int64_t		reductions, timeouts;
	int64_t		inside;		/* in queues, or on their way */
	int64_t		rtt;		/* smoothed */
	double		window;		/* packets, now */
	double		window_ns;	/* its sum over time, packets ns */
	double		rtt_sum;	/* of all samples */
	int64_t		rtt_samples;
};

struct pkt;

uint32_t pkt_senders(void);
const char *pkt_sender_name(uint32_t);
const char *pkt_sender_summary(uint32_t);

/* NULL or -1: no memory */
struct pkt *pkt_new(uint64_t seed);
void pkt_free(struct pkt *);
int32_t pkt_add_queue(struct pkt *, const struct pkt_queue *);
int32_t pkt_add_flow(struct pkt *, uint32_t sender);
/* queues and costs: one for each hop.  The path's number */
int32_t pkt_add_path(struct pkt *, int32_t flow, const struct pkt_path *,
    const int32_t *queues, const int64_t *costs);

/* All that happens up to a time, also at it.  0, or -1: no memory (only the
 * first call).  Then nothing can be added. */
int32_t pkt_run(struct pkt *, int64_t until);
int64_t pkt_events(const struct pkt *);
void pkt_stat(const struct pkt *, int32_t path, struct pkt_stat *);
/* Service time that a path has used at a hop */
int64_t pkt_served(const struct pkt *, int32_t path, int32_t hop);
/* Time that a queue had work */
int64_t pkt_busy(const struct pkt *, int32_t queue);
/* Packets that wait now, without that in service */
int32_t pkt_waiting(const struct pkt *, int32_t queue);

/* RED's probability at an average length, times a factor; at most 1 */
double pkt_red(const struct pkt_queue *, double average, double factor);

/* For tests: the paths of the last packets that a queue served, the oldest
 * first; their number, at most room */
int32_t pkt_order(const struct pkt *, int32_t queue, int32_t *paths,
    int32_t room);

#endif
