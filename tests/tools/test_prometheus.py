# SPDX-License-Identifier: BSD-2-Clause
"""Debian's Prometheus scrapes sandpaper-exporter: rates, alerts, dashboard."""

from __future__ import annotations

import json
import re
import subprocess
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from common import ROOT, TIMEOUT, TOP, ran, until
from exporter_samples import Exporter, series
from sandpaper_bench.testbed import free_port

from varnishd import HELLO, Varnishd, work

pytest.importorskip("prometheus_client")

DEBS = TOP / "build" / "debs"
BIN = DEBS / "prometheus" / "usr" / "bin"
OLD = (DEBS / "prometheus-varnish-exporter" / "usr" / "bin"
       / "prometheus-varnish-exporter")
EXAMPLES = TOP / "doc" / "examples" / "prometheus"
WINDOW = "10s"  # of rates here

pytestmark = pytest.mark.skipif(
    not (BIN.exists() and OLD.exists()),
    reason="no Prometheus in build/debs: make prometheus")


def promtool(*arguments: str) -> str:
    done = ran(BIN / "promtool", *arguments, cwd=EXAMPLES)
    return done.stdout + done.stderr


def test_alerts() -> None:
    said = promtool("test", "rules", "alerts_test.yml")
    assert "SUCCESS" in said


def test_each_alert_is_tested() -> None:
    """There is a case in which it fires."""
    rules = [line.split()[-1] for line in
             (EXAMPLES / "alerts.yml").read_text().splitlines()
             if "- alert:" in line]
    cases = (EXAMPLES / "alerts_test.yml").read_text().split("alertname: ")
    fires = {c.split()[0] for c in cases if "exp_labels" in c.split("- ")[0]
             or "exp_alerts:\n" in c.split("- ")[0]}
    assert set(rules) == fires


def test_configuration() -> None:
    assert "1 rule files found" in promtool(
        "check", "config", "prometheus.yml")


