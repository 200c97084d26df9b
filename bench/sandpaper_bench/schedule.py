# SPDX-License-Identifier: BSD-2-Clause
"""The seconds that each turn of an experiment takes, from the plan alone.

One function for each shape of experiment, beside the experiment's own loop:
windows, and phases that are rounded up to whole turns, each with its warm-up,
plus what it takes to start a varnishd and a load generator.  FLOOD_RPS, START
and RUN were measured on two cores.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .abuse import QUICK_PART, QUICK_WINDOWS, flood_plan
from .abuses import ABUSES
from .fetch import CASES, SETTLE
from .lab import Plan
from .load import PHASE_SECONDS
from .meddle import waits
from .overhead import SETTINGS
from .pace import Schedule
from .parts import FEW, MANY
from .policies import LONGER
from .policies import WINDOWS as POLICY_WINDOWS
from .scale import CONNECT_RATE, CONNECTIONS, phase_seconds
from .soak import HALVES, REST_SECONDS
from .table1 import WINDOWS
from .timeline import CROWDS, UNCHANGED
from .workers import CLIENTS

START = 2.0  # a varnishd, until its pages are in the cache, and its end
RUN = 0.05  # a load generator, beyond its window
FLOOD_RPS = 4000.0  # of a flood, beside its victim


def window(plan: Plan, share: float = 1.0) -> float:
    """Return the seconds of a window."""
    return plan.warmup + share * plan.seconds + RUN


def phases(
    plan: Plan, number: int, warmup: float | None = None,
    length: float = PHASE_SECONDS,
) -> float:
    """Return the seconds of phases that take turns."""
    turn = number * length
    warm = plan.warmup if warmup is None else warmup
    return RUN + turn * sum(
        math.ceil(round(s / turn, 6)) for s in (warm, plan.seconds))


def pair(plan: Plan) -> float:
    """Return the seconds of a turn of a pair."""
    return START + phases(plan, 3) + 3 * window(plan, 1 / 2)


def control(plan: Plan) -> Schedule:
    """Return the turns of a customer against its twin."""
    return [window(plan)] * plan.turns


def pairs(
    plan: Plan, variants: int, number: int, with_control: bool = True
) -> Schedule:
    """Return the schedule of so many pairs."""
    turns = [pair(plan)] * (variants * plan.turns * number)
    return turns + (control(plan) if with_control else [])


def table1(plan: Plan, variants: int, customers: int) -> Schedule:
    """Return the schedule of `table1`."""
    turn = START + WINDOWS * window(plan)
    return [turn] * (variants * plan.turns * customers)


def workers(plan: Plan, slots: int) -> Schedule:
    """Return the schedule of `workers`."""
    return pairs(plan, slots, len(CLIENTS))


def latency(plan: Plan, variants: int, number: int) -> Schedule:
    """Return the schedule of open loops for so many pairs."""
    turn = START + 2 * window(plan, 1 / 2) + 4 * window(plan)
    return [turn] * (variants * plan.turns * number)


def alone(plan: Plan, customers: int) -> Schedule:
    """Return the schedule of `alone`."""
    return [2 * START + phases(plan, 4)] * (plan.turns * customers)


def overhead(plan: Plan, customers: int) -> Schedule:
    """Return the schedule of `overhead`."""
    return alone(plan, customers) * len(SETTINGS)


def utilization(plan: Plan, variants: int, sizes: int) -> Schedule:
    """Return the schedule of `utilization`, with policy mr3 and control."""
    turn, same = START + sizes * window(plan), 2 * (START + window(plan))
    return [turn] * ((variants + 1) * plan.turns) + [same] * plan.turns


def fetch(plan: Plan, variants: int) -> Schedule:
    """Return the schedule of `fetch`."""
    return [START + window(plan) + SETTLE * seconds
            for _, seconds in CASES for _ in range(variants * plan.turns)]


def scale(plan: Plan, sizes: Sequence[int]) -> Schedule:
    """Return the schedule of `scale`; its control is of the first size."""
    return [2 * START + phases(
        plan, 2, plan.warmup + 2 * size * CONNECTIONS / CONNECT_RATE,
        phase_seconds(size))
        for size in [*sizes, sizes[0]] for _ in range(plan.turns)]


def policies(plan: Plan, number: int) -> Schedule:
    """Return the schedule of `policies`."""
    turn = START + POLICY_WINDOWS * window(plan, LONGER)
    return [turn] * (number * plan.turns)


def content_change(plan: Plan, variants: int) -> Schedule:
    """Return the schedule of `content-change`."""
    quiet = START + UNCHANGED * plan.seconds + RUN
    turn = START + 2 * window(plan, 1 / 2) + quiet
    return [turn] * (variants * plan.turns) + [quiet] * plan.turns


def flash_crowd(plan: Plan, variants: int) -> Schedule:
    """Return the schedule of `flash-crowd`."""
    turn, quiet = (START + n * plan.seconds + RUN
                   for n in (len(CROWDS), UNCHANGED))
    return [turn] * (variants * plan.turns) + [quiet] * plan.turns


def soak(variants: int, seconds: float) -> Schedule:
    """Return the schedule of `soak`."""
    return [START + seconds + HALVES * REST_SECONDS] * variants


def parts(plan: Plan, variants: int) -> Schedule:
    """Return the schedule of `parts`."""
    turn = (START + window(plan, 1 / 2) + 4 * window(plan)
            + 2 * (FEW + MANY) / CONNECT_RATE)
    return [turn] * (variants * plan.turns)


def abuse(plan: Plan, variants: int, name: str, flood: int) -> Schedule:
    """Return the schedule of a kind of abuse."""
    kind = ABUSES[name]
    quick = 2 * QUICK_WINDOWS * window(plan, QUICK_PART)
    if kind.flood:
        plan = flood_plan(plan)
        floods = math.ceil(flood / (FLOOD_RPS * (plan.seconds + plan.warmup)))
        turn = START + (3 + floods) * window(plan) + quick
    elif kind.greedy or kind.after:
        turn = (START + (3 + kind.after) * window(plan) + quick
                + waits(kind.deeds))
    else:
        turn = 2 * START + phases(plan, 4) + quick
    return [turn] * (variants * plan.turns)
