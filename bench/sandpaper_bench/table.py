# SPDX-License-Identifier: BSD-2-Clause
"""Reports as tables: for a terminal, and for the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .abuses import ABUSES
from .estimate import known
from .lab import controls

Row = Sequence[str]
Table = tuple[Row, list[Row]]  # head, rows


def align(head: Row, rows: Sequence[Row]) -> str:
    """Return rows in columns: the first left, the others right."""
    width = [max(len(r[i]) for r in [head, *rows])
             for i in range(len(head))]

    def line(row: Row) -> str:
        return "  ".join(
            [row[0].ljust(width[0])]
            + [c.rjust(w) for c, w in zip(row[1:], width[1:], strict=True)])

    rule = "-" * (sum(width) + 2 * (len(width) - 1))
    return "\n".join([line(head), rule, *map(line, rows)])


def interval(ends: Sequence[float]) -> str:
    """Return a 95 % interval as text."""
    return f"{ends[0]:.2f}..{ends[1]:.2f}" if known(ends) else "unknown"


def pair_rows(result: dict[str, Any]) -> list[Row]:
    """Return the two rows of a pair under one variant."""
    rows: list[Row] = []
    clients = f", {result['connections']}" if "connections" in result else ""
    for side, other in (("a", "b"), ("b", "a")):
        first = side == "a"
        rows.append([
            f"{result[side]} with {result[other]}{clients}",
            result["variant"],
            f"{result[f'rps_alone_{side}']:.0f}",
            f"{result[f'rps_{side}']:.0f}",
            f"{result[f'norm_{side}']:.2f}",
            f"{result['ratio']:.2f}" if first else "",
            interval(result["ratio_ci"]) if first else "",
            f"{result[f'p50_s_{side}'] * 1e3:.1f}",
            f"{result[f'p99_s_{side}'] * 1e3:.1f}",
            f"{result[f'stretch_alone_{side}']:.1f}",
            f"{result[f'stretch_{side}']:.1f}",
            f"{result[f'slowest_to_mean_{side}']:.2f}",
        ])
    return rows


def pairs_table(results: Sequence[dict[str, Any]]) -> Table:
    """Return the table of pairs."""
    return (
        ["tenant", "variant", "alone/s", "both/s", "norm.", "min/max",
         "95 %", "p50 ms", "p99 ms", "str.alone", "stretch", "slowest"],
        [row for r in results for row in pair_rows(r)])


def alone_table(results: Sequence[dict[str, Any]]) -> Table:
    """Return the table of `alone`."""
    return (
        ["customer", "base/s", "ours/s", "ratio", "95 %", "base us",
         "ours us", "base slowest", "ours slowest"],
        [[" ".join(r[k] for k in ("customer", "setting") if k in r),
          f"{r['rps_baseline']:.0f}",
          f"{r['rps_variant']:.0f}", f"{r['ratio']:.3f}",
          interval(r["ratio_ci"]), f"{r['cpu_us_baseline']:.1f}",
          f"{r['cpu_us_variant']:.1f}",
          f"{r['slowest_to_mean_baseline']:.2f}",
          f"{r['slowest_to_mean_variant']:.2f}"] for r in results])


def abuse_table(results: Sequence[dict[str, Any]]) -> Table:
    """Return the table of an abuse."""
    return (
        ["abuse", "victim", "variant", "alone/s", "abused/s", "kept",
         "95 %", "fair", "p99 ms", "p99 ms abused", "settled s", "lost",
         "threads", "memory MB", "asked", "failed"],
        [[r["abuse"], r["victim"], r["variant"], f"{r['rps_alone']:.0f}",
          f"{r['rps_beside']:.0f}", f"{r['kept']:.3f}",
          interval(r["kept_ci"]), f"{r['fair']:.1f}",
          f"{r['p99_s_alone'] * 1e3:.1f}", f"{r['p99_s_beside'] * 1e3:.1f}",
          f"{r['settled_s']:.2f}", str(r["lost"]), str(r["threads_most"]),
          f"{r['memory_grown_mb']:+.1f}", str(r["abusive_requests"]),
          r["failed"] or "-"]
         for r in results])


def scale_table(results: Sequence[dict[str, Any]]) -> Table:
    """Return the table of `scale`."""
    return (
        ["tenants", "connections", "base/s", "ours/s", "ratio", "95 %",
         "base us", "ours us", "errors"],
        [[str(r["tenants"]), str(r["connections"]),
          f"{r['rps_baseline']:.0f}", f"{r['rps_variant']:.0f}",
          f"{r['ratio']:.3f}", interval(r["ratio_ci"]),
          f"{r['cpu_us_baseline']:.1f}", f"{r['cpu_us_variant']:.1f}",
          str(r["errors_baseline"] + r["errors_variant"])]
         for r in results])


def latency_table(results: Sequence[dict[str, Any]]) -> Table:
    """Return the table of `latency`."""
    return (
        ["tenant", "variant", "offered/s", "answered/s", "p99 alone ms",
         "p50 ms", "p99 ms", "max ms", "times", "95 %", "waiting", "errors"],
        [[f"{r['tenant']} with {r['beside']}", r["variant"],
          f"{r['offered_rps']:.0f}", f"{r['rps']:.0f}",
          f"{r['p99_s_alone'] * 1e3:.1f}", f"{r['p50_s'] * 1e3:.1f}",
          f"{r['p99_s'] * 1e3:.1f}", f"{r['max_s'] * 1e3:.1f}",
          f"{r['times']:.2f}", interval(r["times_ci"]),
          str(r["waiting"]), str(r["errors"])] for r in results])


def parts_table(results: Sequence[dict[str, Any]]) -> Table:
    """Return the table of `parts`."""
    def cost(r: dict[str, Any]) -> list[str]:
        if r["cost"] is None:
            return ["", "", "", ""]
        return [f"{r['cpu_us_none']:.1f}", f"{r['cpu_us_many']:.1f}",
                f"{r['cost']:.2f}", interval(r["cost_ci"])]

    return (
        ["tenant", "variant", "offered/s", "p99 none", "p99 few", "p99 many",
         "times", "95 %", "us none", "us many", "cost", "95 % ", "closed",
         "errors"],
        [[r["tenant"], r["variant"], f"{r['offered_rps']:.0f}",
          *(f"{r[f'p99_s_{n}'] * 1e3:.1f}" for n in ("none", "few", "many")),
          f"{r['times']:.2f}", interval(r["times_ci"]), *cost(r),
          str(r["closed"]), str(r["errors"])] for r in results])


def timeline_table(results: Sequence[dict[str, Any]]) -> Table:
    """Return the table of `content-change` or `flash-crowd`."""
    return (
        ["phase", "variant", "before/s", "static/s", "kept", "fair",
         "of fair", "95 %"],
        [[r["phase"], r["variant"], f"{r['rps_before']:.0f}",
          f"{r['rps']:.0f}", f"{r['kept']:.3f}", f"{r['fair']:.3f}",
          f"{r['of_fair']:.3f}", interval(r["of_fair_ci"])]
         for r in results])


def utilization_table(results: Sequence[dict[str, Any]]) -> Table:
    """Return the table of `utilization`."""
    return (
        ["customer", "variant", "connections", "answered/s", "busy", "us",
         "p99 ms", "errors"],
        [[r["customer"], r["variant"], str(r["connections"]),
          f"{r['rps']:.0f}", f"{r['busy']:.2f}", f"{r['cpu_us']:.1f}",
          f"{r['p99_s'] * 1e3:.1f}", str(r["errors"])] for r in results])


def fetch_table(results: Sequence[dict[str, Any]]) -> Table:
    """Return the table of `fetch`."""
    return (
        ["misses", "fetch s", "variant", "expected", "lent", "95 %",
         "threads", "answered/s", "errors"],
        [[f"{r['p_miss']:.0%}", f"{r['fetch_s']:g}", r["variant"],
          f"{r['expected']:.1f}", f"{r['lent']:.1f}",
          interval(r["lent_ci"]), f"{r['threads']:.0f}",
          f"{r['rps']:.0f}", str(r["errors"])] for r in results])


def table1_table(results: Sequence[dict[str, Any]]) -> Table:
    """Return the table of `table1`; (sd) beside the means."""
    return (
        ["customer", "variant", "CPU us (sd)", "paper x8", "link us (sd)",
         "paper x8", "bytes", "bound by", "errors"],
        [[r["publisher"], r["variant"],
          f"{r['cpu_us']:.0f} ({r['cpu_sd_us']:.0f})",
          f"{r['paper_cpu_us']:.0f} ({r['paper_cpu_sd_us']:.0f})",
          f"{r['link_us']:.1f} ({r['link_sd_us']:.2f})",
          f"{r['paper_link_us']:.1f}", str(r["bytes"]), r["bound_by"],
          str(r["errors"])] for r in results])


def soak_table(results: Sequence[dict[str, Any]]) -> Table:
    """Return the table of `soak`."""
    return (
        ["variant", "soaked s", "arrived", "completed", "cancelled",
         "refused", "shed", "unaccounted", "lost", "settled s",
         "memory grown MB", "descriptors", "failed"],
        [[r["variant"], f"{r['soaked_s']:.0f}", str(r["enqueued"]),
          str(r["completed"]), str(r["cancelled"]), str(r["refused"]),
          str(r["shed"]), str(r["unaccounted"]), str(r["lost"]),
          f"{r['settled_s']:.2f}", f"{r['memory_grown_mb']:+.1f}",
          f"{r['descriptors_before']} to {r['descriptors_after']}",
          r["failed"] or "-"] for r in results])


def control_lines(control: dict[str, Any]) -> list[str]:
    """Return a line for each A/A control."""
    return [f"A/A control: {c['what']}: {c['ratio']:.3f} "
            f"({interval(c['ratio_ci'])})"
            + ("" if c["covers_one"] else ": INVALID, does not cover 1")
            for c in controls(control)]


def any_table(results: Sequence[dict[str, Any]]) -> Table:
    """Return the table of an experiment that has none of its own."""
    head = [k for k, v in results[0].items()
            if isinstance(v, str | int | float)]
    return head, [[str(r.get(k, "")) for k in head] for r in results]


def policies_table(results: Sequence[dict[str, Any]]) -> Table:
    """Return the table of `policies`."""
    return (
        ["policy", "small/s", "p50 ms", "p99 ms", "95 %", "max ms",
         "part", "least part", "largest part", "errors"],
        [[r["policy"], f"{r['rps']:.1f}", f"{r['p50_s'] * 1e3:.1f}",
          f"{r['p99_s'] * 1e3:.1f}",
          interval([end * 1e3 for end in r["p99_ci_s"]]),
          f"{r['max_s'] * 1e3:.0f}", f"{r['parts'][0]:.3f}",
          f"{min(r['parts']):.3f}", f"{max(r['parts']):.3f}",
          str(r["errors"])] for r in results])


TABLES: dict[str, Callable[[Sequence[dict[str, Any]]], Table]] = {
    "pairs": pairs_table, "workers": pairs_table,
    "rate-unknown": pairs_table, "rate-wrong": pairs_table,
    "alone": alone_table, "overhead": alone_table, "scale": scale_table,
    "latency": latency_table, "table1": table1_table,
    "utilization": utilization_table, "fetch": fetch_table,
    "policies": policies_table, "parts": parts_table,
    "content-change": timeline_table, "flash-crowd": timeline_table,
    **dict.fromkeys(ABUSES, abuse_table), "soak": soak_table,
}


def body(report: dict[str, Any]) -> Table:
    """Return the table of the report's results."""
    make = TABLES.get(report["experiment"], any_table)
    return make(report["results"])


def table(report: dict[str, Any]) -> str:
    """Return the report's table and its controls, as text."""
    return "\n".join([align(*body(report)),
                      *control_lines(report["control"])])
