# SPDX-License-Identifier: BSD-2-Clause
"""`observe`: all abuses at once, with limits that nobody can keep."""

from __future__ import annotations

import subprocess

import pytest
from common import TIMEOUT
from sandpaper_bench.abuses import ABUSES
from sandpaper_bench.customers import units_of, vcl
from sandpaper_bench.load import Group, build_loadgen
from sandpaper_bench.soak import mixed
from sandpaper_bench.testbed import Proxy
from sandpaper_bench.work import room, with_work
from varnishd import Varnishd

UNIT_US = 100  # work is not the point
LIMITS = {"full": "sandpaper_queue_limit=1",
          "target": "sandpaper_target=0.001",
          "late": "sandpaper_queue_timeout=0.001"}


def text(port: int) -> str:
    """Return the VCL of all abuses, whose origin has this port."""
    parts = dict.fromkeys(a.vcl for a in ABUSES.values())
    proxy = Proxy("proxy", "127.0.0.1", 1, "127.0.0.1", port, port)
    return with_work(vcl(proxy, units_of({}, UNIT_US), "".join(parts)),
                     UNIT_US)


@pytest.mark.parametrize("cause", LIMITS)
def test_no_abuse_is_refused(varnishd: Varnishd, cause: str) -> None:
    script = text(varnishd.origin())
    varnishd.start("sandpaper=observe", "feature=+http2", "sandpaper_cores=1",
                   "sandpaper_workers_per_core=1",
                   "sandpaper_new_hosts=tenant", "sandpaper_fetch_limit=1",
                   LIMITS[cause], *room(script),
                   vcl=script)
    worker = varnishd.worker()
    groups: list[Group] = mixed({name: a for name, a in ABUSES.items()
                                 if not a.needs})
    done = subprocess.run(
        [build_loadgen(), "-w", "0", "-t", "2", f"127.0.0.1:{varnishd.port}",
         *(g.spec() for g in groups)],
        capture_output=True, text=True, check=False, timeout=TIMEOUT)
    assert done.returncode == 0, done.stderr
    assert varnishd.worker() == worker, varnishd.said_until_now()
    assert varnishd.counter(f"SANDPAPER.would_refuse_{cause}") > 0
    for name in ("refused", "refused_late", "shed", "parts_closed"):
        assert varnishd.counter(f"SANDPAPER.{name}") == 0
    assert not varnishd.log("-q", 'Error ~ "^Sandpaper: limit"')
