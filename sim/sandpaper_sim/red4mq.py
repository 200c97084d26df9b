# SPDX-License-Identifier: BSD-2-Clause
"""Flows that share CPUs by congestion control, as in the paper of RED_4 MQ.

L. Vasilescu, V. Olteanu and C. Raiciu, "Sharing CPUs via endpoint congestion
control", KBNets 2017. The paper says: a CPU processes a flow at 100 Mbit/s, the
batch is 1024. It does not say these, so they are a choice, and red4mq-sweep
varies them: packets of 1500 bytes, the round trip, the buffer, RED's
constants, the jitter, and the least retransmission timeout.

The length of RED's average and the jitter did change after the first runs.
Without an average a burst of the cheap flow sees a longer queue than the
expensive flow's packets, so the cheap flow had 0.2 to 0.3 of the CPU. Without
jitter, droptail drops the packets of one flow only (see sim/packets)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from .packets import MIN_RTO, MS, SECOND, Network, Queue, Stat
from .workload import generator

COST = 120_000                  # ns of a packet: 1500 bytes at 100 Mbit/s
MBIT = 100                      # Mbit/s of a CPU
BATCH = 1024                    # packets, section 3
SPREAD = SECOND                 # flows begin within this time
WARM = 20                       # s
SEEDS = 3
NEAR = 0.05                     # of a formula
FAIR = (0.45, 0.55)             # within 10 % of the half


@dataclass(frozen=True)
class Setup:
    """All that the paper does not say. Times are ns.

    buffer: bandwidth-delay products. average: of RED's length, round trips.
    low, high: parts of the buffer. See packets.Queue for the others."""

    rtt: int = 20 * MS
    buffer: float = 1.0
    low: float = 0.25
    high: float = 0.75
    p_max: float = 0.1
    average: float = 0.5
    by_work: bool = False
    exponent: float = 2.0
    ecn: bool = False
    jitter: int = MS
    min_rto: int = MIN_RTO
    cost: int = COST
    sender: str = "reno"
    long: str = "lia"           # of the multipath flow

    @property
    def product(self) -> float:
        """The bandwidth-delay product in packets."""
        return self.rtt / self.cost

    def queue(self, kind: str, batch: int = BATCH) -> Queue:
        """In front of a CPU."""
        return Queue(
            kind, round(self.buffer * self.product), self.low, self.high,
            self.p_max, self.exponent,
            min(1.0, 1 / (self.average * self.product)), batch,
            ecn=self.ecn, by_work=self.by_work)


class Flows:
    """A network whose flows begin at random times."""

    def __init__(self, setup: Setup, seed: int) -> None:
        self.setup = setup
        self.net = Network(seed)
        self._starts = generator(seed, "red4mq", "starts")
        self._before: list[tuple[Stat, list[int]]] = []
        self._hops: list[int] = []
        self._begin = 0

    def path(self, flow: int, hops: Sequence[tuple[int, int]]) -> int:
        """Of the flow, with the setup's delays."""
        self._hops.append(len(hops))
        return self.net.path(
            flow, hops, self.setup.rtt, jitter=self.setup.jitter,
            min_rto=self.setup.min_rto,
            start=int(self._starts.integers(SPREAD)))

    def run(self, until: int, warm: int = WARM) -> None:
        """To the end, s; what is asked then is of the time after warm."""
        self.net.run(warm * SECOND)
        self._begin = self.net.now
        self._before = [
            (self.net.stat(p), [self.net.served(p, h) for h in range(n)])
            for p, n in enumerate(self._hops)]
        self.net.run(until * SECOND)

    @property
    def paths(self) -> int:
        """How many there are."""
        return len(self._hops)

    @property
    def _took(self) -> int:
        return self.net.now - self._begin

    def cpu(self, path: int, hop: int = 0) -> float:
        """The part of a CPU that the path used."""
        return (self.net.served(path, hop)
                - self._before[path][1][hop]) / self._took

    def rate(self, path: int) -> float:
        """Goodput in packets/s."""
        a, b = self._before[path][0], self.net.stat(path)
        return (b.delivered - b.spurious - a.delivered + a.spurious
                ) * SECOND / self._took

    def found(self, path: int) -> dict[str, Any]:
        """Window, losses and timeouts: why a rate is what it is."""
        a, b = self._before[path][0], self.net.stat(path)
        return {"window": (b.window_ns - a.window_ns) / self._took,
                "rtt_ms": (b.rtt_sum - a.rtt_sum) / MS
                / max(1, b.rtt_samples - a.rtt_samples),
                "lost": (b.lost - a.lost) / max(1, b.sent - a.sent),
                "marked": (b.marked - a.marked) / max(1, b.sent - a.sent),
                "timeouts": b.timeouts - a.timeouts}


