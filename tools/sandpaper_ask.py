# SPDX-License-Identifier: BSD-2-Clause
"""Asks a running varnishd about its tenants, with varnishadm.

The tools that watch varnishd share this file.  All tenants come in pages,
since varnishd cuts an answer at its parameter cli_limit.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

ADM_SECONDS = 5  # that varnishadm waits for an answer
ROWS, LEAST_ROWS = 2000, 5  # tenants of a page
SELDOM = 100  # answers that had room, until more tenants are tried
# Part of varnishd's cores that looks may take.  Its manager, which hands the
# answers on, takes a third as much again.
PART = 0.002
ATTEMPTS = 3  # if the worker process begins again between two pages

State = dict[str, Any]  # what sandpaper.list says; its `list` has the tenants


class ToolError(Exception):
    """What the user has to put right, or that varnishd is gone."""


class NotRunning(ToolError):
    """The worker process of varnishd does not run now."""


class Refused(ToolError):
    """varnishd answers that a command is wrong."""


def quoted(word: str) -> str:
    """Return a word as the CLI reads it, whatever bytes it has."""
    return '"' + "".join(
        chr(b) if 0x20 < b < 0x7f and chr(b) not in '"\\' else f"\\x{b:02x}"
        for b in word.encode("utf-8", "surrogateescape")) + '"'


def of_table(found: State) -> State:
    """Return an answer of sandpaper.list -t as it is without -t."""
    keys = found["keys"]
    rows = [{k: v for k, v in zip(keys, row, strict=True) if v is not None}
            for row in found["list"]]
    return {k: v for k, v in found.items() if k != "keys"} | {"list": rows}


class Room:
    """How many tenants have room in an answer: varnishd cuts a long one."""

    def __init__(self, most: int) -> None:
        self._most = self.rows = most
        self._fitted = 0  # answers in a row

    def begin(self) -> int:
        """Return how many tenants to ask for."""
        if self._fitted >= SELDOM:
            self._fitted, self.rows = 0, min(self._most, 2 * self.rows)
        return self.rows

    def fitted(self) -> None:
        """Note that an answer came whole."""
        self._fitted += 1

    def less(self) -> int:
        """Return how many to ask for if that was too much; 0: give up."""
        if self.rows <= LEAST_ROWS:
            return 0
        self._fitted, self.rows = 0, max(LEAST_ROWS, self.rows // 2)
        return self.rows


class Varnishadm:
    """Asks a running varnishd."""

    def __init__(self, program: str, options: Sequence[str]) -> None:
        self.command = [program, *options, "-t", str(ADM_SECONDS)]
        self._room = Room(ROWS)
        self.rest_s = 0.0  # to leave varnishd alone after the last snapshot

    def ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a CLI command."""
        try:
            return subprocess.run(
                [*self.command, *words], capture_output=True,
                encoding="utf-8", errors="surrogateescape", check=False,
                stdin=subprocess.DEVNULL, timeout=2 * ADM_SECONDS,
                start_new_session=True)
        except subprocess.TimeoutExpired:
            raise ToolError("varnishd does not answer") from None
        except OSError as error:
            raise ToolError(f"{self.command[0]}: {error.strerror}") from error

    def answer(self, *words: str) -> str:
        """Return the answer to a command of Sandpaper."""
        # The worker process may begin between the two questions
        for _ in range(2):
            done = self.ask(*words)
            if done.returncode == 0:
                return done.stdout
            said = " ".join((done.stderr + done.stdout).split())
            if "Unknown request" not in said:
                break
            state = self.ask("status").stdout.strip()
            if "running" not in state:
                raise NotRunning("the worker process does not run: "
                                 + (state or "no status"))
        else:
            raise ToolError(f"this varnishd has no {words[0]}: it is not "
                            "Sandpaper's")
        if "error code" in done.stderr:
            raise Refused(" ".join(done.stdout.split()))
        raise ToolError("no answer from varnishd"
                        + (f": {said}" if said else ""))

    def tenants(self, room: Room, *options: str) -> State:
        """Return what sandpaper.list says, with as many tenants as fit."""
        rows = room.begin()
        while rows:
            try:
                text = self.answer("sandpaper.list", "-j", "-t", *options,
                                   str(rows))
            except Refused as error:
                if "is no option" not in str(error):
                    raise
                raise ToolError("this varnishd is older than this program: "
                                "restart it") from None
            try:
                found = of_table(json.loads(text)[-1])
            except (ValueError, LookupError, TypeError):
                pass
            else:
                room.fitted()
                return found
            rows = room.less()
        raise ToolError("sandpaper.list gave no JSON")

    def page(self, after: str, keys: Sequence[str]) -> State:
        """Return the tenants after a name, at most self._room.rows of them."""
        # varnishd's manager drops an empty word; this is before all names
        found = self.tenants(
            self._room, "-a", quoted(after or "\x01"),
            *(("-c", ",".join(keys)) if keys else ()))
        if after and found["list"] and found["list"][-1]["tenant"] == after:
            raise ToolError(f"the page after {after} is no other one")
        return found

    def snapshot(self, keys: Sequence[str] = ()) -> State:
        """Return what sandpaper.list says, with all tenants by name.

        With keys, a tenant has only these of its fields, and its name.
        """
        self.rest_s = 0.0  # if there is no answer
        for _ in range(ATTEMPTS):
            whole = page = self.page("", keys)
            rows = list(whole["list"])
            cost = page["cost_s"]
            while (len(page["list"]) >= self._room.rows
                   and page.get("started") == whole.get("started")):
                page = self.page(page["list"][-1]["tenant"], keys)
                rows += page["list"]
                cost += page["cost_s"]
            if page.get("started") == whole.get("started"):
                whole["list"] = rows
                self.rest_s = cost / PART
                return whole
        raise NotRunning("the worker process begins again and again")

    def show(self, tenant: str) -> State:
        """Return all fields of a tenant."""
        text = self.answer("sandpaper.show", "-j", quoted(tenant))
        try:
            found: State = json.loads(text)[-1]
        except (ValueError, LookupError):
            raise ToolError("sandpaper.show gave no JSON") from None
        return found

    def explain(self, tenant: str) -> list[str]:
        """Return the sentences below the fields: why a tenant waits."""
        text = self.answer("sandpaper.show", quoted(tenant))
        _, blank, sentences = text.strip().rpartition("\n\n")
        return sentences.splitlines() if blank else []


