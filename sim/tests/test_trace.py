# SPDX-License-Identifier: BSD-2-Clause
"""The binding decides as the library does in tests/unit/test_releaser_trace.c:
the same arrivals, the same hash of all decisions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sandpaper_sim.releaser import policies
from sandpaper_sim.server import REFRESH, SECOND, pool
from sandpaper_sim.workload import trace

FOLDER = Path(__file__).resolve().parents[2] / "tests" / "trace"
WEIGHTS = (0.5, 1, 2)
TENANTS, THREADS = 12, 4


def fnv(values: list[int]) -> int:
    """FNV-1a of 64 bits over 8 bytes a value, the least significant first."""
    h = 0xcbf29ce484222325
    for byte in np.array(values, "<i8").tobytes():
        h = (h ^ byte) * 0x100000001b3 % 2**64
    return h


def decisions(policy: str) -> int:
    rows = np.loadtxt(FOLDER / "arrivals.csv", np.int64, delimiter=",",
                      skiprows=2)
    server = pool(policy, THREADS, refresh=REFRESH)
    for i in range(TENANTS):
        server.tenant(WEIGHTS[i % 3])
    trace(server, [tuple(r) for r in rows.tolist()])
    server.run(10 * SECOND)
    done = server.releaser.records()
    assert len(done) == len(rows)
    done = done[np.lexsort((done["slot"], done["start"]))]
    return fnv([int(x) for r in done
                for x in (r["start"], r["slot"], r["tenant"])])


@pytest.mark.parametrize("policy", list(policies()))
def test_as_the_unit_test(policy: str) -> None:
    expected = dict(line.split() for line in
                    (FOLDER / "decisions.txt").read_text().splitlines())
    assert f"{decisions(policy):016x}" == expected[policy]
