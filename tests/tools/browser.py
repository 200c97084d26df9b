# SPDX-License-Identifier: BSD-2-Clause
"""A headless Chromium that a test drives, over a pair of pipes.

Chromium reads commands from descriptor 3 and writes to 4, each a JSON text
that ends with a zero byte: the Chrome DevTools Protocol.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import pytest
from common import TIMEOUT

CHROMIUM = shutil.which("chromium")
OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
           "--disable-dev-shm-usage", "--disable-background-networking",
           "--remote-debugging-pipe")
PIPES = 'exec "$@" 3<&0 4>&1 </dev/null >/dev/null'


class Browser:
    """One tab, what its console said, and what it asked for."""

    def __init__(self, profile: Path) -> None:
        if CHROMIUM is None:
            pytest.skip("chromium is not installed")
        self.console: list[str] = []
        self.requests: list[str] = []
        self._said = profile.with_suffix(".log").open("wb")
        self._process = subprocess.Popen(
            ["sh", "-c", PIPES, "sh", CHROMIUM, *OPTIONS,
             f"--user-data-dir={profile}", "about:blank"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said)
        self._got = b""
        self._last = 0
        self._session = ""
        self._attach()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End it, and wait for it."""
        self._send("Browser.close")
        try:
            self._process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._said):
            if pipe is not None:
                pipe.close()

    def _attach(self) -> None:
        """Take the tab that is there."""
        def tabs() -> list[str]:
            found = self.call("Target.getTargets")["targetInfos"]
            return [t["targetId"] for t in found if t["type"] == "page"]

        while not tabs():
            pass
        self._session = self.call(
            "Target.attachToTarget", targetId=tabs()[0],
            flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    # The protocol

    def _send(self, method: str, **params: object) -> int:
        """Send a command; return its number."""
        self._last += 1
        command = {"id": self._last, "method": method, "params": params}
        if self._session and not method.startswith("Browser."):
            command["sessionId"] = self._session
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command).encode() + b"\0")
        self._process.stdin.flush()
        return self._last

    def call(self, method: str, **params: object) -> dict[str, Any]:
        """Return the answer to a command."""
        number = self._send(method, **params)
        while True:
            message = self._message()
            if message.get("id") == number:
                assert "error" not in message, message
                result: dict[str, Any] = message["result"]
                return result
            self._event(message.get("method"), message.get("params", {}))

    def _message(self) -> dict[str, Any]:
        """Return the next message."""
        assert self._process.stdout is not None
        pipe = self._process.stdout.fileno()
        while b"\0" not in self._got:
            assert select.select([pipe], [], [], TIMEOUT)[0], "no answer"
            more = os.read(pipe, 1 << 16)
            assert more, "chromium has ended"
            self._got += more
        text, _, self._got = self._got.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        return message

    def _event(self, name: str | None, params: dict[str, Any]) -> None:
        """Keep what a test asks about."""
        if name == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif name == "Runtime.exceptionThrown":
            self.console.append(json.dumps(params["exceptionDetails"]))
        elif name == "Runtime.consoleAPICalled":
            self.console.append(json.dumps(params["args"]))
        elif name == "Log.entryAdded":
            self.console.append(json.dumps(params["entry"]))

    # What a test does with it

    def resize(self, width: int, height: int = 900) -> None:
        """Be a window, or a phone, of this size."""
        self.call("Emulation.setDeviceMetricsOverride", width=width,
                  height=height, deviceScaleFactor=1, mobile=width < 500)

    def scheme(self, name: str) -> None:
        """Prefer `dark` or `light`."""
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": name}])

    def open(self, url: str) -> None:
        """Go to a page, and wait until it is there."""
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete'")

    def run(self, script: str) -> Any:  # noqa: ANN401
        """Return the value of an expression in the page."""
        done = self.call("Runtime.evaluate", expression=script,
                         returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def until(self, script: str, good: Callable[[Any], object] = bool
              ) -> Any:  # noqa: ANN401
        """Return the value of an expression once it is good."""
        end = time.monotonic() + TIMEOUT
        while not good(value := self.run(script)):
            assert time.monotonic() < end, f"{script}: {value!r}"
            time.sleep(0.05)
        return value

    def press(self, selector: str) -> None:
        """Click on what a selector finds, where it is on the screen."""
        at = self.run(f"""(() => {{
            const e = document.querySelector({json.dumps(selector)});
            e.scrollIntoView({{block: "center"}});
            const r = e.getBoundingClientRect();
            return [r.x + r.width / 2, r.y + r.height / 2]; }})()""")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=at[0],
                      y=at[1], button="left", clickCount=1)

    def write(self, text: str) -> None:
        """Type text where the focus is."""
        self.call("Input.insertText", text=text)

    def screenshot(self) -> str:
        """Return a picture of the whole page, in base64."""
        picture: str = self.call("Page.captureScreenshot",
                                 captureBeyondViewport=True)["data"]
        return picture
