# SPDX-License-Identifier: BSD-2-Clause
"""The report's plots, as SVG that stands inside a page.

The only file that needs matplotlib.  Colours are Okabe and Ito's, which the
colour-blind tell apart, and never the only difference: what is the paper's is
hatched or hollow, stock is dashed and diamonds, Sandpaper solid and circles.
Whiskers are 95 % intervals; one that is not known has none.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter

from . import paper
from .abuses import ABUSES, KEPT
from .claims import FAIR, LOST_MANY, LOST_NOOP, LOST_REALISTIC
from .estimate import known
from .latency import LIMIT
from .timeline import CLAIM, SLICES

Report = dict[str, Any]
Interval = Sequence[float] | None

WIDTH = 9.0  # inches
FONT = "DejaVu Sans"  # is wider than what a browser takes instead
INK, FAINT, GREY = "#222222", "#d9d9d9", "#bbbbbb"
COLOURS = {"stock": "#d55e00", "sandpaper": "#0072b2", "off": "#e69f00",
           "observe": "#009e73", "mr3": "#cc79a7", "sampled": "#0072b2",
           "every request": "#56b4e9"}
OTHER = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00")
MARKERS = {"stock": "D", "sandpaper": "o", "off": "s", "observe": "^",
           "mr3": "v", "sampled": "o", "every request": "^"}
DASHES = {"stock": "--", "mr3": ":"}
WIDEST = 0.09  # bar, of the whole width
NARROW = 0.045  # bar, in which a value stands upright
MANY = 6  # pairs, beside each other or in a plot of rows
SMOOTH = 5  # slices of a time line

STYLE = {
    "font.family": [FONT],
    "font.size": 10, "axes.titlesize": 10.5, "axes.titleweight": "bold",
    "axes.titlelocation": "left", "axes.titlepad": 30,
    "axes.edgecolor": INK, "axes.labelcolor": INK,
    "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "axes.axisbelow": True, "grid.color": FAINT,
    "grid.linewidth": 0.7, "text.color": INK, "xtick.color": INK,
    "ytick.color": INK, "legend.frameon": False, "hatch.linewidth": 0.8,
    "hatch.color": "#777777", "svg.fonttype": "none",
    "svg.hashsalt": "sandpaper", "figure.constrained_layout.use": True,
}


@dataclass(frozen=True)
class Series:
    """Values of one kind, one for each place; None where there is none."""

    name: str
    values: Sequence[float | None]
    intervals: Sequence[Interval]
    colour: str
    marker: str = "o"
    of_paper: bool = False


def style() -> AbstractContextManager[None]:
    """Return the context in which plots are drawn."""
    context: AbstractContextManager[None] = rc_context(STYLE)
    return context


def title(variant: str) -> str:
    """Return a variant's name as the legend has it."""
    return "Sandpaper" if variant == "sandpaper" else variant


def colour(variant: str) -> str:
    """Return a variant's colour."""
    return COLOURS.get(variant, OTHER[0])


def whisker(value: float, interval: Interval) -> list[list[float]]:
    """Return how far the interval reaches to both sides of the value."""
    if interval is None or not known(interval):
        return [[0.0], [0.0]]
    return [[max(0.0, value - interval[0])], [max(0.0, interval[1] - value)]]


def svg(figure: Figure, name: str, label: str) -> str:
    """Return the figure as an element of a page that has others, too."""
    out = io.StringIO()
    figure.savefig(out, format="svg")
    text = out.getvalue()
    text = text[text.index("<svg"):]
    text = re.sub(r"<metadata>.*?</metadata>|<style .*?</style>", "", text,
                  flags=re.DOTALL)
    text = text.replace(f"'{FONT}'", f"'{FONT}', Verdana, sans-serif")
    for before, after in (('id="', '"'), ('href="#', '"'), ("url(#", ")")):
        text = re.sub(
            re.escape(before) + "([^)\"]*)" + re.escape(after),
            lambda m: m[0].replace(m[1], f"{name}-{m[1]}", 1), text)
    return re.sub(
        r"<svg [^>]*?(viewBox=\"[^\"]*\")[^>]*>",
        rf'<svg \1 role="img" aria-label="{label}" '
        r'xmlns:xlink="http://www.w3.org/1999/xlink">', text, count=1)


