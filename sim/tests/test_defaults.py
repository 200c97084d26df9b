# SPDX-License-Identifier: BSD-2-Clause
"""The simulator has varnishd's rules: there is one account.c, and what a
parameter sets has the parameter's default here, too."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sandpaper_sim import releaser, scenario, whatif
from sandpaper_sim.releaser import (
    KNOWN,
    SANDPAPER,
    SCALE_ONE,
    Estimator,
    Releaser,
)
from sandpaper_sim.server import MS

TOP = Path(__file__).resolve().parents[2]
LAST = Estimator("last")
PARAMETERS = (TOP / "src/varnishd/tbl/sandpaper_params.h").read_text()
HOSTS = (TOP / "sim/sandpaper_sim/glue.c",
         *sorted((TOP / "src/varnishd").glob("*.c")))


def default(name: str) -> float:
    """Of a parameter."""
    found = re.findall(
        rf'/\* name \*/\s+{name},.*?/\* def \*/\s+"([^"]*)"', PARAMETERS, re.S)
    assert len(found) == 1
    return float(found[0])


def turn(releaser: Releaser) -> int:
    """How many requests of 0.1 ms a tenant has in its second turn."""
    for t in (releaser.tenant(), releaser.tenant()):
        for _ in range(200):
            releaser.enqueue(t, MS // 10, 0, 0)
    order = []
    for now in range(400):
        request = releaser.dequeue(0, now)
        order.append(releaser.answer.tenant)
        releaser.complete(request, now)
    ends = [i for i in range(1, 400) if order[i] != order[i - 1]]
    return ends[3] - ends[2]


def test_the_round() -> None:
    """A round of D gives two tenants D/2 each."""
    ns = round(default("sandpaper_round") * 1e9)
    assert ns == releaser.ROUND
    assert turn(Releaser("mr3-rs", 1, estimator=KNOWN)) == \
        pytest.approx(ns // 2 / (MS // 10), abs=1)
    assert turn(Releaser("mr3-rs", 1, estimator=KNOWN, paper=True)) <= 2


def test_the_estimator() -> None:
    assert default("sandpaper_alpha") == SANDPAPER.alpha


def test_other_parameters() -> None:
    assert (default("sandpaper_mtu"), default("sandpaper_header")) == (
        whatif.MTU, whatif.HEADER)
    assert default("sandpaper_workers_per_core") == scenario.PER_CORE


def test_there_is_one_copy_of_the_rules() -> None:
    """Neither host does an account's arithmetic itself."""
    private = re.compile(r"\b(COST_Dominant|EST_Value|EST_MeanSample)\b|"
                         r"(->|\.)(lead|settled)\b")
    used = re.compile(r"\bACC_(Settle|Scale|Sample|Value|Next|Charge|SoFar)\b")
    for host in HOSTS:
        assert not private.findall(host.read_text()), host
    glue, *varnishd = [set(used.findall(h.read_text())) for h in HOSTS]
    assert len(glue) == 7
    assert glue == set().union(*varnishd)


def estimates(releaser: Releaser, tenant: int) -> tuple[int, int]:
    st = releaser.stat(tenant)
    return st["estimate_cpu"], st["estimate_net"]


def serve(releaser: Releaser, tenant: int, cpu: int, net: int,
          scale: int = SCALE_ONE) -> None:
    """A request, alone."""
    releaser.enqueue(tenant, cpu, net, 0)
    releaser.complete(releaser.dequeue(0, 0), 0, scale)


def test_a_tenant_that_turns() -> None:
    """Its sums say CPU, and its next request is for the link."""
    releaser = Releaser("mr3-rs", 1, estimator=LAST)
    tenant = releaser.tenant()
    serve(releaser, tenant, 10_000, 9000)
    assert estimates(releaser, tenant) == (10_000, 9000)
    serve(releaser, tenant, 1000, 1010)
    assert estimates(releaser, tenant) == (1000, 1000)
    serve(releaser, tenant, 100, 200)
    assert estimates(releaser, tenant) == (100, 100)
    serve(releaser, tenant, 100, 202)
    assert estimates(releaser, tenant) == (100, 202)


def test_a_new_tenant_keeps_the_mean_of_its_beginning() -> None:
    releaser = Releaser("mr3-rs", 2)
    old, new = releaser.tenant(), releaser.tenant()
    serve(releaser, old, 1000, 0)
    releaser.enqueue(new, 1, 0, 0)
    request = releaser.dequeue(0, 0)
    serve(releaser, old, 3000, 0)
    releaser.enqueue(new, 1, 0, 0)
    assert estimates(releaser, new) == (1000, 0)
    releaser.complete(request, 0)
    assert estimates(releaser, new) == (1, 0)


def test_an_unmeasured_request_costs_its_estimate() -> None:
    """And is no sample of CPU time; its bytes are known."""
    releaser = Releaser("mr3-rs", 1, estimator=LAST)
    tenant = releaser.tenant()
    serve(releaser, tenant, 1000, 100)
    charged = releaser.stat(tenant)["charged"]
    serve(releaser, tenant, 5000, 300, scale=0)
    assert releaser.stat(tenant)["charged"] == charged + 1000
    assert estimates(releaser, tenant) == (1000, 300)


def test_a_draw_counts_for_others_only_in_cpu_time() -> None:
    """The estimate is 1000; the second request costs 100 more."""
    for net, settled in ((0, 100 * 5), (4000, 100)):
        releaser = Releaser("mr3-rs", 1)
        tenant = releaser.tenant()
        serve(releaser, tenant, 1000, net)
        before = releaser.stat(tenant)["charged"]
        serve(releaser, tenant, 1100, net and net + 100, 5 * SCALE_ONE)
        after = releaser.stat(tenant)["charged"]
        assert after - before == max(1000, net) + settled


def test_other_cpu_time_and_looks() -> None:
    """They are charged as what they add to the larger sum."""
    releaser = Releaser("mr3-rs", 1)
    tenant = releaser.tenant()
    serve(releaser, tenant, 1000, 2000)
    before = releaser.stat(tenant)["charged"]
    releaser.charge(tenant, 1300, 0)
    assert releaser.stat(tenant)["charged"] == before + 300
    releaser.enqueue(tenant, 5000, 0, 0)
    request = releaser.dequeue(0, 0)
    before = releaser.stat(tenant)["charged"]
    releaser.refresh(request, 2500, 0)
    assert releaser.stat(tenant)["charged"] == before + 500


def test_by_request() -> None:
    """The paper's: a request's own larger cost, and no cap of estimates."""
    releaser = Releaser("mr3-rs", 1, estimator=LAST, paper=True)
    tenant = releaser.tenant()
    serve(releaser, tenant, 1000, 900)
    serve(releaser, tenant, 1000, 1100)
    assert estimates(releaser, tenant) == (1000, 1100)
    assert releaser.stat(tenant)["charged"] == 1000 + 1100
