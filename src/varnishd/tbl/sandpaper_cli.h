/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The CLI commands that are ours.
 */

CLI_CMD(SANDPAPER_LIST,
	"sandpaper.list",
	"sandpaper.list [-j] [-w <seconds>] [-s <key>] [-f <glob>] [-a <name>]"
	" [-c <keys>] [-t] [<n>]",
	"Show Sandpaper's state, and what the tenants use now.",
	"  First comes the state of Sandpaper, then the stages, then at most <n>"
	" tenants. <n> is a whole number from 1 to 1000000, default 50. The"
	" command does not delay requests. A wrong option or value is an"
	" error.\n\n"
	"  ``-w`` says which last seconds the text shows: 1, 10 (the default) or"
	" 60. ``-w 60`` has 51 to 60 of them, since older seconds are kept in tens."
	" For a new Host all of these are 0.\n\n"
	"  ``-s`` sorts by a key, the most first. A key is a field of JSON, or one"
	" inside *last*: of the seconds of ``-w``. *tenant* sorts by name. The"
	" default is *used_part*: the part of the resource, cpu or net, that the"
	" tenant used most.\n\n"
	"  ``-f`` shows only tenants whose names match a pattern of the shell,"
	" such as ``'*.example'``.\n\n"
	"  ``-a`` shows the tenants whose names come after <name>, sorted byte by"
	" byte. So a program reads all tenants in pages. It begins with"
	" ``sandpaper.list -j -s tenant 500``. Then it repeats ``sandpaper.list -j"
	" -a <name> 500`` with the last name that it has. It ends when fewer than"
	" 500 come. A tenant that was first seen in the last 10 s may be"
	" missing. If an answer is longer than the parameter ``cli_limit``,"
	" varnishadm says so: ask for fewer tenants, or fewer keys.\n\n"
	"  ``-j`` selects JSON output, and must be the first option. Only with it,"
	" ``-c`` prints these keys of each tenant and no others, with commas between"
	" them. With ``-t`` the member *keys* has the keys once, and *list* has an"
	" array of values for each tenant: that is shorter. A value that the tenant"
	" does not have is null. JSON always has all three parts of *last*.\n\n"
	"  Each stage has a line with means of the last 10 seconds. *per_s* is"
	" how many requests left the stage per second. *wait_ms* is how long"
	" each waited for it, *in_it_ms* how long it was in it then. *waiting*"
	" and *in_it* are how many waited, and how many were in the stage, if"
	" the load is steady. *servers* is how many can be in it.\n\n"
	"  In the text output, *per_s* is completed requests per second, *cpu%*"
	" and *net%* the part of cpu and net that the tenant used. *dom* is the"
	" resource that its next request will need most. *wait_p50_ms* and"
	" *wait_p99_ms* are the waits that 50 % and 99 % of its requests did not"
	" exceed. *oldest_wait_s* is how long its oldest waiting request has"
	" waited. *group* is the tenant's group. For a new Host, the seconds with"
	" a good answer follow, and the seconds that it needs.\n\n"
	"  In JSON, the end of a name is its unit: _per_s a number per second, else"
	" _s seconds, _ns nanoseconds, _bps bits per second, _part a part of 1."
	" *sums* adds up all tenants since *started*, when the worker process began,"
	" with those that Sandpaper has forgotten. A tenant's own counters begin at"
	" 0 when it is first seen, and again if Sandpaper has forgotten it. *waits*"
	" is a histogram of the waits in the queue. Each completed request counts"
	" once: at the first bound of *wait_bounds_s* that its wait does not exceed,"
	" or in the last number if its wait was longer. *wait_s* of a tenant is a"
	" sum, of a stage a mean. *cost_s* is the CPU time of this answer, divided"
	" by the number of cores. The tools use it to ask less often if answers are"
	" long. *mapped* is true if the active VCL's map names the"
	" tenant. It is false for a Host of a name with ``*``: clients can invent"
	" such Hosts. *members* is how"
	" many members a group has. A group's counters are the sums of what its"
	" members used in it. To add up all tenants, leave groups out, or use"
	" *sums*.\n\n"
	"  Example: ``sandpaper.list -w 60 -s refused_per_s 5``",
	0, 16
)

