# SPDX-License-Identifier: BSD-2-Clause
"""The report's plots, as SVG images.

The only file that needs matplotlib.  A plot has rows of values, or curves;
DRAW says which of a result's fields it shows.  Colours are Okabe and Ito's,
which the colour-blind tell apart, and never the only difference: each variant
has its marker and dash, what is the paper's is hollow, and values stand
beside the marks.  Whiskers are 95 % intervals; one that is not known has none.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

from . import paper
from .abuses import ABUSES, KEPT
from .claims import FAIR, LOST_MANY, STOCK, facts, lost_limit
from .estimate import known
from .latency import LIMIT
from .table import cell, sides
from .timeline import CLAIM, SLICES

Report = dict[str, Any]
Row = dict[str, Any]

WIDTH = 9.0  # inches
MARGINS = 1.5  # inches: title, legend and axis
INK, FAINT, GREY, SHADE = "#222222", "#d9d9d9", "#777777", "#f0f0f0"
SMOOTH = 5  # slices of a time line

STYLE = {
    "font.size": 10, "axes.titlesize": 10.5, "axes.titleweight": "bold",
    "axes.titlelocation": "left", "axes.titlepad": 30,
    "axes.edgecolor": INK, "axes.labelcolor": INK,
    "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "axes.axisbelow": True, "grid.color": FAINT,
    "grid.linewidth": 0.7, "text.color": INK, "xtick.color": INK,
    "ytick.color": INK, "legend.frameon": False,
    "svg.hashsalt": "sandpaper", "figure.constrained_layout.use": True,
}


@dataclass(frozen=True)
class Look:
    """How a series is drawn."""

    colour: str
    marker: str = "o"
    dash: str = "-"
    hollow: bool = False


OURS, OTHER = Look("#0072b2"), Look("#56b4e9", "^")
LOOKS = {
    "stock": Look("#d55e00", "D", "--"), "sandpaper": OURS, "sampled": OURS,
    "off": Look("#e69f00", "s"), "observe": Look("#009e73", "^"),
    "mr3": Look("#cc79a7", "v", ":"), "every request": OTHER}
CYCLE = (OURS, LOOKS["stock"], LOOKS["observe"], LOOKS["mr3"], LOOKS["off"])
PAPER = Look(GREY, "s", "--", hollow=True)
TARGET = Look(INK, "|", "--")


@dataclass(frozen=True)
class Point:
    """A value at a place: a row's name, or an x."""

    place: Any
    value: float
    interval: Sequence[float] | None = None


@dataclass(frozen=True)
class Series:
    """Values of one kind."""

    name: str
    points: Sequence[Point]
    look: Look


@dataclass(frozen=True)
class Plot:
    """A plot, its texts and how it is drawn."""

    title: str  # a template of the first result
    alt: str  # for who cannot see it
    axis: str  # what the values are, with their unit
    series: Callable[[Report], Iterable[Series]]
    x: str = ""  # what the places are; empty: they are rows
    form: str = "{:.2f}"  # of a value beside its mark
    log: bool = False  # the axis of values in rows, of x in curves
    zero: bool = True  # rows begin at 0
    shade: bool = False  # every other phase of a time line


def name_of(variant: str) -> str:
    """Return a variant's name as the legend has it."""
    return "Sandpaper" if variant == "sandpaper" else variant


def measured(
    rows: Sequence[Row], place: str, value: str, *, of: str = "variant",
    times: float = 1.0, names: str = "{}", looks: Mapping[str, Look] = LOOKS,
) -> list[Series]:
    """Return a series for each of the values that the field `of` has.

    `place` is a template, or the field that is x.
    """
    found = []
    for kind in dict.fromkeys(r[of] for r in rows):
        points = []
        for r in rows:
            ends = r.get(f"{value}_ci")
            if r[of] == kind and r[value] is not None:
                points.append(Point(
                    r[place] if place in r else cell(place, r),
                    r[value] * times, [end * times for end in ends]
                    if ends and known(ends) else None))
        found.append(Series(names.format(name_of(kind)), points,
                            looks.get(kind, OURS)))
    return found


