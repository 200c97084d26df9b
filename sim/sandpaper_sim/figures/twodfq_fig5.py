# SPDX-License-Identifier: BSD-2-Clause
"""2DFQ, Figure 5: two threads, tenants a and b with requests of 1 unit, c and
d of 4, all there from the start. WFQ (5c) and WF2Q (5d) serve large requests
on both threads at once, and small ones wait."""

from __future__ import annotations

from typing import Any

from .. import gantt
from ..figure import Context, Figure, Result
from ..releaser import KNOWN
from ..server import MS, pool

SIZES = {"a": 1, "b": 1, "c": 4, "d": 4}        # ms
REQUESTS = 9                                    # a tenant
# Thread 0 first, as in the figure.
PAPER = {"wfq": ["aaaac...aaaac...a", "bbbbd...bbbbd...b"],
         "wf2q": ["ac...aaaac...aaaa", "bd...bbbbd...bbbb"]}


def schedule(policy: str, units: int) -> list[str]:
    """A line a thread, one sign a ms."""
    server = pool(policy, 2, estimator=KNOWN)
    for _ in SIZES:
        server.tenant()

    def arrive() -> None:
        for tenant, size in enumerate(SIZES.values()):
            for _ in range(REQUESTS):
                server.submit(tenant, size * MS)

    server.at(0, arrive)
    server.run(100 * MS)
    return gantt.of_threads(server.releaser.records(), 2, MS, units,
                            "".join(SIZES))


def compare(paper: dict[str, list[str]]) -> Result:
    """Each policy's schedule beside the paper's."""
    results: list[dict[str, Any]] = []
    for policy, lines in paper.items():
        ours = schedule(policy, len(lines[0]))
        results.append({"policy": policy, "threads": ours,
                        "same": ours == lines})
    return Result(
        {"threads": 2, "sizes_ms": SIZES, "requests_per_tenant": REQUESTS},
        results, {"threads": paper},
        [text for r in results for text in (
            f"{r['policy']}: {'as in the paper' if r['same'] else 'differs'}",
            *(f"  W{i} {r['threads'][i]}" for i in (1, 0)))])


def run(_: Context) -> Result:
    """See Figure."""
    return compare(PAPER)


def plot(figure: Any, data: dict[str, Any]) -> None:  # noqa: ANN401
    """See Figure."""
    all_axes = figure.subplots(len(data["results"]), squeeze=False)[:, 0]
    for axes, r in zip(all_axes, data["results"], strict=True):
        gantt.draw(axes, [(f"W{i}", r["threads"][i]) for i in (1, 0)])
        axes.set_title(r["policy"])
    all_axes[-1].set_xlabel("time (ms)")


FIGURE = Figure("2dfq-fig5", "WFQ's and WF2Q's schedules of four tenants",
                run, plot)
