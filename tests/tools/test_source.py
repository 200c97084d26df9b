# SPDX-License-Identifier: BSD-2-Clause
"""Which source of Varnish varnish-source takes from a Debian archive."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from archive import (
    KEYRING,
    NEW,
    ORIG,
    PART,
    POOL,
    SECONDS,
    VINYL,
    VINYL_POOL,
    Archive,
    Handler,
    Keys,
    Server,
    build_deb,
    digest,
    patches,
)
from common import TOOLS, ran

Ran = subprocess.CompletedProcess[str]
OLD = "7.7.0-3+deb13u1"
PLACE = "bin/vinyltest/vtest2/src/main.c"
INDEX, SOURCES = "dists/trixie/InRelease", "dists/trixie/main/source/Sources"
NEW_DSC, OLD_DSC = f"varnish_{NEW}.dsc", f"varnish_{OLD}.dsc"
NEW_PATCHES = f"varnish_{NEW}.debian.tar.xz"
OLD_PATCHES = f"varnish_{OLD}.debian.tar.xz"

pytestmark = pytest.mark.skipif(
    not (shutil.which("gpg") and shutil.which("apt-get")),
    reason="no gpg or no apt-get")


class Debian:
    """One archive, healthy or not, and what the tool makes of it."""

    def __init__(self, folder: Path, keys: Keys, keyring: bytes) -> None:
        self.folder = folder
        self.build = folder / "build"
        self.etc = folder / "etc"
        self.etc.mkdir()
        (folder / "archive.gpg").write_bytes(keys.public("archive"))
        self.keys, self.keyring = keys, keyring
        self.server: Server | None = None
        self.heal()

    def heal(self) -> None:
        """Make an archive that is healthy."""
        self.archive = Archive(self.keys, self.keyring)

    def stop(self) -> None:
        if self.server:
            self.server.end()
            self.server = None

    def serve(self) -> Server:
        """Return a server for the archive as it is now: a new one each time."""
        self.stop()
        self.server = Server(self.archive)
        port = self.server.server_address[1]
        (self.etc / "sources.list").write_text(
            f"deb http://127.0.0.1:{port}/debian bookworm main\n")
        return self.server

    def command(self, series: str, *options: str) -> list[str]:
        return [sys.executable, str(TOOLS / "varnish-source"), series,
                str(self.build / "out"), "--apt-etc", str(self.etc),
                "--keyring", str(self.folder / "archive.gpg"),
                "--apt-option", "Acquire::http::Proxy=DIRECT", *options]

    def run(self, *options: str, series: str = "7.7") -> Ran:
        env = {k: v for k, v in os.environ.items()
               if not k.lower().endswith("_proxy")}
        return ran(*self.command(
            series, "--apt-option", "Acquire::Retries=0", "--apt-option",
            "Acquire::http::Timeout=20", *options), env=env, status=None,
            timeout=SECONDS)

    def served(self, *options: str, series: str = "7.7") -> Ran:
        """Run the tool with the archive as it is now."""
        self.serve()
        return self.run(*options, series=series)

    def text(self, name: str) -> str:
        """Return what is in a file of the build folder."""
        return (self.build / name).read_text()

    def made(self, done: Ran, which: str, text: str, security: str) -> None:
        """The tool has made a source with `text`, and named it in one line."""
        assert done.returncode == 0, done.stderr + self.text("out.log")
        assert re.findall(r"^Varnish \S+ from Debian: .*", done.stdout,
                          re.MULTILINE) == [which]
        assert self.text("out/a.c") == text + "\n"
        assert self.text("out.patches") == security + "\n"
        assert sorted(p.name for p in self.build.iterdir()) == [
            "out", "out.dist", "out.id", "out.lock", "out.log", "out.patches",
            "out.version"]
        kept = {p.name for p in (self.build / "out.dist").iterdir()}
        version = security.removeprefix("Debian ")
        assert kept == {"from-debian", ORIG} | (
            set() if security == "none"
            else {f"varnish_{version}.debian.tar.xz"})

    def whole(self, *options: str) -> None:
        self.made(self.run(*options), f"Varnish {NEW} from Debian: the whole "
                  "source package", "new", f"Debian {NEW}")

    def tarball_alone(self, note: str = "") -> None:
        done = self.served()
        self.made(done, "Varnish 7.7.0 from Debian: the tarball alone (the "
                  f"mirror lacks Debian's patches {NEW}{note})", "one", "none")
        assert re.search("^WARNING: .*VSV16, VSV17 and VSV19 are missing.* not "
                         "for the Internet", done.stderr)
        assert "make source RENEW=1" in done.stderr

    def refused(self, done: Ran, *words: str) -> None:
        """The tool has said so in one line, and has left nothing; with a
        healthy archive the next run works."""
        assert done.returncode == 1, done.stdout + done.stderr
        assert len(done.stderr.splitlines()) == 1, done.stderr
        assert done.stderr.startswith("varnish-source: ")
        for word in (*words, "VARNISH_SRC="):
            assert word in done.stderr
        assert self.left() <= {"out.log", "out.lock"}
        self.heal()
        self.serve()
        self.whole()

    def left(self) -> set[str]:
        return {p.name for p in self.build.iterdir()}


@pytest.fixture(scope="module")
def signed() -> Iterator[tuple[Keys, bytes]]:
    """The keys, and the package with the keys of Debian's developers."""
    with tempfile.TemporaryDirectory() as name:
        keys = Keys(Path(name) / "gpg")
        yield keys, build_deb(Path(name), "debian-keyring", {
            "usr/share/keyrings/debian-keyring.gpg": keys.public("developer")})
        keys.close()