def given(
    name: str, rows: Sequence[Row], place: str, look: Look,
    value: Callable[[Row], float | None],
) -> list[Series]:
    """Return what is given for each place, if it is for any."""
    found = {cell(place, r): value(r) for r in rows}
    points = [Point(where, v) for where, v in found.items() if v]
    return [Series(name, points, look)] if points else []


def fairness(report: Report) -> Iterable[Series]:
    """Return min/max of normalised throughput, each pair (Figures 3, 9)."""
    rows, place = report["results"], "{a} and {b}"
    target = (FAIR if report["experiment"] == "pairs"
              else report["plan"]["target"])
    yield from given("paper, stock", rows, place, PAPER,
                     lambda r: paper.stock_ratio(r["a"], r["b"]))
    yield from measured(rows, place, "ratio")
    yield from given(f"claimed: at least {target:g}", rows, place, TARGET,
                     lambda _: target)


def p99(report: Report) -> Iterable[Series]:
    """Return each tenant's p99 beside its neighbour (section 6.2)."""
    rows = [side for r in report["results"] for side in sides(r)]
    place = "{tenant} with {beside}"
    yield from measured(rows, place, "p99_s", times=1e3)
    for variant in dict.fromkeys(r["variant"] for r in rows):
        look = LOOKS.get(variant, OURS)
        yield from given(
            f"paper × {paper.SCALE:g}, {name_of(variant)}", rows, place,
            Look(look.colour, look.marker, hollow=True),
            lambda r, of=variant: 1e3 * (paper.scaled_p99_s(  # type: ignore
                r["tenant"], r["beside"], of) or 0))


def table1(what: str) -> Callable[[Report], Iterable[Series]]:
    """Return what a request takes of the CPU or of the link (Table 1)."""
    def spread(row: Row, field: str) -> Row:
        mean, sd = row[f"{field}_us"], row.get(f"{field}_sd_us")
        return {"us": mean, "us_ci": sd and (mean - sd, mean + sd)}

    def series(report: Report) -> Iterable[Series]:
        rows = report["results"]
        yield from measured([
            r | spread(r, f"paper_{what}") | {"variant": "paper"}
            for r in rows if r["variant"] == rows[0]["variant"]],
            "{publisher}", "us", names=f"{{}} × {paper.SCALE:g}",
            looks={"paper": PAPER})
        yield from measured([r | spread(r, what) for r in rows],
                            "{publisher}", "us")
    return series


def lost(report: Report) -> Iterable[Series]:
    """Return what each customer alone loses (section 6.4), and may lose."""
    rows = [r | facts(report, r) for r in report["results"]]
    yield from given("paper, at most", rows, "{customer}", PAPER,
                     lambda r: 100 * (paper.lost(r["customer"]) or 0))
    yield from measured(rows, "{customer}", "lost", times=100)
    yield from given("claimed, at most", rows, "{customer}", TARGET,
                     lambda r: 100 * lost_limit(r))


def cpu(report: Report) -> Iterable[Series]:
    """Return each customer's CPU time per request."""
    return measured([
        r | {"variant": r[which], "us": r[f"cpu_us_{which}"]}
        for which in ("baseline", "variant") for r in report["results"]],
        "{customer}", "us")


def overhead(report: Report) -> Iterable[Series]:
    """Return throughput over stock's, by setting and customer (6.4)."""
    rows = report["results"]
    yield from given("paper, at least", rows, "{customer}", PAPER,
                     lambda r: 1 - (paper.lost(r["customer"]) or 1))
    yield from measured(rows, "{customer}", "ratio", of="setting")
    yield from given("claimed, at least", rows, "{customer}", TARGET,
                     lambda r: 1 - lost_limit(r))


