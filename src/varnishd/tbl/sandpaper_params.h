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
#define ptyp_sandpaper_overload	unsigned
#define ptyp_sandpaper_policy	unsigned
#define ptyp_sandpaper_rate	uint64_t
#define ptyp_sandpaper_status	unsigned
#define ptyp_sandpaper_switch	unsigned
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
	"Selects how requests share this varnishd between "
	"tenants.\n\toff\tStock Varnish: nothing is measured or "
	"held.\n\tobserve\tMeasure, and count what on would refuse. "
	"Nothing is enforced.\n\ton\tEnforce shares, as "
	"sandpaper_policy selects, and all limits."
)

PARAM_SIMPLE(
	/* name */	sandpaper_memory,
	/* type */	sandpaper_switch,
	/* min */	NULL,
	/* max */	NULL,
	/* def */	"off",
	/* units */	NULL,
	/* descr */
	"Selects whose least recently used object is evicted.\n\toff\tThat "
	"of all tenants.\n\ton\tThat of the tenant with the most memory for "
	"its weight.\n\nFor the storages malloc and file."
)

PARAM_SIMPLE(
	/* name */	sandpaper_memory_idle,
	/* type */	double,
	/* min */	"0",
	/* max */	NULL,
	/* def */	"3600",
	/* units */	"seconds",
	/* descr */
	"Sets for how long a tenant's share keeps an object that nobody "
	"asks for, with sandpaper_memory=on. After that it can be evicted "
	"for other tenants. 0: no limit."
)

PARAM_SIMPLE(
	/* name */	sandpaper_admission,
	/* type */	sandpaper_mode,
	/* min */	NULL,
	/* max */	NULL,
	/* def */	"observe",
	/* units */	NULL,
	/* descr */
	"Selects what enters the cache.\n\toff\tAll "
	"objects.\n\tobserve\tThe same, and what admission would gain is "
	"measured.\n\ton\tLarge objects only if many clients ask for them."
)

PARAM_SIMPLE(
	/* name */	sandpaper_admission_bytes,
	/* type */	double,
	/* min */	"0",
	/* max */	"1",
	/* def */	"0",
	/* units */	NULL,
	/* descr */
	"Sets what admission maximises. 0: hits. 1: bytes of hits. "
	"Between: their mean, with this weight for bytes."
)

PARAM_SIMPLE(
	/* name */	sandpaper_admission_c,
	/* type */	bytes,
	/* min */	"0b",
	/* max */	"1p",
	/* def */	"0b",
	/* units */	"bytes",
	/* descr */
	"Fixes c of admission: an object of s bytes, asked for f times "
	"lately, enters with the probability e^(-s/(c f)). 0: c is found "
	"from the requests."
)

PARAM_SIMPLE(
	/* name */	sandpaper_admission_delta,
	/* type */	uint,
	/* min */	"10000",
	/* max */	"100000000",
	/* def */	"250000",
	/* units */	"requests",
	/* descr */
	"Sets after how many requests c is found anew. After a start: "
	"sooner."
)

PARAM_SIMPLE(
	/* name */	sandpaper_transit,
	/* type */	uint,
	/* min */	"1",
	/* max */	"1000",
	/* def */	"25",
	/* units */	"percent",
	/* descr */
	"Sets the most memory of objects in transit: a part of the "
	"storages, or of the machine's memory if "
	"that is less."
)

PARAM_SIMPLE(
	/* name */	sandpaper_policy,
	/* type */	sandpaper_policy,
	/* min */	NULL,
	/* max */	NULL,
	/* def */	"mr3-rs",
	/* units */	NULL,
	/* descr */
	"Selects the order in which waiting requests are released. The "
	"default, mr3-rs, shares cpu and net by weight. fifo is the order "
	"of arrival."
)

PARAM_SIMPLE(
	/* name */	sandpaper_round,
	/* type */	double,
	/* min */	"0",
	/* max */	"0.004",
	/* def */	"0.004",
	/* units */	"seconds",
	/* descr */
	"Sets the minimum length of a scheduling round of mr3-rs and mr3, "
	"while no waiting tenant is net-dominant."
)

