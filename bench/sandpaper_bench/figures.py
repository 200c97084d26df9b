# SPDX-License-Identifier: BSD-2-Clause
"""Figures of the documentation, in Markdown, from the records of runs.

A table or figure that has no record says so.  Each has the commit it is of,
marked if the code has changed since.  A column is its head and a template of
a row (table.py); a row is a result, with what stock has of the same as
`stock_FIELD`.  A cell is empty if a value of it was not measured.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

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
from .estimate import covers_one, known
from .latency import LIMIT
from .pedigree import DIRTY
from .rig import controls
from .table import cell
from .timeline import CLAIM
from .varnish import STOCK

Record = dict[str, Any]
Row = dict[str, Any]
Columns = Sequence[tuple[str, str]]
NOT_YET = "not measured at this commit yet"
OLD = "†"
IS_OLD = f"{OLD} older than the last change of the code."
OURS = "sandpaper"
BENCH = "bench/sandpaper-bench"
RATIO = "{ratio:.2f}{ratio_ci:to}"


class Unknown(Exception):
    """A page asks for a figure that does not exist."""


class Figures:
    """All records, and which commits are old."""

    def __init__(
        self, records: dict[str, Any], is_old: Callable[[str], bool]
    ) -> None:
        self.records, self._is_old = records, is_old

    def commit(self, record: Record) -> str:
        """Return the commit of a record, marked if it is old."""
        commit = (record["commit"] if "commit" in record
                  else record["machine"]["source"])
        if not commit:
            return "not recorded"
        commit += DIRTY if record.get("dirty") else ""
        return str(commit) + (OLD if self._is_old(commit) else "")

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


def not_yet(command: str) -> str:
    """Return what stands for a table without a record."""
    return f"{NOT_YET.capitalize()}: `{command}`."


def table(columns: Columns, rows: Iterable[Row]) -> str:
    """Return a table."""
    return "\n".join(f"| {' | '.join(line)} |" for line in (
        [head for head, _ in columns], ["---"] * len(columns),
        *([cell(template, row) for _, template in columns] for row in rows)))


def control_text(control: Record) -> str:
    """Return a control, and whether it is valid."""
    ends = control["ratio_ci"]
    if not known(ends):
        return cell("{ratio:.2f}, no interval", control)
    if control["covers_one"]:
        return cell(RATIO, control)
    # Two digits may hide by how little it misses 1
    hidden = covers_one([round(end, 2) for end in ends])
    return cell("{ratio:.4f}{ratio_ci:to4}, not valid" if hidden
                else RATIO + ", not valid", control)


def control_of(record: Record, part: str) -> str:
    """Return the control of a part, else the only one."""
    found = record["control"]
    own = found if "what" in found else found.get(part)
    return control_text(own) if own else ""


def under(record: Record, variant: str, same: Row) -> Row | None:
    """Return the result of a variant that has the same, if there is one."""
    return next((r for r in record["results"] if r.get("variant") == variant
                 and same.items() <= r.items()), None)


def beside(record: Record, row: Row, *keys: str) -> Row:
    """Return a row, with what each variant has where the keys are the same."""
    found = dict(row)
    for variant in dict.fromkeys(
            [STOCK, OURS, *(r["variant"] for r in record["results"])]):
        other = under(record, variant, {k: row[k] for k in keys}) or {}
        found |= {f"{variant}_{key}": other.get(key) for key in row}
    return found


def doubt(record: Record, part: str = "") -> str:
    """Return what stands behind a figure whose control is not valid."""
    return "" if valid(record, part) else ", not valid"


def about(figures: Figures, record: Record) -> str:
    """Return how a record was made."""
    machine, plan = record["machine"], record["plan"]
    rate = machine["link_bits_per_second"]
    facts = [
        f"`{record['command']}`", record["date"],
        f"commit {figures.commit(record)}",
        f"{plan['turns']} turn{'s' * (plan['turns'] != 1)} of "
        f"{plan['seconds']:g} s",
        f"seed {record['seed']}",
        f"{machine['cores']} cores of {machine['cpu']}"
        + (" (virtual)" if machine.get("virtual") else ""),
        f"Linux {machine['kernel']}",
        f"link of {rate / 1e9:g} Gbit/s" if rate else "no shaped link"]
    if machine.get("governor"):
        facts.append(f"governor {machine['governor']}")
    return ", ".join(facts) + "."


def goal(more: float | None, less: float, valid: bool) -> str | None:
    """Return what a goal's cell says: it is met if `more` is not below."""
    if more is None:
        return None
    if not valid:
        return "not valid"
    return "missed" if more < less else "met"


