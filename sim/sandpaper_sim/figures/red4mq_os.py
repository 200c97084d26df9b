# SPDX-License-Identifier: BSD-2-Clause
"""Two processes share a core, and nobody sends less: Figure 5 of RED_4 MQ.

Each process has a ring of 1024 packets. It serves a batch, and then yields the
core (section 3.1). The kernel ends its turn after a quantum of 1 ms. A sender
offers 8.22 million packets/s, half to each process, and ignores losses.

Costs are those of the paper, from its throughput with one process: 8.22, 2.5
and 0.288 million packets/s with 0, 1000 and 10,000 extra cycles. That with
100,000 is extrapolated. Switches between processes cost nothing here."""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import Any

from ..figure import Context, Figure, Result, judged, table, verdicts
from ..packets import MS, SECOND, Network, Queue
from ..red4mq import BATCH, NEAR

COSTS = {"0": 122, "1000": 400, "10000": 3472, "100000": 34_200}   # ns
OFFERED = 8.22e6 / 2            # packets/s of a process
RING, QUANTUM = 1024, 1 * MS
DELAY = 1000                    # ns, nobody waits for it
WINDOW = 1 << 18                # packets under way, not reached


def share(first: str, second: str, seed: int, until: int) -> dict[str, Any]:
    """Of two processes, by extra cycles. until: ms."""
    net = Network(seed)
    q = net.queue(Queue("fq", RING, batch=BATCH, quantum=QUANTUM))
    paths = [net.path(net.flow("constant"), [(q, COSTS[c])], DELAY,
                      start=n, rate=OFFERED, window=WINDOW)
             for n, c in enumerate((first, second))]
    net.run(until * MS)
    used = [net.served(p) for p in paths]
    return {"cycles": [first, second], "share": used[1] / sum(used),
            "packets_per_s": [net.stat(p).delivered * SECOND / net.now
                              for p in paths]}


def run(c: Context) -> Result:
    """See Figure."""
    until = 200 if c.quick else 400
    pairs = list(combinations_with_replacement(COSTS, 2))
    found = c.map(share, [(*p, c.seed, until) for p in pairs])
    by = {tuple(r["cycles"]): r for r in found}
    cheap, dear = by["0", "1000"]["packets_per_s"]
    most = by["0", "1000"]["share"]
    long = by["10000", "100000"]["share"]
    little = 1 - by["0", "100000"]["share"]
    judgements = [
        judged("0 and 1000 cycles: equal packets/s",
               f"{dear / cheap:.2f} times", abs(dear / cheap - 1) <= NEAR),
        judged("each forwards 1.25 million packets/s",
               f"{dear / 1e6:.2f} million", abs(dear / 1.25e6 - 1) <= 0.1),
        judged("the expensive one gets around 80 % of the CPU",
               f"{most:.0%}", abs(most - 0.8) <= NEAR),
        judged("10,000 and 100,000 cycles: the same CPU time",
               f"{long:.0%}", abs(long - 0.5) <= NEAR),
        judged("0 cycles and a full quantum: 10 % of the CPU",
               f"{little:.0%}", abs(little - 0.1) <= NEAR)]
    return Result(
        {"costs_ns": COSTS, "ring": RING, "quantum_ms": QUANTUM / MS,
         "offered_packets_per_s": 2 * OFFERED}, found,
        {"judgements": judgements}, [
            *table(("cycles, first and second", "CPU of the second",
                    "packets/s, first", "packets/s, second"),
                   [(", ".join(r["cycles"]), r["share"],
                     *(round(x) for x in r["packets_per_s"]))
                    for r in found]), *verdicts(judgements)])


def plot(figure: Any, data: dict[str, Any]) -> None:  # noqa: ANN401
    """See Figure."""
    axes = figure.subplots()
    rows = data["results"]
    names = [" and ".join(r["cycles"]) for r in rows]
    axes.barh(names, [r["share"] for r in rows])
    axes.axvline(0.5, color="black")
    axes.set(xlabel="CPU of the second process", ylabel="extra cycles")


FIGURES = [Figure("red4mq-fig5", "two processes on a core under the kernel's "
                  "scheduler", run, plot)]
