# SPDX-License-Identifier: BSD-2-Clause
"""400 clients that invent Hosts, in competition with one real tenant.

The tenant wants everything. It is proven for a minute when the attack begins
(`shop`), or it begins with the attack (`newcomer`). With a map the attack is
the one tenant (unknown). Without one it is in the group (new), or each Host
is a tenant at once. Answers of 404 go to a Host a request, those of 200 to a
Host a client, since only Hosts that last can be proven."""

from __future__ import annotations

from itertools import repeat
from typing import Any

import numpy as np

from ..figure import Context, Figure, Result, table, where
from ..newhosts import Invented, Inventors, Keeper, most_proven, seconds, site
from ..server import MS, SECOND, ThreadPool, pool
from ..workload import Exponential, closed, generator, stream

THREADS = 4
COST = 2 * MS                   # mean, of a thread: 2000 requests/s in all
CLIENTS = 400
PACE = 100 * MS                 # 10 requests/s and client
USERS = 20                      # the tenant's connections
PROVEN = 60                     # s, the tenant is proven before the attack
WINDOWS = ((8, 12), (56, 60), (592, 600))       # s of attack
NEWCOMER = 75                   # s of attack
RULES = ("map", "group", "tenant")
KEEPS = 0.85


def costs(seed: int, name: str) -> Any:  # noqa: ANN401
    """Of a tenant's requests."""
    return stream(Exponential(COST), generator(seed, "new-hosts", name))


def attack(server: ThreadPool, rule: str, pace: int, status: int, begin: int,
           seed: int) -> None:
    """The clients."""
    cpu = costs(seed, "attack")
    if rule != "map":
        Inventors(server, Invented(CLIENTS, status, int(status != 200), pace,
                                   begin), cpu)
        return
    unknown = server.tenant()
    server.at(begin, lambda: closed(
        server, unknown, CLIENTS, cpu,
        think=repeat(pace) if pace else None))


def rates(server: ThreadPool, tenant: int, begin: int,
          windows: tuple[tuple[int, int], ...]) -> list[dict[str, float]]:
    """Requests/s and p99 in ms of each window, s from `begin`, ns."""
    rows = server.releaser.records()
    rows = rows[rows["tenant"] == tenant]
    found = []
    for a, b in windows:
        w = rows[(rows["end"] > begin + a * SECOND) &
                 (rows["end"] <= begin + b * SECOND)]
        took = w["end"] - w["arrival"]
        found.append({
            "at_s": b, "requests_per_s": len(w) / (b - a),
            "p99_ms": float(np.percentile(took, 99)) / MS
            if len(took) else -1.0})
    return found


def simulate(rule: str, pace: int, status: int, seed: int,
             windows: tuple[tuple[int, int], ...]) -> dict[str, Any]:
    """A proven tenant; no pace and no status: alone."""
    server = pool("mr3-rs", THREADS)
    keeper = Keeper(server) if rule == "group" else None
    shop = server.tenant() if rule == "map" else site(server)
    begin = PROVEN * SECOND
    # It is used a little until then.
    cpu = costs(seed, "shop")
    for at in range(PROVEN):
        server.at(at * SECOND, lambda: server.submit(shop, next(cpu)))
    server.at(begin - SECOND // 2, lambda: closed(server, shop, USERS, cpu))
    if status:
        attack(server, rule, pace, status, begin, seed)
    server.run(begin + windows[-1][1] * SECOND)
    changes = keeper.changes if keeper else []
    return {"rule": rule, "pace_ms": pace / MS, "status": status,
            "tenant": "shop",
            "invented_that_are_proven": [
                sum(1 if p else -1 for at, t, p in changes
                    if t != shop and at <= begin + b * SECOND)
                for _, b in windows],
            "windows": rates(server, shop, begin, windows)}


def newcomer(pace: int, status: int, seed: int) -> dict[str, Any]:
    """A tenant that begins with the attack, alone with it."""
    server = pool("mr3-rs", THREADS)
    keeper = Keeper(server)
    new = site(server)
    closed(server, new, USERS, costs(seed, "shop"))
    attack(server, "group", pace, status, 0, seed)
    server.run(NEWCOMER * SECOND)
    return {"rule": "group", "pace_ms": pace / MS, "status": status,
            "tenant": "newcomer",
            "proven_s": seconds(keeper.proven_at(new)),
            "windows": rates(server, new, 0, ((0, 5), (60, NEWCOMER)))}


def run(c: Context) -> Result:
    """See Figure."""
    windows = WINDOWS[:2] if c.quick else WINDOWS
    attacks = [(pace, status) for pace in (PACE, 0) for status in (404, 200)]
    alone = c.map(simulate, [("group", 0, 0, c.seed, windows[:1])])[0]
    found = c.map(simulate, [(rule, *a, c.seed, windows) for rule in RULES
                             for a in attacks])
    found += c.map(newcomer, [(*a, c.seed) for a in attacks])
    whole = alone["windows"][0]
    for f in found:
        for w in f["windows"]:
            w["keeps"] = w["requests_per_s"] / whole["requests_per_s"]
            w["p99_times"] = w["p99_ms"] / whole["p99_ms"]
    bound = [1 + most_proven(b, 1, crowd=True) for _, b in windows]
    holds = all(w["keeps"] >= KEEPS and w["p99_times"] <= 4
                for f in where(found, tenant="shop", rule="group", status=404)
                for w in f["windows"])
    in_bound = all(n <= b for f in where(found, tenant="shop")
                   for n, b in zip(f["invented_that_are_proven"], bound,
                                   strict=True))
    becomes = all(f["proven_s"] is not None and
                  f["windows"][-1]["keeps"] >= KEEPS
                  for f in where(found, tenant="newcomer", status=404))
    verdict = {"proven_keeps_with_404": holds, "within_bound": in_bound,
               "newcomer_with_404": becomes}
    rows = [(f["tenant"], f["rule"],
             "paced" if f["pace_ms"] else "closed", f["status"], w["at_s"],
             f"{w['keeps']:.3f}", f"{w['p99_times']:.1f}",
             f["invented_that_are_proven"][i] if f["tenant"] == "shop" else
             f"self: {f['proven_s']} s")
            for f in found for i, w in enumerate(f["windows"])]
    return Result(
        {"threads": THREADS, "cost_ms": COST / MS, "clients": CLIENTS,
         "alone": whole, "bound": bound, "verdict": verdict}, found,
        {"keeps": KEEPS, "p99_times": 4},
        [*table(("tenant", "rule", "attack", "status", "at (s)",
                 "keeps", "p99, times alone", "proven"), rows),
         f"at most {bound} invented Hosts may be proven at "
         f"{[b for _, b in windows]} s", *(
             f"{name}: {'yes' if good else 'NO'}"
             for name, good in verdict.items())])


def plot(figure: Any, data: dict[str, Any]) -> None:  # noqa: ANN401
    """See Figure."""
    axes = figure.subplots()
    for f in where(data["results"], tenant="shop"):
        axes.plot([w["at_s"] for w in f["windows"]],
                  [w["keeps"] for w in f["windows"]], "o-",
                  label=f"{f['rule']}, {f['status']}, "
                  f"{'paced' if f['pace_ms'] else 'closed'}")
    axes.set(xscale="log", xlabel="attack (s)",
             ylabel="part of its throughput alone")
    axes.legend(fontsize="x-small")


FIGURE = Figure("new-hosts", "clients that invent Hosts, and what a tenant "
                "keeps", run, plot)
