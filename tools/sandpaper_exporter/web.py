# SPDX-License-Identifier: BSD-2-Clause
"""The HTTP server: a table of paths, which only read.

A page is a function that returns its type and a Body.  To add one, add a line
to the table that main.py makes.
"""

from __future__ import annotations

import gzip
import socket
import socketserver
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

AT_ONCE = 16  # requests
SECONDS = 10  # that a client may take
WORTH = 1000  # bytes from which a body is compressed
LEVEL = 1  # of gzip: 10,000 tenants compress in a part of a second
NOTHING = "default-src 'none'; frame-ancestors 'none'"
METHODS = "GET, HEAD"


class Body:
    """The text of a page, and its compressed form once it is asked for."""

    def __init__(self, kind: str, text: bytes, policy: str = NOTHING) -> None:
        self.kind, self.text = kind, text
        self.policy = policy  # what a browser may load and run for it
        self._lock = threading.Lock()
        self._compressed: bytes | None = None

    def compressed(self) -> bytes:
        """Return it with gzip."""
        with self._lock:
            if self._compressed is None:
                self._compressed = gzip.compress(self.text, LEVEL)
            return self._compressed


Paths = Mapping[str, Callable[[], Body]]


class Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD."""

    server: Server
    server_version = "sandpaper-exporter"
    sys_version = ""
    protocol_version = "HTTP/1.0"  # a connection is for one request
    timeout = SECONDS

    def do_GET(self) -> None:  # noqa: N802
        """Answer with a page, if there is one."""
        page = self.server.paths.get(self.path.partition("?")[0])
        if page is None:
            self.send_error(404, explain="There are: "
                            + " ".join(sorted(self.server.paths)))
            return
        body = page()
        text = body.text
        packed = (len(text) >= WORTH
                  and "gzip" in self.headers.get("Accept-Encoding", ""))
        if packed:
            text = body.compressed()
        self.send_response(200)
        self.send_header("Content-Type", body.kind)
        if packed:
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(text)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Content-Security-Policy", body.policy)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    do_HEAD = do_GET  # noqa: N815

    def __getattr__(self, name: str) -> Callable[[], None]:
        """Answer all other methods."""
        if not name.startswith("do_"):
            raise AttributeError(name)
        return self.refuse

    def refuse(self) -> None:
        """Say that clients can only read."""
        text = f"allowed: {METHODS}\n".encode()
        self.send_response(405)
        self.send_header("Allow", METHODS)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Log no requests."""


class Server(ThreadingHTTPServer):
    """Serves a table of paths, to few clients at a time."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], paths: Paths) -> None:
        self.paths = paths
        self._free = threading.Semaphore(AT_ONCE)
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, Handler)

    def server_bind(self) -> None:
        """Listen, without a question to DNS."""
        socketserver.TCPServer.server_bind(self)
        self.server_name = str(self.server_address[0])
        self.server_port = int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread, or refuse."""
        if self._free.acquire(blocking=False):
            try:
                super().process_request(request, client_address)
            except BaseException:  # there is no thread for it
                self._free.release()
                raise
            return
        with suppress(OSError):
            request.send(b"HTTP/1.0 503 Service Unavailable\r\n\r\n")
        self.shutdown_request(request)

    def process_request_thread(self, request: Any,
                               client_address: Any) -> None:
        """Answer a client, which may take SECONDS in all."""
        def cut() -> None:
            with suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)

        late = threading.Timer(SECONDS, cut)
        late.daemon = True
        try:
            late.start()
            super().process_request_thread(request, client_address)
        finally:
            late.cancel()
            self._free.release()

    def handle_error(self, *_: object) -> None:
        """Say nothing of a client that went away."""

    def start(self) -> None:
        """Serve, in a thread."""
        threading.Thread(target=self.serve_forever, name="web",
                         daemon=True).start()
