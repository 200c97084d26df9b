/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The files of the load generator, lowest first.  A file calls only functions
 * of files listed before it.  conn.c and group.c
 * reach modes by the functions of struct mode.
 *
 *	clock.c		time and random numbers
 *	latency.c	a group's latencies
 *	later.c		requests that are due later
 *	paths.c		the URLs that a group draws from
 *	http1.c h2.c	the two protocols, without input and output
 *	window.c	which answers count, and when a group loads
 *	request.c	what a request says
 *	conn.c		one connection
 *	loop.c		modes: clients that wait for their answers
 *	stream.c	modes: many requests at a time on a connection
 *	browse.c	a mode: clients that think and connect anew
 *	abuse.c		modes: clients that misbehave, with HTTP/1
 *	modes.c		the table of modes
 *	group.c		a group: its connections, arrivals and rests
 *	keys.c		a group's keys on the command line
 *	report.c	JSON
 *	run.c		the event loop
 *	main.c		options
 */

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

#include "h2.h"
#include "http1.h"

#define NS		1000000000ULL
#define TICK		(NS / 100)	/* timers of connections */
#define HEAD_MAX	8192
#define REQUEST_MAX	4096
#define HOST_MAX	300
#define HOST_PREFIX	17	/* characters before the Host, at most */
#define HEADERS_MAX	32		/* sets of headers a group */
#define BODY_CHUNK	(1 << 20)
#define SLICE		(NS / 10)	/* one entry of "slices" */
#define LATE_MAX	(1 << 20)
#define STEPS_MAX	64
#define URL_MAX		512

struct conn;
struct group;

/* clock.c */
uint64_t now_ns(void);
void seed(uint64_t);
uint64_t draw(void);
double fraction(void);
uint64_t exponential(double rate);	/* ns */

/* latency.c */
struct latencies {
	uint32_t	*us;
	size_t		n, room;
};

void latencies_add(struct latencies *, uint64_t ns);
void latencies_copy(struct latencies *, const struct latencies *, size_t from);
void latencies_sort(struct latencies *);
double latencies_quantile(const struct latencies *, double q);	/* s */
double latencies_mean(const struct latencies *);		/* s */

/* later.c */
struct asking {			/* a request of an open loop */
	uint64_t	due;		/* ns */
	unsigned	tries;		/* how often it was refused */
};

struct later {
	struct asking	*heap;		/* by when it is due */
	size_t		n, room;
};

void later_add(struct later *, struct asking);
struct asking later_take(struct later *);
uint64_t later_first(const struct later *);	/* ns */

/* paths.c */
struct path {
	char		*url;
	double		upto;		/* weights of all up to this one */
};

struct paths {
	struct path	*all;
	size_t		n, taken;	/* in order */
};

void paths_add(struct paths *, const char *url, double weight);
const char *paths_next(struct paths *);
const char *paths_draw(const struct paths *);

/* What a mode does with a connection.  A function that its events never need
 * may be NULL. */
struct mode {
	const char	*name;
	enum {
		NEEDS_RATE = 1,
		IS_OWED = 2,	/* each request is to be answered */
		WAITS = 4,	/* its age at the end is a latency */
		FRESH = 8,	/* a connection a request */
		FEW_BYTES = 16,	/* a small receive buffer */
		MANY = 32,	/* requests at a time */
		IS_H2 = 64,
		CONNECTS = 128	/* the wait for a connection counts */
	}		flags;
	uint32_t	events;		/* to watch, in epoll's words */

	/* A request is due.  Returns ns until the next one. */
	uint64_t	(*arrival)(struct group *, struct conn *idle,
			    uint64_t now);
	void		(*connected)(struct conn *, uint64_t now);
	void		(*ask)(struct conn *, uint64_t now);
	/* The answer is complete, or the group loads again. */
	void		(*idle)(struct conn *, uint64_t now);
	void		(*readable)(struct conn *, uint64_t now);
	void		(*writable)(struct conn *, uint64_t now);
	void		(*tick)(struct conn *, uint64_t now);
};

enum state { IDLE, CONNECTING, HEAD, BODY, PARKED };

struct conn {
	struct group	*group;
	int		fd;
	enum state	state;
	uint32_t	events;		/* that are watched */
	uint64_t	asked;		/* ns: sent, or due (open loop) */
	uint64_t	due;		/* ns: next timed step */
	unsigned	tries;		/* how often it was refused */
	uint64_t	got;		/* bytes of this answer */
	uint64_t	count;		/* answers inside the window */
	unsigned	used;		/* answers on this socket; browse.c */
	struct http1	http1;
	char		*head;
	unsigned	head_len;

	struct conn	*next_idle;	/* conn_is_idle() has it */
	struct conn	*next_thinking;	/* browse.c */
	uint64_t	thinks_until;	/* ns, 0: it does not think */
	int		listed;

	unsigned	dripped;	/* bytes; abuse.c */

	struct h2	h2;		/* stream.c */
	uint8_t		*out;
	size_t		out_len, out_off;
	unsigned	owed;		/* answers */
};

/* The rate of an open loop, from a second of the run on */
struct step {
	double		at, rate;
};