def workers(report: Report) -> Iterable[Series]:
    """Return fairness by slots (Figure 4)."""
    rows = report["results"]
    many = dict.fromkeys(r["connections"] for r in rows)
    yield from measured(
        rows, "slots", "ratio", of="connections",
        names="{} connections per tenant",
        looks=dict(zip(many, CYCLE, strict=False)))
    yield line(f"claimed: at least {FAIR:g}", rows, "slots", FAIR)


def line(name: str, rows: Sequence[Row], x: str, value: float) -> Series:
    """Return what is claimed of a curve."""
    every = [r[x] for r in rows]
    return Series(name, [Point(end(every), value) for end in (min, max)],
                  Look(INK, "", "--"))


def fetch(report: Report) -> Iterable[Series]:
    """Return the slots lent beside what the paper expects (appendix B)."""
    rows = [r for r in report["results"] if r["variant"] != STOCK]
    place = "{p_miss:.0%} miss, {fetch_s:g} s"
    yield from given("paper, expected: λp/µ", rows, place, PAPER,
                     lambda r: float(r["expected"]))
    yield from measured(rows, place, "lent")


def scale(report: Report) -> Iterable[Series]:
    """Return what many tenants cost (section 6.4)."""
    rows = [r | facts(report, r) for r in report["results"]]
    yield from measured(rows, "tenants", "lost", times=100)
    yield Series("paper (a handful, 2000)", [
        Point(1, 100 * paper.LOST_FEW),
        Point(paper.MANY, 100 * paper.LOST_MANY)], PAPER)
    yield line(f"claimed: at most {100 * LOST_MANY:g} %", rows, "tenants",
               100 * LOST_MANY)


def latency(report: Report) -> Iterable[Series]:
    """Return what a neighbour does to an open loop's p99."""
    rows, place = report["results"], "{tenant} with {beside}"
    yield from measured(rows, place, "times")
    yield from given(f"claimed: at most {LIMIT:g}", rows, place, TARGET,
                     lambda _: LIMIT)


def timeline(tenant: str) -> Callable[[Report], Iterable[Series]]:
    """Return a tenant's throughput by time (Figures 12 and 13)."""
    def series(report: Report) -> Iterable[Series]:
        first = {r["variant"]: r for r in reversed(report["results"])}
        for variant in dict.fromkeys(r["variant"] for r in report["results"]):
            y = smooth(first[variant]["series"][tenant])
            look = LOOKS.get(variant, OURS)
            yield Series(name_of(variant), [
                Point((i + 0.5) / SLICES, v) for i, v in enumerate(y)],
                Look(look.colour, "", look.dash))
    return series


def smooth(slices: Sequence[int]) -> list[float]:
    """Return requests/s, the mean of SMOOTH slices around each."""
    half = SMOOTH // 2
    around = [slices[max(0, i - half):i + half + 1]
              for i in range(len(slices))]
    return [sum(some) / len(some) * SLICES for some in around]


def of_fair(report: Report) -> Iterable[Series]:
    """Return what the static tenant keeps, of what is fair."""
    yield from measured(report["results"], "{phase}", "of_fair")
    yield from given(f"claimed: at least {CLAIM:g}", report["results"],
                     "{phase}", TARGET, lambda _: CLAIM)


def kept(report: Report) -> Iterable[Series]:
    """Return what the victim keeps beside an abuser."""
    rows, place = report["results"], "{victim} under {abuse}"
    yield from measured(rows, place, "kept")
    target = KEPT * rows[0]["fair"]
    yield from given(f"claimed: at least {target:.2f}", rows, place, TARGET,
                     lambda _: target)


KEPT_PLOT = Plot(
    "The victim's throughput under abuse, over alone (fair: {fair:g})",
    "Throughput that the victim keeps, by variant", "kept, of alone", kept)