class Parser(argparse.ArgumentParser):
    """A parser that ends with one line."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong."""
        self.exit(2, f"{self.prog}: {message} (--help shows all)\n")

    def add_varnishd(self) -> None:
        """Add the options that say which varnishd is asked."""
        self.add_argument(
            "-n", metavar="NAME", help="the varnishd to ask, as varnishd -n "
            "names it (default: varnishadm's default)")
        self.add_argument(
            "-T", metavar="ADDR:PORT", help="its CLI address, instead of -n; "
            "needs -S")
        self.add_argument(
            "-S", metavar="FILE", help="the secret file for -T")
        self.add_argument(
            "--varnishadm", metavar="PATH", help="the varnishadm to use "
            "(default: the one beside this program, or in PATH)")

    def varnishd(self, args: argparse.Namespace) -> None:
        """End if these options are in each other's way."""
        if args.T and args.n:
            self.error("say -n or -T, not both")
        if args.S and not args.T:
            self.error("-S needs -T")


def varnishadm(args: argparse.Namespace) -> Varnishadm:
    """Return the varnishadm that the options describe."""
    near = Path(sys.argv[0]).resolve().parent / "varnishadm"
    program = args.varnishadm or (
        str(near) if near.exists() else shutil.which("varnishadm"))
    if not program:
        raise ToolError("there is no varnishadm in PATH: use --varnishadm")
    options = []
    for name in "nTS":
        if getattr(args, name) is not None:
            options += [f"-{name}", getattr(args, name)]
    return Varnishadm(program, options)
