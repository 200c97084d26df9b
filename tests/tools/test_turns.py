# SPDX-License-Identifier: BSD-2-Clause
"""A tenant whose requests turn from the link to the CPU pays for them.

Tenant a.example was bound by the link, b.example never was.
"""

from __future__ import annotations

from itertools import accumulate

from varnishd import Varnishd, answered, work

LARGE = 50_000  # bytes: 4 ms
DEAR = 10  # requests of each tenant
FREE = 4e-3  # seconds of CPU time, COST_HYSTERESIS
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
    varnishd.await_counter("SANDPAPER.nic_backlog_bytes", 0, 0)
    varnishd.cli("debug.sandpaper.freeze")
    waiting = []
    for n in range(2 * DEAR):
        waiting.append(varnishd.ask("ab"[n % 2] + ".example", "/dear"))
        varnishd.cli(f"debug.sandpaper.wait {n + 1}")
    varnishd.cli("debug.sandpaper.thaw")
    answered(waiting)
    records = [line.split()[3:6:2] for line in varnishd.served(
        varnishd.counter("SANDPAPER.enqueued"))][-2 * DEAR:]
    served = [(tenant[0], float(cpu)) for tenant, cpu in records]
    assert sorted(name for name, _ in served) == ["a"] * DEAR + ["b"] * DEAR
    ahead = accumulate(cpu if name == "a" else -cpu for name, cpu in served)
    assert max(ahead) <= FREE + 2 * max(cpu for _, cpu in served)
    varnishd.assert_alive()
