# SPDX-License-Identifier: BSD-2-Clause
"""Who asks for what, and when: costs, and the loops that send requests.

All that is random comes from a generator named by (seed, name), so that equal
seeds give equal results whatever else is simulated beside it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .releaser import COST_MAX
from .server import SECOND, Server, Timer

Ints = NDArray[np.int64]
BLOCK = 1024                    # that many are drawn at once


def generator(seed: int, *name: object) -> np.random.Generator:
    """The one of this name."""
    text = "/".join(map(str, name)).encode()
    key = int.from_bytes(hashlib.sha256(text).digest()[:8], "big")
    return np.random.default_rng([seed, key])


class Costs(Protocol):
    """A distribution of costs, ns."""

    def draw(self, rng: np.random.Generator, n: int) -> Ints:
        """N of them, 1 to COST_MAX."""
        ...


def _costs(x: NDArray[np.float64]) -> Ints:
    return np.clip(np.rint(x), 1, COST_MAX).astype(np.int64)


@dataclass(frozen=True)
class Constant:
    """Each request costs the same, ns."""

    ns: int

    def draw(self, rng: np.random.Generator, n: int) -> Ints:
        """See Costs."""
        return np.full(n, self.ns, np.int64)


@dataclass(frozen=True)
class Normal:
    """Mean and standard deviation, ns."""

    mean: float
    sd: float

    def draw(self, rng: np.random.Generator, n: int) -> Ints:
        """See Costs."""
        return _costs(rng.normal(self.mean, self.sd, n))


@dataclass(frozen=True)
class Lognormal:
    """Median, ns; sigma of the logarithm; none costs more than `most`, ns."""

    median: float
    sigma: float
    most: float = COST_MAX

    def draw(self, rng: np.random.Generator, n: int) -> Ints:
        """See Costs."""
        x = self.median * np.exp(rng.normal(0, self.sigma, n))
        return _costs(np.minimum(x, self.most))


@dataclass(frozen=True)
class Exponential:
    """Mean, ns."""

    mean: float

    def draw(self, rng: np.random.Generator, n: int) -> Ints:
        """See Costs."""
        return _costs(rng.exponential(self.mean, n))


def stream(costs: Costs, rng: np.random.Generator) -> Iterator[int]:
    """Without end."""
    while True:
        yield from costs.draw(rng, BLOCK).tolist()


def closed(server: Server, tenant: int, connections: int,
           cpu: Iterator[int], net: Iterator[int] | None = None,
           think: Iterator[int] | None = None) -> None:
    """So many connections, each with one request at a time.

    think: ns from an answer to the next request; None: none."""
    take_cpu = cpu.__next__
    take_net = (net or repeat(0)).__next__

    def send() -> None:
        server.submit(tenant, take_cpu(), take_net())

    def wait() -> None:
        assert think is not None
        server.at(server.env.now + next(think), send)

    def begin() -> None:
        for _ in range(connections):
            send()

    server.done[tenant] = send if think is None else wait
    server.at(0, begin)


def poisson(server: Server, tenant: int, rate: float, cpu: Iterator[int],
            rng: np.random.Generator, net: Iterator[int] | None = None,
            ) -> None:
    """Arrivals at `rate` a second, whatever is answered."""
    gaps = stream(Exponential(SECOND / rate), rng)
    sizes = net or repeat(0)

    def arrive(timer: Timer) -> None:
        server.submit(tenant, next(cpu), next(sizes))
        timer.start(next(gaps))

    Timer(server.env, arrive).start(next(gaps))


def trace(server: Server, rows: Iterable[tuple[int, int, int, int]]) -> None:
    """Rows (time, tenant, cpu, net), ns, in order of time."""
    left = iter(rows)

    def arrive(timer: Timer, row: tuple[int, int, int, int] | None) -> None:
        while row is not None and row[0] == server.env.now:
            server.submit(*row[1:])
            row = next(left, None)
        plan(row)

    def plan(row: tuple[int, int, int, int] | None) -> None:
        if row is not None:
            Timer(server.env, lambda t: arrive(t, row)).start(
                row[0] - server.env.now)

    plan(next(left, None))
