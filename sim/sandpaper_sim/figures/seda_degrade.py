# SPDX-License-Identifier: BSD-2-Clause
"""A service that gets cheaper under load, as in SEDA: Figures 56 and 57.

One stage, whose requests cost less with a lower quality. When its 90th
percentile is above the target, the quality falls. In Figure 57 the stage also
refuses requests while its quality is at its lowest.

The thesis does not print the costs, nor the steps of the quality. A request
costs a tenth at the lowest quality, so that 1000 users wait for somewhat more
than the target. The steps are those of sandpaper.quality(): the quality is
halved, and rises by 0.01. A refused client asks again after its think time,
20 ms: only so can 99 % be refused."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..figure import Context, Figure, Result, judged, verdicts
from ..seda import (
    CORES,
    NREQ,
    THINK,
    THREADS,
    TIMEOUT,
    Controller,
    Service,
    Stage,
    between,
    p90,
    refused,
    seconds,
)
from ..server import MS, SECOND, Timer
from ..workload import Exponential, generator, stream

TARGET = 5                      # s
ALWAYS, CROWD = 3, 1000         # users
COST = 220 * MS                 # mean, of one core, at quality 1
LOWEST, STEP = 0.1, 0.01        # of the quality
OVER, UNDER = 1.1, 0.8          # of the target: falls above, rises below


class Quality:
    """Sets a stage's quality, from its response times.

    Like the controller, but without smoothing."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._took: list[int] = []
        self._began = 0

    def responded(self, now: int, took: int) -> None:
        """A request took so long, ns."""
        self._took.append(took)
        if len(self._took) < NREQ and now - self._began < TIMEOUT:
            return
        sample = float(np.percentile(self._took, 90))
        quality = self._stage.quality
        if sample > OVER * TARGET * SECOND:
            self._stage.quality = max(LOWEST, quality / 2)
        elif sample < UNDER * TARGET * SECOND:
            self._stage.quality = min(1.0, quality + STEP)
        self._took, self._began = [], now


class Server(Service):
    """degrades: the quality changes. refuses: at the lowest quality."""

    def __init__(self, seed: int, degrades: bool, refuses: bool) -> None:
        super().__init__()
        self.stage = Stage(THREADS, None)
        self._quality = Quality(self.stage)
        self._degrades = degrades
        self._controller = Controller([TARGET * SECOND]) if refuses else None
        self._costs = stream(Exponential(COST),
                             generator(seed, "seda", "degrade"))

    def users(self, n: int, begin: int, end: int) -> None:
        """So many come at one time, and leave at another."""
        for _ in range(n):
            self.at(begin, Client(self, end).ask)

    def ask(self, client: Client) -> bool:
        """A request. False: it is refused."""
        worst = self.stage.quality <= LOWEST
        self.stage.controller = self._controller if worst else None
        return self.submit(self.stage, next(self._costs), 0, client.answered)

    def answered(self, took: int) -> None:
        """A request took so long, ns."""
        now = self.env.now
        self.answers.append((now - took, now, 0, 0, True))
        if self._degrades:
            self._quality.responded(now, took)


class Client:
    """Asks again and again."""

    def __init__(self, server: Server, end: int) -> None:
        self._server, self._end = server, end
        self._timer = Timer(server.env, lambda _: self.ask())

    def ask(self) -> None:
        """One request."""
        s, now = self._server, self._server.env.now
        if now < self._end and not s.ask(self):
            s.answers.append((now, now, 0, 0, False))
            self._timer.start(THINK)

    def answered(self, took: int) -> None:
        """Think, and ask again."""
        self._server.answered(took)
        self._timer.start(THINK)


def spike(seed: int, degrades: bool, refuses: bool, begin: int, end: int,
          until: int) -> dict[str, Any]:
    """A crowd comes and leaves, s."""
    s = Server(seed, degrades, refuses)
    s.users(ALWAYS, 0, until * SECOND)
    s.users(CROWD, begin * SECOND, end * SECOND)
    quality = []
    for t in range(until):
        s.env.run((t + 1) * SECOND)
        quality.append(s.stage.quality)
    rows = s.rows()
    return {"name": "refuses" if refuses else "degrades" if degrades
            else "neither", "quality": quality, "seconds": seconds(rows, until),
            "refused": refused(between(rows, begin, end)),
            "p90_s": p90(between(rows, begin + 20, end))}


def spikes(c: Context, cases: tuple[tuple[bool, bool], ...],
           ) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Parameters, and what was found."""
    begin, end, until = (20, 60, 80) if c.quick else (50, 150, 220)
    return ({"target_s": TARGET, "cores": CORES, "begin_s": begin,
             "end_s": end},
            c.map(spike, [(c.seed, *case, begin, end, until)
                          for case in cases]))


def figure56(c: Context) -> Result:
    """See Figure."""
    parameters, found = spikes(c, ((False, False), (True, False)))
    free, degrades = found
    judgements = [
        judged("without degradation times are very large",
               f"{free['p90_s']:.0f} s", free["p90_s"] > 4 * TARGET),
        judged("with it they are near the target, 5 s",
               f"{degrades['p90_s']:.1f} s",
               degrades["p90_s"] < 1.5 * TARGET)]
    return Result(parameters, found, {"judgements": judgements},
                  verdicts(judgements))


def figure57(c: Context) -> Result:
    """See Figure."""
    parameters, found = spikes(c, ((True, False), (True, True)))
    degrades, refuses = found
    judgements = [
        judged("with admission control it meets the target better",
               f"{refuses['p90_s']:.1f} s, {degrades['p90_s']:.1f} s without",
               refuses["p90_s"] < degrades["p90_s"]),
        judged("99 % of the requests are refused",
               f"{refuses['refused']:.1%}", refuses["refused"] > 0.95)]
    return Result(parameters, found, {"judgements": judgements},
                  verdicts(judgements))


def plot(figure: Any, data: dict[str, Any]) -> None:  # noqa: ANN401
    """See Figure."""
    axes = figure.subplots(3, sharex=True)
    for r in data["results"]:
        t = [s["t_s"] for s in r["seconds"]]
        for a, y in zip(axes, ([s["p90_s"] for s in r["seconds"]],
                               r["quality"],
                               [s["refused"] for s in r["seconds"]]),
                        strict=True):
            a.plot(t, y, label=r["name"])
    for a, name in zip(axes, ("90th percentile, s", "quality", "refused"),
                       strict=True):
        a.set(ylabel=name)
    axes[-1].set(xlabel="time, s")
    axes[0].legend(fontsize="x-small")


FIGURES = [
    Figure("seda-fig56", "a stage that degrades its answers, 1000 users come",
           figure56, plot),
    Figure("seda-fig57", "the same, with admission control at the lowest "
           "quality", figure57, plot)]
