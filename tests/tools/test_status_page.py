# SPDX-License-Identifier: BSD-2-Clause
"""The status page in a real browser, of a real exporter and varnishd."""

from __future__ import annotations

import http.client
import json
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from common import TIMEOUT, until

pytest.importorskip("prometheus_client")

from browser import Browser
from exporter_samples import START, Exporter, answer
from sandpaper_ask import Varnishadm
from sandpaper_exporter.poll import Lost, boot_s
from sandpaper_exporter.status import (
    HISTORY,
    WINDOW,
    Rates,
    Ring,
    Status,
    point_of,
)

from varnishd import Varnishd, answered, work

EVIL = """"'><script>document.title='evil'</script>"""
PHONE, DESKTOP = 360, 1280
NAMES = """[...document.querySelectorAll("#rows td:first-child")].map(
    (e) => e.firstChild.textContent)"""
HEAD = 'document.querySelector("#head")?.innerText ?? ""'
STATE = 'document.querySelector("#state")?.textContent'
WORK = """vcl 4.1;
backend none none;
sub vcl_recv {
	if (req.http.host == "busy.example") {
%s	}
	return (synth(200));
}
""" % work(100)


@pytest.fixture
def exporter(varnishd: Varnishd) -> Exporter:
    """An exporter of a varnishd whose every Host is a tenant."""
    varnishd.start("sandpaper_new_hosts=tenant", "sandpaper_queue_limit=1",
                   "workspace_client=1m", vcl=WORK)
    return Exporter(varnishd).await_value("sandpaper_up", 1)


@pytest.fixture
def browser(varnishd: Varnishd) -> Iterator[Browser]:
    """A browser, which ends with the test."""
    with Browser(varnishd.folder / "profile") as made:
        yield made


def ask(varnishd: Varnishd) -> None:
    """Let three tenants use something, the busy one most."""
    for host, times in (("busy.example", 20), (EVIL, 2), ("calm.example", 2)):
        with varnishd.connect() as client:
            for _ in range(times):
                assert varnishd.get(host, client=client) == 200


def at(browser: Browser, exporter: Exporter, width: int,
       varnishd: Varnishd) -> None:
    """Open the page in a window of this width, and wait for figures.

    Tenants use something until then: an exporter may look seldom.
    """
    ask(varnishd)
    browser.resize(width)
    browser.open(f"http://127.0.0.1:{exporter.port}/")
    browser.until(NAMES, lambda names: names and len(names) > 3)
    # Three tenants, and the rest
    browser.until("document.querySelectorAll('#cpu .area').length",
                  lambda many: many >= 4 or ask(varnishd))


def test_an_answer_that_varnishd_cuts(varnishd: Varnishd) -> None:
    """The table has as many tenants as have room in an answer."""
    varnishd.start("sandpaper_new_hosts=tenant", "cli_limit=16k")
    hosts = {f"{n}.example" for n in range(50)}
    for host in hosts:
        assert varnishd.get(host) == 200
    exporter = Exporter(varnishd)
    until(lambda: status_json(exporter)["state"] == "up", exporter.said)
    assert 5 <= len(status_json(exporter)["list"]) < 50
    assert "cannot be read" not in exporter.said()


def status_json(exporter: Exporter) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(exporter.get("/status.json"))
    return found


@pytest.mark.parametrize("width", [PHONE, DESKTOP])
def test_figures(varnishd: Varnishd, exporter: Exporter, browser: Browser,
                 width: int) -> None:
    """They are there, fit in the window, and can be sorted and filtered."""
    at(browser, exporter, width, varnishd)
    assert browser.run(NAMES)[0] == "busy.example"
    head = browser.run(HEAD)
    for text in (r"mode\s+on", r"waiting\s+0", r"tenants\s+3\b",
                 r"cpu used\s+[\d.]+ cores"):
        assert re.search(text, head), head
    assert browser.run(STATE).startswith("varnishd answers.")
    assert browser.run(
        "document.querySelectorAll('#net .area').length") >= 4
    assert browser.run("document.querySelector('#names').innerText"
                       ).startswith("1. busy.example")
    # Sort: by name, and again the other way round
    by_name = sorted([EVIL, "(other)", "busy.example", "calm.example"])
    browser.press('button[data-key="tenant"]')
    assert browser.run(NAMES) == by_name
    browser.press('button[data-key="tenant"]')
    assert browser.run(NAMES) == by_name[::-1]
    assert browser.run("document.querySelector('th[data-key=tenant]')"
                       ".getAttribute('aria-sort')") == "descending"
    # Filter; it stays when new figures come
    browser.press("#filter")
    browser.write("CALM")
    assert browser.run(NAMES) == ["calm.example"]
    shown = browser.run("found.now")
    browser.until("found.now", lambda now: now > shown)
    assert browser.run(NAMES) == ["calm.example"]
    assert browser.run("document.documentElement.scrollWidth") <= width
    quiet(browser, exporter)


