/*-
 * SPDX-License-Identifier: BSD-2-Clause
 *
 * The CLI commands that are ours.
 */

CLI_CMD(SANDPAPER_LIST,
	"sandpaper.list",
	"sandpaper.list [-j] [<n>]",
	"List the releaser's state and the tenants that used most.",
	"  The state of the releaser, then at most <n> tenants (default"
	" 100, from 1 to 1000000), those with the most CPU time first.  The"
	" command reads a snapshot, it does not hold requests up.  Fields that"
	" end in _s are seconds, in _ns nanoseconds, in _bps bits a second;"
	" *account_s* is over the weight. An <n> out of range is an error.\n\n"
	"  ``-j`` specifies JSON output.\n\n"
	"  Example: ``sandpaper.list -j 5``",
	0, 2
)

CLI_CMD(SANDPAPER_SHOW,
	"sandpaper.show",
	"sandpaper.show [-j] <tenant>",
	"Show all that is known of one tenant.",
	"  Its weight, the share that it is entitled to now, its queue, what its"
	" next request is expected to cost, and what it has used since it was"
	" first seen. *account* is what it was charged beyond the level of"
	" all: above zero it waits for its turn longer. A name that is no"
	" tenant's is an error.\n\n"
	"  ``-j`` specifies JSON output.\n\n"
	"  Example: ``sandpaper.show shop``",
	1, 2
)

CLI_CMD(DEBUG_SANDPAPER_FREEZE,
	"debug.sandpaper.freeze",
	"debug.sandpaper.freeze",
	"Release no request until debug.sandpaper.thaw.",
	"",
	0, 0
)

CLI_CMD(DEBUG_SANDPAPER_STEP,
	"debug.sandpaper.step",
	"debug.sandpaper.step [<n>]",
	"Release n (1 to 1000000) more requests, default 1, while frozen:\n"
	"each when the one before it is done.",
	"",
	0, 1
)

CLI_CMD(DEBUG_SANDPAPER_WAIT,
	"debug.sandpaper.wait",
	"debug.sandpaper.wait <n>",
	"Return when n (0 to 1000000) requests wait, at most 5 seconds later.",
	"",
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
	"Fix a tenant's estimate, whatever its requests cost (0 0: no more).",
	"",
	3, 3
)

CLI_CMD(DEBUG_SANDPAPER_AGE,
	"debug.sandpaper.age",
	"debug.sandpaper.age <seconds>",
	"Move the clock of new Hosts forward (1 to 1000000 seconds), and see\n"
	"which Hosts are proven or idle then.",
	"",
	1, 1
)

CLI_CMD(DEBUG_SANDPAPER_FAIL,
	"debug.sandpaper.fail",
	"debug.sandpaper.fail FS...",
	"Refuse coming requests at the gate: F refuses, S lets pass (64 at most).",
	"",
	1, 1
)
