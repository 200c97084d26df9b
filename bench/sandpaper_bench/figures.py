# SPDX-License-Identifier: BSD-2-Clause
"""Figures of the documentation, in Markdown, from the records of runs.

A table or figure that has no record says so.  Each has the commit it is of,
marked if the code has changed since.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from . import (
    cachefigures,
    compressfigures,
    exporterfigures,
    haboobfigures,
    overloadfigures,
)
from .abuses import ABUSES, NEW_KEPT, NEW_TIMES
from .claims import (
    FAIR,
    LOST_MANY,
    SAMPLED,
    lost_limit,
    noop,
    pair_control,
    valid,
)
from .latency import LIMIT
from .markdown import (
    BENCH,
    IS_OLD,
    NOT_YET,
    OLD,
    OURS,
    RATIO,
    Columns,
    Record,
    Records,
    Row,
    beside,
    control_of,
    doubt,
    goal,
    in_text,
    not_yet,
    one_record,
    several,
    table,
    under,
)
from .table import cell
from .timeline import CLAIM
from .varnish import STOCK


class Unknown(Exception):
    """A page asks for a figure that does not exist."""


class Figures(Records):
    """All figures, by name."""

    def render(self, words: str) -> str:
        """Return what stands between marks with these words."""
        name, *more = words.split()
        text = chosen(TABLES, name)(self, *more)
        said = OLD in text and name != "headline"  # the README says it once
        return text + (f"\n\n{IS_OLD}" if said else "")

    def figure(self, words: str) -> str:
        """Return a figure in a text."""
        name, *more = words.split()
        return chosen(SINGLE, name)(self, *more)


def chosen(
    functions: dict[str, Callable[..., str]], name: str
) -> Callable[..., str]:
    """Return the function of that name; an error says which there are."""
    if name not in functions:
        raise Unknown(f"there is no figure '{name}': use one of "
                      + ", ".join(functions))
    return functions[name]


def pairs(record: Record) -> tuple[Columns, Iterable[Row]]:
    """Return min/max of each pair, under each variant."""
    results = [r | {
        "worst": max(r["stretch_a"], r["stretch_b"]),
        "other": "its twin" if r["b"] == f"{r['a']}-twin" else r["b"]}
        for r in record["results"]]
    variants = list(dict.fromkeys(r["variant"] for r in results))
    titles = [(v.replace(OURS, "Sandpaper"), v) for v in variants]
    rows = [beside({"results": results}, r, "a", "b")
            for r in results if r["variant"] == variants[0]]
    for row in rows:
        row["goal"] = goal(
            row[f"{variants[-1]}_ratio"], FAIR, record["valid"])
    costs = [] if results[-1].get("ratio_at_cost") is None else [
        *([("in whole windows", "{sandpaper_ratio_windows:.2f}")]
          if "ratio_windows" in results[-1] else []),
        ("at the CPU time of alone", "{sandpaper_ratio_at_cost:.2f}"),
        ("CPU us alone, together", "{sandpaper_cpu_us_alone_a:.0f}, "
         "{sandpaper_cpu_us_a:.0f} and {sandpaper_cpu_us_alone_b:.0f}, "
         "{sandpaper_cpu_us_b:.0f}")]
    return [
        ("pair", "{a} and {other}"),
        *((title, f"{{{v}_ratio:.2f}}{{{v}_ratio_ci:to}}")
          for title, v in titles),
        *costs,
        *((f"worst stretch, {title}", f"{{{v}_worst:.1f}}")
          for title, v in titles),
        (f"goal {FAIR}", "{goal}"),
    ], rows


def scale(record: Record) -> tuple[Columns, Iterable[Row]]:
    """Return throughput with many tenants."""
    return [
        ("tenants", "{tenants:,}"), ("connections", "{connections:,}"),
        ("stock, requests/s", "{rps_baseline:,.0f}"),
        ("Sandpaper, requests/s", "{rps_variant:,.0f}"),
        ("over stock", RATIO),
        ("CPU us per request, stock and Sandpaper",
         "{cpu_us_baseline:.0f}, {cpu_us_variant:.0f}"),
        (f"goal {1 - LOST_MANY:g}", "{goal}"),
    ], [r | {"goal": goal(r["ratio"], 1 - LOST_MANY, record["valid"])}
        for r in record["results"]]


def change(record: Record) -> tuple[Columns, Iterable[Row]]:
    """Return what the static tenant keeps of what is fair."""
    rows = [beside(record, r, "phase") for r in {
        r["phase"]: r for r in record["results"]}.values()]
    return [
        ("what", "the twin: {phase}"),
        (STOCK, "{stock_of_fair:.2f}{stock_of_fair_ci:to}"),
        ("Sandpaper", "{sandpaper_of_fair:.2f}{sandpaper_of_fair_ci:to}"),
        (f"goal {CLAIM}", "{goal}"),
    ], [r | {"goal": goal(r["sandpaper_of_fair"], CLAIM, record["valid"])}
        for r in rows]


def fetch(record: Record) -> tuple[Columns, Iterable[Row]]:
    """Return the slots that are lent to requests that wait."""
    def row(r: Row) -> Row:
        stock = under(record, STOCK, {"p_miss": r["p_miss"],
                                      "fetch_s": r["fetch_s"]})
        return r | {
            "percent": 100 * r["p_miss"],
            "stock": f"{stock['threads']:.0f}, " if stock else "",
            "doubt": doubt(record, f"{r['p_miss']:.0%}, {r['fetch_s']:g} s")}

    return [
        ("what", "{percent:.0f} % wait {fetch_s:g} s"),
        ("slots expected", "{expected:.0f}"),
        ("slots lent by Sandpaper", "{lent:.1f}{lent_ci:to1}{doubt}"),
        ("threads of stock and Sandpaper", "{stock}{threads:.0f}"),
    ], [row(r) for r in record["results"] if r["variant"] == OURS]


def latency(record: Record) -> tuple[Columns, Iterable[Row]]:
    """Return what a neighbour does to p99."""
    form = "p99 alone, together, factor"
    return [
        ("tenant", "{tenant} with {beside}"),
        (f"stock: {form}", "{stock_p99_s_alone:time}, {stock_p99_s:time} ms, "
         "{stock_times:.2f}{stock_times_ci:to}"),
        (f"Sandpaper: {form}", "{p99_s_alone:time}, {p99_s:time} ms, "
         "{times:.2f}{times_ci:to}"),
        (f"goal: factor {LIMIT:g}", "{goal}"),
    ], [beside(record, r, "tenant", "beside") | {"goal": goal(
        LIMIT, r["times"], valid(record, pair_control(record, r)))}
        for r in record["results"] if r["variant"] == OURS]


def overhead(figures: Figures) -> str:
    """Return each tenant's throughput alone, over stock's."""
    records = [r for r in figures.records.values()
               if isinstance(r, dict) and r.get("experiment") == "overhead"]
    if not records:
        return not_yet(f"{BENCH} overhead")
    return several(figures, [
        ("tenant", "{customer}{work}"), ("connections", "{connections}"),
        ("Sandpaper", RATIO),
        ("`sandpaper=off`", "{off_ratio:.2f}{off_ratio_ci:to}"),
        ("every request measured",
         "{every request_ratio:.2f}{every request_ratio_ci:to}"),
        ("CPU us per request, stock and Sandpaper",
         "{cpu_us_baseline:.0f}, {cpu_us_variant:.0f}"),
        ("control: stock against itself", "{control}"),
        ("goal", "{limit:.2f}: {goal}"), ("commit", "{commit}"),
    ], [overhead_row(figures, record, r) for record in records
        for r in record["results"] if r["setting"] == SAMPLED], records)


def overhead_row(figures: Figures, record: Record, r: Row) -> Row:
    """Return a customer's row, with what it has under other settings."""
    part, limit = f"{r['customer']}, {SAMPLED}", 1 - lost_limit(r)
    row = r | {
        "work": ", no-op" if noop(r) else "", "limit": limit,
        "connections": record["plan"]["connections"],
        "control": control_of(record, part), "commit": figures.commit(record),
        "goal": goal(r["ratio"], limit, valid(record, part))}
    for setting in ("off", "every request"):
        other: Row = next((o for o in record["results"] if (
            o["customer"], o["setting"]) == (r["customer"], setting)), {})
        row |= {f"{setting}_{key}": other.get(key)
                for key in ("ratio", "ratio_ci")}
    return row


