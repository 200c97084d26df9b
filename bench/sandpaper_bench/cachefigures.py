# SPDX-License-Identifier: BSD-2-Clause
"""Figures of the cache, in Markdown, from records of bench/cache."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from .markdown import NOT_YET, Record, Records, Row, goal, not_yet, table

COMPARE = "bench/cache/compare bench/results/cache.json"
LIVE = "bench/cache/live TRACE"
TRACES = ("bench/cache/traces bench/results/cache-traces.json TRACE.. "
          "--webcachesim FOLDER")
PAPER = "bench/cache/paper bench/results/cache-paper.json"
OF_BEST, BELOW, OF_WINDOW, KEPT, LOST = .95, -.002, .81, .95, .97
GB = 10**9


def about(figures: Records, record: Record) -> str:
    """Return how a record was made."""
    return (f"`{COMPARE}`, {record['date']}, commit "
            f"{figures.commit(record)}, {len(record['seeds'])} seeds, "
            f"{record['requests']:,} requests each.")


def setting(result: Row) -> str:
    """Return the trace and the size of the cache."""
    return f"`{result['trace']}`, {result['bytes'] / GB:g} GB"


def hits(found: dict[str, Any] | None) -> str:
    """Return both hit ratios of a policy."""
    if found is None:
        return ""
    return ", ".join(f"{found[part]['median']:.3f}"
                     for part in ("objects", "bytes") if part in found)


def policies(figures: Records) -> str:
    """Return the hit ratios of all policies."""
    record = figures.records.get("cache")
    if record is None:
        return not_yet(COMPARE)
    names = dict.fromkeys(
        name for r in record["results"] for name in r["policies"]
        if "memory" not in name)
    columns = [("policy", "{name}"), *(
        (setting(r), f"{{r{n}}}") for n, r in enumerate(record["results"]))]
    rows = [{"name": name, **{
        f"r{n}": hits(r["policies"].get(name))
        for n, r in enumerate(record["results"])}} for name in names]
    return "\n\n".join([table(columns, rows), about(figures, record)])


def goals(figures: Records) -> str:
    """Return what our admission has to reach."""
    record = figures.records.get("cache")
    if record is None:
        return not_yet(COMPARE)
    rows = [r | {
        "setting": setting(r), "least": r["of_best_fixed"]["least"],
        "goal": goal(r["of_best_fixed"]["least"], OF_BEST, True),
        "window_goal": goal(r["least_gain_in_a_window"], BELOW, True),
        "p5_goal": goal(r["of_best_in_window_p5"], OF_WINDOW, True)}
        for r in record["results"]]
    return table([
        ("trace, cache", "{setting}"),
        ("over the best fixed c, least of all seeds", "{least:.3f}"),
        (f"goal {OF_BEST:g}", "{goal}"),
        ("over the c that is best for a window, 5th percentile",
         "{of_best_in_window_p5:.3f}"),
        (f"goal {OF_WINDOW:g}", "{p5_goal}"),
        ("minus LRU's hit ratio, worst window",
         "{least_gain_in_a_window:.3f}"),
        (f"goal {BELOW:g}", "{window_goal}"),
    ], rows)


def tenants(figures: Records) -> str:
    """Return what good tenants keep beside two bad ones."""
    record = figures.records.get("cache")
    found = record and next(
        (r for r in record["results"] if "tenants" in r), None)
    if not found:
        return not_yet(COMPARE)
    base = found["tenants"]["ours"]
    rows = []
    for name, t in found["tenants"].items():
        whole, second = (t[part]["median"] / base[part]["median"]
                         if part in t else None
                         for part in ("all", "all_second_half"))
        rows.append({
            "name": name, **t,
            "whole": "" if whole is None else f"{whole:.3f}",
            "second": "" if second is None else f"{second:.3f}",
            "goal": goal(t["least"], KEPT, True),
            "lost": "" if second is None or "ours and" not in name
            else goal(second, LOST, True)})
    return table([
        ("cache", "{name}"), ("kept, mean", "{mean:.2f}"),
        ("kept, worst tenant", "{least:.2f}"), (f"goal {KEPT:g}", "{goal}"),
        ("all hits over those of ours", "{whole}"),
        ("the same, second half", "{second}"), (f"goal {LOST:g}", "{lost}"),
    ], rows)


def live(figures: Records) -> str:
    """Return what real caches did."""
    record = figures.records.get("cache-live")
    if record is None:
        return not_yet(LIVE)
    rows = [r | {"gigabytes": r["origin"]["bytes"] / GB}
            for r in record["results"]]
    return "\n\n".join([table([
        ("cache", "{variant}"), ("hits", "{objects:.3f}"),
        ("hits, of bytes", "{bytes:.3f}"),
        ("GB from the origin", "{gigabytes:.1f}"),
        ("requests/s", "{requests_per_second:.0f}"),
        ("p99 of small objects, ms", "{small_p99_s:time}"),
    ], rows), f"`{record.get('command', LIVE)}`, {record['date']}, commit "
        f"{figures.commit(record)}, {record['bytes'] / GB:g} GB, "
        f"{record['results'][0]['requests']:,} requests."])


def in_unit(count: int) -> str:
    """Return bytes with a unit, in three digits."""
    for unit, size in (("TB", 10**12), ("GB", GB), ("MB", 10**6),
                       ("kB", 1000)):
        if count >= .9995 * size:
            return f"{count / size:.3g} {unit}"
    return f"{count} B"


def trace_files(figures: Records) -> str:
    """Return which traces were handed over."""
    record = figures.records.get("cache-traces")
    if record is None:
        return not_yet(TRACES)
    return table([
        ("trace", "{trace}"), ("requests", "{requests:,}"),
        ("objects", "{objects:,}"), ("bytes of all objects", "{all}"),
        ("bytes of all requests", "{asked}"), ("sha256", "`{sha256}`"),
    ], [r | {"all": in_unit(r["bytes"]), "asked": in_unit(r["asked_bytes"])}
        for r in record["results"]])


def traces(figures: Records) -> str:
    """Return the hit ratios on traces that were handed over."""
    record = figures.records.get("cache-traces")
    if record is None:
        return not_yet(TRACES)
    caches = [(r["trace"], c) for r in record["results"] for c in r["caches"]]
    names = dict.fromkeys(name for _, c in caches for name in c["policies"])
    rows = [{"trace": f"{trace}, {c['size']}", "size": in_unit(c["bytes"]),
             **{f"p{n}": hits(c["policies"].get(name))
                for n, name in enumerate(names)}} for trace, c in caches]
    return "\n\n".join([table([
        ("trace, part of its bytes", "{trace}"), ("cache", "{size}"),
        *((name, f"{{p{n}}}") for n, name in enumerate(names)),
    ], rows), f"`{TRACES}`, {record['date']}, commit "
        f"{figures.commit(record)}."])


class Claim(NamedTuple):
    """What a figure of the AdaptSize paper (NSDI 2017) says."""

    figure: str
    what: str
    said: str
    # Names in the record, each with the least and the most that agrees.  A
    # least that is not a number is not judged
    parts: tuple[tuple[str, float, float], ...]
    why: str  # it differs, or is not judged
    form: str = ".2f"


ANY = (math.nan, math.inf)
MORE = math.inf
BY_RECENCY = ("SIEVE", "S3-FIFO", "LHD", "W-TinyLFU")
FORMS = ("exact", "pade", "transient")
SMALL = ("with 1 GB, LRU has few hits on our trace. With 32 GB the gain is "
         "less, see Figure 11")
CHOICE = "after a change, the model chooses a c that is too small"
CLAIMS = (
    Claim("2a", "best size threshold, over none", "almost 2",
          (("threshold", 1.7, 2.2),), SMALL),
    Claim("2b, 7", "equal 80th percentiles of sizes, other best thresholds",
          "three traces", (), "not tried: our traces have other percentiles"),
    Claim("3", "best thresholds of mixes, largest over smallest", "up to 100",
          (("best thresholds", 10, 400),), "our mixes differ less", ".0f"),
    Claim("3b", "local maxima of the hit ratio over the threshold", "several",
          (("maxima", 2, MORE),),
          "in each of our mixes, most requests are for one kind of objects",
          ".0f"),
    Claim("section 4", "best c, over the best size threshold", "1.1",
          (("probability", 1.05, 1.15),), "our values of c have steps of 4"),
    Claim("4, 10", "over Varnish (LRU)", "1.47 to 1.91",
          (("Varnish", 1.47, 1.91),), SMALL),
    Claim("4, 10", "over Nginx", "1.30 to 1.48", (("Nginx", 1.3, 1.48),),
          SMALL),
    Claim("4, 10", "over SIZE-OPT", "0.95 to 0.99",
          (("SIZE-OPT", .95, MORE),), CHOICE),
    Claim("5, 13", "over the best policy without admission by size",
          "1.33 to 1.46", (("research", 1.33, 1.46),),
          "the paper's best policy is SLRU, ours is W-TinyLFU"),
    *(Claim("9", f"error of the model, `{kind}`: Theorem 1; the authors' "
            "code; our form that only predicts", "0.01",
            tuple((f"error of {form}, {kind}", 0, .02) for form in FORMS),
            "Theorem 1 counts an object with one request as one that comes "
            "back") for kind in ("cdn", "irm")),
    Claim("11", "over LRU: with 0.5 GB; with 32 GB; first over second",
          "above 1", (("small cache", 0, MORE), ("large cache", 0, MORE),
                      ("small over large", 1.05, MORE)),
          "the gain is not larger with a smaller cache"),
    Claim("12", "requests/s, over those without admission", "1",
          (("requests_per_second", *ANY),),
          "differs: the figure is of the real caches above. Only hits, and only "
          "misses, were measured by hand: "
          "[page](../bench/results/2026-11-28-hits-misses.md)"),
    Claim("14a", "over SIZE-OPT, random changes: worst", "0.95",
          (("least SIZE-OPT, crowd", .95, MORE),), CHOICE),
    Claim("14b", "over SIZE-OPT, adversarial changes: worst", "0.81",
          (("least SIZE-OPT, adv", .81, MORE),),
          "after one change, our guard admitted all objects for four windows"),
    Claim("6, 14", "over HillClimb, mean: random changes; adversarial changes",
          "1.09; 1.29", (("mean HillClimb, crowd", 1.09, MORE),
                         ("mean HillClimb, adv", 1.29, MORE)),
          "our HillClimb has exact shadows, and curves with one maximum"),
    Claim("14", "over Static, mean: random changes; adversarial changes",
          "1.30; almost 3", (("mean Static, crowd", 1.25, MORE),
                             ("mean Static, adv", 2.5, MORE)),
          "a threshold for `cdn` is less wrong for our mixes"),
    Claim("section 4.2", "windows below 0.95 of SIZE-OPT: at a start; after "
          "random changes, mean; after adversarial changes, mean", "no figure",
          (("late at start", *ANY), ("mean late, crowd", *ANY),
           ("mean late, adv", *ANY)), "the paper has no figure", ".1f"),
    Claim("15a to 15c", "byte hit ratio and load of the disk cache",
          "no change; 0.8", (), "not tried: Varnish has no disk cache"),
    Claim("15d", "response times of small objects, over those without "
          "admission: p50; p99", "0.57; 0.7",
          (("small_p50_s", 0, .7), ("small_p99_s", 0, .8)),
          "our origin is on loopback, the paper's is 0.1 s away"),
    Claim("16", "misses; bytes of misses, over those of LRU", "0.4; 1.3",
          (("misses", .3, .5), ("bytes of misses", 1.1, 1.5)),
          "with 1 GB, no policy has hits for much more than half of our "
          "requests, or for many bytes"),
)


def measured(figures: Records) -> dict[str, dict[str, float]]:
    """Return what was measured, of AdaptSize and of ours."""
    found = {r["name"]: r for r in figures.records["cache-paper"]["results"]}
    hit = {name: p["objects"]["median"] for name, p in figures.records.get(
        "cache", {"results": [{"policies": {}}]})[
            "results"][0]["policies"].items()}
    if hit.keys() >= set(BY_RECENCY):
        most = max(hit[name] for name in BY_RECENCY)
        found["research"] = {"AdaptSize": hit["AdaptSize, ours"] / most,
                             "ours": hit["ours"] / most}
    runs = {r["variant"]: r for r in figures.records.get(
        "cache-live", {"results": []})["results"]}
    if runs.keys() >= {"admission", "off"}:
        for name in ("requests_per_second", "small_p50_s", "small_p99_s"):
            found[name] = {
                "ours": runs["admission"][name] / runs["off"][name]}
    return found


def agrees(claim: Claim, found: list[dict[str, float]], rule: str) -> bool:
    """Return whether a rule has what the paper says."""
    return all(least <= f.get(rule, math.nan) <= most for f, (_, least, most)
               in zip(found, claim.parts, strict=True))


def verdict(claim: Claim, found: list[dict[str, float]]) -> str:
    """Return whether we measured what the paper says."""
    if not claim.parts or math.isnan(claim.parts[0][1]):
        return claim.why
    if len(found) < len(claim.parts):
        return NOT_YET
    ours = agrees(claim, found, "ours")
    of_paper = ours if "AdaptSize" not in found[0] else agrees(
        claim, found, "AdaptSize")
    if of_paper:
        return "reproduced"
    return ("reproduced by ours. AdaptSize " if ours else "") + (
        f"differs: {claim.why}")


def paper(figures: Records) -> str:
    """Return the figures of the AdaptSize paper, and ours."""
    record = figures.records.get("cache-paper")
    if record is None:
        return not_yet(PAPER)
    known, rows = measured(figures), []
    for claim in CLAIMS:
        found = [known[name] for name, *_ in claim.parts if name in known]
        rows.append(claim._asdict() | {"verdict": verdict(claim, found)} | {
            rule: "; ".join(format(f[rule], claim.form)
                            for f in found if rule in f)
            for rule in ("AdaptSize", "ours")})
    return "\n\n".join([table([
        ("figure", "{figure}"), ("what", "{what}"), ("the paper", "{said}"),
        ("AdaptSize, ours", "{AdaptSize}"), ("ours", "{ours}"),
        ("verdict", "{verdict}"),
    ], rows), f"`{PAPER}`, {record['date']}, commit "
        f"{figures.commit(record)}."])
