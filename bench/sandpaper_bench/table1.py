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

from .lab import Lab, in_turns, progress
from .load import Measurement
from .pairs import control
from .publishers import PAPER_CORES, PUBLISHERS, link_bytes
from .varnish import Variant

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
    data = seen.bytes / (max(seen.rps, 1e-9) * found.window_s)
    return Sample(found.cpu_us_per_request,
                  link_bytes(data) * 8e6 / rate_bps, data, seen.failures)


def table1_turn(lab: Lab, variant: Variant, *, name: str) -> list[Sample]:
    """Measure a customer alone, for some windows."""
    group = lab.tenant(name)
    with lab.varnish(variant) as varnish:
        lab.load.prime(varnish, [group])
        return [sample(lab.measure(varnish, [group]), name, lab.bed.rate_bps)
                for _ in range(WINDOWS)]


def spread(values: Sequence[float]) -> tuple[float, float]:
    """Return mean and standard deviation."""
    return mean(values), stdev(values) if len(values) > 1 else 0.0


def note(name: str, turn: str, found: Sequence[Sample]) -> None:
    """Print one turn's figures."""
    progress(f"  {turn} {name} CPU " + " ".join(
        f"{s.cpu_us:.0f}" for s in found)
        + f" us, link {found[-1].link_us:.1f} us")


def result(
    lab: Lab, name: str, variant: str, samples: Sequence[Sample]
) -> dict[str, Any]:
    """Return one entry of `results`."""
    paper = PUBLISHERS[name]
    assert lab.publishers is not None
    cpu_us, cpu_sd_us = spread([s.cpu_us for s in samples])
    link_us, link_sd_us = spread([s.link_us for s in samples])
    return {
        "publisher": name, "variant": variant, "windows": len(samples),
        "items": lab.publishers.items[name],
        "cpu_us": round(cpu_us, 1), "cpu_sd_us": round(cpu_sd_us, 1),
        "paper_cpu_us": round(paper.cpu_us * PAPER_CORES, 1),
        "paper_cpu_sd_us": round(paper.cpu_sd_us * PAPER_CORES, 1),
        "link_us": round(link_us, 2), "link_sd_us": round(link_sd_us, 3),
        "paper_link_us": round(paper.link_us * PAPER_CORES, 2),
        "bytes": round(mean(s.bytes for s in samples)),
        "bound_by": "CPU" if cpu_us > link_us else "link",
        "errors": sum(s.errors for s in samples),
    }


def table1(lab: Lab, names: Sequence[str]) -> dict[str, Any]:
    """Measure some of C1 to C4, each alone, under each variant."""
    results, controls = [], {}
    last = lab.variants[-1].name
    for name in names:
        found = in_turns(lab.variants, lab.plan,
                         partial(table1_turn, lab, name=name),
                         note=lab.counted(partial(note, name)),
                         keep=lab.keeper(name))
        results += [result(lab, name, variant, [s for t in turns for s in t])
                    for variant, turns in found.items()]
        controls[name] = control(
            f"{name} alone, {last} against itself",
            [(t[-1].cpu_us, t[0].cpu_us) for t in found[last]],
            lab.plan.seed)
    return lab.report("table1", controls, results)
