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
	"Selects how requests share this varnishd process between "
	"tenants.\n\toff\tStock Varnish: Sandpaper measures nothing and "
	"holds no request.\n\tobserve\tMeasure and report. Requests are "
	"released in order of arrival. Only the limits on queues, waiting "
	"time and slow readers are enforced.\n\ton\tEnforce shares. "
	"Requests are released in the order that sandpaper_policy "
	"selects.\n\nExample: ``param.set sandpaper observe``"
)

PARAM_SIMPLE(
	/* name */	sandpaper_policy,
	/* type */	sandpaper_policy,
	/* min */	NULL,
	/* max */	NULL,
	/* def */	"mr3-rs",
	/* units */	NULL,
	/* descr */
	"Selects the order in which waiting requests are released, by the "
	"name of a policy.\n\nThe default, mr3-rs, shares cpu and net by weight. fifo"
	" releases in order of arrival, without shares.\n\nExample: ``param.set sandpaper_policy fifo``"
)

PARAM_SIMPLE(
	/* name */	sandpaper_round,
	/* type */	double,
	/* min */	"0",
	/* max */	"0.004",
	/* def */	"0.004",
	/* units */	"seconds",
	/* descr */
	"Sets the minimum length of a scheduling round of the policies "
	"mr3-rs and mr3. The minimum applies only while no "
	"waiting tenant is net-dominant.\n\nExample: "
	"``param.set sandpaper_round 0.001``"
)

PARAM_SIMPLE(
	/* name */	sandpaper_workers_per_core,
	/* type */	uint,
	/* min */	"1",
	/* max */	"1000",
	/* def */	"10",
	/* units */	"slots",
	/* descr */
	"Sets how many requests may run at the same time per core. The "
	"number of slots is this number times the number of cores, at most "
	"8192. While varnishd uses its cores fully, slots close, down to 2 per "
	"core.\n\nExample: ``param.set sandpaper_workers_per_core 5``"
)

PARAM_SIMPLE(
	/* name */	sandpaper_cores,
	/* type */	uint,
	/* min */	"0",
	/* max */	"4096",
	/* def */	"0",
	/* units */	"cores",
	/* descr */
	"Sets the number of cores that Sandpaper assumes. Slots and the cpu"
	" cost of a request depend on this number.\n\nExample: ``param.set "
	"sandpaper_cores 8``"
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
	"1000. Allowed values are 0, and 10k to 10000G.\n\nZero, the "
	"default, sets no upper bound. Sandpaper learns the rate.\n\nSet "
	"the rate if the interface is faster than the path behind it, for "
	"example because of a traffic shaper. Set it also if clients come "
	"through a Unix socket or a local TLS proxy.\n\nExample: "
	"``param.set sandpaper_nic_rate 1250M``"
)

PARAM_SIMPLE(
	/* name */	sandpaper_mtu,
	/* type */	uint,
	/* min */	"576",
	/* max */	"65535",
	/* def */	"1500",
	/* units */	"bytes",
	/* descr */
	"Sets the size of the largest packet on net, the link to the "
	"clients. The net cost of a response depends on it.\n\nExample: ``param.set "
	"sandpaper_mtu 9000``"
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
	"headers. The net cost of a response depends on it.\n\nExample: ``param.set sandpaper_header 66``"
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
	"measured.\n\tauto\tcycles if a performance counter may count user "
	"and kernel code, else thread-clock\n\tthread-clock\tthe CPU time "
	"of the thread\n\tcycles\tCPU cycles, from a performance "
	"counter\n\tinstructions\tinstructions, from a performance "
	"counter\n\nThe name of any other event that libpfm4 knows is "
	"allowed, too. If the kernel refuses the counter, Sandpaper "
	"uses thread-clock.\n\nExample: ``param.set sandpaper_counter "
	"thread-clock``"
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
	"measured. The others are charged their tenant's estimate.\n\nIt "
	"applies only where a measurement takes a system call. Elsewhere "
	"every request is measured.\n\nExample: ``param.set "
	"sandpaper_sample 0.5``"
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
	"cost. The estimate is an exponentially weighted moving "
	"average.\n\nExample: "
	"``param.set sandpaper_alpha 0.5``"
)

