# SPDX-License-Identifier: BSD-2-Clause
"""The metrics on what can be worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from sandpaper_sim import metrics
from sandpaper_sim.releaser import KNOWN
from sandpaper_sim.server import MS, pool
from sandpaper_sim.workload import trace


def test_received() -> None:
    got = metrics.received(np.array([2, 3]), np.array([6, 4]),
                           np.array([0, 2, 3, 4, 5, 6, 9]))
    assert got.tolist() == [0, 0, 1, 3, 4, 5, 5]


def test_service_of_what_runs() -> None:
    """A request that runs counts for what it has got."""
    server = pool("fifo", 2, estimator=KNOWN)
    server.tenant()
    server.tenant()
    trace(server, [(0, 0, 4 * MS, 0), (0, 1, 100 * MS, 0), (0, 0, MS, 0)])
    server.run(10 * MS)
    rows = metrics.spells(server.releaser)
    at = metrics.every(0, 10 * MS, 5 * MS)
    assert metrics.services(rows, 2, at).tolist() == \
        [[0, 0], [5 * MS, 5 * MS], [5 * MS, 10 * MS]]
    assert metrics.service(rows, 1, at).tolist() == [0, 5 * MS, 10 * MS]
    assert metrics.latency(rows, 0).tolist() == [4 * MS, 5 * MS]


def test_p99_is_a_sample() -> None:
    assert metrics.p99(np.arange(1, 101)) == 100
    assert metrics.p99(np.arange(1, 1001)) == 991
    assert np.isnan(metrics.p99(np.array([], np.int64)))


@pytest.mark.parametrize(("x", "expected"), [
    ([1, 1, 1, 1], 0), ([0, 0, 0, 1], 0.75), ([1, 3], 0.25), ([0, 0], 0)])
def test_gini(x: list[float], expected: float) -> None:
    assert metrics.gini(np.array(x)) == pytest.approx(expected)


def test_fairness_bound() -> None:
    assert metrics.fairness_bound(20, 3.0) == 2 * 20 * 3 + 2 * 3


def test_empirical_bound_is_over_all_intervals() -> None:
    a = np.array([0., 4, 4, 8])
    b = np.array([0., 0, 6, 6])
    # a - b: 0, 4, -2, 2; from the second time to the third it is 6.
    assert metrics.empirical_bound(a, b) == 6