@pytest.fixture
def debian(folder: Path, signed: tuple[Keys, bytes]) -> Iterator[Debian]:
    made = Debian(folder, *signed)
    yield made
    made.stop()


def test_all_there(debian: Debian) -> None:
    server = debian.serve()
    debian.whole()
    asked = len(server.asked)
    mark = debian.build / "out" / "mark"
    mark.touch()
    again = debian.run()
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    assert mark.exists()
    assert len(server.asked) == asked


# Series 9.0, whose tarball lacks a part

def test_vinyl_and_the_part_that_its_tarball_lacks(debian: Debian) -> None:
    debian.archive.add_vinyl(debian.folder)
    done = debian.served(series="9.0")
    assert done.returncode == 0, done.stderr
    assert f"Varnish {VINYL} from Debian: the whole source package" in (
        done.stdout)
    assert debian.text("out/a.c") == "new\n"
    assert debian.text(f"out/{PLACE}") == "part\n"
    assert debian.text("out.patches") == f"Debian {VINYL}\n"


def test_vinyls_tarball_alone_has_all_fixes(debian: Debian) -> None:
    debian.archive.add_vinyl(debian.folder)
    for end in ("dsc", "debian.tar.xz"):
        del debian.archive.files[f"{VINYL_POOL}/vinyl-cache_{VINYL}.{end}"]
    done = debian.served(series="9.0")
    assert (done.returncode, done.stderr) == (0, "")
    assert debian.text(f"out/{PLACE}") == "part\n"
    assert debian.text("out.patches") == "upstream 9.0.1\n"


def test_vinyl_without_its_part(debian: Debian) -> None:
    debian.archive.add_vinyl(debian.folder)
    del debian.archive.files[PART]
    done = debian.served(series="9.0")
    assert done.returncode == 1
    assert re.search("^varnish-source: Debian's mirror lacks vtest2-source "
                     ".*VARNISH_SRC=", done.stderr)
    assert not (debian.build / "out").exists()


# What the mirror lacks

def test_no_dsc(debian: Debian) -> None:
    debian.archive.lose(NEW_DSC)
    debian.made(debian.served(), f"Varnish {NEW} from Debian: the tarball and "
                "Debian's patches (the mirror lacks the .dsc)", "new",
                f"Debian {NEW}")


def test_tarball_alone_and_renewed(debian: Debian) -> None:
    debian.archive.lose(NEW_DSC, NEW_PATCHES)
    debian.tarball_alone()
    debian.heal()
    assert debian.served().stdout == ""
    debian.whole("--renew")
    # Patches that are here are worth more than a tarball alone.
    debian.archive.lose(NEW_DSC, NEW_PATCHES)
    done = debian.served("--renew")
    assert done.returncode == 0, done.stderr
    assert "has Debian's patches: kept" in done.stdout
    assert debian.text("out/a.c") == "new\n"


def test_renewal_that_fails_keeps_what_is_there(debian: Debian) -> None:
    debian.serve()
    debian.whole()
    debian.stop()
    done = debian.run("--renew")
    assert done.returncode == 1
    assert "does not answer" in done.stderr
    assert debian.text("out/a.c") == "new\n"
    assert not (debian.build / "out.dist.new").exists()
    assert debian.run().returncode == 0


def test_older_version(debian: Debian) -> None:
    debian.archive.lose(NEW_DSC, NEW_PATCHES)
    debian.archive.put(debian.archive.package(OLD, "old", "developer"))
    debian.made(debian.served(), f"Varnish {OLD} from Debian: an older source "
                f"package, signed by a Debian developer (the mirror lacks "
                f"{NEW})", "old", f"Debian {OLD}")


def of_a_stranger(archive: Archive) -> None:
    archive.put(archive.package(OLD, "evil", "stranger"))


