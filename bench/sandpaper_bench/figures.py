# SPDX-License-Identifier: BSD-2-Clause
"""Figures of the documentation, in Markdown, from the records of runs.

A table or figure that has no record says so.  Each has the commit it is of,
marked if the code has changed since.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .abuses import ABUSES, NEW_KEPT, NEW_TIMES
from .claims import (
    FAIR,
    LOST_MANY,
    LOST_NOOP,
    LOST_REALISTIC,
    SAMPLED,
    valid,
)
from .customers import NOOP
from .estimate import covers_one, known
from .lab import controls
from .latency import LIMIT
from .pedigree import DIRTY
from .timeline import CLAIM

Record = dict[str, Any]
Rows = list[list[str]]
NOT_YET = "not measured at this commit yet"
OLD = "†"
IS_OLD = f"{OLD} older than the last change of the code."
STOCK, OURS = "stock", "sandpaper"
BENCH = "bench/sandpaper-bench"


class Unknown(Exception):
    """A page asks for a figure that does not exist."""


class Figures:
    """All records, and which commits are old."""

    def __init__(
        self, records: dict[str, Any], is_old: Callable[[str], bool]
    ) -> None:
        self.records, self._is_old = records, is_old

    def get(self, name: str) -> Record | None:
        """Return a record, if it is there."""
        found: Record | None = self.records.get(name)
        return found

    def reports(self, wanted: Callable[[Record], bool]) -> list[Record]:
        """Return the records that are wanted, by name."""
        return [r for r in self.records.values()
                if isinstance(r, dict) and wanted(r)]

    def mark(self, commit: str | None) -> str:
        """Return a commit, marked if it is old."""
        if not commit:
            return "not recorded"
        return commit + (OLD if self._is_old(commit) else "")

    def commit(self, record: Record) -> str:
        """Return the commit of a record."""
        if "commit" in record:
            return self.mark(record["commit"] and record["commit"] + (
                DIRTY if record["dirty"] else ""))
        return self.mark(record["machine"]["source"])

    def render(self, words: str) -> str:
        """Return what stands between marks with these words."""
        name, *more = words.split()
        if name not in TABLES:
            raise Unknown(f"there is no figure '{name}': use one of "
                          + ", ".join(TABLES))
        text = TABLES[name](self, *more)
        said = OLD in text and name != "headline"  # the README says it once
        return text + (f"\n\n{IS_OLD}" if said else "")

    def figure(self, words: str) -> str:
        """Return a figure in a text."""
        name, *more = words.split()
        if name not in SINGLE:
            raise Unknown(f"there is no figure '{name}': use one of "
                          + ", ".join(SINGLE))
        return SINGLE[name](self, *more)


def not_yet(command: str) -> str:
    """Return what stands for a table without a record."""
    return f"{NOT_YET.capitalize()}: `{command}`."


def table(head: Sequence[str], rows: Rows) -> str:
    """Return a table."""
    return "\n".join(f"| {' | '.join(row)} |" for row in (
        head, ["---"] * len(head), *rows))


def span(value: float, ends: Sequence[float], digits: int = 2) -> str:
    """Return a figure with its interval, if that is known."""
    text = f"{value:.{digits}f}"
    if known(ends):
        text += f" ({ends[0]:.{digits}f} to {ends[1]:.{digits}f})"
    return text


def ms(seconds: float) -> str:
    """Return a time; a long one has no use for tenths."""
    value = seconds * 1e3
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def control_text(control: Record) -> str:
    """Return a control, and whether it is valid."""
    ends = control["ratio_ci"]
    if not known(ends):
        return f"{control['ratio']:.2f}, no interval"
    if control["covers_one"]:
        return span(control["ratio"], ends)
    # Two digits may hide by how little it misses 1
    rounded = [round(end, 2) for end in ends]
    digits = 4 if covers_one(rounded) else 2
    return f"{span(control['ratio'], ends, digits)}, not valid"


def own_control(record: Record, part: str) -> Record | None:
    """Return the control of a part, else the only one."""
    found = record["control"]
    own: Record | None = found if "what" in found else found.get(part)
    return own


def judged(text: str, record: Record, part: str = "") -> str:
    """Return a figure; it says if its control is not valid."""
    return text if valid(record, part) else f"{text}, not valid"


def under(record: Record, variant: str, **same: Any) -> Record | None:
    """Return the result of a variant, if there is one."""
    for r in record["results"]:
        if r.get("variant") == variant and same.items() <= r.items():
            found: Record = r
            return found
    return None


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


def with_controls(figures: Figures, record: Record) -> str:
    """Return how it was made, and its controls."""
    return " ".join([about(figures, record), *(
        f"Control, {c['what']}: {control_text(c)}."
        for c in controls(record["control"]))])


def whole(
    figures: Figures, record: Record, head: Sequence[str], rows: Rows
) -> str:
    """Return a record's table, with its circumstances below."""
    return f"{table(head, rows)}\n\n{with_controls(figures, record)}"


