# SPDX-License-Identifier: BSD-2-Clause
"""The files of sandpaper-exporter --usage, from answers that are made up."""

from __future__ import annotations

import csv
import json
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from exporter_samples import START, answer, tenant
from sandpaper_exporter.poll import HOUR, Lost
from sandpaper_exporter.usage import HOURS, Usage, UsageError, file_of

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


# The clock


def test_a_clock_that_is_set_back_changes_no_file(usage: Usage) -> None:
    """It stands still until it is there again; its hour is not certain."""
    usage.add(answer(0, tenant("a", 0)))
    usage.add(answer(HOUR, tenant("a", 3)))
    usage.add(answer(HOUR - 60, tenant("a", 5), boot=HOUR + 1))
    assert (requests(usage, 0), requests(usage, 1)) == ({"a": 3}, {"a": 2})
    usage.add(answer(HOUR - 59, tenant("a", 6), boot=HOUR + 2))
    usage.add(answer(HOUR + 1, tenant("a", 7), boot=HOUR + 62))
    assert (requests(usage, 0), requests(usage, 1)) == ({"a": 3}, {"a": 4})
    assert (unknown(usage, 0), unknown(usage, 1)) == (("yes", 0), ("no", 61))


def files(usage: Usage) -> dict[str, int]:
    """Return the files, with how many requests each has."""
    return {f.name: sum(int(line.split(",")[4])
                        for line in f.read_text().splitlines()[1:])
            for f in sorted(usage.folder.glob("*.csv"))}


YEARS = 10 * 365 * 24  # hours


@pytest.mark.parametrize("restart", [False, True])
def test_a_clock_that_is_far_ahead_for_a_while(
        usage: Usage, *, restart: bool) -> None:
    """Hours that were not there have no file, and nothing is lost.

    An exporter that is new cannot know that the clock was set.
    """
    usage.add(answer(0, tenant("a", 0)))
    usage.add(answer(1, tenant("a", 5), rest=1))
    if restart:
        usage = again(usage)
    usage.add(answer(YEARS * HOUR + 600, tenant("a", 7), rest=1, boot=2))
    usage.add(answer(YEARS * HOUR + 601, tenant("a", 8), rest=1, boot=3))
    assert len(files(usage)) == (24 if restart else 2)
    assert sum(files(usage).values()) == 9
    assert requests(usage, YEARS)["a"] == (2 if restart else 3)
    if restart:
        usage = again(usage)
    usage.add(answer(4, tenant("a", 10), rest=1, boot=4))
    usage.add(answer(5, tenant("a", 11), rest=1, boot=5))
    assert sum(files(usage).values()) == 12
    assert requests(usage)["a"] == 8
    state = json.loads((usage.folder / "state").read_text().split("\n")[0])
    assert list(state["hours"]) == [str(START)]  # the other is not kept
    assert (unknown(usage), unknown(usage, YEARS)) == (
        ("no", HOUR), ("no", HOUR))
    assert all(row["complete"] == "no" for row in rows(usage).values())
    # And all is as before
    usage.add(answer(HOUR, tenant("a", 12), rest=1, boot=HOUR))
    usage.add(answer(2 * HOUR, tenant("a", 15), rest=1, boot=2 * HOUR))
    assert (requests(usage, 1), unknown(usage, 1)) == ({"a": 3}, ("yes", 0))


def test_a_clock_that_was_far_ahead_from_the_start(usage: Usage) -> None:
    """Its usage does not go to the wrong hour for ten years."""
    usage.add(answer(YEARS * HOUR, tenant("a", 0), boot=0))
    usage.add(answer(YEARS * HOUR + 1, tenant("a", 2), boot=1))
    usage.add(answer(1800, tenant("a", 3), boot=2))
    usage.add(answer(HOUR, tenant("a", 5), boot=2 + 1800))
    usage.add(answer(2 * HOUR, tenant("a", 9), boot=2 + 1800 + HOUR))
    assert [requests(usage, n) for n in (YEARS, 0, 1)] == [
        {"a": 2}, {"a": 3}, {"a": 4}]
    assert [unknown(usage, n) for n in (YEARS, 0, 1)] == [
        ("no", HOUR), ("no", HOUR), ("yes", 0)]


def test_a_clock_that_is_set_back_by_hours(usage: Usage) -> None:
    """A file of an hour that was over gets what is used in it again."""
    usage.add(answer(0, tenant("a", 0)))
    usage.add(answer(HOUR, tenant("a", 3)))
    usage.add(answer(2 * HOUR, tenant("a", 5, refused_late=1)))
    usage.add(answer(2 * HOUR + 10, tenant("a", 5, refused_late=1)))
    usage.add(answer(HOUR - 60, tenant("a", 6, refused_late=2),
                     boot=2 * HOUR + 11))
    usage.add(answer(HOUR - 59, tenant("a", 7, refused_late=3),
                     boot=2 * HOUR + 12))
    assert [requests(usage, n) for n in range(3)] == [
        {"a": 5}, {"a": 2}, {}]
    assert rows(usage)["a"]["refused"] == "2"
    assert [unknown(usage, n)[0] for n in range(3)] == ["no", "yes", "no"]


