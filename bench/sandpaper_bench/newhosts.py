# SPDX-License-Identifier: BSD-2-Clause
"""Clients that invent Hosts: what they do, when, and what a tenant kept.

A script says when the victim is measured and when the abuse goes on.  One run
of the load generator is one turn of it:

proven    the victim asks for --proof seconds, is measured alone, then --at
          seconds after the abuse began, then alone
turns     the same, in turns of alone, abused, abused, alone, --cycles times
newcomer  the abuse goes on for 10 s before the victim's first request; the
          victim is measured in its first seconds, up to each second of
          --at, then alone

Each window is a closed loop, then, in `proven`, an open loop on
QUICK_CONNECTIONS at 0.45 of the rate alone.  `kept` is throughput over the
mean of the windows alone, which are before and after (A B B A); the last one
over the first is the control.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import mean, median
from typing import Any

from .abuse import QUICK_CONNECTIONS
from .abuses import ABUSES, HOLE, INVENTED, Abuse, abuser
from .customers import BIG, backend
from .load import Group
from .work import DEAR

CLOSED, OPEN = 6.0, 4.0  # seconds of a window's two parts
QUICK_LOAD = 0.45
REST = 3.0  # after the abuse


def invented(name: str, path: str = "/", mode: str = "closed",
             conns: int = 400, **more: float) -> Group:
    """Return a group each of whose requests has a new Host."""
    return abuser(f"{name}.invented", path, mode, conns, random_host=1, **more)


def rule(name: str, statements: str) -> str:
    """Return VCL for the Hosts of such a group."""
    return (f'sub vcl_recv {{\n\tif (req.http.host ~ "{name}[.]invented'
            f'[.]example$") {{\n{statements}\t}}\n}}\n')


# What else such clients can do; not part of the suite
HOSTILE = {
    # 2.2 ms of VCL in each request
    "new-hosts-dear": Abuse(
        (invented("dear"),), vcl=rule(
            "dear", DEAR + "\t\treturn (synth(404));\n")),
    "new-hosts-pipelining": Abuse(
        (invented("made404", mode="pipe"),), vcl=INVENTED),
    "new-hosts-slow-readers": Abuse(
        (invented("big", f"/bytes/{BIG}", "stall"),), vcl=rule(
            "big", '\t\tset req.http.host = "big.example";\n'
            "\t\treturn (hash);\n")),
    "new-hosts-blackhole": Abuse(
        (invented("hole", mode="open", conns=2000, rate=1000),),
        vcl=backend("dead", HOLE, 80) + rule(
            "hole", "\t\tset req.backend_hint = dead;\n"
            "\t\treturn (pass);\n")),
    "new-hosts-h2": Abuse(
        (replace(invented("made404", mode="h2"), streams=100),),
        vcl=INVENTED, parameters=("feature=+http2",)),
}
EVERY = {n: a for n, a in ABUSES.items() if a.new} | HOSTILE


@dataclass(frozen=True)
class Window:
    """One of the victim's, in seconds from the start."""

    name: str
    begin: float
    both: bool = True  # closed, then open

    @property
    def end(self) -> float:
        """Return when it ends."""
        return self.begin + CLOSED + (OPEN if self.both else 0)


@dataclass(frozen=True)
class Script:
    """What happens when."""

    windows: tuple[Window, ...]
    abused: tuple[tuple[float, float], ...]
    seconds: float
    starts: float = 0.0  # of the victim

    def groups(
        self, victim: Group, rps: float, abusers: Sequence[Group]
    ) -> list[Group]:
        """Return loadgen's groups: the victim asks without a pause."""
        found = [replace(g, name=f"abuser {n} {i}", since=begin, till=end)
                 for i, (begin, end) in enumerate(self.abused)
                 for n, g in enumerate(abusers)]
        at = self.starts
        for w in self.windows:
            if w.begin > at:
                found.append(replace(victim, name=f"until {w.name}",
                                     since=at, till=w.begin))
            at = w.begin + CLOSED
            found.append(replace(victim, name=f"closed {w.name}",
                                 since=w.begin, till=at))
            if w.both:
                found.append(replace(
                    victim, name=f"open {w.name}", mode="open",
                    conns=QUICK_CONNECTIONS, rate=max(1.0, rps * QUICK_LOAD),
                    since=at, till=w.end))
            at = w.end
        return found


