# SPDX-License-Identifier: BSD-2-Clause
"""The tables of overload, and the medians that bench/record-sim records."""

from __future__ import annotations

from typing import Any

from common import load
from sandpaper_bench import overloadfigures
from sandpaper_bench.markdown import Records

RECORD = load("../bench/record-sim")


def row(case: str, controller: str, of_best: float, **more: float
        ) -> dict[str, Any]:
    return {"case": case, "controller": controller, "of_best": of_best,
            "p99_ms": 1.0, "refused": 0.5, "seed": 1, **more}


def test_medians_over_seeds() -> None:
    found = RECORD.medians([
        row("2 x", "time", .9), row("2 x", "time", .1), row("2 x", "time", .8),
        row("2 x", "limit", .2),
        row("neighbour", "time", 1, neighbour_of_fair=.97)])
    assert [(r["case"], r["controller"], r["of_best"]) for r in found] == [
        ("2 x", "time", .8), ("2 x", "limit", .2), ("neighbour", "time", 1)]
    assert "neighbour_of_fair" not in found[0]
    assert found[2]["neighbour_of_fair"] == .97


def figures(**records: Any) -> Records:
    return Records(records, lambda commit: False)


def test_a_table_of_the_simulator() -> None:
    text = overloadfigures.simulated(figures(**{"overload-sim": {
        "command": "record", "date": "2026-11-28", "commit": "abc",
        "parameters": {"seeds": 3, "capacity_per_s": 1000, "refusal": .02},
        "results": [row("2 x", "limit", .25), row("2 x", "time", 1)]}}),
        "of_best", ".2f")
    assert "| load | `limit` | `time` |" in text
    assert "| 2 x | 0.25 | 1.00 |" in text
    assert "commit abc, 3 seeds, capacity 1,000 requests/s" in text


def test_a_table_of_the_thesis() -> None:
    rows = RECORD.judgements("52", {"paper": {"judgements": [
        {"paper": "it falls", "found": "9 to 2", "agrees": True},
        {"paper": "4 s", "found": "9 s", "agrees": False}]}})
    text = overloadfigures.judged(figures(**{"seda-sim": {
        "command": "record", "date": "2026-11-28", "commit": "abc",
        "parameters": {"seed": 1}, "results": rows}}), "seda", "thesis")
    assert "| figure | thesis | here |  |" in text
    assert "| 52 | it falls | 9 to 2 | agrees |" in text
    assert "| 52 | 4 s | 9 s | differs |" in text
    assert text.endswith("commit abc, seed 1.")


def test_tables_of_fetches() -> None:
    def result(variant: str, good: float, **more: Any) -> dict[str, Any]:
        return {"case": "2 x", "variant": variant, "of_possible": good,
                "of_possible_ci": [good - .01, good + .01], "refused": .5,
                "p99_ms": 400.4, "settled_s": 2, **more}

    records = figures(**{"fetches-sim": {
        "command": "record", "date": "2026-11-28", "commit": "abc",
        "parameters": {"seeds": 3, "capacity_per_s": 100, "target_s": .5},
        "results": [result("none", 0, p99_ms=9000),
                    result("target", .98, background_of_left=.91),
                    result("fixed", .99, limit=24)],
        "judgements": [{"paper": "fast", "found": "1 s", "agrees": True},
                       {"paper": "even", "found": "2 s", "agrees": False}]}})
    text = overloadfigures.fetches(records)
    assert ("| 2 x | 0.00 | 0.98 (0.97 to 0.99) | 0.99 | 24 | 0.500 | 9000 "
            "| 400 | 2 | 0.91 |  |") in text
    assert text.endswith("commit abc, 3 seeds, capacity 100 fetches/s, "
                         "target 0.5 s.")
    goals = overloadfigures.fetch_goals(records)
    assert "| fast | 1 s | met |" in goals
    assert "| even | 2 s | missed |" in goals


def test_a_table_of_constants() -> None:
    text = overloadfigures.red4mq_sweep(figures(**{"red4mq-sim": {"sweep": [
        {"constant": "jitter", "value": "5 ms", "share_red-4": .5,
         "share_mq": .456, "total_droptail": .99, "total_mq": .88,
         "keeps": .889}]}}))
    assert "| jitter | 5 ms | 0.50 | 0.46 | 0.99 | 0.88 | 0.89 |" in text


def test_tables_of_two_tiers() -> None:
    record = figures(**{"tiers-sim": {
        "cases": [
            {"group": "6 tenants", "case": "load 3", "rtt_ms": 20,
             "good_none": .96, "good_halve": 1, "good_price": .99,
             "saved_halve": .77, "saved_price": .78, "saved_perfect": .79},
            {"group": "6 tenants", "case": "load 1", "rtt_ms": 20,
             "good_none": .9, "good_halve": .9, "good_price": .9,
             "saved_halve": None, "saved_price": None,
             "saved_perfect": None}],
        "sweep": [{"rule": "price", "kind": "own", "keep": .5, "add": .25,
                   "up": .1, "gain": 1, "goodput": 1.18, "saved": .756,
                   "score": .894, "jain": .964}]}})
    cases = overloadfigures.tiers_cases(record)
    assert "| 6 tenants | load 3 | 20 | 0.96 | 1.00 | 0.99 | 0.77 | 0.78 "\
        "| 0.79 |" in cases
    assert "| load 1 | 20 | 0.90 | 0.90 | 0.90 |  |  |  |" in cases
    assert "| price | own | 0.5 | 0.25 | 0.1 | 1 | 1.180 | 0.756 | 0.894 "\
        "| 0.964 |" in overloadfigures.tiers_sweep(record)


def test_a_table_of_servers() -> None:
    def result(case: str, variant: str, kept: float | None) -> dict[str, Any]:
        return {"case": case, "variant": variant, "kept": kept, "turns": 1}

    text = overloadfigures.live(figures(overload={
        "command": "bench", "date": "2026-11-28", "commit": "abc",
        "results": [result("load 2", "time", None),
                    result("beside open", "time", .96),
                    result("cheap 5", "time", .41)]}), "kept", ".2f")
    assert "load 2" not in text
    assert "| neighbour, open loop | 0.96 |" in text
    assert "| 0.13 ms, load 5 | 0.41 |" in text
    assert text.endswith("1 turn.")


def test_without_a_record() -> None:
    assert "bench/record-sim" in overloadfigures.simulated(
        figures(), "of_best", ".2f")
    assert "bench/record-sim seda" in overloadfigures.judged(
        figures(), "seda", "thesis")
    assert "bench/record-sim red4mq" in overloadfigures.red4mq_sweep(
        figures())
    for table in (overloadfigures.fetches, overloadfigures.fetch_goals):
        assert "bench/record-sim fetches" in table(figures())
    for table in (overloadfigures.tiers_cases, overloadfigures.tiers_sweep):
        assert "bench/record-sim tiers" in table(figures())
    assert "overload --record" in overloadfigures.live(
        figures(), "kept", ".2f")