def test_a_clock_that_is_set_while_a_worker_process_begins(usage: Usage
                                                           ) -> None:
    usage.add(answer(0, tenant("a", 5)))
    usage.add(answer(YEARS * HOUR, tenant("a", 2), boot=2,
                     started=START + YEARS * HOUR - 0.5))
    assert len(files(usage)) == 24
    usage.add(answer(3, tenant("a", 1), boot=3,
                     started=START + YEARS * HOUR + 0.5))
    assert len(files(usage)) == 25
    assert sum(files(usage).values()) == 3


def test_a_worker_process_that_began_by_another_clock(usage: Usage) -> None:
    usage.add(answer(0, tenant("a", 5)))
    usage.add(answer(2, tenant("a", 3), started=START + YEARS * HOUR))
    assert files(usage) == {file_of(START): 3}
    usage.add(answer(YEARS * HOUR + 9, tenant("a", 2), boot=4,
                     started=START + 3))
    assert len(files(usage)) == 2
    assert (requests(usage), requests(usage, YEARS)) == ({"a": 3}, {"a": 2})


def test_what_is_unknown_stays_unknown(usage: Usage) -> None:
    usage.add(answer(1000, tenant("a", 5)))
    usage.add(answer(1, tenant("a", 5), boot=1001))
    assert unknown(usage) == ("no", 1000 + 1000)
    (usage.folder / "state").unlink()
    usage = again(usage)
    usage.add(answer(2, tenant("a", 5), boot=1002))
    assert unknown(usage) == ("no", 1000 + 1000)


def test_an_exporter_that_does_not_run_for_days(usage: Usage) -> None:
    """What was used is divided, but not among all hours."""
    usage.add(answer(0, tenant("a", 0)))
    usage = again(usage)
    usage.add(answer(1000 * HOUR + 1800, tenant("a", 5000)))
    found = files(usage)
    assert (len(found), sum(found.values())) == (24, 5000)
    assert unknown(usage, 0) == ("no", HOUR)
    assert unknown(usage, 1000) == ("no", 1800)
    assert requests(usage, 999)["a"] > 200


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


def test_no_space_for_days(usage: Usage, said: list[str]) -> None:
    """Hours that do not fit are added to the first one."""
    usage.add(answer(0, tenant("a", 0)))
    usage.add(answer(1, tenant("a", 1)))
    with no_space(100):
        for n in range(1, 101):
            usage.add(answer(n * HOUR, tenant("a", 1 + n), tenant("b", n)))
            assert len(usage._hours.found) <= HOURS
            assert len(usage._hours.changed) <= HOURS
    assert [line.partition(":")[0] for line in said] == ["accounting stops"]
    usage.add(answer(100 * HOUR + 1, tenant("a", 102), tenant("b", 100)))
    assert len(files(usage)) == HOURS
    assert sum(files(usage).values()) == 102 + 100
    assert requests(usage) == {"a": 79, "b": 78}
    assert unknown(usage) == ("no", HOUR)
    for n in range(78, 100):
        assert requests(usage, n) == {"a": 1, "b": 1}
        assert unknown(usage, n) == ("yes", 0)


def test_no_space_and_a_clock_that_is_set_back(usage: Usage) -> None:
    """What a file has already is not added to that of another hour."""
    for n in range(3):
        usage.add(answer(n * HOUR, tenant("a", n)))
    with no_space(100):
        usage.add(answer(1, tenant("a", 3), boot=2 * HOUR + 1))
        usage.add(answer(HOUR, tenant("a", 4), boot=3 * HOUR))
        usage.add(answer(HOUR + 1, tenant("a", 5), boot=3 * HOUR + 1))
        for n in range(2, 60):
            usage.add(answer(n * HOUR, tenant("a", 4 + n),
                             boot=(n + 2) * HOUR))
    usage.add(answer(60 * HOUR, tenant("a", 64), boot=62 * HOUR))
    assert sum(files(usage).values()) == 64


def test_no_space_and_a_clock_that_was_far_ahead(usage: Usage) -> None:
    """The hour that runs stays apart."""
    usage.add(answer(0, tenant("a", 0)))
    with no_space(100):
        for n in range(30):
            usage.add(answer((YEARS + n) * HOUR, tenant("a", n),
                             boot=(n + 1) * HOUR))
        usage.add(answer(5 * HOUR + 1, tenant("a", 33), boot=30 * HOUR + 1))
        usage.add(answer(5 * HOUR + 2, tenant("a", 34), boot=30 * HOUR + 2))
    usage.add(answer(6 * HOUR, tenant("a", 40), boot=31 * HOUR))
    assert requests(usage, 5) == {"a": 11}
    assert sum(files(usage).values()) == 40


def test_old_files_are_removed(folder: Path) -> None:
    """By their number, so that a clock that is set removes few."""
    for name in ("x.csv", "2020-01-01T00Z.old"):
        (folder / name).touch()
    usage = Usage(folder, print, keep_days=2)
    for n in range(100):
        usage.add(answer(n * HOUR, tenant("a", n)))
    assert len(files(usage)) == 48 + 2  # the running hour, and x.csv
    assert requests(usage, 98) == {"a": 1}
    usage.add(answer(YEARS * HOUR, tenant("a", 100), boot=99 * HOUR + 1))
    assert len(files(usage)) == 48 + 3  # two are new
    assert (folder / "2020-01-01T00Z.old").exists()
    usage.close()
    usage = Usage(folder, print)
    usage.add(answer(YEARS * HOUR + 5, tenant("a", 101)))
    assert requests(usage, 60) == {"a": 1}


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
