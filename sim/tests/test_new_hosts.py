# SPDX-License-Identifier: BSD-2-Clause
"""New Hosts: what an attack with invented Hosts takes from a proven tenant.

The property: over a run on W threads, a proven tenant of weight 1 that always
wants more has at least the integral of W / (1 + w + n(t)), where w is the
weight of (new) and n(t) the number of other proven Hosts, minus a bound. The
bound is 2(W+1)M + 2U for the run, and (W+1)M + U more for each Host that is
proven or new again. M is the largest cost over the weight of (new)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, target
from hypothesis import strategies as st

from sandpaper_sim.figures import new_hosts
from sandpaper_sim.metrics import services, spells
from sandpaper_sim.newhosts import (
    WEIGHT,
    Invented,
    Inventors,
    Keeper,
    most_proven,
    site,
)
from sandpaper_sim.releaser import EVERY, FEW, PROOF
from sandpaper_sim.server import MS, SECOND, ThreadPool, pool
from sandpaper_sim.workload import Constant, closed, generator, stream

QUANTUM_MAX = 4 * MS            # U
PAGE = Path(__file__).parents[2] / "doc" / "security.md"


def fixed(ms: int) -> object:
    return stream(Constant(ms * MS), generator(0))


def test_two_sites_are_tenants_soon() -> None:
    server = pool("mr3-rs", 1)
    keeper = Keeper(server)
    sites = [site(server) for _ in range(2)]
    for s in sites:
        closed(server, s, 2, fixed(20))
    server.run(15 * SECOND)
    assert all((keeper.proven_at(s) or 99 * SECOND) < 12 * SECOND
               for s in sites)


def test_errors_prove_nothing() -> None:
    server = pool("mr3-rs", 1)
    keeper = Keeper(server)
    Inventors(server, Invented(30, 404, 0), fixed(5))
    server.run(90 * SECOND)
    assert keeper.changes == []


def test_a_record_is_used_again() -> None:
    """Each request has another Host: far fewer records than Hosts."""
    server = pool("mr3-rs", 1)
    Keeper(server)
    attack = Inventors(server, Invented(4, 404, 1, 200 * MS), fixed(5))
    server.run(60 * SECOND)
    assert attack.hosts > 1000
    assert len(attack.tenants) < 50


@pytest.mark.parametrize(("hosts", "crowd"), [(FEW, False), (60, True)])
def test_how_many_are_proven(hosts: int, crowd: bool) -> None:
    """The bound of newhosts.h, and that an attack reaches it."""
    server = pool("mr3-rs", 1)
    keeper = Keeper(server)
    Inventors(server, Invented(hosts, 200, 0, SECOND), fixed(2))
    server.run(121 * SECOND)
    for at in (9, 20, 59, 70, 120):
        n = sum(p for t, _, p in keeper.changes if t <= at * SECOND)
        # A look or a second more or less.
        most = most_proven(at + 1, crowd=crowd)
        assert n <= most
        if at == 70 or not crowd and at == 20:
            assert n >= min(most - 1, hosts)


def test_the_bound_by_hand() -> None:
    assert most_proven(PROOF - 2) == 0
    assert most_proven(PROOF) == FEW
    assert most_proven(PROOF + 10 * EVERY) <= FEW + 11
    assert most_proven(59, crowd=True) == 0
    assert most_proven(60, crowd=True) == 1


def test_the_table_of_doc_security() -> None:
    text = PAGE.read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.strip("|").split("|")]
            for line in text.splitlines()
            if re.match(r"\| \d+ \| \d+ \|", line)]
    assert [int(row[0]) for row in rows] == [8, 10, 60, 300, 600, 3600]
    for row in rows:
        s = int(row[0])
        many, first = (most_proven(s, 1, tokens=1, crowd=True),
                       most_proven(s, 1))
        assert row[1:] == [
            str(many), f"{1 / (1 + WEIGHT + many):.2g}",
            str(first), f"{1 / (1 + WEIGHT + first):.2g}",
            str(most_proven(s, 100, tokens=1, crowd=True)),
            str(most_proven(s, 100))]


@dataclass(frozen=True)
class Attack:
    threads: int
    cost: int                   # of the tenant, ms
    attacks: list[tuple[Invented, int]]     # and their costs, ms


@st.composite
def attacks(draw: st.DrawFn) -> Attack:
    def one() -> tuple[Invented, int]:
        return Invented(
            draw(st.integers(1, 40)), draw(st.sampled_from([200, 404])),
            draw(st.sampled_from([0, 0, 1, 5, 30])),
            draw(st.sampled_from([0, 100, 1000, 5000])) * MS,
            draw(st.integers(0, 30)) * SECOND), draw(st.integers(5, 60))
    return Attack(draw(st.integers(1, 4)), draw(st.integers(10, 60)),
                  [one() for _ in range(draw(st.integers(1, 3)))])


def fair_part(changes: list[tuple[int, int, bool]], shop: int, begin: int,
              end: int) -> tuple[float, int]:
    """The integral of 1 / (1 + w + n), ns, and how often n changes."""
    n, at, total, moves = 0, begin, 0.0, 0
    for when, tenant, proven in [*changes, (end, -1, True)]:
        when = max(when, begin)
        total += (when - at) / (1 + WEIGHT + n)
        at = when
        if tenant not in (shop, -1):
            n += 1 if proven else -1
            moves += when > begin
    return total, moves


def behind(attack: Attack) -> float:
    """How far the proven tenant is behind, over the bound."""
    server: ThreadPool = pool("mr3-rs", attack.threads)
    keeper = Keeper(server)
    shop = site(server)
    closed(server, shop, attack.threads + 4, fixed(attack.cost))
    for what, cost in attack.attacks:
        Inventors(server, what, fixed(cost))
    server.run(90 * SECOND)
    begin, now = keeper.proven_at(shop), server.env.now
    if begin is None:
        return 0.0              # it is not proven: no promise
    got = services(spells(server.releaser), server.releaser.tenants,
                   np.array([begin, now]))[:, shop]
    fair, moves = fair_part(keeper.changes, shop, begin, now)
    most = max(attack.cost, *(c for _, c in attack.attacks)) * MS / WEIGHT
    w = attack.threads + 1
    bound = 2 * w * most + 2 * QUANTUM_MAX + moves * (w * most + QUANTUM_MAX)
    return (attack.threads * fair - float(got[1] - got[0])) / bound


@settings(max_examples=settings.default.max_examples // 2)
@given(attack=attacks())
def test_a_proven_tenant_has_its_part(attack: Attack) -> None:
    worst = behind(attack)
    target(worst)
    assert worst <= 1


@pytest.mark.parametrize("pace", [0, new_hosts.PACE])
def test_400_clients_and_404(pace: int) -> None:
    """A tenant proven for a minute keeps 0.85, and not without the rule."""
    windows = ((8, 12),)
    alone = new_hosts.simulate("group", 0, 0, 1, windows)
    whole = alone["windows"][0]["requests_per_s"]
    keeps = {rule: new_hosts.simulate(rule, pace, 404, 1, windows)
             ["windows"][0]["requests_per_s"] / whole
             for rule in ("group", "tenant")}
    assert keeps["group"] >= 0.85
    assert keeps["tenant"] <= 0.1


@pytest.mark.parametrize("lifetime", [0, 1])
def test_a_newcomer_among_invented_hosts(lifetime: int) -> None:
    """Hosts that come for one request do not keep another new Host waiting."""
    server = pool("mr3-rs", 1)
    keeper = Keeper(server)
    new = site(server)
    closed(server, new, 4, fixed(5))
    Inventors(server, Invented(100, 404, lifetime), fixed(5))
    server.run(20 * SECOND)
    at = keeper.proven_at(new)
    assert at is not None and at <= 12 * SECOND
