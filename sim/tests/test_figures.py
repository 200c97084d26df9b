# SPDX-License-Identifier: BSD-2-Clause
"""The papers' exact schedules, and that each figure does what it says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sandpaper_sim import cli


def figure(name: str, folder: Path, *more: str) -> dict:
    file = folder / "a.json"
    cli.main([name, "--jobs", "1", "--json", str(file),
              "--plot", str(folder / "a.svg"), *more])
    assert (folder / "a.svg").read_text().startswith("<?xml")
    data = json.loads(file.read_text())
    assert list(data) == ["figure", "seed", "quick", "parameters", "results",
                          "paper"]
    return data


@pytest.mark.parametrize("name", ["2dfq-fig5", "2dfq-fig6"])
def test_schedules_of_2dfq(name: str, tmp_path: Path) -> None:
    data = figure(name, tmp_path)
    assert all(r["same"] for r in data["results"])
    assert {r["policy"]: r["threads"] for r in data["results"]} == \
        data["paper"]["threads"]


def test_schedule_of_sandpaper(tmp_path: Path) -> None:
    mr3, rs = figure("sandpaper-fig5", tmp_path)["results"]
    assert mr3["same"]
    assert (mr3["core_us"], rs["core_us"]) == (18, 24)


def test_small_tenants_beside_large_ones(tmp_path: Path) -> None:
    data = figure("2dfq-fig8", tmp_path, "--quick")
    ratios = data["parameters"]["times_2dfq_at_50"]
    assert ratios["wfq"] >= 10
    assert ratios["wf2q"] >= 3.5
    # All tenants alike: the policies are, too.
    none = {r["policy"]: r["lag_sd_s"] for r in data["results"]
            if r["expensive"] == 0}
    assert none["wfq"] < 0.003 and none["2dfq"] < 0.003