def quiet(browser: Browser, exporter: Exporter) -> None:
    """Nothing was wrong, and nothing was asked of anybody else."""
    assert browser.console == []
    here = f"http://127.0.0.1:{exporter.port}/"
    others = {url for url in browser.requests if not url.startswith("data:")}
    assert others == {here, f"{here}status.json"}
    assert browser.run("document.cookie") == ""


def test_names_are_text(varnishd: Varnishd, exporter: Exporter,
                        browser: Browser) -> None:
    """Not even with a policy that allows all: names make no element."""
    browser.call("Page.setBypassCSP", enabled=True)
    at(browser, exporter, DESKTOP, varnishd)
    assert EVIL in browser.run(NAMES)
    assert browser.run("document.querySelectorAll('script').length") == 1
    assert browser.run("document.title") == "Sandpaper"
    assert EVIL in browser.run("document.querySelector('#names').innerText")
    quiet(browser, exporter)


def test_policy(exporter: Exporter, browser: Browser) -> None:
    """A script that is not the page's own does not run."""
    browser.open(f"http://127.0.0.1:{exporter.port}/")
    browser.until(STATE, lambda text: text and "answers" in text)
    browser.run("""document.body.append(Object.assign(
        document.createElement("script"), {textContent: "evil = 1"}))""")
    assert browser.run("typeof evil") == "undefined"
    assert "Content Security Policy" in " ".join(browser.console)


def test_waits_and_refusals(varnishd: Varnishd, exporter: Exporter,
                            browser: Browser) -> None:
    def refused_now(title: str) -> bool:
        """Does it say so?  If not, the last refusals may be too old."""
        return (bool(title) and "full 0/s" not in title) or not varnishd.get(
            "b")

    varnishd.cli("debug.sandpaper.freeze")
    clients = [varnishd.ask(host) for host in ("a", "b", "c")]
    varnishd.cli("debug.sandpaper.wait 3")
    for _ in range(5):
        assert varnishd.get("b") == 503
    browser.resize(PHONE)
    browser.open(f"http://127.0.0.1:{exporter.port}/")
    browser.until(HEAD, lambda text: re.search(r"waiting\s+3", text))
    title = browser.until(
        """[...document.querySelectorAll("#rows tr")].filter(
            (e) => e.firstChild.firstChild.textContent === "b").map(
            (e) => e.querySelector('[data-label="refused"]').title)[0]""",
        refused_now)
    assert re.fullmatch(r"full [\d.]+/s, target 0/s, late 0/s, fetch 0/s",
                        title)
    legend = 'document.querySelector("#%s-legend").innerText'
    browser.until(legend % "refused", lambda text: re.search(
        r"full \(most: (?!0/)[\d.]+/s\)", text))
    assert "waiting requests (most: 3)" in browser.run(legend % "waits")
    varnishd.cli("debug.sandpaper.thaw")
    answered(clients)
    browser.until(HEAD, lambda text: re.search(r"waiting\s+0", text))
    quiet(browser, exporter)


def test_varnishd_that_is_gone(varnishd: Varnishd, exporter: Exporter,
                               browser: Browser) -> None:
    """The page says so, and shows the last figures with their age."""
    at(browser, exporter, DESKTOP, varnishd)
    varnishd.cli("stop")
    text = browser.until(STATE, lambda text: "varnishd is gone" in text)
    browser.until(STATE, lambda now: "gone" in now and now != text)
    assert re.search(r"These figures are \d+ s old\.$", browser.run(STATE))
    assert "busy.example" in browser.run(NAMES)
    varnishd.cli("start")
    browser.until(STATE, lambda text: text.startswith("varnishd answers."))
    # The exporter, too, may go away
    exporter.kill()
    browser.until(STATE, lambda text: text.startswith(
        "The exporter does not answer. These figures are"))


def test_dark_and_light(exporter: Exporter, browser: Browser) -> None:
    light = []
    browser.open(f"http://127.0.0.1:{exporter.port}/")
    for scheme in ("dark", "light"):
        browser.scheme(scheme)
        color = browser.run("getComputedStyle(document.body).backgroundColor")
        light.append(sum(map(int, re.findall(r"\d+", color))) > 3 * 128)
    assert light == [False, True]


def test_a_client_can_only_read(exporter: Exporter) -> None:
    for path in ("/", "/status.json", "/metrics"):
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE", "X"):
            said = asked(exporter, method, path)
            assert (said.status, said.getheader("Allow")) == (
                405, "GET, HEAD")
        said = asked(exporter, "HEAD", path)
        assert said.status == 200
        policy = said.getheader("Content-Security-Policy") or ""
        assert policy.startswith("default-src 'none'; ")
        assert "unsafe" not in policy
        assert said.getheader("Set-Cookie") is None


