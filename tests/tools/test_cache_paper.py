# SPDX-License-Identifier: BSD-2-Clause
"""bench/cache/paper, with short traces: its result, and its table."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from common import TOP
from sandpaper_bench.cachefigures import CLAIMS
from sandpaper_bench.cacheprograms import compiled, generated, simulated
from sandpaper_bench.figures import Figures

PAPER = TOP / "bench" / "cache" / "paper"
ELSEWHERE = ("research", "requests_per_second", "small_p50_s", "small_p99_s")


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path: Path = tmp_path_factory.mktemp("paper") / "cache-paper.json"
    subprocess.run([PAPER, "--requests", "120000", "--crowds", "2", path],
                   check=True)
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_result(record: dict[str, Any]) -> None:
    found = {r["name"]: r for r in record["results"]}
    for claim in CLAIMS:
        for name, *_ in claim.parts:
            assert name in found or name in ELSEWHERE
    assert found["Varnish"]["AdaptSize"] > 1.5
    assert found["threshold"]["AdaptSize"] > 1.5
    assert found["Varnish"]["ours"] > found["Nginx"]["ours"] > 1
    assert 0 < found["misses"]["ours"] < 1
    for mix in ("crowd", "adv"):
        assert (found[f"least SIZE-OPT, {mix}"]["ours"]
                <= found[f"mean SIZE-OPT, {mix}"]["ours"]
                <= found[f"most SIZE-OPT, {mix}"]["ours"])


def test_table(record: dict[str, Any]) -> None:
    text = Figures({"cache-paper": record}, lambda _: False).render(
        "cache-paper")
    assert "| 11 | over LRU: with 0.5 GB; with 32 GB" in text
    assert "| not tried: Varnish has no disk cache |" in text
    # Figures of other records that are not there
    assert "| 1.33 to 1.46 |  |  | not measured" in text
    assert "bench/cache/paper" in Figures({}, lambda _: False).render(
        "cache-paper")


def test_verdicts(record: dict[str, Any]) -> None:
    def row(**values: float) -> str:
        changed = record | {"results": [
            {"name": r["name"], **values} if r["name"] == "Nginx" else r
            for r in record["results"]]}
        text = Figures({"cache-paper": changed}, lambda _: False).render(
            "cache-paper")
        return next(line for line in text.splitlines()
                    if "| over Nginx |" in line)

    assert "| 1.40 | 1.00 | reproduced |" in row(AdaptSize=1.4, ours=1)
    assert "| 9.00 | 1.40 | reproduced by ours. AdaptSize differs: " in row(
        AdaptSize=9, ours=1.4)
    assert "| 9.00 | 9.00 | differs: " in row(AdaptSize=9, ours=9)


def test_rules_of_others(tmp_path: Path) -> None:
    simulate = str(compiled("simulate", tmp_path))
    trace = generated(str(compiled("generate", tmp_path)), "cdn", 20000, 1,
                      tmp_path / "trace")

    def hits(*words: str) -> float:
        return float(simulated([simulate, *words, trace, "1000000000000"])[
            "objects"])

    every = hits()
    assert hits("--uses", "1") == hits("--threshold", "4000000000") == every
    assert hits("--threshold", "1") < hits("--threshold", "10000") < every
    assert hits("--uses", "3") < hits("--uses", "2") < every
