# SPDX-License-Identifier: BSD-2-Clause
"""What the manager says about parameters: values, and what is allowed."""

from __future__ import annotations

import pytest

from varnishd import Varnishd


@pytest.fixture(autouse=True)
def start(varnishd: Varnishd) -> None:
    """One varnishd, with defaults."""
    varnishd.start()


def refused(varnishd: Varnishd, name: str, value: str) -> list[str]:
    """Return the lines that say why."""
    done = varnishd.program("varnishadm", "param.set", name, value,
                            status=None)
    assert done.returncode != 0, done.stdout
    return (done.stdout + done.stderr).splitlines()


def value(varnishd: Varnishd, name: str) -> str:
    """Return a parameter's value."""
    return varnishd.cli("param.show", name).split("Value is: ")[1].split()[0]


def test_policies(varnishd: Varnishd) -> None:
    """Exactly those that can be set are said to be policies."""
    said = refused(varnishd, "sandpaper_policy", "lifo")
    policies = [line.split(None, 1) for line in said if line.startswith("  ")]
    assert '"lifo" is not a policy: use one of these' in said
    assert "mr3-rs" in [p[0] for p in policies]
    for name, summary in policies:
        varnishd.cli("param.set", "sandpaper_policy", name)
        assert value(varnishd, "sandpaper_policy") == name
        assert "null" not in summary
    assert len({p[0] for p in policies}) == len(policies)


def test_rates(varnishd: Varnishd) -> None:
    for said, rate in (("0", 0), ("10k", 10_000), ("20K", 20_000),
                       ("3m", 3_000_000), ("4M", 4_000_000),
                       ("5g", 5_000_000_000), ("10000G", 10**13),
                       ("123456", 123456)):
        varnishd.cli("param.set", "sandpaper_nic_rate", said)
        assert value(varnishd, "sandpaper_nic_rate") == str(rate)
    for wrong in ("9999", "10001G", "-1", "m", "5x", "5mm", "nan"):
        assert (f'"{wrong}" is not a rate: use 0 (no upper bound), or 10k to '
                "10000G bits/s") in refused(varnishd, "sandpaper_nic_rate",
                                            wrong)
    assert value(varnishd, "sandpaper_nic_rate") == "123456"


def test_counters(varnishd: Varnishd) -> None:
    assert "is too long: use at most" in "".join(
        refused(varnishd, "sandpaper_counter", 100 * "x"))
    said = refused(varnishd, "sandpaper_counter", "no_such_event")
    assert said[0].startswith('"no_such_event" is not a counter')
