# SPDX-License-Identifier: BSD-2-Clause
"""A tenant whose requests turn from the link to the CPU pays for them."""

from __future__ import annotations

import unittest

from preloaded import ROOT, Preloaded

LARGE = 50_000  # bytes: 4 ms
DEAR = 10  # requests of each tenant
FREE = 4e-3  # seconds, COST_LEAD
VCL = """vcl 4.1;
backend none none;
sub vcl_recv {
	if (req.url == "/dear") {
		set req.http.x = "0123456789abcdefghij";
%s	}
	return (synth(200));
}
sub vcl_synth {
	if (req.url == "/large") {
		synthetic("%s");
		return (deliver);
	}
}
""" % (
    "\t\tset req.http.x = req.http.x + req.http.x;\n" * 6
    + '\t\tset req.http.y = regsuball(req.http.x, "[a-j]", "-");\n' * 100,
    "x" * LARGE)


@unittest.skipUnless(ROOT, "VARNISH_ROOT is not set")
class Turns(Preloaded):
    """Tenant a.example was bound by the link, b.example never was."""

    def test_what_it_does_not_use_most_is_not_free(self) -> None:
        self.varnishd(
            "", "-f", self.vcl(VCL), "-p", "sandpaper_nic_rate=100M",
            "-p", "sandpaper_cores=1", "-p", "sandpaper_workers_per_core=1",
            "-p", "workspace_client=1m", "-p", "sandpaper_new_hosts=tenant")
        for _ in range(20):
            self.assertEqual(self.status(self.ask("a.example", "/large")), 200)
        self.assertEqual(self.tenant("a.example")["dominant"], "net")
        before = self.tenant("a.example")["cpu_s"]
        self.await_counter("SANDPAPER.nic_backlog", 0, 0)
        self.cli("debug.sandpaper.freeze")
        waiting = []
        for n in range(2 * DEAR):
            waiting.append(self.ask("ab"[n % 2] + ".example", "/dear"))
            self.cli(f"debug.sandpaper.wait {n + 1}")
        self.cli("debug.sandpaper.thaw")
        for client in waiting:
            self.assertEqual(self.status(client), 200)
        each = (self.tenant("a.example")["cpu_s"] - before) / DEAR
        served = [line.split()[3][0] for line in self.served(
            self.counter("SANDPAPER.enqueued"))][-2 * DEAR:]
        self.assertEqual(sorted(served), ["a"] * DEAR + ["b"] * DEAR)
        ahead = max(served[:n].count("a") - served[:n].count("b")
                    for n in range(2 * DEAR))
        self.assertLessEqual(ahead, FREE / each + 2, served)
        self.assert_alive()


if __name__ == "__main__":
    unittest.main()