CLI_CMD(SANDPAPER_SHOW,
	"sandpaper.show",
	"sandpaper.show [-j] <tenant>",
	"Show the state of one tenant, and why its requests wait.",
	"  The output has the tenant's weight, its share now and its queue. The"
	" estimated cost of its next request follows, and then what it has used"
	" since it was first seen, and in the last 1, 10 and 60 seconds. Names and"
	" units are those of JSON. *account_s* is how much"
	" more the tenant was charged, divided by its weight, than the tenants that"
	" have their turn now. With a higher account it waits longer for its turn. The name of an unknown tenant is an"
	" error.\n\n"
	"  At the end, sentences say what the tenant used, why its requests wait"
	" or are refused, who else waits, and what would help.\n\n"
	"  *waits_for* is the reason why the tenant's first waiting request"
	" waits. Sandpaper checks them in this order and prints the first one"
	" that is true:\n\n"
	"  - ``limit``: the tenant is at its limit.\n"
	"  - ``group``: another member of its group goes first, or the group is"
	" at its limit.\n"
	"  - ``net``: the tenant's dominant resource is net, and the interface"
	" already has all that it can send in the next milliseconds.\n"
	"  - ``slot``: as many requests run as may run at a time.\n"
	"  - ``worker``: a slot is free, but all cores are busy. The next worker that"
	" is done runs this one. If none is within 1 ms, another worker does.\n"
	"  - ``turn``: other tenants go first, since they had less.\n\n"
	"  If no request of the tenant waits, *waits_for* is ``-``. JSON then"
	" has no field *waits_for*.\n\n"
	"  ``-j`` selects JSON output, with the fields of sandpaper.list.\n\n"
	"  Example: ``sandpaper.show shop``",
	1, 2
)

CLI_CMD(SANDPAPER_RELOAD,
	"sandpaper.reload",
	"sandpaper.reload",
	"Read the files of tenants of the active VCL again.",
	"  These are the files that the VCL named with sandpaper.tenants_file()."
	" The new map has the tenants of the files, and those that vcl_init has"
	" declared itself: vcl_init does not run again. If there is an error, the"
	" answer has the file, the line and the reason of the first ten, and"
	" nothing is changed. Otherwise the new map is in force when the command"
	" answers. No waiting request is lost, and each keeps its tenant.\n\n"
	"  It is an error if the active VCL names no file.\n\n"
	"  Example: ``sandpaper.reload``",
	0, 0
)

CLI_CMD(SANDPAPER_SET,
	"sandpaper.set",
	"sandpaper.set <tenant> <setting>=<value> ...",
	"Set something of a tenant, until the map is read again.",
	"  The settings are *weight*, *limit*, *queue_limit*, *target*,"
	" *queue_timeout* and *fetch_target*, written as in a file of tenants:"
	" see sandpaper.tenants_file() of the VMOD. A group, with its"
	" parentheses, has *weight* and *limit*. The tenant or group must be in"
	" the map of the active VCL. Any other name or value is an error, and"
	" then nothing is changed.\n\n"
	"  ``sandpaper.reload``, ``vcl.use`` and a restart bring back what the"
	" map says, for all tenants. Until then ``sandpaper.list`` says *set by"
	" hand*, and JSON has the field *by_hand*.\n\n"
	"  Example: ``sandpaper.set shop weight=2 queue_limit=500``",
	2, -1
)

CLI_CMD(SANDPAPER_DRAIN,
	"sandpaper.drain",
	"sandpaper.drain [on|off]",
	"End connections with their next answer, before a stop.",
	"  With ``on``, each answer of HTTP/1 has ``Connection: close``. An HTTP/2"
	" client is asked to open no more streams (GOAWAY), and its session ends"
	" when none is left. And sandpaper.draining() of the VMOD is true. New"
	" connections and requests are served as before. Connections without a request stay open, and the"
	" stop closes them. With ``off`` this ends. It also ends when the worker"
	" process restarts.\n\n"
	"  The answer has a line each for *mode* (the parameter sandpaper), *draining*"
	" (``on`` or ``off``), *waiting* and *running* (requests), and"
	" *h2_sessions*. In the mode ``off`` requests are not counted.\n\n"
	"  sandpaper-drain uses this command, and waits until no request is"
	" left.\n\n"
	"  Example: ``sandpaper.drain on``",
	0, 1
)

