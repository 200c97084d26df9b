# SPDX-License-Identifier: BSD-2-Clause
"""How far an experiment is, and how long it still takes.

Its schedule is the seconds of each of its turns, in order, as the plan has
them.  The time left is the schedule of the turns to come, stretched by what
the turns done took over their own schedule: windows that a hypervisor
disturbed are measured again, which no plan knows.  Turns beyond the plan are
added when they begin.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence


def duration(seconds: float) -> str:
    """Return a time as one says it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


class Progress:
    """One experiment's progress through its schedule."""

    def __init__(
        self, schedule: Sequence[float],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.schedule = [*schedule]
        self.done = 0
        self._skipped = 0.0
        self._clock = clock
        self._start = clock()

    @property
    def seconds(self) -> float:
        """Return the time since the start."""
        return self._clock() - self._start

    def left(self) -> float:
        """Return the seconds that the turns to come will take."""
        planned = sum(self.schedule[:self.done]) - self._skipped
        stretch = self.seconds / planned if planned else 1.0
        return sum(self.schedule[self.done:]) * stretch

    def add(self, seconds: Sequence[float]) -> None:
        """More turns than planned come next."""
        self.schedule[self.done:self.done] = seconds

    def skip(self) -> None:
        """The turn that is next was measured before."""
        self._skipped += sum(self.schedule[self.done:self.done + 1])

    def tick(self) -> str:
        """Count a turn; say how far the experiment is."""
        self.done += 1
        return (f"  ({self.done} of {len(self.schedule)} turns, about "
                f"{duration(self.left())} left)")
