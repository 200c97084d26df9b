# SPDX-License-Identifier: BSD-2-Clause
"""Answers of sandpaper.list and samples that are made up, for sandpaper-top."""

from __future__ import annotations

from typing import Any

from sandpaper_top.rates import History, Rates, Row, Sample

BOUNDS = [0.00025 * 2 ** k for k in range(16)]


def tenant(name: str, completed: float = 0, cpu_s: float = 0,
           octets: float = 0, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the fields of a tenant whose requests waited for 0.25 s."""
    return {"tenant": name, "weight": 1, "waiting": 0, "running": 0,
            "completed": completed, "refused": 0, "shed": 0, "cpu_s": cpu_s,
            "bytes": octets, "wait_s": completed * 0.25,
            "waits": [0] * 10 + [completed] + [0] * 6, **more}


def answer(*tenants: dict[str, Any], **more: Any  # noqa: ANN401
           ) -> dict[str, Any]:
    """Return what sandpaper.list says of them."""
    alone = [t for t in tenants if "members" not in t]
    return {"mode": "on", "policy": "mr3-rs", "slots": 10, "running": 0,
            "waiting": 0, "tenants": len(tenants), "nic_rate_bps": 8000,
            "nic_closed_s": 0, "started": 1000, "wait_bounds_s": BOUNDS,
            "sums": {what: sum(t[what] for t in alone)
                     for what in ("cpu_s", "bytes")},
            "list": list(tenants), **more}


def between(old: dict[str, Any], new: dict[str, Any],
            seconds: float = 1.0) -> Sample:
    """Return the sample of two answers."""
    rates = Rates()
    assert rates.add(old, 10.0) is None
    found = rates.add(new, 10.0 + seconds)
    assert found is not None
    return found


def row(name: str, group: str = "", rps: float = 5.0, used: float = 0.1,
        **more: Any) -> Row:  # noqa: ANN401
    """Return a row of which only this counts."""
    return Row(**{"name": name, "group": group, "weight": 1.0, "rps": rps,
                  "used": used, "cpu": 0.1, "bits": 1e6, "waiting": 1,
                  "running": 0, "wait_s": 0.5, "p99_s": 1.0, "refused": 0.0,
                  **more})


def many(tenants: int, looks: int) -> Sample:
    """Return a sample of so many tenants with so long a history."""
    rows = []
    for n in range(tenants):
        figure = n * 7919 % tenants  # a permutation
        made = row(f"tenant-{n:05}.example", rps=figure, used=1 / tenants,
                   waiting=figure % 50)
        made.history = History()
        for look in range(looks):
            made.until = made.history.add(figure + look % 5, 0.1, 1, 0.01)
        rows.append(made)
    return Sample("on", "mr3-rs", 10, 10, 99, tenants, 1.5, 1e8, 1e9, "cpu",
                  rows, "none", 1.0, "12:00:00")
