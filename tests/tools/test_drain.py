# SPDX-License-Identifier: BSD-2-Clause
"""sandpaper-drain, as it is installed: it waits until no request is left."""

from __future__ import annotations

import re
import subprocess

import pytest
from common import ROOT, TIMEOUT, until
from varnishd import Varnishd, answered

PROGRAM = f"{ROOT}/bin/sandpaper-drain"


def drain(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PROGRAM, *arguments], text=True, timeout=TIMEOUT,
                          capture_output=True, check=False)


def test_what_waits_is_served_before_the_stop(varnishd: Varnishd) -> None:
    varnishd.start()
    name = str(varnishd.folder / "n")
    varnishd.cli("debug.sandpaper.freeze")
    client = varnishd.ask("a.example")
    varnishd.cli("debug.sandpaper.wait 1")
    done = drain("-n", name, "-t", "0")
    assert re.fullmatch(
        r"sandpaper-drain: after \d+ s, requests left: 1\n", done.stdout)
    assert done.returncode == 1
    with subprocess.Popen([PROGRAM, "-n", name], stdout=subprocess.PIPE,
                          text=True) as waits:
        varnishd.cli("debug.sandpaper.thaw")
        answered([client])
        said, _ = waits.communicate(timeout=TIMEOUT)
    assert said.endswith(" s, requests left: 0\n")
    assert waits.returncode == 0
    assert varnishd.cli("sandpaper.drain").startswith("mode on\ndraining on\n")


def test_it_gives_a_load_balancer_time(varnishd: Varnishd) -> None:
    varnishd.start()
    with subprocess.Popen([PROGRAM, "-n", str(varnishd.folder / "n"), "-l", "2"],
                          stdout=subprocess.PIPE, text=True) as waits:
        until(lambda: "draining on" in varnishd.cli("sandpaper.drain"),
              "it does not drain")
        said, _ = waits.communicate(timeout=TIMEOUT)
    assert int(said.split()[2]) >= 2
    assert waits.returncode == 0


def test_what_cannot_be_counted_gets_all_the_time(varnishd: Varnishd) -> None:
    varnishd.start("sandpaper=off")
    done = drain("-n", str(varnishd.folder / "n"), "-t", "1")
    assert re.fullmatch(
        r"sandpaper-drain: after [1-9]\d* s, requests left: not known, since "
        r"the parameter sandpaper is off\n", done.stdout)
    assert done.returncode == 1


@pytest.mark.parametrize(("arguments", "says"), [
    (["-l", "31"], "-l 31 is more than -t 30\n"),
    (["-t", "1.5"], "-t 1.5 is not allowed: use seconds from 0 to 99999\n"),
    (["-l", "-1"], "-l -1 is not allowed: use seconds from 0 to 99999\n"),
    (["-t", "100000"], "-t 100000 is not allowed: use seconds "),
    (["now"], "now is not an option: see sandpaper-drain -h\n"),
    (["-n", "/nonexistent"], "varnishd does not answer: ")])
def test_a_wrong_option(arguments: list[str], says: str) -> None:
    done = drain(*arguments)
    assert f"sandpaper-drain: {says}" in done.stderr
    assert done.returncode == 2


def test_help() -> None:
    for option in ("-h", "--help"):
        assert drain(option).stdout.startswith("usage: sandpaper-drain [-n ")
    assert drain("-x").returncode == 2
