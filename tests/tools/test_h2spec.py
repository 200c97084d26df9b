# SPDX-License-Identifier: BSD-2-Clause
"""h2spec finds nothing that it does not find in stock Varnish, too.

What stock fails is in patches/SERIES/h2spec-stock.txt: a case a line, as the
file that h2spec writes names it.  To record it, run this file with stock's
VARNISH_ROOT; it says what failed and is not in there.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import unittest
import xml.etree.ElementTree as ET
from pathlib import Path

from preloaded import ROOT, TIMEOUT, Preloaded

TOP = Path(__file__).resolve().parent.parent.parent
H2SPEC = shutil.which("h2spec", path=TOP / "build" / "bin") or shutil.which(
    "h2spec")
TRIES = 3
ANSWERS = 3  # seconds that h2spec waits for each
VCL = """vcl 4.0;
backend be { .host = "127.0.0.1"; .port = "9"; }
sub vcl_recv { return (synth(200)); }
"""


def series() -> str:
    """Return the series of the Varnish under test."""
    said = subprocess.run(
        [f"{ROOT}/sbin/varnishd", "-V"], check=True, text=True,
        capture_output=True).stderr
    found = re.search(r"(?:varnish|vinyl-cache)-(\d+\.\d+)", said)
    assert found is not None, said
    return found[1]


def failed(report: Path) -> tuple[set[str], int]:
    """Return the cases that failed, and how many there are.

    h2spec writes bytes that it got as they are, which XML may not have.
    """
    text = re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]|&#x?[0-9a-fA-F]+;",
                  "?", report.read_text(errors="replace"))
    cases = list(ET.fromstring(text).iter("testcase"))
    return {f"{case.get('package')}: {case.get('classname')}"
            for case in cases
            if case.find("failure") is not None
            or case.find("error") is not None}, len(cases)


@unittest.skipUnless(ROOT, "VARNISH_ROOT is not set")
@unittest.skipUnless(H2SPEC, "h2spec is not installed")
class H2spec(Preloaded):
    """All of its cases."""

    def run_h2spec(self, *sections: str) -> tuple[set[str], int]:
        """Return what fails in these sections, and how many cases ran."""
        report = self.folder / "report.xml"
        subprocess.run(
            [str(H2SPEC), *sections, "-h", "127.0.0.1", "-p", str(self.port),
             "-o", str(ANSWERS), "-j", str(report)], check=False,
            stdout=subprocess.DEVNULL, timeout=20 * TIMEOUT)
        return failed(report)

    def test_as_stock(self) -> None:
        self.varnishd("", "-f", self.vcl(VCL), "-p", "feature=+http2")
        known = TOP / "patches" / series() / "h2spec-stock.txt"
        listed = set(known.read_text().splitlines())
        found, cases = self.run_h2spec()
        self.assertGreater(cases, 100)
        # As with Varnish's own tests: a difference is one that stays
        for _ in range(TRIES):
            if not (new := found - listed):
                break
            again, _ = self.run_h2spec(*{case.split(":")[0] for case in new})
            found &= again
        self.assertEqual(found - listed, set())


if __name__ == "__main__":
    unittest.main()
