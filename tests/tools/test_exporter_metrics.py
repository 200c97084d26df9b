# SPDX-License-Identifier: BSD-2-Clause
"""What sandpaper-exporter writes for Prometheus."""

from __future__ import annotations

import re
import time
from random import Random
from typing import Any

import pytest
from common import TOP

pytest.importorskip("prometheus_client")

from exporter_samples import BOUNDS, START, answer, series, tenant
from prometheus_client.parser import text_string_to_metric_families
from sandpaper_exporter.fields import COUNTERS, GAUGES, REFUSED
from sandpaper_exporter.metrics import Metrics, escaped, gauge
from sandpaper_exporter.poll import Lost

A = "sandpaper_tenant_requests_total{tenant=\"a\"}"
REST = "sandpaper_tenant_requests_total{tenant=\"(unmapped)\"}"


def text(metrics: Metrics) -> str:
    return metrics.page().text.decode()


def values(metrics: Metrics) -> dict[str, float]:
    return series(text(metrics))


def test_before_the_first_answer() -> None:
    metrics = Metrics(5, 5)
    metrics.lost(Lost(START, "no varnishd", gone=True))
    found = values(metrics)
    assert found["sandpaper_up"] == 0
    assert not any("tenant=" in name for name in found)


def test_counters_begin_at_0_and_go_on() -> None:
    metrics = Metrics(5, 5)
    metrics.add(answer(0, tenant("a", 10), rest=5))
    found = values(metrics)
    assert (found["sandpaper_up"], found[A], found[REST]) == (1, 0, 0)
    metrics.add(answer(1, tenant("a", 12), rest=6))
    assert (values(metrics)[A], values(metrics)[REST]) == (2, 1)
    # Without an answer the last ones stay
    metrics.lost(Lost(START + 2, "", gone=True))
    found = values(metrics)
    assert (found["sandpaper_up"], found[A]) == (0, 2)
    # Not in the map, nor in the list: it does not vanish
    metrics.add(answer(3, started=START + 2.5))
    assert values(metrics)[A] == 2


def test_histogram() -> None:
    metrics = Metrics(5, 5)
    metrics.add(answer(0, tenant("a", 0)))
    metrics.add(answer(1, tenant("a", 7, waits=[1, 2, *[0] * 14, 4])))
    found = values(metrics)
    name = 'sandpaper_tenant_wait_seconds_bucket{tenant="a",le="%s"}'
    assert [found[name % le] for le in (
        "0.00025", "0.0005", "8.192", "+Inf")] == [1, 3, 3, 7]
    whole = "sandpaper_tenant_wait_seconds_%s{tenant=\"a\"}"
    assert found[whole % "count"] == 7
    assert found[whole % "sum"] == 0.007


def with_histograms(metrics: Metrics) -> set[str]:
    return {name.split('"')[1] for name in values(metrics)
            if "wait_seconds_count" in name}


def test_who_has_a_histogram_changes_seldom() -> None:
    metrics = Metrics(5, 2)

    def sizes(seconds: int, a: int, b: int, c: int) -> set[str]:
        metrics.add(answer(seconds, tenant("a", a), tenant("b", b),
                           tenant("c", c)))
        return with_histograms(metrics)

    sizes(0, 0, 0, 0)
    assert sizes(1, 5, 4, 3) == {"a", "b"}
    assert sizes(2, 5, 4, 8) == {"a", "b"}
    assert sizes(3, 5, 4, 9) == {"a", "c"}
    assert sizes(4, 5, 9, 9) == {"a", "c"}
    metrics.add(answer(5))
    assert with_histograms(metrics) == {"a", "c"}


def with_gauges(metrics: Metrics) -> set[str]:
    return {n.split('"')[1] for n in values(metrics)
            if "tenant_waiting_requests" in n}


