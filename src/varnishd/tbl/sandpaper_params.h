/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The rows of Varnish's parameter table that are ours.  Names are tweaked
 * into integers (mgt_sandpaper.c), since a string parameter's pointer is
 * the manager's and means nothing in the child.
 */

/*lint -save -e525 -e539 -e835 */

#define ptyp_sandpaper_mode	unsigned
#define ptyp_sandpaper_new_hosts unsigned
#define ptyp_sandpaper_policy	unsigned
#define ptyp_sandpaper_rate	uint64_t
#ifndef SANDPAPER_COUNTER_MAX
#  define SANDPAPER_COUNTER_MAX	64
#endif
#define ptyp_sandpaper_counter	struct { char name[SANDPAPER_COUNTER_MAX]; }

PARAM_SIMPLE(
	/* name */	sandpaper,
	/* type */	sandpaper_mode,
	/* min */	NULL,
	/* max */	NULL,
	/* def */	"on",
	/* units */	NULL,
	/* descr */
	"Share this process fairly between tenants.\n"
	"\toff\tstock behaviour\n"
	"\tobserve\tmeasure and report, release in order of arrival, as many "
	"as 8192 at a time\n"
	"\ton\trelease by sandpaper_policy, as many at a time as there are "
	"slots\n\n"
	"Example: ``param.set sandpaper observe``"
)

PARAM_SIMPLE(
	/* name */	sandpaper_policy,
	/* type */	sandpaper_policy,
	/* min */	NULL,
	/* max */	NULL,
	/* def */	"mr3-rs",
	/* units */	NULL,
	/* descr */
	"The order in which waiting requests are released, by name. A wrong "
	"name is answered with the list of policies.\n\n"
	"Example: ``param.set sandpaper_policy fifo``"
)

PARAM_SIMPLE(
	/* name */	sandpaper_round,
	/* type */	double,
	/* min */	"0",
	/* max */	"0.004",
	/* def */	"0.004",
	/* units */	"seconds",
	/* descr */
	"How long a round lasts at least while nobody waits who uses the "
	"link: seconds of service to all tenants that have requests, each "
	"having its share of it before it is the next one's turn. In longer turns "
	"caches are warmer. Zero means as the paper has it: for as long as "
	"the dearest request takes.\n\n"
	"Example: ``param.set sandpaper_round 0.001``"
)

PARAM_SIMPLE(
	/* name */	sandpaper_workers_per_core,
	/* type */	uint,
	/* min */	"1",
	/* max */	"1000",
	/* def */	"10",
	/* units */	"slots",
	/* descr */
	"Requests that may run at a time, a core. A request that waits for "
	"something else than the CPU or the network link does not count.\n\n"
	"Example: ``param.set sandpaper_workers_per_core 5``"
)

PARAM_SIMPLE(
	/* name */	sandpaper_cores,
	/* type */	uint,
	/* min */	"0",
	/* max */	"4096",
	/* def */	"0",
	/* units */	"cores",
	/* descr */
	"Cores that requests are processed on. Zero means the cores that "
	"this process may use: its affinity mask, and the CPU quota of its "
	"cgroup.\n\n"
	"Example: ``param.set sandpaper_cores 8``"
)

PARAM_SIMPLE(
	/* name */	sandpaper_nic_rate,
	/* type */	sandpaper_rate,
	/* min */	NULL,
	/* max */	NULL,
	/* def */	"0",
	/* units */	"bits/s",
	/* descr */
	"Upper bound of the client-side link's rate, with an optional k, M "
	"or G (powers of 1000), from 10k to 10000G. Zero means none: the "
	"rate is learned from what the interface sends while a queue stands "
	"before it.\n\n"
	"Example: ``param.set sandpaper_nic_rate 1250M``"
)

PARAM_SIMPLE(
	/* name */	sandpaper_mtu,
	/* type */	uint,
	/* min */	"576",
	/* max */	"65535",
	/* def */	"1500",
	/* units */	"bytes",
	/* descr */
	"Largest packet on the client-side link, for the cost of a "
	"response's headers on the wire.\n\n"
	"Example: ``param.set sandpaper_mtu 9000``"
)

PARAM_SIMPLE(
	/* name */	sandpaper_header,
	/* type */	uint,
	/* min */	"0",
	/* max */	"512",
	/* def */	"64",
	/* units */	"bytes",
	/* descr */
	"TCP/IP headers of a packet on the client-side link.\n\n"
	"Example: ``param.set sandpaper_header 66``"
)

PARAM_SIMPLE(
	/* name */	sandpaper_counter,
	/* type */	sandpaper_counter,
	/* min */	NULL,
	/* max */	NULL,
	/* def */	"auto",
	/* units */	NULL,
	/* descr */
	"What a request's CPU cost is measured by: thread-clock (the "
	"thread's CPU time), cycles, instructions, or the name of an event "
	"that libpfm4 knows. auto means cycles where a performance counter "
	"may count both user and kernel, and thread-clock elsewhere. Where "
	"the kernel refuses a counter the thread's clock is used, and the "
	"log says so once. A name that libpfm4 does not know, or of more "
	"than 63 characters, is an error.\n\n"
	"Example: ``param.set sandpaper_counter thread-clock``"
)

