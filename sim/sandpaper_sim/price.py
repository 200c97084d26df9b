# SPDX-License-Identifier: BSD-2-Clause
"""The price of src/price, the same object code as in varnishd.

A queue is how long the CPU needs for what waits, ns, as in varnishd's
spd_price.c: the waiting requests of a tenant, each at the tenant's estimate.
Prices here are those of cpu. Nothing waits for net in these models."""

from __future__ import annotations

from _sandpaper_glue import ffi, lib

from .releaser import CPU, Releaser

BUFFER = 20_000_000             # ns, as sandpaper_standing


class Price:
    """Of one CPU: the congestion of the sum of all queues, times the cost."""

    def __init__(self, buffer: int = BUFFER) -> None:
        if buffer <= 0:
            raise ValueError(f"buffer {buffer} is not allowed: use above 0")
        self._price = ffi.new("struct price *")
        self._parts: dict[int, object] = {}
        self._queue, self._cost = ffi.new("int64_t[2]"), ffi.new("int64_t[2]")
        self._buffer = buffer

    def set(self, part: int, queue: int, cost: int, now: int) -> None:
        """Note what waits in this part of the queues.

        queue: ns of CPU; cost: of its next request, ns; 0: not known."""
        if part not in self._parts:
            self._parts[part] = ffi.new("struct price_part *")
        self._queue[CPU], self._cost[CPU] = queue, cost
        lib.PRICE_Set(self._price, self._parts[part], self._queue, self._cost,
                      now)

    def congestion(self, now: int) -> float:
        """0 or more."""
        return lib.PRICE_Congestion(self._price, CPU, self._buffer, now)

    def of(self, cost: int, now: int) -> float:
        """The congestion times the cost, over the least of the last second."""
        return lib.PRICE_Of(self._price, CPU, cost, self._buffer, now)


class TenantPrices:
    """The prices of a releaser's tenants, one congestion for all."""

    def __init__(self, releaser: Releaser, buffer: int = BUFFER) -> None:
        self._releaser, self._price = releaser, Price(buffer)
        self._stat = ffi.new("struct rel_tenant_stat *")

    def changed(self, tenant: int, now: int) -> None:
        """The tenant's queue has changed."""
        st = self._releaser.into(tenant, self._stat)
        self._price.set(tenant, st.waiting * st.estimate[CPU],
                        st.estimate[CPU], now)

    def of(self, tenant: int, now: int) -> float:
        """The price of the tenant's next request."""
        st = self._releaser.into(tenant, self._stat)
        return self._price.of(st.estimate[CPU], now)

    def congestion(self, now: int) -> float:
        """The same for all tenants."""
        return self._price.congestion(now)
