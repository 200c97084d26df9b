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
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from docs.pages import Block, Page, Wrong, files

NAMESPACE = Path(__file__).resolve().parent / "namespace"
SHELL = ("sh", "bash", "shell")
COMMANDS = (*SHELL, "console", "vcl", "zsh")
SECONDS = 120  # of a group
INSTALL = "tools/check-docs --install"  # runs the blocks that say so
INSTALL_SECONDS = 1800
FAST = "cc_command=exec cc -O0 -fpic -shared -o %o %s"
LISTEN_SECONDS = 10  # until a server in the background listens
TAIL = 12  # lines of a failed group's output
VCL_START = re.compile(r"^(?:\s|#.*\n|//.*\n|/\*.*?\*/)*vcl\s+[\d.]+;", re.DOTALL)
RULE = re.compile(r"^([\w./%-]+(?:\s+[\w./%-]+)*)\s*::?(?!=)", re.MULTILINE)

# What a group's shell is given. A block's text is on the same lines of the script
# as on the page, so that what bash says of a line is true of the page; what
# begins and ends a block is where its fences are. Descriptor 9 says which block
# has begun and which command has failed.
PROLOGUE = """\
set -eu -E
exec 9>/mnt/run/progress
docs_listening()
{
	cat /proc/net/tcp /proc/net/tcp6 | awk '$4 == "0A"' | wc -l
}
docs_begin()
{
	printf 'block %s\\n' "$1" >&9
	docs_before=$(docs_listening)
}
docs_background() # until one more socket listens, or the block has ended
{
	local n
	docs_jobs="$docs_jobs $2:$1"
	for n in $(seq $((LISTEN_SECONDS * 20))); do
		[ "$(docs_listening)" = "$docs_before" ] || return 0
		kill -0 "$2" 2>/dev/null || return 0
		sleep 0.05
	done
}
docs_end()
{
	local job
	trap - ERR
	for job in $docs_jobs; do
		kill -0 "${job%:*}" 2>/dev/null && continue
		printf 'block %s\\n' "${job#*:}" >&9
		wait "${job%:*}" || exit
	done
	printf 'end\\n' >&9
}
docs_failed()
{
	printf 'failed %s %s\\n' "$1" "$(head -n 1 <<<"$2")" >&9
}
docs_jobs=
trap 'docs_failed "$LINENO" "$BASH_COMMAND"' ERR
"""


@dataclass
class Group:
    """Blocks that one shell runs."""

    page: str
    name: str
    blocks: list[Block]
    script: str
    fresh: bool = False  # nothing is installed before it

    @property
    def line(self) -> int:
        return self.blocks[0].line


def sort_out(page: Page, runs: Callable[[Block], str],
             ) -> tuple[list[Group], int, list[Wrong]]:
    """A page's groups, how many blocks something else runs, what is wrong."""
    groups: dict[str, list[Block]] = {}
    vcl: list[Block] = []
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
        elif block.language != "vcl" and (bad := syntax_error(block.text))[0]:
            wrong.append(Wrong(page.name, block.line + bad[0], bad[1]))
        elif block.kind == "run-by":
            if problem := runs(block):
                say(block, f"run-by: {problem}")
            elsewhere += not problem
        elif block.language == "vcl":
            if block.rest != "vcl":
                say(block, "the mark of a vcl block is <!-- test: vcl -->")
            else:
                vcl.append(block)
        elif not re.fullmatch(r"[\w-]+( background)?", block.rest):
            say(block, f"test: {block.rest}: a group's name, and background or "
                "nothing")
        elif block.rest.split()[0] == "vcl":
            say(block, f"test: vcl is not for a block of {block.language}")
        else:
            groups.setdefault(block.rest.split()[0], []).append(block)
    shells = [Group(page.name, name, blocks, shell_script(blocks))
              for name, blocks in groups.items()]
    if vcl:
        shells.append(vcl_group(page.name, vcl))
    return shells, elsewhere, wrong


def shell_script(blocks: list[Block]) -> str:
    lines = [". /mnt/run/prologue"]
    for block in blocks:
        lines += [""] * (block.line - 1 - len(lines))
        begin = f"docs_begin {block.line}"
        after = ""
        if block.rest.endswith(" background"):
            begin += "; ( trap - ERR; exec 9>&-; set +E"
            after = f") & docs_background {block.line} $!"
        # The first block may begin on a page's first line.
        lines[block.line - 1:] = ["; ".join(
            [*lines[block.line - 1:], begin])]
        lines += [*block.text.split("\n")[:-1], after]
    return "\n".join([*lines, "docs_end", ""])


