# SPDX-License-Identifier: BSD-2-Clause
"""SEDA's controllers of a stage's threads and of its batches: Figures 30 to 32.

M. Welsh, "An Architecture for Highly Concurrent, Well-Conditioned Internet
Services", 2002, chapter 5, section 4. The thesis prints the rules and their
constants, but not what a request costs. The costs here are a choice:
  30  a request holds its thread for 50 ms; clients think for 20 ms
  31  the throughput of m threads is that of chapter 4, equations 4.10 and 4.11,
      with the parallelism 8, and a penalty of one thread for each above 8
  32  the first event of a batch costs 100 times as much as others; of the
      events after the 200th, one of 50 costs that, too"""

from __future__ import annotations

from collections import deque
from statistics import mean, median
from typing import Any

from ..figure import Context, Figure, Result, judged, verdicts
from ..server import MS, SECOND, Environment, Timer
from ..workload import generator

# Chapter 5, section 4.1
LONG = 100                      # waiting events, of a queue that gets a thread
IDLE = 5 * SECOND               # until a thread is removed
MARGIN = 0.2                    # of the highest throughput
REMOVED = 4                     # threads, at most at random
# Section 4.2
BATCH_MOST = 1000               # events
BATCH_STEP = 0.2                # of the batching factor
BATCH_MARGIN = 0.1              # of the highest throughput
# Figure 30
LOOK, MOST = 2 * SECOND, 20     # time between looks at the queue; threads
HOLD, THINK = 50 * MS, 20 * MS
BURSTS = ((104, 10, 50), (110, 70, 110), (512, 130, 170))   # clients, s, s
# Figure 31
PARALLEL, PENALTY = 8, 1.0
SMOOTH = 0.3                    # weight of the old throughput
# Figure 32
BEST, MORE = 200, 50            # events
COSTLY = 100.0                  # costs of a cheap event


class Pool:
    """A stage's queue and threads, and the controller of its threads."""

    def __init__(self) -> None:
        self.env = Environment(0)
        self._waiting: deque[Timer] = deque()
        self._free: list[int] = [0]     # since when threads are idle, ns
        self.threads = 1
        self.seen: list[dict[str, float]] = []
        Timer(self.env, self._control).start(LOOK)

    def client(self, begin: int, end: int) -> None:
        """Asks, waits, thinks, from begin to end, s."""
        served = Timer(self.env, lambda t: self._done(t, think))
        think = Timer(self.env, lambda _: self._ask(served, end * SECOND))
        think.start(begin * SECOND)

    def _ask(self, served: Timer, end: int) -> None:
        if self.env.now < end:
            self._waiting.append(served)
            self._begin()

    def _begin(self) -> None:
        while self._free and self._waiting:
            self._free.pop()
            self._waiting.popleft().start(HOLD)

    def _done(self, _: Timer, think: Timer) -> None:
        self._free.append(self.env.now)
        self._begin()
        think.start(THINK)

    def _control(self, timer: Timer) -> None:
        now = self.env.now
        if len(self._waiting) > LONG and self.threads < MOST:
            self.threads += 1
            self._free.append(now)
        stay = [since for since in self._free if now - since <= IDLE]
        gone = min(len(self._free) - len(stay), self.threads - 1)
        self.threads -= gone
        self._free = self._free[gone:]      # the oldest are first
        self.seen.append({"t_s": now / SECOND, "threads": self.threads,
                          "waiting": len(self._waiting)})
        self._begin()
        timer.start(LOOK)


def figure30(c: Context) -> Result:
    """See Figure."""
    pool = Pool()
    for n, begin, end in BURSTS:
        for _ in range(n):
            pool.client(begin, end)
    pool.env.run(200 * SECOND)
    most = [max(s["threads"] for s in pool.seen if begin <= s["t_s"] <= end)
            for _, begin, end in BURSTS]
    between = [min(s["threads"] for s in pool.seen
                   if end < s["t_s"] < end + 20) for _, _, end in BURSTS]
    judgements = [
        judged("more clients get more threads", ", ".join(map(str, most)),
               most == sorted(set(most))),
        judged("the largest burst gets the limit, 20 threads", str(most[-1]),
               most[-1] == MOST),
        judged("threads go between bursts", ", ".join(map(str, between)),
               max(between) == 1)]
    return Result({"bursts": BURSTS}, pool.seen, {"judgements": judgements},
                  verdicts(judgements))


def throughput(threads: int) -> float:
    """Of a stage that is always busy; 1: that of one thread."""
    penalty = PENALTY * max(0, threads - PARALLEL)
    return max(0.0, min(threads, PARALLEL) - penalty)


