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


def waits_until_saved(varnishd: Varnishd, resource: str, used: str,
                      wanted: int) -> None:
    """Let parts of cpu and net be used; wait until so many save it."""
    varnishd.cli("debug.sandpaper.busy", *used.split())
    until(lambda: saved(varnishd, resource) == wanted,
          f"{resource} is not saved by {wanted} requests with {used}")


def test_the_scarce_one_is_saved(varnishd: Varnishd) -> None:
    varnishd.start("sandpaper_cores=1", vcl=VCL)
    varnishd.cli("debug.sandpaper.cost", "b", "40000", "40000")
    assert (saved(varnishd, "net"), saved(varnishd, "cpu")) == (0, 0)
    for resource, other, scarce, idle in (
            ("net", "cpu", "50 100", "0 49"), ("cpu", "net", "100 50", "49 0")):
        varnishd.cli("debug.sandpaper.freeze")
        clients = [varnishd.ask("b.example") for _ in range(2)]
        varnishd.cli("debug.sandpaper.wait", "2")
        waits_until_saved(varnishd, resource, scarce, ASKED)
        assert saved(varnishd, other) == 0
        waits_until_saved(varnishd, resource, idle, 0)
        waits_until_saved(varnishd, resource, scarce, ASKED)
        varnishd.cli("debug.sandpaper.thaw")
        answered(clients)  # so nothing waits
        waits_until_saved(varnishd, resource, scarce, 0)
