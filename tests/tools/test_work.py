# SPDX-License-Identifier: BSD-2-Clause
"""VCL work, and the customers that a user describes."""

from __future__ import annotations

import json
from statistics import median
from typing import Any
from unittest.mock import MagicMock

import pytest
from report_samples import SampleRig, seen
from sandpaper_bench.cli import make_job
from sandpaper_bench.costing import Costed, Costing
from sandpaper_bench.customers import (
    all_own,
    check_names,
    drawn,
    own,
    path,
    units_of,
    vcl,
)
from sandpaper_bench.load import PHASE_SECONDS, Interleaved, Measurement, tenant
from sandpaper_bench.options import parser
from sandpaper_bench.pairs import PairTurn, pair_result, round_seconds
from sandpaper_bench.testbed import Proxy, Testbed, TestbedError
from sandpaper_bench.work import (
    DEAR,
    STACK,
    UNIT_BYTES,
    UNIT_STACK,
    WORKSPACE,
    room,
    with_work,
    work_vcl,
)
from varnishd import HELLO, Varnishd

PROXY = Proxy("proxy", "127.0.0.1", 1, "192.0.2.1", 80, 81)


@pytest.mark.parametrize("units", [0, 1, 300, 2000])
def test_a_request_has_room_for_its_work(varnishd: Varnishd, units: int) -> None:
    text = HELLO.replace("return", f"{work_vcl(units)}\treturn")
    varnishd.start(*room(text), vcl=text)
    assert varnishd.get("a.example") == 200


def bytes_of(text: str) -> list[int]:
    """Return the bytes of workspace and of stack that this VCL is given."""
    return [int(parameter.split("=")[1]) for parameter in room(text)]


def test_room_is_for_the_dearest_request() -> None:
    assert bytes_of(work_vcl(10)) == [WORKSPACE, STACK + 10 * UNIT_STACK]
    both = f"{work_vcl(900)}}} else {{\n{work_vcl(1000)}"
    left, stack = bytes_of(both)
    assert 1000 * UNIT_BYTES < left < 1100 * UNIT_BYTES
    assert stack == STACK + 1900 * UNIT_STACK
    assert bytes_of(with_work(DEAR, 2.2))[0] > 1000 * UNIT_BYTES


def test_a_name_describes_a_customer() -> None:
    customer = own("p27600w440n7")
    assert customer is not None
    assert (customer.size, customer.work_us, customer.connections) == (
        27600, 440, 7)
    assert own("p27600w440n7-twin") == customer
    assert path("p27600w440n7-twin") == "/bytes/27600"
    assert tenant("p27600w440n7", 100).conns == 7
    assert tenant("c1", 100).conns == 100
    assert [*all_own(["c1", "p1w0n1", "p1w0n1-twin"])] == ["p1w0n1"]


@pytest.mark.parametrize("name", [
    "p0w1n1", "p1w1n0", "p1w1", "p01w1n1", "p10000001w1n1", "p1w10001n1",
    "p1w1n10001", "p1w-1n1", "c9"])
def test_a_wrong_name_is_refused(name: str) -> None:
    with pytest.raises(TestbedError, match=rf"no customer {name}: use C1 .* "
                       "such as p27600w440n100, .* at most "
                       "p10000000w10000n10000"):
        check_names([name], described=True)


def test_only_pairs_and_customers_take_a_description() -> None:
    check_names(["p1w1n1-twin", "C1"], described=True)
    with pytest.raises(TestbedError, match="p1w1n1: only --pairs"):
        check_names(["p1w1n1"])


def test_a_described_customer_does_its_work() -> None:
    text = vcl(PROXY, units_of(all_own(["p9w440n1"]), 10))
    block = text.split('"^p9w440n1-(main|twin)', 1)[1].split("}")[0]
    assert block.count("regsuball") == 44


def test_a_seed_draws_the_same_customers() -> None:
    assert drawn(3, 10) == drawn(3, 10) != drawn(4, 10)
    found = [own(name) for pair in drawn(1, 500) for name in pair]
    customers = [c for c in found if c is not None]
    assert len(customers) == len(found) == 1000
    for what, low, high, middle in (
            ("size", 1000, 200_000, 14_142), ("work_us", 0, 1985, 158),
            ("connections", 1, 300, 150)):
        values = [getattr(c, what) for c in customers]
        assert low <= min(values) < middle < max(values) <= high
        assert middle * 0.8 < median(values) < middle * 1.25, what


def test_a_phase_is_long_enough_to_ask_several_times() -> None:
    heavy, light = "p1000w960n300", "p1000w60n10"
    assert round_seconds("c1", "C3") == 0
    assert 0.29 < round_seconds(heavy, light) < 0.3
    args = parser().parse_args(["pairs", "--pairs", f"c1-c3,{heavy}-{light}"])
    bed = Testbed(MagicMock(), [0], [1], loopback=True)
    job = make_job("pairs", args, bed)
    usual, long = (part.turns["stock"] for part in job.parts[:2])
    lengths = [turn.windows[0].length  # type: ignore[attr-defined]
               for turn in (usual, long)]
    assert lengths == [
        PHASE_SECONDS, pytest.approx(5 * round_seconds(heavy, light))]


def test_costs_in_company() -> None:
    sets = [{"c1": seen(1000)}, {"c1": seen(400), "k0": seen(500)},
            {"k0": seen(1000)}]
    costs = [{"c1": 500.0}, {"c1": 625.0, "k0": 30.0}, {"k0": 30.0}]
    windows = [Costed(Measurement(2.0, 1.0, 0.1, 0.0, s), cost)
               for s, cost in zip(sets, costs, strict=True)]
    turn = PairTurn(Interleaved(2.0, 0.0, sets, [400.0] * 3, {}),
                    (windows[0], windows[1], windows[2]))
    rig: Any = SampleRig()
    rig.bed.shaped, rig.bed.rate_bps = True, 1.25e9
    rig.bed.proxy_cores = [0]
    result = pair_result(rig, "c1", "k0", "sandpaper", [turn])
    assert result["ratio"] == 0.8
    assert (result["dearer_a"], result["dearer_b"]) == (1.25, 1.0)
    assert result["ratio_windows"] == 0.8
    assert result["ratio_at_cost"] == 1.0
    assert result["bound_by_a"] == "cpu"


def test_a_cost_is_of_the_requests_of_its_window() -> None:
    def said(cpu_s: float, requests: int) -> str:
        tenants = [] if not requests else [{
            "tenant": "c1-main.example", "cpu_s": cpu_s,
            "requests": requests}]
        return json.dumps([0, [], 0, {"list": tenants}])

    groups = [tenant("c1"), tenant("k0")]
    for lists, cost in (
            ([said(1.0, 1000), said(1.5, 2000)], {"c1": 500.0}),
            ([said(0.0, 0), said(0.5, 1000)], {"c1": 500.0}),
            ([said(1.0, 1000), said(1.0, 1000)], {})):
        varnish = MagicMock()
        varnish.cli.side_effect = lists
        assert Costing(groups).costed(
            MagicMock(), varnish, groups).cpu_us == cost
    stock = MagicMock()
    stock.variant.parameters = ()
    assert Costing(groups).costed(MagicMock(), stock, groups).cpu_us == {}
    stock.cli.assert_not_called()