def syntax_error(text: str) -> tuple[int, str]:
    """The line of a text, from 1, and what bash says of it; 0 if nothing."""
    done = subprocess.run(["bash", "-n"], input=text, capture_output=True,
                          text=True, check=False)
    found = re.search(r"line (\d+): (.*)", done.stderr)
    if not found:
        return 0, ""
    return min(int(found[1]), text.count("\n")), found[2]


def whole_vcl(text: str) -> str:
    """A block that does not begin with vcl is a piece of one. It gets what it
    needs to be whole, on its first line, so that the line numbers stay."""
    if VCL_START.match(text):
        return text
    need = ["vcl 4.1;"]
    for module in ("sandpaper", "std"):
        if (re.search(rf"\b{module}\.\w+\(", text)
                and not re.search(rf"^\s*import {module};", text,
                                  flags=re.MULTILINE)):
            need.append(f"import {module};")
    if not re.search(r"^\s*backend\s", text, flags=re.MULTILINE):
        need.append("backend docs_none none;")
    return " ".join(need) + " " + text


def vcl_group(page: str, blocks: list[Block]) -> Group:
    """Loads each block: a wrong map is known only then, not to the compiler."""
    parts = ["set -eu\nexec 9>/mnt/run/progress\n"
             f"varnishd -n /tmp/docs -a 127.0.0.1:0 -b none -p '{FAST}'\n"]
    for block in blocks:
        end = f"VCL-{secrets.token_hex(8)}"
        n = block.line
        parts.append(f"""\
cat >/root/{n}.vcl <<'{end}'
{whole_vcl(block.text)}{end}
if varnishadm -n /tmp/docs vcl.load b{n} /root/{n}.vcl >/mnt/run/{n} 2>&1; then
	varnishadm -n /tmp/docs vcl.discard b{n} >/mnt/run/{n} 2>&1
else
	printf 'wrong {n}\\n' >&9
fi
""")
    return Group(page, "vcl", blocks, "".join([*parts, "printf 'end\\n' >&9\n"]))


def installations(pages: Iterable[Page]) -> list[Group]:
    """The blocks that install Sandpaper: what two pages say is done once."""
    groups: dict[str, Group] = {}
    for page in pages:
        blocks = [b for b in page.blocks
                  if (b.kind, b.rest) == ("run-by", INSTALL)]
        text = "".join(b.text for b in blocks)
        if blocks and text not in groups:
            groups[text] = Group(
                page.name, "install", blocks, shell_script(blocks)
                + "test -x /opt/sandpaper/sbin/varnishd\n", fresh=True)
    return list(groups.values())


class Runs:
    """Says what is wrong with the command that is to run a block."""

    def __init__(self, top: Path, known: set[str]) -> None:
        self.top, self.known = top, known
        makefile = top / "GNUmakefile"
        self.make = makefile.read_text(encoding="utf-8") if (
            makefile.exists()) else ""
        self.targets = {word for found in RULE.findall(self.make)
                        for word in found.split()}

    def text(self, words: list[str]) -> str:
        """A command, and the text of the programs that it runs."""
        if words[0] == "make":
            said = " ".join(words)
            for target in words[1:]:
                recipe = re.search(rf"^{re.escape(target)}\s*:.*\n((?:\t.*\n)*)",
                                   self.make, flags=re.MULTILINE)
                said += "\n" + recipe[1] if recipe else ""
            programs = set(re.findall(r"[\w.-]+/[\w./-]+", said)) & self.known
        else:
            said, programs = "", {words[0]}
        return said + "".join(
            "\n" + (self.top / name).read_text(errors="replace")
            for name in sorted(programs))

    def __call__(self, block: Block) -> str:
        name = block.rest
        try:
            words = shlex.split(name)
        except ValueError as e:
            return f"{name}: {e}"
        if not words:
            return "say which command runs it"
        if words[0] == "make":
            asked = [w for w in words[1:] if "=" not in w
                     and not w.startswith("-")]
            if not asked:
                return f"{name}: which target?"
            for target in asked:
                if target not in self.targets:
                    return f"there is no make target {target}"
        elif words[0] not in self.known:
            return f"there is no {words[0]}"
        elif not os.access(self.top / words[0], os.X_OK):
            return f"{words[0]} is no program"
        if name == INSTALL:
            return ""
        text = self.text(words)
        for target in re.findall(r"^\s*make ([\w-]+)", block.text,
                                 flags=re.MULTILINE):
            if not re.search(rf"\bmake\b[^;\n]*\s{re.escape(target)}\b", text):
                return f"{name} does not run make {target}"
        return ""


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
        if (top / name).is_dir() and not (top / name).is_symlink():
            shutil.copytree(top / name, to / name, symlinks=True)
        else:
            shutil.copy2(top / name, to / name, follow_symlinks=False)


