# SPDX-License-Identifier: BSD-2-Clause
"""Figures of the cache, in Markdown, from records of bench/cache."""

from __future__ import annotations

from typing import Any

from .markdown import Record, Records, Row, goal, not_yet, table

COMPARE = "bench/cache/compare bench/results/cache.json"
LIVE = "bench/cache/live TRACE"
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
    return f"{found['objects']['median']:.3f}, {found['bytes']['median']:.3f}"


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
                         for part in ("all", "all_second_half"))
        rows.append({
            "name": name, **t, "whole": whole, "second": second,
            "goal": goal(t["least"], KEPT, True),
            "lost": goal(second, LOST, True) if "memory" in name
            and "ours" in name else ""})
    return table([
        ("cache", "{name}"), ("kept, mean", "{mean:.2f}"),
        ("kept, worst tenant", "{least:.2f}"), (f"goal {KEPT:g}", "{goal}"),
        ("all hits over those of ours", "{whole:.3f}"),
        ("the same, second half", "{second:.3f}"),
        (f"goal {LOST:g}", "{lost}"),
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