def abuse(figures: Figures, of: str = "", *command: str) -> str:
    """Return what a good tenant keeps during each abuse.

    `of` is the NAME of `abuse --record NAME`.
    """
    records: list[Record] = []
    rows: list[Row] = []
    for name in ABUSES:
        record = figures.records.get(f"{name}-{of}" if of else name)
        if record:
            records.append(record)
            rows += [beside(record, r) | {
                "map": ", with a map" if ABUSES[name].mapped else "",
                "text": cell("{kept:.2f}{kept_ci:to}", r),
                "control": control_of(record, OURS),
                "stock_control": control_of(record, STOCK),
                "commit": figures.commit(record)}
                for r in record["results"] if r["variant"] == OURS]
        # Those that invent Hosts have a table of their own
        elif "-hosts-" not in name:
            rows.append(defaultdict(
                lambda: None, abuse=name, map="", text=NOT_YET))
    if not records:
        return not_yet(" ".join([BENCH, *(command or ("abuse",))]))
    return several(figures, [
        ("case", "{abuse}{map}"), ("kept", "{text}"),
        ("fair", "{fair:.2f}"),
        ("p99 alone, during, ms", "{p99_s_alone:time}, {p99_s_beside:time}"),
        ("control", "{control}"), ("goals missed", "{failed:or none}"),
        ("stock: kept", "{stock_kept:.2f}{stock_kept_ci:to}"),
        ("stock: p99, ms",
         "{stock_p99_s_alone:time}, {stock_p99_s_beside:time}"),
        ("stock: control", "{stock_control}"),
        ("stock: goals missed", "{stock_failed:or none}"),
        ("commit", "{commit}"),
    ], rows, records)


