# SPDX-License-Identifier: BSD-2-Clause
"""Judges of a varnishd under real load: what it says of itself is so.

Each judge has a control within the same run: was the link full, was the core
busy, were both tenants backlogged?  If not, the machine has disturbed it, and
the window says nothing: it is measured again, WINDOWS times at most.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median

import client as http
from common import until
from live import LOCAL_PORT, PORT, PROXY, Group, Live
from sandpaper_bench.soak import HOLD_SECONDS, holds

from varnishd import work

WINDOWS = 12  # at most, until one is undisturbed
SECONDS = 3.0  # of a window
LEARNING = 2.0  # seconds, before it
PACE = 0.05  # seconds between two looks
RATE = 200_000_000  # bits/s, of tbf
QUEUE = 1_000_000  # bytes, of tbf
SLOTS = 10
EPOCHS = 10_000  # of NIC_EPOCH; more than a test takes
BACKLOG = 300  # connections of who always has a request that waits
STEPS = 8  # of a long loop, in one hold of the lock
LARGE = 50_000  # bytes
MANY = 2_000  # tenants in the map; 10,000 take gcc a minute
FULL = 0.9  # of the rate was sent: the link was full
BUSY = 0.9  # of the core was used
NEAR = 1.03  # a look takes time, in which the process uses at most so much more
VCL = """vcl 4.1;
import sandpaper;
backend self { .host = "127.0.0.1"; .port = "%d"; }
sub vcl_init {
	sandpaper.tenant("double.example", weight = 2.0);
	sandpaper.host("double.example", "double.example");
	sandpaper.unknown(OWN);
}
sub vcl_recv {
	if (local.socket == "local") { return (synth(200)); }
	if (req.url == "/fetch") { return (pass); }
	if (req.url == "/hit") { return (hash); }
	if (req.url == "/work") {
%s
	}
	return (synth(200));
}
sub vcl_synth {
	if (req.url == "/large") {
		synthetic("%s");
		return (deliver);
	}
}
""" % (LOCAL_PORT, work(8), "x" * LARGE)


@dataclass
class Look:
    """What was seen at one time."""

    at: float  # seconds
    sent: int  # bytes
    cpu: tuple[float, float]  # seconds, of the process: before and after
    charged: float  # seconds, to tenants and to nobody
    closed: float  # seconds
    rate: float  # bits/s, as learned
    waiting: dict[str, int]
    running: dict[str, int]
    requests: dict[str, int]
    waited: dict[str, float]  # seconds


class Judge(Live):
    """Looks at varnishd while it is under load."""

    def look(self) -> Look:
        """Look once."""
        cpu = self.process_cpu()
        said = self.varnishd.state()
        tenants = said["list"]

        def of(field: str) -> dict[str, float]:
            return {t["tenant"].partition(".")[0]: t[field] for t in tenants}

        charged = (sum(t["cpu_s"] for t in tenants)
                   + 1e-9 * self.varnishd.counter("SANDPAPER.cpu_unowned_ns"))
        return Look(
            time.monotonic(), self.sent(), (cpu, self.process_cpu()), charged,
            said["nic_closed_s"], said["nic_rate_bps"],
            {k: int(v) for k, v in of("waiting").items()},
            {k: int(v) for k, v in of("running").items()},
            {k: int(v) for k, v in of("completed").items()}, of("wait_s"))

    def window(self, *groups: Group, every: bool = True) -> list[Look]:
        """Return what was seen in one window, from its begin to its end."""
        with self.load(SECONDS + LEARNING, *groups, warmup=LEARNING):
            seen = [self.look()]
            while seen[-1].at < seen[0].at + SECONDS:
                time.sleep(PACE if every else SECONDS)
                seen.append(self.look())
        return seen


class Link(Judge):
    """The link is the bottleneck, of some or of all."""

    LOAD = tuple(Group(n, f"{n}.example", "/large", conns=20)
                 for n in ("one", "two"))

    def full(self, seen: list[Look], least: float = FULL) -> bool:
        """Control: was the link full all the time?"""
        first, last = seen[0], seen[-1]
        sent = (last.sent - first.sent) * 8 / (last.at - first.at)
        return sent >= least * RATE

    def windows(self, *groups: Group, least: float = FULL,
                closed: float = 0.0) -> list[Look]:
        """Return a window in which the link was full.

        closed: it also held requests back for so many seconds.
        """
        self.shape(RATE, QUEUE)
        self.serve(VCL)
        self.first()
        for _ in range(WINDOWS):
            seen = self.window(*groups)
            if (self.full(seen, least)
                    and seen[-1].closed - seen[0].closed >= closed):
                return seen
        self.fail(f"the link was never full, or held nothing, in {WINDOWS} "
                  "windows")

    def test_rate_is_learned(self) -> None:
        seen = self.windows(*self.LOAD)
        learned = median(look.rate for look in seen)
        self.assertLess(abs(learned / RATE - 1), 0.05, f"{learned:.0f}")
        self.assertIn(self.varnishd.counter("SANDPAPER.nic_learned"),
                      range(1, EPOCHS))
        # The next child has it from the first client on
        last = self.varnishd.state()["nic_rate_bps"]
        self.varnishd.cli("stop")
        self.varnishd.cli("start")
        with self.client, http.connect(PROXY, PORT) as one:
            one.sendall(http.get("one.example"))
            self.assertTrue(one.recv(12))
        until(lambda: self.varnishd.state()["nic_rate_bps"], "no rate")
        self.assertEqual(self.varnishd.state()["nic_rate_bps"], last)
        # A link that nothing stands before teaches nothing
        until(lambda: self.varnishd.counter("MAIN.uptime") >= 2)
        self.assertEqual(self.varnishd.counter("SANDPAPER.nic_learned"), 0)

    def test_a_full_queue_holds(self) -> None:
        # Else what is released fills the slots, and the queue of tbf
        seen = self.windows(*self.LOAD)
        held = [sum(look.running.values()) < SLOTS / 2
                and sum(look.waiting.values()) > 0 for look in seen]
        self.assertGreater(sum(held), len(seen) / 2, "not held")

    def test_only_who_needs_the_link_is_held(self) -> None:
        # Whoever held a slot until the link took its answer, would keep the
        # other one waiting for as long
        answer = LARGE * 8 / RATE
        seen = self.windows(
            self.LOAD[0], Group("cpu", "cpu.example", "/work", conns=1),
            least=FULL / 2, closed=SECONDS / 2)
        first, last = seen[0], seen[-1]
        wait = {n: (last.waited[n] - first.waited[n])
                / max(1, last.requests[n] - first.requests[n])
                for n in ("one", "cpu")}
        self.assertGreater(last.requests["cpu"], first.requests["cpu"])
        self.assertGreater(wait["one"], answer)
        self.assertLess(wait["cpu"], answer / 4)


class Shares(Judge):
    """CPU is the bottleneck, and two tenants always want more."""

    def share(self, name: str) -> float:
        """Return what part of the requests one of two had."""
        both = (name, "other")
        self.serve(VCL)
        self.first()
        for _ in range(WINDOWS):
            seen = self.window(*(
                Group(n, f"{n}.example", "/work", conns=BACKLOG)
                for n in both))
            # Control: looks at which one of them had nothing to release
            idle = sum(min(look.waiting[n] for n in both) == 0
                       for look in seen)
            if idle <= len(seen) / 20:
                done = [seen[-1].requests[n] - seen[0].requests[n]
                        for n in both]
                return done[0] / sum(done)
        self.fail(f"never both backlogged in {WINDOWS} windows")

    def test_equal_weights(self) -> None:
        share = self.share("single")
        self.assertLess(abs(share / (1 / 2) - 1), 0.1, f"{share}")

    def test_double_weight(self) -> None:
        share = self.share("double")
        self.assertLess(abs(share / (2 / 3) - 1), 0.1, f"{share}")


class Charges(Judge):
    """All CPU time of the process is charged."""

    def charged(self, *groups: Group) -> float:
        """Return what part of the process's CPU time was charged."""
        self.serve(VCL)
        self.first()
        for _ in range(WINDOWS):
            first, last = self.window(*groups, every=False)
            least = last.cpu[0] - first.cpu[1]
            most = last.cpu[1] - first.cpu[0]
            if (least >= BUSY * (last.at - first.at)  # controls
                    and most < NEAR * least):
                return 2 * (last.charged - first.charged) / (least + most)
        self.fail("the core was never busy, or each look took too long, in "
                  f"{WINDOWS} windows")

    def test_requests(self) -> None:
        part = self.charged(
            Group("single", "single.example", conns=20),
            Group("other", "other.example", "/hit", conns=20),
            Group("work", "work.example", "/work", conns=5))
        self.assertLess(abs(part - 1), 0.05, f"{part}")


