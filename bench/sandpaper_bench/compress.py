# SPDX-License-Identifier: BSD-2-Clause
"""`compress`: is an answer compressed where that is cheaper?

A page of text is fetched for each request, and can be compressed for the
client.  The link to the client has one of RATES.  The variants are one
varnishd with three rules in its VCL:

    plain       never compresses
    compressed  always does
    auto        has the rule of doc/examples/compress.vcl

`auto` is compared with plain, and with the better of both: the one whose
median throughput is higher.  A ratio is the median of the turns' quotients.
The control of a link is plain against itself, each with a varnishd of its own.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from typing import Any

from .ask import Ask
from .estimate import bootstrap, median_quotient, rounded, with_interval
from .load import Group, Measurement
from .rig import Rig, progress
from .runner import Control, Experiment, Job, Part, Turn, Window, of_each
from .testbed import BENCH, RATE_BPS, TestbedError
from .utilization import busy
from .variants import nic_rate
from .varnish import Variant, Varnish

PLAIN, COMPRESSED, AUTO = "plain", "compressed", "auto"
EXAMPLE = BENCH.parent / "doc" / "examples" / "compress.vcl"
# The condition after `&&`
RULE = re.compile(r'(?<=Accept-Encoding ~ "gzip" &&)\s+(.+?)(?=\) \{\n)', re.S)
RULES = {PLAIN: "false", COMPRESSED: "true", AUTO: ""}  # "": the example's

BEST = "the better of both"
# bits/s: against what `auto` is judged there, and the least ratio
RATES = {200e6: (PLAIN, 1.5), 1e9: (BEST, 0.97), 10e9: (PLAIN, 0.97)}

SIZE = 100_000  # bytes of the page
WORDS = 3100  # so many different ones, that gzip leaves 44 % of the page
LETTERS = "abcdefghijklmnopqrstuvwxyz"
CONNECTIONS = 50
SETTLE_S = 1.0  # besides --warmup: until TCP's windows have their size
TENANT = Group("shop", "shop.example", "/text", conns=CONNECTIONS)
HEADERS = "Accept-Encoding: gzip\n"
FETCHED = f"""
sub vcl_recv {{
	if (req.url == "{TENANT.path}") {{
		return (pass);
	}}
}}
"""

Windows = list[Measurement]  # of a turn: what counts is the last one


def text(seed: int) -> bytes:
    """Return the page."""
    rng = random.Random(seed)
    words = ["".join(rng.choices(LETTERS, k=rng.randint(2, 10)))
             for _ in range(WORDS)]
    return " ".join(rng.choices(words, k=SIZE // 3))[:SIZE].encode()


def vcl(rule: str) -> str:
    """Return the example's VCL, with a rule if given, without a backend."""
    found = EXAMPLE.read_text(encoding="utf-8")
    if len(RULE.findall(found)) != 1:
        raise TestbedError(f"{EXAMPLE} has no rule that can be replaced: use "
                           'one condition `Accept-Encoding ~ "gzip" && RULE`')
    found = re.sub(r"^(vcl 4\.1;|backend .*\})$", "", found, flags=re.M)
    return (RULE.sub(f" {rule}", found) if rule else found) + FETCHED


def link(rate_bps: float) -> str:
    """Return the rate of a link as text."""
    return (f"{rate_bps / 1e9:g} Gbit/s" if rate_bps >= 1e9
            else f"{rate_bps / 1e6:g} Mbit/s")


def variants(ask: Ask, rate_bps: float | None = None) -> list[Variant]:
    """Return the variants, which know the rate of the link, if there is one.

    --param is stronger.
    """
    ours, usual = ask.ours, nic_rate(ask.name, ask.args.rate, ask.bed.shaped)
    known = () if rate_bps is None else nic_rate(ask.name, rate_bps, True)
    return [replace(
        ours, name=name, prelude=ours.prelude + vcl(rule), parameters=(
            *known, *(p for p in ours.parameters if p not in usual)))
        for name, rule in RULES.items()]


@dataclass(frozen=True)
class Asking(Window):
    """A window of clients that accept compressed answers."""

    def measure(
        self, rig: Rig, running: Sequence[Varnish], found: Sequence[Any]
    ) -> Measurement:
        """Measure it."""
        headers = str(rig.headers(TENANT.name, HEADERS))
        return self.loaded(rig, running[0], [
            replace(g, headers=headers) for g in self.asked(rig, found)])


@dataclass(frozen=True)
class Linked(Turn):
    """A turn whose link to the client has a rate of its own."""

    rate_bps: float = RATE_BPS

    def measure(self, rig: Rig) -> Windows:
        """Return what each window found."""
        with rig.bed.shaped_to(self.rate_bps):
            return super().measure(rig)