class Prometheus:
    """Scrapes an exporter each second; it ends with varnishd."""

    def __init__(self, varnishd: Varnishd, exporter: Exporter) -> None:
        self.port = free_port()
        folder = varnishd.folder / "prometheus"
        folder.mkdir()
        (folder / "alerts.yml").write_text(
            (EXAMPLES / "alerts.yml").read_text())
        (folder / "prometheus.yml").write_text(
            (EXAMPLES / "prometheus.yml").read_text()
            .replace("15s", "1s").replace(":9646", f":{exporter.port}"))
        self.log = folder / "log"
        with self.log.open("w") as log:
            process = subprocess.Popen(
                [BIN / "prometheus", f"--config.file={folder}/prometheus.yml",
                 f"--storage.tsdb.path={folder}/data",
                 f"--web.listen-address=127.0.0.1:{self.port}"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        varnishd.callback(process.wait, TIMEOUT)
        varnishd.callback(process.terminate)
        until(self.ready, self.log.read_text)

    def ready(self) -> bool:
        try:
            return bool(self.get("query", query="sandpaper_up")["result"])
        except OSError:
            return False

    def get(self, what: str, **parameters: str) -> Any:  # noqa: ANN401
        """Return what the API says."""
        with urllib.request.urlopen(
                f"http://127.0.0.1:{self.port}/api/v1/{what}?"
                + urllib.parse.urlencode(parameters), timeout=TIMEOUT) as r:
            found = json.load(r)
        assert found["status"] == "success"
        return found["data"]

    def query(self, text: str) -> dict[str, float]:
        """Return the values of a query, by tenant or ""."""
        return {r["metric"].get("tenant", ""): float(r["value"][1])
                for r in self.get("query", query=text)["result"]}


@contextmanager
def load(varnishd: Varnishd, *hosts: str) -> Iterator[None]:
    """Let clients ask for these Hosts, some at a time."""
    over = threading.Event()

    def ask(host: str) -> None:
        with varnishd.connect() as client:
            while not over.is_set():
                varnishd.get(host, client=client)

    threads = [threading.Thread(target=ask, args=(host,)) for host in hosts
               for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


VCL = HELLO.replace("sub vcl_recv {", f"""\
import sandpaper;
sub vcl_init {{
	sandpaper.tenant("my-shop");
	sandpaper.host("my-shop", "shop.example");
	sandpaper.tenant("blog");
	sandpaper.host("blog", "blog.example");
}}
sub vcl_hash {{ hash_data("x"); return (lookup); }}
sub vcl_backend_error {{
	set beresp.status = 200; set beresp.ttl = 1h; return (deliver);
}}
sub vcl_recv {{
{work(10)}	if (req.url == "/") {{ return (hash); }}""")


@pytest.fixture
def scraped(varnishd: Varnishd) -> tuple[Varnishd, Prometheus]:
    """A varnishd with two tenants, and a Prometheus."""
    varnishd.start("sandpaper_cores=1", "sandpaper_nic_rate=1000000000",
                   vcl=VCL)
    return varnishd, Prometheus(varnishd, Exporter(varnishd))


def queries() -> dict[str, str]:
    """Return the dashboard's queries, by the title of their panel."""
    board = json.loads((EXAMPLES / "dashboard.json").read_text())
    found = {f"{panel['title']} {target['refId']}": target["expr"]
             for panel in board["panels"] for target in panel["targets"]}
    found |= {a["name"]: a["expr"] for a in board["annotations"]["list"]}
    return {name: text.replace("$instance", ".*").replace("$tenant", ".*")
            .replace("$__rate_interval", WINDOW)
            for name, text in found.items()}


def test_dashboard_and_alerts(
        scraped: tuple[Varnishd, Prometheus]) -> None:
    """Under load each query has a result, and each rule can be evaluated."""
    varnishd, prometheus = scraped
    with load(varnishd, "shop.example", "blog.example", "other.example"):
        until(lambda: prometheus.query(
            f"rate(sandpaper_tenant_requests_total[{WINDOW}])").get(
                "(unmapped)", 0) > 0)
        for name, text in queries().items():
            if name == "Worker process began":
                assert prometheus.query(text) == {}
                continue
            until(lambda text=text: prometheus.query(text),
                  f"{name}: {text}")
        for variable in ("my-shop", "blog", "(unmapped)"):
            assert variable in prometheus.get("label/tenant/values")

        def not_ok() -> list[str]:
            return [rule for group in prometheus.get("rules")["groups"]
                    for rule in group["rules"] if rule["health"] != "ok"]

        until(lambda: not not_ok(), lambda: str(not_ok()))


def test_rates_are_right(scraped: tuple[Varnishd, Prometheus]) -> None:
    """What Prometheus adds up is what was asked for, across a restart."""
    varnishd, prometheus = scraped

    def ask(times: int) -> None:
        with varnishd.connect() as client:
            for _ in range(times):
                assert varnishd.get("shop.example", client=client) == 200

    name = "sandpaper_tenant_requests_total"
    ask(30)
    until(lambda: prometheus.query(name).get("my-shop") == 30)
    varnishd.cli("stop")
    until(lambda: prometheus.query("sandpaper_up") == {"": 0})
    varnishd.cli("start")
    until(lambda: prometheus.query("sandpaper_up") == {"": 1})
    ask(12)
    until(lambda: prometheus.query(name).get("my-shop") == 42)
    assert prometheus.query(f"resets({name}[5m])")["my-shop"] == 0


class OldExporter:
    """Debian's prometheus-varnish-exporter 1.6.1; it ends with varnishd."""

    def __init__(self, varnishd: Varnishd, varnishstat: str | Path) -> None:
        self.port = free_port()
        self.log = varnishd.folder / f"old-{self.port}.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [OLD, "-web.listen-address", f"127.0.0.1:{self.port}", "-n",
                 f"{varnishd.folder}/n", "-varnishstat-path", varnishstat],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        varnishd.callback(self.process.wait, TIMEOUT)
        varnishd.callback(self.process.terminate)

    def scrape(self) -> dict[str, float]:
        """Return all series, none if it does not answer."""
        try:
            with urllib.request.urlopen(
                    f"http://127.0.0.1:{self.port}/metrics",
                    timeout=TIMEOUT) as r:
                return series(r.read().decode())
        except OSError:
            return {}

    def ends(self) -> bool:
        self.scrape()
        return self.process.poll() is not None


def test_debians_exporter(varnishd: Varnishd) -> None:
    """It ends at a tenant my-shop, so doc/metrics.md leaves tenants out."""
    varnishd.start(vcl=VCL)
    assert varnishd.get("shop.example") == 200
    varnishd.await_counter("SANDPAPER_TENANT.my-shop.bytes", 1)
    old = OldExporter(varnishd, f"{ROOT}/bin/varnishstat")
    until(old.ends)
    assert "is not a valid metric name" in old.log.read_text()
    page = (TOP / "doc" / "metrics.md").read_text()
    script = re.search("```text\n(#!/bin/sh\n.*varnishstat.*\n)```", page)
    assert script is not None
    varnishstat = varnishd.folder / "varnishstat"
    varnishstat.write_text(script[1].replace("/opt/sandpaper", ROOT))
    varnishstat.chmod(0o755)
    old = OldExporter(varnishd, varnishstat)
    until(old.scrape, old.log.read_text)
    found = old.scrape()
    assert found["varnish_up"] == 1, old.log.read_text()
    names = {name.partition("{")[0] for name in found}
    assert "varnish_main_sandpaper_waiting" in names, sorted(names)
    assert not any("sandpaper_tenant_" in name for name in names)
