# SPDX-License-Identifier: BSD-2-Clause
"""varnish-source with a source that was handed over, and which archives apt
knows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from common import TOOLS, load, ran, write

source = load("varnish-source")
BASES = {"": "http://a/debian", "-security": "http://s/sec"}


def test_one_line_format(folder: Path) -> None:
    write(folder / "sources.list",
          "# deb http://no/ trixie main\n"
          "deb [arch=amd64 signed-by=/k] http://a/debian trixie main\n"
          "deb http://s/sec trixie-security main contrib\n")
    assert source.archive_bases(folder) == BASES


def test_deb822_format(folder: Path) -> None:
    write(folder / "sources.list.d/debian.sources",
          "Types: deb\n# a comment\nURIs: http://a/debian\n"
          "Suites: bookworm bookworm-updates\nComponents: main\n\n"
          "Types: deb\nURIs:\n http://s/sec\n"
          "Suites: bookworm-security\n")
    assert source.archive_bases(folder) == BASES


def test_other_archives_do_not_count(folder: Path) -> None:
    write(folder / "sources.list.d/x.sources",
          "Enabled: no\nURIs: http://off/debian\nSuites: trixie\n\n"
          "URIs: http://node/\nSuites: nodistro\n")
    write(folder / "sources.list.d/y.list",
          "deb cdrom:[x]/ trixie main\n"
          "deb http://cloud/apt cloud-sdk-bookworm main\n")
    write(folder / "sources.list.d/z.list.disabled",
          "deb http://off/debian trixie main\n")
    assert source.archive_bases(folder) == {}


def tree(folder: Path, version: str) -> Path:
    return write(folder / "tree/configure.ac",
                 f"AC_INIT([Varnish], [{version}], [x@y])\n").parent


def tarball(path: Path, what: Path) -> Path:
    ran("tar", "-cJf", path, "-C", what.parent, what.name)
    return path


def get(folder: Path, series: str, src: Path) -> Path:
    dest = folder / "out"
    source.get(series, dest, src)
    return dest


def refusal(folder: Path, series: str, src: Path | None) -> str:
    with pytest.raises(source.SourceError) as e:
        source.check_given(series, src)
        source.get(series, folder / "out", src)
    text = str(e.value)
    assert "\n" not in text
    return text


def test_tree_and_second_run(folder: Path) -> None:
    src = tree(folder, "6.0.16")
    dest = get(folder, "6.0", src)
    mark = dest / "mark"
    mark.touch()
    get(folder, "6.0", src)
    assert mark.exists()
    write(folder / "tree/new.c", "\n")
    get(folder, "6.0", src)
    assert not mark.exists()
    assert (dest / "new.c").exists()


def test_objects_stay_behind(folder: Path) -> None:
    src = tree(folder, "7.7.0")
    write(folder / "tree/lib/x.o", "")
    write(folder / "tree/lib/x.c", "")
    dest = get(folder, "7.7", src)
    assert [p.name for p in (dest / "lib").iterdir()] == ["x.c"]
    assert (folder / "out.patches").read_text() == "unknown\n"


def test_debians_patches_are_applied(folder: Path) -> None:
    tree(folder, "7.7.0")
    write(folder / "tree/a.c", "one\n")
    write(folder / "deb/debian/patches/series", "fix # why\n\n")
    write(folder / "deb/debian/patches/fix",
          "--- a/a.c\n+++ b/a.c\n@@ -1 +1 @@\n-one\n+two\n")
    orig = tarball(folder / "varnish_7.7.0.orig.tar.xz", folder / "tree")
    tarball(folder / "varnish_7.7.0-3+deb13u9.debian.tar.xz",
            folder / "deb/debian")
    dest = get(folder, "7.7", orig)
    assert (dest / "a.c").read_text() == "two\n"
    assert (folder / "out.version").read_text() == "7.7.0-3+deb13u9\n"
    assert (folder / "out.patches").read_text() == "Debian 7.7.0-3+deb13u9\n"


def test_newest_debian_tarball(folder: Path) -> None:
    for v in ("9", "10", "2"):
        write(folder / f"varnish_7.7.0-3+deb13u{v}.debian.tar.xz", "")
    orig = write(folder / "varnish_7.7.0.orig.tar.xz", "")
    assert source.debian_tarball(orig).name == (
        "varnish_7.7.0-3+deb13u10.debian.tar.xz")


def test_tarball_that_was_handed_over(folder: Path) -> None:
    """Cut off, it leaves nothing; whole, its patches are unknown."""
    tree(folder, "7.7.0")
    orig = tarball(folder / "varnish_7.7.0.orig.tar.xz", folder / "tree")
    whole = orig.read_bytes()
    orig.write_bytes(whole[:len(whole) // 2])
    assert "cut off" in refusal(folder, "7.7", orig)
    assert list(folder.glob("out.new*")) == []
    assert not (folder / "out").exists()
    orig.write_bytes(whole)
    get(folder, "7.7", orig)
    assert (folder / "out.patches").read_text() == "unknown\n"


def test_another_series_is_refused_by_name(folder: Path) -> None:
    for version in ("7.7.0", "6.01.0", "trunk"):
        text = refusal(folder, "6.0", tree(folder, version))
        assert f"is Varnish {version}, not 6.0" in text
        assert not (folder / "out").exists()


def test_what_is_no_varnish(folder: Path) -> None:
    assert "no source of Varnish" in refusal(folder, "7.7", folder)
    junk = write(folder / "junk.tar.xz", "junk")
    assert "no tarball" in refusal(folder, "7.7", junk)
    assert "does not exist" in refusal(folder, "7.7", folder / "nothing")


@pytest.mark.parametrize(("series", "src", "says"), [
    ("8.0", "", "no current Debian has Varnish 8.0"),
    ("6.0", "/none", "VARNISH_SRC=/none does not exist")])
def test_a_refusal_makes_no_file(folder: Path, series: str, src: str,
                                 says: str) -> None:
    done = ran(TOOLS / "varnish-source", series, folder / "out", src, status=1)
    assert says in done.stderr
    assert [*folder.iterdir()] == []


def test_vinyl_that_lacks_a_part(folder: Path) -> None:
    write(folder / "tree/configure.ac",
          "AC_INIT([Vinyl Cache], [9.0.1], [x@y])\n")
    orig = tarball(folder / "vinyl-cache-9.0.1.tar.xz", folder / "tree")
    for src in (folder / "tree", orig):
        assert re.search(f"{src} has nothing in bin/vinyltest/vtest2: .*"
                         r"vtest2-source_\*\.deb", refusal(folder, "9.0", src))
    write(folder / "tree/bin/vinyltest/vtest2/src/main.c", "part\n")
    get(folder, "9.0", folder / "tree")


def test_old_series_is_to_be_handed_over(folder: Path) -> None:
    assert "VARNISH_SRC=" in refusal(folder, "6.0", None)
