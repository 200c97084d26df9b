# SPDX-License-Identifier: BSD-2-Clause
"""What sandpaper-exporter makes of two answers of sandpaper.list."""

from __future__ import annotations

from exporter_samples import START, answer, tenant
from sandpaper_exporter.poll import Lost, next_look
from sandpaper_exporter.totals import UNMAPPED, Growth

KEYS = ("completed", "cpu_s", "bytes")


def grown(growth: Growth, *args: object, **more: float) -> dict[str, float]:
    """Return how many requests each label has more with an answer."""
    step = growth.add(answer(*args, **more))  # type: ignore[arg-type]
    assert step is not None
    return {label: g[0] for label, g in step.grown.items() if g[0]}


def begun(*rows: dict[str, object], rest: int = 0) -> Growth:
    growth = Growth(KEYS, "waits")
    assert growth.add(answer(0, *rows, rest=rest)) is None
    return growth


def test_each_label_grows() -> None:
    growth = begun(tenant("a", 10), tenant("b", 5), rest=100)
    assert grown(growth, 1, tenant("a", 13), tenant("b", 5), rest=107) == {
        "a": 3, UNMAPPED: 7}
    step = growth.add(answer(2, tenant("a", 15), tenant("b", 5), rest=107))
    assert step is not None
    assert step.waits == {"a": [0, 0, 2, *[0] * 14]}
    assert (step.began, step.ended) == (START + 1, START + 2)


def test_hosts_that_no_map_names_are_one() -> None:
    growth = begun(tenant("x", 1, mapped=False))
    assert grown(growth, 1, tenant("x", 3, mapped=False),
                 tenant("y", 4, mapped=False)) == {UNMAPPED: 6}


def test_a_tenant_that_enters_and_leaves_the_map() -> None:
    """Its growth jumps to no other label, nor back."""
    growth = begun(tenant("a", 10, mapped=False))
    assert grown(growth, 1, tenant("a", 11)) == {"a": 1}
    assert grown(growth, 2, tenant("a", 15)) == {"a": 4}
    assert grown(growth, 3, tenant("a", 17, mapped=False)) == {"a": 2}
    assert grown(growth, 4, tenant("a", 20, mapped=False)) == {UNMAPPED: 3}
    # Its record is removed: varnishd's sums keep what it did.
    assert grown(growth, 5, rest=20) == {}
    assert grown(growth, 6, tenant("a", 2), rest=20) == {"a": 2}


def test_a_worker_process_that_begins_again() -> None:
    growth = begun(tenant("a", 10), rest=5)
    assert grown(growth, 1, tenant("a", 3), rest=2, started=START + 0.5) == {
        "a": 3, UNMAPPED: 2}
    # More than the one before had, in the same second
    assert grown(growth, 2, tenant("a", 8), started=START + 1.5) == {"a": 8}


def test_a_record_that_is_new_again() -> None:
    growth = begun(tenant("a", 10))
    growth.add(answer(1, tenant("a", 4), rest=10))
    assert grown(growth, 2, tenant("a", 6), rest=10) == {"a": 2}


def test_a_time_that_is_corrected_is_no_new_beginning() -> None:
    growth = begun(tenant("a", 10))
    step = growth.add(answer(1, tenant("a", 11, cpu_s=0.09)))
    assert step is not None
    assert step.grown["a"] == [1, 0, 1000]


def test_sums_that_are_older_than_the_tenants() -> None:
    """What the sums lack comes with the next answer, and to nobody twice."""
    growth = begun(tenant("a", 10))
    assert grown(growth, 1, tenant("a", 15), rest=-2) == {"a": 5}
    assert grown(growth, 2, tenant("a", 15), rest=3) == {UNMAPPED: 3}


def test_what_a_process_owed_ends_with_it() -> None:
    growth = begun(tenant("a", 10))
    assert grown(growth, 1, tenant("a", 15), rest=-2) == {"a": 5}
    assert grown(growth, 2, rest=4, started=START + 1.5) == {UNMAPPED: 4}


def test_a_tenant_of_sandpapers_own_that_is_mapped() -> None:
    growth = begun(tenant("(unknown)", 1))
    assert grown(growth, 1, tenant("(unknown)", 3)) == {"(unknown)": 2}


def test_groups_are_not_counted_twice() -> None:
    """A member that no map names counts for its group, if that is named."""
    def rows(a: int, b: int, c: int) -> list[dict[str, object]]:
        return [
            tenant("(g)", a + b),
            tenant("(new)", c, mapped=False),
            tenant("(unknown)", 0, mapped=False),
            tenant("a", a, group="(g)"),
            tenant("b.example", b, mapped=False, group="(g)"),
            tenant("c.example", c, mapped=False, group="(new)")]

    growth = begun(*rows(1, 2, 3))
    assert grown(growth, 1, *rows(2, 4, 6)) == {
        "a": 1, "(g)": 2, UNMAPPED: 3}


def test_when_the_next_look_is() -> None:
    """Seldom if a look costs much, and when an hour ends."""
    for now, rest, interval, then in (
            (7.05, 0.4, 1, 8), (7.5, 4, 1, 12), (7.1, 0.8, 10, 10),
            (19.9, 0.8, 10, 30), (3598, 8, 10, 3600), (3600, 0, 1, 3601)):
        assert next_look(START + now, rest, interval) == START + then


def test_labels_are_bounded() -> None:
    """Clients can invent Hosts below a domain that the map names."""
    growth = Growth(KEYS, most=2)
    group = tenant("(g)", 0)
    growth.add(answer(0, tenant("a", 0), group))
    hosts = [tenant(name, 1, group="(g)") for name in ("x", "y", "z")]
    assert grown(growth, 1, tenant("a", 2), group, *hosts) == {
        "a": 2, "x": 1, "(g)": 2}
    assert grown(growth, 2, group, tenant("y", 5, group="(g)"),
                 tenant("v", 3), rest=4) == {"(g)": 4, UNMAPPED: 3}


# What is lost with a worker process

def unseen(growth: Growth, seconds: float, started: float) -> list[float]:
    """Return from when to when something is unknown, in seconds."""
    step = growth.add(answer(seconds, tenant("a", 1),
                             started=START + started))
    assert step is not None
    return [t - START for pair in step.unseen for t in pair]


def lost(seconds: float, *, gone: bool) -> Lost:
    return Lost(START + seconds, "", gone)


def test_unknown_is_from_the_last_answer_to_the_new_process() -> None:
    growth = begun(tenant("a", 1))
    assert unseen(growth, 1, 0.75) == [0, 0.75]
    assert unseen(growth, 2, 0.75) == []
    # The clock of another machine
    assert unseen(growth, 3, 1.5) == []


def test_a_process_that_does_not_run_uses_nothing() -> None:
    growth = begun(tenant("a", 1))
    for n in range(1, 60):
        growth.lost(lost(n, gone=True))
    assert unseen(growth, 60, 59.5) == [0, 1, 59, 59.5]


def test_an_answer_that_does_not_come_loses_nothing() -> None:
    growth = begun(tenant("a", 1))
    growth.lost(lost(1, gone=False))
    assert unseen(growth, 2, 0) == []
    growth.lost(lost(3, gone=False))
    assert unseen(growth, 4, 3.5) == [2, 3.5]


def test_a_clock_that_is_set_back() -> None:
    growth = begun(tenant("a", 1))
    growth.add(answer(10, tenant("a", 2)))
    step = growth.add(answer(-5, tenant("a", 4)))
    assert step is not None
    assert (step.began, step.ended) == (START + 10, START + 10)
    assert step.grown["a"][0] == 2