def goal(missed: bool, valid: bool) -> str:
    """Return what a goal's cell says."""
    if not valid:
        return "not valid"
    return "missed" if missed else "met"


def pair_name(r: Record) -> str:
    """Return a pair's name."""
    return (f"{r['a']} and its twin" if r["b"] == f"{r['a']}-twin"
            else f"{r['a']} and {r['b']}")


def pairs(figures: Figures, name: str = "pairs", *command: str) -> str:
    """Return min/max of each pair, under each variant."""
    record = figures.get(name)
    if record is None:
        return not_yet(" ".join([BENCH, *(command or (name,))]))
    variants = list(dict.fromkeys(r["variant"] for r in record["results"]))
    titles = [v.replace(OURS, "Sandpaper") for v in variants]
    rows = []
    for first in (r for r in record["results"]
                  if r["variant"] == variants[0]):
        pair = {"a": first["a"], "b": first["b"]}
        found = [under(record, v, **pair) for v in variants]
        ours = found[-1]
        rows.append([
            pair_name(first),
            *(span(r["ratio"], r["ratio_ci"]) if r else "" for r in found),
            *(f"{max(r['stretch_a'], r['stretch_b']):.1f}" if r else ""
              for r in found),
            goal(ours["ratio"] < FAIR, record["valid"]) if ours else ""])
    return whole(figures, record, [
        "pair", *titles, *(f"worst stretch, {t}" for t in titles),
        f"goal {FAIR}"], rows)


def overhead(figures: Figures) -> str:
    """Return each tenant's throughput alone, over stock's."""
    records = figures.reports(lambda r: r.get("experiment") == "overhead")
    if not records:
        return not_yet(f"{BENCH} overhead")
    rows = []
    for record in records:
        for r in record["results"]:
            if r["setting"] != SAMPLED:
                continue
            customer = r["customer"]
            part = f"{customer}, {SAMPLED}"
            control = own_control(record, part)
            limit = LOST_NOOP if customer == NOOP else LOST_REALISTIC
            others = [next((span(o["ratio"], o["ratio_ci"])
                            for o in record["results"]
                            if o["customer"] == customer
                            and o["setting"] == setting), "")
                      for setting in ("off", "every request")]
            rows.append([
                customer + (", no-op" if customer == NOOP else ""),
                str(record["plan"]["connections"]),
                span(r["ratio"], r["ratio_ci"]), *others,
                f"{r['cpu_us_baseline']:.0f}, {r['cpu_us_variant']:.0f}",
                control_text(control) if control else "",
                f"{1 - limit:.2f}: " + goal(
                    r["ratio"] < 1 - limit,
                    valid(record, part)),
                figures.commit(record)])
    return table([
        "tenant", "connections", "Sandpaper", "`sandpaper=off`",
        "every request measured", "CPU us per request, stock and Sandpaper",
        "control: stock against itself", "goal", "commit"], rows) + "".join(
            f"\n\n{about(figures, r)}" for r in records)


