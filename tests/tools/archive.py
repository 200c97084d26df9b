# SPDX-License-Identifier: BSD-2-Clause
"""A small Debian archive, made and signed here, and served on loopback."""

from __future__ import annotations

import email.utils
import functools
import hashlib
import http.server
import io
import subprocess
import tarfile
import threading
from pathlib import Path

from common import ran

POOL = "pool/main/v/varnish"
ORIG = "varnish_7.7.0.orig.tar.xz"
NEW = "7.7.0-3+deb13u2"
VINYL_POOL = "pool/main/v/vinyl-cache"
VINYL = "9.0.1-4"
PART = "pool/main/v/vtest2/vtest2-source_1_all.deb"
KEYRING = "pool/main/d/debian-keyring/debian-keyring_1_all.deb"
SECONDS = 120                   # of one run of apt, at the very most


@functools.cache
def arch() -> str:
    """Return this machine's architecture, as dpkg names it."""
    return ran("dpkg", "--print-architecture").stdout.strip()


def tarball(files: dict[str, str]) -> bytes:
    """A .tar.xz that is the same each time."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:xz") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            tar.addfile(member, io.BytesIO(text.encode()))
    return out.getvalue()


def patches(text: str) -> bytes:
    """What a .debian.tar.xz holds: one patch, which writes `text`."""
    return tarball({
        "debian/patches/series": "fix\n",
        "debian/patches/fix": "--- a/a.c\n+++ b/a.c\n@@ -1 +1 @@\n"
                              f"-one\n+{text}\n"})


VINYL_UPSTREAM = tarball({"vinyl-cache-9.0.1/configure.ac":
                          "AC_INIT([Vinyl Cache], [9.0.1], [a@b])\n",
                          "vinyl-cache-9.0.1/a.c": "one\n"})
UPSTREAM = tarball({"varnish-7.7.0/configure.ac":
                    "AC_INIT([Varnish],[7.7.0],[a@b])\n",
                    "varnish-7.7.0/a.c": "one\n"})


class Keys:
    """Throw-away keys: the archive's, a developer's, and a stranger's."""

    def __init__(self, home: Path) -> None:
        self.home = home
        home.mkdir(mode=0o700)
        for name in ("archive", "developer", "stranger"):
            self.gpg("--passphrase", "", "--quick-gen-key",
                     f"{name}@example.org", "ed25519", "sign", "never")

    def gpg(self, *argv: str, given: bytes = b"") -> bytes:
        return subprocess.run(
            ["gpg", "--homedir", str(self.home), "--batch", "--quiet",
             "--pinentry-mode", "loopback", *argv], input=given,
            capture_output=True, check=True, timeout=SECONDS).stdout

    def sign(self, text: str, who: str) -> bytes:
        return self.gpg("-u", f"{who}@example.org", "--clearsign",
                        given=text.encode())

    def public(self, who: str) -> bytes:
        return self.gpg("--export", f"{who}@example.org")

    def close(self) -> None:
        subprocess.run(["gpgconf", "--homedir", str(self.home), "--kill",
                        "all"], check=False, timeout=SECONDS)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def sums(files: dict[str, bytes]) -> str:
    return "".join(f" {digest(data)} {len(data)} {name}\n"
                   for name, data in files.items())


def dsc(name: str, version: str, files: dict[str, bytes]) -> str:
    """What a .dsc says of a package."""
    return (f"Format: 3.0 (quilt)\nSource: {name}\nVersion: {version}\n"
            f"Checksums-Sha256:\n{sums(files)}")


def source_entry(name: str, version: str, pool: str,
                 files: dict[str, bytes]) -> str:
    """What Sources says of a package."""
    return (f"Package: {name}\nBinary: {name}\nVersion: {version}\n"
            "Maintainer: a <a@b>\nArchitecture: any\n"
            f"Format: 3.0 (quilt)\nDirectory: {pool}\n"
            f"Checksums-Sha256:\n{sums(files)}\n")


def binary_entry(name: str, path: str, deb: bytes) -> str:
    """What Packages says of a package."""
    return (f"Package: {name}\nVersion: 1\nArchitecture: all\n"
            f"Maintainer: a <a@b>\nFilename: {path}\nSize: {len(deb)}\n"
            f"SHA256: {digest(deb)}\n"
            "Description: text\n\n")


