# SPDX-License-Identifier: BSD-2-Clause
"""The roll-out of doc/operate.md, each step under load: no request is lost,
and the group that is tried gets its share.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from common import TIMEOUT
from sandpaper_bench.load import build_loadgen
from sandpaper_bench.work import room, work_vcl
from varnishd import HELLO, Varnishd

WINDOWS = 5  # at most, until one is undisturbed
FIRST = 10  # slices of 0.1 s, in which connections come
GROUP = """
import sandpaper;
sub vcl_init {
	sandpaper.group("trial");
	sandpaper.tenant("shop");
	sandpaper.member("shop", "trial");
	sandpaper.host("shop", "shop.example");
	sandpaper.tenant("(unknown)", weight = 3.0, queue_limit = 100000);
}
"""
ALL = GROUP + """
sub vcl_init {
	sandpaper.tenant("blog");
	sandpaper.host("blog", "blog.example");
}
"""


def step(varnishd: Varnishd, *commands: str) -> bool:
    """Take a step in the middle of a load: no request may fail.

    Did each of both have answers all the time?
    """
    before = varnishd.counter("MAIN.client_req")
    with subprocess.Popen(
            [build_loadgen(), "-w", "0", "-t", "3",
             f"127.0.0.1:{varnishd.port}",
             "name=trial,host=shop.example,conns=100",
             "name=blog,host=blog.example,conns=300"],
            stdout=subprocess.PIPE, text=True) as load:
        varnishd.await_counter("MAIN.client_req", before + 20, 1 << 40)
        for command in commands:
            varnishd.cli(*command.split())
        out, _ = load.communicate(timeout=TIMEOUT)
    groups = json.loads(out.splitlines()[-1])["groups"]
    for group in groups:
        assert group["answered_in_all"] > 0, group
        assert (group["errors"], group["not_200"]) == (0, 0), group
    return all(min(group["slices"][FIRST:-1]) > 0 for group in groups)


def used(varnishd: Varnishd) -> tuple[float, float]:
    """Return the CPU time of the group, and of all others."""
    return (varnishd.tenant("(trial)")["cpu_s"],
            varnishd.tenant("(unknown)")["cpu_s"])


def test_no_step_loses_a_request(varnishd: Varnishd, folder: Path) -> None:
    text = HELLO.replace("sub vcl_recv {", f"""\
sub vcl_recv {{
{work_vcl(300)}""")
    varnishd.start("sandpaper=observe", "sandpaper_cores=1",
                   "sandpaper_new_hosts=tenant", *room(text), vcl=text)
    for name, more in (("group", GROUP), ("all", ALL)):
        (folder / f"{name}.vcl").write_text(
            text.replace("vcl 4.1;", "vcl 4.1;" + more))
        varnishd.cli("vcl.load", name, f"{folder}/{name}.vcl")
    step(varnishd, "vcl.use group")
    step(varnishd, "param.set sandpaper on")
    for _ in range(WINDOWS):
        before = used(varnishd)
        if step(varnishd):
            break
    else:
        pytest.fail(f"never undisturbed in {WINDOWS} windows")
    trial, rest = (b - a for a, b in zip(before, used(varnishd), strict=True))
    assert 0.2 < trial / (trial + rest) < 0.3  # 1 of 1 + 3
    step(varnishd, "param.set sandpaper observe", "vcl.use all")
    step(varnishd, "param.set sandpaper on")
    step(varnishd, "param.set sandpaper off")
    varnishd.cli("param.set", "sandpaper", "on")
    varnishd.assert_alive()
