# SPDX-License-Identifier: BSD-2-Clause
"""SEDA's controllers and stages, by the rules of its thesis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from sandpaper_sim.figures import FIGURES, seda_degrade, seda_threads
from sandpaper_sim.seda import (
    ALPHA,
    AWAY,
    DEPTH,
    LC_THRESH,
    NEXT,
    NREQ,
    RATE_BEGIN,
    RATE_MIN,
    Arashi,
    Controller,
    Service,
    Stage,
    between,
    p90,
    refused,
)
from sandpaper_sim.server import MS, SECOND

SEED = 3


def respond(control: Controller, took: int, group: int = 0,
            now: int = 0) -> None:
    """As many answers as start the controller once."""
    for _ in range(NREQ):
        control.responded(now, took, group)


def test_a_slow_stage_admits_less() -> None:
    control = Controller([SECOND])
    respond(control, 10 * SECOND)
    assert control.classes[0].p90 == pytest.approx((1 - ALPHA) * 10 * SECOND)
    assert control.classes[0].rate == pytest.approx(RATE_BEGIN / 1.2)


def test_a_fast_stage_admits_more_in_proportion_to_the_error() -> None:
    control = Controller([SECOND])
    respond(control, 0)         # error -1: 2 (1 - 0.1)
    assert control.classes[0].rate == pytest.approx(RATE_BEGIN + 1.8)
    # Half of the target and more: nothing changes
    control.classes[0].p90 = 0.6 * SECOND
    respond(control, round(0.6 * SECOND))
    assert control.classes[0].rate == pytest.approx(RATE_BEGIN + 1.8)


def test_the_percentile_is_that_of_the_samples() -> None:
    control = Controller([SECOND])
    for n in range(NREQ):
        control.responded(0, n)
    assert control.classes[0].p90 == pytest.approx((1 - ALPHA) * 90)


def test_few_answers_count_after_a_second() -> None:
    control = Controller([SECOND])
    control.responded(SECOND - 1, 10 * SECOND)
    assert control.classes[0].rate == RATE_BEGIN
    control.responded(SECOND, 10 * SECOND)
    assert control.classes[0].rate < RATE_BEGIN


def test_the_bucket() -> None:
    control = Controller([SECOND])
    assert [control.admit(0) for _ in range(round(DEPTH) + 1)] == \
        [True] * round(DEPTH) + [False]
    step = round(SECOND / RATE_BEGIN)
    assert [control.admit(step), control.admit(step)] == [True, False]


def test_lower_classes_are_cut_first() -> None:
    control = Controller([SECOND, SECOND])
    low, high = control.classes
    respond(control, 10 * SECOND, 1)
    assert (low.rate, high.rate) == (RATE_BEGIN / 10, RATE_BEGIN)
    # And may not rise at once
    respond(control, 0, 0)
    assert low.rate == RATE_BEGIN / 10
    respond(control, 0, 0)
    assert low.rate > RATE_BEGIN / 10


def test_the_high_class_is_cut_when_the_low_one_cannot() -> None:
    control = Controller([SECOND, SECOND])
    low, high = control.classes
    low.rate = RATE_MIN
    for _ in range(LC_THRESH - 1):
        respond(control, 10 * SECOND, 1)
    assert high.rate == RATE_BEGIN
    respond(control, 10 * SECOND, 1)
    assert high.rate == pytest.approx(RATE_BEGIN / 1.2)


def test_a_stage_has_so_many_threads() -> None:
    service, took = Service(cores=4), []
    stage = Stage(2, None)
    for _ in range(3):
        assert service.submit(stage, 10 * MS, 0, took.append)
    service.env.run(SECOND)
    assert took == [10 * MS, 10 * MS, 20 * MS]


def test_stages_share_the_cores() -> None:
    service, took = Service(cores=1), []
    for _ in range(2):
        service.submit(Stage(1, None), 10 * MS, 0, took.append)
    service.env.run(SECOND)
    assert took == [20 * MS, 20 * MS]


def test_a_lower_quality_costs_less() -> None:
    service, took = Service(cores=1), []
    stage = Stage(1, None)
    stage.quality = 0.5
    service.submit(stage, 10 * MS, 0, took.append)
    service.env.run(SECOND)
    assert took == [5 * MS]


def test_users_follow_the_probabilities() -> None:
    s = Arashi(SEED)
    s.users(20, 0, 200 * SECOND)
    s.env.run(200 * SECOND)
    kinds = Counter(s.KINDS[n] for n in s.rows()["kind"])
    assert kinds["login"] == 20
    # Of the pages after a message: 0.58 lists, 0.20 refiles, 0.03 folders
    assert kinds["refile"] / kinds["delete"] == pytest.approx(
        0.2 / 0.18, rel=0.15)
    assert kinds["list messages"] > kinds["list folders"] > kinds["search"]
    assert all(sum(p.values()) == pytest.approx(1) for p in NEXT.values())


def test_a_refused_user_comes_back_and_logs_in() -> None:
    s = Arashi(SEED, [SECOND])
    login = s.stages["login"].controller
    assert login is not None
    login.classes[0].tokens = login.classes[0].rate = 0.0
    s.users(1, 0, 20 * SECOND)
    s.env.run(20 * SECOND)
    rows = s.rows()
    assert not rows["served"].any()
    assert list(rows["end"]) == [0, AWAY, 2 * AWAY, 3 * AWAY]
    assert refused(rows) == 1 and p90(rows) == 0
    assert len(between(rows, 5, 10)) == 1


def test_a_pool_loses_idle_threads_but_one() -> None:
    pool = seda_threads.Pool()
    for _ in range(400):
        pool.client(0, 20)
    pool.env.run(60 * SECOND)
    assert max(s["threads"] for s in pool.seen) > 5
    assert pool.seen[-1]["threads"] == 1


def test_detection_of_thrashing() -> None:
    def last(detects: bool) -> dict[str, float]:
        return seda_threads.threads_over_time(SEED, detects, 100)[-1]
    assert last(False)["throughput"] == 0
    assert last(True)["throughput"] > 0


def test_a_degraded_stage_gets_its_quality_back() -> None:
    found = seda_degrade.spike(SEED, True, False, 2, 10, 200)
    assert min(found["quality"]) == seda_degrade.LOWEST
    assert found["quality"][-1] > 0.9


# By --quick. Those with False are explained in doc/results.md.
AGREES = {
    "30": [True, True, True], "31": [True, False, True], "32": [True, True],
    "52": [True, True, True], "53": [True, True, True, True],
    "54": [True, False, False], "55": [True, True, True],
    "56": [True, True], "57": [False, True], "58": [False, False],
    "59": [True, True, True]}


@pytest.mark.parametrize("number", AGREES)
def test_what_the_thesis_says(number: str, run: Callable[..., dict]) -> None:
    found = run(f"seda-fig{number}", "--quick")["paper"]["judgements"]
    assert [j["agrees"] for j in found] == AGREES[number]


def test_each_figure_of_the_thesis_has_a_verdict() -> None:
    assert sorted(f"seda-fig{n}" for n in AGREES) == sorted(
        n for n in FIGURES if n.startswith("seda"))
