# SPDX-License-Identifier: BSD-2-Clause
"""What the turns of a noisy machine say: medians, ratios and intervals.

An interval is the 95 % percentile bootstrap over turns (each turn resampled
whole, so what varied together stays together).  Fewer than three turns say
nothing about their spread: their interval is the whole range.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any, TypeVar

T = TypeVar("T")

RESAMPLES = 2000
MIN_TURNS = 3
WHOLE = 1e6  # and more: the end of an interval that is not known


def bootstrap(
    turns: Sequence[T], value: Callable[[Sequence[T]], float], seed: int
) -> tuple[float, float]:
    """Return the 95 % interval of `value` over resampled turns."""
    if len(turns) < MIN_TURNS:
        return (0.0, math.inf)
    rng = random.Random(seed)
    values = sorted(
        value(rng.choices(turns, k=len(turns))) for _ in range(RESAMPLES)
    )
    return (values[int(0.025 * RESAMPLES)],
            values[int(0.975 * RESAMPLES) - 1])


def median_quotient(turns: Sequence[tuple[float, float]]) -> float:
    """Return the median of each turn's own quotient; 0 where it is x/0.

    The machine may be another one in the next turn: medians of numerator
    and denominator would not be of the same turn.
    """
    return median(a / b if b > 0 else 0.0 for a, b in turns)


def fold(ratio: float) -> float:
    """Return min/max of the two numbers whose quotient is `ratio`."""
    return min(ratio, 1 / ratio) if ratio > 0 else 0.0


def fold_interval(low: float, high: float) -> tuple[float, float]:
    """Return the interval of min/max, from the quotient's interval.

    The quotient may be on either side of 1; where its interval covers 1,
    min/max may be 1.
    """
    ends = sorted((fold(low), 0.0 if math.isinf(high) else fold(high)))
    return (ends[0], 1.0 if low <= 1 <= high else ends[1])


def known(interval: Sequence[float]) -> bool:
    """Is it an interval, or the whole range, folded or not?"""
    return interval[1] < WHOLE and tuple(interval) != (0.0, 1.0)


def covers_one(interval: Sequence[float]) -> bool:
    """Is a control valid?

    The rule, of which there is only this one: a control is valid when its
    95 % interval covers 1.  No margin is added.
    """
    return interval[0] <= 1 <= interval[1]


def verdict(interval: tuple[float, float], target: float) -> str:
    """Say if the claim "at least `target`" holds over the interval."""
    if interval[0] >= target:
        return "met"
    return "missed" if interval[1] < target else "unresolved"


def control(
    what: str, turns: Sequence[tuple[float, float]], seed: int
) -> dict[str, Any]:
    """Return an A/A control: a quotient that should be 1."""
    low, high = bootstrap(turns, median_quotient, seed)
    return {
        "what": what, "turns": len(turns),
        "ratio": round(median_quotient(turns), 4),
        "ratio_ci": rounded((low, high), 4),
        "covers_one": covers_one((low, high)),
    }


def rounded(interval: Sequence[float], digits: int) -> list[float]:
    """Return an interval for JSON, which has no infinity."""
    return [round(interval[0], digits), round(min(interval[1], 1e9), digits)]


def with_interval(
    name: str, turns: Sequence[T], value: Callable[[T], float], seed: int,
    digits: int = 3,
) -> dict[str, Any]:
    """Return the median of the turns' values, and its interval."""
    interval = bootstrap(
        turns, lambda some: median(value(t) for t in some), seed)
    return {name: round(median(value(t) for t in turns), digits),
            f"{name}_ci": rounded(interval, digits)}