def hosts(figures: Figures) -> list[Record]:
    """Return the records of bench/new-hosts on a machine of their own."""
    return [r for r in figures.records.values() if isinstance(r, dict)
            and "script" in r and not r["machine"].get("note")]


def new_hosts(figures: Figures) -> str:
    """Return what a tenant keeps while clients invent Hosts, in time."""
    rows = [row for record in hosts(figures)
            for row in new_hosts_rows(figures, record)]
    if not rows:
        return not_yet("bench/new-hosts")
    return table([
        ("case", "{case}"), ("tenant", "{victim}"), ("varnishd", "{variant}"),
        ("when", "{when:or in turns}"), ("kept", "{kept:.2f}"),
        ("p99, closed loop", "{closed:.2f}"),
        ("p99, open loop", "{open:.2f}"), ("control", "{control:.2f}"),
        ("goals missed", "{missed:or none}"), ("commit", "{commit}")], rows)


def new_hosts_rows(figures: Figures, record: Record) -> Iterable[Row]:
    """Return the rows of one run; a single turn has no intervals."""
    for variant, all_of in record["summary"].items():
        median = {name: found["median"] for name, found in all_of.items()}
        for name, kept in median.items():
            what, space, when = name.partition(" ")
            if what != "kept":
                continue
            p99 = {loop: median.get(f"{field}{space}{when}") for loop, field
                   in (("closed", "p99 times"), ("open", "open p99 times"))}
            missed = ["kept"] * (kept < NEW_KEPT) + ["p99"] * any(
                v is not None and v > NEW_TIMES for v in p99.values())
            yield p99 | {
                "case": record["case"], "victim": record["victim"],
                "variant": variant, "when": when, "kept": kept,
                "control": median.get("control"),
                "missed": ", ".join(missed), "commit": figures.commit(record)}


def real_sites(figures: Figures) -> str:
    """Return when two real sites are proven, and what rare requests wait."""
    pair, sparse = (
        [t | {"victim": r["victim"], "commit": figures.commit(r)}
         for r in hosts(figures) if r["script"] == script
         for t in r["turns"]] for script in ("pair", "sparse"))
    if not pair and not sparse:
        return not_yet("bench/new-hosts new-hosts-closed-404 --script pair")
    for t in pair:
        proven = " and ".join(
            f"{s} s" for s in t.get("proven_after_s", {}).values())
        t["what"] = (f"two sites ({t['victim']}), {t['variant']}: min/max"
                     + (f", proven after {proven}" if proven else ""))
        t["figure"] = f"{t['ratio']:.2f}"
    for t in sparse:
        t["what"] = (f"a site with few requests, {t['variant']}: response "
                     "time (p50) alone, during the abuse")
        t["figure"] = cell(
            "{idle[p50_ms]:.2f} ms, {abused[p50_ms]:.2f} ms", t)
    return table([("what", "{what}"), ("figure", "{figure}"),
                  ("commit", "{commit}")], [*pair, *sparse])


def tests(figures: Figures) -> str:
    """Return what passed, from a list that the test commands write."""
    found = figures.records.get("tests")
    if not found:
        return not_yet("make check-all")
    return table([
        ("what", "{what}"), ("command", "`{command}`"),
        ("commit", "{commit}"), ("date", "{date}"), ("result", "{result}"),
    ], [t | {"commit": figures.commit(t)} for t in found])


