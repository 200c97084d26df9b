# SPDX-License-Identifier: BSD-2-Clause
"""A request that burns CPU for seconds: its tenant pays, others go on."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
import unittest
from pathlib import Path

from preloaded import ROOT, Preloaded

BURNT = 2.0  # seconds, at least
SLACK = 0.5  # seconds: what VCL may cost beside it
STARVED = 5.0  # seconds with next to nothing of a core
VCL = """vcl 4.0;
import std;
backend be { .host = "127.0.0.1"; .port = "9"; }
sub vcl_recv {
	if (req.url == "/burn") { std.syslog(0, "burn"); }
	if (req.url == "/fetch") { return (pass); }
	return (synth(200));
}
sub vcl_backend_fetch {
	std.syslog(0, "burn");
	return (abandon);
}
"""


@unittest.skipUnless(ROOT, "VARNISH_ROOT is not set")
class Burn(Preloaded):
    """Tenant a.example burns, b.example does not."""

    def start(self, slots: int, url: str = "/burn") -> None:
        """Start varnishd; return when a.example burns."""
        self.varnishd("burn", "-f", self.vcl(VCL), "-p", "sandpaper_cores=1",
                      "-p", "sandpaper_new_hosts=tenant",
                      "-p", f"sandpaper_workers_per_core={slots}",
                      BURN_MS=f"{BURNT * 1e3:.0f}", BURN_NOW=str(self.now),
                      BURN_GO=str(self.go))
        self.burner = self.ask("a.example", url)
        self.now.read_text()

    def end(self, status: int = 200) -> float:
        """Let it end; return how many seconds it has burnt."""
        self.go.write_text("x")
        burnt = int(self.now.read_text()) * 1e-9
        self.assertEqual(self.status(self.burner), status)
        return burnt

    def test_others_are_answered_meanwhile(self) -> None:
        self.start(slots=2)
        for _ in range(10):
            self.assertEqual(self.status(self.ask("b.example")), 200)
        self.assertFalse(select.select([self.burner], [], [], 0)[0])
        self.end()
        self.assert_alive()

    def test_all_slots_are_taken(self) -> None:
        self.start(slots=1)
        other = self.ask("b.example")
        self.cli("debug.sandpaper.wait 1")
        self.assertEqual(self.tenant("b.example")["waits_for"], "slot")
        self.assertNotIn("waits_for", self.tenant("a.example"))
        self.end()
        self.assertEqual(self.status(other), 200)
        self.assert_alive()

    def busiest(self) -> int:
        """Return the thread of the child that has had most CPU time."""
        mgt = self.process.pid
        child = Path(f"/proc/{mgt}/task/{mgt}/children").read_text().split()[0]
        return max((int(p.name) for p in Path(f"/proc/{child}/task").iterdir()),
                   key=lambda tid: int(
                       Path(f"/proc/{child}/task/{tid}/schedstat")
                       .read_text().split()[0]))

    def test_who_gets_no_core_keeps_its_slot(self) -> None:
        self.start(slots=2)
        time.sleep(SLACK)
        tid, core = self.busiest(), min(os.sched_getaffinity(0))
        os.sched_setaffinity(tid, {core})
        os.sched_setscheduler(tid, os.SCHED_IDLE, os.sched_param(0))
        others = [subprocess.Popen(
            [sys.executable, "-c", f"import os; os.sched_setaffinity(0, "
             f"{{{core}}})\nwhile True: pass"]) for _ in range(4)]
        time.sleep(STARVED)
        for other in others:
            other.kill()
            other.wait()
        self.assertEqual(self.counter("SANDPAPER.stalled"), 0)
        self.end()
        self.assert_alive()

    def test_its_tenant_is_charged(self) -> None:
        self.start(slots=2)
        self.assertEqual(self.status(self.ask("b.example")), 200)
        burnt = self.end()
        self.await_counter("SANDPAPER.completed", 2)
        self.assertGreaterEqual(self.tenant("a.example")["cpu_s"], burnt)
        self.assertLess(self.tenant("a.example")["cpu_s"], burnt + SLACK)
        self.assertLess(self.tenant("b.example")["cpu_s"], SLACK)

    def test_its_tenant_is_charged_for_a_fetch(self) -> None:
        self.start(2, "/fetch")
        self.assertEqual(self.status(self.ask("b.example")), 200)
        burnt = self.end(status=503)
        self.await_counter("SANDPAPER.fetches", 1)
        self.assertGreaterEqual(self.tenant("a.example")["cpu_s"], burnt)
        self.assertLess(self.tenant("a.example")["cpu_s"], burnt + SLACK)
        self.assertLess(self.tenant("b.example")["cpu_s"], SLACK)

    def test_its_tenant_waits_for_its_debt(self) -> None:
        self.start(slots=1)
        self.cli("debug.sandpaper.freeze")
        waiting = []
        for n, host in enumerate(["a.example"] * 2 + ["b.example"] * 8):
            waiting.append(self.ask(host))
            self.cli(f"debug.sandpaper.wait {n + 1}")
        self.end()
        self.await_counter("SANDPAPER.completed", 1)
        self.cli("debug.sandpaper.step 10")
        for client in waiting:
            self.assertEqual(self.status(client), 200)
        self.await_counter("SANDPAPER.completed", 11)
        served = [line.split()[3] for line in self.served(11)]
        self.assertEqual(served, ["a.example"] + ["b.example"] * 8 +
                         ["a.example"] * 2)
        self.assert_alive()


if __name__ == "__main__":
    unittest.main()
