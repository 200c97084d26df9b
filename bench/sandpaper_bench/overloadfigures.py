# SPDX-License-Identifier: BSD-2-Clause
"""Figures of overload, in Markdown: of the simulator, and of real servers."""

from __future__ import annotations

from collections.abc import Sequence

from .markdown import Columns, Record, Records, Row, not_yet, one_record, table

SIMULATED = "bench/record-sim"
LIVE = "bench/sandpaper-bench overload --record"
CHECK = "bench/sandpaper-bench load-check --record"
SHOWN = {"beside open": "neighbour, open loop",
         "beside closed": "neighbour, closed loop",
         **{f"cheap {load}": f"0.13 ms, load {load}" for load in (2, 5, 8)}}
FETCHES = ("of_possible", "of_possible_ci", "limit", "refused", "p99_ms",
           "settled_s", "background_of_left", "neighbour_p99_ms")


def across(results: Sequence[Row], by: str, figure: str, form: str) -> str:
    """Return a figure: a row for each case, a column for each variant."""
    names = list(dict.fromkeys(r[by] for r in results))
    rows: dict[str, Row] = {}
    for r in results:
        if r.get(figure) is not None:
            rows.setdefault(r["case"], {
                "case": SHOWN.get(r["case"], r["case"])})[
                f"v{names.index(r[by])}"] = r[figure]
    return table([("load", "{case}"), *(
        (f"`{name}`", f"{{v{n}:{form}}}") for n, name in enumerate(names))],
        rows.values())


def made(figures: Records, record: Record, *more: str) -> str:
    """Return how a record was made."""
    return ", ".join([f"`{record['command']}`", record["date"],
                      f"commit {figures.commit(record)}", *more]) + "."


def simulated(figures: Records, figure: str, form: str) -> str:
    """Return a figure of the simulator's tournament."""
    record = figures.records.get("overload-sim")
    if record is None:
        return not_yet(SIMULATED)
    found = record["parameters"]
    return "\n\n".join([
        across(record["results"], "controller", figure, form),
        made(figures, record, f"{found['seeds']} seeds",
             f"capacity {found['capacity_per_s']:,} requests/s",
             f"a refusal costs {found['refusal']:g} of a request")])


def judged(figures: Records, what: str, head: str) -> str:
    """Return what a paper says, and if that is so in the simulator."""
    record = figures.records.get(f"{what}-sim")
    if record is None:
        return not_yet(f"{SIMULATED} {what}")
    rows = [{**r, "verdict": "agrees" if r["agrees"] else "differs"}
            for r in record["results"]]
    return "\n\n".join([
        table([("figure", "{figure}"), (head, "{paper}"),
               ("here", "{found}"), ("", "{verdict}")], rows),
        made(figures, record, f"seed {record['parameters']['seed']}")])


def red4mq_sweep(figures: Records) -> str:
    """Return what the constants do that the paper of RED_4 MQ does not say."""
    record = figures.records.get("red4mq-sim")
    if record is None:
        return not_yet(f"{SIMULATED} red4mq")
    return table([
        ("constant", "{constant}"), ("value", "{value}"),
        ("share, RED_4", "{share_red-4:.2f}"), ("share, MQ", "{share_mq:.2f}"),
        ("total, droptail", "{total_droptail:.2f}"),
        ("total, MQ", "{total_mq:.2f}"), ("MQ over droptail", "{keeps:.2f}"),
    ], record["sweep"])


