# SPDX-License-Identifier: BSD-2-Clause
"""The load generator's URLs with weights."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from loadgen import ANSWER, loaded
from sandpaper_bench.load import build_loadgen

TIMEOUT = 60  # seconds, for what should take one


def urls(
    tmp_path: Path, text: str, limit: int, in_order: int = 0
) -> list[bytes]:
    """Return the URLs of so many requests, of this file of paths."""
    file = tmp_path / "paths"
    file.write_text(text)
    asked = []
    with loaded(f"host=a,limit={limit},paths={file},in_order={in_order}",
                "-t", str(TIMEOUT), "-s", "7") as (peer, _, _):
        for _ in range(limit):
            asked.append(peer.recv(8192).split(b" ")[1])
            peer.send(ANSWER)
    return asked


def test_urls_have_weights(tmp_path: Path) -> None:
    asked = urls(tmp_path, "3 /a\n1 /b\n1e-9 /c\n", 400)
    assert 280 <= asked.count(b"/a") <= 320
    assert asked.count(b"/a") + asked.count(b"/b") == 400
    assert urls(tmp_path, "2 /one\n", 3) == [b"/one"] * 3


def test_urls_in_order(tmp_path: Path) -> None:
    assert urls(tmp_path, "9 /a\n1 /b\n1e-9 /c?d=e\n", 4, 1) == [
        b"/a", b"/b", b"/c?d=e", b"/a"]


@pytest.mark.parametrize(("text", "said"), [
    ("/a\n", "'/a' is not valid: use WEIGHT /URL"),
    ("1 a\n", "'1 a' is not valid: use WEIGHT /URL"),
    ("0 /a\n", "weight '0' is not allowed"),
    ("", "the file has no URLs"),
    (None, "No such file")])
def test_a_wrong_file_is_named(
    tmp_path: Path, text: str | None, said: str
) -> None:
    if text is not None:
        (tmp_path / "paths").write_text(text)
    done = subprocess.run(
        [str(build_loadgen()), "127.0.0.1:1",
         f"host=a,paths={tmp_path / 'paths'}"],
        capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert said in done.stderr
