# SPDX-License-Identifier: BSD-2-Clause
"""A host that measures only a part of the requests, drawn at random, as
varnishd does where measuring is dear (design of mr3-rs: "sampled with
probability p"). Requests above four times their charge are always measured,
with weight 1; another one with probability p, and what is settled of it then is
divided by p, so that on average all is."""

from __future__ import annotations

from typing import Any

import numpy as np

from .releaser import DEAR, SCALE_ONE, Releaser


class Sampled(Releaser):
    """p: 1 measures all. divided: by p; else what is drawn has weight 1.

    `variance`, ns^2, by tenant: of all that its draws added to its account,
    or took off it; (c - k)^2 (1/p - 1) a request, if it is divided."""

    def __init__(self, name: str, slots: int, p: float,
                 rng: np.random.Generator, *, divided: bool = True,
                 **options: Any) -> None:  # noqa: ANN401
        super().__init__(name, slots, **options)
        if not 0 < p <= 1:
            raise ValueError(f"p {p} is not allowed: use above 0, at most 1")
        self.variance: dict[int, float] = {}
        self._p = p
        self._scale = round(SCALE_ONE / p) if divided else SCALE_ONE
        self._draw = rng.random
        self._always: dict[int, bool] = {}      # a request

    def dequeue(self, slot: int, now: int, closed: int = 0) -> int:
        """See Releaser."""
        request = super().dequeue(slot, now, closed)
        if request >= 0:
            a = self.answer
            c = max(a.cpu, a.net)
            self._always[request] = c > DEAR * a.charge
            if not self._always[request]:
                self.variance[a.tenant] = self.variance.get(a.tenant, 0) + \
                    (c - a.charge)**2 * (1 / self._p - 1)
        return request

    def complete(self, request: int, now: int, scale: int = SCALE_ONE) -> None:
        """See Releaser."""
        if not self._always[request]:
            scale = self._scale if self._draw() < self._p else 0
        super().complete(request, now, scale)
