# SPDX-License-Identifier: BSD-2-Clause
"""The report's plots, as SVG images.

The only file that needs matplotlib.  A plot has rows of values, or curves;
DRAW says which of a result's fields it shows.  RULES (claims.py) have the
target of a value.  Colours are Okabe and Ito's,
which the colour-blind tell apart, and never the only difference: each variant
has its marker and dash, what is the paper's is hollow, and values stand
beside the marks.  Whiskers are 95 % intervals; one that is not known has none.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count, pairwise
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

from . import paper
from .abuses import ABUSES
from .claims import RULES, facts
from .estimate import known
from .scale import CONNECTIONS
from .table import cell, sides
from .timeline import SLICES
from .varnish import STOCK

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


OURS = Look("#0072b2")
LOOKS = {
    "stock": Look("#d55e00", "D", "--"), "sandpaper": OURS, "sampled": OURS,
    "off": Look("#e69f00", "s"), "observe": Look("#009e73", "^"),
    "mr3": Look("#cc79a7", "v", ":"), "nginx": Look("#000000", "P", "-."),
    "every request": Look("#56b4e9", "^")}
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


def results(report: Report) -> Iterable[Row]:
    """Return the rows of most plots."""
    return (r | facts(report, r) for r in report["results"])


@dataclass(frozen=True)
class Plot:
    """What is shown of the rows, and how.

    A series is what has the same in the field `of`, and the paper's figure.
    If a claim is about the value, its target is shown, too.
    """

    title: str  # a template of the first result
    axis: str  # what the values are, with their unit
    value: str  # the field; the field VALUE_ci has its interval
    place: str  # a template of the name of a row, or the field that is x
    rows: Callable[[Report], Iterable[Row]] = results
    of: str = "variant"
    names: str = "{}"  # of series
    paper: str = "paper"
    told: Callable[[Row], float | None] | None = None  # by the paper
    times: float = 1.0
    x: str = ""  # what x is; empty: the plot has rows
    form: str = "{:.2f}"  # of a value beside its mark
    log: bool = False  # the axis of values in rows, of x in curves
    shade: bool = False  # every other phase of a time line


def points(
    plot: Plot, rows: Iterable[Row], value: Callable[[Row], float | None],
    whiskers: bool = False,
) -> list[Point]:
    """Return the values of rows, one for each place that has any."""
    found = {}
    for row in rows:
        measured, ends = value(row), None
        if measured is None:
            continue
        if whiskers and known(row.get(f"{plot.value}_ci") or (0.0, 1.0)):
            ends = [end * plot.times for end in row[f"{plot.value}_ci"]]
        place = (row[plot.place] if plot.place in row
                 else cell(plot.place, row))
        found[place] = Point(place, measured * plot.times, ends)
    return list(found.values())


def look_of(kind: Any, number: int) -> Look:
    """Return how a series is drawn: as its variant, the paper's hollow."""
    if isinstance(kind, int):
        return CYCLE[number % len(CYCLE)]
    if not kind.startswith("paper"):
        return LOOKS.get(kind, OURS)
    of = LOOKS.get(kind.rpartition(" ")[2])
    return replace(of, hollow=True) if of else PAPER


def series_of(plot: Plot, report: Report) -> list[Series]:
    """Return what is measured, what the paper tells, and what is claimed."""
    rows = list(plot.rows(report))
    found = []
    for number, kind in enumerate(dict.fromkeys(r[plot.of] for r in rows)):
        mine = [r for r in rows if r[plot.of] == kind]
        name = str(kind).replace("sandpaper", "Sandpaper")
        found.append(Series(
            plot.names.format(name),
            points(plot, mine, lambda r: r[plot.value], whiskers=True),
            look_of(kind, number)))
    if plot.told:
        found.append(Series(plot.paper, points(plot, rows, plot.told), PAPER))
    for rule in RULES.get(report["experiment"], ()):
        if rule.value == plot.value:
            words = dict.fromkeys(map(rule.words, rows))
            found.append(Series(f"claimed: {' or '.join(words)}",
                                points(plot, rows, rule.limit), TARGET))
    return [series for series in found if series.points]