PARAM_SIMPLE(
	/* name */	sandpaper_tenants_max,
	/* type */	uint,
	/* min */	"1",
	/* max */	"1000000",
	/* def */	"10000",
	/* units */	"tenants",
	/* descr */
	"Sets how many tenants have a queue and an account of their own. A "
	"new tenant replaces an idle one when this number is reached. If "
	"no tenant is idle, the new one uses the queue of the tenant "
	"(other).\n\nRaise the value if the counter "
	"SANDPAPER.tenants_overflow grows.\n\nExample: ``param.set sandpaper_tenants_max 20000``"
)

PARAM_SIMPLE(
	/* name */	sandpaper_new_hosts,
	/* type */	sandpaper_new_hosts,
	/* min */	NULL,
	/* max */	NULL,
	/* def */	"group",
	/* units */	NULL,
	/* descr */
	"Selects how Sandpaper treats a Host that no map "
	"names.\n\tgroup\tThe Host begins in the group (new), which has one"
	" small weight. It becomes a tenant by good answers (status 200 to "
	"399) in 10 of the last 60 seconds.\n\ttenant\tThe Host is a tenant"
	" at once. A client that invents Hosts gets one share for "
	"each.\n\nExample: ``param.set sandpaper_new_hosts tenant``"
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
	"share.\n\nThe default gives all new Hosts together a tenth of a "
	"tenant's share. Raise the value if new sites are too "
	"slow.\n\nExample: ``param.set sandpaper_new_weight 0.5``"
)

PARAM_SIMPLE(
	/* name */	sandpaper_queue_limit,
	/* type */	uint,
	/* min */	"1",
	/* max */	"1000000",
	/* def */	"1000",
	/* units */	"requests",
	/* descr */
	"Sets how many requests of one tenant may wait. At the limit, a "
	"new HTTP/1 request is answered with status 503 and a Retry-After "
	"header. A new HTTP/2 stream is reset with "
	"REFUSED_STREAM.\n\nsandpaper.tenant() in VCL sets another limit "
	"for one tenant.\n\nExample: ``param.set sandpaper_queue_limit "
	"200``"
)

PARAM_SIMPLE(
	/* name */	sandpaper_queue_total,
	/* type */	uint,
	/* min */	"1",
	/* max */	"10000000",
	/* def */	"20000",
	/* units */	"requests",
	/* descr */
	"Sets how many requests of all tenants together may wait.\n\nAt "
	"the limit, Sandpaper refuses the requests of tenants that already "
	"use their part of the queue. A tenant's part is the limit divided "
	"by the number of tenants with waiting requests. One request of "
	"each tenant may always wait.\n\nThe same number limits the "
	"released requests of each tenant that are not done.\n\nExample: "
	"``param.set sandpaper_queue_total 5000``"
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
	"time. At the limit, a new fetch fails as if Varnish had no thread "
	"for it.\n\nZero, the default, means a quarter of "
	"thread_pool_max x thread_pools, and at least 8.\n\nExample: "
	"``param.set sandpaper_fetch_limit 200``"
)

PARAM_SIMPLE(
	/* name */	sandpaper_queue_timeout,
	/* type */	double,
	/* min */	"0",
	/* max */	"86400",
	/* def */	"60",
	/* units */	"seconds",
	/* descr */
	"Sets how long a request may wait for its release. After that, an "
	"HTTP/1 request is answered with status 503 and a Retry-After "
	"header. An HTTP/2 stream is reset with REFUSED_STREAM.\n\nZero means no timeout.\n\nExample: "
	"``param.set sandpaper_queue_timeout 5``"
)

/*lint -restore */
