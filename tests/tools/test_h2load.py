# SPDX-License-Identifier: BSD-2-Clause
"""h2load, 32 streams at a time on each of ten connections: all are answered.

Two tenants, so that the gate has a choice; bodies that fit the first window
and bodies that need many WINDOW_UPDATEs.
"""

from __future__ import annotations

import re
import shutil

import pytest
from common import TIMEOUT, ran

from varnishd import Varnishd

H2LOAD = shutil.which("h2load")
REQUESTS = 5000
VCL = """vcl 4.1;
backend be { .host = "127.0.0.1"; .port = "9"; }
sub vcl_recv { return (synth(200)); }
sub vcl_synth {
	if (req.url == "/large") {
		set resp.body = "%s";
	}
	return (deliver);
}
""" % ("0123456789abcdef" * 2 * 1024)


@pytest.mark.skipif(not H2LOAD, reason="h2load is not installed")
@pytest.mark.parametrize("url", ["/", "/large"])
def test_all_are_answered(varnishd: Varnishd, url: str) -> None:
    varnishd.start("feature=+http2", vcl=VCL)
    for host in ("a.example", "b.example"):
        said = ran(
            str(H2LOAD), "-n", str(REQUESTS), "-c", "10", "-m", "32",
            "-H", f":authority: {host}",
            f"http://127.0.0.1:{varnishd.port}{url}",
            timeout=10 * TIMEOUT).stdout
        found = re.search(r"^requests: .*? (\d+) done, (\d+) succeeded, "
                          r"(\d+) failed, (\d+) errored, (\d+) timeout",
                          said, re.MULTILINE)
        assert found is not None, said
        assert found.groups() == (str(REQUESTS), str(REQUESTS), "0", "0", "0")
        assert (f"status codes: {REQUESTS} 2xx, 0 3xx, 0 4xx, 0 5xx"
                in said)