def legend(axes: Axes) -> None:
    """Put the legend between title and plot, where it hides nothing."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncol=6,
                    borderaxespad=0.2, handletextpad=0.5, columnspacing=1.6)


def bars(
    axes: Axes, places: Sequence[str], series: Sequence[Series],
    text: str = "{:.2f}",
) -> None:
    """Draw groups of bars with their values written at the foot."""
    width = min(0.8 / len(series), WIDEST * len(places))
    for number, s in enumerate(series):
        first = True
        for place, (value, interval) in enumerate(
                zip(s.values, s.intervals, strict=True)):
            if value is None:
                continue
            x = place + (number - (len(series) - 1) / 2) * width
            axes.bar(x, value, width * 0.92, label=s.name if first else None,
                     color="white" if s.of_paper else s.colour,
                     hatch="////" if s.of_paper else None,
                     edgecolor="#777777" if s.of_paper else s.colour)
            if interval and known(interval):
                axes.errorbar(x, value, yerr=whisker(value, interval),
                              color=INK, capsize=3, linewidth=1.2)
            axes.annotate(
                text.format(value), (x, 0), (0, 4 if value >= 0 else -4),
                textcoords="offset points", ha="center",
                va="bottom" if value >= 0 else "top", fontsize=8, zorder=5,
                rotation=90 if width < NARROW * len(places) else 0,
                color=INK if s.of_paper else "white", bbox={
                    "facecolor": "white" if s.of_paper else s.colour,
                    "edgecolor": "none", "pad": 1})
            first = False
    axes.set_xticks(range(len(places)), places)
    axes.tick_params(axis="x", length=0)
    axes.grid(visible=False, axis="x")
    axes.set_xlim(-0.6, len(places) - 0.4)
    axes.axhline(0, color=INK, linewidth=0.8)


def dots(
    axes: Axes, places: Sequence[str], series: Sequence[Series]
) -> None:
    """Draw a row for each place, on a logarithmic axis."""
    for number, s in enumerate(series):
        first = True
        for place, (value, interval) in enumerate(
                zip(s.values, s.intervals, strict=True)):
            if not value:
                continue
            y = place + (number - (len(series) - 1) / 2) * 0.18
            axes.errorbar(
                value, y, xerr=whisker(value, interval), fmt=s.marker,
                color=s.colour, markersize=7, capsize=3, linewidth=1.3,
                markerfacecolor="white" if s.of_paper else s.colour,
                label=s.name if first else None)
            first = False
    axes.set_xscale("log")
    plain(axes, "x")
    axes.set_yticks(range(len(places)), places)
    axes.set_ylim(len(places) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)


def plain(axes: Axes, which: str) -> None:
    """Write a logarithmic axis' numbers as one reads them: 1, 2, 5, 10 .."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = axis.get_view_interval()
    steps = [m * 10.0 ** e for e in range(-4, 8) for m in (1, 2, 5)]
    axis.set_major_locator(FixedLocator(
        [s for s in steps if low * 0.999 <= s <= high * 1.001]))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(ScalarFormatter())
    axis.get_major_formatter().set_scientific(False)


def level(axes: Axes, value: float, text: str) -> None:
    """Draw what is claimed, with its name beside the plot."""
    axes.axhline(value, color=INK, linestyle=(0, (4, 3)), linewidth=1)
    axes.annotate(text, (1, value), (4, 0), fontsize=8.5, va="center",
                  xycoords=("axes fraction", "data"),
                  textcoords="offset points")


