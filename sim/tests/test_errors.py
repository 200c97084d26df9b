# SPDX-License-Identifier: BSD-2-Clause
"""What a user can get wrong ends in one line, with status 2."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sandpaper_sim import cli
from sandpaper_sim.releaser import Estimator, Releaser, policies


@pytest.mark.parametrize(("argv", "text"), [
    (["fig99"], "there is no figure 'fig99': use one of "),
    (["speed", "--seed", "x"], "'x' is not allowed: use a whole number, 0 or"),
    (["speed", "--jobs", "0"], "'0' is not allowed: use a whole number, 1 or"),
    (["speed", "--plot", "a.doc"], "a.doc: the name must end in one of .svg"),
    (["speed", "--json", "/no/such/a.json"], "there is no folder /no/such"),
    (["speed", "--fast"], "unrecognized arguments: --fast")])
def test_of_the_command(argv: list[str], text: str,
                        refused: Callable[..., str]) -> None:
    refused(text, *argv)


def test_no_name_lists_all(capsys: pytest.CaptureFixture[str]) -> None:
    cli.main([])
    assert "  2dfq-fig8 " in capsys.readouterr().out


@pytest.mark.parametrize(("call", "says"), [
    (lambda: Releaser("best", 4), "policy 'best' is not known: use "),
    (lambda: Estimator("x"), "estimator 'x' is not known: use "),
    (lambda: Estimator("ewma", 2), "alpha 2 is not allowed: use 0 to 1"),
    (lambda: Releaser("fifo", 0), "slots 0 is not allowed: use 1 to "),
    (lambda: Releaser("fifo", 1).tenant(0),
     "weight 0 is not allowed: use 1/10"),
    (lambda: Releaser("fifo", 1).set_limits(0, 0, 1.5, 0),
     "part 1.5 is not allowed: use 0 to 1"),
    (lambda: Releaser("mr3-vf", 1).set_flows(17),
     "alpha 17 is not allowed: use 1 to"),
    (lambda: Releaser("fifo", 1).set_policy("best", 0), "policy 'best'")])
def test_of_the_binding(call: Callable[[], object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        call()


def test_the_table_is_the_library_s() -> None:
    found = policies()
    assert list(found)[0] == "mr3-rs"
    assert found["2dfqe"].estimator is not None
    assert found["wfq"].estimator is None


def test_an_interrupted_write_leaves_no_file(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text("before")

    def write(new: str) -> None:
        Path(new).write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cli.replace(file, write)
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]
    assert file.read_text() == "before"
