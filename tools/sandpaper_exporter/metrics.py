# SPDX-License-Identifier: BSD-2-Clause
"""A sink: what Prometheus gets from /metrics.

prometheus-client writes what there is once.  What there is for each tenant is
written here, which takes far less CPU time: bench/record-exporter measures it.
The text is made when it is asked for, at most once for each answer.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import nlargest

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from .fields import (
    COUNTERS,
    GAUGES,
    HISTOGRAM,
    HISTOGRAM_TEXT,
    MODES,
    WAITS,
    WHOLE,
    Field,
)
from .poll import Answer, Lost
from .totals import MOST, UNMAPPED, Growth, Numbers, add
from .web import Body

NOW = 10  # seconds: CPU time of so long ago counts a third of that of now
STAYS = 2  # a tenant takes another's histogram with so many times its waits
PREFIX = "sandpaper_tenant_"
CPU = next(i for i, f in enumerate(COUNTERS) if f.key == "cpu_s")
LEAST = 1e-6  # CPU seconds that count


class Metrics(Collector):
    """Adds up what tenants use, and writes it for Prometheus."""

    def __init__(self, gauges: int, histograms: int, most: int = MOST) -> None:
        self._gauges, self._histograms = gauges, histograms
        self._growth = Growth([f.key for f in COUNTERS], WAITS, most)
        self._lock = threading.Lock()  # of all that follows
        self._answer: Answer | None = None
        self._up = False
        self._looks = self._failures = 0
        self._totals: dict[str, Numbers] = {}
        self._waits: dict[str, list[int]] = {}
        self._sizes: dict[str, int] = {}  # how many waits
        self._used: dict[str, float] = {}  # CPU seconds, of now
        self._shown: set[str] = set()  # tenants with a histogram
        self._body: Body | None = None  # of this answer
        self.more: list[Callable[[], Iterable[Metric]]] = []  # other sinks
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(namespace="sandpaper_exporter",
                         registry=self._registry)

    # A sink

    def add(self, answer: Answer) -> None:
        """Take an answer."""
        with self._lock:
            step = self._growth.add(answer)
            before = self._answer or answer
            self._looks += 1
            self._answer, self._up, self._body = answer, True, None
            bounds = len(answer.whole["wait_bounds_s"])
            self._begin(UNMAPPED)
            for seen in self._growth.tenants.values():
                if seen.label is not None and seen.label not in self._totals:
                    self._begin(seen.label)
                    self._waits[seen.label] = [0] * (bounds + 1)
                    self._sizes[seen.label] = 0
            if step is None:
                return
            self._fade(answer.boot_s - before.boot_s)
            for label, grown in step.grown.items():
                add(self._totals[label], grown)
                if grown[CPU]:
                    self._used[label] = self._used.get(label, 0) + grown[CPU]
            for label, waits in step.waits.items():
                add(self._waits[label], waits)
                self._sizes[label] += sum(waits)

    def _fade(self, seconds: float) -> None:
        """Let CPU time count less and less."""
        part = math.exp(-seconds / NOW)
        self._used = {label: used * part for label, used in self._used.items()
                      if used * part > LEAST}

    def _begin(self, label: str) -> None:
        """Let a label's counters begin: a rate needs the 0."""
        self._totals.setdefault(label, [0] * len(COUNTERS))

    def lost(self, lost: Lost) -> None:
        """Note that there was no answer."""
        with self._lock:
            self._growth.lost(lost)
            self._looks += 1
            self._failures += 1
            self._up, self._body = False, None

    def _choose(self) -> None:
        """Choose who has a histogram: the largest, but seldom others."""
        size = self._sizes
        if len(size) <= self._histograms:
            self._shown = set(size)
            return
        small = sorted(self._shown, key=size.__getitem__, reverse=True)
        for name in nlargest(self._histograms, size, key=size.__getitem__):
            if name in self._shown:
                continue
            if len(self._shown) >= self._histograms:
                if size[name] <= STAYS * size[small[-1]]:
                    break
                self._shown.remove(small.pop())
            self._shown.add(name)

    # A page

    def page(self) -> Body:
        """Return the text for Prometheus."""
        with self._lock:
            if self._body is None:
                self._body = Body(CONTENT_TYPE_LATEST, self._text())
            return self._body

    def _text(self) -> bytes:
        lines: list[str] = []
        self._choose()
        self._write_counters(lines)
        if self._answer is not None:
            self._write_gauges(self._answer, lines)
            self._write_waits(self._answer.whole["wait_bounds_s"], lines)
        own: bytes = generate_latest(self._registry)
        return own + "".join(lines).encode()

    def collect(self) -> Iterator[Metric]:
        """Yield what there is once; prometheus-client asks for it."""
        yield gauge("up", "1 if varnishd has answered the last look.",
                    self._up)
        yield counter("looks", "How often varnishd was asked.", self._looks)
        yield counter("failed_looks", "How often it did not answer.",
                      self._failures)
        for more in self.more:
            yield from more()
        if self._answer is None:
            return
        whole = self._answer.whole
        yield gauge("answer_timestamp_seconds",
                    "When varnishd was asked for these figures.",
                    self._answer.at)
        yield gauge("answer_seconds", "How long its answer took.",
                    self._answer.took_s)
        mode = GaugeMetricFamily(
            "sandpaper_mode", "The mode: 1 for the one that is in force.",
            labels=["mode"])
        for name in MODES:
            mode.add_metric([name], whole["mode"] == name)
        yield mode
        for f in WHOLE:
            value = whole.get(f.key, 0) * f.scale
            if f.name.endswith("_total"):
                yield counter(f.name.removesuffix("_total"), f.text, value)
            else:
                yield gauge(f.name, f.text, value)

    def describe(self) -> Iterable[Metric]:
        """Return nothing: there is one collector, so no name is there twice."""
        return []

    def _write_counters(self, lines: list[str]) -> None:
        labels = [(f'tenant="{escaped(name)}"', total)
                  for name, total in sorted(self._totals.items())]
        last = ""
        for i, f in enumerate(COUNTERS):
            if f.name != last:
                lines.append(head(f, "counter"))
            last = f.name
            start = f"{PREFIX}{f.name}{{"
            end = f",{f.label}}}" if f.label else "}"
            lines += [f"{start}{label}{end} {total[i]}\n"
                      for label, total in labels]

    def _write_gauges(self, answer: Answer, lines: list[str]) -> None:
        """Write those of the tenants that do most."""
        labels = self._growth.labels
        rows = [r for r in answer.rows
                if r["mapped"] and r["tenant"] in labels]
        if len(rows) > self._gauges:
            rows = nlargest(self._gauges, rows, key=lambda r: (
                r["waiting"] + r["running"],
                self._used.get(r["tenant"], 0)))
        rows.sort(key=lambda r: str(r["tenant"]))
        for f in GAUGES:
            lines.append(head(f, "gauge"))
            lines += [f'{PREFIX}{f.name}{{tenant="{escaped(r["tenant"])}"}} '
                      f"{r[f.key]}\n" for r in rows]

    def _write_waits(self, bounds: Sequence[float], lines: list[str]) -> None:
        whole = Field(WAITS, HISTOGRAM, HISTOGRAM_TEXT)
        lines.append(head(whole, "histogram"))
        ends = [*(f'",le="{b:g}"}} ' for b in bounds), '",le="+Inf"} ']
        at = next(i for i, f in enumerate(COUNTERS) if f.key == "wait_s")
        for name in sorted(self._shown):
            label = f'{{tenant="{escaped(name)}'
            start = f"{PREFIX}{HISTOGRAM}_bucket{label}"
            count = 0
            for end, more in zip(ends, self._waits[name], strict=True):
                count += more
                lines.append(f"{start}{end}{count}\n")
            lines.append(f'{PREFIX}{HISTOGRAM}_sum{label}"}} '
                         f"{self._totals[name][at]}\n"
                         f'{PREFIX}{HISTOGRAM}_count{label}"}} {count}\n')


def head(f: Field, kind: str) -> str:
    """Return what comes before a metric's lines."""
    name = PREFIX + f.name
    return f"# HELP {name} {f.text}\n# TYPE {name} {kind}\n"


def escaped(name: str) -> str:
    """Return a tenant's name as the value of a label.

    Names that are no UTF-8 stay different from one another.
    """
    if name.isalnum() and name.isascii():
        return name
    return (name.encode("utf-8", "backslashreplace").decode()
            .replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n"))


def gauge(name: str, text: str, value: float) -> Metric:
    """Return a gauge without labels."""
    return GaugeMetricFamily(f"sandpaper_{name}", text, value=value)


def counter(name: str, text: str, value: float) -> Metric:
    """Return a counter without labels."""
    return CounterMetricFamily(f"sandpaper_{name}", text, value=value)
