# SPDX-License-Identifier: BSD-2-Clause
"""What is compiled or generated for the paper's customers, in build/bench.

The VMOD of bench/vmod_customers is built once for each installed Varnish, the
database of places once.  Both are made anew when their sources are newer.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from .testbed import BENCH, BUILD, TestbedError

SOURCES = BENCH / "vmod_customers"
PLACES = BUILD / "places.mmdb"
SERIES = ("7.7", "9.0")
NEEDED = " or ".join(SERIES)
LIBRARIES = {"libcrypto": "libssl-dev", "libmaxminddb": "libmaxminddb-dev"}
FLAGS = ["-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-fPIC",
         "-shared"]


def newer(made: Path, sources: Sequence[Path]) -> bool:
    """Is `made` there, and as new as all sources?"""
    return made.exists() and made.stat().st_mtime >= max(
        source.stat().st_mtime for source in sources)


def said(
    what: str, *command: str, cwd: Path | None = None, **environment: str
) -> str:
    """Run a command; return what it printed, or fail with `what` and why."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=cwd,
            stdin=subprocess.DEVNULL, env=os.environ | environment)
    except OSError as error:
        raise TestbedError(f"{what}: {error}") from error
    if done.returncode != 0:
        words = (done.stderr or done.stdout).strip()
        raise TestbedError(f"{what}: {words}" if words else what)
    return done.stdout.strip()


def varnish_config(root: Path, *question: str) -> str:
    """Ask pkg-config about the Varnish installed in `root`."""
    folder = root / "lib" / "pkgconfig"
    # 9.0 is called Vinyl Cache
    package = ("vinylapi" if (folder / "vinylapi.pc").exists()
               else "varnishapi")
    return said(f"there is no Varnish to build a VMOD for in {root}",
                "pkg-config", "--silence-errors", *question, package,
                PKG_CONFIG_LIBDIR=str(folder),
                PKG_CONFIG_PATH="")  # not the system's


def series(root: Path) -> str:
    """Return the series of the Varnish installed in `root`, as "7.7"."""
    version = varnish_config(root, "--modversion")
    return ".".join(version.split(".")[:2])


def supported(root: Path) -> bool:
    """Does vmod_customers work with the Varnish installed in `root`?"""
    return series(root) in SERIES


def library_flags() -> list[str]:
    """Return what the compiler needs for LIBRARIES."""
    flags: list[str] = []
    for library, package in LIBRARIES.items():
        flags += said(f"there is no {library}: run apt-get install {package}",
                      "pkg-config", "--silence-errors", "--cflags", "--libs",
                      library).split()
    return flags


def build_vmod(root: Path) -> Path:
    """Build vmod_customers for the Varnish in `root`; return the file."""
    if not supported(root):
        raise TestbedError(
            f"C1 to C4 need Varnish {NEEDED}, but {root} has {series(root)}: "
            "use other customers, such as c1 or k0")
    tag = hashlib.sha256(str(root).encode()).hexdigest()[:8]
    folder = BUILD / f"vmod-{tag}"
    made = folder / "libvmod_customers.so"
    sources = [p for p in SOURCES.iterdir() if p.is_file()]
    header = Path(varnish_config(root, "--variable=pkgincludedir"))
    if newer(made, [*sources, header / "vmod_abi.h"]):
        return made
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.h").touch()
    said("vmodtool failed", sys.executable,
         varnish_config(root, "--variable=vmodtool"),
         "-o", "vcc_customers_if", str(SOURCES / "vmod_customers.vcc"),
         cwd=folder)
    fresh = made.with_suffix(f".{os.getpid()}")
    said("vmod_customers does not compile", "gcc", *FLAGS,
         f"-I{folder}", f"-I{SOURCES}", f"-I{header}", "-o", str(fresh),
         *map(str, sorted(SOURCES.glob("*.c"))),
         str(folder / "vcc_customers_if.c"), *library_flags())
    fresh.replace(made)
    return made


def build_venv() -> Path:
    """Make build/bench/venv with requirements.txt; return its Python."""
    needs, venv = BENCH / "requirements.txt", BUILD / "venv"
    done = venv / "done"
    if not newer(done, [needs]):
        said("there is no venv: run apt-get install python3-venv",
             sys.executable, "-m", "venv", "--clear", str(venv))
        said(f"pip could not install {needs}", str(venv / "bin" / "python"),
             "-m", "pip", "install", "-q", "-r", str(needs))
        done.touch()
    return venv / "bin" / "python"


def build_places() -> Path:
    """Make the database that C3 looks addresses up in; return the file."""
    writer, made = BENCH / "places.py", PLACES
    if not newer(made, [writer, BENCH / "requirements.txt"]):
        fresh = made.with_suffix(f".{os.getpid()}")
        said("places.py failed", str(build_venv()), str(writer), str(fresh))
        fresh.replace(made)
    return made


if __name__ == "__main__":
    try:
        build_places()
    except TestbedError as error:
        sys.exit(f"make bench-venv: {error}")
