# SPDX-License-Identifier: BSD-2-Clause
"""Which source of Varnish varnish-source takes from a Debian archive.

The archive is made and signed here, and served on loopback.
"""

from __future__ import annotations

import dataclasses
import email.utils
import hashlib
import http.server
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import unittest
from pathlib import Path

TOOL = (Path(__file__).resolve().parent.parent.parent / "tools" /
        "varnish-source")
POOL = "pool/main/v/varnish"
ORIG = "varnish_7.7.0.orig.tar.xz"
NEW, OLD = "7.7.0-3+deb13u2", "7.7.0-3+deb13u1"
SECONDS = 120                   # of one run of apt, at the very most


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


VINYL_POOL = "pool/main/v/vinyl-cache"
VINYL = "9.0.1-4"
PART = "pool/main/v/vtest2/vtest2-source_1_all.deb"
PLACE = "bin/vinyltest/vtest2/src/main.c"
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


def sums(files: dict[str, bytes]) -> str:
    return "".join(f" {hashlib.sha256(data).hexdigest()} {len(data)} {name}\n"
                   for name, data in files.items())


class Archive:
    """A Debian archive with one version of varnish in its index. `files` is
    what the server has; a test takes some away or puts others there."""

    def __init__(self, keys: Keys, keyring_deb: bytes) -> None:
        self.keys = keys
        self.files: dict[str, bytes] = {}
        self.cut: set[str] = set()      # sent only in half
        self.last = ""                  # the server ends at this one
        package = self.package(NEW, "new", "developer")
        self.put(package)
        deb = "pool/main/d/debian-keyring/debian-keyring_1_all.deb"
        self.files[deb] = keyring_deb
        arch = subprocess.run(["dpkg", "--print-architecture"], check=True,
                              capture_output=True, text=True).stdout.strip()
        self.sign_index("trixie", arch, {
            "main/source/Sources":
                f"Package: varnish\nBinary: varnish\nVersion: {NEW}\n"
                "Maintainer: a <a@b>\nArchitecture: any\n"
                f"Format: 3.0 (quilt)\nDirectory: {POOL}\n"
                f"Checksums-Sha256:\n{sums(package)}\n",
            f"main/binary-{arch}/Packages":
                "Package: debian-keyring\nVersion: 1\nArchitecture: all\n"
                f"Maintainer: a <a@b>\nFilename: {deb}\n"
                f"Size: {len(keyring_deb)}\n"
                f"SHA256: {hashlib.sha256(keyring_deb).hexdigest()}\n"
                "Description: keys\n\n"})

    def add_vinyl(self, part: bytes) -> None:
        """Put series 9.0 there, in sid, and the part that its tarball lacks."""
        files = {"vinyl-cache_9.0.1.orig.tar.xz": VINYL_UPSTREAM,
                 f"vinyl-cache_{VINYL}.debian.tar.xz": patches("new")}
        dsc = ("Format: 3.0 (quilt)\nSource: vinyl-cache\n"
               f"Version: {VINYL}\nChecksums-Sha256:\n{sums(files)}")
        files[f"vinyl-cache_{VINYL}.dsc"] = self.keys.sign(dsc, "developer")
        self.files |= {f"{VINYL_POOL}/{k}": v for k, v in files.items()}
        self.files[PART] = part
        arch = subprocess.run(["dpkg", "--print-architecture"], check=True,
                              capture_output=True, text=True).stdout.strip()
        self.sign_index("sid", arch, {
            "main/source/Sources":
                "Package: vinyl-cache\nBinary: vinyl-cache\n"
                f"Version: {VINYL}\nMaintainer: a <a@b>\nArchitecture: any\n"
                f"Format: 3.0 (quilt)\nDirectory: {VINYL_POOL}\n"
                f"Checksums-Sha256:\n{sums(files)}\n",
            f"main/binary-{arch}/Packages":
                "Package: vtest2-source\nVersion: 1\nArchitecture: all\n"
                f"Maintainer: a <a@b>\nFilename: {PART}\n"
                f"Size: {len(part)}\n"
                f"SHA256: {hashlib.sha256(part).hexdigest()}\n"
                "Description: source\n\n"})

    def package(self, version: str, text: str, who: str) -> dict[str, bytes]:
        files = {ORIG: UPSTREAM,
                 f"varnish_{version}.debian.tar.xz": patches(text)}
        dsc = ("Format: 3.0 (quilt)\nSource: varnish\n"
               f"Version: {version}\nChecksums-Sha256:\n{sums(files)}")
        return {f"varnish_{version}.dsc": self.keys.sign(dsc, who), **files}

    def put(self, package: dict[str, bytes]) -> None:
        self.files |= {f"{POOL}/{k}": v for k, v in package.items()}

    def lose(self, *names: str) -> None:
        for name in names:
            del self.files[f"{POOL}/{name}"]

    def sign_index(self, suite: str, arch: str,
                   index: dict[str, str]) -> None:
        raw = {k: v.encode() for k, v in index.items()}
        self.release = (
            "Origin: Debian\nLabel: Debian\nSuite: stable\n"
            f"Codename: {suite}\n"
            f"Date: {email.utils.formatdate(usegmt=True)}\n"
            f"Architectures: {arch}\nComponents: main\nSHA256:\n{sums(raw)}")
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


