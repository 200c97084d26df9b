# SPDX-License-Identifier: BSD-2-Clause
"""VCL saves the resource that is scarce.

Requests of `b` wait while nothing is released.  Those of `a` are refused, so
that their VCL runs, and it asks.
"""

from __future__ import annotations

from http.client import HTTPConnection

from common import TIMEOUT, until

from varnishd import Varnishd, answered

ASKED = 20  # requests
VCL = """vcl 4.1;
import sandpaper;
backend none none;
sub vcl_init {
	sandpaper.tenant("a");
	sandpaper.host("a", "a.example");
	sandpaper.refusal("a", vcl = true);
	sandpaper.tenant("b");
	sandpaper.host("b", "b.example");
}
sub vcl_recv {
	return (synth(200));
}
sub vcl_synth {
	set resp.http.net = sandpaper.save(net);
	set resp.http.cpu = sandpaper.save(cpu);
	return (deliver);
}
"""


def saved(varnishd: Varnishd, resource: str) -> int:
    """Return how many of some requests should save a resource."""
    varnishd.cli("debug.sandpaper.fail", "F" * ASKED)
    client = HTTPConnection("127.0.0.1", varnishd.port, timeout=TIMEOUT)
    found = 0
    for _ in range(ASKED):
        client.request("GET", "/", headers={"Host": "a.example"})
        answer = client.getresponse()
        answer.read()
        assert answer.status == 503
        found += answer.getheader(resource) == "true"
    client.close()
    return found


def test_the_scarce_one_is_saved(varnishd: Varnishd) -> None:
    varnishd.start("sandpaper_cores=1", vcl=VCL)
    assert (saved(varnishd, "net"), saved(varnishd, "cpu")) == (0, 0)
    varnishd.cli("debug.sandpaper.busy", "100")
    for scarce, other, cost in (("net", "cpu", "0 40000"),
                                ("cpu", "net", "40000 0")):
        varnishd.cli("debug.sandpaper.cost", "b", *cost.split())
        varnishd.cli("debug.sandpaper.freeze")
        clients = [varnishd.ask("b.example") for _ in range(2)]
        varnishd.cli("debug.sandpaper.wait", "2")
        until(lambda: saved(varnishd, scarce) == ASKED,  # noqa: B023
              f"{scarce} is not saved")
        assert saved(varnishd, other) == 0
        varnishd.cli("debug.sandpaper.thaw")
        answered(clients)


def test_requests_do_not_wait_for_cores_that_are_idle(
        varnishd: Varnishd) -> None:
    varnishd.start("sandpaper_cores=1", vcl=VCL)
    varnishd.cli("debug.sandpaper.busy", "49")
    varnishd.cli("debug.sandpaper.cost", "b", "40000", "0")
    varnishd.cli("debug.sandpaper.freeze")
    clients = [varnishd.ask("b.example") for _ in range(2)]
    varnishd.cli("debug.sandpaper.wait", "2")
    assert sum(saved(varnishd, "cpu") for _ in range(5)) == 0
    varnishd.cli("debug.sandpaper.thaw")
    answered(clients)