def scale(figures: Figures) -> str:
    """Return throughput with many tenants."""
    record = figures.get("scale")
    if record is None:
        return not_yet(f"{BENCH} scale")
    return whole(figures, record, [
        "tenants", "connections", "stock, requests/s", "Sandpaper, requests/s",
        "over stock", "CPU us per request, stock and Sandpaper",
        f"goal {1 - LOST_MANY:g}"], [
        [f"{r['tenants']:,}", f"{r['connections']:,}",
         f"{r['rps_baseline']:,.0f}", f"{r['rps_variant']:,.0f}",
         span(r["ratio"], r["ratio_ci"]),
         f"{r['cpu_us_baseline']:.0f}, {r['cpu_us_variant']:.0f}",
         goal(r["ratio"] < 1 - LOST_MANY, record["valid"])]
        for r in record["results"]])


def change(figures: Figures, name: str) -> str:
    """Return what the static tenant keeps of what is fair."""
    record = figures.get(name)
    if record is None:
        return not_yet(f"{BENCH} {name}")
    rows = []
    for phase in dict.fromkeys(r["phase"] for r in record["results"]):
        stock, ours = (under(record, v, phase=phase) for v in (STOCK, OURS))
        rows.append([
            f"the twin: {phase}",
            *(span(r["of_fair"], r["of_fair_ci"]) if r else ""
              for r in (stock, ours)),
            goal(ours["of_fair"] < CLAIM, record["valid"]) if ours else ""])
    return whole(figures, record, [
        "what", "stock", "Sandpaper", f"goal {CLAIM}"], rows)


def fetch(figures: Figures) -> str:
    """Return the slots that are lent to requests that wait."""
    record = figures.get("fetch")
    if record is None:
        return not_yet(f"{BENCH} fetch")
    rows = [[f"{r['p_miss']:.0%} wait {r['fetch_s']:g} s".replace("%", " %"),
             f"{r['expected']:.0f}",
             judged(span(r["lent"], r["lent_ci"], 1), record,
                    f"{r['p_miss']:.0%}, {r['fetch_s']:g} s"),
             f"{stock['threads']:.0f}, {r['threads']:.0f}" if (
                 stock := under(record, STOCK, p_miss=r["p_miss"],
                                fetch_s=r["fetch_s"])) else
             f"{r['threads']:.0f}"]
            for r in record["results"] if r["variant"] == OURS]
    return whole(figures, record, [
        "what", "slots expected", "slots lent by Sandpaper",
        "threads of stock and Sandpaper"], rows)


def latency(figures: Figures) -> str:
    """Return what a neighbour does to p99."""
    record = figures.get("latency")
    if record is None:
        return not_yet(f"{BENCH} latency")

    def cell(r: Record | None) -> str:
        if r is None:
            return ""
        return (f"{ms(r['p99_s_alone'])}, {ms(r['p99_s'])} ms, "
                + span(r["times"], r["times_ci"]))

    rows = []
    for r in (r for r in record["results"] if r["variant"] == OURS):
        same = {"tenant": r["tenant"], "beside": r["beside"]}
        pair = next((k for k in record["control"] if k in (
            f"{r['tenant']}-{r['beside']}",
            f"{r['beside']}-{r['tenant']}")), "")
        rows.append([
            f"{r['tenant']} with {r['beside']}",
            cell(under(record, STOCK, **same)), cell(r),
            goal(r["times"] > LIMIT, valid(record, pair))])
    form = "p99 alone, together, factor"
    return whole(figures, record, [
        "tenant", f"stock: {form}", f"Sandpaper: {form}",
        f"goal: factor {LIMIT:g}"], rows)


