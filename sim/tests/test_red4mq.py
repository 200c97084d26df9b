# SPDX-License-Identifier: BSD-2-Clause
"""The figures of RED_4 MQ's paper, and how their scenarios measure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sandpaper_sim.figures import FIGURES, red4mq_line, red4mq_more
from sandpaper_sim.packets import SECOND
from sandpaper_sim.red4mq import Flows, Setup, jain, line, medians, pair

SEED = 1
# By --quick, of one seed and a shorter time. Those with False are explained in
# doc/results.md, or they are true of the whole run.
AGREES = {
    "fig5": [True, False, True, True, True],
    "fig8": [True, True, True, True, True, False, False],
    "fig9": [True, True, True, False, False],
    "fig10": [False, False, False, True, False, True],
    "fig11": [True, True, True, False, False],
    "fig12": [True, False, True, True],
    "flows": [True, True, True, False, True, True, True, False],
    "senders": [True, True, True, True, True, False, False, False, False,
                False, True, False]}


@pytest.mark.parametrize("name", AGREES)
def test_what_the_paper_says(name: str, run: Callable[..., dict],
                             tmp_path: Path) -> None:
    plot = tmp_path / "a.svg"
    data = run(f"red4mq-{name}", "--quick", "--plot", str(plot))
    assert plot.read_text().startswith("<?xml")
    found = data["paper"]["judgements"]
    assert {j["paper"]: j["agrees"] for j in found} == dict(zip(
        [j["paper"] for j in found], AGREES[name], strict=True))


def test_each_figure_of_the_paper_has_a_verdict() -> None:
    assert sorted(f"red4mq-{n}" for n in [*AGREES, "sweep", "speed"]) == \
        sorted(n for n in FIGURES if n.startswith("red4mq"))


def test_speed(run: Callable[..., dict], tmp_path: Path) -> None:
    """The verdict is the machine's, so it is not tested."""
    data = run("red4mq-speed", "--plot", str(tmp_path / "a.svg"))
    assert len(data["paper"]["judgements"]) == 1
    for r in data["results"]:
        assert r["packets_per_s"] == pytest.approx(r["packets"] / r["cpu_s"])
        # A packet has an event in each queue, and one for its ACK.
        assert r["events"] > 1.8 * r["packets"] > 100_000


def test_a_sweep_changes_one_constant(run: Callable[..., dict],
                                      tmp_path: Path) -> None:
    data = run("red4mq-sweep", "--quick", "--plot", str(tmp_path / "a.svg"))
    usual, short = data["results"]
    assert short["share_mq"] != usual["share_mq"]
    assert usual["keeps"] == pytest.approx(
        usual["total_mq"] / usual["total_droptail"])
    # Each of them is a field, and changes it.
    for _, _, changes in red4mq_more.SWEEP[1:]:
        (field, value), = changes.items()
        assert getattr(Setup(), field) != value


def test_what_is_measured_is_after_the_warm_up() -> None:
    f = Flows(Setup(jitter=0), SEED)
    q = f.net.queue(f.setup.queue("droptail"))
    path = f.path(f.net.flow("reno"), [(q, f.setup.cost)])
    f.run(40, warm=10)
    whole = f.net.stat(path).delivered
    # The flow fills the CPU after the warm-up. Before, it begins.
    assert f.rate(path) * f.setup.cost / SECOND == pytest.approx(1, abs=0.001)
    assert whole / f.net.now < 0.998 * f.rate(path) / SECOND
    assert f.cpu(path) == pytest.approx(1, abs=0.01)
    found = f.found(path)
    assert found["timeouts"] == 0 and 20 < found["rtt_ms"] < 42
    assert 100 < found["window"] < 340


def test_the_line_is_over_what_is_possible() -> None:
    found = line("droptail", 2, 1, Setup(), 40, SEED)
    assert found["total"] == pytest.approx(
        (found["shared"] + found["own"] + 2 * found["short"]) / 3)
    assert 0.9 < found["total"] <= 1.001


def test_formulas_of_the_line() -> None:
    """(150 + 50n)/(100 + 100n) and (125 + 75n)/(100 + 100n)."""
    for n in (1, 3, 12):
        assert red4mq_line.fair(n, 0.5) == pytest.approx(
            (150 + 50 * n) / (100 + 100 * n))
        assert red4mq_line.fair(n, 0.25) == pytest.approx(
            (125 + 75 * n) / (100 + 100 * n))


def test_noise_is_no_fall() -> None:
    assert red4mq_line.no_fall([0.4, 0.395, 0.41])
    assert not red4mq_line.no_fall([0.4, 0.38, 0.41])


def test_jain() -> None:
    assert jain([2, 2, 2]) == pytest.approx(1)
    assert jain([1, 0, 0, 0]) == pytest.approx(0.25)


def test_medians_by_key() -> None:
    rows = [{"k": "a", "x": x} for x in (1, 9, 2)] + [{"k": "b", "x": 5}]
    assert medians(rows, lambda r: r["k"], lambda r: r["x"]) == {
        "a": 2, "b": 5}


def test_the_setup_s_queue() -> None:
    q = Setup().queue("mq")
    assert (q.capacity, q.low, q.high, q.batch) == (167, 0.25, 0.75, 1024)
    assert q.weight == pytest.approx(2 / 166.67, rel=1e-3)
    assert Setup(average=1e-6).queue("mq").weight == 1


def test_equal_flows_have_halves() -> None:
    for kind in ("droptail", "fq", "red-4", "mq"):
        found = pair(kind, 1, 64, Setup(), 200, SEED)
        assert found["share"] == pytest.approx(0.5, abs=0.05)
