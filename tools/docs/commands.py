# SPDX-License-Identifier: BSD-2-Clause
"""Do the commands of the pages work?

A block of commands has a mark above it: `test: GROUP`, `test: GROUP background`
or, for VCL, `test: vcl`, and is run here; or `run-by: COMMAND`, which says what
else runs it. The blocks of a group are one shell's, in order.
"""

from __future__ import annotations

import os
import re
import secrets
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from docs.pages import Block, Page, Wrong, files

NAMESPACE = Path(__file__).resolve().parent / "namespace"
SHELL = ("sh", "bash", "shell")
COMMANDS = (*SHELL, "console", "vcl", "zsh")
SECONDS = 120  # of a group
FAST = "cc_command=exec cc -O0 -fpic -shared -o %o %s"
LISTEN_SECONDS = 10  # until a server in the background listens
TAIL = 12  # lines of a failed group's output
VCL_START = re.compile(r"^(?:\s|#.*\n|//.*\n|/\*.*?\*/)*vcl\s+[\d.]+;", re.DOTALL)
RULE = re.compile(r"^([\w./%-]+(?:\s+[\w./%-]+)*)\s*::?(?!=)", re.MULTILINE)

# What a group's shell is given before and between the blocks. Descriptor 9 says
# which block has begun and which command has failed.
PROLOGUE = """\
set -eu -E
exec 9>/mnt/work/progress
docs_listening()
{
	cat /proc/net/tcp /proc/net/tcp6 | awk '$4 == "0A"' | wc -l
}
docs_wait() # until one more socket listens, or the block has ended
{
	local before=$1 job=$2 n
	for n in $(seq $((LISTEN_SECONDS * 20))); do
		[ "$(docs_listening)" = "$before" ] || return 0
		kill -0 "$job" 2>/dev/null || return 0
		sleep 0.05
	done
}
docs_jobs=
trap 'printf "failed %s\\n" "$BASH_COMMAND" | head -n 1 >&9' ERR
"""
BACKGROUND = """\
printf 'block LINE\\n' >&9
docs_before=$(docs_listening)
(
	trap - ERR
	exec 9>&-
	set +E
TEXT
) &
docs_jobs="$docs_jobs $!:LINE"
docs_wait "$docs_before" $!
"""
EPILOGUE = """\
trap - ERR
for docs_job in $docs_jobs; do
	kill -0 "${docs_job%:*}" 2>/dev/null && continue
	printf 'block %s\\n' "${docs_job#*:}" >&9
	wait "${docs_job%:*}" || exit
done
printf 'end\\n' >&9
"""


@dataclass
class Group:
    """Blocks that one shell runs."""

    page: str
    name: str
    blocks: list[Block]
    script: str

    @property
    def line(self) -> int:
        return self.blocks[0].line


def sort_out(page: Page, runs: Callable[[str], str],
             ) -> tuple[list[Group], int, list[Wrong]]:
    """A page's groups, how many blocks something else runs, what is wrong."""
    groups: dict[str, list[Block]] = {}
    vcl: list[Group] = []
    elsewhere = 0
    wrong = list(page.wrong)

    def say(block: Block, what: str) -> None:
        wrong.append(Wrong(page.name, block.line, what))

    for block in page.blocks:
        command = block.language in COMMANDS
        if not block.language:
            say(block, "a block without a language: text if it is not commands")
        elif block.language == "console":
            say(block, "console: write the commands in sh, the output in text")
        elif not block.kind:
            if command:
                say(block, f"a {block.language} block without a mark: <!-- test: "
                    "GROUP --> or <!-- run-by: COMMAND -->")
        elif not command:
            say(block, f"a mark above a block of {block.language}")
        elif block.kind == "run-by":
            if problem := runs(block.rest):
                say(block, f"run-by: {problem}")
            elsewhere += not problem
        elif block.language == "vcl":
            if block.rest != "vcl":
                say(block, "the mark of a vcl block is <!-- test: vcl -->")
            else:
                vcl.append(vcl_group(page.name, block))
        elif not re.fullmatch(r"[\w-]+( background)?", block.rest):
            say(block, f"test: {block.rest}: a group's name, and background or "
                "nothing")
        elif block.rest.split()[0] == "vcl":
            say(block, f"test: vcl is not for a block of {block.language}")
        else:
            groups.setdefault(block.rest.split()[0], []).append(block)
    shells = [Group(page.name, name, blocks, shell_script(blocks))
              for name, blocks in groups.items()]
    return [*shells, *vcl], elsewhere, wrong


def shell_script(blocks: list[Block]) -> str:
    parts = [PROLOGUE.replace("LISTEN_SECONDS", str(LISTEN_SECONDS))]
    for block in blocks:
        if block.rest.endswith(" background"):
            parts.append(BACKGROUND.replace("LINE", str(block.line))
                         .replace("TEXT", block.text))
        else:
            parts.append(f"printf 'block {block.line}\\n' >&9\n{block.text}")
    return "".join([*parts, EPILOGUE])