def abuse(figures: Figures) -> str:
    """Return what a good tenant keeps during each abuse."""
    rows, records = [], []
    for name in ABUSES:
        record = figures.get(name)
        if record is None:
            # Those that invent Hosts have a table of their own
            if "-hosts-" not in name:
                rows.append([name, NOT_YET, *[""] * 8])
            continue
        records.append(record)
        ours, stock = (under(record, v) for v in (OURS, STOCK))
        if ours is None:
            continue
        control = own_control(record, OURS)
        rows.append([
            name + (", with a map" if ABUSES[name].mapped else ""),
            span(ours["kept"], ours["kept_ci"]), f"{ours['fair']:.2f}",
            f"{ms(ours['p99_s_alone'])}, {ms(ours['p99_s_beside'])}",
            control_text(control) if control else "",
            ours["failed"] or "none",
            *([span(stock["kept"], stock["kept_ci"]),
               f"{ms(stock['p99_s_alone'])}, {ms(stock['p99_s_beside'])}",
               stock["failed"] or "none"] if stock else ["", "", ""]),
            figures.commit(record)])
    if not records:
        return not_yet(f"{BENCH} abuse")
    text = table([
        "case", "kept", "fair", "p99 alone, during, ms", "control",
        "goals missed", "stock: kept", "stock: p99, ms",
        "stock: goals missed", "commit"], rows)
    # All of one command share their circumstances
    said = dict.fromkeys(about(figures, r) for r in records)
    return text + "".join(f"\n\n{line}" for line in said)


def hosts(figures: Figures) -> list[Record]:
    """Return the records of bench/new-hosts on a machine of their own."""
    return figures.reports(
        lambda r: "script" in r and not r["machine"].get("note"))


def new_hosts(figures: Figures) -> str:
    """Return what a tenant keeps while clients invent Hosts, in time."""
    rows = [row for record in hosts(figures)
            for row in new_hosts_rows(figures, record)]
    if not rows:
        return not_yet("bench/new-hosts")
    return table([
        "case", "tenant", "varnishd", "when", "kept", "p99, closed loop",
        "p99, open loop", "control", "goals missed", "commit"], rows)


def new_hosts_rows(figures: Figures, record: Record) -> Rows:
    """Return the rows of one run; a single turn has no intervals."""
    found = []
    for variant, all_of in record["summary"].items():
        for name, kept in all_of.items():
            what, _, when = name.partition(" ")
            if what != "kept":
                continue
            at = f" {when}" if when else ""
            values = {key: all_of[key]["median"] if key in all_of else None
                      for key in (f"p99 times{at}", f"open p99 times{at}",
                                  "control")}
            missed = ["kept"] * (kept["median"] < NEW_KEPT) + ["p99"] * any(
                v is not None and v > NEW_TIMES
                for k, v in values.items() if "p99" in k)
            found.append([
                record["case"], record["victim"], variant,
                when or "in turns", f"{kept['median']:.2f}",
                *("" if v is None else f"{v:.2f}" for v in values.values()),
                ", ".join(missed) or "none", figures.commit(record)])
    return found


def real_sites(figures: Figures) -> str:
    """Return when two real sites are proven, and what rare requests wait."""
    pair, sparse = (
        [(r, t) for r in hosts(figures) if r["script"] == script
         for t in r["turns"]] for script in ("pair", "sparse"))
    if not pair and not sparse:
        return not_yet("bench/new-hosts new-hosts-closed-404 --script pair")
    rows = [[f"two sites ({r['victim']}), {t['variant']}: min/max"
             + (", proven after " + " and ".join(
                 f"{s} s" for s in t["proven_after_s"].values())
                if "proven_after_s" in t else ""),
             f"{t['ratio']:.2f}", figures.commit(r)] for r, t in pair]
    rows += [[f"a site with few requests, {t['variant']}: response time (p50) "
              "alone, during the abuse",
              f"{t['idle']['p50_ms']:.2f} ms, {t['abused']['p50_ms']:.2f} ms",
              figures.commit(r)] for r, t in sparse]
    return table(["what", "figure", "commit"], rows)