def fetches(figures: Records) -> str:
    """Return what became of fetches, with a target and without, by case."""
    record = figures.records.get("fetches-sim")
    if record is None:
        return not_yet(f"{SIMULATED} fetches")
    found = record["parameters"]
    names = list(dict.fromkeys(r["case"] for r in record["results"]))
    rows = [{"case": name, **{
        f"{variant}_{key}": next((
            r.get(key) for r in record["results"]
            if (r["case"], r["variant"]) == (name, variant)), None)
        for variant in ("none", "target", "fixed") for key in FETCHES}}
        for name in names]
    return "\n\n".join([
        table([("load", "{case}"),
               ("good, no target", "{none_of_possible:.2f}"),
               ("good, target",
                "{target_of_possible:.2f}{target_of_possible_ci:to}"),
               ("good, fixed", "{fixed_of_possible:.2f}"),
               ("its limit", "{fixed_limit}"),
               ("refused, target", "{target_refused:.3f}"),
               ("p99, no target, ms", "{none_p99_ms:.0f}"),
               ("p99, target, ms", "{target_p99_ms:.0f}"),
               ("settled, target, s", "{target_settled_s:.0f}"),
               ("background, target", "{target_background_of_left:.2f}"),
               ("neighbour's p99, target, ms",
                "{target_neighbour_p99_ms:.1f}")], rows),
        made(figures, record, f"{found['seeds']} seeds",
             f"capacity {found['capacity_per_s']} fetches/s",
             f"target {found['target_s']:g} s")])


def fetch_goals(figures: Records) -> str:
    """Return the goals of the fetch target, and if they are met."""
    record = figures.records.get("fetches-sim")
    if record is None:
        return not_yet(f"{SIMULATED} fetches")
    rows = [{**j, "verdict": "met" if j["agrees"] else "missed"}
            for j in record["judgements"]]
    return table([("goal", "{paper}"), ("here", "{found}"),
                  ("", "{verdict}")], rows)


def tiers_cases(figures: Records) -> str:
    """Return what windows between tiers do, by load and round trip."""
    record = figures.records.get("tiers-sim")
    if record is None:
        return not_yet(f"{SIMULATED} tiers")
    return table([
        ("who", "{group}"), ("case", "{case}"), ("RTT, ms", "{rtt_ms}"),
        ("goodput, none", "{good_none:.2f}"), ("halve", "{good_halve:.2f}"),
        ("price", "{good_price:.2f}"),
        ("work saved, halve", "{saved_halve:.2f}"),
        ("price", "{saved_price:.2f}"), ("perfect", "{saved_perfect:.2f}"),
    ], record["cases"])


def tiers_sweep(figures: Records) -> str:
    """Return what the constants of windows between tiers do."""
    record = figures.records.get("tiers-sim")
    if record is None:
        return not_yet(f"{SIMULATED} tiers")
    return table([
        ("rule", "{rule}"), ("price", "{kind}"), ("keep", "{keep:g}"),
        ("add", "{add:g}"), ("up", "{up:g}"), ("gain", "{gain:g}"),
        ("goodput, over none", "{goodput:.3f}"),
        ("work saved", "{saved:.3f}"), ("score", "{score:.3f}"),
        ("Jain's index of tenants", "{jain:.3f}"),
    ], record["sweep"])


def live(figures: Records, figure: str, form: str) -> str:
    """Return a figure of real servers."""
    record = figures.records.get("overload")
    if record is None:
        return not_yet(LIVE)
    turns = record["results"][0]["turns"]
    return "\n\n".join([
        across(record["results"], "variant", figure, form),
        made(figures, record, "1 turn" if turns == 1 else f"{turns} turns")])


def check(figures: Records) -> str:
    """Return if our load generator and another one agree."""
    if "load-check" not in figures.records:
        return not_yet(CHECK)
    return one_record(check_rows, "load-check", figures)


def check_rows(record: Record) -> tuple[Columns, Sequence[Row]]:
    """Return what each load generator saw at each load."""
    return [
        ("load", "{case}"),
        ("good answers, ours and vegeta's",
         "{goodput_loadgen:.2f}, {goodput_vegeta:.2f}"),
        ("quotient", "{goodput_quotient:.2f}{goodput_quotient_ci:to}"),
        ("refused", "{refused_loadgen:.2f}, {refused_vegeta:.2f}"),
        ("p50, ms", "{p50_s_loadgen:time}, {p50_s_vegeta:time}"),
        ("p99, ms", "{p99_s_loadgen:time}, {p99_s_vegeta:time}"),
        ("quotient", "{p99_quotient:.2f}{p99_quotient_ci:to}"),
        ("", "{verdict}"),
    ], [r | {"verdict": f"differ: {r['differs']}" if r["differs"] else "agree"}
        for r in record["results"]]