def build_deb(folder: Path, name: str, files: dict[str, bytes]) -> bytes:
    """Return a package of Debian that has these files."""
    control = (f"Package: {name}\nVersion: 1\nArchitecture: all\n"
               "Maintainer: a <a@b>\nDescription: text\n")
    for path, data in {"DEBIAN/control": control.encode(), **files}.items():
        file = folder / name / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    deb = folder / f"{name}.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", folder / name,
                    deb], check=True, capture_output=True)
    return deb.read_bytes()


class Archive:
    """A Debian archive with one version of varnish in its index. `files` is
    what the server has; a test takes some away or puts others there."""

    def __init__(self, keys: Keys, keyring: bytes) -> None:
        self.keys = keys
        self.files: dict[str, bytes] = {}
        self.cut: set[str] = set()      # sent only in half
        self.last = ""                  # the server ends at this one
        package = self.package(NEW, "new", "developer")
        self.put(package)
        self.files[KEYRING] = keyring
        self.sign_index("trixie", {
            "main/source/Sources": source_entry("varnish", NEW, POOL, package),
            f"main/binary-{arch()}/Packages": binary_entry(
                "debian-keyring", KEYRING, keyring)})

    def add_vinyl(self, folder: Path) -> None:
        """Put series 9.0 there, in sid, and the part that its tarball lacks."""
        part = build_deb(folder, "vtest2-source",
                         {"usr/src/vtest2/src/main.c": b"part\n"})
        files = {"vinyl-cache_9.0.1.orig.tar.xz": VINYL_UPSTREAM,
                 f"vinyl-cache_{VINYL}.debian.tar.xz": patches("new")}
        files[f"vinyl-cache_{VINYL}.dsc"] = self.keys.sign(
            dsc("vinyl-cache", VINYL, files), "developer")
        self.files |= {f"{VINYL_POOL}/{k}": v for k, v in files.items()}
        self.files[PART] = part
        self.sign_index("sid", {
            "main/source/Sources": source_entry("vinyl-cache", VINYL,
                                                VINYL_POOL, files),
            f"main/binary-{arch()}/Packages": binary_entry(
                "vtest2-source", PART, part)})

    def package(self, version: str, text: str, who: str) -> dict[str, bytes]:
        files = {ORIG: UPSTREAM,
                 f"varnish_{version}.debian.tar.xz": patches(text)}
        return {f"varnish_{version}.dsc": self.keys.sign(
            dsc("varnish", version, files), who), **files}

    def put(self, package: dict[str, bytes]) -> None:
        self.files |= {f"{POOL}/{k}": v for k, v in package.items()}

    def lose(self, *names: str) -> None:
        for name in names:
            del self.files[f"{POOL}/{name}"]

    def sign_index(self, suite: str, index: dict[str, str]) -> None:
        raw = {k: v.encode() for k, v in index.items()}
        self.release = (
            "Origin: Debian\nLabel: Debian\nSuite: stable\n"
            f"Codename: {suite}\n"
            f"Date: {email.utils.formatdate(usegmt=True)}\n"
            f"Architectures: {arch()}\nComponents: main\nSHA256:\n{sums(raw)}")
        self.files |= {f"dists/{suite}/{k}": v for k, v in raw.items()}
        self.sign_release("archive", suite)

    def sign_release(self, who: str, suite: str = "trixie") -> None:
        self.files[f"dists/{suite}/InRelease"] = self.keys.sign(
            self.release, who)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        archive = self.server.archive
        name = self.path.removeprefix("/debian/").replace("%2b", "+")
        self.server.asked.append(name)
        if archive.last and name.endswith(archive.last):
            self.close_connection = True
            self.server.end()
            return
        cut = name.rpartition("/")[2] in archive.cut
        self.close_connection = cut
        data = archive.files.get(name)
        self.send_response(404 if data is None else 200)
        self.send_header("Content-Length", str(len(data or b"")))
        self.end_headers()
        if data is not None:
            self.wfile.write(data[:len(data) // 2] if cut else data)

    def log_message(self, format: str, *args: object) -> None:
        pass


class Server(http.server.ThreadingHTTPServer):
    def __init__(self, archive: Archive) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.timeout = 0.05     # of handle_request()
        self.archive = archive
        self.asked: list[str] = []
        self.ends = False
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self) -> None:
        while not self.ends:
            self.handle_request()
        self.server_close()

    def end(self) -> None:
        """When it returns, nobody listens any more."""
        self.ends = True
        self.thread.join(SECONDS)
