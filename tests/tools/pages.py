# SPDX-License-Identifier: BSD-2-Clause
"""An origin whose pages have the size that is asked for."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from common import TIMEOUT


class Origin(ThreadingHTTPServer):
    """Answers /BYTES/NAME with so many bytes, and counts the requests.

    While `go` is not set, it sends only the first half of a page.
    """

    daemon_threads = True
    request_queue_size = 200

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Page)
        self.asked: Counter[str] = Counter()
        self.go = threading.Event()
        self.go.set()


class Page(BaseHTTPRequestHandler):
    """One connection of varnishd."""

    server: Origin
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:  # noqa: N802
        self.server.asked[self.path] += 1
        size = int(self.path.split("/")[1])
        self.send_response(200)
        self.send_header("Content-Length", str(size))
        self.end_headers()
        self.wfile.write(b"x" * (size // 2))
        self.server.go.wait(TIMEOUT)
        self.wfile.write(b"x" * (size - size // 2))

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serve_pages() -> Iterator[Origin]:
    with Origin() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.go.set()
            server.shutdown()
            thread.join()