def figure(height: float, rows: int = 1) -> tuple[Figure, list[Axes]]:
    """Return a figure of so many plots above each other, inches high."""
    made = Figure(figsize=(WIDTH, height))
    axes = made.subplots(rows, 1, squeeze=False, sharex=rows > 1)
    return made, [row[0] for row in axes]


def variants(results: Sequence[Report]) -> list[str]:
    """Return the variants' names in their order."""
    return list(dict.fromkeys(r["variant"] for r in results))


def by_variant(
    results: Sequence[Report], places: Sequence[Any], place: Any,
    value: Any, interval: Any = lambda _: None,
) -> list[Series]:
    """Return a series for each variant; the functions take a result."""
    found = []
    for name in variants(results):
        mine = {place(r): r for r in results if r["variant"] == name}
        some = [mine.get(p) for p in places]
        found.append(Series(
            title(name), [value(r) if r else None for r in some],
            [interval(r) if r else None for r in some],
            colour(name), MARKERS.get(name, "o")))
    return found


def fairness(report: Report, target: float) -> str:
    """Draw min/max of normalised throughput, each pair (Figures 3, 9)."""
    results = report["results"]
    pairs = list(dict.fromkeys((r["a"], r["b"]) for r in results))
    series = by_variant(results, pairs, lambda r: (r["a"], r["b"]),
                        lambda r: r["ratio"], lambda r: r["ratio_ci"])
    told = [paper.stock_ratio(*pair) for pair in pairs]
    if any(told):
        series.insert(0, Series("paper, stock", told, [None] * len(told),
                                GREY, of_paper=True))
    made, (axes,) = figure(3.6)
    join = "\n" if len(pairs) > MANY else " and "
    bars(axes, [join.join(pair) for pair in pairs], series)
    level(axes, target, f"{target:.2f}")
    axes.set_ylim(0, 1.05)
    axes.set_ylabel("min/max, 1 is fair")
    axes.set_title("Normalised throughput: min/max of the two tenants")
    legend(axes)
    return svg(made, report["experiment"] + "-fairness",
               "Bars: min/max of normalised throughput by pair and variant")


def p99(report: Report) -> str:
    """Draw each tenant's p99 beside its neighbour (section 6.2)."""
    results = [
        {"variant": r["variant"], "who": (r[side], r[other]),
         "ms": r[f"p99_s_{side}"] * 1e3}
        for r in report["results"] for side, other in ("ab", "ba")]
    places = list(dict.fromkeys(r["who"] for r in results))
    series = by_variant(results, places, lambda r: r["who"],
                        lambda r: r["ms"])
    for name in variants(results):
        told = [paper.scaled_p99_s(a, b, name) for a, b in places]
        if any(told):
            series.append(Series(
                f"paper × {paper.SCALE:g}, {title(name)}",
                [t * 1e3 if t else None for t in told], [None] * len(told),
                colour(name), MARKERS[name], of_paper=True))
    row = 0.42 if len(places) <= 2 * MANY else 0.32
    made, (axes,) = figure(1.5 + row * len(places))
    dots(axes, [f"{a} with {b}" for a, b in places], series)
    axes.set_xlabel("p99, ms (logarithmic)")
    axes.set_title("Closed loop: p99 of each tenant with the other")
    legend(axes)
    return svg(made, report["experiment"] + "-p99",
               "Dots: p99 of each tenant by variant")


def table1(report: Report) -> str:
    """Draw what a request takes of CPU and link (Table 1)."""
    results = report["results"]
    names = list(dict.fromkeys(r["publisher"] for r in results))
    made, plots = figure(5.6, rows=2)
    for axes, what, of in zip(plots, ("cpu", "link"), (
            "of varnishd's CPU", "of the link"), strict=True):
        told = {r["publisher"]: r for r in results}
        series = [Series(
            f"paper × {paper.SCALE:g}",
            [told[n][f"paper_{what}_us"] for n in names],
            [spread(told[n], f"paper_{what}") for n in names], GREY,
            of_paper=True)]
        series += by_variant(
            results, names, lambda r: r["publisher"],
            lambda r, what=what: r[f"{what}_us"],
            lambda r, what=what: spread(r, what))
        bars(axes, names, series, "{:.0f}")
        axes.set_ylabel("µs")
        axes.set_title(f"A request alone: time {of}", pad=None
                       if what == "cpu" else 12)
        axes.tick_params(axis="x", labelbottom=True)
    legend(plots[0])
    return svg(made, "table1", "Bars: CPU and link time by customer")


