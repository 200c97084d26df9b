# SPDX-License-Identifier: BSD-2-Clause
"""Figures of bench/record-exporter in Markdown: what it costs to watch."""

from __future__ import annotations

from collections.abc import Sequence

from .markdown import Record, Records, Row, not_yet, table

COMMAND = "bench/record-exporter"


def rows(record: Record) -> Sequence[Row]:
    """Return a row for each number of tenants, in MB and ms."""
    return [r | {f"{k.removesuffix('_bytes')}_mb": v / 1e6
                 for k, v in r.items() if k.endswith("_bytes")}
            for r in record["results"]]


def exporter(figures: Records) -> str:
    """Return what scrapes, looks, bills and sandpaper-top take."""
    record = figures.records.get("exporter")
    if record is None:
        return not_yet(COMMAND)
    machine, parameters = record["machine"], record["parameters"]
    columns, lines = parameters["terminal"]
    return "\n\n".join([
        table([
            ("tenants in the map", "{tenants:,}"), ("series", "{series:,}"),
            ("text, with gzip, MB", "{text_mb:.3f}, {gzip_mb:.3f}"),
            ("CPU time of the text, ms", "{text_cpu_s:time}"),
            ("scrape, ms", "{scrape_s:time}"),
            ("CPU time of a look, `varnishd`, exporter, ms",
             "{look_varnishd_cpu_s:time}, {look_exporter_cpu_s:time}"),
            ("bills, MB", "{usage_mb:.3f}"),
            ("CPU time of a redraw of `sandpaper-top`, ms",
             "{redraw_cpu_s:time}")], rows(record)),
        f"`{record['command']}`, {record['date']}, commit "
        f"{figures.commit(record)}, {machine['cores']} cores of "
        f"{machine['cpu']}{' (virtual)' if machine['virtual'] else ''}, Linux "
        f"{machine['kernel']}, load average {machine['load']}. Gauges of "
        f"{parameters['gauges']} tenants, histograms of "
        f"{parameters['histograms']}. Medians of {parameters['scrapes']} "
        f"scrapes, means of looks in {parameters['look_seconds']:g} s, the "
        "slowest redraw after some keys in a terminal of "
        f"{columns} x {lines}. Text and redraw are of figures that are all "
        "different."])