def changed_after_signing(archive: Archive) -> None:
    """Signed sums, but of a text that is not part of what was signed."""
    package = archive.package(OLD, "old", "developer")
    evil = patches("evil")
    dsc = package[OLD_DSC].replace(digest(package[OLD_PATCHES]).encode(),
                                   digest(evil).encode())
    archive.put({**package, OLD_DSC: dsc, OLD_PATCHES: evil})


def under_its_name(archive: Archive) -> None:
    oldest = archive.package("7.7.0-3+deb13u0", "evil", "developer")
    archive.put({k.replace("u0", "u1"): v for k, v in oldest.items()})


def without_a_keyring(archive: Archive) -> None:
    archive.put(archive.package(OLD, "old", "developer"))
    del archive.files[KEYRING]


@pytest.mark.parametrize(("put_old", "note"), [
    (of_a_stranger, "has no valid signature of a Debian developer"),
    (changed_after_signing, "has no valid signature of a Debian developer"),
    (under_its_name, "is of another version"),
    (without_a_keyring, "cannot be checked: no package debian-keyring")])
def test_an_older_version_is_not_taken(
        debian: Debian, put_old: Callable[[Archive], None], note: str) -> None:
    debian.archive.lose(NEW_DSC, NEW_PATCHES)
    put_old(debian.archive)
    debian.tarball_alone(f"; {OLD_DSC} {note}")


# What is refused: never a step down

LACKS = f"lists Varnish {NEW} but lacks"
WRONG = "the signature of its index is wrong"
DAMAGED = "is damaged or cut off"


def with_another_patch(archive: Archive) -> None:
    archive.lose(NEW_DSC, NEW_PATCHES)
    archive.put({**archive.package(OLD, "old", "developer"),
                 OLD_PATCHES: patches("evil")})


def release_changed(archive: Archive) -> None:
    archive.files[INDEX] = archive.files[INDEX].replace(
        b"Label: Debian", b"Label: Evil")


def other_bytes(archive: Archive) -> None:
    """Of the same length."""
    data = archive.files[f"{POOL}/{ORIG}"]
    archive.files[f"{POOL}/{ORIG}"] = data[:-1] + b"x"


def another_series(archive: Archive) -> None:
    index = archive.files[SOURCES].decode().replace("7.7.0", "8.0.0")
    archive.sign_index("trixie", {"main/source/Sources": index})


@pytest.mark.parametrize(("change", "words"), [
    pytest.param(lambda a: a.lose(NEW_DSC, NEW_PATCHES, ORIG), [LACKS],
                 id="nothing"),
    pytest.param(lambda a: a.lose(NEW_DSC, ORIG), [LACKS], id="no_tarball"),
    (with_another_patch, [DAMAGED, "try again"]),
    pytest.param(lambda a: a.sign_release("stranger"), [WRONG],
                 id="bad_release_signature"),
    (release_changed, [WRONG]),
    (other_bytes, [DAMAGED]),
    pytest.param(lambda a: a.files.pop(INDEX), ["it has no suite of that name"],
                 id="no_such_suite"),
    (another_series, ["lists no Varnish 7.7"]),
    *(pytest.param(lambda a, name=name: a.cut.add(name),
                   [DAMAGED, "try again"], id=f"cut_off_{name}")
      for name in ("InRelease", "Sources", NEW_DSC, ORIG, NEW_PATCHES)),
    *(pytest.param(lambda a, name=name: setattr(a, "last", name), [],
                   id=f"server_gone_at_{name}")
      for name in ("Sources", NEW_DSC, ORIG))])
def test_refused(debian: Debian, change: Callable[[Archive], object],
                 words: list[str]) -> None:
    change(debian.archive)
    debian.refused(debian.served(), *words)


def test_server_gone(debian: Debian) -> None:
    debian.serve()
    debian.stop()
    debian.refused(debian.run(), "it does not answer", "check the network")


def test_interrupted(debian: Debian) -> None:
    """SIGTERM while a file comes: nothing is left."""
    gate = threading.Event()

    class Held(Handler):
        def do_GET(self) -> None:  # noqa: N802
            if self.path.endswith("Sources"):
                gate.set()
                self.rfile.read(1)  # until apt is gone
            else:
                super().do_GET()

    server = debian.serve()
    server.RequestHandlerClass = Held
    with subprocess.Popen(
            debian.command("7.7"), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as tool:
        assert gate.wait(SECONDS)
        tool.terminate()
        tool.communicate(timeout=SECONDS)
    assert tool.returncode == 143
    assert debian.left() <= {"out.log", "out.lock"}
    server.RequestHandlerClass = Handler
    debian.whole()