def p99(report: Report) -> Iterable[Row]:
    """Return each tenant of a pair, and what the paper tells (section 6.2)."""
    for result in report["results"]:
        for row in sides(result):
            told = paper.scaled_p99_s(row["tenant"], row["beside"],
                                      row["variant"])
            yield row
            yield row | {
                "p99_s": told,
                "variant": f"paper × {paper.SCALE:g}, {row['variant']}"}


def table1(what: str) -> Callable[[Report], Iterable[Row]]:
    """Return rows of what a request takes of the CPU or link (Table 1)."""
    def rows(report: Report) -> Iterable[Row]:
        for r in report["results"]:
            for field, variant in (
                    (f"paper_{what}", f"paper × {paper.SCALE:g}"),
                    (what, r["variant"])):
                mean, sd = r[f"{field}_us"], r.get(f"{field}_sd_us")
                yield r | {"variant": variant, "us": mean,
                           "us_ci": sd and (mean - sd, mean + sd)}
    return rows


def cpu(report: Report) -> Iterable[Row]:
    """Return each customer's CPU time under both variants."""
    for r in report["results"]:
        for which in ("baseline", "variant"):
            yield r | {"variant": r[which], "us": r[f"cpu_us_{which}"]}


def lent(report: Report) -> Iterable[Row]:
    """Return the slots lent; stock lends none."""
    return (r for r in report["results"] if r["variant"] != STOCK)


def timeline(tenant: str) -> Callable[[Report], Iterable[Row]]:
    """Return rows of a tenant's throughput by time (Figures 12 and 13)."""
    def rows(report: Report) -> Iterable[Row]:
        lines = {r["variant"]: r["series"][tenant]
                 for r in reversed(report["results"])}
        for r in report["results"]:
            for i, value in enumerate(smooth(lines.pop(r["variant"], []))):
                yield {"variant": r["variant"], "s": (i + 0.5) / SLICES,
                       "rps": value}
    return rows


def smooth(slices: Sequence[int]) -> list[float]:
    """Return requests/s, the mean of SMOOTH slices around each."""
    half = SMOOTH // 2
    around = [slices[max(0, i - half):i + half + 1]
              for i in range(len(slices))]
    return [sum(some) / len(some) * SLICES for some in around]


def many(report: Report) -> Iterable[Row]:
    """Return what tenants cost, and what the paper tells (section 6.4)."""
    yield from results(report)
    name = f"paper (a handful, {paper.MANY})"
    for tenants, lost in ((1, paper.LOST_FEW), (paper.MANY, paper.LOST_MANY)):
        yield {"variant": name, "tenants": tenants, "lost": lost}


FAIRNESS = Plot(
    "Normalised throughput: min/max of the two tenants", "min/max, 1 is fair",
    "ratio", "{a} and {b}", paper="paper, stock",
    told=lambda r: paper.stock_ratio(r["a"], r["b"]))
LOST = Plot(
    "A tenant alone: throughput lost (less is better)",
    "throughput lost, % of stock's", "lost", "{customer}", times=100,
    form="{:.1f}", paper="paper, at most",
    told=lambda r: paper.lost(r["customer"]))
TIMELINE = Plot(
    "Static tenant (nothing changes for it)", "requests/s", "rps", "s",
    timeline("static"), shade=True,
    x=f"s; mean of {SMOOTH / SLICES:g} s, the last turn")
LINES = (
    TIMELINE,
    replace(TIMELINE, title="Dynamic tenant (it changes in the shaded time)",
            rows=timeline("dynamic")),
    Plot("Static tenant: throughput kept, over the fair throughput",
         "kept, of the fair throughput", "of_fair", "{phase}"))
BY_CONNECTIONS = Plot(
    "{customer} alone: throughput", "requests/s", "rps", "connections",
    x="connections (logarithmic)", log=True)
PAIRS = (FAIRNESS, Plot(
    "Closed loop: p99 of each tenant with the other",
    "p99, ms (logarithmic)", "p99_s", "{tenant} with {beside}", p99,
    times=1e3, form="{:,.1f}", log=True))
