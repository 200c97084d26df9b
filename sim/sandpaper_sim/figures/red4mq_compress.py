# SPDX-License-Identifier: BSD-2-Clause
"""To compress or not: Figure 12 of RED_4 MQ.

A multipath flow L goes from one datacenter to another one. Its packets cross
the WAN as they are, or CPUs compress them, and decompress them behind the WAN.
Then they use a third of the WAN's time. Reno flows make the WAN busy, or the
first CPU.

The paper has no figures of this, so all constants are a choice: a WAN and CPUs
of 100 Mbit/s of data that are not compressed, the ratio 3, four flows. In front
of the CPUs is RED_4 MQ. In front of the WAN is droptail, or RED_4 with the size
of a packet as its cost."""

from __future__ import annotations

from typing import Any

from ..figure import Context, Figure, Result, judged, table, verdicts, where
from ..red4mq import MBIT, Flows, Setup, medians, parameters, seeds
from ..server import SECOND

RATIO, FLOWS = 3, 4
BUSY = (("nothing", 0, 0), ("the CPU", 0, FLOWS), ("the WAN", FLOWS, 0),
        ("both", FLOWS, FLOWS))     # and flows on the WAN, on the CPU
WANS = ("droptail", "red-4")


def simulate(wan_kind: str, busy: str, on_wan: int, on_cpu: int,
             setup: Setup, until: int, seed: int) -> dict[str, Any]:
    """L's rates, Mbit/s of data that are not compressed."""
    f = Flows(setup, seed)
    wan = f.net.queue(setup.queue(wan_kind, 1))
    cpus = [f.net.queue(setup.queue("mq")) for _ in range(2)]
    flow, cost = f.net.flow("lia"), setup.cost
    plain = f.path(flow, [(wan, cost)])
    small = f.path(flow, [(cpus[0], cost), (wan, cost // RATIO),
                          (cpus[1], cost)])
    for n, q in ((on_wan, wan), (on_cpu, cpus[0])):
        for _ in range(n):
            f.path(f.net.flow("reno"), [(q, cost)])
    f.run(until)
    rates = [MBIT * f.rate(p) * cost / SECOND for p in (plain, small)]
    return {"wan": wan_kind, "busy": busy, "seed": seed,
            "plain_mbit_s": rates[0], "compressed_mbit_s": rates[1],
            "compressed": rates[1] / sum(rates),
            "plain": f.found(plain), "small": f.found(small)}


def run(c: Context) -> Result:
    """See Figure."""
    setup, until = Setup(), 80 if c.quick else 220
    found = c.map(simulate, [(kind, *case, setup, until, s) for kind in WANS
                             for case in BUSY
                             for s in seeds(c.seed, c.quick)])
    part = medians(found, lambda r: (r["wan"], r["busy"]),
                   lambda r: r["compressed"])
    judgements = [
        j for kind in WANS for j in (
            judged(f"{kind}: the CPU is busy, most of L is not compressed",
                   f"{part[kind, 'the CPU']:.0%} compressed",
                   part[kind, "the CPU"] < 0.5),
            judged(f"{kind}: the WAN is busy, most of L is compressed",
                   f"{part[kind, 'the WAN']:.0%} compressed",
                   part[kind, "the WAN"] > 0.5))]
    rows = []
    for kind in WANS:
        for busy, _, _ in BUSY:
            of = where(found, wan=kind, busy=busy)
            rates = [medians(of, lambda _: 0, lambda r, f=f: r[f])[0]
                     for f in ("plain_mbit_s", "compressed_mbit_s")]
            rows.append((kind, busy, *rates, part[kind, busy]))
    return Result(
        parameters(setup) | {"ratio": RATIO, "flows": FLOWS}, found,
        {"judgements": judgements}, [
            *table(("WAN", "busy", "plain, Mbit/s", "compressed, Mbit/s",
                    "part compressed"), rows), *verdicts(judgements)])


def plot(figure: Any, data: dict[str, Any]) -> None:  # noqa: ANN401
    """See Figure."""
    axes = figure.subplots()
    names = {}
    for field in ("plain_mbit_s", "compressed_mbit_s"):
        names[field] = medians(
            data["results"], lambda r: f"{r['wan']}, busy: {r['busy']}",
            lambda r, f=field: r[f])
    plain, small = names.values()
    axes.barh(list(plain), list(plain.values()), label="as they are")
    axes.barh(list(small), list(small.values()), left=list(plain.values()),
              label="compressed")
    axes.set(xlabel="L's throughput, Mbit/s")
    axes.legend()


FIGURES = [Figure("red4mq-fig12", "a multipath flow: over the WAN as it is, or "
                  "compressed", run, plot)]