def threads_over_time(seed: int, detects: bool,
                      until: int) -> list[dict[str, float]]:
    """The queue is always long, so each second a thread is added.

    detects: thrashing (section 4.1)."""
    rng = generator(seed, "seda", "threads")
    threads, highest, optimal, smooth = 1, 0.0, 1, throughput(1)
    seen = []
    for t in range(until):
        now = throughput(threads)
        smooth = SMOOTH * smooth + (1 - SMOOTH) * now
        seen.append({"t_s": float(t), "threads": threads, "throughput": now})
        threads += 1
        if not detects:
            continue
        if smooth > (1 + MARGIN) * highest:
            highest, optimal = smooth, threads - 1
        elif smooth < (1 - MARGIN) * highest:
            threads = max(1, optimal - int(rng.integers(REMOVED + 1)))
            smooth = throughput(threads)
    return seen


def figure31(c: Context) -> Result:
    """See Figure."""
    found = [{"name": name, "seen": threads_over_time(c.seed, detects, 200)}
             for name, detects in (("no detection", False),
                                   ("detection", True))]
    last = [f["seen"][100:] for f in found]
    held = mean(s["throughput"] for s in last[1]) / PARALLEL
    judgements = [
        judged("without detection the throughput falls",
               f"to {last[0][-1]['throughput'] / PARALLEL:.0%} of the highest",
               last[0][-1]["throughput"] < PARALLEL / 2),
        judged("with it the throughput stays high", f"{held:.0%} in the mean",
               held > 0.8),
        judged("with it there are about 8 threads",
               f"{mean(s['threads'] for s in last[1]):.1f} in the mean",
               6 <= mean(s["threads"] for s in last[1]) <= 10)]
    return Result({"parallel": PARALLEL}, found, {"judgements": judgements},
                  verdicts(judgements))


def batches(batch: int) -> float:
    """Events for each unit of time, with batches of this size."""
    return batch / (COSTLY * (1 + max(0, batch - BEST) / MORE) + batch)


def figure32(c: Context) -> Result:
    """See Figure."""
    size, down = float(BATCH_MOST), True
    recent, seen = deque[float]([], 50), []
    for t in range(200):
        now = batches(round(size))
        recent.append(now)
        best = max(recent)
        seen.append({"t": t, "batch": round(size), "throughput": now})
        # A drop to half at once is not in this load, so no reset to the most
        down = now >= best * (1 - BATCH_MARGIN if down else
                              1 - BATCH_MARGIN / 2)
        size = min(BATCH_MOST, max(1.0, size * (
            1 - BATCH_STEP if down else 1 + BATCH_STEP)))
    first = next(s["t"] for s in seen if s["batch"] < BEST)
    later = [s["batch"] for s in seen[first:]]
    judgements = [
        judged("the factor first falls to just below the best, 200 events",
               f"{later[0]} after {first} steps", later[0] > BEST / 2),
        judged("then it varies near the best",
               f"{min(later)} to {max(later)}, median {median(later):.0f}",
               0.7 < median(later) / BEST < 1.3)]
    return Result({"best": BEST}, seen, {"judgements": judgements},
                  verdicts(judgements))


def plot30(figure: Any, data: dict[str, Any]) -> None:  # noqa: ANN401
    """See Figure."""
    above, below = figure.subplots(2, sharex=True)
    t = [s["t_s"] for s in data["results"]]
    above.plot(t, [s["waiting"] for s in data["results"]])
    below.plot(t, [s["threads"] for s in data["results"]])
    above.set(ylabel="waiting events")
    below.set(xlabel="time, s", ylabel="threads")


def plot31(figure: Any, data: dict[str, Any]) -> None:  # noqa: ANN401
    """See Figure."""
    for axes, r in zip(figure.subplots(2, sharex=True), data["results"],
                       strict=True):
        for what in ("throughput", "threads"):
            axes.plot([s["t_s"] for s in r["seen"]],
                      [s[what] for s in r["seen"]], label=what)
        axes.set(title=r["name"])
        axes.legend(fontsize="x-small")


def plot32(figure: Any, data: dict[str, Any]) -> None:  # noqa: ANN401
    """See Figure."""
    above, below = figure.subplots(2, sharex=True)
    for axes, what in ((above, "batch"), (below, "throughput")):
        axes.plot([s["t"] for s in data["results"]],
                  [s[what] for s in data["results"]])
        axes.set(ylabel=what)
    below.set(xlabel="step")


FIGURES = [
    Figure("seda-fig30", "SEDA's controller of threads, three bursts",
           figure30, plot30),
    Figure("seda-fig31", "the same, with a stage that thrashes", figure31,
           plot31),
    Figure("seda-fig32", "SEDA's controller of batches", figure32, plot32)]
