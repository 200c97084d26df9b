# SPDX-License-Identifier: BSD-2-Clause
"""Fixtures: what tests need, and what ends with them."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOP / f) for f in ("tools", "bench", "tests/clients")]

from common import ROOT, TIMEOUT  # noqa: E402
from network import Network  # noqa: E402
from pages import Origin, serve_pages  # noqa: E402
from repository import Repository  # noqa: E402

from varnishd import Varnishd  # noqa: E402


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder whose path is short, as sockets need it."""
    with tempfile.TemporaryDirectory(prefix="test.") as name:
        yield Path(name)


@pytest.fixture(scope="session")
def preloads() -> Iterator[Path]:
    """A folder for the libraries that tests preload: each is built once."""
    with tempfile.TemporaryDirectory(prefix="preload.") as name:
        yield Path(name)


@pytest.fixture
def origin() -> Iterator[socket.socket]:
    """A socket that listens: the test is the origin."""
    with socket.create_server(("127.0.0.1", 0), backlog=200) as server:
        server.settimeout(TIMEOUT)
        yield server


@pytest.fixture
def pages() -> Iterator[Origin]:
    """An origin whose pages have the size that is asked for."""
    with serve_pages() as server:
        yield server


@pytest.fixture
def varnishd(folder: Path, preloads: Path) -> Iterator[Varnishd]:
    """A varnishd that the test starts."""
    if not ROOT:
        pytest.skip("VARNISH_ROOT is not set")
    with Varnishd(folder, preloads) as made:
        yield made


@pytest.fixture
def repo(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A repository whose tools have a folder for temporary files."""
    made = Repository(folder)
    monkeypatch.setenv("TMPDIR", str(made.temporary))
    return made


@pytest.fixture
def proxy() -> Iterator[Network]:
    """A network; the test, and what it starts, are in it."""
    if os.geteuid() != 0:
        pytest.skip("needs root, for namespaces")
    with Network() as made:
        yield made


@pytest.fixture
def client() -> Network:
    """A network for clients."""
    return Network()