DRAW: dict[str, Sequence[Plot]] = {
    "table1": (
        Plot("A request alone: time of varnishd's CPU", "µs", "us",
             "{publisher}", table1("cpu"), form="{:.0f}"),
        Plot("A request alone: time of the link", "µs", "us", "{publisher}",
             table1("link"), form="{:.0f}")),
    "pairs": PAIRS, "random-pairs": PAIRS, "quick": PAIRS,
    "alone": (LOST, Plot(
        "A tenant alone: CPU time per request", "CPU time per request, µs",
        "us", "{customer}", cpu, form="{:.0f}")),
    "overhead": (replace(
        LOST, of="setting",
        title="A tenant alone: throughput lost by what is switched on"),),
    "workers": (Plot(
        "Fairness of {a} and {b} by pool size", "min/max, 1 is fair",
        "ratio", "slots", of="connections",
        names="{} connections per tenant", x="slots per core (logarithmic)",
        log=True),),
    "utilization": (BY_CONNECTIONS, replace(
        BY_CONNECTIONS, title="varnishd's CPU time, of {cores} cores",
        axis="% of its cores", value="busy", times=100)),
    "latency": (Plot(
        "Open loop: effect of the other tenant on p99",
        "p99 together over (p99 alone / share), logarithmic", "times",
        "{tenant} with {beside}", log=True),),
    "scale": (Plot(
        "Many tenants: throughput lost (less is better)",
        "throughput lost, % of stock's", "lost", "tenants", many, times=100,
        x=f"tenants, {CONNECTIONS} connections each (logarithmic)", log=True),),
    "content-change": LINES, "flash-crowd": LINES,
    "fetch": (Plot(
        "Slots lent to requests that wait for the origin", "slots, mean",
        "lent", "{p_miss:.0%} miss, {fetch_s:g} s", lent, form="{:.1f}",
        paper="paper, expected: λp/µ", told=lambda r: float(r["expected"])),),
    **dict.fromkeys(ABUSES, (Plot(
        "The victim's throughput under abuse, over alone (fair: {fair:g})",
        "kept, of alone", "kept", "{victim} under {abuse}"),)),
    "rate-unknown": (FAIRNESS,), "rate-wrong": (FAIRNESS,),
}


def whiskers(points: Sequence[Point]) -> list[list[float]] | None:
    """Return how far intervals reach to both sides; nan draws none."""
    if not any(p.interval for p in points):
        return None
    return [[max(0.0, sign * (p.interval[end] - p.value))
             if p.interval else math.nan for p in points]
            for end, sign in ((0, -1), (1, 1))]


def mark(axes: Axes, s: Series, marker: str, **more: Any) -> None:
    """Draw a series' marks, whiskers and line, and its entry in the legend."""
    axes.errorbar(
        label=s.name, color=s.look.colour, marker=marker, capsize=3,
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
        mark(axes, s, s.look.marker, x=[p.value for p in s.points], y=y,
             linestyle="none", xerr=whiskers(s.points))
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
    axes.margins(x=0.08)
    if plot.log:
        steps(axes, [m * 10.0 ** e for e in range(-4, 8) for m in (1, 2, 5)])
    else:
        axes.axvline(0, color=INK, linewidth=0.8)
    axes.set_xlabel(plot.axis)


def draw_curves(axes: Axes, plot: Plot, series: Sequence[Series]) -> None:
    """Draw a curve for each series."""
    for s in series:
        bare = plot.shade or s.look is TARGET
        mark(axes, s, "" if bare else s.look.marker,
             x=[p.place for p in s.points], y=[p.value for p in s.points],
             linestyle=s.look.dash, yerr=whiskers(s.points))
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


def svg(plot: Plot, title: str, report: Report) -> str:
    """Return a plot as the text of an SVG file."""
    series = series_of(plot, report)
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
        axes.set_title(title)
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncol=6,
                    borderaxespad=0.2, handletextpad=0.5, columnspacing=1.6)
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()


def draw(report: Report) -> list[tuple[str, str]]:
    """Return an experiment's plots: a text instead of it, and its SVG."""
    found = []
    for plot in DRAW.get(report["experiment"], ()):
        title = cell(plot.title, report["results"][0])
        found.append((f"{'Curves' if plot.x else 'Rows of values'}: {title}, "
                      f"{plot.axis}", svg(plot, title, report)))
    return found
