# SPDX-License-Identifier: BSD-2-Clause
"""bench/cache/compare, with short traces: its result, and its tables."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from common import TOP
from sandpaper_bench.figures import Figures

COMPARE = TOP / "bench" / "cache" / "compare"


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path: Path = tmp_path_factory.mktemp("compare") / "cache.json"
    subprocess.run([COMPARE, "--no-peers", "--requests", "120000", "--seeds",
                    "1", path], check=True)
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_result(record: dict[str, Any]) -> None:
    assert len(record["results"]) == 7
    for result in record["results"]:
        found = {name: p["objects"]["median"]
                 for name, p in result["policies"].items()}
        assert 0 < found["LRU"] <= found["ours"] < 1
        assert result["best_fixed"]["median"] >= found["LRU"]
        if (result["trace"], result["bytes"]) == ("cdn", 10**9):
            assert found["ours"] > 1.5 * found["LRU"]
    tenants = record["results"][-1]["tenants"]
    assert tenants["memory"]["least"] > tenants["LRU"]["least"]
    assert tenants["equal parts"]["least"] > tenants["LRU"]["least"]


def test_tables(record: dict[str, Any]) -> None:
    figures = Figures({"cache": record}, lambda _: False)
    for name, row in (("cache", "| ours | 0."), ("cache-tenants", "| ours | "),
                      ("cache-goals", "\n| `irm`, 1 GB | ")):
        assert row in figures.render(name)
        assert Figures({}, lambda _: False).render(name).startswith("Not ")


def test_table_of_real_caches() -> None:
    record = {"date": "2026-11-27", "commit": "abc", "bytes": 10**9,
              "command": "bench/cache/live cdn --most 5", "results": [
                  {"variant": "off", "objects": .25, "bytes": .05,
                   "origin": {"bytes": 3 * 10**9}, "requests": 100,
                   "requests_per_second": 50, "small_p99_s": .0123}]}
    text = Figures({"cache-live": record}, lambda _: False).render(
        "cache-live")
    assert "| off | 0.250 | 0.050 | 3.0 | 50 | 12.3 |" in text
    assert "`bench/cache/live cdn --most 5`" in text


def test_too_few_requests(tmp_path: Path) -> None:
    done = subprocess.run([COMPARE, "--requests", "1000", tmp_path / "x"],
                          text=True, capture_output=True, check=False)
    assert done.returncode == 2
    assert "'1000' is not allowed: use a whole number from 120000" in done.stderr