def vcl_group(page: str, block: Block) -> Group:
    """Compiles a block and loads it: a wrong map is known only then.

    A block that does not begin with vcl is a piece of one. It gets what it
    needs to be whole, on its first line, so that the line numbers stay.
    """
    text = block.text
    if not VCL_START.match(text):
        need = ["vcl 4.1;"]
        for module in ("sandpaper", "std"):
            if (re.search(rf"\b{module}\.\w+\(", text)
                    and not re.search(rf"^\s*import {module};", text,
                                      flags=re.MULTILINE)):
                need.append(f"import {module};")
        if not re.search(r"^\s*backend\s", text, flags=re.MULTILINE):
            need.append("backend docs_none none;")
        text = " ".join(need) + " " + text
    end = f"VCL-{secrets.token_hex(8)}"
    script = f"""\
set -eu
exec 9>/mnt/work/progress
printf 'block {block.line}\\n' >&9
cat >/root/block.vcl <<'{end}'
{text}{end}
varnishd -n /tmp/docs -a 127.0.0.1:0 -f /root/block.vcl \\
    -p '{FAST}'
printf 'end\\n' >&9
"""
    return Group(page, f"vcl {block.line}", [block], script)


def runner(top: Path, known: set[str]) -> Callable[[str], str]:
    """Says what is wrong with the name of a command that runs a block."""
    makefile = top / "GNUmakefile"
    text = makefile.read_text(encoding="utf-8") if makefile.exists() else ""
    targets = {word for found in RULE.findall(text) for word in found.split()}

    def wrong(name: str) -> str:
        try:
            words = shlex.split(name)
        except ValueError as e:
            return f"{name}: {e}"
        if not words:
            return "say which command runs it"
        if words[0] == "make":
            asked = [w for w in words[1:] if "=" not in w
                     and not w.startswith("-")]
            missing = [w for w in asked if w not in targets]
            if not asked:
                return f"{name}: which target?"
            return (f"there is no make target {missing[0]}" if missing else "")
        if words[0] not in known:
            return f"there is no {words[0]}"
        return ("" if os.access(top / words[0], os.X_OK)
                else f"{words[0]} is no program")

    return wrong


def why_not() -> str:
    """Why no group can run here; empty if they can."""
    if os.geteuid() != 0:
        return "needs root"
    for program in ("unshare", "setpriv", "ip"):
        if shutil.which(program) is None:
            return f"there is no {program}"
    done = subprocess.run(
        ["unshare", "--mount", "--net", "--pid", "--fork", "mount", "-t",
         "tmpfs", "none", "/mnt"], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return ""
    return f"no namespaces here: {done.stderr.strip()[-200:]}"


def copy(top: Path, names: list[str], to: Path) -> None:
    """The work tree as it is, without what git ignores."""
    for name in names:
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(top / name, to / name, follow_symlinks=False)


class Runner:
    """Runs groups, each in a machine of its own."""

    def __init__(self, top: Path, root: Path, seconds: int = SECONDS) -> None:
        self.top = top.resolve()
        self.root = root.resolve()
        self.seconds = seconds
        self.names = files(top)

    def run(self, group: Group) -> list[Wrong]:
        work = Path(tempfile.mkdtemp(prefix="sandpaper-docs-"))
        try:
            copy(self.top, self.names, work / "tree")
            (work / "group").write_text(group.script, encoding="utf-8")
            return self.judge(group, work, *self.start(work))
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def start(self, work: Path) -> tuple[int | None, float]:
        """Exit status, None for a group that took too long, and seconds."""
        began = time.monotonic()
        with (work / "output").open("wb") as out:
            child = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount",
                 "--pid", "--net", "--uts", "--ipc", "--fork", "--kill-child",
                 "--mount-proc", "bash", str(NAMESPACE), str(work),
                 str(self.top), str(self.root)],
                stdin=subprocess.DEVNULL, stdout=out,
                stderr=subprocess.STDOUT, start_new_session=True)
            try:
                status: int | None = child.wait(self.seconds)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                if child.poll() is None:
                    os.killpg(child.pid, signal.SIGKILL)
                    child.wait()
        return status, time.monotonic() - began

    def judge(self, group: Group, work: Path, status: int | None,
              took: float) -> list[Wrong]:
        progress = work / "progress"
        said = (progress.read_text(errors="replace").splitlines()
                if progress.exists() else [])
        if status == 0 and said and said[-1] == "end":
            return []
        line, command = group.line, ""
        for words in said:
            kind, _, rest = words.partition(" ")
            if kind == "block":
                line, command = int(rest), ""
            elif kind == "failed" and not command:
                command = rest
        if status is None:
            what = f"no end after {self.seconds} s"
        elif status == 0:
            what = f"ended before its last block, after {took:.0f} s"
        else:
            what = f"status {status}"
        if command:
            what += f" of {command}"
        output = (work / "output").read_text(errors="replace").splitlines()
        quoted = "".join(f"\n  | {text}" for text in output[-TAIL:])
        return [Wrong(group.page, line,
                      f"group {group.name}: {what}{quoted}")]

    def run_all(self, groups: list[Group], jobs: int) -> list[list[Wrong]]:
        with ThreadPoolExecutor(jobs) as pool:
            return list(pool.map(self.run, groups))
