# SPDX-License-Identifier: BSD-2-Clause
"""The packages' reload-vcl: it finds the VCL file of a running varnishd."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from common import ROOT, TIMEOUT, TOP
from varnishd import HELLO, Varnishd

RELOAD = TOP / "packaging" / "debian" / "reload-vcl"


def reload(varnishd: Varnishd) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [RELOAD, str(varnishd.process.pid)], capture_output=True, text=True,
        env=os.environ | {"PATH": f"{ROOT}/bin:{os.environ['PATH']}"},
        check=False, timeout=TIMEOUT)


def active(varnishd: Varnishd) -> str:
    """Return the name of the VCL in use."""
    return next(line.split()[-1]
                for line in varnishd.cli("vcl.list").splitlines()
                if line.startswith("active"))


@pytest.mark.parametrize("arguments", [
    ["-f", "FILE"], ["-fFILE"], ["-Ff", "FILE"], ["-FfFILE"],
    ["-fFILE", "-pfeature=+http2", "-p", "default_ttl=9", "-hcritbit"]],
    ids=" ".join)
def test_forms_of_the_option(varnishd: Varnishd, folder: Path,
                             arguments: list[str]) -> None:
    file = folder / 'my "own" \\ vcl'
    file.write_text(HELLO)
    varnishd.start(vcl="", arguments=[a.replace("FILE", str(file))
                                      for a in arguments])
    done = reload(varnishd)
    assert done.returncode == 0, done.stderr
    assert active(varnishd).startswith("reload_")


def test_an_error_changes_nothing(varnishd: Varnishd) -> None:
    varnishd.start()
    (varnishd.folder / "vcl").write_text("vcl 4.1; this is wrong")
    done = reload(varnishd)
    assert done.returncode == 1
    assert f"{varnishd.folder}/vcl: the VCL in use stays" in done.stderr
    assert active(varnishd) == "boot"


def test_no_file(varnishd: Varnishd) -> None:
    varnishd.start(vcl="", arguments=["-b", "none"])
    done = reload(varnishd)
    assert done.returncode == 1
    assert "was started without -f: use vcl.load" in done.stderr
