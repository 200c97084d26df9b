# SPDX-License-Identifier: BSD-2-Clause
"""sandpaper-top, as it is installed, and a varnishd that runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from common import ROOT, needs_varnish, ran
from sandpaper_bench.testbed import free_port
from terminal import Terminal

from varnishd import HELLO, Varnishd, answered

PROGRAM = f"{ROOT}/bin/sandpaper-top"
TENANTS = 10_000
MAP = HELLO.replace("sub vcl_recv", """import sandpaper;
sub vcl_init { sandpaper.tenants_file("%s"); }
sub vcl_recv""")

pytestmark = needs_varnish


def start(varnishd: Varnishd, tenants: str, *params: str,
          **more: Any) -> list[str]:  # noqa: ANN401
    """Start it with these tenants; return the options that name it."""
    file = varnishd.folder / "tenants"
    file.write_text(tenants)
    varnishd.start("sandpaper_cores=1", *params, vcl=MAP % file, **more)
    return ["-n", f"{varnishd.folder}/n"]


def printed(*options: str) -> dict[str, Any]:
    """Return what is printed as JSON."""
    done = ran(PROGRAM, "--once", "--json", "--interval", "0.1", *options)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def names(found: dict[str, Any]) -> list[str]:
    """Return the names of tenants that a map has."""
    return [r["name"] for r in found["rows"] if r["name"][0] != "("]


@contextmanager
def shown(*options: str) -> Iterator[Terminal]:
    """The live view, which the test leaves as it is, and which ends well."""
    t = Terminal([PROGRAM, "--interval", "0.1", *options], lines=60)
    try:
        t.expect("figures of")
        yield t
        t.type("q")
        assert t.end() == 0
    finally:
        t.close()


def test_by_name_and_by_address(varnishd: Varnishd) -> None:
    secret = varnishd.folder / "secret"
    secret.write_text("what nobody knows\n")
    address = f"127.0.0.1:{free_port()}"
    by_name = start(varnishd, "shop shop.example\n",
                    arguments=["-T", address, "-S", str(secret)])
    by_address = ["-T", address, "-S", str(secret)]
    for options in (by_name, by_address):
        assert names(printed(*options)) == ["shop"], options
        with shown(*options) as t:
            t.type("/shop\r")
            t.expect("shop ")
    other = varnishd.folder / "other"
    other.write_text("something else\n")
    for wrong in (["-T", address, "-S", str(other)],
                  ["-T", f"127.0.0.1:{free_port()}"]):
        done = ran(PROGRAM, "--once", *wrong, status=1)
        assert done.stderr.startswith("sandpaper-top: no answer from varnishd")
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(("tenants", "limit"), [
    (TENANTS, "1m"), (TENANTS // 10, "16k")])
def test_many_tenants(varnishd: Varnishd, tenants: int, limit: str) -> None:
    """Whatever varnishd's limit of an answer is: all come, each once."""
    options = start(
        varnishd, "".join(f"tenant-{n:05} t{n}.example\n"
                          for n in range(tenants)),
        f"cli_limit={limit}", f"sandpaper_tenants_max={2 * tenants}")
    found = names(printed(*options, "--sort", "tenant"))
    assert found == [f"tenant-{n:05}" for n in range(tenants)]
    with shown(*options) as t:
        t.type("/tenant-0007\r")
        t.expect(r"(?s)tenant-00079.*10 of \d+ match")


def test_rates_and_history(varnishd: Varnishd) -> None:
    options = start(varnishd, "shop shop.example weight=2\nblog b.example\n")
    with shown(*options, "--filter", "shop") as t:
        client = varnishd.connect()
        for _ in range(100):
            assert varnishd.get("shop.example", client=client) == 200
        t.expect("shop +[1-9][0-9.]* +[0-9]+ % +2 .*[▂▃▄▅▆▇█]")


def test_the_page_of_a_tenant_that_waits(varnishd: Varnishd) -> None:
    options = start(varnishd, "shop shop.example\nblog b.example\n")
    varnishd.cli("debug.sandpaper.freeze")  # no request is released
    clients = [varnishd.ask("shop.example") for _ in range(3)]
    varnishd.await_counter("SANDPAPER.waiting", 3)
    with shown(*options) as t:
        t.type("i\r")  # who fills the queue
        t.expect("(?s)^.*shop.*3 of its requests wait.*completed_per_s"
                 ".*wait p99.*waits_for")
        t.type("\x1b")
        t.expect("tenant ")
        varnishd.cli("debug.sandpaper.thaw")
        answered(clients)


def test_a_worker_that_begins_again(varnishd: Varnishd) -> None:
    """It is waited for."""
    options = start(varnishd, "shop shop.example\n")
    with shown(*options) as t:
        varnishd.cli("stop")
        t.expect("the worker process does not run: .*; waiting for it")
        varnishd.cli("start")
        assert varnishd.get("shop.example") == 200
        t.type("nn")
        t.expect("tenant▼")