class Runner:
    """Runs groups, each in a machine of its own."""

    def __init__(self, top: Path, root: Path, seconds: int = SECONDS) -> None:
        self.top = top.resolve()
        self.root = root.resolve()
        self.seconds = seconds
        self.names = files(top)
        self.lock = threading.Lock()
        self.children: list[subprocess.Popen[bytes]] = []
        self.stopped = False

    def run(self, group: Group) -> list[Wrong]:
        work = Path(tempfile.mkdtemp(prefix="sandpaper-docs-"))
        try:
            copy(self.top, self.names, work / "tree")
            if group.fresh:  # but Varnish's source is there already
                copy(self.top, [str(p.relative_to(self.top)) for p in
                                self.top.glob("build/source-*")],
                     work / "tree")
            script = work / "page" / group.page
            script.parent.mkdir(parents=True)
            script.write_text(group.script, encoding="utf-8")
            (work / "group").symlink_to(script.relative_to(work))
            (work / "prologue").write_text(PROLOGUE.replace(
                "LISTEN_SECONDS", str(LISTEN_SECONDS)), encoding="utf-8")
            return self.judge(group, work, *self.start(group, work))
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def start(self, group: Group, work: Path) -> tuple[int | None, float]:
        """Exit status, None for a group that took too long, and seconds."""
        began = time.monotonic()
        with (work / "output").open("wb") as out, self.lock:
            if self.stopped:
                return None, 0
            child = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount",
                 "--pid", "--net", "--uts", "--ipc", "--fork", "--kill-child",
                 "--mount-proc", "bash", str(NAMESPACE), str(work),
                 str(self.top), "" if group.fresh else str(self.root)],
                stdin=subprocess.DEVNULL, stdout=out,
                stderr=subprocess.STDOUT, start_new_session=True)
            self.children.append(child)
        try:
            status: int | None = child.wait(self.limit(group))
        except subprocess.TimeoutExpired:
            status = None
        with self.lock:
            self.children.remove(child)
            self.kill(child)
        return status, time.monotonic() - began

    @staticmethod
    def kill(child: subprocess.Popen[bytes]) -> None:
        """And with it all that runs in its PID namespace."""
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()

    def stop(self) -> None:
        with self.lock:
            self.stopped = True
            for child in self.children:
                if child.poll() is None:
                    os.killpg(child.pid, signal.SIGKILL)

    def limit(self, group: Group) -> float:
        """How long it may take, in seconds."""
        return INSTALL_SECONDS if group.fresh else self.seconds

    def judge(self, group: Group, work: Path, status: int | None,
              took: float) -> list[Wrong]:
        progress = work / "progress"
        said = (progress.read_text(errors="replace").splitlines()
                if progress.exists() else [])
        if status == 0 and said and said[-1] == "end":
            lines = [int(words.split()[1]) for words in said[:-1]
                     if words.startswith("wrong ")]
            return [Wrong(group.page, n, "this VCL does not load"
                          + self.quote(work / str(n))) for n in lines]
        line, last, command = group.line, group.blocks[0], ""
        for words in said:
            kind, _, rest = words.partition(" ")
            if kind == "block":
                line, command = int(rest), ""
                last = next(b for b in group.blocks if b.line == line)
            elif kind == "failed" and not command:
                at, _, command = rest.partition(" ")
                if line < int(at) <= line + last.text.count("\n"):
                    line = int(at)
        if status is None:
            what = f"no end after {self.limit(group):.0f} s"
        elif status == 0:
            what = f"ended before its last block, after {took:.0f} s"
        else:
            what = f"status {status}"
        if command:
            what += f" of: {command}"
        return [Wrong(group.page, line, f"group {group.name}: {what}"
                      + self.quote(work / "output"))]

    @staticmethod
    def quote(path: Path) -> str:
        """The end of what was printed."""
        text = path.read_text(errors="replace") if path.exists() else ""
        return "".join(f"\n  | {line}" for line in text.splitlines()[-TAIL:])

    def run_all(self, groups: list[Group], jobs: int) -> list[list[Wrong]]:
        with ThreadPoolExecutor(jobs) as pool:
            todo = [pool.submit(self.run, group) for group in groups]
            try:
                return [each.result() for each in todo]
            except BaseException:  # an interrupt, too: leave nothing behind
                pool.shutdown(wait=False, cancel_futures=True)
                self.stop()
                raise