struct group {
	/* What the command line says: see keys.c */
	char		name[64], host[256], path[URL_MAX];
	struct paths	paths;
	unsigned	in_order;
	const struct mode *mode;
	unsigned	nconn;
	double		rate;		/* requests or bytes, by mode */
	struct step	steps[STEPS_MAX];
	unsigned	nsteps;
	double		patience;	/* s */
	double		target;		/* s */
	double		think;		/* s */
	unsigned	per_conn;	/* requests, 0: no limit */
	unsigned	retries, regard;
	unsigned	even;		/* arrivals of an open loop */
	unsigned	limit;		/* requests in all, 0: no limit */
	unsigned	random_host, unique, hosts, fresh, every;
	unsigned	streams, window, mark;
	double		on, off, shift, from, till;	/* s */
	int		phase;		/* in which it loads, -1: always */
	struct sockaddr_in to;
	char		*headers[HEADERS_MAX];
	unsigned	nheaders;

	struct conn	*conns;
	struct conn	*idle;		/* a stack; some are not any more */
	struct conn	*thinking, *last_thinking;	/* by when they ask */
	int		resting;
	unsigned	retrying;	/* parked until a reconnect is due */
	uint64_t	next_arrival;
	struct asking	*late;		/* a ring: due, not sent (open loop) */
	uint64_t	late_head, late_tail;
	struct later	again;		/* refused, and to be asked again */

	/* What is counted: in the window, except extra, and as the name says */
	uint64_t	done, bytes, errors, not_ok, waiting, extra;
	uint64_t	sent_in_all, answered_in_all, sent_before;
	uint64_t	due, behind;	/* arrivals, and ns that they were late
					 * in the load generator, in all */
	uint64_t	connects;
	uint64_t	good, refused, retried, given_up;
	char		first_error[80];
	struct latencies lat;
	uint64_t	*slices, *due_slices, *good_slices;
};

/* window.c */
struct window {
	uint64_t	start;		/* ns: of the run */
	uint64_t	begin, end;	/* of the window */
	unsigned	nslices;
	unsigned	nphases, phase;	/* how many, and which is now */
	uint64_t	phase_len, settle;	/* ns */
	uint64_t	phase_end;	/* ns: when the phase ends, or has ended */
	int		in_gap;		/* between two phases */
	int		draining;	/* nobody asks any more */
};

extern struct window win;

void window_set(double warmup, double seconds);
void window_next_phase(uint64_t now);
uint64_t run_time(double s);
int in_window(const struct group *, uint64_t now);
int answer_counts(const struct conn *, uint64_t now);
int is_over(const struct group *, uint64_t now);
int is_spent(const struct group *);
int loads(const struct group *);
void count_answers(struct conn *, unsigned n, uint64_t now);
void count_good(struct conn *, uint64_t now);
void count_due(struct group *, uint64_t due, uint64_t now);
double counted_seconds(const struct group *);

/* request.c */
void request_host(const struct conn *, char *host, size_t);
size_t request_get(const struct conn *, char *, size_t);

/* conn.c */
void conn_init(void);
void conn_watch(struct conn *, uint32_t events);
void conn_close(struct conn *, int reset);
void conn_is_idle(struct conn *);
struct conn *conn_spare(struct group *);
void conn_park(struct conn *, uint64_t due);
void conn_fail(struct conn *, int err, uint64_t now);
void conn_connect(struct conn *, uint64_t now);
uint64_t conn_period(const struct conn *);
uint64_t conn_first(const struct conn *, uint64_t now);
void conn_ask(struct conn *, uint64_t asked, uint64_t now);
void conn_send(struct conn *, const char *, size_t, uint64_t now);
void conn_get(struct conn *, uint64_t now);
void conn_again(struct conn *, uint64_t now);
void conn_idle(struct conn *, uint64_t now);
int conn_read(struct conn *, size_t head, size_t body, uint64_t now);
void conn_answer(struct conn *, size_t body, uint64_t now);
void conn_take(struct conn *, uint64_t now);
int conn_is_waiting(const struct conn *);
void conn_tick(struct conn *, uint64_t now);
void conn_serve(uint64_t ns, int busy);

/* loop.c, browse.c, stream.c, abuse.c, modes.c */
extern const struct mode mode_closed, mode_paced, mode_open, mode_browse;
extern const struct mode mode_pipe, mode_h2, mode_h2_reset, mode_h2_ping;
extern const struct mode mode_stall, mode_slow, mode_reset, mode_drip,
    mode_post, mode_connect;
extern const struct mode * const modes[];	/* ends with NULL */

void open_again(struct group *, struct conn *idle, uint64_t now);
void open_impatient(struct group *, uint64_t now);

/* group.c */
extern struct group groups[];
extern unsigned ngroups;

#define FOR_GROUPS(g)	for ((g) = groups; (g) < groups + ngroups; (g)++)
#define FOR_CONNS(c, g)	\
	for ((c) = (g)->conns; (c) < (g)->conns + (g)->nconn; (c)++)

struct group *group_new(void);
void group_start(struct group *, uint64_t now);
uint64_t group_arrivals(struct group *, uint64_t now);
int groups_spent(void);
void group_wake(struct group *, uint64_t now);
void group_tick(struct group *, unsigned part, unsigned parts, uint64_t now);
uint64_t group_owed(const struct group *);

/* keys.c */
void __attribute__((noreturn, format(printf, 1, 2))) wrong(const char *, ...);
double number(const char *name, const char *text, double least, double most);
double whole(const char *name, const char *text, double least, double most);
struct sockaddr_in address(const char *);
void keys_group(char *spec, const struct sockaddr_in *proxy);
char *keys_help(void);

/* report.c */
uint64_t report_interval(uint64_t now, uint64_t interval);
void report_waiting(void);
void report(void);

/* run.c */
void run(uint64_t interval, int busy);
void drain(uint64_t until, int busy);