LINES = (
    Plot("Static tenant (nothing changes for it)",
         "Curves: the static tenant's throughput by time", "requests/s",
         timeline("static"), shade=True,
         x=f"s; mean of {SMOOTH / SLICES:g} s, the last turn"),
    Plot("Dynamic tenant (it changes in the shaded time)",
         "Curves: the dynamic tenant's throughput by time", "requests/s",
         timeline("dynamic"), shade=True,
         x=f"s; mean of {SMOOTH / SLICES:g} s, the last turn"),
    Plot("Static tenant: throughput kept, over the fair throughput",
         "Throughput kept by phase and variant",
         "kept, of the fair throughput", of_fair))
FAIRNESS = Plot(
    "Normalised throughput: min/max of the two tenants",
    "Min/max of normalised throughput by pair and variant",
    "min/max, 1 is fair", fairness)
DRAW: dict[str, Sequence[Plot]] = {
    "table1": (
        Plot("A request alone: time of varnishd's CPU",
             "CPU time by customer and variant", "µs", table1("cpu"),
             form="{:.0f}"),
        Plot("A request alone: time of the link",
             "Time of the link by customer and variant", "µs",
             table1("link"), form="{:.0f}")),
    "pairs": (
        FAIRNESS,
        Plot("Closed loop: p99 of each tenant with the other",
             "p99 of each tenant by variant", "p99, ms (logarithmic)", p99,
             form="{:,.1f}", log=True)),
    "alone": (
        Plot("A tenant alone: throughput lost (less is better)",
             "Throughput lost by customer", "throughput lost, % of stock's",
             lost, form="{:.1f}"),
        Plot("A tenant alone: CPU time per request",
             "CPU time per request by customer", "CPU time per request, µs",
             cpu, form="{:.0f}")),
    "overhead": (Plot(
        "A tenant alone: throughput by what is switched on",
        "Throughput by setting and customer", "throughput over stock's",
        overhead, form="{:.3f}", zero=False),),
    "workers": (Plot(
        "Fairness of {a} and {b} by pool size",
        "Curves: fairness by slots per core",
        "min/max, 1 is fair", workers, x="slots per core (logarithmic)",
        log=True),),
    "utilization": (
        Plot("{customer} alone: throughput",
             "Curves: throughput by connections", "requests/s",
             lambda r: measured(r["results"], "connections", "rps"),
             x="connections (logarithmic)", log=True),
        Plot("varnishd's CPU time, of {cores} cores",
             "Curves: CPU time by connections", "% of its cores",
             lambda r: measured(r["results"], "connections", "busy",
                                times=100),
             x="connections (logarithmic)", log=True)),
    "latency": (Plot(
        "Open loop: effect of the other tenant on p99",
        "Growth of p99 by tenant and variant",
        "p99 together over (p99 alone / share), logarithmic", latency,
        log=True),),
    "scale": (Plot(
        "Many tenants: throughput lost (less is better)",
        "Curve: throughput lost by tenants", "throughput lost, % of stock's",
        scale, x="tenants, 10 connections each (logarithmic)", log=True),),
    "content-change": LINES, "flash-crowd": LINES,
    "fetch": (Plot(
        "Slots lent to requests that wait for the origin",
        "Slots lent, and what is expected", "slots, mean", fetch,
        form="{:.1f}"),),
    **dict.fromkeys(ABUSES, (KEPT_PLOT,)),
    "rate-unknown": (FAIRNESS,), "rate-wrong": (FAIRNESS,),
}


def whiskers(points: Sequence[Point]) -> list[list[float]] | None:
    """Return how far intervals reach to both sides; nan draws none."""
    if not any(p.interval for p in points):
        return None
    return [[max(0.0, sign * (p.interval[end] - p.value))
             if p.interval else math.nan for p in points]
            for end, sign in ((0, -1), (1, 1))]


