# SPDX-License-Identifier: BSD-2-Clause
"""SEDA's controller in front of its e-mail service, over time: Figures 52, 55,
58 and 59.

The thesis gives the targets, the number of users and when they come. What
requests cost is a choice (see sandpaper_sim/seda.py), so seconds are not those
of the thesis. What it says can be checked: if times stay within the target, and
which part is refused."""

from __future__ import annotations

from statistics import median
from typing import Any

from ..figure import Context, Figure, Result, judged, verdicts
from ..seda import Arashi, between, p90, refused, seconds
from ..server import SECOND

ALWAYS, CROWD = 3, 1000         # users
SETTLED = 20                    # s after the crowd has come


def spike(seed: int, target: int, begin: int, end: int,
          until: int) -> dict[str, Any]:
    """A crowd comes and leaves, s. target: s, 0: no control.

    stage: the controller of `list folders`, each second."""
    s = Arashi(seed, [target * SECOND] if target else [])
    s.users(ALWAYS, 0, until * SECOND)
    s.users(CROWD, begin * SECOND, end * SECOND)
    stage = []
    for t in range(until):
        s.env.run((t + 1) * SECOND)
        control = s.stages["list folders"].controller
        if control:
            stage.append({"t_s": t, "p90_s": control.classes[0].p90 / SECOND,
                          "rate_per_s": control.classes[0].rate})
    rows = s.rows()
    return {"name": f"target {target} s" if target else "no control",
            "stage": stage, "seconds": seconds(rows, until),
            "refused": refused(between(rows, begin, end)),
            "first_p90_s": p90(between(rows, begin, begin + SETTLED)),
            "p90_s": p90(between(rows, begin + SETTLED, end))}


def figure52(c: Context) -> Result:
    """See Figure."""
    begin, end, until = 70, 150, 220
    found = c.map(spike, [(c.seed, 1, begin, end, until)])
    stage = found[0]["stage"]
    inside = [s["p90_s"] for s in stage[begin:end]]
    low = min(s["rate_per_s"] for s in stage[begin:end])
    before = stage[begin - 1]["rate_per_s"]
    middle = median(inside[SETTLED:])
    judgements = [
        judged("the rate falls exponentially in the spike",
               f"from {before:.0f} to {low:.1f} requests/s",
               low < before / 4),
        judged("the largest 90th percentile is about 4 s",
               f"{max(inside):.1f} s", 2 < max(inside) < 8),
        judged("it stays near the target, 1 s", f"its median is {middle:.2f} s "
               f"after the first {SETTLED} s", 0.5 < middle < 1.5)]
    return Result({"target_s": 1, "begin_s": begin, "end_s": end}, found,
                  {"judgements": judgements}, verdicts(judgements))


def figure55(c: Context) -> Result:
    """See Figure."""
    begin, end, until = 50, 150, 200
    free, held = found = c.map(spike, [
        (c.seed, target, begin, end, until) for target in (0, 1)])
    judgements = [
        judged("70 to 80 % are refused in the spike",
               f"{held['refused']:.0%}", 0.65 <= held["refused"] <= 0.85),
        judged("with control the 90th percentile is soon near the target, 1 s",
               f"{held['first_p90_s']:.1f} s in the first {SETTLED} s, then "
               f"{held['p90_s']:.1f} s", held["p90_s"] < 1.5),
        judged("without control it grows without bound",
               f"{free['p90_s']:.1f} s", free["p90_s"] > 10)]
    return Result({"target_s": 1, "begin_s": begin, "end_s": end}, found,
                  {"judgements": judgements}, verdicts(judgements))


def classes(seed: int, known: int, begin: int, end: int, until: int,
            each: int) -> dict[str, Any]:
    """`each` low users all the time, as many high ones for a while, s.

    known: classes that the controllers know, 1 or 2."""
    s = Arashi(seed, [10 * SECOND] * known)
    s.users(each, 0, until * SECOND, 0)
    s.users(each, begin * SECOND, end * SECOND, 1)
    s.env.run(until * SECOND)
    rows = s.rows()
    found: dict[str, Any] = {"known": known}
    for n, name in enumerate(("low", "high")):
        own = rows[rows["group"] == n]
        inside = between(own, begin + SETTLED, end)
        found[name] = {"name": name, "seconds": seconds(own, until),
                       "refused": refused(inside), "p90_s": p90(inside)}
    return found


def two_classes(c: Context, known: int) -> Result:
    """Figures 58 and 59."""
    begin, end, until = 100, 200, 300
    found = c.map(classes, [(c.seed, k, begin, end, until, 128)
                            for k in (1, 2)])
    one, more = found
    part = "low {0[low][refused]:.0%}, high {0[high][refused]:.0%}"
    times = "low {0[low][p90_s]:.1f} s, high {0[high][p90_s]:.1f} s"
    this = found[known - 1]
    judgements = [judged(
        "the 90th percentile is near the target, 10 s", times.format(this),
        max(this[k]["p90_s"] for k in ("low", "high")) <= 11)]
    if known == 1:
        judgements.append(judged(
            "both classes have the same part refused", part.format(one),
            abs(one["low"]["refused"] - one["high"]["refused"]) < 0.05))
    else:
        judgements += [
            judged("more of the low class is refused", part.format(more),
                   more["low"]["refused"] > more["high"]["refused"]),
            judged("less of the high class than without classes is refused",
                   f"{more['high']['refused']:.0%} and "
                   f"{one['high']['refused']:.0%}",
                   more["high"]["refused"] < one["high"]["refused"])]
    return Result({"target_s": 10, "begin_s": begin, "end_s": end},
                  [this["low"], this["high"]], {"judgements": judgements},
                  verdicts(judgements))


def plot(figure: Any, data: dict[str, Any]) -> None:  # noqa: ANN401
    """See Figure."""
    above, below = figure.subplots(2, sharex=True)
    for r in data["results"]:
        t = [s["t_s"] for s in r["seconds"]]
        above.plot(t, [s["p90_s"] for s in r["seconds"]], label=r["name"])
        below.plot(t, [s["refused"] for s in r["seconds"]], label=r["name"])
    above.set(ylabel="90th percentile, s")
    below.set(xlabel="time, s", ylabel="refused")
    above.legend(fontsize="x-small")


def plot_rate(figure: Any, data: dict[str, Any]) -> None:  # noqa: ANN401
    """See Figure."""
    above, below = figure.subplots(2, sharex=True)
    stage = data["results"][0]["stage"]
    t = [s["t_s"] for s in stage]
    above.plot(t, [s["p90_s"] for s in stage])
    below.plot(t, [s["rate_per_s"] for s in stage])
    above.set(ylabel="90th percentile, s")
    below.set(xlabel="time, s", ylabel="admitted, requests/s")


FIGURES = [
    Figure("seda-fig52", "SEDA's controller at one stage, 1000 users come",
           figure52, plot_rate),
    Figure("seda-fig55", "from 3 to 1000 users, with SEDA's control and "
           "without", figure55, plot),
    Figure("seda-fig58", "two kinds of users, that the control does not know",
           lambda c: two_classes(c, 1), plot),
    Figure("seda-fig59", "two classes of users, that the control knows",
           lambda c: two_classes(c, 2), plot)]
