# SPDX-License-Identifier: BSD-2-Clause
"""The files of sandpaper-exporter --usage, from answers that are made up."""

from __future__ import annotations

import csv
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from exporter_samples import START, answer, tenant
from sandpaper_exporter.poll import HOUR, Lost
from sandpaper_exporter.usage import Usage, UsageError, file_of

Rows = dict[str, dict[str, str]]


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def usage(folder: Path, said: list[str]) -> Usage:
    return Usage(folder, said.append)


def again(usage: Usage) -> Usage:
    """Return the exporter that comes after one that was killed."""
    usage.close()
    return Usage(usage.folder, lambda _text: None)


def rows(usage: Usage, hour: int = 0) -> Rows:
    """Return the file of an hour after START."""
    file = usage.folder / file_of(START + hour * HOUR)
    with file.open(newline="") as f:
        return {r["tenant"]: r for r in csv.DictReader(f)}


def requests(usage: Usage, hour: int = 0) -> dict[str, int]:
    return {name: int(row["requests"])
            for name, row in rows(usage, hour).items()
            if row["requests"] != "0"}


def unknown(usage: Usage, hour: int = 0) -> tuple[str, float]:
    row = rows(usage, hour)["(unmapped)"]
    return row["complete"], float(row["unknown_s"])


def test_an_hour(usage: Usage) -> None:
    usage.add(answer(0, tenant("a", 5), rest=5))
    usage.add(answer(1, tenant("a", 7, refused_late=2, refused_full=1),
                     rest=6))
    assert rows(usage)["a"] == {
        "hour": "2027-01-15T08:00:00Z", "tenant": "a", "cpu_s": "0.020000",
        "bytes": "2000", "requests": "2", "refused": "3", "complete": "no",
        "unknown_s": "0.000"}
    assert requests(usage) == {"a": 2, "(unmapped)": 1}
    usage.add(answer(HOUR, tenant("a", 9, refused_late=2, refused_full=1),
                     rest=6))
    assert requests(usage) == {"a": 4, "(unmapped)": 1}
    assert unknown(usage) == ("yes", 0)
    usage.add(answer(HOUR + 1, tenant("a", 10, refused_late=2, refused_full=1),
                     rest=6))
    assert requests(usage) == {"a": 4, "(unmapped)": 1}
    assert requests(usage, 1) == {"a": 1}


def test_the_first_hour_is_not_complete(usage: Usage) -> None:
    usage.add(answer(600))
    usage.add(answer(HOUR))
    assert unknown(usage) == ("no", 600)
    usage.add(answer(2 * HOUR))
    assert unknown(usage, 1) == ("yes", 0)


def test_a_worker_process_that_ends(usage: Usage) -> None:
    usage.add(answer(0, tenant("a", 5)))
    usage.add(answer(1, tenant("a", 15)))
    usage.lost(Lost(START + 2, "", gone=True))
    usage.add(answer(4, tenant("a", 7), started=START + 2.5))
    usage.add(answer(HOUR, tenant("a", 8), started=START + 2.5))
    assert requests(usage) == {"a": 18}
    assert unknown(usage) == ("no", 1.5)


def test_an_exporter_that_is_killed_goes_on(usage: Usage) -> None:
    usage.add(answer(0, tenant("a", 5), rest=1))
    usage.add(answer(1, tenant("a", 15), rest=2))
    usage = again(usage)
    assert requests(usage) == {"a": 10, "(unmapped)": 1}
    usage.add(answer(100, tenant("a", 17), tenant("b", 3), rest=2))
    assert requests(usage) == {"a": 12, "b": 3, "(unmapped)": 1}
    usage.add(answer(HOUR, tenant("a", 17), tenant("b", 3), rest=2))
    assert unknown(usage) == ("yes", 0)


def test_without_its_state_it_goes_on_too(usage: Usage) -> None:
    usage.add(answer(0, tenant("a", 5)))
    usage.add(answer(1, tenant("a", 15)))
    (usage.folder / "state").unlink()
    usage = again(usage)
    usage.add(answer(10, tenant("a", 20)))
    usage.add(answer(11, tenant("a", 21)))
    assert requests(usage) == {"a": 11}
    assert unknown(usage) == ("no", 10)


def test_both_were_gone(usage: Usage) -> None:
    usage.add(answer(0, tenant("a", 5)))
    usage = again(usage)
    usage.add(answer(90, tenant("a", 7), started=START + 60))
    assert requests(usage) == {"a": 7}
    assert unknown(usage) == ("no", 60)