CLI_CMD(SANDPAPER_CACHE,
	"sandpaper.cache",
	"sandpaper.cache [-j] [<tenant>]",
	"Show what enters the cache, and what each tenant has in it.",
	"  First comes the state of admission: the size *c* (see"
	" sandpaper_admission_c), and the part of hits of the last window, with"
	" *c* and if all objects entered. The objects of a sample are simulated"
	" for that. Then come the objects that were fetched with admission, by"
	" size in memory:\n\n"
	"  - *admitted*: they entered the cache.\n"
	"  - *rejected*: they were in transit only.\n"
	"  - *late*: they left the cache when their size was known.\n"
	"  - *passed*: they were rejected, and there was no room in transit.\n\n"
	"  Then come the tenants, at most 100. The column that has a size as its"
	" head says by how many percentage points the hit ratio would rise with"
	" so much more memory, a tenth of the storages. *fair* is the memory that"
	" the tenant would have with sandpaper_memory=on, and *+fair* says what"
	" this would change. *evicted_by* is the tenant for whose objects most of"
	" this tenant's were evicted. The tenants that would gain most hits with"
	" more memory come first.\n\n"
	"  With <tenant>, only that tenant is shown, with its hit ratio if it"
	" had more memory or less. This is estimated for a cache that admits all"
	" objects. Requests that come back only after three windows (see"
	" sandpaper_admission_delta) are not known, so the real gain may be"
	" higher. The name of an unknown tenant is an error.\n\n"
	"  ``-j`` selects JSON output.\n\n"
	"  Example: ``sandpaper.cache shop``",
	0, 2
)

CLI_CMD(DEBUG_SANDPAPER_FREEZE,
	"debug.sandpaper.freeze",
	"debug.sandpaper.freeze",
	"Stop releasing requests, until debug.sandpaper.thaw.",
	"",
	0, 0
)

CLI_CMD(DEBUG_SANDPAPER_STEP,
	"debug.sandpaper.step",
	"debug.sandpaper.step [<n>]",
	"While frozen, release <n> requests, one after the other.",
	"  <n> is a whole number from 1 to 1000000, default 1. Each request is"
	" released when the one before it is done.",
	0, 1
)

CLI_CMD(DEBUG_SANDPAPER_WAIT,
	"debug.sandpaper.wait",
	"debug.sandpaper.wait <n>",
	"Return when exactly <n> requests wait.",
	"  <n> is a whole number from 0 to 1000000. The command fails after 5"
	" seconds.",
	1, 1
)

CLI_CMD(DEBUG_SANDPAPER_THAW,
	"debug.sandpaper.thaw",
	"debug.sandpaper.thaw",
	"Release requests again.",
	"",
	0, 0
)

CLI_CMD(DEBUG_SANDPAPER_COST,
	"debug.sandpaper.cost",
	"debug.sandpaper.cost <tenant> <cpu_us> <net_us>",
	"Fix the estimated cost of a tenant's requests.",
	"  The cost is in microseconds. ``0 0`` returns to the measured cost.",
	3, 3
)

CLI_CMD(DEBUG_SANDPAPER_AGE,
	"debug.sandpaper.age",
	"debug.sandpaper.age <seconds>",
	"Move the clock of new Hosts forward.",
	"  <seconds> is a whole number from 1 to 1000000. Sandpaper then checks"
	" which Hosts are proven and which are idle.",
	1, 1
)

CLI_CMD(DEBUG_SANDPAPER_LOCK,
	"debug.sandpaper.lock",
	"debug.sandpaper.lock [on|off]",
	"Measure how long Sandpaper's lock is held, or show what was measured.",
	"  ``on`` begins anew, ``off`` ends. It costs about 1 us a hold. Each"
	" line of a histogram has an upper bound, and the number of holds that"
	" were shorter.",
	0, 1
)

CLI_CMD(DEBUG_SANDPAPER_SECOND,
	"debug.sandpaper.second",
	"debug.sandpaper.second [<n>]",
	"End <n> seconds of what tenants used, one after the other.",
	"  <n> is a whole number from 1 to 1000, default 1.",
	0, 1
)

CLI_CMD(DEBUG_SANDPAPER_SLOTS,
	"debug.sandpaper.slots",
	"debug.sandpaper.slots <slots>",
	"Set how many slots there can be in all.",
	"  <slots> is a number from 0 to 16384. Multiples of 64 count. Requests"
	" that run on after a wait run without a slot when none is left.",
	1, 1
)

CLI_CMD(DEBUG_SANDPAPER_BUSY,
	"debug.sandpaper.busy",
	"debug.sandpaper.busy [<cpu> [<net>]]",
	"Let varnishd seem to use a part of the cores' time, and of net.",
	"  Each is a percentage from 0 to 100. Sandpaper opens and closes slots"
	" by <cpu>, and sandpaper.save() compares both. What is not given is"
	" measured.",
	0, 2
)

CLI_CMD(DEBUG_SANDPAPER_FAIL,
	"debug.sandpaper.fail",
	"debug.sandpaper.fail FSL...",
	"Refuse some of the next requests.",
	"  Each letter is for one request: F refuses it, S lets it pass. L lets"
	" it seem to have waited for very long until its parsing, if it is no"
	" HTTP/2 stream. At most 64 letters are used.",
	1, 1
)
