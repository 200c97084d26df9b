# SPDX-License-Identifier: BSD-2-Clause
"""The binding of src/price, and the prices of a releaser's tenants."""

from __future__ import annotations

import pytest

from sandpaper_sim.price import BUFFER, Price, TenantPrices
from sandpaper_sim.releaser import KNOWN, Releaser
from sandpaper_sim.server import MS, SECOND


def test_the_congestion_of_a_queue_that_stays() -> None:
    p = Price(BUFFER)
    for part, low in ((0.2, 0.0), (0.5, 0.05), (0.75, 0.1), (1.5, 1.0)):
        p.set(0, round(part * BUFFER), MS, 0)
        assert p.congestion(1000 * SECOND) == pytest.approx(low, abs=1e-3)


def test_the_queues_are_added_and_the_cost_counts() -> None:
    p, now = Price(BUFFER), SECOND // 2
    for part in (0, 1):
        p.set(part, BUFFER, (1 + 3 * part) * MS, now)
    late = now + SECOND // 2
    assert p.congestion(late) > 1
    assert p.of(4 * MS, late) == pytest.approx(4 * p.congestion(late))


def test_a_tenant_s_price_is_by_its_waiting_requests() -> None:
    r = Releaser("mr3-rs", 1, estimator=KNOWN)
    cheap, dear = r.tenant(), r.tenant()
    prices = TenantPrices(r, BUFFER)
    for _ in range(40):
        r.enqueue(cheap, MS, 0, 0)
        r.enqueue(dear, 3 * MS, 0, 0)
    for t in (cheap, dear):
        prices.changed(t, 0)
    assert prices.of(cheap, SECOND // 2) == pytest.approx(
        prices.congestion(SECOND // 2))
    assert prices.of(dear, SECOND // 2) == pytest.approx(
        3 * prices.of(cheap, SECOND // 2))


def test_a_buffer_that_is_not_allowed() -> None:
    with pytest.raises(ValueError, match="buffer 0 is not allowed"):
        Price(0)
