# SPDX-License-Identifier: BSD-2-Clause
"""SEDA's overload control, and a service of stages, as its thesis has them.

M. Welsh, "An Architecture for Highly Concurrent, Well-Conditioned Internet
Services", 2002. A stage is a queue before threads; the threads of all stages
share the cores. A controller in front of a stage admits at a rate that follows
the response times. Here its 90th percentile comes from sorted samples, and it
knows classes of requests. varnishd's controller `seda` (src/overload/seda.c)
has a histogram, and no classes.

The thesis does not print what requests of Arashi, its e-mail service, cost.
The costs here are a choice: 16 users use nearly all of four cores, as in
Figure 47. Nor does it print the rate at the start, and how many tokens the
bucket holds. The source of Sandstorm, the program that the thesis measures, has
100 requests/s in ResponseTimeControllerMulticlass and 10 tokens in
ResponseTimeControllerDirect."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .server import MS, SECOND, Cores, Environment, Job, Timer
from .workload import Exponential, generator, stream

# Figure 50, and for classes section 2.3
NREQ = 100                      # responses
TIMEOUT = SECOND
ALPHA = 0.7                     # weight of the old value
ERR_I, ERR_D = -0.5, 0.0
ADJ_I, ADJ_D = 2.0, 1.2         # requests/s; a factor
C_I = -0.1
RATE_MIN, RATE_MAX = 0.05, 5000.0   # requests/s
ADJLO_D = 10.0                  # a factor, for lower classes
LC_THRESH = 20
# Of Sandstorm's source
RATE_BEGIN, DEPTH = 100.0, 10.0  # requests/s; tokens

CORES, THREADS = 4, 10          # THREADS of each stage
THINK, AWAY = 20 * MS, 5 * SECOND   # AWAY after a refusal, then a login

# Figure 46; back: the page before
NEXT: dict[str, dict[str, float]] = {
    "login": {"list folders": 1.0},
    "list folders": {"list messages": 1.0},
    "list messages": {"list folders": 0.27, "show message": 0.68,
                      "delete": 0.02, "refile": 0.02, "search": 0.01},
    "show message": {"list folders": 0.03, "list messages": 0.58,
                     "delete": 0.18, "refile": 0.20, "search": 0.01},
    "search": {"list folders": 0.27, "show message": 0.68, "delete": 0.02,
               "refile": 0.02, "search": 0.01},
    "delete": {"back": 1.0},
    "refile": {"back": 1.0}}
CPU = {"login": 20 * MS, "list folders": 120 * MS, "list messages": 100 * MS,
       "show message": 60 * MS, "delete": 60 * MS, "refile": 60 * MS,
       "search": 500 * MS}      # mean, of one core
# Section 3.1 of chapter 6: both are one stage
STAGE = {kind: "change" if kind in {"delete", "refile"} else kind
         for kind in CPU}

ANSWER = np.dtype([("begin", "i8"), ("end", "i8"), ("kind", "i4"),
                   ("group", "i4"), ("served", "?")])


class Class:
    """What a controller keeps of one class of requests."""

    def __init__(self, target: int) -> None:
        self.target = target        # ns
        self.rate = RATE_BEGIN      # requests/s
        self.p90 = 0.0              # ns, smoothed
        self.tokens = DEPTH
        self.filled = self.began = 0    # ns
        self.took: list[int] = []   # ns
        self.flagged = False        # may not rise: a higher class is slow
        self.lc = 0                 # times without a lower class to cut


class Controller:
    """Chapter 7, sections 2.1 and 2.3. Class 0 is the lowest.

    targets: ns, of each class."""

    def __init__(self, targets: Sequence[int]) -> None:
        self.classes = [Class(target) for target in targets]

    def admit(self, now: int, group: int = 0) -> bool:
        """May a request of this class wait?"""
        c = self.classes[group]
        c.tokens = min(DEPTH, c.tokens + (now - c.filled) / SECOND * c.rate)
        c.filled = now
        if c.tokens < 1:
            return False
        c.tokens -= 1
        return True

    def responded(self, now: int, took: int, group: int = 0) -> None:
        """A request of this class took so long, ns."""
        self.classes[group].took.append(took)
        for n in reversed(range(len(self.classes))):
            c = self.classes[n]
            if c.took and (len(c.took) >= NREQ or now - c.began >= TIMEOUT):
                self._control(n, now)

    def _control(self, n: int, now: int) -> None:
        c, lower = self.classes[n], self.classes[:n]
        sample = sorted(c.took)[int(0.9 * len(c.took))]
        c.took, c.began = [], now
        c.p90 = ALPHA * c.p90 + (1 - ALPHA) * sample
        err = (c.p90 - c.target) / c.target
        if err > ERR_D:
            self._too_slow(c, lower)
        elif err < ERR_I and not c.flagged:
            c.rate = min(RATE_MAX, c.rate + ADJ_I * -(err - C_I))
            c.lc = 0
        c.flagged = False

    @staticmethod
    def _too_slow(c: Class, lower: list[Class]) -> None:
        can = [other for other in lower if other.rate > RATE_MIN]
        for other in lower:
            other.flagged = True
            other.rate = max(RATE_MIN, other.rate / ADJLO_D)
        c.lc = 0 if can else c.lc + 1
        if not lower or c.lc >= LC_THRESH:
            c.rate = max(RATE_MIN, c.rate / ADJ_D)


class Stage:
    """A queue before threads, and perhaps a controller before the queue."""

    def __init__(self, threads: int, controller: Controller | None) -> None:
        self.controller = controller
        self.idle = threads
        self.quality = 1.0          # what part of its full cost a request takes
        self.queue: deque[Request] = deque()


class Request(Job):
    """On its way through a stage."""

    __slots__ = ("stage", "begin", "group", "done")

    def __init__(self, stage: Stage, cpu: int, begin: int, group: int,
                 done: Callable[[int], None]) -> None:
        super().__init__(-1, -1, -1, cpu, 0)
        self.stage, self.begin, self.group = stage, begin, group
        self.done = done


class Service:
    """Stages on the same cores. Time is ns."""

    def __init__(self, cores: int = CORES) -> None:
        self.env = Environment(0)
        self._cores = Cores(self.env, cores, self._computed)
        self.answers: list[tuple[int, int, int, int, bool]] = []

    def at(self, when: int, what: Callable[[], None]) -> None:
        """Call it at this time."""
        Timer(self.env, lambda _: what()).start(when - self.env.now)

    def submit(self, stage: Stage, cpu: int, group: int,
               done: Callable[[int], None]) -> bool:
        """Begin a request, or refuse it: False.

        cpu: ns of one core; done: called with how long it took, ns."""
        now = self.env.now
        if stage.controller:
            group = min(group, len(stage.controller.classes) - 1)
            if not stage.controller.admit(now, group):
                return False
        stage.queue.append(Request(stage, cpu, now, group, done))
        self._begin(stage)
        return True

    def _begin(self, stage: Stage) -> None:
        if stage.idle and stage.queue:
            stage.idle -= 1
            request = stage.queue.popleft()
            request.cpu = max(1, round(request.cpu * stage.quality))
            self._cores.add(request)

    def _computed(self, job: Job) -> None:
        assert isinstance(job, Request)
        now, stage = self.env.now, job.stage
        # No figure of this service needs what Cores keeps of the past
        self._cores.spells.clear()
        self._cores.clock = self._cores.clock[-1:]
        stage.idle += 1
        if stage.controller:
            stage.controller.responded(now, now - job.begin, job.group)
        self._begin(stage)
        job.done(now - job.begin)

    def rows(self) -> Any:  # noqa: ANN401
        """All answers, in order of their end."""
        return np.array(self.answers, ANSWER)


class Arashi(Service):
    """The e-mail service. targets: of its classes, ns; none: no control."""

    KINDS = list(CPU)

    def __init__(self, seed: int, targets: Sequence[int] = ()) -> None:
        super().__init__()
        self.seed = seed
        self.stages = {name: Stage(THREADS, Controller(targets)
                                   if targets else None)
                       for name in dict.fromkeys(STAGE.values())}
        self.costs = {kind: stream(Exponential(cpu), generator(
            seed, "seda", "costs", kind)) for kind, cpu in CPU.items()}
        self._users = 0

    def users(self, n: int, begin: int, end: int, group: int = 0) -> None:
        """So many users of a group come at one time, and leave at another.

        group: their class, if the controllers have so many classes."""
        for _ in range(n):
            self._users += 1
            user = User(self, generator(self.seed, "seda", "user",
                                        self._users), end, group)
            self.at(begin, user.ask)


class User:
    """Asks for one page after another, as in Figure 46."""

    def __init__(self, service: Arashi, rng: np.random.Generator, end: int,
                 group: int) -> None:
        self._service, self._rng = service, rng
        self._end, self._group = end, group
        self._page = self._kind = "login"   # the last page, and the next
        self._timer = Timer(service.env, lambda _: self.ask())

    def ask(self) -> None:
        """Ask for the next page."""
        s, kind, now = self._service, self._kind, self._service.env.now
        if now >= self._end:
            return
        if s.submit(s.stages[STAGE[kind]], next(s.costs[kind]), self._group,
                    self._answered):
            return
        s.answers.append((now, now, s.KINDS.index(kind), self._group, False))
        self._kind = "login"
        self._timer.start(AWAY)

    def _answered(self, took: int) -> None:
        s, kind, now = self._service, self._kind, self._service.env.now
        s.answers.append((now - took, now, s.KINDS.index(kind), self._group,
                          True))
        choice = NEXT[kind]
        picked = str(self._rng.choice(list(choice), p=list(choice.values())))
        if kind not in {"delete", "refile"}:
            self._page = kind
        self._kind = self._page if picked == "back" else picked
        self._timer.start(THINK)


def p90(rows: Any) -> float:  # noqa: ANN401
    """The 90th percentile of the response times, s. 0: no answers."""
    took = (rows["end"] - rows["begin"])[rows["served"]]
    return float(np.percentile(took, 90)) / SECOND if len(took) else 0.0


def refused(rows: Any) -> float:  # noqa: ANN401
    """The part of the requests that was refused."""
    return 1 - float(rows["served"].mean()) if len(rows) else 0.0


def between(rows: Any, begin: int, end: int) -> Any:  # noqa: ANN401
    """What ended in this time, s."""
    return rows[(rows["end"] >= begin * SECOND) & (rows["end"] < end * SECOND)]


def seconds(rows: Any, end: int) -> list[dict[str, float]]:  # noqa: ANN401
    """Percentile and part refused in each second."""
    parts = [between(rows, t, t + 1) for t in range(end)]
    return [{"t_s": t, "p90_s": p90(part), "refused": refused(part)}
            for t, part in enumerate(parts)]