def test_gauges_are_of_those_that_do_most_now() -> None:
    """Not of those that have done most since the start."""
    metrics = Metrics(2, 0)
    old = tenant("old", 99)
    metrics.add(answer(0, tenant("a", 1), tenant("b", 1), tenant("c", 1), old))
    metrics.add(answer(1, tenant("a", 1, waiting=1), tenant("b", 9),
                       tenant("c", 5), old, tenant("x", 99, mapped=False)))
    assert with_gauges(metrics) == {"a", "b"}
    # A moment without requests changes little
    metrics.add(answer(2, tenant("a", 1), tenant("b", 9), tenant("c", 6), old))
    assert with_gauges(metrics) == {"b", "c"}
    metrics.add(answer(3, tenant("a", 4), tenant("b", 9), tenant("c", 6), old))
    assert with_gauges(metrics) == {"b", "c"}
    # A minute does, whatever the clock says
    metrics.add(answer(3, tenant("a", 5), tenant("b", 9), tenant("c", 6), old,
                       boot=60))
    assert with_gauges(metrics) == {"a", "b"}
    # And a worker process that begins again does not
    metrics.add(answer(4, tenant("a", 0), tenant("b", 0), tenant("c", 0),
                       tenant("old", 1), started=START + 3, boot=61))
    assert with_gauges(metrics) == {"a", "old"}


def test_names() -> None:
    assert escaped("my-shop") == "my-shop"
    assert escaped('a"b\\c\n') == 'a\\"b\\\\c\\n'
    assert escaped("a\udcff") == "a\\\\udcff"


def test_ten_thousand_tenants_that_are_all_different() -> None:
    """The text takes less than 1 s of CPU time, and 2 MB."""
    draw = Random(1)
    metrics = Metrics(500, 500)

    def rows(most: int) -> list[dict[str, Any]]:
        return [tenant(f"customer-{n}.example", draw.randint(0, most), **{
            f.key: draw.randint(0, most) for f in COUNTERS[1:]},
            waits=[draw.randint(0, most) for _ in range(17)])
            for n in range(10_000)]

    metrics.add(answer(0, *rows(0)))
    metrics.add(answer(1, *rows(10**6)))
    began = time.process_time()
    body = metrics.page()
    packed = body.compressed()
    took = time.process_time() - began
    assert text(metrics).count("tenant=") == 140_014 + 3_000 + 9_500
    print(f"{took:.3f} s, {len(body.text)} bytes, {len(packed)} with gzip")
    assert took < 1
    assert len(packed) < 2_000_000


def test_the_page_has_each_metric() -> None:
    """And no other."""
    metrics = Metrics(5, 5)
    metrics.more.append(lambda: [gauge("usage_up", "", 1)])
    metrics.add(answer(0, tenant("a", 1)))
    names = set(re.findall("(?m)^# TYPE (sandpaper_(?!exporter_).*) ",
                           text(metrics)))
    assert len(names) > 30
    page = (TOP / "doc" / "metrics.md").read_text()
    tenants, varnishd, exporter = page.partition(
        "\n## Metrics\n")[2].partition("\n## ")[0].split("\n### ")[1:]
    said = {
        prefix + name for prefix, part in (
            ("sandpaper_tenant_", tenants), ("sandpaper_", varnishd),
            ("", exporter))
        for row in re.findall("(?m)^\\| (`.*?) \\|", part)
        for name in re.findall("`(.*?)`", row)}
    assert said - {"sandpaper_exporter_process_*"} == names


def test_the_page_says_how_many_series_there_are() -> None:
    page = " ".join((TOP / "doc" / "metrics.md").read_text().split())
    assert (f"has {len(COUNTERS)} series of counters. Each tenant with gauges "
            f"has {len(GAUGES)} more, and each one with a histogram has "
            f"{len(BOUNDS) + 3} more") in page
    cache = sum(f.name.startswith("cache_") for f in COUNTERS)
    assert f"These are {cache} of the {len(COUNTERS)}." in page


def test_causes_are_those_of_varnishd() -> None:
    text = (TOP / "doc" / "list.schema.json").read_text()
    assert set(re.findall('"(refused_[a-z]+)"', text)) == set(REFUSED)


def test_prometheus_client_reads_it() -> None:
    metrics = Metrics(5, 5)
    metrics.add(answer(0, tenant("a", 10, waiting=3), tenant("my-shop", 5),
                       tenant("(g)", 0)))
    families = {f.name: f for f in
                text_string_to_metric_families(text(metrics))}
    for name, kind, samples in (
            ("sandpaper_tenant_refused", "counter", 12),
            ("sandpaper_tenant_wait_seconds", "histogram", 38),
            ("sandpaper_tenant_waiting_requests", "gauge", 2),
            ("sandpaper_mode", "gauge", 3), ("sandpaper_looks", "counter", 1)):
        assert families[name].type == kind
        assert len(families[name].samples) == samples
        assert families[name].documentation
    assert not any("g)" in name for name in values(metrics))