def asked(exporter: Exporter, method: str, path: str
          ) -> http.client.HTTPResponse:
    """Return the answer to a request, whose body is empty for HEAD."""
    client = http.client.HTTPConnection("127.0.0.1", exporter.port,
                                        timeout=TIMEOUT)
    client.request(method, path)
    said = client.getresponse()
    assert (said.read() == b"") == (method == "HEAD")
    client.close()
    return said


def test_only_names_and_figures_leave(varnishd: Varnishd, exporter: Exporter
                                      ) -> None:
    """Not even the folder of a varnishd that is gone."""
    ask(varnishd)
    until(lambda: len(status_json(exporter)["list"]) == 4)
    varnishd.end()
    until(lambda: status_json(exporter)["state"] == "stopped")
    text = exporter.get("/status.json")
    assert str(varnishd.folder) not in text
    found = json.loads(text)
    assert set(found) == {"now", "state", "window_s", "history_s", "causes",
                          "at", "whole", "rates", "list", "points"}


# Without a server


def row(name: str, used: float, **more: object) -> dict[str, Any]:
    return {"tenant": name, "cpu_part": used, "net_part": used / 2,
            "used_part": used, "wait_p99_s": 0.5, **more}


def test_point_has_the_top_and_the_rest() -> None:
    rows = [row(f"t{n:02}", n / 1000) for n in range(30)]
    point = point_of({"waiting": 7}, [*rows, row("(g)", 9, members=3)], None)
    assert set(point["tenants"]) == {f"t{n}" for n in range(20, 30)}
    assert point["rest"] == pytest.approx([0.19, 0.095])
    assert (point["waiting"], point["wait_p99_s"]) == (7, 0.5)


def test_ring_is_bounded() -> None:
    ring = Ring()
    for second in range(5 * HISTORY):
        ring.add(float(second), {"tenants": {}})
    times = [at for at, _ in ring.points()]
    assert len(times) == HISTORY // WINDOW + 2
    assert {b - a for a, b in zip(times, times[1:], strict=False)} == {10}


def test_ring_of_a_varnishd_that_comes_and_goes() -> None:
    """It is bounded, and goes back as far as ever."""
    ring = Ring()
    for second in range(5 * HISTORY):
        ring.add(float(second), {"tenants": {}})
        ring.gap(second + 0.3)
        ring.gap(second + 0.6)
    points = list(ring.points())
    assert len(points) == 2 * (HISTORY // WINDOW + 2)
    times = [at for at, _ in points]
    assert times == sorted(times)
    assert times[0] <= 4 * HISTORY
    # Each gap is between figures
    assert ["tenants" in p for _, p in points] == [True, False] * 62


def test_gaps_of_the_ring() -> None:
    """One is where it was, with figures before and after it."""
    ring = Ring()
    for second in (0, 1):
        ring.add(float(second), {"tenants": {}})
    for second in range(2, 100):
        ring.gap(float(second))
    for second in (100, 101):
        ring.add(float(second), {"tenants": {}})
    assert [(at, "tenants" in p) for at, p in ring.points()] == [
        (1, True), (2, False), (101, True)]
    ring.gap(102)
    ring.add(103, {"tenants": {}})
    assert [(at, "tenants" in p) for at, p in ring.points()][2:] == [
        (102, False), (103, True)]


def test_rates() -> None:
    rates = Rates()

    def sums(seconds: float, n: int, started: float = START
             ) -> dict[str, Any] | None:
        found = answer(seconds, rest=n, started=started)
        found.whole["sums"]["net_s"] = n / 1000
        return rates.add(found)

    assert sums(0, 0) is None
    for second in range(1, 30):
        found = sums(second, 100 * second)
        assert found is not None
        assert found["completed"] == pytest.approx(100)
        assert found["cpu_cores"] == pytest.approx(1)
        assert found["net_part"] == pytest.approx(0.1)
    # A worker process that begins again begins at 0
    assert sums(30, 0, START + 29) is None


def test_the_last_points_go_with_time() -> None:
    """A page of a varnishd that is long gone has no old timeline."""
    status = Status(Varnishadm("varnishadm", []))
    now = boot_s()
    for ago in (HISTORY + 60, HISTORY - 60):
        status._ring.add(now - ago, {"tenants": {}})
    # By a clock that was another one
    status.lost(Lost(START, "/a/path", gone=False))
    found = json.loads(status.page().text)
    assert [round(time.time() - p["at"]) for p in found["points"]] == [
        HISTORY - 60, 0]
    assert found["state"] == "silent"
    assert b"/a/path" not in status.page().text
