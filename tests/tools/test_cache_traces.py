# SPDX-License-Identifier: BSD-2-Clause
"""bench/cache/traces, with short traces: formats, results and errors."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import random
import struct
import subprocess
import sys
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
from common import TOP
from sandpaper_bench import cachepeers
from sandpaper_bench.cachefigures import in_unit
from sandpaper_bench.figures import Figures
from sandpaper_bench.testbed import TestbedError

TRACES = TOP / "bench" / "cache" / "traces"
Request = tuple[int, int]  # object, size
TEXT = b"1 7 100\n2 8 200\n3 7 100\n"


def requests() -> list[Request]:
    """Make a trace: half of it for 1500 small objects, the rest large."""
    draw = random.Random(7)
    small = [(n, draw.randint(100, 2000)) for n in range(1500)]
    return [draw.choice(small) if draw.random() < .5 else
            (10**6 + draw.randint(0, 9000), 50_000) for _ in range(40_000)]


def text(trace: list[Request]) -> bytes:
    return b"".join(b"%d %d %d\n" % (n, *r) for n, r in enumerate(trace))


def lru(trace: list[Request], capacity: int) -> tuple[float, float]:
    """Return the hit ratios of LRU, from another program than ours."""
    cache: OrderedDict[Request, None] = OrderedDict()
    used = hits = hit_bytes = 0
    for request in trace:
        if request in cache:
            cache.move_to_end(request)
            hits, hit_bytes = hits + 1, hit_bytes + request[1]
        elif request[1] <= capacity:
            used, cache[request] = used + request[1], None
            while used > capacity:
                used -= cache.popitem(last=False)[0][1]
    return hits / len(trace), hit_bytes / sum(size for _, size in trace)


def run(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, TRACES, *map(str, words)], text=True,
        capture_output=True, check=False)


def program(folder: Path, *lines: str) -> Path:
    """Write a program that stands for webcachesim, and return its folder."""
    path = folder / "webcachesim"
    path.write_text("\n".join(("#!/bin/sh", *lines)) + "\n")
    path.chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Write a trace in each format."""
    folder = tmp_path_factory.mktemp("traces")
    trace = requests()
    data = {"text": text(trace), "oracleGeneral": b"".join(
        struct.pack("<IQIq", n, object, size, -1)
        for n, (object, size) in enumerate(trace)),
        "csv": b"version,when,bytes,url\n" + b"".join(
            b"1,%d.5,%d,/%d\n" % (n, size, object)
            for n, (object, size) in enumerate(trace))}
    data["tabs"] = data["csv"].replace(b",", b"\t")
    for name, content in data.items():
        (folder / name).write_bytes(content)
    return {name: folder / name for name in data}