def turn(variant: Variant, *, rate_bps: float) -> Linked:
    """Return a window; plain has one under another varnishd before."""
    once = Turn([variant], [Asking([TENANT], settle=SETTLE_S)], [TENANT])
    return Linked(once.servers, once.windows, once.primed, list,
                  once if variant.name == PLAIN else None, rate_bps)


def note(name: str, found: Windows) -> None:
    """Print one turn's figures."""
    seen = found[-1][TENANT.name]
    progress(f"  {name} {seen.rps:.0f}/s, "
             f"{seen.bytes_in(found[-1].window_s) / 1e3:.1f} kB, "
             f"{found[-1].cpu_us_per_request:.0f} us of CPU")


def rps(found: Windows) -> float:
    """Return a turn's requests/s."""
    return found[-1][TENANT.name].rps


def result(
    variant: str, rate_bps: float, turns: Sequence[Windows], cores: int,
    seed: int,
) -> dict[str, Any]:
    """Return an entry of `results`, without what compares variants."""
    last = [windows[-1] for windows in turns]
    return {
        "link": link(rate_bps), "link_bps": rate_bps, "variant": variant,
        "turns": len(turns), **with_interval("rps", turns, rps, seed, 1),
        "cpu_us": round(median(m.cpu_us_per_request for m in last), 1),
        "bytes": round(median(m[TENANT.name].bytes_in(m.window_s)
                              for m in last)),
        "busy": round(median(busy(m, cores) for m in last), 3),
        "noise_cores": round(median(m.foreign_s / m.window_s for m in last),
                             3),
        "p99_s": round(median(m[TENANT.name].p99_s for m in last), 6),
        "errors": sum(m[TENANT.name].failures for m in last),
        **dict.fromkeys(("over_plain", "over_plain_ci", "best", "over_best",
                         "over_best_ci", "against", "ratio", "ratio_ci",
                         "goal")),
    }


def over(
    name: str, turns: Sequence[Windows], others: Sequence[Windows], seed: int
) -> dict[str, Any]:
    """Return the throughput over that of others, and its interval."""
    quotients = [(rps(a), rps(b)) for a, b in zip(turns, others, strict=True)]
    return {name: round(median_quotient(quotients), 4),
            f"{name}_ci": rounded(
                bootstrap(quotients, median_quotient, seed), 4)}


def compared(
    rate_bps: float, found: Mapping[str, Sequence[Windows]], seed: int
) -> dict[str, Any]:
    """Return what compares `auto` with the others."""
    best = max((PLAIN, COMPRESSED), key=lambda v: median(map(rps, found[v])))
    against, goal = RATES[rate_bps]
    other = {PLAIN: PLAIN, BEST: best}
    return {
        **over("over_plain", found[AUTO], found[PLAIN], seed), "best": best,
        **over("over_best", found[AUTO], found[best], seed),
        "against": against,
        **over("ratio", found[AUTO], found[other[against]], seed),
        "goal": goal}


def results(
    rig: Rig, rate_bps: float, found: Mapping[str, Sequence[Windows]]
) -> list[dict[str, Any]]:
    """Return a link's entries of `results`; the last one is of `auto`."""
    seed, cores = rig.plan.seed, len(rig.bed.proxy_cores)
    rows = [result(variant, rate_bps, turns, cores, seed)
            for variant, turns in found.items()]
    rows[-1] |= compared(rate_bps, found, seed)
    return rows


def part(ask: Ask, rate_bps: float) -> Part:
    """Return all variants with one link."""
    name = link(rate_bps)
    return Part(
        name, of_each(variants(ask, rate_bps),
                      partial(turn, rate_bps=rate_bps)), note,
        lambda rig, found: results(rig, rate_bps, found),
        [Control(f"{PLAIN} against itself, {name}", PLAIN, lambda turns: [
            (rps(windows), rps(windows[:1])) for windows in turns], name)],
        f"{name}: {', '.join(RULES)}")


def lacks(ask: Ask) -> str | None:
    """Return what this machine lacks."""
    return None if ask.bed.mode == "namespaces" else (
        "links of several rates: run it as root on one machine that has tc, "
        "without --loopback and without --inventory")


def plan(ask: Ask) -> Job:
    """Plan all links."""
    return Job(replace(ask, variants=variants(ask)),
               [part(ask, rate_bps) for rate_bps in RATES],
               pages={TENANT.path[1:]: text(ask.plan.seed)})


# It compares what is ours, so it is not in `all`
EXPERIMENT = Experiment("compress", plan, lacks, in_all=False,
                        needs="congestion")