PARAM_SIMPLE(
	/* name */	sandpaper_workers_per_core,
	/* type */	uint,
	/* min */	"1",
	/* max */	"1000",
	/* def */	"10",
	/* units */	"slots",
	/* descr */
	"Sets how many requests may run at the same time per core, at most "
	"8192 in all. While varnishd uses its cores fully, slots close, "
	"down to 2 per core."
)

PARAM_SIMPLE(
	/* name */	sandpaper_cores,
	/* type */	uint,
	/* min */	"0",
	/* max */	"4096",
	/* def */	"0",
	/* units */	"cores",
	/* descr */
	"Sets the number of cores that Sandpaper assumes. Slots and the "
	"cpu cost of a request depend on this number."
)

PARAM_SIMPLE(
	/* name */	sandpaper_nic_rate,
	/* type */	sandpaper_rate,
	/* min */	NULL,
	/* max */	NULL,
	/* def */	"0",
	/* units */	"bits/s",
	/* descr */
	"Sets the highest rate that Sandpaper assumes for net, the link to "
	"the clients, in bits/s. The suffixes k, M and G are powers of "
	"1000. Allowed values are 0, and 10k to 10000G. 0: "
	"Sandpaper learns the rate.\n\nSet it if the interface is "
	"faster than the path behind it, or if clients come through a Unix "
	"socket or a local TLS proxy."
)

PARAM_SIMPLE(
	/* name */	sandpaper_mtu,
	/* type */	uint,
	/* min */	"576",
	/* max */	"65535",
	/* def */	"1500",
	/* units */	"bytes",
	/* descr */
	"Sets the size of the largest packet on net, for the net cost of a "
	"response."
)

PARAM_SIMPLE(
	/* name */	sandpaper_header,
	/* type */	uint,
	/* min */	"0",
	/* max */	"512",
	/* def */	"64",
	/* units */	"bytes",
	/* descr */
	"Sets how many bytes of each packet to a client are IP and TCP "
	"headers, for the net cost of a response."
)

PARAM_SIMPLE(
	/* name */	sandpaper_counter,
	/* type */	sandpaper_counter,
	/* min */	NULL,
	/* max */	NULL,
	/* def */	"auto",
	/* units */	NULL,
	/* descr */
	"Selects how the cpu cost of a request is "
	"measured.\n\tauto\tcycles if these count user and kernel code, "
	"else thread-clock\n\tthread-clock\tCPU time of the "
	"thread\n\tcycles\tor another event of libpfm4. If the kernel "
	"refuses it, thread-clock"
)

PARAM_SIMPLE(
	/* name */	sandpaper_sample,
	/* type */	double,
	/* min */	"0.001",
	/* max */	"1",
	/* def */	"0.2",
	/* units */	NULL,
	/* descr */
	"Sets the part of requests, chosen at random, whose cpu cost is "
	"measured. The others are charged their tenant's estimate. It "
	"applies only where a measurement takes a system call."
)

PARAM_SIMPLE(
	/* name */	sandpaper_alpha,
	/* type */	double,
	/* min */	"0.001",
	/* max */	"1",
	/* def */	"0.9",
	/* units */	NULL,
	/* descr */
	"Sets the weight of the newest measurement in a tenant's estimated "
	"cost, an exponentially weighted moving average."
)

PARAM_SIMPLE(
	/* name */	sandpaper_tenants_max,
	/* type */	uint,
	/* min */	"1",
	/* max */	"1000000",
	/* def */	"10000",
	/* units */	"tenants",
	/* descr */
	"Sets how many tenants have a queue and an account of their own. "
	"Above it a new tenant replaces an idle one, or uses the queue of "
	"(other). Raise the value if "
	"SANDPAPER.tenants_overflow grows."
)

