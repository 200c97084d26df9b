/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * A load generator for one proxy and several tenants.  It does what wrk
 * cannot: it counts per connection, so that starved connections show; it
 * counts the requests that still wait at the end, with their age; it offers
 * open-loop load, timed from when a request was due; and it misbehaves on
 * demand.  One thread, one epoll set, so all groups share one window.
 *
 * The window may be cut into phases that take turns, and a group may load in
 * one of them only.  So what is to be compared is measured within a second of
 * each other, although the speed of a machine changes.  A phase begins when the
 * requests of the phase before are answered: see window.c.
 *
 * With -d, groups stop at the end of the window.  The load generator then
 * waits for what is still owed: each complete request is to be answered once.
 *
 * With -i it also prints a JSON line for each interval: what each group saw
 * in it.  So a view can follow a long run.
 *
 * With -b it never sleeps.  To wake a sleeping core takes CPU time of the core
 * that wakes it: on one machine, the proxy's.
 *
 * Output: the line "start" when the window opens, "end" when it closes, then
 * one JSON object.  Times are seconds, sizes bytes, rates per second.
 */

#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "loadgen.h"

struct options {
	double		warmup, window, phase, settle, drain, interval;
	int		busy;
};

static const struct argp_option options[] = {
	{ .key = 'b', .doc = "Never sleep" },
	{ .key = 'w', .arg = "SECONDS",
	    .doc = "Load for so long before the window opens (default 1)" },
	{ .key = 't', .arg = "SECONDS",
	    .doc = "How long the window is (default 5)" },
	{ .key = 's', .arg = "SEED", .doc = "Seed of Hosts and arrivals" },
	{ .key = 'p', .arg = "PHASES", .doc = "How many phases take turns" },
	{ .key = 'l', .arg = "SECONDS",
	    .doc = "How long a phase is (default 0.5)" },
	{ .key = 'q', .arg = "SECONDS",
	    .doc = "The part of a phase that does not count (default 0.2)" },
	{ .key = 'd', .arg = "SECONDS",
	    .doc = "Wait at most so long at the end for what is owed" },
	{ .key = 'i', .arg = "SECONDS", .doc = "Also print each interval" },
	{ 0 }
};

static error_t
set_option(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;
	double *seconds = NULL;
	char name[3] = { '-', (char)key, '\0' }, *end;

	switch (key) {
	case 'b': o->busy = 1; break;
	case 'w': seconds = &o->warmup; break;
	case 't': seconds = &o->window; break;
	case 'l': seconds = &o->phase; break;
	case 'q': seconds = &o->settle; break;
	case 'd': seconds = &o->drain; break;
	case 'i': seconds = &o->interval; break;
	case 'p':
		win.nphases = (unsigned)whole(name, arg, 1, 1000);
		break;
	case 's':
		errno = 0;
		seed(strtoull(arg, &end, 10));
		if (errno != 0 || *end != '\0')
			wrong("-s '%s' is not allowed: use a whole number",
			    arg);
		break;
	default:
		return (ARGP_ERR_UNKNOWN);
	}
	if (seconds != NULL)
		*seconds = number(name, arg, key == 'l' ? 1e-3 : 0, 1e9);
	return (0);
}

static char *
help(int key, const char *text, void *input)
{

	(void)input;
	return (key == ARGP_KEY_HELP_EXTRA ? keys_help() : (char *)text);
}

static const struct argp argp = {
	.options = options,
	.parser = set_option,
	.args_doc = "ADDR:PORT key=value[,key=value..] ...",
	.doc = "Load a proxy with groups of connections; print JSON.",
	.help_filter = help,
};

/* Read the command line into `o`, win and groups. */
static void
read_options(int argc, char **argv, struct options *o)
{
	struct sockaddr_in proxy;
	int i;

	argp_err_exit_status = 2;
	(void)argp_parse(&argp, argc, argv, 0, &i, o);
	if (argc - i < 2)
		wrong("an argument is missing: give an address and at least "
		    "one group, see loadgen --help");
	if (o->window <= 0)
		wrong("-t %g is not allowed: use more than 0", o->window);
	if (o->phase <= o->settle)
		wrong("-l %g is not allowed: use more than -q, which is %g",
		    o->phase, o->settle);
	win.phase_len = (uint64_t)(o->phase * (double)NS);
	win.settle = (uint64_t)(o->settle * (double)NS);
	proxy = address(argv[i]);
	while (++i < argc)
		keys_group(argv[i], &proxy);
}

static void
raise_files(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) == 0) {
		rl.rlim_cur = rl.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &rl);
	}
}

int
main(int argc, char **argv)
{
	struct options o = {
		.warmup = 1, .window = 5, .phase = .5, .settle = .2
	};
	struct group *g;

	read_options(argc, argv, &o);
	raise_files();
	conn_init();
	window_set(o.warmup, o.window);
	FOR_GROUPS(g)
		group_start(g, win.start);
	run((uint64_t)(o.interval * (double)NS), o.busy);
	report_waiting();
	drain(win.end + (uint64_t)(o.drain * (double)NS), o.busy);
	report();
	return (0);
}
