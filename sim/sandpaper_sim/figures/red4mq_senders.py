# SPDX-License-Identifier: BSD-2-Clause
"""Other senders than Reno with RED_4: which exponent the cost needs.

If a window goes with p^(-1/e), RED_4 needs the exponent e: then a packet that
costs c times as much has a window that is c times smaller. By theory e is 2 of
Reno, 4/3 of CUBIC (RFC 9438, section 5.1) and 1 of DCTCP, by marks. CUBIC has
it only where it is above its Reno-friendly window, so its round trip is 200 ms
here. BBR does not look at losses."""

from __future__ import annotations

from math import log
from typing import Any

from ..figure import Context, Figure, Result, judged, table, verdicts, where
from ..packets import LARGEST, MS, SECOND, Network, Queue
from ..red4mq import (
    BATCH,
    FAIR,
    Setup,
    medians,
    pair,
    parameters,
    seeds,
)

LONG = 200 * MS
THEORY = {"reno": 2.0, "cubic": 4 / 3, "dctcp": 1.0}
NEAR = 0.1                      # of an exponent
# Sender, round trip, by marks, two probabilities, s
WINDOWS = (("reno", 20 * MS, False, (1e-4, 1e-3), 4000),
           ("cubic", LONG, False, (3e-5, 3e-4), 8000),
           ("dctcp", 20 * MS, True, (3e-3, 3e-2), 1000),
           ("bbr", 20 * MS, False, (1e-3, 3e-2), 40))
BBR_BDP = 167                   # packets, where BBR has a bottleneck
RATIOS = (2, 4, 8)
SHARES = (("reno", Setup()), ("cubic", Setup(
    sender="cubic", exponent=4 / 3, rtt=LONG)),
    ("cubic, 20 ms, 2", Setup(sender="cubic")),
    ("dctcp", Setup(sender="dctcp", exponent=1.0, ecn=True)),
    ("bbr", Setup(sender="bbr")))
KINDS = (("droptail", 1), ("red-4", 1), ("mq", BATCH))


def window(sender: str, rtt: int, marks: bool, p: float, until: int,
           seed: int) -> dict[str, Any]:
    """Packets a round trip of one flow, if each packet is lost at random.

    BBR has a bottleneck: without one its rate has no bound."""
    net = Network(seed)
    cost = 20 * MS // BBR_BDP if sender == "bbr" else 1000
    q = net.queue(Queue("droptail", LARGEST // 4))
    path = net.path(net.flow(sender), [(q, cost)], rtt, window=1 << 16,
                    loss=0.0 if marks else p, mark=p if marks else 0.0)
    net.run(until * SECOND // 10)
    before = net.stat(path).delivered
    net.run(until * SECOND)
    took = net.now - until * SECOND // 10
    return {"sender": sender, "p": p, "window":
            (net.stat(path).delivered - before) * rtt / took}


def run(c: Context) -> Result:
    """See Figure."""
    windows = c.map(window, [
        (name, rtt, marks, p, until // 10 if c.quick else until, c.seed)
        for name, rtt, marks, both, until in WINDOWS for p in both])
    exponents = {}
    for low, high in zip(windows[::2], windows[1::2], strict=True):
        if low["sender"] in THEORY:
            exponents[low["sender"]] = (log(high["p"] / low["p"])
                                        / log(low["window"] / high["window"]))
    bbr = [w["window"] for w in where(windows, sender="bbr")]
    shares = []
    for name, setup in SHARES:
        until = 1200 if setup.rtt == LONG else 420
        rows = c.map(pair, [(kind, r, batch, setup,
                             until // 4 if c.quick else until, s)
                            for kind, batch in KINDS for r in RATIOS
                            for s in seeds(c.seed, c.quick)])
        shares += [r | {"name": name} for r in rows]
    share = medians(shares, lambda r: (r["name"], r["kind"], r["ratio"]),
                    lambda r: r["share"])

    def span(name: str, kind: str) -> list[float]:
        return [share[name, kind, r] for r in RATIOS]
    judgements = [
        *(judged(f"{name}: the exponent is {e:.2f}",
                 f"{exponents[name]:.2f}", abs(exponents[name] - e) <= NEAR)
          for name, e in THEORY.items()),
        *(judged(f"{name} with its exponent, {kind}: within 10 % of the "
                 "half, r = 2 to 8",
                 ", ".join(f"{x:.3f}" for x in span(name, kind)),
                 all(FAIR[0] <= x <= FAIR[1] for x in span(name, kind)))
          for name in THEORY for kind in ("red-4", "mq")),
        judged("cubic at 20 ms is Reno-friendly: fair with the exponent 2",
               ", ".join(f"{x:.3f}" for x in span("cubic, 20 ms, 2",
                                                  "red-4")),
               all(FAIR[0] <= x <= FAIR[1]
                   for x in span("cubic, 20 ms, 2", "red-4"))),
        judged("bbr: 30 times the losses leave its throughput as it is",
               f"{bbr[1] / bbr[0]:.2f} of it", bbr[1] > 0.9 * bbr[0]),
        judged("bbr, red-4: within 10 % of the half, r = 2 to 8",
               ", ".join(f"{x:.3f}" for x in span("bbr", "red-4")),
               all(FAIR[0] <= x <= FAIR[1] for x in span("bbr", "red-4")))]
    rows = [(name, r, *(share[name, kind, r] for kind, _ in KINDS))
            for name, _ in SHARES for r in RATIOS]
    return Result(
        parameters(Setup()) | {"exponents": exponents}, windows + shares,
        {"judgements": judgements}, [
            *table(("sender", "p", "window"),
                   [(w["sender"], w["p"], w["window"]) for w in windows]),
            *table(("sender", "r", *(kind for kind, _ in KINDS)), rows),
            *verdicts(judgements)])


def plot(figure: Any, data: dict[str, Any]) -> None:  # noqa: ANN401
    """See Figure."""
    axes = figure.subplots()
    rows = [r for r in data["results"] if r.get("kind") == "red-4"]
    share = medians(rows, lambda r: (r["name"], r["ratio"]),
                    lambda r: r["share"])
    for name in dict.fromkeys(n for n, _ in share):
        axes.plot(RATIOS, [share[name, r] for r in RATIOS], "o-", label=name)
    axes.axhspan(*FAIR, alpha=0.2)
    axes.set(xlabel="cost of the second flow's packets, times", ylim=(0, 1),
             ylabel="the first flow's part of the CPU, red-4")
    axes.legend(fontsize="x-small")


FIGURES = [Figure("red4mq-senders", "CUBIC, DCTCP and BBR, and their "
                  "exponents", run, plot)]
