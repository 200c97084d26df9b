# SPDX-License-Identifier: BSD-2-Clause
"""Figures in Markdown: what it costs to watch varnishd, and to reload.

bench/record-exporter, record-watching and record-reload-time measure them.
"""

from __future__ import annotations

from collections.abc import Sequence

from .markdown import Record, Records, Row, machine_text, not_yet, table

EXPORTER, WATCHING, RELOAD = (
    f"bench/record-{name}" for name in ("exporter", "watching", "reload-time"))


def rows(record: Record) -> Sequence[Row]:
    """Return a row for each number of tenants, in MB and ms."""
    return [r | {f"{k.removesuffix('_bytes')}_mb": v / 1e6
                 for k, v in r.items() if k.endswith("_bytes")}
            for r in record["results"]]


def measured(figures: Records, record: Record) -> str:
    """Return a sentence: how a record was measured."""
    machine = record["machine"]
    return (f"`{record['command']}`, {record['date']}, commit "
            f"{figures.commit(record)}, {machine_text(machine)}, "
            f"load average {machine['load']}.")


def watching(figures: Records) -> str:
    """Return what is served while everything watches."""
    record = figures.records.get("watching")
    if record is None:
        return not_yet(WATCHING)
    parameters = record["parameters"]

    def turns(row: Row, key: str) -> str:
        return ", ".join(f"{t[key]:.3f}" for t in row["turns"])

    return "\n\n".join([
        table([
            ("tenants in the map", "{tenants:,}"),
            ("requests per second, each turn", "{rps}"),
            ("median", "{watched_rps:.3f}"), ("control", "{control_rps:.3f}"),
            ("CPU time per request, each turn", "{cpu}"),
            ("median", "{watched_cpu_s:.3f}"),
            ("control", "{control_cpu_s:.3f}"),
            ("part of the core for answers", "{cli_part:.4f}")],
            [r | {"rps": turns(r, "watched_rps"),
                  "cpu": turns(r, "watched_cpu_s")}
             for r in record["results"]]),
        f"{measured(figures, record)} Watched over unwatched, "
        f"{parameters['turns']} turns of four windows of "
        f"{parameters['seconds']:g} s. The control is unwatched over "
        "unwatched. The last column is of watched windows: CPU time for the "
        "CLI, of `varnishd` and its manager. `varnishd` had one core; the "
        f"load, {parameters['connections']} connections that ask for a response of "
        "VCL, and all that watched had another one."])


def reload_time(figures: Records) -> str:
    """Return how long sandpaper.reload takes, and answers meanwhile."""
    record = figures.records.get("reload-time")
    if record is None:
        return not_yet(RELOAD)
    return "\n\n".join([
        table([
            ("lines in the file", "{tenants:,}"),
            ("a reload, median and longest, ms",
             "{reload_s:time}, {reload_s_max:time}"),
            ("longest answer during it, median and longest, ms",
             "{longest_s:time}, {longest_s_max:time}"),
            ("the same in the second before, ms",
             "{before_s:time}, {before_s_max:time}")], record["results"]),
        f"{measured(figures, record)} "
        f"{record['results'][0]['reloads']} reloads. One client asks on one "
        "connection, one request after the other."])


def exporter(figures: Records) -> str:
    """Return what scrapes, looks, bills and sandpaper-top take."""
    record = figures.records.get("exporter")
    if record is None:
        return not_yet(EXPORTER)
    parameters = record["parameters"]
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
        f"{measured(figures, record)} Gauges of {parameters['gauges']} "
        f"tenants, histograms of {parameters['histograms']}. Medians of "
        f"{parameters['scrapes']} scrapes, means of looks in {parameters['look_seconds']:g} s, the "
        "slowest redraw after some keys in a terminal of "
        f"{columns} x {lines}. Text and redraw are of figures that are all "
        "different."])