def proven_script(proof: float, ats: Sequence[float]) -> Script:
    """Return the script of a victim that was there before."""
    alone = Window("alone", proof)
    begin = alone.end
    windows = [alone]
    for at in ats:
        # The window's middle is at that second
        windows.append(Window(f"{at:g} s", begin + at - CLOSED / 2))
    end = windows[-1].end
    windows.append(Window("alone again", end + REST))
    return Script(tuple(windows), ((begin, end),), windows[-1].end)


def turns_script(proof: float, cycles: int) -> Script:
    """Return the script of windows that take turns."""
    windows, abused, at = [], [], proof
    for number in range(cycles):
        windows.append(Window(f"alone {number}", at, both=False))
        begin = windows[-1].end
        windows.append(Window(f"abused {number}", begin + REST, both=False))
        windows.append(Window(f"abused {number} again", windows[-1].end,
                              both=False))
        abused.append((begin, windows[-1].end))
        windows.append(Window(f"alone {number} again",
                              windows[-1].end + REST, both=False))
        at = windows[-1].end
    return Script(tuple(windows), tuple(abused), at)


def newcomer_script(early: float, ats: Sequence[float]) -> Script:
    """Return the script of a victim that comes while the abuse goes on."""
    windows = [Window("first", early, both=False),
               *(Window(f"{at:g} s", early + at - CLOSED, both=False)
                 for at in ats)]
    end = windows[-1].end
    windows.append(Window("alone", end + REST, both=False))
    return Script(tuple(windows), ((0.0, end),), windows[-1].end, early)


def quotients(one: dict[str, Any]) -> dict[str, float]:
    """Return what a turn's windows are, over the mean of those alone.

    The last one alone over the first is the control.
    """
    if "closed abused 0" in one["windows"]:
        return cycle_quotients(one["windows"])
    windows, found = one["windows"], {}

    def alone(what: str, figure: str) -> float:
        return mean(float(w[figure]) for name, w in windows.items()
                    if name in (f"{what} alone", f"{what} alone again"))

    for name, w in windows.items():
        what, _, when = name.partition(" ")
        if when.startswith("alone"):
            continue
        times = w["p99_ms"] / alone(what, "p99_ms")
        if what == "closed":
            found[f"kept {when}"] = w["rps"] / alone(what, "rps")
            found[f"p99 times {when}"] = times
        else:
            found[f"open p99 times {when}"] = times
    if "closed alone again" in windows:
        found["control"] = (windows["closed alone again"]["rps"]
                            / windows["closed alone"]["rps"])
    return found


def cycle_quotients(windows: dict[str, Any]) -> dict[str, float]:
    """Return medians over cycles: a machine changes slowly."""
    found: dict[str, list[float]] = {"kept": [], "p99 times": [],
                                     "control": []}
    number = 0
    while f"closed alone {number}" in windows:
        (a, b, c, d) = (windows[f"closed {what} {number}{again}"]
                        for what, again in (
                            ("alone", ""), ("abused", ""),
                            ("abused", " again"), ("alone", " again")))
        found["kept"].append((b["rps"] + c["rps"]) / (a["rps"] + d["rps"]))
        found["p99 times"].append(
            (b["p99_ms"] + c["p99_ms"]) / (a["p99_ms"] + d["p99_ms"]))
        found["control"].append(d["rps"] / a["rps"])
        number += 1
    return {name: median(values) for name, values in found.items()}


def summary(turns: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return medians over turns, and each turn's."""
    each = [quotients(t) for t in turns if not t["died"]]
    return {name: {"median": round(median(q[name] for q in each), 4),
                   "turns": [round(q[name], 4) for q in each]}
            for name in (each[0] if each else {})}
