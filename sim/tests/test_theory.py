# SPDX-License-Identifier: BSD-2-Clause
"""The reference itself: known values, and fluids worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from sandpaper_sim.theory import Gps, erlang_c, mmc_wait, sharing_response


def ints(*x: int) -> np.ndarray:
    return np.array(x, np.int64)


def test_one_server_waits() -> None:
    # M/M/1: an arrival waits with probability rho, rho/(1 - rho) services.
    assert erlang_c(1, 0.8) == pytest.approx(0.8)
    assert mmc_wait(0.8, 1.0, 1) == pytest.approx(4.0)
    assert sharing_response(0.8, 1.0) == pytest.approx(5.0)


def test_two_servers_wait() -> None:
    # M/M/2: rho^2/(1 - rho^2) services of waiting, rho = load/2.
    assert mmc_wait(1.0, 1.0, 2) == pytest.approx(1 / 3)


def test_a_full_server_has_no_wait() -> None:
    with pytest.raises(ValueError, match="load 2 is not allowed: use above 0"):
        erlang_c(2, 2)


def test_fluid_of_two() -> None:
    """Rate 1; a has 10 from 0 on, b 10 from 4 on: a alone gets 4, both get
    half until a is done at 16, then b alone until 20."""
    got = Gps(1, [1, 1]).served(ints(0, 4), ints(0, 1), ints(10, 10),
                                ints(0, 4, 10, 16, 18, 20, 30))
    assert got[:, 0].tolist() == [0, 4, 7, 10, 10, 10, 10]
    assert got[:, 1].tolist() == [0, 0, 3, 6, 8, 10, 10]


def test_fluid_by_weight() -> None:
    """Weights 1 and 3, 8 each from 0 on, rate 2: b is done at 16/3, with
    a at 8/3; then a has all."""
    got = Gps(2, [1, 3]).served(ints(0, 0), ints(0, 1), ints(8, 8),
                                ints(0, 4, 6, 8))
    assert got[:, 1].tolist() == pytest.approx([0, 6, 8, 8])
    assert got[:, 0].tolist() == pytest.approx([0, 2, 4, 8])


def test_fluid_of_two_busy_periods() -> None:
    got = Gps(1, [1]).served(ints(0, 10, 12), ints(0, 0, 0), ints(3, 4, 1),
                             ints(2, 5, 11, 15, 20))
    assert got[:, 0].tolist() == [2, 3, 4, 8, 8]


def test_fluid_beside_who_always_has_work() -> None:
    got = Gps(4, [1, 1], always={0}).served(
        ints(5), ints(1), ints(10), ints(5, 10, 15))
    assert got[:, 0].tolist() == [20, 30, 50]
    assert got[:, 1].tolist() == [0, 10, 10]


def test_fluid_is_used_up() -> None:
    """Random work: what all get together is what the server can do."""
    rng = np.random.default_rng(7)
    t = np.sort(rng.integers(0, 10_000, 500))
    work = rng.integers(1, 30, 500)
    at = ints(*range(0, 12_000, 100))
    got = Gps(1, [1, 2, 3]).served(t, rng.integers(0, 3, 500), work, at)
    left, served, i = 0.0, [], 0
    for now in range(12_000):
        if now % 100 == 0:
            served.append(work[:i].sum() - left)
        while i < 500 and t[i] == now:
            left += work[i]
            i += 1
        left = max(0.0, left - 1)
    assert got.sum(axis=1) == pytest.approx(served, abs=1e-6)
