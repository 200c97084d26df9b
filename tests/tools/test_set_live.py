# SPDX-License-Identifier: BSD-2-Clause
"""A weight that is changed under load: the shares follow."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from common import TIMEOUT
from sandpaper_bench.load import build_loadgen
from sandpaper_bench.work import room, work_vcl
from varnishd import HELLO, Varnishd

FOLLOWS = 2  # seconds: the longest that the shares may take
WINDOWS = 5  # at most, until one is undisturbed


def ratio(varnishd: Varnishd) -> float:
    """Return how many requests of a are served for one of b.

    In a window in which each of them had answers all the time.
    """
    for _ in range(WINDOWS):
        done = subprocess.run(
            [build_loadgen(), "-w", str(FOLLOWS), "-t", "2",
             f"127.0.0.1:{varnishd.port}",
             *(f"name={n},host={n}.example,conns=300" for n in "ab")],
            capture_output=True, text=True, check=True, timeout=TIMEOUT)
        groups = json.loads(done.stdout.splitlines()[-1])["groups"]
        if all(min(group["slices"][:-1]) > 0 for group in groups):
            a, b = groups
            return float(a["rps"] / b["rps"])
    pytest.fail(f"never undisturbed in {WINDOWS} windows")


def test_shares_follow_a_weight(varnishd: Varnishd, folder: Path) -> None:
    file = folder / "tenants"
    file.write_text("a a.example\nb b.example\n")
    text = HELLO.replace("sub vcl_recv {", f"""\
import sandpaper;
sub vcl_init {{ sandpaper.tenants_file("{file}"); }}
sub vcl_recv {{
{work_vcl(300)}""")
    varnishd.start(*room(text), "sandpaper_cores=1", vcl=text)
    assert 0.8 < ratio(varnishd) < 1.25
    varnishd.cli("sandpaper.set a weight=3")
    assert 2.4 < ratio(varnishd) < 3.75
    file.write_text("a a.example\nb b.example weight=3\n")
    varnishd.cli("sandpaper.reload")
    assert 2.4 < 1 / ratio(varnishd) < 3.75
