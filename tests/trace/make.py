#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes arrivals.csv: twelve tenants on four threads. Some always wait, some
come and go, some come in bursts; costs are of three orders of magnitude. No two
things happen at one instant but the arrivals of a burst."""

from __future__ import annotations

import random
from pathlib import Path

REQUESTS = 3000
TENANTS = 12
HEAD = ("# ns, number, ns, ns: see tests/unit/test_releaser_trace.c\n"
        "time,tenant,cpu,net\n")


def cost(rng: random.Random, tenant: int) -> tuple[int, int]:
    """Median 0.2 to 3 ms; two tenants are bound by the link."""
    ns = int(rng.lognormvariate(0, 1.0) * 200_000 * 1.25 ** tenant) + 1
    if tenant % 6 == 5:
        return ns, 2 * ns
    return ns, ns // 3 if tenant % 2 else 0


def main() -> None:
    """Writes the file."""
    rng, now, rows = random.Random(4), 0, []
    while len(rows) < REQUESTS:
        now += 1 + int(rng.expovariate(1 / 1_400_000))
        tenant = rng.randrange(TENANTS)
        for _ in range(rng.choice((1, 1, 1, 1, 12))):
            rows.append((now, tenant, *cost(rng, tenant)))
    text = "".join(",".join(map(str, row)) + "\n" for row in rows)
    Path(__file__).with_name("arrivals.csv").write_text(HEAD + text)


if __name__ == "__main__":
    main()