def test_an_hour_that_ended_meanwhile(usage: Usage) -> None:
    """What was used is known, in which hour is not."""
    usage.add(answer(0, tenant("a", 0)))
    usage = again(usage)
    usage.add(answer(2.5 * HOUR, tenant("a", 10)))
    assert [requests(usage, n) for n in (0, 1, 2)] == [
        {"a": 4}, {"a": 4}, {"a": 2}]
    assert [unknown(usage, n) for n in (0, 1, 2)] == [
        ("no", HOUR), ("no", HOUR), ("no", HOUR / 2)]


def test_some_seconds_of_an_hour_are_not_certain(usage: Usage) -> None:
    usage.add(answer(0, tenant("a", 0)))
    usage.add(answer(HOUR - 10, tenant("a", 0)))
    usage.add(answer(HOUR + 90, tenant("a", 10)))
    assert [requests(usage, n) for n in (0, 1)] == [{"a": 1}, {"a": 9}]
    assert [unknown(usage, n) for n in (0, 1)] == [("no", 10), ("no", 10)]
    usage.add(answer(2 * HOUR - 60, tenant("a", 10)))
    usage.add(answer(2 * HOUR + 3, tenant("a", 10)))
    assert unknown(usage, 1) == ("no", 10)


def test_a_process_that_began_in_this_hour(usage: Usage) -> None:
    usage.add(answer(0, tenant("a", 0)))
    usage = again(usage)
    usage.add(answer(HOUR + 20, tenant("a", 10), started=START + HOUR + 10))
    assert (requests(usage, 0), requests(usage, 1)) == ({}, {"a": 10})
    assert (unknown(usage, 0), unknown(usage, 1)) == (("no", HOUR), ("no", 10))


def test_the_second_in_which_an_hour_ends(usage: Usage) -> None:
    usage.add(answer(HOUR - 0.5, tenant("a", 0)))
    usage.add(answer(HOUR + 0.5, tenant("a", 3)))
    assert (requests(usage, 0), requests(usage, 1)) == ({"a": 1}, {"a": 2})
    assert unknown(usage, 1) == ("no", 0)


def test_a_clock_that_is_set_back_changes_no_file(usage: Usage) -> None:
    usage.add(answer(0, tenant("a", 0)))
    usage.add(answer(HOUR, tenant("a", 3)))
    usage.add(answer(HOUR - 60, tenant("a", 5)))
    assert (requests(usage, 0), requests(usage, 1)) == ({"a": 3}, {"a": 2})


def test_rows_are_bounded(folder: Path) -> None:
    """Also for the exporter that comes after."""
    for n in range(2):
        usage = Usage(folder, print, most=1)
        usage.add(answer(2 * n, tenant("a", 5 * n), tenant("b", 5 * n)))
        usage.add(answer(2 * n + 1, tenant("a", 5 * n + 5),
                         tenant("b", 5 * n + 5)))
        usage.close()
    assert requests(usage) == {"a": 10, "(unmapped)": 10}


def test_a_name_with_a_comma(usage: Usage) -> None:
    usage.add(answer(0, tenant("a,b", 0)))
    usage.add(answer(1, tenant("a,b", 1)))
    assert requests(usage) == {"a,b": 1}


@contextmanager
def no_space(left: int) -> Iterator[None]:
    """Let files not grow above this size."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (left, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_no_space(usage: Usage, said: list[str]) -> None:
    usage.add(answer(0, tenant("a", 0)))
    usage.add(answer(1, tenant("a", 1)))
    with no_space(100):
        for n in range(2, 5):
            usage.add(answer(n, tenant("a", n)))
        usage.add(answer(HOUR, tenant("a", 10)))
        usage.add(answer(HOUR + 1, tenant("a", 12)))
    assert not usage.writing
    assert not list(usage.folder.glob(".*"))
    assert requests(usage) == {"a": 1}
    assert [line.partition(":")[0] for line in said] == ["accounting stops"]
    usage.add(answer(HOUR + 2, tenant("a", 12)))
    assert (requests(usage), requests(usage, 1)) == ({"a": 10}, {"a": 2})
    assert unknown(usage) == ("yes", 0)
    assert said[1:] == ["accounting goes on"]


def test_two_exporters(usage: Usage) -> None:
    with pytest.raises(UsageError, match="another sandpaper-exporter"):
        Usage(usage.folder, print)


def test_no_folder(folder: Path) -> None:
    with pytest.raises(UsageError, match="No such file or directory"):
        Usage(folder / "none", print)


@pytest.mark.parametrize("text", [
    "", "{}\n", "[]\n", "x", '{"version": 9, "keys": []}\n'])
def test_a_damaged_state(usage: Usage, text: str) -> None:
    (usage.folder / "state").write_text(text)
    (usage.folder / "looked").write_text("1.5\n")
    with pytest.raises(UsageError, match="damaged"):
        again(usage)
