# SPDX-License-Identifier: BSD-2-Clause
"""A weight that is changed under load: the shares follow."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from common import TIMEOUT
from sandpaper_bench.load import build_loadgen
from sandpaper_bench.work import room, work_vcl
from varnishd import HELLO, Varnishd

FOLLOWS = 2  # seconds: the longest that the shares may take


def ratio(varnishd: Varnishd, warmup: float) -> float:
    """Return how many requests of a are served for one of b."""
    done = subprocess.run(
        [build_loadgen(), "-w", str(warmup), "-t", "2",
         f"127.0.0.1:{varnishd.port}",
         *(f"name={n},host={n}.example,conns=50" for n in "ab")],
        capture_output=True, text=True, check=True, timeout=TIMEOUT)
    a, b = json.loads(done.stdout.splitlines()[-1])["groups"]
    return float(a["rps"] / b["rps"])


def test_shares_follow_a_weight(varnishd: Varnishd, folder: Path) -> None:
    file = folder / "tenants"
    file.write_text("a a.example\nb b.example\n")
    text = HELLO.replace("sub vcl_recv {", f"""\
import sandpaper;
sub vcl_init {{ sandpaper.tenants_file("{file}"); }}
sub vcl_recv {{
{work_vcl(300)}""")
    varnishd.start(*room(text), "sandpaper_cores=1", vcl=text)
    assert 0.8 < ratio(varnishd, 1) < 1.25
    varnishd.cli("sandpaper.set a weight=3")
    assert 2.4 < ratio(varnishd, FOLLOWS) < 3.75
    file.write_text("a a.example\nb b.example weight=3\n")
    varnishd.cli("sandpaper.reload")
    assert 2.4 < 1 / ratio(varnishd, FOLLOWS) < 3.75
