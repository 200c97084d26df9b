# SPDX-License-Identifier: BSD-2-Clause
"""What several files of tests use.

Hypothesis tries the same examples each time. SANDPAPER_PROPERTIES=long tries
fifty times as many."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from sandpaper_sim import cli

for name, examples in (("short", 40), ("long", 2000)):
    settings.register_profile(
        name, max_examples=examples, derandomize=True, deadline=None,
        database=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("SANDPAPER_PROPERTIES", "short"))


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Call it with a text and arguments: the command says the text, in one
    line, which is returned, and ends with status 2."""
    def check(text: str, *argv: str) -> str:
        with pytest.raises(SystemExit) as e:
            cli.main(list(argv))
        assert e.value.code == 2
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.count("\n") == 1
        assert text in said.err
        return said.err
    return check


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., dict]:
    """Call it with arguments: what the command writes as JSON, on one core."""
    def results(*argv: str) -> dict:
        out = tmp_path / "out.json"
        cli.main([*argv[:1], "--jobs", "1", "--json", str(out), *argv[1:]])
        return json.loads(out.read_text())
    return results
