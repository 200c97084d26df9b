# SPDX-License-Identifier: BSD-2-Clause
"""What a user can get wrong ends in one line, with status 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandpaper_sim import cli
from sandpaper_sim.releaser import Estimator, Releaser, policies


def says(argv: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as e:
        cli.main(argv)
    assert e.value.code == 2
    out = capsys.readouterr()
    assert out.out == ""
    assert out.err.count("\n") == 1
    return out.err


@pytest.mark.parametrize(("argv", "text"), [
    (["fig99"], "there is no figure 'fig99': use one of "),
    (["speed", "--seed", "x"], "'x' is not allowed: use a whole number, 0 or"),
    (["speed", "--jobs", "0"], "'0' is not allowed: use a whole number, 1 or"),
    (["speed", "--plot", "a.doc"], "a.doc: the name must end in one of .svg"),
    (["speed", "--json", "/no/such/a.json"], "there is no folder /no/such"),
    (["speed", "--fast"], "unrecognized arguments: --fast")])
def test_of_the_command(argv: list[str], text: str,
                        capsys: pytest.CaptureFixture[str]) -> None:
    assert text in says(argv, capsys)


def test_no_name_lists_all(capsys: pytest.CaptureFixture[str]) -> None:
    cli.main([])
    assert "  2dfq-fig8 " in capsys.readouterr().out


def test_of_the_binding() -> None:
    with pytest.raises(ValueError, match="policy 'best' is not known: use "):
        Releaser("best", 4)
    with pytest.raises(ValueError, match="estimator 'x' is not known: use "):
        Estimator("x")
    with pytest.raises(ValueError, match="alpha 2 is not allowed: use 0 to 1"):
        Estimator("ewma", 2)
    with pytest.raises(ValueError, match="slots 0 is not allowed: use 1 to "):
        Releaser("fifo", 0)
    with pytest.raises(ValueError, match="weight 0 is not allowed: use 1/10"):
        Releaser("fifo", 1).tenant(0)
    with pytest.raises(ValueError, match="alpha 17 is not allowed: use 1 to"):
        Releaser("mr3-vf", 1).set_flows(17)
    with pytest.raises(ValueError, match="policy 'best'"):
        Releaser("fifo", 1).set_policy("best", 0)


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