def mapped(group: str) -> str:
    """Return VCL with MANY tenants, all of them in one group."""
    tenants = "".join(
        f'\tsandpaper.tenant("t{n}");\n'
        f'\tsandpaper.host("t{n}", "t{n}.example");\n'
        f'\tsandpaper.member("t{n}", "{group}");\n' for n in range(MANY))
    return VCL.replace("\tsandpaper.unknown(OWN);\n",
                       f'\tsandpaper.group("{group}");\n{tenants}'
                       "\tsandpaper.unknown(OWN);\n")


class Lock(Judge):
    """Nobody keeps others from the lock for long."""

    def test_many_tenants(self) -> None:
        # A loop over tenants gives the lock up every few of them
        self.serve(mapped("one"), f"sandpaper_tenants_max={10 * MANY}",
                   "cc_command=exec cc -O0 -fpic -shared -o %o %s")
        second = self.folder / "second"
        second.write_text(mapped("two"))
        self.varnishd.cli("vcl.load", "second", str(second))
        load = (Group("one", "t0.example", "/hit", conns=2),
                Group("new", "new.example", "/hit", conns=2, random_host=1))
        self.varnishd.cli("debug.sandpaper.lock", "on")
        with self.load(SECONDS, *load):
            for vcl in ("second", "boot"):
                self.varnishd.cli("vcl.use", vcl)
                self.varnishd.cli("sandpaper.list", "-j")
        said = self.varnishd.cli("debug.sandpaper.lock")
        self.assertLessEqual(holds(said).cpu_s, HOLD_SECONDS, said)
        for command in (("sandpaper.list", "-j"), ("vcl.use", "second")):
            self.varnishd.cli("debug.sandpaper.lock", "on")
            self.varnishd.cli(*command)
            said = self.varnishd.cli("debug.sandpaper.lock")
            self.assertGreater(holds(said).number, MANY / STEPS, said)
