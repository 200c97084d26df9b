/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * What the files of the load generator share.
 */

#include <arpa/inet.h>
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "h2.h"

#define NS		1000000000ULL
#define TICK		(NS / 100)	/* timers of the misbehaving modes */
#define TICK_PARTS	10		/* each for some of the connections */
#define HEAD_MAX	8192
#define REQUEST_MAX	4096
#define HOST_MAX	300
#define HEADERS_MAX	32		/* sets of headers a group */
#define BODY_CHUNK	(1 << 20)
#define RESET_AFTER	1024		/* bytes read before a reset */
#define OUT_MAX		(1 << 16)
#define LENGTH		1000000		/* of a body that drips */
#define SLICE		(NS / 10)	/* one entry of "slices" */

enum mode {
	CLOSED,		/* next request when the last one is answered */
	PACED,		/* the same, but `rate` a connection at most */
	OPEN,		/* requests at `rate`, whatever the answers do */
	STALL,		/* ask, never read: zero window */
	SLOW,		/* read `rate` bytes/s a connection */
	RESET,		/* ask, read a little, reset; at `rate` in all */
	DRIP,		/* send one header byte every 1/rate seconds */
	POST,		/* a head, then one byte of body every 1/rate s */
	CONNECT,	/* connect and close; at `rate` in all */
	PIPE,		/* ask, whatever the answers do */
	H2,		/* `streams` at a time */
	H2_RESET,	/* ask and reset; `rate` a connection */
	H2_PING,	/* PING and SETTINGS; `rate` a connection */
};

extern const char * const mode_names[];

enum state { IDLE, CONNECTING, HEAD, BODY, PARKED };

struct group;

struct conn {
	struct group	*group;
	int		fd;
	enum state	state;
	uint64_t	asked;		/* ns: sent, or due (open loop) */
	uint64_t	due;		/* ns: next timed step */
	uint64_t	body_left;	/* bytes; chunked: of the chunk */
	uint64_t	chunk;		/* its size, as far as it is read */
	uint64_t	got;		/* bytes of this answer */
	int		chunked, last_chunk, ended;
	uint64_t	count;		/* answers inside the window */
	unsigned	head_len, dripped;
	char		*head;
	struct h2	h2;
	uint8_t		*out;		/* pipelined, or frames */
	size_t		out_len, out_off;
	unsigned	owed;		/* answers to these */
	unsigned	match;		/* of an answer's first characters */
	uint32_t	events;		/* that are watched */
};

struct group {
	char		name[64], host[256], path[512];
	enum mode	mode;
	unsigned	nconn;
	double		rate;
	double		patience;	/* s until a request in `late` gives up */
	uint64_t	limit;		/* requests in all, 0: no limit */
	int		random_host, unique;
	unsigned	hosts;		/* h0.HOST and so on, in turn by connection */
	int		fresh;		/* open loop: a connection a request */
	unsigned	every;		/* n-th request asks for PATH?dear */
	unsigned	streams, mark;
	uint32_t	window;		/* of an h2 stream */
	double		on, off, shift;	/* s that it loads, that it rests */
	double		from, till;	/* s: it loads between, 0: always */
	int		resting;
	int		phase;		/* in which it loads, -1: always */
	struct sockaddr_in to;
	char		*headers[HEADERS_MAX];
	unsigned	nheaders;
	struct conn	*conns;
	unsigned	retrying;	/* parked until a reconnect is due */
	uint64_t	sent, answered, done, bytes, errors, not_ok;
	uint64_t	waiting, extra;
	char		first_error[80];
	uint64_t	sent_before;	/* the window */
	uint64_t	done_before, errors_before, not_ok_before; /* interval */
	size_t		nlat_before;
	uint32_t	*lat;		/* us */
	size_t		nlat, alat;
	uint64_t	*slices;
	double		*late;		/* open loop: due, not sent; ring */
	uint64_t	late_head, late_tail;
	uint64_t	next_arrival;
};

#define LATE_MAX	(1 << 20)

extern struct sockaddr_in proxy;
extern struct group groups[64];
extern unsigned ngroups, nslices;
extern unsigned nphases, phase;
extern uint64_t phase_len, settle, interval;	/* ns */
extern uint64_t t_start, t_window, t_end, rng, serial;
extern int ep, busy, draining;

/* clock.c */
uint64_t now_ns(void);
uint64_t draw(void);
uint64_t exponential(double rate);
uint64_t seconds_on(double s);
int in_window(const struct group *g, uint64_t now);
int asked_in_window(const struct conn *c, uint64_t now);
int is_over(const struct group *g, uint64_t now);
int loads(const struct group *g);
int well_behaved(const struct group *g);
void note_latency(struct group *g, uint64_t ns);

/* http1.c */
void format_host(const struct conn *c, char *host, size_t len);
int format_request(const struct conn *c, char *buf, size_t len);
int format_post(const struct conn *c, char *buf, size_t len);
unsigned conn_heads(struct conn *c, const char *p, size_t len);
long long parse_head(struct conn *c, uint64_t now);
int chunks(struct conn *c, const char *p, size_t len);

/* conn.c */
void watch(struct conn *c, int op, uint32_t events);
void conn_park(struct conn *c, uint64_t due);
void conn_fail(struct conn *c, int err, uint64_t now);
void conn_connect(struct conn *c, uint64_t now);
int group_spent(const struct group *g);
void conn_open(struct conn *c, uint64_t due, uint64_t now);
void conn_next(struct conn *c, uint64_t now);
void conn_event(struct conn *c, uint32_t events, uint64_t now);
void conn_tick(struct conn *c, uint64_t now);

/* stream.c */
void conn_flush(struct conn *c, uint64_t now);
void conn_more(struct conn *c, uint64_t now);
void conn_eat(struct conn *c, uint64_t now);
void conn_hello(struct conn *c, uint64_t now);
void conn_flood(struct conn *c, uint64_t now);

/* group.c */
void group_arrival(struct group *g, uint64_t now);
void group_start(struct group *g, uint64_t now);
int all_spent(void);
int timed(enum mode mode);
void group_wake(struct group *g, uint64_t now);
void group_rest(struct group *g, uint64_t now);
void group_impatient(struct group *g, uint64_t now);
uint64_t group_owed(const struct group *g);

/* keys.c */
void __attribute__((noreturn, format(printf, 1, 2)))
usage(const char *fmt, ...);
struct sockaddr_in parse_address(char *arg);
void parse_group(char *spec);

/* report.c */
uint64_t intervals(uint64_t now);
uint64_t count_waiting(struct group *g);
void report(void);

/* run.c */
void run(void);
void drain(uint64_t until);
