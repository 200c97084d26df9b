# SPDX-License-Identifier: BSD-2-Clause
"""Sanitizers: how programs run under one, and what their reports say.

A report with a frame of ours in it counts against us, unless our function only
called the two of Varnish's that a stock build reports together, too. Those are
listed with their reason in patches/SERIES/sanitize-stock.txt. A report without
a frame of ours is Varnish's own, listed or not. Where Varnish calls ours in
place of a system call, what the kernel reads or writes is Varnish's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

SANITIZERS = ("address", "thread")
# Not where a report happened, but where a thread or a lock came from.
ORIGIN = re.compile(r"  (Thread \S+ |Mutex \S+ .*created at|Location is|"
                    r"As if synchronized via sleep)|Thread \S+ created by|"
                    r"  Hint:")
FRAME = re.compile(r" +#\d+ (?:0x[0-9a-f]+ in )?(\S.*?)(?: (\S+:\d+))?"
                   r"(?: \(([^ ()]+)\+0x[0-9a-f]+\))?$")
RUNTIME = re.compile(r"libsanitizer/|lib[atl]san\.")
SYSTEM_CALLS = {"SPD_Writev", "spd_send", "SPD_Read"}
OURS = re.compile(r"(^|/)(sandpaper/varnishd|vmod_sandpaper|tests/unit|"
                  r"src/(admission|memory|overload|perfctr|poolmgr|price|"
                  r"releaser|tenants))/")
OUR_MODULE = "libvmod_sandpaper.so"
START = re.compile(r"WARNING: ThreadSanitizer: (?P<tsan>.+?) \(pid|"
                   r"==\d+==ERROR: AddressSanitizer: (?P<asan>[\w-]+)|"
                   r"(?P<leak>(?:Direct|Indirect) leak) of |"
                   r"\S+: runtime error: (?P<ubsan>[^:]+)")
# What varnishtest and the manager put before what a process says.
SAID = re.compile(r"^\*+ +\S+ +(\d+\.\d+ +)?debug\|(\w+: )?"
                  r"(Child \(\d+\) said )?")
NUMBER = re.compile(r"0x[0-9a-f]+|-?\b\d+")
END = re.compile(r"(SUMMARY: |={18}$)")


Frame = tuple[str, str]         # function; source and module


def is_ours(frame: Frame) -> bool:
    return OURS.search(frame[1]) is not None or OUR_MODULE in frame[1]


@dataclass
class Report:
    kind: str                   # "data race", "heap-use-after-free", ..
    frames: list[Frame] = field(default_factory=list)
    # Where its stacks begin, below what the sanitizer intercepts.
    tops: list[Frame] = field(default_factory=list)
    text: str = ""

    @property
    def ours(self) -> bool:
        return any(map(is_ours, self.frames))

    @property
    def title(self) -> str:
        return f"{self.kind}: " + (
            " / ".join(sorted(f for f, _ in self.tops)) or "(no stack)")


def environment(logs: Path) -> dict[str, str]:
    """Each process writes its reports to a file of its own in logs, but for
    gcc's libubsan, which beside libasan knows no log_path: those are in the
    test's log. A race or a leak does not change how a process ends; the rest
    aborts it."""
    logs.mkdir(parents=True, exist_ok=True)
    logs.chmod(0o1777)          # a jailed varnishd writes there, too
    common = f"log_path={logs.resolve()}/report use_sigaltstack=0"
    return {
        "ASAN_OPTIONS": f"{common} detect_leaks=1 abort_on_error=1",
        "LSAN_OPTIONS": f"{common} exitcode=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "TSAN_OPTIONS": f"{common} exitcode=0 die_after_fork=0 "
                        "second_deadlock_stack=1 history_size=4",
    }


def parse(text: str) -> list[Report]:
    reports: list[Report] = []
    report: Report | None = None
    skip = top = kernel = False     # kernel: of a system call
    for line in text.splitlines():
        line = SAID.sub("", line)
        m = START.search(line)
        if m:
            kind = NUMBER.sub("N", next(k for k in m.groups() if k))
            report = Report(kind)
            reports.append(report)
            skip, top, kernel = False, True, False
        if report is None:
            continue
        report.text += line + "\n"
        if not m and END.match(line):
            report = None
            continue
        frame = FRAME.match(line)
        if frame is None:
            if line.strip():
                skip = ORIGIN.match(line) is not None
            top, kernel = True, False
        elif not skip:
            function, source, module = frame.groups("")
            if top and kernel and function in SYSTEM_CALLS:
                continue
            report.frames.append((function, f"{source} {module}"))
            kernel = RUNTIME.search(report.frames[-1][1]) is not None
            if top and not kernel:
                report.tops.append(report.frames[-1])
                top = False
    return reports


def read(logs: Path, log: Path) -> list[Report]:
    """Of one test, whose own log is log."""
    return [r for f in [log, *sorted(logs.glob("report.*"))]
            for r in parse(f.read_text(errors="replace"))]


class Stock:
    """Reports that the stock build gives: their titles, a tab, and why."""

    def __init__(self, path: Path) -> None:
        self.known: set[str] = set()
        for line in path.read_text().splitlines() if path.exists() else []:
            if line and not line.startswith("#"):
                title, _, reason = line.partition("\t")
                if not reason.strip():
                    raise SystemExit(f"{path}: {title} has no reason: add a "
                                     "tab and the reason")
                self.known.add(title)

    def knows(self, report: Report) -> bool:
        return (report.title in self.known and
                not any(map(is_ours, report.tops)))
