# SPDX-License-Identifier: BSD-2-Clause
"""What the constants do that the paper of RED_4 MQ does not say, and how fast
the simulator of packets is."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from ..figure import Context, Figure, Result, judged, table, verdicts
from ..packets import MS, SECOND
from ..red4mq import BATCH, Flows, Setup, line, pair, parameters

RATIO, CPUS = 8, 4
KINDS = (("droptail", 1), ("red-4", 1), ("mq", BATCH))
SWEEP: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("as in the figures", "", {}),
    ("round trip", "5 ms", {"rtt": 5 * MS}),
    ("round trip", "80 ms", {"rtt": 80 * MS}),
    ("buffer, products", "0.5", {"buffer": 0.5}),
    ("buffer, products", "1.5", {"buffer": 1.5}),
    ("buffer, products", "2", {"buffer": 2.0}),
    ("buffer, products", "4", {"buffer": 4.0}),
    ("low threshold", "0.125", {"low": 0.125}),
    ("low threshold", "0.5", {"low": 0.5}),
    ("high threshold", "0.5", {"high": 0.5}),
    ("high threshold", "1", {"high": 1.0}),
    ("p_max", "0.02", {"p_max": 0.02}),
    ("p_max", "0.5", {"p_max": 0.5}),
    ("average, round trips", "none", {"average": 1e-6}),
    ("average, round trips", "0.25", {"average": 0.25}),
    ("average, round trips", "1", {"average": 1.0}),
    ("average, round trips", "2", {"average": 2.0}),
    ("RED's length", "work", {"by_work": True}),
    ("signal", "marks (ECN)", {"ecn": True}),
    ("jitter", "0.1 ms", {"jitter": MS // 10}),
    ("jitter", "5 ms", {"jitter": 5 * MS}),
    ("least timeout", "10 ms", {"min_rto": 10 * MS}),
    ("least timeout", "1 s", {"min_rto": SECOND}),
    ("packet", "375 bytes", {"cost": 30_000}),
    ("multipath flow", "fully coupled", {"long": "coupled"}))
CONTRACT = 1_000_000            # packets/s of CPU


def measure(constant: str, value: str, changes: dict[str, Any],
            until: int, seed: int) -> dict[str, Any]:
    """The figures of one setup, of one seed."""
    setup = replace(Setup(), **changes)
    found: dict[str, Any] = {"constant": constant, "value": value}
    for kind, batch in KINDS:
        found[f"share_{kind}"] = pair(
            kind, RATIO, batch, setup, until, seed)["share"]
        found[f"total_{kind}"] = line(
            kind, CPUS, batch, setup, until // 4, seed)["total"]
    found["keeps"] = found["total_mq"] / found["total_droptail"]
    return found


def sweep(c: Context) -> Result:
    """See Figure."""
    cases = SWEEP[:2] if c.quick else SWEEP
    until = 120 if c.quick else 420
    found = c.map(measure, [(*case, until, c.seed) for case in cases])
    rows = [(r["constant"], r["value"], r["share_droptail"],
             r["share_red-4"], r["share_mq"], r["total_droptail"],
             r["total_mq"], r["keeps"]) for r in found]
    return Result(
        parameters(Setup()) | {"ratio": RATIO, "cpus": CPUS,
                               "setup": asdict(Setup())}, found, {},
        table(("constant", "value", "share: droptail", "red-4", "mq",
               "total: droptail", "mq", "mq over droptail"), rows))


def plot_sweep(figure: Any, data: dict[str, Any]) -> None:  # noqa: ANN401
    """See Figure."""
    axes = figure.subplots()
    rows = data["results"]
    names = [f"{r['constant']} {r['value']}" for r in rows]
    for field in ("share_red-4", "share_mq", "keeps"):
        axes.plot([r[field] for r in rows], names, "o", label=field)
    axes.tick_params(labelsize="x-small")
    axes.set(xlim=(0, 1.05))
    axes.legend(fontsize="x-small")


def timed(name: str, make: Callable[[Flows], None],
          seed: int) -> dict[str, Any]:
    """Packets that were sent in a second of CPU."""
    f = Flows(Setup(), seed)
    make(f)
    began = time.process_time()
    f.run(200)
    spent = time.process_time() - began
    sent = sum(f.net.stat(p).sent for p in range(f.paths))
    return {"case": name, "packets": sent, "events": f.net.events,
            "cpu_s": spent, "packets_per_s": sent / spent}


def two(f: Flows, kind: str) -> None:
    """On a CPU."""
    q = f.net.queue(f.setup.queue(kind))
    for r in (1, RATIO):
        f.path(f.net.flow("reno"), [(q, f.setup.cost * r)])


def ten(f: Flows) -> None:
    """A path over ten CPUs. A packet counts once."""
    queues = [f.net.queue(f.setup.queue("mq")) for _ in range(10)]
    f.path(f.net.flow("reno"), [(q, f.setup.cost) for q in queues])


def hundred(f: Flows) -> None:
    """On a CPU."""
    q = f.net.queue(f.setup.queue("mq"))
    for _ in range(100):
        f.path(f.net.flow("reno"), [(q, f.setup.cost)])


def speed(c: Context) -> Result:
    """See Figure."""
    found = [timed(name, make, c.seed) for name, make in (
        ("two flows, droptail", lambda f: two(f, "droptail")),
        ("two flows, mq", lambda f: two(f, "mq")),
        ("a path of ten CPUs, mq", ten), ("100 flows, mq", hundred))]
    least = min(r["packets_per_s"] for r in found)
    judgements = [judged("a million packets per second of CPU",
                         f"at least {least / 1e6:.1f} million",
                         least >= CONTRACT)]
    return Result({}, found, {"judgements": judgements}, [
        *table(("case", "packets", "CPU (s)", "packets/s"),
               [(r["case"], r["packets"], r["cpu_s"],
                 round(r["packets_per_s"])) for r in found]),
        *verdicts(judgements)])


def plot_speed(figure: Any, data: dict[str, Any]) -> None:  # noqa: ANN401
    """See Figure."""
    axes = figure.subplots()
    axes.barh([r["case"] for r in data["results"]],
              [r["packets_per_s"] for r in data["results"]])
    axes.axvline(CONTRACT, color="black")
    axes.set_xlabel("packets per second of CPU")


FIGURES = [
    Figure("red4mq-sweep", "RED_4 MQ with other constants", sweep, plot_sweep),
    Figure("red4mq-speed", "simulated packets per second of CPU", speed,
           plot_speed)]