P99 = "{p99_s_beside:time} ms"
# What, record, options, template, which result, whose control
HEADLINE: Sequence[tuple[str, str, str, str, Row, str]] = (
    ("Fairness of two tenants, one bound by the CPU, one by the network. "
     "Divide the throughput of each by its throughput alone, then the smaller "
     "result by the larger one (1 is fair)",
     "pairs", " --pairs C1-C3", RATIO, {"a": "C1", "b": "C3"}, ""),
    ("Response time (p99) of a good tenant while another one's origin never "
     "answers", "blackhole", "", P99, {}, OURS),
    ("Response time (p99) of a good tenant while 100 clients of another one "
     "pipeline requests", "pipelining", "", P99, {}, OURS),
    ("Throughput of one tenant alone with 110 kB pages, stock = 1",
     "overhead", " --customers C3", RATIO,
     {"customer": "C3", "setting": SAMPLED}, f"C3, {SAMPLED}"),
)


def headline(figures: Figures) -> str:
    """Return the README's table."""
    rows = []
    for what, name, options, template, same, part in HEADLINE:
        record = figures.records.get(name) or {"results": []}
        ours = under(record, same.get("setting", OURS), same)
        stock = under(record, STOCK, same)
        row = {"what": what, "command": f"{BENCH} {name}{options}",
               "stock": "1" if "setting" in same else NOT_YET,
               "ours": NOT_YET, "commit": ""}
        if stock:  # its control is its own, or that of all results
            own = STOCK if STOCK in record["control"] else ""
            row["stock"] = cell(template, stock) + (
                doubt(record, own) if own or not part else "")
        if ours:
            row |= {"ours": cell(template, ours) + doubt(record, part),
                    "commit": figures.commit(record)}
        rows.append(row)
    return table([
        ("what", "{what}"), ("stock", "{stock}"), ("Sandpaper", "{ours}"),
        ("command", "`{command}`"), ("commit", "{commit}")], rows)


def one_tenant(figures: Figures) -> str:
    """Return throughput over stock's with one tenant and ten connections."""
    record = figures.records.get("scale") or {"results": []}
    for r in record["results"]:
        if r["tenants"] == 1:
            return in_text(figures, record, cell(RATIO, r) + doubt(record))
    return in_text(figures, None, "")


def abuses_missed(figures: Figures, what: str) -> str:
    """Return in how many abuses a goal was missed."""
    found = [(record, ours) for name in ABUSES
             if (record := figures.records.get(name))
             and (ours := under(record, OURS, {}))]
    if not found:
        return in_text(figures, None, "")
    missed = sum(what in r["failed"].split(", ") for _, r in found)
    old = next((r for r, _ in found if OLD in figures.commit(r)),
               found[0][0])
    return in_text(figures, old, f"{missed} of {len(found)}")


TABLES: dict[str, Callable[..., str]] = {
    "headline": headline, "pairs": partial(one_record, pairs, "pairs"),
    "overhead": overhead, "scale": partial(one_record, scale, "scale"),
    "change": partial(one_record, change, "change"),
    "fetch": partial(one_record, fetch, "fetch"),
    "latency": partial(one_record, latency, "latency"), "abuse": abuse,
    "new-hosts": new_hosts, "real-sites": real_sites, "tests": tests,
    "cache": cachefigures.policies, "cache-goals": cachefigures.goals,
    "cache-tenants": cachefigures.tenants, "cache-live": cachefigures.live,
    "cache-trace-files": cachefigures.trace_files,
    "cache-traces": cachefigures.traces, "cache-paper": cachefigures.paper,
    "overload-seda": partial(
        overloadfigures.judged, what="seda", head="thesis"),
    "red4mq": partial(
        overloadfigures.judged, what="red4mq", head="paper, or goal"),
    "red4mq-sweep": overloadfigures.red4mq_sweep,
    "fetches": overloadfigures.fetches,
    "fetch-goals": overloadfigures.fetch_goals,
    "haboob": haboobfigures.haboob, "compress": compressfigures.compress,
    "load-check": overloadfigures.check, "exporter": exporterfigures.exporter,
    "watching": exporterfigures.watching,
    "reload-time": exporterfigures.reload_time,
    "tiers": partial(
        overloadfigures.judged, what="tiers", head="goal"),
    "tiers-cases": overloadfigures.tiers_cases,
    "tiers-sweep": overloadfigures.tiers_sweep,
    **{f"overload-{name}": partial(source, figure=figure, form=form)
       for name, source, figure, form in (
           ("sim", overloadfigures.simulated, "of_best", ".2f"),
           ("sim-p99", overloadfigures.simulated, "p99_ms", ".0f"),
           ("live", overloadfigures.live, "goodput", ".2f"),
           ("live-p99", overloadfigures.live, "p99_s", "time"),
           ("live-kept", overloadfigures.live, "kept", ".2f"),
           ("live-times", overloadfigures.live, "times", ".2f"))},
}
SINGLE: dict[str, Callable[..., str]] = {
    "one-tenant": one_tenant, "abuses-missed": abuses_missed,
}
