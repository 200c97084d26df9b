# SPDX-License-Identifier: BSD-2-Clause
"""What CPU time is measured by is missing: the log says so once, and it is
measured by something else."""

from __future__ import annotations

import re

import pytest

from varnishd import Varnishd

REQUESTS = 20
NO_RSEQ = {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}
REFUSED = (r"^perf::task-clock cannot be counted \(Permission denied\); using "
           "thread-clock instead")


# perf::task-clock is a counter that any machine has
@pytest.mark.parametrize(("counter", "env", "says"), [
    ("perf::task-clock", {}, REFUSED),
    ("thread-clock", NO_RSEQ, "^no (rseq|invariant TSC): only a sample of the "
     "requests is measured$"),
    ("perf::task-clock", NO_RSEQ, f"{REFUSED}; no ")],
    ids=["perf_event_is_refused", "no_rseq", "neither"])
def test_no_counter(varnishd: Varnishd, counter: str, env: dict[str, str],
                    says: str) -> None:
    varnishd.start("sandpaper_sample=1", f"sandpaper_counter={counter}",
                   "sandpaper_nic_rate=1G",
                   preload="refused", NO_PERF=varnishd.folder, **env)
    for client in 2 * [varnishd.connect() for _ in range(REQUESTS // 2)]:
        assert varnishd.get("a.example", client=client) == 200
    varnishd.await_counter("SANDPAPER.completed", REQUESTS)
    said, = (line.split("Sandpaper: ")[1] for line in
             varnishd.log("-i", "Notice", "-i", "Error")
             if "Sandpaper: " in line and "security patches" not in line)
    assert re.search(says, said)
    assert varnishd.counter("SANDPAPER.measured") == REQUESTS
    assert varnishd.tenant("a.example")["cpu_s"] > 0
    assert "counter thread-clock" in varnishd.cli("sandpaper.list")
    varnishd.assert_alive()