PARAM_SIMPLE(
	/* name */	sandpaper_new_hosts,
	/* type */	sandpaper_new_hosts,
	/* min */	NULL,
	/* max */	NULL,
	/* def */	"group",
	/* units */	NULL,
	/* descr */
	"Selects what a Host is that no map "
	"names.\n\tgroup\tThe Host begins in the group (new), which has "
	"one small weight. It becomes a tenant by good answers (200 to 399) "
	"in 10 of the last 60 seconds.\n\ttenant\tThe Host is a "
	"tenant at once. A client that invents Hosts gets one share for "
	"each."
)

PARAM_SIMPLE(
	/* name */	sandpaper_new_weight,
	/* type */	double,
	/* min */	"0.001",
	/* max */	"1024",
	/* def */	"0.1",
	/* units */	NULL,
	/* descr */
	"Sets the weight of the group (new), which all new Hosts "
	"share. Raise the value if new sites are too slow."
)

PARAM_SIMPLE(
	/* name */	sandpaper_queue_limit,
	/* type */	uint,
	/* min */	"1",
	/* max */	"1000000",
	/* def */	"1000",
	/* units */	"requests",
	/* descr */
	"Sets how many requests of one tenant may wait. Above it, requests "
	"are refused. sandpaper.tenant() in VCL sets it for one "
	"tenant."
)

PARAM_SIMPLE(
	/* name */	sandpaper_queue_total,
	/* type */	uint,
	/* min */	"1",
	/* max */	"10000000",
	/* def */	"20000",
	/* units */	"requests",
	/* descr */
	"Sets how many requests of all tenants together may wait. At the "
	"limit, each may have an equal part, and at least one request. "
	"The same number limits the released requests of each tenant that "
	"are not done."
)

PARAM_SIMPLE(
	/* name */	sandpaper_fetch_limit,
	/* type */	uint,
	/* min */	"0",
	/* max */	"1000000",
	/* def */	"0",
	/* units */	"fetches",
	/* descr */
	"Sets how many backend fetches of one tenant may run at the same "
	"time. Above it, a fetch fails as if Varnish had no thread for "
	"it. 0: a quarter of thread_pool_max x thread_pools, and at "
	"least 8."
)

PARAM_SIMPLE(
	/* name */	sandpaper_queue_timeout,
	/* type */	double,
	/* min */	"0",
	/* max */	"86400",
	/* def */	"60",
	/* units */	"seconds",
	/* descr */
	"Sets how long a request may wait for its release. After that, it "
	"is refused. 0: no timeout. sandpaper.queue_timeout() sets a "
	"shorter time for one tenant."
)

PARAM_SIMPLE(
	/* name */	sandpaper_target,
	/* type */	double,
	/* min */	"0",
	/* max */	"10",
	/* def */	"0",
	/* units */	"seconds",
	/* descr */
	"Sets how long a request may wait. One that would wait for longer "
	"is refused when it comes. 0: no target. sandpaper.target() in "
	"VCL sets it for one tenant."
)

PARAM_SIMPLE(
	/* name */	sandpaper_standing,
	/* type */	double,
	/* min */	"0",
	/* max */	"10",
	/* def */	"0.02",
	/* units */	"seconds",
	/* descr */
	"Sets the target of a queue that has not been empty for 0.1 s, for "
	"the controller time. 0: sandpaper_target."
)

PARAM_SIMPLE(
	/* name */	sandpaper_overload,
	/* type */	sandpaper_overload,
	/* min */	NULL,
	/* max */	NULL,
	/* def */	"time",
	/* units */	NULL,
	/* descr */
	"Selects what refuses requests of tenants with a target. limit "
	"refuses none."
)

PARAM_SIMPLE(
	/* name */	sandpaper_status,
	/* type */	sandpaper_status,
	/* min */	NULL,
	/* max */	NULL,
	/* def */	"503",
	/* units */	NULL,
	/* descr */
	"Sets the status of a refusal: 503 or 429."
)

PARAM_SIMPLE(
	/* name */	sandpaper_retry_after,
	/* type */	uint,
	/* min */	"1",
	/* max */	"3600",
	/* def */	"30",
	/* units */	"seconds",
	/* descr */
	"Sets the largest Retry-After of a refusal, drawn at random."
)

/*lint -restore */
