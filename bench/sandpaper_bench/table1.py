# SPDX-License-Identifier: BSD-2-Clause
"""`table1`: what a request of C1 to C4 takes (paper, Table 1).

CPU time is varnishd's, over requests, of a customer alone; mean and standard
deviation over windows, most of which is the machine's noise.  Link time is
computed as the paper does (section 3.2) from the bytes that clients got:
b/T + h/T * ceil(b/(MTU-h)).  The paper's figures are for 8 cores and 10
Gbit/s: times 8, they are beside ours.  The control is the CPU time of a
turn's last window over its first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from statistics import mean, stdev
from typing import Any

from .ask import Ask
from .load import Measurement, tenant
from .publishers import PAPER_CORES, PUBLISHERS, link_bytes
from .rig import Rig, progress
from .runner import Control, Experiment, Job, Part, Turn, Window, of_each
from .varnish import Variant
from .vmod import NEEDED

WINDOWS = 2  # a turn


@dataclass(frozen=True)
class Sample:
    """One window of one customer: microseconds a request, errors."""

    cpu_us: float
    link_us: float
    bytes: float
    errors: int


def sample(found: Measurement, name: str, rate_bps: float) -> Sample:
    """Return what a request took in a window."""
    seen = found[name]
    data = seen.bytes_in(found.window_s)
    return Sample(found.cpu_us_per_request,
                  link_bytes(data) * 8e6 / rate_bps, data, seen.failures)


def table1_turn(variant: Variant, *, ask: Ask, name: str) -> Turn:
    """Return a customer alone, for some windows."""
    group = [tenant(name, ask.plan.connections)]
    return Turn([variant], [Window(group)] * WINDOWS, group,
                lambda found: [sample(m, name, ask.bed.rate_bps)
                               for m in found])


def spread(values: Sequence[float]) -> tuple[float, float]:
    """Return mean and standard deviation."""
    return mean(values), stdev(values) if len(values) > 1 else 0.0


def note(name: str, turn: str, found: Sequence[Sample]) -> None:
    """Print one turn's figures."""
    progress(f"  {turn} {name} CPU " + " ".join(
        f"{s.cpu_us:.0f}" for s in found)
        + f" us, link {found[-1].link_us:.1f} us")


def result(
    rig: Rig, name: str, variant: str, samples: Sequence[Sample]
) -> dict[str, Any]:
    """Return one entry of `results`."""
    paper = PUBLISHERS[name]
    assert rig.publishers is not None
    cpu_us, cpu_sd_us = spread([s.cpu_us for s in samples])
    link_us, link_sd_us = spread([s.link_us for s in samples])
    return {
        "publisher": name, "variant": variant, "windows": len(samples),
        "items": rig.publishers.items[name],
        "cpu_us": round(cpu_us, 1), "cpu_sd_us": round(cpu_sd_us, 1),
        "paper_cpu_us": round(paper.cpu_us * PAPER_CORES, 1),
        "paper_cpu_sd_us": round(paper.cpu_sd_us * PAPER_CORES, 1),
        "link_us": round(link_us, 2), "link_sd_us": round(link_sd_us, 3),
        "paper_link_us": round(paper.link_us * PAPER_CORES, 2),
        "bytes": round(mean(s.bytes for s in samples)),
        "bound_by": "CPU" if cpu_us > link_us else "link",
        "errors": sum(s.errors for s in samples),
    }


def lacks(ask: Ask) -> str | None:
    """Return what the paper's customers lack here."""
    if ask.serves_publishers():
        return None
    return f"C1 to C4, and they need Varnish {NEEDED}"


def part(ask: Ask, name: str) -> Part:
    """Return a customer under each variant."""
    last = ask.variants[-1].name
    return Part(
        name, of_each(ask.variants, partial(table1_turn, ask=ask, name=name)),
        partial(note, name), lambda rig, found: [
            result(rig, name, variant, [s for t in turns for s in t])
            for variant, turns in found.items()],
        [Control(f"{name} alone, {last} against itself", last,
                 lambda turns: [(t[-1].cpu_us, t[0].cpu_us) for t in turns],
                 name)])


def plan(ask: Ask) -> Job:
    """Plan C1 to C4, each alone."""
    names = ask.realistic()[::2 if ask.few else 1]
    return Job(ask, [part(ask, name) for name in names], names)


EXPERIMENT = Experiment("table1", plan, lacks)
