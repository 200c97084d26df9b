# SPDX-License-Identifier: BSD-2-Clause
"""Figures of overload, in Markdown: of the simulator's tournament."""

from __future__ import annotations

from .markdown import Records, Row, not_yet, table

COMMAND = "bench/record-sim"
OF_BEST = .95


def tournament(figures: Records, figure: str) -> str:
    """Return a figure of all controllers, for each load."""
    record = figures.records.get("overload-sim")
    if record is None:
        return not_yet(COMMAND)
    names = list(dict.fromkeys(r["controller"] for r in record["results"]))
    rows: dict[str, Row] = {}
    for r in record["results"]:
        if figure in r:
            rows.setdefault(r["case"], {"case": r["case"]})[
                r["controller"].replace("-", "_")] = r[figure]
    form = ".0f" if figure.endswith("_ms") else ".2f"
    columns = [("load", "{case}"), *(
        (f"`{name}`", f"{{{name.replace('-', '_')}:{form}}}")
        for name in names)]
    found = record["parameters"]
    return "\n\n".join([table(columns, rows.values()), (
        f"`{record['command']}`, {record['date']}, commit "
        f"{figures.commit(record)}, {found['seeds']} seeds, capacity "
        f"{found['capacity_per_s']:,} requests/s, a refusal costs "
        f"{found['refusal']:g} of a request, target {found['target_s']:g} s, "
        f"standing limit {found['standing_s']:g} s.")])