def one_record(
    make: Callable[[Record], tuple[Columns, Iterable[Row]]], usual: str,
    figures: Figures, name: str = "", *command: str,
) -> str:
    """Return the table of one record, with its circumstances and controls."""
    name = name or usual
    record = figures.records.get(name)
    if record is None:
        return not_yet(" ".join([BENCH, *(command or (name,))]))
    return "\n\n".join([table(*make(record)), " ".join([
        about(figures, record), *(
            f"Control, {c['what']}: {control_text(c)}."
            for c in controls(record["control"]))])])


def several(
    figures: Figures, columns: Columns, rows: Iterable[Row],
    records: Sequence[Record],
) -> str:
    """Return the table of several records, with how each was made."""
    # All of one command share their circumstances
    said = dict.fromkeys(about(figures, r) for r in records)
    return "\n\n".join([table(columns, rows), *said])


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
    return [
        ("pair", "{a} and {other}"),
        *((title, f"{{{v}_ratio:.2f}}{{{v}_ratio_ci:to}}")
          for title, v in titles),
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


def abuse(figures: Figures) -> str:
    """Return what a good tenant keeps during each abuse."""
    records: list[Record] = []
    rows: list[Row] = []
    for name in ABUSES:
        record = figures.records.get(name)
        if record:
            records.append(record)
            rows += [beside(record, r) | {
                "map": ", with a map" if ABUSES[name].mapped else "",
                "text": cell("{kept:.2f}{kept_ci:to}", r),
                "control": control_of(record, OURS),
                "commit": figures.commit(record)}
                for r in record["results"] if r["variant"] == OURS]
        # Those that invent Hosts have a table of their own
        elif "-hosts-" not in name:
            rows.append(defaultdict(
                lambda: None, abuse=name, map="", text=NOT_YET))
    if not records:
        return not_yet(f"{BENCH} abuse")
    return several(figures, [
        ("case", "{abuse}{map}"), ("kept", "{text}"),
        ("fair", "{fair:.2f}"),
        ("p99 alone, during, ms", "{p99_s_alone:time}, {p99_s_beside:time}"),
        ("control", "{control}"), ("goals missed", "{failed:or none}"),
        ("stock: kept", "{stock_kept:.2f}{stock_kept_ci:to}"),
        ("stock: p99, ms",
         "{stock_p99_s_alone:time}, {stock_p99_s_beside:time}"),
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
        if stock:  # only a control of all results is of stock's, too
            row["stock"] = cell(template, stock) + (
                "" if part else doubt(record))
        if ours:
            row |= {"ours": cell(template, ours) + doubt(record, part),
                    "commit": figures.commit(record)}
        rows.append(row)
    return table([
        ("what", "{what}"), ("stock", "{stock}"), ("Sandpaper", "{ours}"),
        ("command", "`{command}`"), ("commit", "{commit}")], rows)


def in_text(figures: Figures, record: Record | None, text: str) -> str:
    """Return a figure for a text, marked as its record is."""
    if record is None:
        return f"({NOT_YET})"
    return text + (OLD if OLD in figures.commit(record) else "")


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
}
SINGLE: dict[str, Callable[..., str]] = {
    "one-tenant": one_tenant, "abuses-missed": abuses_missed,
}