@pytest.fixture(scope="module")
def record(files: dict[str, Path],
           tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("result") / "cache-traces.json"
    done = run(path, *(f"t-{name}={file}" for name, file in files.items()),
               "--columns", "2,4,3", "--sizes", "1M,1%", "--seeds", "1,2",
               "--no-peers")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_formats(record: dict[str, Any], files: dict[str, Path]) -> None:
    first = record["results"][0]
    assert first["requests"] == 40_000
    for result, (name, path) in zip(record["results"], files.items(),
                                    strict=True):
        assert result["trace"] == f"t-{name}"
        assert result["format"] == name.replace("tabs", "csv")
        assert result["sha256"] == hashlib.sha256(
            path.read_bytes()).hexdigest()
        for same in ("requests", "objects", "bytes", "asked_bytes", "caches"):
            assert result[same] == first[same], same


def test_hits(record: dict[str, Any]) -> None:
    result, trace = record["results"][0], requests()
    assert result["objects"] == len(set(trace))
    assert result["bytes"] == sum(size for _, size in set(trace))
    for cache, size in zip(result["caches"],
                           (10**6, result["bytes"] // 100), strict=True):
        assert cache["bytes"] == size
        found = cache["policies"]
        for part, ratio in zip(("objects", "bytes"), lru(trace, size),
                               strict=True):
            assert found["LRU"][part]["median"] == round(ratio, 4)
        assert (found["ours"]["objects"]["median"]
                > found["LRU"]["objects"]["median"] + .1)


def test_no_folder_in_the_record(record: dict[str, Any]) -> None:
    assert "t-text=text t-oracleGeneral=oracleGeneral" in record["command"]
    for result in record["results"]:
        assert "/" not in result["trace"]


def test_another_size_is_another_object(tmp_path: Path) -> None:
    trace, result = tmp_path / "trace", tmp_path / "result.json"
    trace.write_bytes(b"1 7 100\n2 7 200\n3 7 100\n\n")
    assert run(result, trace, "--no-peers").returncode == 0
    found = json.loads(result.read_text())["results"][0]
    assert (found["requests"], found["objects"], found["bytes"]) == (3, 2, 300)


@pytest.mark.parametrize(("content", "words", "said"), [
    (b"", (), "the file is empty: use a trace with one request or more"),
    (b"\n\n", (), "the file has no request"),
    (TEXT + b"4 9\n", (), "line 4: 2 words: use \"time id size\""),
    (TEXT + b"4 9 1 2\n", (), "line 4: 4 words"),
    (TEXT + b"4 9 0\n", (), "line 4: '0' is not a size: use a whole number of "
     "bytes from 1 to 4294967295, or remove this request"),
    (TEXT + b"4 9 -5\n", (), "line 4: '-5' is not a size"),
    (TEXT + b"4 9 1.5\n", (), "line 4: '1.5' is not a size"),
    (TEXT + b"4 9 4294967296\n", (), "line 4: '4294967296' is not a size"),
    (TEXT + b"4 9 \xff\n", (), "line 4: "),
    (TEXT + b"now 9 10\n", (), "line 4: 'now' is not a time: use a number"),
    (b"time id size\n", (), "line 1: 'time' is not a time"),
    (b"t,id,size\n1,2,3\n1,2\n", (), "line 3: 2 columns, and column 3 is "
     "needed"),
    (b"t,id,size\n1,,3\n", (), "line 2: column 2 is empty"),
    (b"t,id,size\n1,2,x\n", (), "line 2: 'x' is not a size"),
    (b"1,2,3\n", ("--columns", "1,2,5"), "line 1: 3 columns, and column 5"),
    (bytes(24) + b"xy", (), "record 2 ends after 2 of 24 bytes"),
    (bytes(24), (), "record 1: '0' is not a size"),
    (TEXT + b"\n", ("--format", "oracleGeneral"), "record 2 ends after 1 of "
     "24 bytes"),
    (b"\x1f\x8b0", (), "the file is compressed: decompress it with gzip"),
    (TEXT, ("--sizes", "0.1%"), "--sizes 0.1%: no byte of the 300 bytes of "
     "all objects of trace: use a larger part"),
])
def test_broken_trace(tmp_path: Path, content: bytes, words: tuple[str, ...],
                      said: str) -> None:
    trace = tmp_path / "trace"
    trace.write_bytes(content)
    done = run(tmp_path / "result.json", trace, "--no-peers", *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.startswith("traces: ")
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "result.json").exists()


def test_no_file(tmp_path: Path) -> None:
    done = run(tmp_path / "result.json", tmp_path / "none", "--no-peers")
    assert done.returncode == 2
    assert "none: No such file or directory" in done.stderr


@pytest.mark.parametrize("words", [
    ("--sizes", "0"), ("--sizes", "0%"), ("--sizes", "101%"),
    ("--sizes", "0.5"), ("--sizes", "1T"), ("--sizes", "1%,"),
    ("--columns", "1,2"), ("--columns", "0,1,2"), ("--window", "999"),
    ("--format", "lru"),
])
def test_wrong_option(tmp_path: Path, words: tuple[str, str]) -> None:
    done = run(tmp_path / "result.json", tmp_path / "trace", *words)
    assert done.returncode == 2
    assert f"argument {words[0]}: " in done.stderr
    assert "allowed" in done.stderr or "invalid choice" in done.stderr


def test_webcachesim(tmp_path: Path) -> None:
    trace, result = tmp_path / "trace", tmp_path / "result.json"
    trace.write_bytes(b"5,/a,100\n6,/b,200\n9,/a,100\n")
    folder = program(
        tmp_path, 'printf "%s\\n" "$2 $3 $4" >>"$0.words"; cp "$1" "$0.trace"',
        'echo "$2 $3 1000 3 2 0.66"')
    done = run(result, trace, "--no-peers", "--sizes", "250", "--webcachesim",
               folder)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "webcachesim.words").read_text() == (
        "AdaptSize 250 t=1000\n")
    assert (tmp_path / "webcachesim.trace").read_text() == (
        "0 0 100\n1 1 200\n2 0 100\n")
    found = json.loads(result.read_text())["results"][0]["caches"][0]
    assert found["policies"]["AdaptSize, webcachesim"] == {
        "objects": {"median": .6667, "least": .6667, "most": .6667}}
    assert str(tmp_path) not in result.read_text().replace(str(result), "")


@pytest.mark.parametrize(("lines", "said"), [
    (None, "there is no program webcachesim: build it there, or use the "
     "folder where it is"),
    (("echo wrong use >&2; exit 1",), "Status 1, and it says: wrong use"),
    (("echo AdaptSize 250 1000 2 2 1",), "it says: AdaptSize 250 1000 2 2 1"),
    (("echo AdaptSize 250 1000 3 x 1",), "it says: AdaptSize 250 1000 3 x 1"),
    (("true",), "it says: nothing"),
])
def test_webcachesim_that_fails(
    tmp_path: Path, lines: tuple[str, ...] | None, said: str
) -> None:
    (tmp_path / "trace").write_bytes(TEXT)
    if lines:
        program(tmp_path, *lines)
    done = run(tmp_path / "result.json", tmp_path / "trace", "--no-peers",
               "--sizes", "250", "--webcachesim", tmp_path)
    assert done.returncode == 2
    assert said in done.stderr


def test_policy_that_fails(tmp_path: Path) -> None:
    with pytest.raises(TestbedError, match="nothing of libcachesim failed"):
        cachepeers.peer("nothing", 1000, str(tmp_path / "none"), 10)


def test_policies_of_libcachesim(tmp_path: Path) -> None:
    """They are there if the package is; else the result says so."""
    trace, result = tmp_path / "trace", tmp_path / "result.json"
    trace.write_bytes(text(requests()[:5000]))
    assert run(result, trace, "--seeds", "1").returncode == 0
    record = json.loads(result.read_text())
    policies = record["results"][0]["caches"][0]["policies"]
    installed = importlib.util.find_spec("libcachesim") is not None
    assert (record["libcachesim"] is not None) == installed
    assert policies.keys() & cachepeers.PEERS.keys() == (
        cachepeers.PEERS.keys() if installed else set())


@pytest.mark.parametrize(("count", "text"), [
    (0, "0 B"), (999, "999 B"), (1740, "1.74 kB"), (999_400, "999 kB"),
    (999_600, "1 MB"), (24 * 10**9, "24 GB"), (2_444 * 10**9, "2.44 TB"),
])
def test_unit(count: int, text: str) -> None:
    assert in_unit(count) == text


def test_table(record: dict[str, Any]) -> None:
    figures = Figures({"cache-traces": record}, lambda _: False)
    assert "| t-text | 40,000 | " in figures.render("cache-trace-files")
    assert "\n| t-text, 1M | 1 MB | 0." in figures.render("cache-traces")
    for name in ("cache-traces", "cache-trace-files"):
        assert Figures({}, lambda _: False).render(name).startswith("Not ")
