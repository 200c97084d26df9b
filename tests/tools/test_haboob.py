# SPDX-License-Identifier: BSD-2-Clause
"""The experiment `haboob`: its files, its clients, and what is judged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from report_samples import SampleRig, haboob_turn, samples
from sandpaper_bench import haboobfigures, specweb
from sandpaper_bench.haboob import (
    CUSTOMER,
    DIRECTORIES,
    clients,
    lacks,
    result,
    value,
)
from sandpaper_bench.load import GroupResult, Measurement, once_each
from sandpaper_bench.markdown import Records
from test_experiments import Rehearsal, plan

SEEN = GroupResult(CUSTOMER, 64, 100.0, 0.01, 0.05, 0.2, 0, 0, 0, 0, 0, 0,
                   0.0, 0, 0, [])
FILES = list(specweb.files(DIRECTORIES))


def part_of(wanted: str) -> float:
    """Return the part of the requests that are for such a path."""
    return (sum(f.weight for f in FILES if wanted in f.path)
            / sum(f.weight for f in FILES))


def test_the_files_are_those_of_specweb() -> None:
    assert len(FILES) == 36 * DIRECTORIES
    assert len({f.path for f in FILES}) == len(FILES)
    sizes = sorted({f.size for f in FILES})
    assert (len(sizes), sizes[0], sizes[-1]) == (36, 102, 921600)
    assert 127e6 < sum(f.size for f in FILES) < 129e6
    for number, part in enumerate((.35, .5, .14, .01)):
        assert part_of(f"class{number}") == pytest.approx(part)


def test_popular_files() -> None:
    assert part_of("specweb/1/") == pytest.approx(2 * part_of("specweb/2/"))
    assert part_of("_5") == pytest.approx(9 * part_of("_1"))
    assert specweb.mean_bytes() == pytest.approx(14_730, abs=10)


def test_the_origin_serves_them_and_clients_ask_for_them(
    tmp_path: Path
) -> None:
    rig, put = SampleRig(), {}
    rig._origin = SimpleNamespace(  # type: ignore[assignment]
        folder=tmp_path, put=put.__setitem__)
    rig.bed.bring = lambda role, path: None  # type: ignore[method-assign]
    rig.serve([])
    assert not put
    rig.serve([specweb.File("a/b", 7, 0.25), specweb.File("c", 9, 1)])
    assert {path: len(page) for path, page in put.items()} == {
        "a/b": 7, "c": 9}
    group, other = rig.dressed([clients(64), replace(clients(1),
                                                     mode="closed")])
    assert Path(group.paths).read_text() == "0.250000000 /a/b\n1.000000000 /c\n"
    assert other.paths == ""
    assert (once_each(group), once_each(other)) == (2, 1)


def test_what_is_asked_for() -> None:
    rig = Rehearsal()
    rig.run(plan("haboob", "--variants", "sandpaper", "--turns", "1"))
    specs = [spec for _, _, [spec] in rig.load.asked]
    assert [f"conns={n}," in spec for n, spec in zip(
        (64, 1024, 64), specs, strict=True)] == [True] * 3
    for spec in specs:
        assert "mode=browse" in spec
        assert "think=0.02,per_conn=5" in spec
    assert [s for _, s, _ in rig.load.asked] == [63.0, 63.0, 18.0]


def test_no_request_is_refused() -> None:
    stock, ours = plan("haboob", "--param",
                       "sandpaper_queue_limit=5").ask.variants
    assert stock.parameters == ()
    # varnishd takes the last value of a parameter
    found = [p for p in ours.parameters if "queue_limit" in p]
    assert found == ["sandpaper_queue_limit=20000", "sandpaper_queue_limit=5"]


def test_descriptors() -> None:
    ask = plan("haboob").ask
    assert lacks(ask) is None
    with patch("sandpaper_bench.haboob.descriptors", return_value=999):
        assert lacks(ask) == "2024 descriptors, and ulimit -Hn says 999"


def test_a_turn() -> None:
    windows = [Measurement(2.0, 1.0, 0.1, 0.0, {CUSTOMER: replace(
        SEEN, bytes=size, rps=rps, jain=jain, mean_s=0.03, errors=1,
        not_200=2)}) for size, rps, jain in (
            (25_000_000, 100.0, 0.99), (50_000_000, 200.0, 0.9),
            (0, 101.0, 1.0))]
    found = value(windows)
    few, many = found.served
    assert (few.clients, few.mbit_s, few.errors) == (64, 100.0, 3)
    assert (many.clients, many.mbit_s, many.jain) == (1024, 200.0, 0.9)
    assert found.again_rps == 101.0


def test_the_longest_is_that_of_all_turns() -> None:
    row = result(1, "sandpaper", [haboob_turn(x, y) for x, y in (
        (1.0, 0.99), (7.0, 0.98), (2.0, 0.97))], 1)
    assert (row["max_s"], row["jain"], row["clients"]) == (7.0, 0.98, 1024)
    assert row["mbit_s_ci"] == [200.0, 200.0]


def rows(variants: dict[str, tuple[float, float, float]]
         ) -> list[dict[str, Any]]:
    """Return results: Mbit/s, longest and index of many clients."""
    base = {"mean_s": 0.02, "max_s": 0.1, "jain": 0.99, "mbit_s": 100.0}
    return [{"variant": v, "clients": 64, **base} for v in variants] + [
        {"variant": v, "clients": 1024, "mean_s": 0.5, "max_s": longest,
         "jain": jain, "mbit_s": mbit}
        for v, (mbit, longest, jain) in variants.items()]


def verdicts(variants: dict[str, tuple[float, float, float]]) -> list[str]:
    """Return the verdict of each statement."""
    return [r["verdict"] for r in haboobfigures.judged(rows(variants))]


def test_verdicts() -> None:
    good, bad = (110.0, 1.0, 0.995), (90.0, 9.0, 0.9)
    assert verdicts({"stock": bad, "sandpaper": good}) == ["agrees"] * 8
    assert verdicts({"stock": good, "sandpaper": bad}) == [
        *["differs"] * 5, "agrees", "agrees", "differs"]
    # One server has no others
    assert verdicts({"sandpaper": good}) == ["agrees"] * 6


def test_the_thesis_agrees_with_itself() -> None:
    for name, seen in haboobfigures.thesis().items():
        holds = [s.holds(s.value(seen)) for s in haboobfigures.STATEMENTS]
        assert holds == {
            "Haboob": [True, True, False, True, True, True],
            "Apache": [True, False, False, False, False, False],
            "Flash": [True, True, True, False, False, False]}[name]


def test_the_table() -> None:
    record = samples()["haboob"] | {
        "commit": "abc1234", "dirty": False, "date": "2026-11-28",
        "command": "bench/sandpaper-bench haboob"}
    text = haboobfigures.haboob(Records({"haboob": record}, lambda _: False))
    for line in (
            "| 1024 | Haboob, thesis | 201 |  | 547 |  | 3886 | 0.980 |  |",
            "| 1024 | stock Varnish | 200 | 1,700 | 600 | 800 | 9000 | 0.920 "
            "| 0 |", "| 0.800 | 0.990 | 0.980 |", "| 64 | Sandpaper | 190 |"):
        assert line in text
    assert "| 93.69 s | 37.39 s | 3.89 s | 9.00 s | 0.90 s | agrees |" in text
    assert "commit abc1234" in text
    assert "Control, haboob against itself: 1.00" in text


def test_without_a_record() -> None:
    assert ("bench/sandpaper-bench haboob --variants stock,nginx,sandpaper "
            "--record") in haboobfigures.haboob(Records({}, lambda _: False))


def test_what_the_command_prints() -> None:
    text = haboobfigures.terminal(samples()["haboob"])
    assert "A/A control: haboob against itself" in text
    assert "With 1024 clients Jain's index is at least Flash's" in text
