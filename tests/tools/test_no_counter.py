# SPDX-License-Identifier: BSD-2-Clause
"""What CPU time is measured by is missing: the log says so once, and it is
measured by something else."""

from __future__ import annotations

import unittest

from preloaded import ROOT, Preloaded

REQUESTS = 20
NO_RSEQ = "glibc.pthread.rseq=0"
VCL = """vcl 4.0;
backend be { .host = "127.0.0.1"; .port = "9"; }
sub vcl_recv { return (synth(200)); }
"""


@unittest.skipUnless(ROOT, "VARNISH_ROOT is not set")
class NoCounter(Preloaded):
    """Perf_event is refused, there is no rseq, or neither is there."""

    def start(self, counter: str, **env: str) -> None:
        """Start varnishd, which may not use perf_event, and ask it."""
        self.varnishd("no_perf", "-f", self.vcl(VCL), "-p",
                      "sandpaper_sample=1", "-p",
                      f"sandpaper_counter={counter}", **env)
        clients = [self.connect() for _ in range(REQUESTS // 2)]
        for client in clients * 2:
            self.send(client, "a.example")
            self.assertEqual(self.status(client), 200)
        self.await_counter("SANDPAPER.completed", REQUESTS)

    def said(self) -> str:
        """Return the one record of the counter in the log."""
        said = [line.split("Sandpaper: ")[1] for line in
                self.log("-g", "raw", "-i", "Notice", "-i", "Error")
                if "Sandpaper: " in line]
        said = [what for what in said if "security patches" not in what]
        self.assertEqual(len(said), 1, said)
        return said[0]

    def assert_measured(self) -> None:
        """All requests were."""
        self.assertEqual(self.counter("SANDPAPER.measured"), REQUESTS)
        self.assertGreater(self.tenant("a.example")["cpu_s"], 0)
        self.assertIn("counter thread-clock", self.cli("sandpaper.list"))
        self.assert_alive()

    def test_perf_event_is_refused(self) -> None:
        # A counter that any machine has
        self.start("perf::task-clock")
        self.assertRegex(self.said(), "^perf::task-clock cannot be counted "
                         r"\(Permission denied\); using thread-clock "
                         "instead")
        self.assert_measured()

    def test_no_rseq(self) -> None:
        self.start("thread-clock", GLIBC_TUNABLES=NO_RSEQ)
        self.assertRegex(self.said(), "^no (rseq|invariant TSC): only a sample "
                         "of the requests is measured$")
        self.assert_measured()

    def test_neither(self) -> None:
        self.start("perf::task-clock", GLIBC_TUNABLES=NO_RSEQ)
        self.assertRegex(self.said(), "^perf::task-clock cannot be counted "
                         r"\(Permission denied\); using thread-clock "
                         "instead; no ")
        self.assert_measured()


if __name__ == "__main__":
    unittest.main()
