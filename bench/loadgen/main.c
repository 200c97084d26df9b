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
 * one of them only: so what is to be compared is measured within a second of
 * each other, on a machine that is another one every second.  The first part
 * of a phase, while the last one's requests still run, does not count.
 *
 * With -d it stops asking at the end, and waits for what is still owed: each
 * complete request has to be answered, once.
 *
 * With -i it also prints a JSON line for each interval: what each group saw
 * in it.  So a view can follow a long run.
 *
 * With -b it never sleeps: who wakes a core pays for it, and on one machine
 * that is the proxy.
 *
 * Output: the line "start" when the window opens, "end" when it closes, then
 * one JSON object.  Times are seconds, sizes bytes, rates per second.
 */

#define _GNU_SOURCE
#include "loadgen.h"

const char * const mode_names[] = {
	"closed", "paced", "open", "stall", "slow", "reset", "drip",
	"post", "connect", "pipe", "h2", "h2-reset", "h2-ping", NULL
};

struct sockaddr_in proxy;
struct group groups[64];
unsigned ngroups, nslices;
unsigned nphases = 1, phase;
uint64_t phase_len, settle, interval;	/* ns */
uint64_t t_start, t_window, t_end, rng = 88172645463325252ULL, serial;
int ep, busy, draining;

static void
raise_files(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) == 0) {
		rl.rlim_cur = rl.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &rl);
	}
}

/* ns, rounded up to turns of all phases */
static uint64_t
whole_turns(double seconds)
{
	uint64_t ns = (uint64_t)(seconds * (double)NS);
	uint64_t turn = nphases * phase_len;

	return (nphases > 1 ? (ns + turn - 1) / turn * turn : ns);
}

int
main(int argc, char **argv)
{
	double warmup = 1, window = 5, length = .5, quiet = .2, patience = 0;
	double every = 0;
	uint64_t now;
	unsigned u;
	int o;

	while ((o = getopt(argc, argv, "bw:t:s:p:l:q:d:i:")) != -1) {
		if (o == 'b')
			busy = 1;
		else if (o == 'w')
			warmup = strtod(optarg, NULL);
		else if (o == 't')
			window = strtod(optarg, NULL);
		else if (o == 'p')
			nphases = (unsigned)strtoul(optarg, NULL, 10);
		else if (o == 'l')
			length = strtod(optarg, NULL);
		else if (o == 'q')
			quiet = strtod(optarg, NULL);
		else if (o == 'd')
			patience = strtod(optarg, NULL);
		else if (o == 'i')
			every = strtod(optarg, NULL);
		else if (o == 's')
			rng ^= strtoull(optarg, NULL, 10) * 0x9e3779b97f4a7c15;
		else
			usage("an option is not known");
	}
	if (argc - optind < 2)
		usage("an argument is missing: give an address and at least "
		    "one group");
	if (warmup < 0 || window <= 0 || every < 0)
		usage("a time is not allowed: -w and -i take 0 or more, -t "
		    "more than 0");
	if (nphases == 0 || quiet < 0 || length <= quiet)
		usage("the phases are not allowed: use -p from 1, and -l "
		    "above -q");
	phase_len = (uint64_t)(length * (double)NS);
	settle = (uint64_t)(quiet * (double)NS);
	interval = (uint64_t)(every * (double)NS);
	proxy = parse_address(argv[optind++]);
	for (; optind < argc; optind++)
		parse_group(argv[optind]);
	if (rng == 0)
		rng = 1;
	raise_files();
	ep = epoll_create1(EPOLL_CLOEXEC);
	assert(ep >= 0);
	now = t_start = now_ns();
	t_window = now + whole_turns(warmup);
	t_end = t_window + whole_turns(window);
	nslices = (unsigned)((t_end - t_window) / SLICE) + 1;
	for (u = 0; u < ngroups; u++)
		group_start(&groups[u], now);
	run();
	for (u = 0; u < ngroups; u++)
		groups[u].waiting = count_waiting(&groups[u]);
	drain(t_end + (uint64_t)(patience * (double)NS));
	report();
	return (0);
}