def tests(figures: Figures) -> str:
    """Return what passed, from a list that the test commands write."""
    found = figures.records.get("tests")
    if not found:
        return not_yet("make check-all")
    return table(["what", "command", "commit", "date", "result"], [
        [t["what"], f"`{t['command']}`", figures.commit(t),
         t["date"], t["result"]] for t in found])


def headline(figures: Figures) -> str:
    """Return the README's table."""
    rows = [headline_pair(figures)]
    for name, what in (
            ("blackhole", "another one's origin never answers"),
            ("pipelining", "100 clients of another one pipeline requests")):
        record = figures.get(name)
        found = [record and under(record, v) for v in (STOCK, OURS)]
        cells = [f"{ms(r['p99_s_beside'])} ms" if r else NOT_YET
                 for r in found]
        if record and found[1]:
            cells[1] = judged(cells[1], record, OURS)
        rows.append([f"Response time (p99) of a good tenant while {what}",
                     *cells, f"`{BENCH} {name}`",
                     figures.commit(record) if record and found[1] else ""])
    record = figures.get("overhead")
    r = record and next((
        r for r in record["results"] if r["setting"] == SAMPLED
        and r["customer"] == "C3"), None)
    rows.append([
        "Throughput of one tenant alone with 110 kB pages, stock = 1", "1",
        judged(span(r["ratio"], r["ratio_ci"]), record, f"C3, {SAMPLED}")
        if record and r else NOT_YET, f"`{BENCH} overhead --customers C3`",
        figures.commit(record) if record and r else ""])
    return table(["what", "stock", "Sandpaper", "command", "commit"], rows)


def headline_pair(figures: Figures) -> list[str]:
    """Return the row about two tenants."""
    record = figures.get("pairs")
    found = [record and under(record, v, a="C1", b="C3")
             for v in (STOCK, OURS)]
    return [
        "Fairness of two tenants, one bound by the CPU, one by the network. "
        "Divide the throughput of each by its throughput alone: the smaller "
        "result over the larger (1 is fair)",
        *(judged(span(r["ratio"], r["ratio_ci"]), record) if record and r
          else NOT_YET for r in found),
        f"`{BENCH} pairs --pairs C1-C3`",
        figures.commit(record) if record and found[1] else ""]


def in_text(figures: Figures, record: Record | None, text: str) -> str:
    """Return a figure for a text, marked as its record is."""
    if record is None:
        return f"({NOT_YET})"
    return text + (OLD if OLD in figures.commit(record) else "")


def one_tenant(figures: Figures) -> str:
    """Return throughput over stock's with one tenant and ten connections."""
    record = figures.get("scale")
    r = record and next((r for r in record["results"]
                         if r["tenants"] == 1), None)
    return in_text(figures, record if r else None, judged(
        span(r["ratio"], r["ratio_ci"]), record) if record and r else "")


def abuses_missed(figures: Figures, what: str) -> str:
    """Return in how many abuses a goal was missed."""
    found = [(record, ours) for name in ABUSES
             if (record := figures.get(name))
             and (ours := under(record, OURS))]
    if not found:
        return in_text(figures, None, "")
    missed = sum(what in r["failed"].split(", ") for _, r in found)
    old = next((r for r, _ in found if OLD in figures.commit(r)),
               found[0][0])
    return in_text(figures, old, f"{missed} of {len(found)}")


TABLES: dict[str, Callable[..., str]] = {
    "headline": headline, "pairs": pairs, "overhead": overhead,
    "scale": scale, "change": change, "fetch": fetch, "latency": latency,
    "abuse": abuse, "new-hosts": new_hosts, "real-sites": real_sites,
    "tests": tests,
}
SINGLE: dict[str, Callable[..., str]] = {
    "one-tenant": one_tenant, "abuses-missed": abuses_missed,
}