def spread(result: Report, what: str) -> Interval:
    """Return the mean less and plus a standard deviation, if known."""
    mean, sd = result[f"{what}_us"], result.get(f"{what}_sd_us")
    return None if sd is None else (mean - sd, mean + sd)


def workers(report: Report, target: float) -> str:
    """Draw fairness by slots (Figure 4)."""
    results = report["results"]
    made, (axes,) = figure(3.6)
    many = list(dict.fromkeys(r["connections"] for r in results))
    for clients, shade, marker, dash in zip(
            many, OTHER, "osD^v", ("-", "--", ":", "-.", "-"), strict=False):
        mine = [r for r in results if r["connections"] == clients]
        x, y = [r["slots"] for r in mine], [r["ratio"] for r in mine]
        axes.plot(x, y, dash, color=shade, linewidth=1.6, marker=marker,
                  markersize=7, label=f"{clients} connections per tenant")
        for r in mine:
            if known(r["ratio_ci"]):
                axes.errorbar(r["slots"], r["ratio"], color=shade,
                              yerr=whisker(r["ratio"], r["ratio_ci"]),
                              capsize=3, linewidth=1)
    axes.set_xscale("log")
    slots = sorted({r["slots"] for r in results})
    axes.xaxis.set_major_locator(FixedLocator(slots))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.set_ylim(0, 1.05)
    level(axes, target, f"{target:.2f}")
    axes.set_xlabel("slots per core (logarithmic)")
    axes.set_ylabel("min/max, 1 is fair")
    pair = results[0]
    axes.set_title(f"Fairness of {pair['a']} and {pair['b']} by pool size")
    legend(axes)
    return svg(made, "workers", "Curves: fairness by slots per core")


def lost(report: Report, realistic: float, noop: float) -> str:
    """Draw what each customer alone loses (section 6.4), and may lose."""
    results = report["results"]
    names = [r["customer"] for r in results]
    told = [paper.lost(n) for n in names]
    series = [
        Series("paper, at most", [t * 100 if t else None for t in told],
               [None] * len(told), GREY, of_paper=True),
        Series(title(results[0]["variant"]),
               [100 * (1 - r["ratio"]) for r in results],
               [percent(r["ratio_ci"]) for r in results],
               colour(results[0]["variant"]))]
    made, (axes,) = figure(3.4)
    bars(axes, names, series, "{:.1f}")
    limits = [100 * (noop if n == "k0" else realistic) for n in names]
    axes.hlines(limits, [i - 0.42 for i in range(len(names))],
                [i + 0.42 for i in range(len(names))], color=INK,
                linestyle=(0, (4, 3)), linewidth=1.2,
                label=f"claimed: at most {100 * realistic:g} %, "
                f"no-op {100 * noop:g} %")
    axes.set_ylabel("throughput lost, % of stock's")
    axes.set_title("A tenant alone: throughput lost (less is better)")
    legend(axes)
    return svg(made, "alone-lost", "Bars: throughput lost by customer")


def percent(ratio_ci: Interval) -> Interval:
    """Return the interval of what is lost, in percent."""
    if ratio_ci is None or not known(ratio_ci):
        return None
    return 100 * (1 - ratio_ci[1]), 100 * (1 - ratio_ci[0])


