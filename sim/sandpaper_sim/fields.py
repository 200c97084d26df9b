# SPDX-License-Identifier: BSD-2-Clause
"""A TOML file's fields, taken one by one; what is wrong with one is said in
one line: file, line, field, what is allowed.

The line comes from tomlkit, which writes a file as it was read: it is that of
the first difference after the field has been changed."""

from __future__ import annotations

import math
from argparse import ArgumentTypeError
from collections.abc import Callable
from os.path import commonprefix
from pathlib import Path
from typing import Any, NoReturn

import tomlkit
from tomlkit.exceptions import ParseError, TOMLKitError
from tomlkit.items import AoT, Table

REQUIRED = object()
MARK = "\ue000"                 # private use: in no file


class Wrong(Exception):
    """What is wrong with a file, in one line."""


def text_of(path: Path) -> str:
    """A file's text; Wrong."""
    try:
        return path.read_text("utf-8")
    except OSError as e:
        raise Wrong(f"{path}: {e.strerror}") from None
    except UnicodeDecodeError:
        raise Wrong(f"{path}: is not UTF-8: convert it") from None


class Source:
    """A TOML file, and where in it a field is."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = text_of(path)
        try:
            self.data: dict[str, Any] = tomlkit.parse(self.text).unwrap()
        except ParseError as e:
            text = str(e).partition(" at line ")[0]
            raise Wrong(f"{path}:{e.line}: {text}") from None
        except TOMLKitError as e:
            raise Wrong(f"{path}: {e}") from None

    def line(self, table: tuple[str | int, ...], key: str) -> int:
        """Of a key in a table, or of the table's header if it lacks it."""
        document = tomlkit.parse(self.text)
        at: Any = document
        for step in table:
            at = at[step]
        item = at.get(key, at)
        if isinstance(item, AoT):
            item = item[0]
        if isinstance(item, Table):
            item.trivia.indent = MARK
        elif item is not at:
            at[key] = MARK
        changed = document.as_string()
        if changed == self.text:
            return 1
        same = len(commonprefix([self.text, changed]))
        return self.text.count("\n", 0, same) + 1


class Fields:
    """A table's fields; what is left in the end is unknown."""

    def __init__(self, source: Source, fields: dict[str, Any],
                 *table: str | int) -> None:
        self.source, self.fields, self.table = source, dict(fields), table
        self.known: list[str] = []

    def fail(self, key: str, text: str) -> NoReturn:
        """About a field."""
        line = self.source.line(self.table, key)
        raise Wrong(f"{self.source.path}:{line}: {key}: {text}")

    def take(self, key: str, default: Any) -> Any:  # noqa: ANN401
        """A field's value; REQUIRED: it has to be there."""
        self.known.append(key)
        if key not in self.fields and default is REQUIRED:
            self.fail(key, "is missing: add it")
        return self.fields.pop(key, default)

    def number(self, key: str, least: float, most: float,
               default: Any = REQUIRED) -> Any:  # noqa: ANN401
        """Between the two, a whole number if these are."""
        x = self.take(key, default)
        if x is None:
            return x
        whole = isinstance(least, int)
        if not is_number(x) or (whole and not isinstance(x, int)) or \
                not least <= x <= most:
            self.fail(key, f"{x!r} is not allowed: use a "
                      f"{'whole ' if whole else ''}number, "
                      f"{least:g} to {most:g}")
        return x

    def choice(self, key: str, of: list[str],
               default: Any = REQUIRED) -> Any:  # noqa: ANN401
        """One of these."""
        x = self.take(key, default)
        if x is not None and x not in of:
            self.fail(key, f"{x!r} is not allowed: use one of "
                      f"{', '.join(of)}")
        return x

    def choices(self, key: str, of: list[str],
                default: list[str]) -> list[str]:
        """Some of these."""
        x = self.take(key, default)
        if not isinstance(x, list):
            self.fail(key, f"{x!r} is not allowed: use a list of "
                      f"{', '.join(of)}")
        for name in x:
            if name not in of:
                self.fail(key, f"{name!r} is not allowed: use one of "
                          f"{', '.join(of)}")
        return x

    def text(self, key: str, default: Any = REQUIRED) -> Any:  # noqa: ANN401
        """A string that is not empty."""
        x = self.take(key, default)
        if x is not None and (not isinstance(x, str) or not x):
            self.fail(key, f"{x!r} is not allowed: use a text in quotes")
        return x

    def end(self) -> None:
        """Nothing else may be there."""
        for key in self.fields:
            self.fail(key, "is not known: use one of "
                      f"{', '.join(self.known)}")


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """A type of argparse's: a whole number between the two."""
    allowed = f"{least} or more" if most is None else f"{least} to {most}"

    def number(text: str) -> int:
        if not (text.isdecimal() and least <= int(text)
                and (most is None or int(text) <= most)):
            raise ArgumentTypeError(
                f"'{text}' is not allowed: use a whole number, {allowed}")
        return int(text)
    return number


def is_number(x: object) -> bool:
    """A finite one."""
    return isinstance(x, (int, float)) and not isinstance(x, bool) and \
        math.isfinite(x)