def mark(axes: Axes, s: Series, **more: Any) -> None:
    """Draw a series' marks, whiskers and line, and its entry in the legend."""
    axes.errorbar(
        label=s.name, color=s.look.colour, marker=s.look.marker, capsize=3,
        markersize=18 if s.look is TARGET else 7, linewidth=1.5,
        markerfacecolor="white" if s.look.hollow else s.look.colour, **more)


def draw_rows(axes: Axes, plot: Plot, series: Sequence[Series]) -> None:
    """Draw a row for each place, and in it a line for each series."""
    places = list(dict.fromkeys(p.place for s in series for p in s.points))
    own = [s for s in series if s.look is not TARGET]
    step = 0.8 / len(own)
    if plot.log:
        axes.set_xscale("log")
    for s in series:
        shift = ((own.index(s) - (len(own) - 1) / 2) * step if s in own
                 else 0.0)
        y = [places.index(p.place) + shift for p in s.points]
        mark(axes, s, x=[p.value for p in s.points], y=y, linestyle="none",
             xerr=whiskers(s.points))
        for p, at in zip(s.points if s in own else (), y, strict=False):
            axes.annotate(
                plot.form.format(p.value),
                (max(p.value, (p.interval or [0, 0])[1]), at), (8, 0),
                textcoords="offset points", va="center", fontsize=8, zorder=1.5,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5})
    axes.set_yticks(range(len(places)), places)
    axes.set_ylim(len(places) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    for edge in range(1, len(places)):
        axes.axhline(edge - 0.5, color=FAINT, linewidth=0.7)
    if plot.zero and not plot.log:
        axes.axvline(0, color=INK, linewidth=0.8)
    axes.margins(x=0.08)
    if plot.log:
        steps(axes, [m * 10.0 ** e for e in range(-4, 8) for m in (1, 2, 5)])
    axes.set_xlabel(plot.axis)


def draw_curves(axes: Axes, plot: Plot, series: Sequence[Series]) -> None:
    """Draw a curve for each series."""
    for s in series:
        mark(axes, s, x=[p.place for p in s.points],
             y=[p.value for p in s.points], linestyle=s.look.dash,
             yerr=whiskers(s.points))
    if plot.log:
        axes.set_xscale("log")
        steps(axes, sorted({p.place for s in series for p in s.points}))
    axes.set_ylim(bottom=min(0, axes.get_ylim()[0]))
    axes.set_xlabel(plot.x)
    axes.set_ylabel(plot.axis)


def steps(axes: Axes, numbers: Sequence[float]) -> None:
    """Write these numbers at a logarithmic axis, as one reads them."""
    low, high = axes.get_xlim()
    axes.xaxis.set_major_locator(FixedLocator(
        [n for n in numbers if low <= n <= high]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))


def shade(axes: Axes, seconds: float) -> None:
    """Shade the second, fourth .. phase of a time line."""
    axes.margins(x=0)
    _, end = axes.get_xlim()
    for low, high in pairwise(i * seconds for i in count(1)):
        if low >= end:
            break
        if round(low / seconds) % 2:
            axes.axvspan(low, high, color=SHADE, zorder=0)


def svg(plot: Plot, report: Report) -> str:
    """Return a plot as the text of an SVG file."""
    series = list(plot.series(report))
    height = 2.4
    if not plot.x:
        lines = sum(len(s.points) for s in series if s.look is not TARGET)
        height = 0.22 * lines
    with rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, MARGINS + height))
        axes = figure.subplots()
        (draw_curves if plot.x else draw_rows)(axes, plot, series)
        if plot.shade:
            shade(axes, report["plan"]["seconds"])
        axes.set_title(cell(plot.title, report["results"][0]))
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncol=6,
                    borderaxespad=0.2, handletextpad=0.5, columnspacing=1.6)
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()


def draw(report: Report) -> list[tuple[str, str]]:
    """Return an experiment's plots: what each shows, and its SVG."""
    return [(plot.alt, svg(plot, report))
            for plot in DRAW.get(report["experiment"], ())]
