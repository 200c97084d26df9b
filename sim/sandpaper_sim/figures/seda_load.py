# SPDX-License-Identifier: BSD-2-Clause
"""SEDA's controller in front of its e-mail service, by the number of users:
Figures 53 and 54.

What requests cost is a choice, see sandpaper_sim/seda.py."""

from __future__ import annotations

from typing import Any

from ..figure import Context, Figure, Result, judged, table, verdicts
from ..seda import CPU, Arashi, between, p90, refused
from ..server import SECOND

WARM_UP = 20                    # s
USERS = (1, 4, 16, 64, 128, 256, 512, 1024)
TARGET = 10                     # s


def load(seed: int, target: int, users: int, until: int) -> dict[str, Any]:
    """So many users all the time. target: s, 0: no control. until: s."""
    s = Arashi(seed, [target * SECOND] if target else [])
    s.users(users, 0, until * SECOND)
    s.env.run(until * SECOND)
    rows = between(s.rows(), WARM_UP, until)
    return {"users": users, "target_s": target, "p90_s": p90(rows),
            "per_s": int(rows["served"].sum()) / (until - WARM_UP),
            "refused": refused(rows),
            "kinds": {kind: p90(rows[rows["kind"] == n])
                      for n, kind in enumerate(CPU)}}


def loads(c: Context, users: tuple[int, ...],
          targets: tuple[int, ...]) -> list[dict[str, Any]]:
    """Each number of users with each target."""
    until = 120 if c.quick else 900
    return c.map(load, [(c.seed, target, n, until) for target in targets
                        for n in users])


def figure53(c: Context) -> Result:
    """See Figure."""
    users = (16, 1024) if c.quick else USERS
    found = loads(c, users, (0, TARGET))
    free, held = found[:len(users)], found[len(users):]
    worst = max(r["p90_s"] for r in held)
    most = max(r["per_s"] for r in free)
    sixteen = free[users.index(16)]["per_s"]
    judgements = [
        judged("with control the 90th percentile meets the target, 10 s",
               f"at most {worst:.1f} s", worst <= TARGET * 1.1),
        judged("without control it grows far above the target",
               f"{free[-1]['p90_s']:.1f} s with 1024 users",
               free[-1]["p90_s"] > 1.5 * TARGET),
        judged("without control 16 users use all of the service (Figure 47)",
               f"{sixteen / most:.0%} of the throughput",
               sixteen > 0.9 * most),
        judged("its throughput does not fall with more users (Figure 47)",
               f"{free[-1]['per_s'] / most:.0%} with 1024 users",
               free[-1]["per_s"] > 0.9 * most)]
    rows = [(f["users"], f["per_s"], f["p90_s"], h["per_s"], h["p90_s"],
             h["refused"]) for f, h in zip(free, held, strict=True)]
    return Result({"target_s": TARGET}, found, {"judgements": judgements}, [
        *table(("users", "free, requests/s", "p90, s",
                "controlled, requests/s", "p90, s", "refused"), rows),
        *verdicts(judgements)])


def figure54(c: Context) -> Result:
    """See Figure."""
    few, many = found = loads(c, (16, 1024), (TARGET,))
    others = max(p for kind, p in many["kinds"].items() if kind != "search")
    judgements = [
        judged("16 users: each type of request meets the target, 10 s",
               f"at most {max(few['kinds'].values()):.1f} s",
               max(few["kinds"].values()) <= TARGET),
        judged("1024 users: each type but search meets it",
               f"at most {others:.1f} s", others <= TARGET * 1.1),
        judged("1024 users: search exceeds it",
               f"{many['kinds']['search']:.1f} s",
               many["kinds"]["search"] > TARGET)]
    return Result({"target_s": TARGET}, found, {"judgements": judgements}, [
        *table(("p90, s", *CPU), [
            (f"{r['users']} users", *(r["kinds"][kind] for kind in CPU))
            for r in found]), *verdicts(judgements)])


def plot_users(figure: Any, data: dict[str, Any]) -> None:  # noqa: ANN401
    """See Figure."""
    above, below = figure.subplots(2, sharex=True)
    for target in (0, TARGET):
        rows = [r for r in data["results"] if r["target_s"] == target]
        users = [r["users"] for r in rows]
        above.plot(users, [r["p90_s"] for r in rows], "o-",
                   label=f"target {target} s" if target else "no control")
        below.plot(users, [r["refused"] for r in rows], "o-")
    above.set(ylabel="90th percentile, s", xscale="log")
    below.set(xlabel="users", ylabel="refused")
    above.legend(fontsize="x-small")


def plot_kinds(figure: Any, data: dict[str, Any]) -> None:  # noqa: ANN401
    """See Figure."""
    axes = figure.subplots()
    for n, r in enumerate(data["results"]):
        axes.bar([x + n * 0.4 for x in range(len(CPU))],
                 [r["kinds"][kind] for kind in CPU], 0.4,
                 label=f"{r['users']} users")
    axes.set_xticks([x + 0.2 for x in range(len(CPU))], list(CPU),
                    rotation=20, fontsize="x-small")
    axes.set(ylabel="90th percentile, s")
    axes.legend(fontsize="x-small")


FIGURES = [
    Figure("seda-fig53", "1 to 1024 users, with SEDA's control and without",
           figure53, plot_users),
    Figure("seda-fig54", "the same by type of request", figure54, plot_kinds)]