def cpu(report: Report) -> str:
    """Draw each customer's CPU time per request."""
    results = report["results"]
    series = [Series(title(results[0][what]),
                     [r[f"cpu_us_{what}"] for r in results],
                     [None] * len(results), colour(results[0][what]))
              for what in ("baseline", "variant")]
    made, (axes,) = figure(3.0)
    bars(axes, [r["customer"] for r in results], series, "{:.0f}")
    axes.set_ylabel("CPU time per request, µs")
    axes.set_title("A tenant alone: CPU time per request")
    legend(axes)
    return svg(made, "alone-cpu", "Bars: CPU time per request by customer")


def overhead(report: Report, realistic: float, noop: float) -> str:
    """Draw throughput over stock's, by setting and customer (6.4)."""
    results = report["results"]
    names = list(dict.fromkeys(r["customer"] for r in results))
    settings = list(dict.fromkeys(r["setting"] for r in results))
    made, (axes,) = figure(3.8)
    for number, setting in enumerate(settings):
        shift = (number - (len(settings) - 1) / 2) * 0.22
        mine = {r["customer"]: r for r in results if r["setting"] == setting}
        for first, r in enumerate(mine.values()):
            axes.errorbar(
                names.index(r["customer"]) + shift, r["ratio"],
                yerr=whisker(r["ratio"], r["ratio_ci"]),
                fmt=MARKERS.get(setting, "o"), color=colour(setting),
                markersize=7, capsize=3, linewidth=1.3,
                label=setting if first == 0 else None)
    for number, name in enumerate(names):
        least = 1 - (paper.lost(name) or 0)
        if least < 1:
            axes.bar(number, 1 - least, 0.84, bottom=least, color="white",
                     hatch="////", edgecolor=GREY, zorder=0.5,
                     label="paper, at least" if number == 0 else None)
    limits = [1 - (noop if n == "k0" else realistic) for n in names]
    axes.hlines(limits, [i - 0.42 for i in range(len(names))],
                [i + 0.42 for i in range(len(names))], color=INK,
                linestyle=(0, (1, 2)), linewidth=1.2,
                label="claimed, at least")
    level(axes, 1, results[0]["baseline"])
    axes.margins(y=0.08)
    axes.set_xticks(range(len(names)), names)
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.grid(visible=False, axis="x")
    axes.set_ylabel(f"throughput over {results[0]['baseline']}'s")
    axes.set_title("A tenant alone: throughput by what is switched on")
    legend(axes)
    return svg(made, "overhead", "Dots: throughput by setting and customer")


def utilization(report: Report) -> str:
    """Draw throughput and CPU time by connections (Figure 6)."""
    results = report["results"]
    made, plots = figure(5.4, rows=2)
    for axes, what in zip(plots, ("rps", "busy"), strict=True):
        for name in variants(results):
            mine = [r for r in results if r["variant"] == name]
            axes.plot([r["connections"] for r in mine],
                      [r[what] * (100 if what == "busy" else 1)
                       for r in mine],
                      DASHES.get(name, "-"), color=colour(name),
                      marker=MARKERS.get(name, "o"), markersize=7,
                      linewidth=1.6, label=title(name))
        axes.set_ylim(bottom=0)
    plots[0].set_ylabel("requests/s")
    plots[0].set_title(f"{results[0]['customer']} alone: throughput")
    plots[1].set_ylabel("% of its cores")
    plots[1].set_ylim(top=105)
    plots[1].set_title(f"varnishd's CPU time, of {results[0]['cores']} cores",
                       pad=6)
    plots[1].set_xscale("log")
    plots[1].xaxis.set_major_locator(FixedLocator(
        sorted({r["connections"] for r in results})))
    plots[1].xaxis.set_minor_locator(NullLocator())
    plots[1].xaxis.set_major_formatter(ScalarFormatter())
    plots[1].set_xlabel("connections (logarithmic)")
    legend(plots[0])
    return svg(made, "utilization",
               "Curves: throughput and CPU time by connections")


