# SPDX-License-Identifier: BSD-2-Clause
"""The command line: sandpaper-bench EXPERIMENT [--json FOLDER] ..

Everything that can be wrong with the arguments is found before anything
starts: an experiment is first planned as a Job, then run.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import journal, record, report
from .abuses import ABUSES
from .ask import Ask
from .command import run_command
from .customers import publisher
from .experiments import EXPERIMENTS
from .journal import Journal
from .nginx import NGINX
from .options import ABUSE, ALL, REPORT, SOAK, make_ask, parser, shorten
from .progress import duration
from .reaper import Reaper
from .resume import folder_of, make_journals
from .rig import Rig, progress
from .runner import Job
from .table import abuse_table, align
from .testbed import BUILD, Testbed, TestbedError
from .variants import SWITCHES, make_bed
from .vmod import build_places, build_vmod


def asked(args: argparse.Namespace, bed: Testbed) -> list[Ask]:
    """Return what `all` or `abuse` runs here; say what it leaves out."""
    whole, found = args.experiment == ALL, []
    names = [e.name for e in EXPERIMENTS.values() if e.in_all] \
        if whole else list(ABUSES)
    for name in names:
        ask = make_ask(EXPERIMENTS[name], args, bed)
        lacks = EXPERIMENTS[name].lacks(ask)
        if lacks:
            progress(f"{name} is left out: it needs {lacks}")
        elif EXPERIMENTS[name].in_quick or not ask.few:
            found.append(ask)
    if whole and args.quick:
        progress("--quick leaves out: " + ", ".join(
            name for name in names if not EXPERIMENTS[name].in_quick))
    return found


def make_job(name: str, args: argparse.Namespace, bed: Testbed) -> Job:
    """Return an experiment as a job; an error if it cannot run so."""
    ask = make_ask(EXPERIMENTS[name], args, bed)
    if lacks := EXPERIMENTS[name].lacks(ask):
        raise TestbedError(f"{name} needs {lacks}")
    return EXPERIMENTS[name].plan(ask)


def make_jobs(args: argparse.Namespace, bed: Testbed) -> list[Job]:
    """Return what to run, and say how long it takes."""
    if args.experiment in (ALL, ABUSE):
        jobs = [EXPERIMENTS[a.name].plan(a) for a in asked(args, bed)]
    else:
        jobs = [make_job(args.experiment, args, bed)]
    for job in jobs if len(jobs) > 1 else []:
        progress(f"  {job.name:<15} {len(job.schedule):4} turns  "
                 f"{duration(job.seconds):>10}")
    progress(f"this takes about {duration(sum(j.seconds for j in jobs))}, "
             "longer if other work disturbs it")
    return jobs


def build_publishers(jobs: Sequence[Job]) -> None:
    """Build what C1 to C4 need, if a job names one: it may be missing."""
    named = [job for job in jobs if any(map(publisher, job.customers))]
    for variant in {v for job in named for v in job.ask.variants}:
        _ = variant.program
        if variant.name == NGINX:
            raise TestbedError(f"{NGINX} has no C1 to C4: use made-up "
                               "customers, such as --pairs c1-c3")
        build_vmod(variant.root)
    if named:
        build_places()


def make_rig(
    args: argparse.Namespace, jobs: Sequence[Job], bed: Testbed,
    reaper: Reaper, journals: Sequence[Journal], folder: Path | None,
) -> Rig:
    """Return the rig that the arguments describe.

    What is continued has the units of work that it began with.
    """
    units: dict[str, float] = {}
    if folder:
        head = journals[0].head
        units = next((j.calibration for j in journals if j.calibration),
                     journal.calibration(folder, head["code"],
                                         head["machine"]))
    first = jobs[0].ask
    return Rig(bed, reaper, [*first.variants], first.plan,
               args.load == "wrk", args.unit_us or units.get("unit_us"),
               units.get("lua_us"))


def record_name(job: Job, jobs: Sequence[Job], name: str | None) -> str:
    """Return the name of a record.  Of several, each ends in NAME."""
    if not name:
        return job.name
    return name if len(jobs) == 1 else f"{job.name}-{name}"


def run_jobs(
    args: argparse.Namespace, jobs: Sequence[Job], rig: Rig,
    journals: Sequence[Journal], folder: Path | None,
) -> list[dict[str, Any]]:
    """Run one experiment after the other; print and write each."""
    reports = []
    for number, (job, kept) in enumerate(zip(jobs, journals, strict=True)):
        if len(jobs) > 1:
            left = sum(j.seconds for j in jobs[number:])
            print(f"\n== {job.name}: {number + 1} of {len(jobs)}, about "
                  f"{duration(left)} left", flush=True)
        found = job.run(rig, kept)
        record.keep(found, record_name(job, jobs, args.record), folder,
                    args.record is not None)
        print(EXPERIMENTS[job.name].text(found), flush=True)
        reports.append(found)
    return reports


def verdicts(reports: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Return which abuses ran under Sandpaper, and in what each failed."""
    return {f"{report['experiment']}, {r['variant']}": r["failed"]
            for report in reports for r in report["results"]
            if r["variant"] in SWITCHES}


def run(args: argparse.Namespace, reaper: Reaper) -> int:
    """Run what was asked for; `all` ends with a page.

    The status is 1 if that was the soak, an abuse or all abuses, and one
    failed; the last line then says how many.
    """
    several = args.experiment in (ALL, ABUSE)
    if several or args.experiment == REPORT:
        args.json = args.json or BUILD
    if args.experiment == REPORT:
        print(report.write(args.json))
        return 0
    if args.quick:
        shorten(args)
    abuses = args.experiment in (ABUSE, SOAK, *ABUSES)
    whole = args.experiment == ALL
    if whole:
        report.check_plots()
    if args.record is not None:
        record.check(args.record)
    bed = make_bed(args, reaper)
    jobs = make_jobs(args, bed)
    folder = folder_of(args.json)
    build_publishers(jobs)
    journals = make_journals(args, bed, folder, {
        job.name: job.ask.variants for job in jobs})
    rig = make_rig(args, jobs, bed, reaper, journals, folder)
    reports = run_jobs(args, jobs, rig, journals, folder)
    if whole and folder:
        files = [folder / f"{job.name}.json" for job in jobs]
        print(f"\n{report.write(folder, files)}")
    elif folder:
        print("The results as a page: bench/sandpaper-bench report --json "
              f"{folder}", flush=True)
    if not abuses:
        return 0
    if len(reports) > 1:
        every = [r for found in reports for r in found["results"]]
        print("\n" + align(*abuse_table(every)))
    found = verdicts(reports)
    failed = {name: what for name, what in found.items() if what}
    for name, what in failed.items():
        print(f"FAILED {name}: {what}")
    print(f"{len(found) - len(failed)} passed, {len(failed)} failed",
          flush=True)
    return 1 if failed else 0


def main(argv: list[str] | None = None) -> int:
    """Run one experiment, or all; return the exit status."""
    return run_command(parser(), argv, run)