PARAM_SIMPLE(
	/* name */	sandpaper_sample,
	/* type */	double,
	/* min */	"0.001",
	/* max */	"1",
	/* def */	"0.2",
	/* units */	"part of 1",
	/* descr */
	"Part of the requests, drawn at random, whose CPU cost is measured, "
	"where measuring takes a system call. Where it does not "
	"(restartable sequences), every request is measured.\n\n"
	"Example: ``param.set sandpaper_sample 0.5``"
)

PARAM_SIMPLE(
	/* name */	sandpaper_alpha,
	/* type */	double,
	/* min */	"0.001",
	/* max */	"1",
	/* def */	"0.9",
	/* units */	"part of 1",
	/* descr */
	"Weight of the newest sample in a tenant's estimated cost.\n\n"
	"Example: ``param.set sandpaper_alpha 0.5``"
)

PARAM_SIMPLE(
	/* name */	sandpaper_tenants_max,
	/* type */	uint,
	/* min */	"1",
	/* max */	"1000000",
	/* def */	"10000",
	/* units */	"tenants",
	/* descr */
	"Tenants that have a queue and an account of their own. When there "
	"are more, and none is idle, a new one shares those of the tenant "
	"(other).\n\n"
	"Example: ``param.set sandpaper_tenants_max 20000``"
)

PARAM_SIMPLE(
	/* name */	sandpaper_new_hosts,
	/* type */	sandpaper_new_hosts,
	/* min */	NULL,
	/* max */	NULL,
	/* def */	"group",
	/* units */	NULL,
	/* descr */
	"What a Host is that no map names.\n"
	"\tgroup\tThe Host begins as a member of the group (new). All members "
	"of (new) together have one small weight, sandpaper_new_weight. The "
	"Host becomes a tenant of its own when it had an answer with a status "
	"below 400 in at least 10 of the last 60 seconds. If more than 20 "
	"Hosts in (new) had such answers, it must also be in (new) for 60 "
	"seconds. A tenant without an answer for 10 minutes is new again.\n"
	"\ttenant\tThe Host is a tenant of its own at once. A client that "
	"invents Hosts then gets one share for each of them.\n\n"
	"A map in VCL (sandpaper.host()) is the better answer for known "
	"Hosts.\n\n"
	"Example: ``param.set sandpaper_new_hosts tenant``"
)

PARAM_SIMPLE(
	/* name */	sandpaper_new_weight,
	/* type */	double,
	/* min */	"0.001",
	/* max */	"1024",
	/* def */	"0.1",
	/* units */	NULL,
	/* descr */
	"The weight of the group (new): of all new Hosts together. A tenant "
	"has the weight 1 unless a map says otherwise.\n\n"
	"Example: ``param.set sandpaper_new_weight 0.5``"
)

PARAM_SIMPLE(
	/* name */	sandpaper_queue_limit,
	/* type */	uint,
	/* min */	"1",
	/* max */	"1000000",
	/* def */	"1000",
	/* units */	"requests",
	/* descr */
	"Requests of one tenant that may wait. Past it an HTTP/1 request is "
	"answered with 503 and Retry-After, an HTTP/2 stream is refused.\n\n"
	"Example: ``param.set sandpaper_queue_limit 200``"
)

PARAM_SIMPLE(
	/* name */	sandpaper_queue_total,
	/* type */	uint,
	/* min */	"1",
	/* max */	"10000000",
	/* def */	"20000",
	/* units */	"requests",
	/* descr */
	"Requests of all tenants that may wait. Past it a tenant's request "
	"is refused, as past sandpaper_queue_limit, if of those that wait "
	"the tenant has its part already: as many as all tenants that wait "
	"could have each. One request of a tenant may always wait. As many "
	"of a tenant's requests may have been released and not be done: "
	"most of these wait for origins, or on waiting lists.\n\n"
	"Example: ``param.set sandpaper_queue_total 5000``"
)

PARAM_SIMPLE(
	/* name */	sandpaper_fetch_limit,
	/* type */	uint,
	/* min */	"0",
	/* max */	"1000000",
	/* def */	"0",
	/* units */	"fetches",
	/* descr */
	"Backend fetches of one tenant that may go on at a time. Past it a "
	"fetch fails, as it does without a thread: 503, or what VCL makes of "
	"it. Zero means a quarter of thread_pool_max x thread_pools, 8 at "
	"least; each takes two threads with the client's.\n\n"
	"Example: ``param.set sandpaper_fetch_limit 200``"
)

PARAM_SIMPLE(
	/* name */	sandpaper_queue_timeout,
	/* type */	double,
	/* min */	"0",
	/* max */	"86400",
	/* def */	"60",
	/* units */	"seconds",
	/* descr */
	"How long a request may wait. Past it an HTTP/1 request is answered "
	"with 503 and Retry-After, an HTTP/2 stream is refused, within a "
	"tenth of a second; no VCL runs for it. Zero means for ever.\n\n"
	"Example: ``param.set sandpaper_queue_timeout 5``"
)

/*lint -restore */