@dataclasses.dataclass
class Ran:
    status: int
    out: str
    err: str


@unittest.skipUnless(shutil.which("gpg") and shutil.which("apt-get"),
                     "no gpg or no apt-get")
class FromDebian(unittest.TestCase):
    """One archive, healthy or not, and what the tool makes of it."""

    keys: Keys
    keyring: bytes

    @classmethod
    def setUpClass(cls) -> None:
        tmp = tempfile.TemporaryDirectory()
        cls.addClassCleanup(tmp.cleanup)
        top = Path(tmp.name)
        cls.keys = Keys(top / "gpg")
        cls.addClassCleanup(cls.keys.close)
        deb = top / "deb"
        (deb / "DEBIAN").mkdir(parents=True)
        (deb / "DEBIAN" / "control").write_text(
            "Package: debian-keyring\nVersion: 1\nArchitecture: all\n"
            "Maintainer: a <a@b>\nDescription: keys\n")
        keyrings = deb / "usr" / "share" / "keyrings"
        keyrings.mkdir(parents=True)
        (keyrings / "debian-keyring.gpg").write_bytes(
            cls.keys.public("developer"))
        subprocess.run(["dpkg-deb", "--root-owner-group", "-b", str(deb),
                        str(top / "k.deb")], check=True, capture_output=True)
        cls.keyring = (top / "k.deb").read_bytes()

    def setUp(self) -> None:
        tmp = tempfile.TemporaryDirectory()
        self.addCleanup(tmp.cleanup)
        self.dir = Path(tmp.name)
        self.build = self.dir / "build"
        self.etc = self.dir / "etc"
        self.etc.mkdir()
        (self.dir / "archive.gpg").write_bytes(self.keys.public("archive"))
        self.archive = Archive(self.keys, self.keyring)
        self.server: Server | None = None
        self.addCleanup(self.stop)

    def stop(self) -> None:
        if self.server:
            self.server.end()
            self.server = None

    def serve(self) -> Server:
        """A server for the archive as it is now; a new one at each call."""
        self.stop()
        self.server = Server(self.archive)
        port = self.server.server_address[1]
        (self.etc / "sources.list").write_text(
            f"deb http://127.0.0.1:{port}/debian bookworm main\n")
        return self.server

    def run_tool(self, *options: str, series: str = "7.7") -> Ran:
        env = {k: v for k, v in os.environ.items()
               if not k.lower().endswith("_proxy")}
        done = subprocess.run(
            [sys.executable, str(TOOL), series, str(self.build / "out"),
             "--apt-etc", str(self.etc), "--keyring",
             str(self.dir / "archive.gpg"),
             *(x for o in ("Acquire::Retries=0", "Acquire::http::Proxy=DIRECT",
                           "Acquire::http::Timeout=20")
               for x in ("--apt-option", o)), *options],
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
            env=env, check=False, timeout=SECONDS)
        return Ran(done.returncode, done.stdout, done.stderr)

    def log(self) -> str:
        return (self.build / "out.log").read_text()

    def made(self, ran: Ran, which: str, text: str, security: str) -> None:
        """The tool has made a source with `text`, and named it in one line."""
        self.assertEqual(ran.status, 0, ran.err + self.log())
        lines = [line for line in ran.out.splitlines()
                 if re.match(r"Varnish \S+ from Debian: ", line)]
        self.assertEqual(lines, [which])
        self.assertEqual((self.build / "out" / "a.c").read_text(), text + "\n")
        self.assertEqual((self.build / "out.patches").read_text(),
                         security + "\n")
        self.assertEqual(sorted(p.name for p in self.build.iterdir()), [
            "out", "out.dist", "out.id", "out.lock", "out.log", "out.patches",
            "out.version"])
        kept = {p.name for p in (self.build / "out.dist").iterdir()}
        version = security.removeprefix("Debian ")
        self.assertEqual(kept, {"from-debian", ORIG} | (
            set() if security == "none"
            else {f"varnish_{version}.debian.tar.xz"}))

    def whole(self) -> None:
        self.made(self.run_tool(), f"Varnish {NEW} from Debian: the whole "
                  "source package", "new", f"Debian {NEW}")

    def refused(self, ran: Ran, *words: str) -> None:
        """The tool has said so in one line, and has left nothing; with a
        healthy archive the next run works."""
        self.assertEqual(ran.status, 1, ran.out + ran.err)
        self.assertEqual(len(ran.err.splitlines()), 1, ran.err)
        self.assertTrue(ran.err.startswith("varnish-source: "), ran.err)
        for word in words:
            self.assertIn(word, ran.err)
        self.assertIn("VARNISH_SRC=", ran.err)
        left = {p.name for p in self.build.iterdir()}
        self.assertLessEqual(left, {"out.log", "out.lock"})
        self.archive = Archive(self.keys, self.keyring)
        self.serve()
        self.whole()

    def test_all_there(self) -> None:
        server = self.serve()
        self.whole()
        asked = len(server.asked)
        mark = self.build / "out" / "mark"
        mark.touch()
        again = self.run_tool()
        self.assertEqual((again.status, again.out, again.err), (0, "", ""))
        self.assertTrue(mark.exists())
        self.assertEqual(len(server.asked), asked)

    def vinyl(self) -> None:
        """Put series 9.0 into the archive."""
        folder = self.dir / "part"
        (folder / "DEBIAN").mkdir(parents=True)
        (folder / "DEBIAN" / "control").write_text(
            "Package: vtest2-source\nVersion: 1\nArchitecture: all\n"
            "Maintainer: a <a@b>\nDescription: source\n")
        file = folder / "usr" / "src" / "vtest2" / "src" / "main.c"
        file.parent.mkdir(parents=True)
        file.write_text("part\n")
        deb = self.dir / "vtest2-source_1_all.deb"
        subprocess.run(["dpkg-deb", "--root-owner-group", "-b", str(folder),
                        str(deb)], check=True, capture_output=True)
        self.archive.add_vinyl(deb.read_bytes())

    def test_vinyl_and_the_part_that_its_tarball_lacks(self) -> None:
        self.vinyl()
        self.serve()
        ran = self.run_tool(series="9.0")
        self.assertEqual(ran.status, 0, ran.err)
        self.assertIn(f"Varnish {VINYL} from Debian: the whole source package",
                      ran.out)
        out = self.build / "out"
        self.assertEqual((out / "a.c").read_text(), "new\n")
        self.assertEqual((out / PLACE).read_text(), "part\n")
        self.assertEqual((self.build / "out.patches").read_text(),
                         f"Debian {VINYL}\n")

    def test_vinyls_tarball_alone_has_all_fixes(self) -> None:
        self.vinyl()
        for end in ("dsc", "debian.tar.xz"):
            del self.archive.files[f"{VINYL_POOL}/vinyl-cache_{VINYL}.{end}"]
        self.serve()
        ran = self.run_tool(series="9.0")
        self.assertEqual((ran.status, ran.err), (0, ""))
        self.assertEqual((self.build / "out" / PLACE).read_text(), "part\n")
        self.assertEqual((self.build / "out.patches").read_text(),
                         "upstream 9.0.1\n")

    def test_vinyl_without_its_part(self) -> None:
        self.vinyl()
        del self.archive.files[PART]
        self.serve()
        ran = self.run_tool(series="9.0")
        self.assertEqual(ran.status, 1)
        self.assertRegex(ran.err, "^varnish-source: Debian's mirror lacks "
                         "vtest2-source .*VARNISH_SRC=")
        self.assertFalse((self.build / "out").exists())

    def test_no_dsc(self) -> None:
        self.archive.lose(f"varnish_{NEW}.dsc")
        self.serve()
        self.made(self.run_tool(), f"Varnish {NEW} from Debian: the tarball "
                  "and Debian's patches (the mirror lacks the .dsc)", "new",
                  f"Debian {NEW}")

    def lose_new(self) -> None:
        self.archive.lose(f"varnish_{NEW}.dsc", f"varnish_{NEW}.debian.tar.xz")

    def tarball_alone(self, note: str = "") -> None:
        ran = self.run_tool()
        self.made(ran, "Varnish 7.7.0 from Debian: the tarball alone (the "
                  f"mirror lacks Debian's patches {NEW}{note})", "one", "none")
        self.assertRegex(ran.err, r"^WARNING: .*VSV16, VSV17 and VSV19 are "
                         r"missing.* not for the Internet")
        self.assertIn("make source RENEW=1", ran.err)

    def test_tarball_alone_and_renewed(self) -> None:
        self.lose_new()
        self.serve()
        self.tarball_alone()
        self.archive = Archive(self.keys, self.keyring)
        self.serve()
        self.assertEqual(self.run_tool().out, "")
        self.made(self.run_tool("--renew"), f"Varnish {NEW} from Debian: the "
                  "whole source package", "new", f"Debian {NEW}")
        # Patches that are here are worth more than a tarball alone.
        self.lose_new()
        self.serve()
        ran = self.run_tool("--renew")
        self.assertEqual(ran.status, 0, ran.err)
        self.assertIn("has Debian's patches: kept", ran.out)
        self.assertEqual((self.build / "out" / "a.c").read_text(), "new\n")

    def test_renewal_that_fails_keeps_what_is_there(self) -> None:
        self.serve()
        self.whole()
        self.stop()
        ran = self.run_tool("--renew")
        self.assertEqual(ran.status, 1)
        self.assertIn("does not answer", ran.err)
        self.assertEqual((self.build / "out" / "a.c").read_text(), "new\n")
        self.assertFalse((self.build / "out.dist.new").exists())
        self.assertEqual(self.run_tool().status, 0)

    def test_nothing(self) -> None:
        self.lose_new()
        self.archive.lose(ORIG)
        self.serve()
        self.refused(self.run_tool(), f"lists Varnish {NEW} but lacks")

    def test_patches_without_a_tarball(self) -> None:
        self.archive.lose(ORIG, f"varnish_{NEW}.dsc")
        self.serve()
        self.refused(self.run_tool(), f"lists Varnish {NEW} but lacks")

    def test_older_version(self) -> None:
        self.lose_new()
        self.archive.put(self.archive.package(OLD, "old", "developer"))
        self.serve()
        self.made(self.run_tool(), f"Varnish {OLD} from Debian: an older "
                  "source package, signed by a Debian developer (the mirror "
                  f"lacks {NEW})", "old", f"Debian {OLD}")

    def test_older_version_of_a_stranger(self) -> None:
        self.lose_new()
        self.archive.put(self.archive.package(OLD, "evil", "stranger"))
        self.serve()
        self.tarball_alone(f"; varnish_{OLD}.dsc has no valid signature of a "
                           "Debian developer")

    def test_older_version_changed_after_signing(self) -> None:
        self.lose_new()
        package = self.archive.package(OLD, "old", "developer")
        evil = patches("evil")
        good = package[f"varnish_{OLD}.debian.tar.xz"]
        # Signed sums, but of a text that is not part of what was signed.
        dsc = package[f"varnish_{OLD}.dsc"].replace(
            hashlib.sha256(good).hexdigest().encode(),
            hashlib.sha256(evil).hexdigest().encode())
        self.archive.put({**package, f"varnish_{OLD}.dsc": dsc,
                          f"varnish_{OLD}.debian.tar.xz": evil})
        self.serve()
        self.tarball_alone(f"; varnish_{OLD}.dsc has no valid signature of a "
                           "Debian developer")

    def test_another_version_under_its_name(self) -> None:
        self.lose_new()
        oldest = self.archive.package("7.7.0-3+deb13u0", "evil", "developer")
        self.archive.put({k.replace("u0", "u1"): v for k, v in oldest.items()})
        self.serve()
        self.tarball_alone(f"; varnish_{OLD}.dsc is of another version")

    def test_older_version_with_another_patch(self) -> None:
        self.lose_new()
        self.archive.put({**self.archive.package(OLD, "old", "developer"),
                          f"varnish_{OLD}.debian.tar.xz": patches("evil")})
        self.serve()
        self.refused(self.run_tool(), "a file is damaged or cut off",
                     "try again")

    def test_older_version_and_no_keyring(self) -> None:
        self.lose_new()
        self.archive.put(self.archive.package(OLD, "old", "developer"))
        del self.archive.files[
            "pool/main/d/debian-keyring/debian-keyring_1_all.deb"]
        self.serve()
        self.tarball_alone(f"; varnish_{OLD}.dsc cannot be checked: no "
                           "package debian-keyring")

    def test_bad_release_signature(self) -> None:
        self.archive.sign_release("stranger")
        self.serve()
        self.refused(self.run_tool(), "the signature of its index is wrong")

    def test_release_changed_after_signing(self) -> None:
        release = self.archive.files["dists/trixie/InRelease"]
        self.archive.files["dists/trixie/InRelease"] = release.replace(
            b"Label: Debian", b"Label: Evil")
        self.serve()
        self.refused(self.run_tool(), "the signature of its index is wrong")

    def test_cut_off(self) -> None:
        """Any file, half of it: never a step down."""
        for name in ("InRelease", "Sources", f"varnish_{NEW}.dsc", ORIG,
                     f"varnish_{NEW}.debian.tar.xz"):
            with self.subTest(name):
                shutil.rmtree(self.build, ignore_errors=True)
                self.archive = Archive(self.keys, self.keyring)
                self.archive.cut.add(name)
                self.serve()
                self.refused(self.run_tool(), "is damaged or cut off",
                             "try again")

    def test_other_bytes_of_the_same_length(self) -> None:
        data = self.archive.files[f"{POOL}/{ORIG}"]
        self.archive.files[f"{POOL}/{ORIG}"] = data[:-1] + b"x"
        self.serve()
        self.refused(self.run_tool(), "is damaged or cut off")

    def test_server_gone(self) -> None:
        self.serve()
        self.stop()
        self.refused(self.run_tool(), "it does not answer",
                     "check the network")

    def test_server_gone_in_the_middle(self) -> None:
        for name in ("Sources", f"varnish_{NEW}.dsc", ORIG):
            with self.subTest(name):
                shutil.rmtree(self.build, ignore_errors=True)
                self.archive = Archive(self.keys, self.keyring)
                self.archive.last = name
                self.serve()
                self.refused(self.run_tool())

    def test_no_such_suite(self) -> None:
        del self.archive.files["dists/trixie/InRelease"]
        self.serve()
        self.refused(self.run_tool(), "it has no suite of that name")

    def test_another_series_in_the_index(self) -> None:
        sources = "dists/trixie/main/source/Sources"
        index = self.archive.files[sources].decode().replace("7.7.0", "8.0.0")
        arch = re.search(r"Architectures: (\S+)", self.archive.release)
        assert arch is not None
        self.archive.sign_index("trixie", arch[1],
                                {"main/source/Sources": index})
        self.serve()
        self.refused(self.run_tool(), "lists no Varnish 7.7")

    def test_interrupted(self) -> None:
        """SIGTERM while a file comes: nothing is left."""
        gate = threading.Event()
        handler_get = Handler.do_GET

        def held(handler: Handler) -> None:
            if handler.path.endswith("Sources"):
                gate.set()
                handler.rfile.read(1)   # until apt is gone
                return
            handler_get(handler)

        server = self.serve()
        server.RequestHandlerClass = type("Held", (Handler,),
                                          {"do_GET": held})
        argv = [sys.executable, str(TOOL), "7.7", str(self.build / "out"),
                "--apt-etc", str(self.etc), "--keyring",
                str(self.dir / "archive.gpg"),
                "--apt-option", "Acquire::http::Proxy=DIRECT"]
        tool = subprocess.Popen(argv, stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE)
        try:
            self.assertTrue(gate.wait(SECONDS))
            tool.terminate()
            tool.communicate(timeout=SECONDS)
        finally:
            tool.kill()
            tool.wait()
        self.assertEqual(tool.returncode, 143)
        self.assertLessEqual({p.name for p in self.build.iterdir()},
                             {"out.log", "out.lock"})
        server.RequestHandlerClass = Handler
        self.whole()


if __name__ == "__main__":
    unittest.main()