def pair(kind: str, ratio: int, batch: int, setup: Setup, until: int,
         seed: int) -> dict[str, Any]:
    """Two flows on a CPU; a packet of the second costs ratio times as much.

    share: the CPU time of the first, of both."""
    f = Flows(setup, seed)
    q = f.net.queue(setup.queue(kind, batch))
    cheap, dear = (f.path(f.net.flow(setup.sender), [(q, setup.cost * r)])
                   for r in (1, ratio))
    f.run(until)
    used = f.cpu(cheap), f.cpu(dear)
    return {"kind": kind, "ratio": ratio, "batch": batch, "seed": seed,
            "share": used[0] / sum(used), "busy": sum(used),
            "cheap": f.found(cheap), "dear": f.found(dear)}


def line(kind: str, cpus: int, batch: int, setup: Setup, until: int,
         seed: int) -> dict[str, Any]:
    """Figure 7: a multipath flow L crosses n CPUs, or one of its own.

    Each of the n CPUs has a short flow, too. total: over the best, which is
    all CPUs full and nothing of L on the n. Rates are parts of a CPU's."""
    f = Flows(setup, seed)
    shared = [f.net.queue(setup.queue(kind, batch)) for _ in range(cpus)]
    own = f.net.queue(setup.queue(kind, batch))
    flow = f.net.flow(setup.long)
    first = f.path(flow, [(q, setup.cost) for q in shared])
    second = f.path(flow, [(own, setup.cost)])
    short = [f.path(f.net.flow(setup.sender), [(q, setup.cost)])
             for q in shared]
    f.run(until)
    rates = [f.rate(p) * setup.cost / SECOND for p in (first, second, *short)]
    return {"kind": kind, "cpus": cpus, "batch": batch, "seed": seed,
            "shared": rates[0], "own": rates[1],
            "short": sum(rates[2:]) / cpus,
            "total": sum(rates) / (1 + cpus),
            "first": f.found(first), "second": f.found(second),
            "other": f.found(short[0])}


def jain(x: Sequence[float]) -> float:
    """Jain's index: 1 if all are equal, 1/n if one has all."""
    return sum(x)**2 / len(x) / sum(v * v for v in x)


def crowd(kind: str, costs: Sequence[int], flows: int, batch: int,
          setup: Setup, until: int, seed: int) -> dict[str, Any]:
    """Many flows on a CPU, whose packets cost the setup's, times these."""
    f = Flows(setup, seed)
    q = f.net.queue(setup.queue(kind, batch))
    ratios = [costs[i % len(costs)] for i in range(flows)]
    paths = [f.path(f.net.flow(setup.sender), [(q, setup.cost * r)])
             for r in ratios]
    f.run(until)
    used = [f.cpu(p) for p in paths]
    return {"kind": kind, "costs": list(costs), "flows": flows,
            "batch": batch, "seed": seed, "jain": jain(used),
            "busy": sum(used),
            "timeouts": sum(f.found(p)["timeouts"] for p in paths),
            "by_cost": [sum(u for u, r in zip(used, ratios, strict=True)
                            if r == c) / ratios.count(c) * flows / sum(used)
                        for c in costs]}


def medians(rows: Sequence[dict[str, Any]], key: Callable[[dict[str, Any]],
            object], value: Callable[[dict[str, Any]], float],
            ) -> dict[Any, float]:
    """Of the seeds, by key."""
    found: dict[Any, list[float]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(value(row))
    return {k: median(v) for k, v in found.items()}


def seeds(seed: int, quick: bool) -> range:
    """Of one figure's runs."""
    return range(seed, seed + (1 if quick else SEEDS))


def parameters(setup: Setup) -> dict[str, Any]:
    """For the JSON."""
    return {"rtt_ms": setup.rtt / MS, "packet_us": setup.cost / 1000,
            "buffer_packets": round(setup.buffer * setup.product),
            "low": setup.low, "high": setup.high, "p_max": setup.p_max,
            "average_rtts": setup.average, "jitter_ms": setup.jitter / MS,
            "min_rto_ms": setup.min_rto / MS, "warm_s": WARM}