def fetch(report: Report) -> str:
    """Draw the slots lent beside what the paper expects (appendix B)."""
    results = [r for r in report["results"] if r["variant"] != "stock"]
    made, (axes,) = figure(3.8)
    most = max(max(r["expected"], r["lent"]) for r in results) * 1.1
    axes.plot([0, most], [0, most], "--", color="#777777", linewidth=1.2,
              label="expected (paper): λp/µ")
    for name in variants(results):
        for number, r in enumerate(
                r for r in results if r["variant"] == name):
            axes.errorbar(
                r["expected"], r["lent"], color=colour(name), capsize=3,
                yerr=whisker(r["lent"], r["lent_ci"]), markersize=7,
                fmt=MARKERS.get(name, "o"), linewidth=1.3,
                label=title(name) if number == 0 else None)
            axes.annotate(
                f"{r['p_miss']:.0%} miss, {r['fetch_s']:g} s",
                (r["expected"], r["lent"]), (8, -14), fontsize=8.5,
                textcoords="offset points")
    axes.set_xlim(0, most * 1.12)
    axes.set_ylim(0, most)
    axes.set_xlabel("λp/µ: requests/s × part that misses × mean time of a "
                    "fetch")
    axes.set_ylabel("slots lent, mean")
    axes.set_title("Slots lent to requests that wait for the origin")
    legend(axes)
    return svg(made, "fetch", "Dots: slots lent by what is expected")


def scale(report: Report, target: float) -> str:
    """Draw what many tenants cost (section 6.4)."""
    results = report["results"]
    made, (axes,) = figure(3.4)
    x = [r["tenants"] for r in results]
    y = [100 * (1 - r["ratio"]) for r in results]
    ours = results[0]["variant"]
    axes.plot(x, y, color=colour(ours), marker="o", markersize=7,
              linewidth=1.6, label=title(ours))
    for r, value in zip(results, y, strict=True):
        interval = percent(r["ratio_ci"])
        if interval:
            axes.errorbar(r["tenants"], value, color=colour(ours), capsize=3,
                          yerr=whisker(value, interval), linewidth=1)
    axes.plot([1, paper.MANY], [100 * paper.LOST_FEW, 100 * paper.LOST_MANY],
              "--", color="#777777", marker="s", markerfacecolor="white",
              markersize=7, label="paper (a handful, 2000)")
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(sorted({*x, 1, paper.MANY})))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.axhline(0, color=INK, linewidth=0.8)
    level(axes, 100 * target, f"{100 * target:g} %")
    axes.set_xlabel("tenants, 10 connections each (logarithmic)")
    axes.set_ylabel("throughput lost, % of stock's")
    axes.set_title("Many tenants: throughput lost (less is better)")
    legend(axes)
    return svg(made, "scale", "Curve: throughput lost by tenants")


def latency(report: Report) -> str:
    """Draw what a neighbour does to an open loop's p99."""
    results = report["results"]
    places = list(dict.fromkeys(
        (r["tenant"], r["beside"]) for r in results))
    series = by_variant(
        results, places, lambda r: (r["tenant"], r["beside"]),
        lambda r: r["times"], lambda r: r["times_ci"])
    made, (axes,) = figure(1.5 + 0.42 * len(places))
    dots(axes, [f"{a} with {b}" for a, b in places], series)
    axes.axvline(LIMIT, color=INK, linestyle=(0, (4, 3)), linewidth=1,
                 label=f"at most {LIMIT:g}")
    axes.set_xlabel("p99 together over (p99 alone / share), logarithmic")
    axes.set_title("Open loop: effect of the other tenant on p99")
    legend(axes)
    return svg(made, "latency", "Dots: growth of p99 by tenant, variant")


def smooth(slices: Sequence[int]) -> list[float]:
    """Return requests/s, the mean of SMOOTH slices around each."""
    half = SMOOTH // 2
    found = []
    for i in range(len(slices)):
        some = slices[max(0, i - half):i + half + 1]
        found.append(sum(some) / len(some) * SLICES)
    return found


