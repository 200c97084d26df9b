/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * What the files of this folder share.
 *
 * events.c	timers, in order of time
 * queues.c	what a queue drops, and which packet it serves next
 * transport.c	what a sender sends: losses, timeouts, pacing
 * senders.c	windows: Reno, LIA and others; bbr.c: BBR
 * packets.c	the network, and its loop
 */

#ifndef PACKETS_INTERNAL_H_INCLUDED
#define PACKETS_INTERNAL_H_INCLUDED

#include <assert.h>

#include "packets.h"

#define NEVER		INT64_MAX
#define SECOND		1000000000LL
#define GROUP		3	/* packets: RFC 9002 and RFC 6675 call a packet
				 * lost if one so much later has arrived */
#define WINDOW_MIN	1.0
#define INITIAL_WINDOW	10.0	/* RFC 6928 */
#define ORDER		4096	/* packets that pkt_order() knows */

struct event;
typedef void event_f(struct pkt *, void *owner);

/* Part of its owner.  It is in the heap if it has a time */
struct event {
	int64_t			when;
	uint64_t		turn;	/* at equal times, the lower first */
	int32_t			at;	/* place in the heap, -1: not in it */
	event_f			*fire;
	void			*owner;
};

struct events {
	struct event		**heap;
	int32_t			n, room;
	uint64_t		turns;
};

struct packet {
	int64_t			number;	/* the sender's, never used again */
	uint32_t		path;
	uint16_t		hop;
	uint16_t		marked;
};

/* Waiting packets, first in, first out */
struct ring {
	struct packet		*packet;
	uint32_t		size, first, n;
};

struct queue {
	struct pkt_queue	o;
	struct event		done;
	struct packet		serving;
	int			busy;
	struct ring		*ring;		/* FQ and MQ: one a path */
	uint32_t		rings;
	uint32_t		*order;		/* of rings with packets */
	uint32_t		order_first, order_n;
	int			in_turn;	/* order[order_first] has it */
	uint32_t		left;		/* packets of its batch */
	int64_t			turn_end;
	uint32_t		waiting;
	int64_t			work;		/* ns, of these */
	double			average;
	int64_t			idle;		/* when it became empty */
	int64_t			cheapest;	/* cost, of all paths */
	int64_t			busy_ns;
	int32_t			*served;	/* the last ORDER paths */
	int64_t			nserved;
};

struct hop {
	struct queue		*queue;
	uint32_t		ring;
	int64_t			cost;
	double			factor;		/* of RED4 */
	int64_t			served;		/* ns */
};

/* A packet that was sent, until it counts as delivered or lost */
struct sent {
	int64_t			at;
	int64_t			delivered;	/* of the path, then */
	int64_t			delivered_at;	/* when it became that */
	int64_t			first_at;	/* when that packet was sent */
	int			open;		/* neither delivered nor lost */
};

struct arrival {
	int64_t			when, number;
	int			marked;
};

struct cubic {
	double			w_max, k, origin, friendly;
	int64_t			epoch;		/* NEVER: none */
};

struct dctcp {
	double			alpha;
	int64_t			seen, marked, end, cut;
};

enum bbr_state { STARTUP, DRAIN, PROBE_BW, PROBE_RTT };

#define BBR_ROUNDS	10	/* of the filter of the rate */

struct bbr {
	enum bbr_state		state;
	double			rate;		/* packets/ns, the filter's */
	double			best[BBR_ROUNDS];
	double			full_rate;
	int			full_rounds, filled;
	int64_t			round, round_end;
	int64_t			min_rtt, min_rtt_at;
	int			phase;		/* of PROBE_BW */
	int64_t			phase_at, probe_end;
	double			gain;		/* of the rate */
	double			before;		/* window before PROBE_RTT */
};

struct sender;
struct flow;

struct path {
	struct pkt_path		o;
	struct flow		*flow;
	uint32_t		number;		/* in the network */
	struct path		*next;		/* of the flow */
	struct hop		*hop;
	/* Sent packets, from `resolved` to `head`; a ring of `mask` + 1 */
	struct sent		*sent;
	uint32_t		mask;
	int64_t			head, resolved, inflight;
	int64_t			recovery;	/* later ones: a new window */
	/* On their way back */
	struct arrival		*line;
	uint32_t		line_first, line_n;
	int64_t			line_last;	/* time of the last one */
	struct event		arrive, timer, pace;
	int64_t			deadline;	/* of the timer, NEVER: none */
	double			cwnd, ssthresh, rate;	/* packets, /ns */
	double			srtt, rttvar;	/* ns; 0: no sample */
	int			backoff;
	int64_t			next_send;
	int64_t			delivered, delivered_at, first_at;
	int64_t			window_at;
	struct pkt_stat		st;
	union {
		struct cubic	cubic;
		struct dctcp	dctcp;
		struct bbr	bbr;
	};
};

struct flow {
	const struct sender	*sender;
	struct path		*first;
};

/* What came back */
struct ack {
	int64_t			now, rtt;
	int64_t			number;
	int			marked;
	int			lost;		/* others, seen now */
	int			grows;		/* of a new window */
	const struct sent	*sent;
};

/* How a path's window changes.  ack: for each packet that arrived.  loss: at
 * most once a window, for a loss, or for a mark if `marks` is not set.
 * timeout: after all packets are lost; NULL: that of Reno. */
struct sender {
	const char		*name, *summary;
	int			marks;		/* ack() sees to marks itself */
	int			ignores;	/* losses change no window */
	void			(*init)(struct path *);
	void			(*ack)(struct path *, const struct ack *);
	void			(*loss)(struct path *, int64_t now);
	void			(*timeout)(struct path *, int64_t now);
};

struct pkt {
	int64_t			now;
	uint64_t		random;
	struct events		events;
	struct queue		**queues;
	struct path		**paths;
	struct flow		**flows;
	int32_t			nqueues, npaths, nflows;
	int			running;
	int64_t			fired;
};

/* events.c */
void event_init(struct event *, event_f *, void *owner);
void event_set(struct events *, struct event *, int64_t when);
void event_clear(struct events *, struct event *);

/* queues.c; queue_prepare(): 0, or -1: no memory */
int queue_prepare(struct queue *);
void queue_free(struct queue *);
int queue_put(struct pkt *, struct queue *, struct packet *);	/* 0: dropped */
void queue_done(struct pkt *, void *queue);

/* packets.c */
void network_next(struct pkt *, struct packet *);
void network_return(struct pkt *, const struct packet *);

/* transport.c */
void path_start(struct pkt *, struct path *);
void path_arrive(struct pkt *, void *path);
void path_timer(struct pkt *, void *path);
void path_pace(struct pkt *, void *path);
void path_send(struct pkt *, struct path *);

/* senders.c */
extern const struct sender *const senders[];
extern const uint32_t nsenders;
void reno_timeout(struct path *, int64_t now);

/* bbr.c */
extern const struct sender sender_bbr;

#endif
