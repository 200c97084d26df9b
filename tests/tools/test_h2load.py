# SPDX-License-Identifier: BSD-2-Clause
"""h2load, 32 streams at a time on each of ten connections: all are answered.

Two tenants, so that the gate has a choice; bodies that fit the first window
and bodies that need many WINDOW_UPDATEs.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import unittest

from preloaded import ROOT, TIMEOUT, Preloaded

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


@unittest.skipUnless(ROOT, "VARNISH_ROOT is not set")
@unittest.skipUnless(H2LOAD, "h2load is not installed")
class H2load(Preloaded):
    """Nothing fails, nothing is lost."""

    def load(self, url: str, host: str) -> None:
        said = subprocess.run(
            [str(H2LOAD), "-n", str(REQUESTS), "-c", "10", "-m", "32",
             "-H", f":authority: {host}",
             f"http://127.0.0.1:{self.port}{url}"],
            check=True, text=True, capture_output=True,
            timeout=20 * TIMEOUT).stdout
        found = re.search(r"^requests: .*? (\d+) done, (\d+) succeeded, "
                          r"(\d+) failed, (\d+) errored, (\d+) timeout",
                          said, re.MULTILINE)
        assert found is not None, said
        self.assertEqual(found.groups(),
                         (str(REQUESTS), str(REQUESTS), "0", "0", "0"))
        self.assertIn(f"status codes: {REQUESTS} 2xx, 0 3xx, 0 4xx, 0 5xx",
                      said)

    def test_all_are_answered(self) -> None:
        self.varnishd("", "-f", self.vcl(VCL), "-p", "feature=+http2")
        for url in ("/", "/large"):
            for host in ("a.example", "b.example"):
                with self.subTest(url=url, host=host):
                    self.load(url, host)
