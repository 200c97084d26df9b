# SPDX-License-Identifier: BSD-2-Clause
"""h2spec finds nothing that it does not find in stock Varnish, too.

What stock fails is in patches/SERIES/h2spec-stock.txt: a case a line, as the
file that h2spec writes names it.  To record it, run this file with stock's
VARNISH_ROOT; it says what failed and is not in there.
"""

from __future__ import annotations

import re
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from common import ROOT, TOP, ran

from varnishd import Varnishd

H2SPEC = shutil.which("h2spec", path=TOP / "build" / "bin") or shutil.which(
    "h2spec")
TRIES = 3
ANSWERS = 3  # seconds that h2spec waits for each


def series() -> str:
    """Return the series of the Varnish under test."""
    said = ran(f"{ROOT}/sbin/varnishd", "-V").stderr
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


@pytest.mark.skipif(not H2SPEC, reason="h2spec is not installed")
def test_as_stock(varnishd: Varnishd) -> None:
    def run_h2spec(*sections: str) -> tuple[set[str], int]:
        report = varnishd.folder / "report.xml"
        ran(str(H2SPEC), *sections, "-h", "127.0.0.1", "-p",
            str(varnishd.port), "-o", str(ANSWERS), "-j", report, status=None,
            timeout=None)
        return failed(report)

    varnishd.start("feature=+http2")
    known = TOP / "patches" / series() / "h2spec-stock.txt"
    listed = set(known.read_text().splitlines())
    found, cases = run_h2spec()
    assert cases > 100
    # As with Varnish's own tests: a difference is one that stays
    for _ in range(TRIES):
        if not (new := found - listed):
            break
        again, _ = run_h2spec(*{case.split(":")[0] for case in new})
        found &= again
    assert found - listed == set()
