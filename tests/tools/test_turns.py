# SPDX-License-Identifier: BSD-2-Clause
"""A tenant whose requests turn from the link to the CPU pays for them.

Tenant a.example was bound by the link, b.example never was.
"""

from __future__ import annotations

from varnishd import Varnishd, answered, work

LARGE = 50_000  # bytes: 4 ms
DEAR = 10  # requests of each tenant
FREE = 4e-3  # seconds, COST_LEAD
VCL = """vcl 4.1;
backend none none;
sub vcl_recv {
	if (req.url == "/dear") {
%s	}
	return (synth(200));
}
sub vcl_synth {
	if (req.url == "/large") {
		synthetic("%s");
		return (deliver);
	}
}
""" % (work(100), "x" * LARGE)


def test_what_it_does_not_use_most_is_not_free(varnishd: Varnishd) -> None:
    varnishd.start(
        "sandpaper_nic_rate=100M", "sandpaper_cores=1",
        "sandpaper_workers_per_core=1", "workspace_client=1m",
        "sandpaper_new_hosts=tenant", vcl=VCL)
    for _ in range(20):
        assert varnishd.get("a.example", "/large") == 200
    assert varnishd.tenant("a.example")["dominant"] == "net"
    before = varnishd.tenant("a.example")["cpu_s"]
    varnishd.await_counter("SANDPAPER.nic_backlog_bytes", 0, 0)
    varnishd.cli("debug.sandpaper.freeze")
    waiting = []
    for n in range(2 * DEAR):
        waiting.append(varnishd.ask("ab"[n % 2] + ".example", "/dear"))
        varnishd.cli(f"debug.sandpaper.wait {n + 1}")
    varnishd.cli("debug.sandpaper.thaw")
    answered(waiting)
    each = (varnishd.tenant("a.example")["cpu_s"] - before) / DEAR
    served = [line.split()[3][0] for line in varnishd.served(
        varnishd.counter("SANDPAPER.enqueued"))][-2 * DEAR:]
    assert sorted(served) == ["a"] * DEAR + ["b"] * DEAR
    ahead = max(served[:n].count("a") - served[:n].count("b")
                for n in range(2 * DEAR))
    assert ahead <= FREE / each + 2
    varnishd.assert_alive()