def timeline(report: Report) -> str:
    """Draw both tenants' throughput by time (Figures 12 and 13)."""
    results = report["results"]
    seconds = report["plan"]["seconds"]
    made, plots = figure(5.2, rows=2)
    end = 0.0
    for axes, tenant in zip(plots, ("static", "dynamic"), strict=True):
        for name in variants(results):
            r = next(r for r in results if r["variant"] == name)
            y = smooth(r["series"][tenant])
            x = [(i + 0.5) / SLICES for i in range(len(y))]
            end = max(end, len(y) / SLICES)
            axes.plot(x, y, "--" if name == "stock" else "-",
                      color=colour(name), linewidth=1.6, label=title(name))
        axes.set_ylabel("requests/s")
        axes.set_ylim(bottom=0)
        axes.set_xlim(0, end)
        for phase in range(1, int(end // seconds + 0.5), 2):
            axes.axvspan(phase * seconds, (phase + 1) * seconds,
                         color="#f0f0f0", zorder=0)
    what = (" and ".join(dict.fromkeys(r["phase"] for r in results)))
    plots[0].set_title("Static tenant (nothing changes for it)")
    plots[1].set_title(f"Dynamic tenant (shaded: {what})", pad=6)
    plots[1].set_xlabel(f"s; mean of {SMOOTH / SLICES:g} s, the last turn")
    legend(plots[0])
    return svg(made, report["experiment"] + "-line",
               "Curves: both tenants' throughput by time")


def of_fair(report: Report) -> str:
    """Draw what the static tenant keeps, of what is fair."""
    results = report["results"]
    phases = list(dict.fromkeys(r["phase"] for r in results))
    series = by_variant(results, phases, lambda r: r["phase"],
                        lambda r: r["of_fair"], lambda r: r["of_fair_ci"])
    made, (axes,) = figure(2.9)
    bars(axes, phases, series)
    level(axes, CLAIM, f"{CLAIM:.2f}")
    axes.set_ylabel("kept, of the fair throughput")
    axes.set_title("Static tenant: throughput kept, over the fair throughput")
    legend(axes)
    return svg(made, report["experiment"] + "-kept",
               "Bars: throughput kept by phase and variant")


def kept(report: Report, share: float) -> str:
    """Draw what the victim keeps beside an abuser."""
    results = report["results"]
    fair = results[0]["fair"]
    series = by_variant(results, ["it"], lambda _: "it",
                        lambda r: r["kept"], lambda r: r["kept_ci"])
    made, (axes,) = figure(2.7)
    bars(axes, [f"{results[0]['victim']} under {results[0]['abuse']}"],
         series)
    level(axes, share * fair, f"{share * fair:.2f}")
    axes.set_ylabel("kept, of alone")
    axes.set_title(f"The victim's throughput under abuse, over alone "
                   f"(fair: {fair:g})")
    legend(axes)
    return svg(made, report["experiment"] + "-kept",
               "Bars: throughput that the victim keeps, by variant")


DRAW: dict[str, Sequence[Callable[[Report], str]]] = {
    "table1": (table1,),
    "pairs": (lambda r: fairness(r, FAIR), p99),
    "alone": (lambda r: lost(r, LOST_REALISTIC, LOST_NOOP), cpu),
    "overhead": (lambda r: overhead(r, LOST_REALISTIC, LOST_NOOP),),
    "workers": (lambda r: workers(r, FAIR),),
    "utilization": (utilization,), "latency": (latency,),
    "scale": (lambda r: scale(r, LOST_MANY),),
    "content-change": (timeline, of_fair), "flash-crowd": (timeline, of_fair),
    "fetch": (fetch,), **dict.fromkeys(ABUSES, (lambda r: kept(r, KEPT),)),
    "rate-unknown": (lambda r: fairness(r, r["plan"]["target"]),),
    "rate-wrong": (lambda r: fairness(r, r["plan"]["target"]),),
}


def draw(report: Report) -> list[str]:
    """Return the plots of an experiment."""
    return [make(report) for make in DRAW.get(report["experiment"], ())]
