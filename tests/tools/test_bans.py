# SPDX-License-Identifier: BSD-2-Clause
"""Bans of one tenant, tested in lookups of another one: who pays."""

from __future__ import annotations

import pytest
from varnishd import Varnishd

# Where a measurement takes a system call, only some requests are measured
NO_RSEQ = {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}
AT_ONCE = 100  # bans of a request
BANS = 30_000
VCL = """vcl 4.1;
backend origin { .host = "127.0.0.1"; .port = "%%d"; }
sub vcl_recv {
	if (req.url == "/ban") {
%s		return (synth(200));
	}
	if (req.url == "/cheap") { return (synth(200)); }
}
sub vcl_backend_response {
	set beresp.http.Kind = "page";
	set beresp.ttl = 1h;
}
""" % ('\t\tban("obj.http.Kind ~ ^(p|a)+.*g.*e$ && req.http.host ~ nobody");\n'
       * AT_ONCE)


@pytest.mark.parametrize("environment", [{}, NO_RSEQ], ids=["rseq", "none"])
def test_who_tests_does_not_pay(
    varnishd: Varnishd, environment: dict[str, str]
) -> None:
    varnishd.start(
        "sandpaper_cores=1", "sandpaper_new_hosts=tenant",
        "sandpaper_counter=thread-clock", "sandpaper_sample=0.001",
        "ban_dups=off", "ban_lurker_age=1000", "thread_pool_stack=256k",
        vcl=VCL % varnishd.origin(), **environment)
    page = "/bytes/100"
    assert varnishd.get("b.example", page) == 200
    for _ in range(BANS // AT_ONCE):
        assert varnishd.get("a.example", "/ban") == 200
    made = varnishd.tenant("a.example")["cpu_s"]
    for _ in range(300):
        assert varnishd.get("b.example", "/cheap") == 200
    for _ in range(2):
        assert varnishd.get("b.example", page) == 200
    assert varnishd.counter("MAIN.bans_tests_tested") >= BANS
    varnishd.assert_alive()
    maker = varnishd.tenant("a.example")["cpu_s"] - made
    # The log has no CPU time of parsing, of which a sample counts 1000 times
    tests = [r for r in varnishd.served(1 + BANS // AT_ONCE + 300 + 2)
             if "b.example " in r][-2:]
    tester = sum(float(r.split()[-5]) for r in tests)
    assert maker > 0
    assert 0 <= tester < maker / 2
